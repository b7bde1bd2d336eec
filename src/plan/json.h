// SPDX-License-Identifier: Apache-2.0
//
// The manifest: a plan without its bytes, as JSON. Data is named by index into the sections of the file.
#pragma once

#include <functional>

#include "plan/plan.h"
#include "tensor/json.h"

namespace hone {

/// `section` stores bytes and returns their index.
Json manifest_of(const Plan& plan, const std::function<int64_t(const Blob&)>& section);
/// `section` returns the bytes of an index; it throws Error when there are none.
Plan plan_of(const Json& manifest, const std::function<Blob(int64_t)>& section);

}  // namespace hone
