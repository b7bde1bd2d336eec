// SPDX-License-Identifier: Apache-2.0
//
// Attrs and tensor types as JSON: what plans, kernel code and timing caches store. Readers check every field and throw
// Error naming it. Reals keep all their digits; non-finite ones are written as {"real": "inf"}.
#pragma once

#include <nlohmann/json.hpp>

#include "tensor/attrs.h"

namespace hone {

using Json = nlohmann::ordered_json;

Json to_json(const Attrs& attrs);  ///< tensors are not allowed: throws InternalError
Attrs attrs_from_json(const Json& json);
Json to_json(const TensorType& type);
TensorType type_from_json(const Json& json, int nesting = 0);

/// Parses text; throws Error with `what` and the position for anything that is not JSON.
Json parse_json(std::string_view text, std::string_view what);
/// Member access with checks: throws Error naming the member when it is missing or of another kind.
const Json& member(const Json& object, std::string_view name);
int64_t integer_member(const Json& object, std::string_view name);
double real_member(const Json& object, std::string_view name);
std::string text_member(const Json& object, std::string_view name);
const Json& list_member(const Json& object, std::string_view name);

}  // namespace hone
