// SPDX-License-Identifier: Apache-2.0
//
// What the library cannot do to a result in registers is done to it in memory: one more pass over the matmul's results, in place. They
// are rounded in between, as if no layer had been fused; it is worth a pass where the library's product is the faster by more than that.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/run/kernel.h"
#include "backends/cuda/tactic_table.h"
#include "regions/region_match.h"

namespace hone::cuda {

/// The source of the pass, behind the prelude: all steps of the match.
std::string finish_source(const RegionMatch& match, const EpilogueCode& epilogue, DType dtype);
/// The pass over each result. Throws Error where the plan's residual is not like the first result.
std::unique_ptr<const GridKernel> load_finish(const EpilogueCode& epilogue, const LoadContext& context);

}  // namespace hone::cuda
