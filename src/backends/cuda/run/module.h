// SPDX-License-Identifier: Apache-2.0
//
// Machine code for the GPU: made from source text by NVRTC when an engine is built, loaded by the driver when it runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/run/libraries.h"
#include "device/code.h"

namespace hone::cuda {

/// Compiles for an architecture ("sm_90"). Throws Error with the compiler's log. The same text is compiled once per process:
/// a build asks for a kernel when it is timed and again when it is chosen.
Blob compile_cubin(const std::string& source, const std::string& architecture);

/// A kernel's code in a plan for one architecture: its family and parameters, and the machine code behind them.
struct DeviceCode {
  std::string architecture;  // "sm_90"
  KernelCode code;
  Blob cubin;
};
/// The same kernel for one architecture or several.
Blob encode_device_code(const std::vector<DeviceCode>& codes);
bool is_device_code(const Blob& blob);
/// Exact inverse. Throws Error on anything else.
std::vector<DeviceCode> decode_device_code(const Blob& blob);
/// Which of them runs on a GPU: code for the same major version, and for no newer a GPU. Throws Error where there is none.
const DeviceCode& code_for(const std::vector<DeviceCode>& codes, const std::string& architecture);

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
