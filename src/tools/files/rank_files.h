// SPDX-License-Identifier: Apache-2.0
//
// Files and devices of a rank, where several processes run one network: MODEL.rank0 and MODEL.rank1 lie beside each other under the name
// that all ranks are given, and rank 0 speaks for all.
#pragma once

#include <string>

#include "hone/ranks.h"
#include "tools/common/api.h"

namespace hone {

hone_rank this_rank();
/// NAME.rankN of this rank, where there is such a file; else the file itself.
std::string of_rank(const std::string& file);
/// NAME.rankN, what this rank writes; the file itself where the process is alone.
std::string for_rank(const std::string& file);
bool is_divided(const hone_model* model);
bool is_divided(const hone_plan* plan);
/// Whether this process tells what all know.
inline bool speaks() { return this_rank().rank == 0; }

}  // namespace hone
