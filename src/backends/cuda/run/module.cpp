// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/module.h"

#include <future>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

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
    // Of Hopper with the instructions that no later GPU has: its machine code runs on no other anyway.
    const std::string target = "--gpu-architecture=" + architecture + (architecture == "sm_90" ? "a" : "");
    // Not --restrict: it would let the compiler move loads of operands before the wait for the kernel that writes them.
    const char* options[] = {target.c_str(), "--std=c++17", "--device-as-default-execution-space"};
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

/// Remembers what was compiled: a pure function's results, safe to share. Who asks for what another thread compiles waits.
class Memo {
 public:
  Blob cubin(const std::string& source, const std::string& architecture) {
    std::packaged_task<Blob()> compile([&] { return Program(source).compile(architecture); });
    const auto [result, fresh] = enter(architecture + hash_hex(std::as_bytes(std::span(source))), compile.get_future());
    if (fresh) compile();
    return result.get();
  }

 private:
  /// The result under `key`, and whether it is `ours`, not one that was there.
  std::pair<std::shared_future<Blob>, bool> enter(const std::string& key, std::future<Blob> ours) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = cubins_.try_emplace(key, std::move(ours));
    return {at->second, fresh};
  }
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Blob>> cubins_;
};

constexpr std::string_view kMark = "HONECUDA";

}  // namespace

Blob compile_cubin(const std::string& source, const std::string& architecture) {
  static Memo memo;
  return memo.cubin(source, architecture);
}

Blob encode_device_code(const std::vector<DeviceCode>& codes) {
  std::string bytes(kMark);
  const auto put = [&bytes](std::string_view part) {
    const auto size = static_cast<uint64_t>(part.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
  };
  for (const DeviceCode& code : codes) {
    put(code.architecture);
    put(encode_code(code.code.family, code.code.attrs, code.code.version).text());
    put(code.cubin.text());
  }
  return Blob::copy(bytes);
}

bool is_device_code(const Blob& blob) { return blob.text().starts_with(kMark); }

std::vector<DeviceCode> decode_device_code(const Blob& blob) {
  std::string_view rest = blob.text();
  HONE_CHECK(is_device_code(blob), "a CUDA kernel in the plan is damaged");
  rest.remove_prefix(kMark.size());
  const auto take = [&rest] {
    uint64_t size = 0;
    HONE_CHECK(rest.size() >= sizeof size, "a CUDA kernel in the plan is cut off");
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    HONE_CHECK(size <= rest.size(), "a CUDA kernel in the plan is cut off");
    const std::string_view part = rest.substr(0, size);
    rest.remove_prefix(size);
    return part;
  };
  std::vector<DeviceCode> codes;
  do {
    DeviceCode code{.architecture = std::string(take()), .code = {}, .cubin = {}};
    code.code = decode_code(Blob::copy(take()));
    code.cubin = Blob::copy(take());  // aligned for the driver
    codes.push_back(std::move(code));
  } while (!rest.empty());
  return codes;
}

const DeviceCode& code_for(const std::vector<DeviceCode>& codes, const std::string& architecture) {
  const auto version = [](const std::string& name) {
    return name.starts_with("sm_") ? parse_integer(name.substr(3)).value_or(0) : int64_t{0};
  };
  const DeviceCode* best = nullptr;
  std::vector<std::string> names;
  for (const DeviceCode& code : codes) {
    const int64_t own = version(code.architecture), gpu = version(architecture);
    if (own / 10 == gpu / 10 && own <= gpu && (best == nullptr || own > version(best->architecture))) best = &code;
    names.push_back(code.architecture);
  }
  if (best == nullptr)
    throw Error(fmt::format("the plan's kernels are for {}, the GPU is {}", join(names, ", "), architecture),
                "build it on this GPU, or for it with --targets");
  return *best;
}

Module::Module(const Blob& cubin, CUcontext context) : context_(context) {
  check(driver().cuCtxSetCurrent(context_), "selecting the GPU");
  check(driver().cuModuleLoadData(&module_, cubin.data()), "loading machine code; was the plan built for another GPU?");
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
