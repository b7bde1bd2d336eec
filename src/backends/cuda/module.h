// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the card: made from source text by NVRTC when an engine is built, loaded by the driver when it runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "backend/code.h"
#include "backends/cuda/libraries.h"

namespace hone::cuda {

/// Compiles for an architecture ("sm_90"). Throws Error with the compiler's log. The same text is compiled once per process:
/// a build asks for a kernel when it is timed and again when it is chosen.
Blob compile_cubin(const std::string& source, const std::string& architecture);

/// A kernel's code in a plan: its family and parameters, and the machine code behind them.
struct DeviceCode {
  KernelCode code;
  Blob cubin;
};
Blob encode_device_code(std::string_view family, const Attrs& attrs, const Blob& cubin);
/// Exact inverse. Throws Error on anything else.
DeviceCode decode_device_code(const Blob& blob);

/// Loaded machine code; unloaded when the last kernel of it is gone.
class Module {
 public:
  Module(const Blob& cubin, CUcontext context);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  CUfunction function(const std::string& name) const;

 private:
  CUcontext context_;
  CUmodule module_ = nullptr;
};

}  // namespace hone::cuda
