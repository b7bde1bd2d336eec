// SPDX-License-Identifier: Apache-2.0

#include "regions/byte_table.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/op.h"
#include "ops/byte_scale.h"

namespace hone {
namespace {

bool is_number(const Value* value) { return value->is_constant() && value->constant->size() == 1; }

bool is_step(const Node& node) {
  if (byte_scale(node)) return true;
  return node.op->is_pointwise() && node.output()->type.dtype == DType::f32 &&
         std::ranges::all_of(node.inputs,
                             [](const Value* value) { return value != nullptr && value->type.dtype == DType::f32; });
}

}  // namespace

bool is_byte_table(const Graph& region) {
  const auto is_byte = [](const Value* value) {
    return value->type.dtype == DType::u8 || value->type.dtype == DType::i8;
  };
  if (region.inputs().size() != 1 || region.outputs().size() != 1) return false;
  const Value *x = region.inputs()[0], *y = region.outputs()[0];
  if (!is_byte(x) || !is_byte(y)) return false;
  return std::ranges::all_of(region.nodes(), [&](const Node* node) {
    return is_step(*node) && node->output()->type.shape == x->type.shape &&
           std::ranges::all_of(node->inputs, [&](const Value* value) {
             return value == nullptr || is_number(value) ||
                    (!value->is_constant() && value->type.shape == x->type.shape);
           });
  });
}

Tensor byte_table(const Graph& region) {
  constexpr int64_t kBytes = 256;
  Graph row;
  std::map<const Value*, Value*> made;
  const DType dtype = region.inputs()[0]->type.dtype;
  made[region.inputs()[0]] = row.add_input("x", {dtype, Shape({Dim(kBytes)}), Layout::linear});
  for (const Node* node : region.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* value : node->inputs)
      inputs.push_back(value == nullptr       ? nullptr
                       : value->is_constant() ? row.add_constant(value->constant->reshaped({}))
                                              : made.at(value));
    made[node->output()] = row.add(*node->op, std::move(inputs), node->attrs)->output();
  }
  row.set_outputs({made.at(region.outputs()[0])});
  TensorBuilder every(dtype, {kBytes});
  for (int64_t i = 0; i < kBytes; ++i) every.bytes()[i] = static_cast<std::byte>(i);
  const std::vector<Tensor> inputs{every.finish()};
  const Tensor table = evaluate(row, inputs)[0];
  TensorBuilder raw(DType::u8, {kBytes});
  std::ranges::copy(table.bytes(), raw.bytes());
  return raw.finish();
}

}  // namespace hone
