// SPDX-License-Identifier: Apache-2.0
//
// The list of all operators, explicit so that a reader sees it and the linker keeps it.
#include "ops/all.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "ops/collective.h"
#include "ops/ops.h"

namespace hone {
namespace {

const OpDef* const kOps[] = {
#define OP(name) &ops::name,
#include "ops/operators.def"
#undef OP
    &ops::collective,
};

}  // namespace

std::span<const OpDef* const> all_ops() { return kOps; }

const OpDef* find_op(std::string_view name) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpDef*> by_name;
    for (const OpDef* op : kOps) by_name.emplace(op->name, op);
    return by_name;
  }();
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

OpLookup find_among(const OperatorList& brought) {
  return [&brought](std::string_view name) {
    const auto at = std::ranges::find(brought, name, [](const auto& op) { return op->name; });
    return at == brought.end() ? find_op(name) : at->get();
  };
}

}  // namespace hone
