// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/onnxruntime_api.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/env.h"
#include "base/text.h"
#include "tools/companion/exit_status.h"

namespace hone::ort {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> matching(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return paths;
}

/// Folders that may hold a Python with its packages.
std::vector<std::string> python_roots() {
  std::vector<std::string> roots;
  if (const char* active = std::getenv("VIRTUAL_ENV")) roots.emplace_back(active);
  std::error_code none;
  for (fs::path at = fs::read_symlink("/proc/self/exe", none).parent_path(); at.has_relative_path();
       at = at.parent_path())
    roots.push_back((at / ".venv").string());
  roots.emplace_back(".venv");
  roots.emplace_back("/usr");
  roots.emplace_back("/usr/local");
  return roots;
}

/// Files, or names for the loader, the one that was asked for alone where there is one.
std::vector<std::string> places(const std::string& asked) {
  if (!asked.empty()) return {asked};
  if (const auto set = env_text("HONE_ONNXRUNTIME_LIB")) return {*set};
  std::vector<std::string> result{"libonnxruntime.so.1", "libonnxruntime.so"};
  for (const std::string& root : python_roots())
    result.push_back(root + "/lib/python3*/*-packages/onnxruntime/capi/libonnxruntime.so*");
  return result;
}

void* open_library(const std::vector<std::string>& searched) {
  for (const std::string& place : searched) {
    const bool pattern = place.find('*') != std::string::npos;
    for (const std::string& path : pattern ? matching(place) : std::vector<std::string>{place})
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  throw StatusError(ExitStatus::no_backend,
                    fmt::format("ONNX Runtime's library was not found; searched: {}", join(searched, ", ")),
                    "pip install onnxruntime, or name libonnxruntime.so with --onnxrt-lib or HONE_ONNXRUNTIME_LIB");
}

Table open_table(const std::vector<std::string>& searched) {
  Table table(dlsym(open_library(searched), "OrtGetApiBase"));
  if (table.empty())
    throw StatusError(ExitStatus::no_backend,
                      fmt::format("{} is no ONNX Runtime of version 1.11 or later", join(searched, ", ")),
                      "name another library with --onnxrt-lib");
  return table;
}

}  // namespace

Library::Library(const std::string& path) : table_(open_table(places(path))) {}

}  // namespace hone::ort
