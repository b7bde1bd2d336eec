// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's libraries, opened when first asked for: one table of functions each, whose members come from symbols/*.def. The
// build needs their headers only, so one binary starts on every machine and says what it found.
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudnn.h>
#include <nvrtc.h>

#include <string>

namespace hone::cuda {

#define HONE_SYMBOL(name) decltype(&::name) name = nullptr;
struct Driver {
#include "backends/cuda/run/symbols/driver.def"
};
struct Nvrtc {
#include "backends/cuda/run/symbols/nvrtc.def"
};
struct CublasLt {
#include "backends/cuda/run/symbols/cublaslt.def"
};
struct Cudnn {
#include "backends/cuda/run/symbols/cudnn.def"
};
#undef HONE_SYMBOL

/// A table, or why there is none.
template <typename Table>
struct Library {
  Table table;
  std::string missing;  // empty: it is there
  bool found() const { return missing.empty(); }
};

/// Opened once per process, at the first call.
const Library<Driver>& driver_library();
const Library<Nvrtc>& nvrtc_library();
const Library<CublasLt>& cublaslt_library();
const Library<Cudnn>& cudnn_library();

/// The table; throws Error saying which library is missing and what to do.
const Driver& driver();
const Nvrtc& nvrtc();
const CublasLt& cublaslt();
const Cudnn& cudnn();

/// Throw Error with the library's own words when a call failed. `what` says what was tried.
void check(CUresult status, const char* what);
void check(nvrtcResult status, const char* what);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

/// "nvrtc 13.0, cublaslt 13.0.2, cudnn 9.13.0"; what is missing says so.
std::string library_versions();

}  // namespace hone::cuda
