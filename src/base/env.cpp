// SPDX-License-Identifier: Apache-2.0
//
// The table of environment variables and its readers.
#include "base/env.h"

#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr EnvVariable kTable[] = {
    {"HONE_CPU_ISA", "scalar|avx2|avx512|amx", "highest instruction set that CPU kernels may use; amx: no bound"},
    {"HONE_CPU_BF16", "emulated", "take the CPU for one that multiplies bf16: right but slow, for tests of --bf16"},
    {"HONE_THREADS", "N", "worker threads of the CPU device; default: the cores this process may use"},
    {"HONE_CUDA_PATH", "DIR[:DIR...]", "folders with NVIDIA's libraries, where the loader does not find them"},
    {"HONE_ONNXRUNTIME_LIB", "FILE", "ONNX Runtime's library for hone run --onnxrt, where the loader does not find it"},
    {"HONE_MEETING", "DIR", "where the ranks of a divided network meet: a folder that all of them see"},
    {"HONE_RANK_WINDOWS", "0",
     "ranks on cards do not reach into each other's memory: slower, but errors rather than an end where one has gone"},
    {"HONE_RANK_TIMEOUT", "SECONDS", "how long a rank waits for the others; default: 60"},
    {"HONE_POISON", "1",
     "fill memory that nobody may rely on with NaNs before every inference; results must not change"},
    {"HONE_TENSORRT_API", "8.6|10|11", "which release of TensorRT the Python module tensorrt shows; default: 10"},
    {"HONE_TENSORRT_DEVICE", "DEVICE",
     "what that module builds for and runs on: cpu, cuda:1; default: a GPU where there is one"},
    {"HONE_DUMP", "DIR", "write the graph after every pass that changed it, and what each pass took, into DIR"},
};

}  // namespace

std::span<const EnvVariable> env_table() { return kTable; }

std::optional<std::string> env_text(std::string_view name) {
  bool known = false;
  for (const EnvVariable& row : kTable) known |= row.name == name;
  HONE_ASSERT(known, "environment variable {} is not in the table", name);
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

bool env_flag(std::string_view name) {
  const std::optional<std::string> value = env_text(name);
  return value && *value != "0" && *value != "off" && *value != "false";
}

std::optional<int> env_int(std::string_view name) {
  const std::optional<std::string> value = env_text(name);
  if (!value) return std::nullopt;
  const std::optional<int64_t> number = parse_integer(*value);
  HONE_CHECK(number && *number >= 0 && *number < 1'000'000, "environment variable {}={} is not a number", name, *value);
  return static_cast<int>(*number);
}

std::string unknown_env_report() {
  std::string report;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("HONE_")) continue;
    const std::string_view name = text.substr(0, text.find('='));
    std::vector<std::string_view> names;
    bool known = false;
    for (const EnvVariable& row : kTable) {
      names.push_back(row.name);
      known |= row.name == name;
    }
    if (!known)
      report += fmt::format("environment variable {} is not known; did you mean {}?\n", name, nearest(name, names));
  }
  return report;
}

}  // namespace hone
