// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/attention/attention_code.h"

#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cpu {
namespace {

const Dims& dims_of(const ConcreteType& type) {
  HONE_CHECK(type.dtype == DType::f32 && type.layout == Layout::linear,
             "attention in the plan has an operand that is not f32 in linear layout");
  return type.dims;
}
const Dims& input_dims(const KernelShapes& shapes, int place) {
  return dims_of(shapes.inputs[static_cast<size_t>(place)]);
}

int place_of(const Attrs& attrs, std::string_view name, int64_t low, const KernelShapes& shapes) {
  return static_cast<int>(bounded(attrs, name, low, static_cast<int64_t>(shapes.inputs.size()) - 1));
}

const Dims& result_dims(const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == 1, "attention in the plan has {} results", shapes.outputs.size());
  return dims_of(shapes.outputs[0]);
}

AttentionMask mask_of(int place, const Dims& dims, const Dims& scores) {
  HONE_CHECK(dims.size() <= 4, "attention in the plan has a mask of rank {}", dims.size());
  AttentionMask mask{place, Dims(4 - dims.size(), 1), {}};
  mask.dims.insert(mask.dims.end(), dims.begin(), dims.end());
  for (size_t i = 0; i < 4; ++i)
    HONE_CHECK(mask.dims[i] == 1 || mask.dims[i] == scores[i],
               "attention in the plan has a mask of {} for scores of {}", join_dims(dims), join_dims(scores));
  mask.strides = strides_of(mask.dims);
  for (size_t i = 0; i < 4; ++i)
    if (mask.dims[i] == 1) mask.strides[i] = 0;
  return mask;
}

}  // namespace

std::string reason_against_attention(const Problem& problem, const Node& node) {
  if (problem.only() == nullptr) return "more follows in the region";
  for (const Value* operand : node.inputs) {
    if (operand == nullptr) continue;
    if (operand->type.dtype != DType::f32) return fmt::format("operand is {}, not f32", name_of(operand->type.dtype));
    if (operand->type.shape.elements() == Dim(0)) return "empty operands";
  }
  for (size_t i = 0; i < 3; ++i)
    if (input_index(problem.region, node.input(i)) < 0) return "queries, keys or values are constant";
  return {};
}

void write_attention(Attrs& attrs, const Problem& problem, const Node& node, std::vector<Tensor>& constants) {
  for (const auto& [name, index] : {std::pair{"q", 0}, std::pair{"k", 1}, std::pair{"v", 2}})
    attrs.set(name, int64_t{input_index(problem.region, node.input(static_cast<size_t>(index)))});
  attrs.set("scale", node.attrs.real("scale"));
  attrs.set("layout", node.attrs.text("layout"));
  if (const Value* mask = node.input(3); mask != nullptr) {
    attrs.set("mask", int64_t{input_index(problem.region, mask)});  // -1: the kernel's constant
    if (mask->is_constant()) {
      attrs.set("mask_dims", mask->constant->dims());
      constants.push_back(*mask->constant);
    }
  }
}

Compiled compile_attention(const Problem& problem, const Tactic& tactic) {
  const Node* node = anchor_of(problem.region, ops::scaled_dot_product_attention);
  Compiled compiled;
  Attrs attrs = tactic.params;
  write_attention(attrs, problem, *node, compiled.constants);
  compiled.code = encode_code(tactic.name, attrs);
  return compiled;
}

HeadTensor::HeadTensor(const Dims& d, bool heads_first) {
  HONE_CHECK(d.size() == 4, "attention in the plan has an operand of rank {}", d.size());
  batch = d[0], heads = d[heads_first ? 1 : 2], rows = d[heads_first ? 2 : 1], columns = d[3];
  batch_stride = d[1] * d[2] * d[3];
  head_stride = heads_first ? rows * columns : columns;
  row_stride = heads_first ? columns : heads * columns;
}

AttentionCode::AttentionCode(const Attrs& attrs, const KernelShapes& shapes)
    : q_place(place_of(attrs, "q", 0, shapes)),
      k_place(place_of(attrs, "k", 0, shapes)),
      v_place(place_of(attrs, "v", 0, shapes)),
      q(input_dims(shapes, q_place), attrs.text("layout") == "bhsd"),
      k(input_dims(shapes, k_place), attrs.text("layout") == "bhsd"),
      v(input_dims(shapes, v_place), attrs.text("layout") == "bhsd"),
      y(result_dims(shapes), attrs.text("layout") == "bhsd"),
      scale(static_cast<float>(attrs.real("scale"))) {
  const bool valid = q.rows > 0 && q.heads > 0 && q.columns > 0 && v.columns > 0 && k.rows > 0 && k.heads > 0 &&
                     q.batch > 0 && k.batch == q.batch && v.batch == q.batch && y.batch == q.batch &&
                     v.heads == k.heads && q.heads % k.heads == 0 && y.heads == q.heads && k.columns == q.columns &&
                     v.rows == k.rows && y.rows == q.rows && y.columns == v.columns;
  HONE_CHECK(valid, "attention in the plan has operands that do not fit together");
  if (!attrs.has("mask")) return;
  const int place = place_of(attrs, "mask", -1, shapes);
  const Dims dims = place >= 0 ? input_dims(shapes, place)
                               : constant_operand(shapes, 0, DType::f32, attrs.integers("mask_dims")).dims;
  mask = mask_of(place, dims, {q.batch, q.heads, q.rows, k.rows});
}

}  // namespace hone::cpu
