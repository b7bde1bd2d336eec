// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/module.h"

#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace hone::cuda {
namespace {

/// A program of the compiler with its owner.
class Program {
 public:
  explicit Program(const std::string& source) {
    check(nvrtc().nvrtcCreateProgram(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr),
          "creating a program");
  }
  ~Program() { nvrtc().nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Blob compile(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    const char* options[] = {target.c_str(), "--std=c++17", "--restrict", "--device-as-default-execution-space"};
    if (const nvrtcResult status = nvrtc().nvrtcCompileProgram(program_, static_cast<int>(std::size(options)), options);
        status != NVRTC_SUCCESS)
      throw InternalError(fmt::format("a generated kernel does not compile for {}: {}\n{}", architecture,
                                      nvrtc().nvrtcGetErrorString(status), log()));
    size_t size = 0;
    check(nvrtc().nvrtcGetCUBINSize(program_, &size), "asking for the size of machine code");
    AlignedBuffer bytes(size);
    check(nvrtc().nvrtcGetCUBIN(program_, reinterpret_cast<char*>(bytes.data())), "reading machine code");
    return Blob::own(std::move(bytes));
  }

 private:
  std::string log() const {
    size_t size = 0;
    nvrtc().nvrtcGetProgramLogSize(program_, &size);
    std::string text(size, '\0');
    if (size != 0) nvrtc().nvrtcGetProgramLog(program_, text.data());
    return text;
  }
  nvrtcProgram program_ = nullptr;
};

/// Remembers what was compiled: a pure function's results, safe to share.
class Memo {
 public:
  Blob cubin(const std::string& source, const std::string& architecture) {
    const std::string key = architecture + hash_hex(std::as_bytes(std::span(source)));
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = cubins_.find(key); known != cubins_.end()) return known->second;
    }
    Blob made = Program(source).compile(architecture);
    const std::lock_guard lock(mutex_);
    return cubins_.emplace(key, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Blob> cubins_;
};

constexpr std::string_view kMark = "HONECUDA";

}  // namespace

Blob compile_cubin(const std::string& source, const std::string& architecture) {
  static Memo memo;
  return memo.cubin(source, architecture);
}

Blob encode_device_code(std::string_view family, const Attrs& attrs, const Blob& cubin) {
  const Blob head = encode_code(family, attrs);
  const auto size = static_cast<uint64_t>(head.size());
  AlignedBuffer bytes(kMark.size() + sizeof size + head.size() + cubin.size());
  std::byte* at = bytes.data();
  const auto put = [&at](const void* data, size_t count) {
    if (count != 0) std::memcpy(at, data, count);
    at += count;
  };
  put(kMark.data(), kMark.size());
  put(&size, sizeof size);
  put(head.data(), head.size());
  put(cubin.data(), cubin.size());
  return Blob::own(std::move(bytes));
}

DeviceCode decode_device_code(const Blob& blob) {
  const std::span<const std::byte> bytes = blob.bytes();
  const size_t start = kMark.size() + sizeof(uint64_t);
  HONE_CHECK(bytes.size() >= start && blob.text().starts_with(kMark), "a CUDA kernel in the plan is damaged");
  uint64_t size = 0;
  std::memcpy(&size, bytes.data() + kMark.size(), sizeof size);
  HONE_CHECK(size <= bytes.size() - start, "a CUDA kernel in the plan is cut off");
  const auto part = [&](size_t from, size_t count) {
    return Blob::copy(bytes.subspan(from, count));
  };  // aligned for the driver
  return {decode_code(part(start, size)), part(start + size, bytes.size() - start - size)};
}

Module::Module(const Blob& cubin, CUcontext context) : context_(context) {
  check(driver().cuCtxSetCurrent(context_), "selecting the card");
  check(driver().cuModuleLoadData(&module_, cubin.data()),
        "loading machine code; was the plan built for another card?");
}

Module::~Module() {
  driver().cuCtxSetCurrent(context_);
  driver().cuModuleUnload(module_);
}

CUfunction Module::function(const std::string& name) const {
  CUfunction function = nullptr;
  check(driver().cuModuleGetFunction(&function, module_, name.c_str()), ("looking up the kernel " + name).c_str());
  return function;
}

}  // namespace hone::cuda
