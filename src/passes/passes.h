// SPDX-License-Identifier: Apache-2.0
//
// Every pass that is a function and every set of rewrites of pipeline.def.
#pragma once

#include "passes/pass.h"
#include "passes/rewrite.h"

namespace hone::passes {

#define BEGIN(list)
#define END()
#define GROUP(name, list, ...)
#define PASS(name, file, ...) void name(Graph& graph, const PassContext& context);
#define REWRITES(name, file, ...) std::span<const Rewrite> name();
#include "passes/pipeline.def"
#undef BEGIN
#undef END
#undef GROUP
#undef PASS
#undef REWRITES

}  // namespace hone::passes
