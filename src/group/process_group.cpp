// SPDX-License-Identifier: Apache-2.0
#include "group/process_group.h"

#include <cstdlib>
#include <mutex>
#include <optional>

#include "base/env.h"
#include "base/version.h"
#include "group/gloo_group.h"

namespace hone {
namespace {

GlooOptions options_of_process() {
  GlooOptions options{.program = fmt::format("Hone {}", kVersion)};
  constexpr int kSecond = 1000;
  if (const std::optional<int> seconds = env_int("HONE_RANK_TIMEOUT"))
    options.timeout_ms = std::max(*seconds, 1) * kSecond;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) options.interface = interface;
  return options;
}

std::shared_ptr<Group> join() {
  const std::optional<Rank> rank = rank_of_process();
  if (!rank) return nullptr;
  return std::make_shared<GlooGroup>(*rank, options_of_process());
}

}  // namespace

std::shared_ptr<Group> process_group() {
  static std::mutex mutex;
  static std::optional<GroupError> failure;
  static std::shared_ptr<Group> group;
  static bool asked = false;
  const std::lock_guard lock(mutex);
  if (failure) throw GroupError(*failure);
  if (asked) return group;
  try {
    group = join();
    asked = true;
  } catch (const GroupError& error) {
    failure = error;
    throw;
  }
  return group;
}

}  // namespace hone
