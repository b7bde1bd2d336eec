// SPDX-License-Identifier: Apache-2.0
#include "tools/files/rank_files.h"

#include <filesystem>

#include "base/text.h"

namespace hone {

hone_rank this_rank() { return ask<hone_rank>(hone_rank_describe); }

std::string for_rank(const std::string& file) {
  const hone_rank rank = this_rank();
  return rank.ranks > 1 ? fmt::format("{}.rank{}", file, rank.rank) : file;
}

std::string of_rank(const std::string& file) {
  std::string own = for_rank(file);
  std::error_code ignored;
  return std::filesystem::exists(own, ignored) ? own : file;
}

bool is_divided(const hone_model* model) { return ask<int>(hone_model_divided, model) != 0; }
bool is_divided(const hone_plan* plan) { return ask<int>(hone_plan_divided, plan) != 0; }

}  // namespace hone
