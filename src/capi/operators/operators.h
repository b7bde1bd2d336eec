// SPDX-License-Identifier: Apache-2.0
//
// Operators that the program brought: what hone_operator says as an ir/custom.h operator, and the one list of those that are
// registered. What reads a model or loads a plan takes the list as it is then.
#pragma once

#include "hone/hone.h"
#include "ir/custom.h"
#include "plan/plan.h"

namespace hone::capi {

/// Throws Error where the description contradicts itself. `library` and `hash` are empty for the program's own.
std::shared_ptr<CustomOperator> operator_of(const hone_operator* description, unsigned flags, std::string library,
                                            std::string hash);
/// The program's function behind a call; throws Error with its message where it fails.
void call_operator(const CustomOperator& op, void* user, hone_operator_fn function, CustomCall& call);
size_t call_workspace(const CustomOperator& op, void* user, hone_workspace_fn function, const CustomCall& call);

OperatorList program_operators();
/// Throws Error, with what to do, where the plan needs an operator that is not there, of another version or of another library.
void require_operators(const Plan& plan, const OperatorList& operators);

}  // namespace hone::capi
