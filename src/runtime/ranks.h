// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a divided network have to agree on: that their plans do the same things together, in the same order, and that
// their inferences have the same shapes. What would be a hang, or a wrong number, is a sentence on every rank.
#pragma once

#include "device/group.h"
#include "runtime/engine.h"

namespace hone {

/// Whether a plan does anything with other ranks.
bool is_divided(const Plan& plan);
/// The ranks that the plan runs with on this device; null where it is not divided, or the process is alone.
std::shared_ptr<Group> group_of(const Plan& plan, const Device& device);
/// Throws GroupError on every rank where they do not all say the same text of what is named. Whether they say the same aside, and not nothing.
bool agree(Group& group, std::string_view what, const std::string& text, std::string_view hint,
           const std::string& aside = {});
/// Throws GroupError on every rank where the plans differ in what they do together.
void require_same(const Plan& plan, Group& group);
/// Throws GroupError on every rank where the next inference has other shapes on one. `told`: what was said the last time. A device that
/// computes behind the back of its caller tells of changes alone: a difference then ends in the timeout. places() says where in the memory that
/// ranks share the operands lie that they exchange; true where something was told, and they lie at the same places on every rank.
bool require_same_shapes(const Engine& engine, int profile, std::span<const Dims> shapes, Group& group,
                         std::string& told, const std::function<std::string()>& places);

}  // namespace hone
