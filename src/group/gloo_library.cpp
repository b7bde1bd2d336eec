// SPDX-License-Identifier: Apache-2.0
#include "group/gloo_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/text.h"
#include "device/group.h"

namespace hone {
namespace {

/// Beside what this code is in, or where programs have their libraries.
void* open_library(std::string& reason) {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&gloo_library), &self);
  std::error_code status;
  const std::filesystem::path here =
      std::filesystem::absolute(self.dli_fname == nullptr ? "" : self.dli_fname, status).parent_path();
  for (const char* folder : {"hone", ".", "../lib/hone", "../lib", "../lib64/hone"}) {
    const std::filesystem::path path = here / folder / "libhone_gloo.so";
    if (!std::filesystem::exists(path, status)) continue;
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reason = dlerror();
  }
  if (reason.empty()) reason = fmt::format("it is not beside {}", here.string());
  return nullptr;
}

}  // namespace

const HoneGlooTable& gloo_library() {
  static const HoneGlooTable& table = [&]() -> const HoneGlooTable& {
    std::string reason;
    void* handle = open_library(reason);  // never closed: its threads live until the process ends
    using Function = const HoneGlooTable* (*)();
    const auto function = handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, kHoneGlooFunction));
    const HoneGlooTable* found = function == nullptr ? nullptr : function();
    if (found == nullptr || found->version != kHoneGlooVersion)
      throw GroupError(fmt::format("libhone_gloo.so, which ranks talk through, cannot be opened: {}",
                                   reason.empty() ? "it is of another version" : reason),
                       "install libgloo0 (Debian), and Hone with its libraries");
    return *found;
  }();
  return table;
}

}  // namespace hone
