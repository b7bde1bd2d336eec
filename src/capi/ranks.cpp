// SPDX-License-Identifier: Apache-2.0
//
// The C interface's ranks.
#include "capi/ranks.h"

#include "hone/ranks.h"

#include <algorithm>
#include <optional>

#include "capi/guard.h"
#include "capi/handles.h"
#include "group/process_group.h"
#include "group/ranks.h"
#include "ops/collective.h"
#include "runtime/ranks.h"

using hone::capi::guarded;
using hone::capi::require;

namespace hone::capi {

bool divided(const hone_model& model) {
  return std::ranges::any_of(model.graph.nodes(), [](const Node* node) { return node->is(ops::collective); });
}

}  // namespace hone::capi

hone_status hone_rank_describe(hone_rank* rank) {
  return guarded([&] {
    static const std::optional<hone::Rank> kRank = hone::rank_of_process();
    const hone::Rank told = kRank.value_or(hone::Rank{});
    hone::capi::fill(rank, "rank",
                     hone_rank{.size = sizeof(hone_rank),
                               .rank = told.rank,
                               .ranks = told.size,
                               .local_rank = told.local,
                               .local_ranks = told.local_size,
                               .launcher = kRank ? kRank->launcher.c_str() : ""});
  });
}

hone_status hone_model_divided(const hone_model* model, int* divided) {
  return guarded([&] {
    require(model, "model");
    require(divided, "divided");
    *divided = hone::capi::divided(*model) ? 1 : 0;
  });
}

hone_status hone_plan_divided(const hone_plan* plan, int* divided) {
  return guarded([&] {
    require(plan, "plan");
    require(divided, "divided");
    *divided = hone::is_divided(*plan->plan) ? 1 : 0;
  });
}
