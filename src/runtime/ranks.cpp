// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks.h"

#include <algorithm>

#include "base/hash.h"

namespace hone {
namespace {

bool is_collective(const Step& step) { return step.kind == "Collective"; }

/// The same for all ranks of a network: what they do together, and what it reads and gives.
std::string family_text(const Plan& plan) {
  std::string all, first;
  size_t count = 0;
  for (const IoTensor& io : plan.io) all += fmt::format("{}:{};", io.name, io.type.text());
  for (const Profile& profile : plan.profiles) {
    for (const ProfileRange& range : profile.ranges)
      all += fmt::format("{} {} {};", range.tensor, join_dims(range.min), join_dims(range.max));
    for (const Step& step : profile.steps) {
      if (!is_collective(step)) continue;
      const TensorType& type = profile.buffers[static_cast<size_t>(step.inputs.at(0))].type;
      all += fmt::format("{} of {};", plan.blobs[static_cast<size_t>(step.code)].text(), type.text());
      if (count++ == 0) first = fmt::format("{} of {}", step.tactic, type.text());
    }
  }
  return fmt::format("a plan by Hone {} on {} with {} collectives ({}, ...; {})", plan.meta.hone_version,
                     plan.meta.backend, count, first, hash_hex(all).substr(0, 8));
}

bool same(std::span<const uint64_t> all) {
  return std::ranges::all_of(all, [&](uint64_t other) { return other == all.front(); });
}

}  // namespace

/// One number says both; only where it differs does a second one say which.
bool agree(Group& group, std::string_view what, const std::string& text, std::string_view hint,
           const std::string& aside) {
  if (same(group.exchange(hash64(fmt::format("{}\n{}", text, aside))))) return !aside.empty();
  if (same(group.exchange(hash64(text)))) return false;
  const std::vector<std::string> texts = group.exchange(std::string_view(text));
  const auto other = std::ranges::find_if(texts, [&](const std::string& said) { return said != texts.front(); });
  if (other == texts.end()) return false;
  const GroupError error(fmt::format("the ranks have different {}: rank 0 has {}, rank {} has {}", what, texts.front(),
                                     other - texts.begin(), *other),
                         std::string(hint));
  group.fail(error);
  throw error;
}

bool is_divided(const Plan& plan) {
  return std::ranges::any_of(plan.profiles,
                             [](const Profile& profile) { return std::ranges::any_of(profile.steps, is_collective); });
}

void require_same(const Plan& plan, Group& group) {
  agree(group, "plans", family_text(plan), "give every rank the plan that was built for it, all in one go");
}

std::shared_ptr<Group> group_of(const Plan& plan, const Device& device) {
  const auto* member = is_divided(plan) ? dynamic_cast<const HasGroup*>(&device) : nullptr;
  return member == nullptr ? nullptr : member->group();
}

bool require_same_shapes(const Engine& engine, int profile, std::span<const Dims> shapes, Group& group,
                         std::string& told, const std::function<std::string()>& places) {
  std::string text = fmt::format("profile {}", profile);
  for (size_t i = 0; i < engine.plan().io.size(); ++i)
    if (const IoTensor& io = engine.plan().io[i]; io.is_input)
      text += fmt::format(", {} [{}]", io.name, join_dims(shapes[i], ","));
  if (!engine.device().host_accessible() && told == text) return false;
  const bool across = agree(group, "shapes", text, "give every rank the same shapes, in the same order", places());
  told = std::move(text);
  return across;
}

}  // namespace hone
