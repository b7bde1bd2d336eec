// SPDX-License-Identifier: Apache-2.0
//
// What ranks do each by itself, however long it takes: they tell each other all the while that they live, so that the time a rank waits for
// an answer can stay short.
#pragma once

#include <functional>
#include <string>

#include "device/group.h"

namespace hone {

/// Returns when all ranks have done their work. Throws on every rank where one has failed.
void all_work(Group& group, const std::function<void()>& work);
/// Rank 0 works, for all: to choose kernels by time above all, since two clocks never say the same. Its text.
std::string first_works(Group& group, const std::function<std::string()>& work);

}  // namespace hone
