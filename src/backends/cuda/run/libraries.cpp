// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/libraries.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"

namespace hone::cuda {
namespace {

// The inner macro is there so that the headers' versioned names are filled in before they become text.
#define HONE_TEXT_OF(name) #name
#define HONE_TEXT(name) HONE_TEXT_OF(name)

/// Where NVIDIA's packages put libraries that the loader does not know.
std::vector<std::string> folders() {
  std::vector<std::string> result{""};
  if (const std::optional<std::string> extra = env_text("HONE_CUDA_PATH"))
    for (const std::string_view folder : split(*extra, ':')) result.push_back(std::string(folder) + "/");
  result.insert(result.end(), {"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"});
  return result;
}

void* open_library(const std::vector<std::string>& names, std::string& reason) {
  for (const std::string& folder : folders())
    for (const std::string& name : names) {
      if (void* handle = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
      if (reason.empty()) reason = dlerror();
    }
  return nullptr;
}

/// Looks every member up; a library that lacks one is too old to be used at all.
class Loader {
 public:
  Loader(std::string_view title, const std::vector<std::string>& names)
      : title_(title), handle_(open_library(names, reason_)) {
    if (handle_ == nullptr) missing_ = fmt::format("{} was not found ({})", title_, reason_);
  }
  template <typename Function>
  void load(Function& function, const char* name) {
    if (handle_ == nullptr || !missing_.empty()) return;
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr) missing_ = fmt::format("{} is too old: it lacks {}", title_, name);
  }
  template <typename Function>
  void load_optional(Function& function, const char* name) {
    if (handle_ != nullptr) function = reinterpret_cast<Function>(dlsym(handle_, name));
  }
  std::string missing() const { return missing_; }

 private:
  std::string title_, reason_;
  void* handle_;  // never closed: kernels and handles live until the process ends
  std::string missing_;
};

#define HONE_SYMBOL(name) loader.load(library.table.name, HONE_TEXT(name));
#define HONE_OPTIONAL_DRIVER_SYMBOL(name) loader.load_optional(library.table.name, HONE_TEXT(name));

Library<Driver> open_driver() {
  Library<Driver> library;
  Loader loader("the CUDA driver", {"libcuda.so.1"});
#define HONE_OPTIONAL_SYMBOL HONE_OPTIONAL_DRIVER_SYMBOL
#include "backends/cuda/run/symbols/driver.def"
  library.missing = loader.missing();
  if (!library.found()) return library;
  if (const CUresult status = library.table.cuInit(0); status != CUDA_SUCCESS) {
    const char* text = nullptr;
    library.table.cuGetErrorString(status, &text);
    library.missing = fmt::format("the CUDA driver does not start: {}", text == nullptr ? "unknown error" : text);
  }
  return library;
}

/// NVRTC opens the library of its built-in functions by name alone; beside it, where the loader does not look, it would be missed.
void open_builtins(const Nvrtc& nvrtc) {
  int major = 0, minor = 0;
  Dl_info place{};
  if (nvrtc.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS ||
      dladdr(reinterpret_cast<void*>(nvrtc.nvrtcVersion), &place) == 0)
    return;
  const std::filesystem::path folder = std::filesystem::path(place.dli_fname).parent_path();
  dlopen((folder / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor)).c_str(), RTLD_NOW | RTLD_LOCAL);
}

Library<Nvrtc> open_nvrtc() {
  Library<Nvrtc> library;
  Loader loader("NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"});
#include "backends/cuda/run/symbols/nvrtc.def"
  library.missing = loader.missing();
  if (library.found()) open_builtins(library.table);
  return library;
}

Library<CublasLt> open_cublaslt() {
  Library<CublasLt> library;
  Loader loader("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"});
#include "backends/cuda/run/symbols/cublaslt.def"
  library.missing = loader.missing();
  return library;
}

Library<Cudnn> open_cudnn() {
  Library<Cudnn> library;
  Loader loader("cuDNN", {"libcudnn.so.9"});
#include "backends/cuda/run/symbols/cudnn.def"
  library.missing = loader.missing();
  return library;
}
#undef HONE_SYMBOL

template <typename Table>
const Table& required(const Library<Table>& library, const char* hint) {
  if (!library.found()) throw Error(library.missing, hint);
  return library.table;
}

std::string dotted(int64_t version, int64_t major, int64_t minor) {
  return fmt::format("{}.{}.{}", version / major, version % major / minor, version % minor);
}

}  // namespace

const Library<Driver>& driver_library() {
  static const Library<Driver> library = open_driver();
  return library;
}
const Library<Nvrtc>& nvrtc_library() {
  static const Library<Nvrtc> library = open_nvrtc();
  return library;
}
const Library<CublasLt>& cublaslt_library() {
  static const Library<CublasLt> library = open_cublaslt();
  return library;
}
const Library<Cudnn>& cudnn_library() {
  static const Library<Cudnn> library = open_cudnn();
  return library;
}

constexpr const char* kInstall = "install the CUDA libraries, or name their folders in HONE_CUDA_PATH";
const Driver& driver() { return required(driver_library(), "install NVIDIA's driver, or use --device=cpu"); }
const Nvrtc& nvrtc() { return required(nvrtc_library(), kInstall); }
const CublasLt& cublaslt() { return required(cublaslt_library(), kInstall); }
const Cudnn& cudnn() { return required(cudnn_library(), kInstall); }

void check(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return;
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName(status, &name);
  driver().cuGetErrorString(status, &text);
  throw Error(fmt::format("{}: {} ({})", what, text == nullptr ? "unknown error" : text, name == nullptr ? "?" : name));
}
void check(nvrtcResult status, const char* what) {
  if (status != NVRTC_SUCCESS) throw Error(fmt::format("{}: {}", what, nvrtc().nvrtcGetErrorString(status)));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(fmt::format("{}: {}", what, cublaslt().cublasLtGetStatusString(status)));
}
void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char detail[512] = {};
  cudnn().cudnnGetLastErrorString(detail, sizeof detail);
  throw Error(fmt::format("{}: {} {}", what, cudnn().cudnnGetErrorString(status), detail));
}

std::string library_versions() {
  std::vector<std::string> texts;
  if (nvrtc_library().found()) {
    int major = 0, minor = 0;
    nvrtc().nvrtcVersion(&major, &minor);
    texts.push_back(fmt::format("nvrtc {}.{}", major, minor));
  }
  if (cublaslt_library().found())
    texts.push_back("cublaslt " + dotted(static_cast<int64_t>(cublaslt().cublasLtGetVersion()), 10000, 100));
  if (cudnn_library().found())
    texts.push_back("cudnn " + dotted(static_cast<int64_t>(cudnn().cudnnGetVersion()), 10000, 100));
  if (!nvrtc_library().found()) texts.push_back("no nvrtc");
  if (!cublaslt_library().found()) texts.push_back("no cublaslt");
  if (!cudnn_library().found()) texts.push_back("no cudnn");
  return join(texts, ", ");
}

}  // namespace hone::cuda
