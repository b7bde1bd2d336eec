// SPDX-License-Identifier: Apache-2.0
//
// The program's operators: registering, libraries of them, and whether a plan finds what it needs.
#include "capi/operators/operators.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/log.h"

using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

namespace hone::capi {
namespace {

struct Registered {
  std::mutex mutex;
  std::vector<std::shared_ptr<const CustomOperator>> operators;
  std::vector<std::string> opened;  // paths of libraries
};

/// Never freed: at the end of a program what operators would release may be gone.
Registered& registered() {
  static Registered& list = *new Registered;
  return list;
}

const CustomOperator* find(const auto& operators, std::string_view domain, std::string_view name) {
  for (const auto& op : operators)
    if (op->domain == domain && op->name == name) return op.get();
  return nullptr;
}

/// All or none.
void add(Registered& list, const std::vector<std::shared_ptr<CustomOperator>>& operators) {
  for (size_t i = 0; i < operators.size(); ++i) {
    const CustomOperator& op = *operators[i];
    const CustomOperator* other = find(list.operators, op.domain, op.name);
    for (size_t k = 0; other == nullptr && k < i; ++k)
      if (operators[k]->full_name == op.full_name) other = operators[k].get();
    if (other != nullptr)
      throw Error(fmt::format("there is {} already", other->text()),
                  "hone_operator_unregister() takes it away; a network has one operator of a domain and name");
  }
  list.operators.insert(list.operators.end(), operators.begin(), operators.end());
  for (const auto& op : operators) op->registered = true;
}

/// Closes the library unless it is kept.
struct Close {
  void operator()(void* library) const { dlclose(library); }
};

std::unique_ptr<void, Close> opened(const std::string& path) {
  std::unique_ptr<void, Close> library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    const char* reason = dlerror();
    throw Error(fmt::format("the library cannot be opened: {}", reason == nullptr ? "no reason is given" : reason),
                "it has to be a shared library for this machine, with all that it needs beside it");
  }
  return library;
}

std::vector<std::shared_ptr<CustomOperator>> operators_in(void* library, const std::string& file,
                                                          const std::string& hash, unsigned flags) {
  const auto list =
      reinterpret_cast<hone_library_operators_fn>(dlsym(library, HONE_LIBRARY_OPERATORS));  // NOLINT: so says POSIX
  if (list == nullptr)
    throw Error(fmt::format("the library exports no {}()", HONE_LIBRARY_OPERATORS),
                "libraries of operators export it (operators.h); plugins of TensorRT are others");
  const hone_operator* const* operators = list(HONE_API_VERSION);
  HONE_CHECK(operators != nullptr, "the library refuses Hone's interface of version {}", HONE_API_VERSION);
  std::vector<std::shared_ptr<CustomOperator>> result;
  for (size_t i = 0; operators[i] != nullptr; ++i) result.push_back(operator_of(operators[i], flags, file, hash));
  return result;
}

bool is_open(Registered& list, const std::string& path) {
  const std::lock_guard lock(list.mutex);
  return std::ranges::find(list.opened, path) != list.opened.end();
}

/// The library's own code, which may register operators itself, runs while the list is free.
void open_library(const std::string& path, unsigned flags, const Logger& log) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::string whole = std::filesystem::canonical(path).string();
  Registered& list = registered();
  if (is_open(list, whole)) return;
  std::unique_ptr<void, Close> library = opened(whole);
  const std::vector<std::shared_ptr<CustomOperator>> operators =
      operators_in(library.get(), std::filesystem::path(whole).filename().string(), hash_hex(file->bytes()), flags);
  {
    const std::lock_guard lock(list.mutex);
    add(list, operators);
    list.opened.push_back(whole);
  }
  static_cast<void>(library.release());  // open as long as the process: operators may be anywhere
  for (const auto& op : operators) log.info("Registered {}", op->text());
}

hone_operator_info info_of(const std::string& domain, const std::string& name, int64_t version,
                           const std::string& library, const std::string& hash) {
  return {.size = sizeof(hone_operator_info),
          .domain = domain.c_str(),
          .name = name.c_str(),
          .version = static_cast<int>(version),
          .library = library.c_str(),
          .hash = hash.c_str()};
}

std::string origin_of(const PlanOperator& op) {
  return op.library.empty() ? "the program that built it" : fmt::format("the library {}", op.library);
}

}  // namespace

OperatorList program_operators() {
  Registered& list = registered();
  const std::lock_guard lock(list.mutex);
  OperatorList operators;
  for (const auto& op : list.operators) operators.push_back(op->as_op());
  return operators;
}

