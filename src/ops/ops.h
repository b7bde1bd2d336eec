// SPDX-License-Identifier: Apache-2.0
//
// Every operator of operators.def by name, for code that builds or recognises nodes: `node->is(ops::conv)`.
#pragma once

#include "ir/op.h"

namespace hone::ops {

#define OP(name) extern const OpDef name;
#include "ops/operators.def"
#undef OP

}  // namespace hone::ops
