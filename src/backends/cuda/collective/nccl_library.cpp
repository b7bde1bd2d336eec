// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "backends/cuda/collective/nccl_abi.h"
#include "base/env.h"
#include "base/error.h"
#include "base/text.h"

namespace hone::cuda::nccl {
namespace {

void* open_library(std::string& reason) {
  std::vector<std::string> folders{""};
  if (const std::optional<std::string> extra = env_text("HONE_CUDA_PATH"))
    for (const std::string_view folder : split(*extra, ':')) folders.push_back(std::string(folder) + "/");
  for (const std::string& folder : folders) {
    if (void* handle = dlopen((folder + "libnccl.so.2").c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (reason.empty()) reason = dlerror();
  }
  return nullptr;
}

Table open_table() {
  constexpr const char* kHint = "pip install nvidia-nccl-cu13, and name its folder lib in HONE_CUDA_PATH";
  std::string reason;
  void* handle = open_library(reason);  // never closed: kernels run until the process ends
  if (handle == nullptr) throw Error(fmt::format("NCCL, which GPUs talk through, was not found ({})", reason), kHint);
  Table table;
  const auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr) throw Error(fmt::format("NCCL is too old: it lacks {}", name), kHint);
  };
#define HONE_NCCL_SYMBOL(name) load(table.name, #name)
  HONE_NCCL_SYMBOL(ncclGetVersion);
  HONE_NCCL_SYMBOL(ncclGetErrorString);
  HONE_NCCL_SYMBOL(ncclGetLastError);
  HONE_NCCL_SYMBOL(ncclGetUniqueId);
  HONE_NCCL_SYMBOL(ncclCommInitRankConfig);
  HONE_NCCL_SYMBOL(ncclCommGetAsyncError);
  HONE_NCCL_SYMBOL(ncclCommAbort);
  HONE_NCCL_SYMBOL(ncclAllReduce);
  HONE_NCCL_SYMBOL(ncclReduce);
  HONE_NCCL_SYMBOL(ncclReduceScatter);
  HONE_NCCL_SYMBOL(ncclAllGather);
  HONE_NCCL_SYMBOL(ncclBroadcast);
  HONE_NCCL_SYMBOL(ncclSend);
  HONE_NCCL_SYMBOL(ncclRecv);
  HONE_NCCL_SYMBOL(ncclGroupStart);
  HONE_NCCL_SYMBOL(ncclGroupEnd);
#undef HONE_NCCL_SYMBOL
  const auto load_optional = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
  };
  load_optional(table.ncclCommWindowRegister, "ncclCommWindowRegister");
  load_optional(table.ncclCommWindowDeregister, "ncclCommWindowDeregister");
  constexpr int kLeast = 21900;
  int version = 0;
  if (table.ncclGetVersion(&version) != kSuccess || version < kLeast)
    throw Error(fmt::format("NCCL is too old: it has version {}, {} is needed", version, kLeast), kHint);
  return table;
}

}  // namespace

const Table& library() {
  static const Table table = open_table();
  return table;
}

}  // namespace hone::cuda::nccl