void require_operators(const Plan& plan, const OperatorList& operators) {
  std::vector<const CustomOperator*> known;
  for (const auto& op : operators) known.push_back(op->custom);
  for (const PlanOperator& needed : plan.operators) {
    const auto at = std::ranges::find_if(
        known, [&](const CustomOperator* op) { return op->domain == needed.domain && op->name == needed.name; });
    const std::string name = fmt::format("{}::{}", needed.domain, needed.name);
    const std::string bring = needed.library.empty()
                                  ? "register it with hone_operator_register() before the plan is loaded"
                                  : fmt::format(
                                        "pass --staticPlugins=<path of {}>, or open it with "
                                        "hone_operator_library_open() before the plan is loaded",
                                        needed.library);
    if (at == known.end())
      throw Error(fmt::format("the plan needs the operator {}, version {}, of {}, which is not registered", name,
                              needed.version, origin_of(needed)),
                  bring);
    if ((*at)->version != needed.version)
      throw Error(fmt::format("the plan needs the operator {} in version {}; registered is version {}", name,
                              needed.version, (*at)->version),
                  bring + "; or build the plan again with this one");
    if ((*at)->hash != needed.hash)
      throw Error(fmt::format("the plan needs the operator {} of {} with the hash {}; registered is that of {}{}", name,
                              origin_of(needed), needed.hash.empty() ? "none" : needed.hash,
                              (*at)->library.empty() ? "this program" : "the library " + (*at)->library,
                              (*at)->hash.empty() ? "" : " with the hash " + (*at)->hash),
                  bring + "; or build the plan again with this one");
  }
}

}  // namespace hone::capi

hone_status hone_operator_register(const hone_operator* op) {
  return guarded([&] {
    require(op, "op");
    const auto made = hone::capi::operator_of(op, 0, {}, {});
    hone::capi::Registered& list = hone::capi::registered();
    const std::lock_guard lock(list.mutex);
    hone::capi::add(list, {made});
  });
}

hone_status hone_operator_unregister(const char* domain, const char* name) {
  return guarded([&] {
    require(name, "name");
    const std::string_view given = domain == nullptr ? "" : domain, wanted = given == "ai.onnx" ? "" : given;
    hone::capi::Registered& list = hone::capi::registered();
    std::vector<std::shared_ptr<const hone::CustomOperator>>
        gone;  // they end when the list is free: so may do what they like
    const std::lock_guard lock(list.mutex);
    std::erase_if(list.operators, [&](const auto& op) {
      const bool meant = op->domain == wanted && op->name == name;
      if (meant) gone.push_back(op);
      return meant;
    });
    if (gone.empty()) throw hone::Error(fmt::format("no operator {}::{} is registered", wanted, name));
  });
}

hone_status hone_operator_library_open(const char* path, unsigned flags, const hone_log* log) {
  return guarded([&] {
    require(path, "path");
    const hone::Logger logger = hone::capi::logger_for(log);
    hone::with_note([&] { return fmt::format("opening the library of operators {}", path); },
                    [&] { hone::capi::open_library(path, flags, logger); });
  });
}

size_t hone_operators(void) {
  hone::capi::Registered& list = hone::capi::registered();
  const std::lock_guard lock(list.mutex);
  return list.operators.size();
}

hone_status hone_operator_describe(size_t index, hone_operator_info* info) {
  return guarded([&] {
    hone::capi::taken(info, "info");
    hone::capi::Registered& list = hone::capi::registered();
    const std::lock_guard lock(list.mutex);
    require_index(index, list.operators.size(), "operator");
    const hone::CustomOperator& op = *list.operators[index];
    hone::capi::fill(info, "info", hone::capi::info_of(op.domain, op.name, op.version, op.library, op.hash));
  });
}

size_t hone_plan_operators(const hone_plan* plan) {
  size_t count = 0;
  guarded([&] {
    require(plan, "plan");
    count = plan->plan->operators.size();
  });
  return count;
}

hone_status hone_plan_operator(const hone_plan* plan, size_t index, hone_operator_info* info) {
  return guarded([&] {
    require(plan, "plan");
    hone::capi::taken(info, "info");
    require_index(index, plan->plan->operators.size(), "operator");
    const hone::PlanOperator& op = plan->plan->operators[index];
    hone::capi::fill(info, "info", hone::capi::info_of(op.domain, op.name, op.version, op.library, op.hash));
  });
}
