// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals. The type of a sequence's elements is exact while all are alike and loses its rank when they
// differ; such values live on the host, and their operators run on the reference.
#include <algorithm>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

const TensorType& element_of(const InferContext& context, size_t operand) {
  const TensorType& type = context.type(operand);
  HONE_CHECK_AS(TypeError, type.element != nullptr, "operand {} of {} is {} where a sequence is needed", operand,
                context.node().op_name(), type.text());
  return *type.element;
}

/// One type for two elements.
TensorType merged(const TensorType& a, const TensorType& b) {
  HONE_CHECK_AS(TypeError, a.dtype == b.dtype, "elements of one sequence are {} and {}", name_of(a.dtype),
                name_of(b.dtype));
  if (a == b) return a;
  HONE_CHECK_AS(TypeError, a.element == nullptr && b.element == nullptr, "elements of one sequence are {} and {}",
                a.text(), b.text());
  return unranked(a.dtype);
}

/// A position counted from the end when negative; `extra` positions behind the last are allowed.
std::ptrdiff_t position(const Tensor& operand, size_t count, size_t extra = 0) {
  const auto size = static_cast<int64_t>(count);
  const int64_t at = operand.integer(0), from_start = at < 0 ? at + size : at;
  HONE_CHECK(from_start >= 0 && from_start < size + static_cast<int64_t>(extra),
             "position {} lies outside a sequence of {}", at, count);
  return static_cast<std::ptrdiff_t>(from_start);
}

Tensor sequence_of(std::vector<Tensor> items) { return Tensor::of_items(DType::sequence, std::move(items)); }

// ---- Making sequences ----

void infer_construct(InferContext& context) {
  TensorType element = context.type(0);
  for (size_t i = 1; i < context.inputs(); ++i) element = merged(element, context.type(i));
  context.set(0, container_of(DType::sequence, std::move(element)));
}
void eval_construct(EvalContext& context) {
  std::vector<Tensor> items;
  for (size_t i = 0; i < context.inputs(); ++i) items.push_back(context.input(i));
  context.set(0, sequence_of(std::move(items)));
}

void infer_empty(InferContext& context) {
  context.set(0, container_of(DType::sequence, unranked(dtype_of_onnx(context.attrs().integer("dtype")))));
}
void eval_empty(EvalContext& context) { context.set(0, sequence_of({})); }

void infer_insert(InferContext& context) {
  const TensorType &element = element_of(context, 0), &fresh = context.type(1);
  // What a sequence made empty holds is not known to be without rank: its first element says it.
  const Node* maker = context.node().inputs[0]->producer;
  const bool was_empty = maker != nullptr && maker->is(ops::sequence_empty);
  context.set(0, container_of(DType::sequence, was_empty ? merged(fresh, TensorType{element.dtype, fresh.shape,
                                                                                    Layout::linear, fresh.ranked})
                                                         : merged(element, fresh)));
}
void eval_insert(EvalContext& context) {
  std::vector<Tensor> items = context.input(0).items();
  const std::ptrdiff_t at =
      context.has(2) ? position(context.input(2), items.size(), 1) : static_cast<std::ptrdiff_t>(items.size());
  items.insert(items.begin() + at, context.input(1));
  context.set(0, sequence_of(std::move(items)));
}

void infer_erase(InferContext& context) { context.set(0, context.type(0)); }
void eval_erase(EvalContext& context) {
  std::vector<Tensor> items = context.input(0).items();
  HONE_CHECK(!items.empty(), "there is nothing to erase in an empty sequence");
  items.erase(items.begin() + (context.has(1) ? position(context.input(1), items.size())
                                              : static_cast<std::ptrdiff_t>(items.size()) - 1));
  context.set(0, sequence_of(std::move(items)));
}

void infer_at(InferContext& context) { context.set(0, element_of(context, 0)); }
void eval_at(EvalContext& context) {
  const std::vector<Tensor>& items = context.input(0).items();
  context.set(0, items[static_cast<size_t>(position(context.input(1), items.size()))]);
}

void infer_length(InferContext& context) { context.set(0, DType::i64, {}); }
void eval_length(EvalContext& context) {
  context.set(0, Tensor::scalar(static_cast<int64_t>(context.input(0).items().size())));
}

// ---- Cutting a tensor into a sequence, and joining it again ----

void infer_split(InferContext& context) {
  const TensorType& type = context.type(0);
  if (!type.ranked || context.has(1)) return context.set(0, container_of(DType::sequence, unranked(type.dtype)));
  std::vector<Dim> dims = type.shape.dims();
  const size_t axis = normalize_axis(context.attrs().integer("axis"), dims.size());
  if (context.attrs().integer("keepdims") != 0) dims[axis] = Dim(1);
  else dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  context.set(0, container_of(DType::sequence, {type.dtype, Shape(std::move(dims)), Layout::linear}));
}
void eval_split(EvalContext& context) {
  const Tensor& x = context.input(0);
  const size_t axis = normalize_axis(context.attrs().integer("axis"), x.dims().size());
  const int64_t length = x.dims()[axis];
  std::vector<int64_t> sizes;
  if (context.has(1) && !context.input(1).dims().empty()) {
    sizes = context.input(1).integers();
  } else {
    const int64_t chunk = context.has(1) ? context.input(1).integer(0) : 1;
    HONE_CHECK(chunk > 0, "chunks of {} elements", chunk);
    for (int64_t done = 0; done < length; done += chunk) sizes.push_back(std::min(chunk, length - done));
  }
  const bool drop_axis = !context.has(1) && context.attrs().integer("keepdims") == 0;
  std::vector<Tensor> items;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    HONE_CHECK(size >= 0 && size <= length - begin, "parts of [{}] elements do not fit an axis of {}",
               join_dims(sizes, ","), length);
    Dims dims = x.dims();
    const Dims strides = strides_of(dims);
    dims[axis] = size;
    Tensor part = copy_strided(x, dims, begin * strides[axis], strides);
    if (drop_axis) {
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
      part = part.reshaped(dims);
    }
    items.push_back(std::move(part));
    begin += size;
  }
  HONE_CHECK(begin == length, "parts of [{}] elements do not fill an axis of {}", join_dims(sizes, ","), length);
  context.set(0, sequence_of(std::move(items)));
}

void infer_concat(InferContext& context) {
  const TensorType& element = element_of(context, 0);
  if (!element.ranked) return context.set(0, element);
  std::vector<Dim> dims = element.shape.dims();
  const bool fresh = context.attrs().integer("new_axis") != 0;
  const size_t axis = normalize_axis(context.attrs().integer("axis"), dims.size() + (fresh ? 1 : 0));
  if (fresh) dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), Dim());
  dims[axis] = context.data_dependent(0, axis);
  context.set(0, element.dtype, Shape(std::move(dims)));
}
void eval_concat(EvalContext& context) {
  std::vector<Tensor> items = context.input(0).items();
  HONE_CHECK(!items.empty(), "an empty sequence cannot be joined");
  const bool fresh = context.attrs().integer("new_axis") != 0;
  const size_t axis = normalize_axis(context.attrs().integer("axis"), items[0].dims().size() + (fresh ? 1 : 0));
  for (Tensor& item : items)
    if (fresh) {
      Dims dims = item.dims();
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      item = item.reshaped(std::move(dims));
    }
  // Concat's own reference code does it, on a node made for the purpose.
  Node node;
  node.op = &ops::concat;
  node.attrs = {{"axis", static_cast<int64_t>(axis)}};
  Value value;
  node.outputs = {&value};
  std::vector<const Tensor*> operands;
  for (const Tensor& item : items) operands.push_back(&item);
  context.set(0, evaluate_node(node, std::move(operands))[0]);
}

// ---- SequenceMap(sequence, sequences or tensors..., captures...) ----

size_t mapped_operands(const InferContext& context) {
  return context.inputs() - static_cast<size_t>(context.attrs().integer("captures"));
}

void infer_map(InferContext& context) {
  const Node& node = context.node();
  HONE_CHECK(node.bodies.size() == 1 && node.bodies[0]->inputs().size() == context.inputs(),
             "SequenceMap needs a body with {} inputs", context.inputs());
  Graph& body = *node.bodies[0];
  HONE_CHECK(body.outputs().size() == context.outputs(), "the body has {} results but the node {}",
             body.outputs().size(), context.outputs());
  bool changed = false;
  for (size_t i = 0; i < context.inputs(); ++i) {
    const TensorType& given = context.type(i);
    const bool taken_apart = given.element != nullptr && i < mapped_operands(context);
    const TensorType& type = taken_apart ? *given.element : given;
    changed |= !(body.inputs()[i]->type == type);
    body.inputs()[i]->type = type;
  }
  if (changed) body.infer_all();
  for (size_t i = 0; i < context.outputs(); ++i) {
    const TensorType& inside = body.outputs()[i]->type;
    context.set(
        i, container_of(DType::sequence, inside.ranked && inside.shape.is_static() ? inside : unranked(inside.dtype)));
  }
}

void eval_map(EvalContext& context) {
  const Graph& body = *context.node().bodies[0];
  const size_t mapped = context.inputs() - static_cast<size_t>(context.attrs().integer("captures"));
  const size_t count = context.input(0).items().size();
  std::vector<std::vector<Tensor>> results(context.outputs());
  for (size_t step = 0; step < count; ++step) {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < context.inputs(); ++i) {
      const Tensor& given = context.input(i);
      if (i >= mapped || given.dtype() != DType::sequence) {
        operands.push_back(given);
        continue;
      }
      HONE_CHECK(given.items().size() == count, "the sequences of SequenceMap have {} and {} elements", count,
                 given.items().size());
      operands.push_back(given.items()[step]);
    }
    std::vector<Tensor> outputs = evaluate(body, operands);
    for (size_t i = 0; i < outputs.size(); ++i) results[i].push_back(std::move(outputs[i]));
  }
  for (size_t i = 0; i < results.size(); ++i) context.set(i, sequence_of(std::move(results[i])));
}

void import_map(ImportContext& context) {
  HONE_CHECK(context.bodies().size() == 1, "SequenceMap needs a body");
  std::vector<Value*> operands;
  for (size_t i = 0; i < context.inputs(); ++i) operands.push_back(context.input(i));
  Attrs attrs = context.attrs();
  attrs.erase("body");
  const size_t results = context.bodies()[0]->outputs().size();
  set_outputs(context, *context.add("SequenceMap", std::move(operands), std::move(attrs), results));
}

// ---- Optionals ----

/// The type that a text such as "sequence<f32[*]>" names; sizes are not read.
TensorType type_of_text(std::string_view text) {
  for (const DType kind : {DType::sequence, DType::optional})
    if (const std::string prefix = std::string(name_of(kind)) + "<"; text.starts_with(prefix))
      return container_of(kind, type_of_text(text.substr(prefix.size())));
  const std::optional<DType> dtype = parse_dtype(text.substr(0, text.find('[')));
  HONE_CHECK_AS(AttributeError, dtype.has_value(), "'{}' is not a type", text);
  return unranked(*dtype);
}

void infer_optional(InferContext& context) {
  if (context.inputs() > 0 && context.has(0)) return context.set(0, container_of(DType::optional, context.type(0)));
  HONE_CHECK_AS(AttributeError, context.attrs().has("type"), "an Optional without operand needs the attribute 'type'");
  context.set(0, container_of(DType::optional, type_of_text(context.attrs().text("type"))));
}
void eval_optional(EvalContext& context) {
  std::vector<Tensor> items;
  if (context.has(0)) items.push_back(context.input(0));
  context.set(0, Tensor::of_items(DType::optional, std::move(items)));
}

void infer_has(InferContext& context) { context.set(0, DType::boolean, {}); }
void eval_has(EvalContext& context) {
  const bool has = context.has(0) && (context.input(0).dtype() != DType::optional || !context.input(0).items().empty());
  context.set(0, Tensor::scalar(has));
}

void infer_get(InferContext& context) {
  const TensorType& type = context.type(0);
  context.set(0, type.dtype == DType::optional ? *type.element : type);
}
void eval_get(EvalContext& context) {
  const Tensor& x = context.input(0);
  if (x.dtype() != DType::optional) return context.set(0, x);
  HONE_CHECK(!x.items().empty(), "the optional holds nothing");
  context.set(0, x.items()[0]);
}

constexpr Traits kAnyRank{.any_rank = true};

/// Elements of sequences, and tensors as they are.
std::vector<TensorType> map_body_types(std::vector<Value*>& operands, const Attrs&) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorType& type = given_type(operands, i);
    types.push_back(type.element != nullptr ? *type.element : type);
  }
  return types;
}

}  // namespace

const OpDef ops::sequence_construct{.name = "SequenceConstruct",
                                    .max_inputs = 0xffff,
                                    .infer = infer_construct,
                                    .eval = eval_construct,
                                    .onnx = {{"SequenceConstruct", 11}},
                                    .traits = kAnyRank};
const OpDef ops::sequence_empty{.name = "SequenceEmpty",
                                .attrs = {integer_attr("dtype", 1)},
                                .min_inputs = 0,
                                .max_inputs = 0,
                                .infer = infer_empty,
                                .eval = eval_empty,
                                .onnx = {{"SequenceEmpty", 11}}};
const OpDef ops::sequence_at{.name = "SequenceAt",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .infer = infer_at,
                             .eval = eval_at,
                             .onnx = {{"SequenceAt", 11}},
                             .traits = kAnyRank};
const OpDef ops::sequence_insert{.name = "SequenceInsert",
                                 .min_inputs = 2,
                                 .max_inputs = 3,
                                 .infer = infer_insert,
                                 .eval = eval_insert,
                                 .onnx = {{"SequenceInsert", 11}},
                                 .traits = kAnyRank};
const OpDef ops::sequence_erase{.name = "SequenceErase",
                                .min_inputs = 1,
                                .max_inputs = 2,
                                .infer = infer_erase,
                                .eval = eval_erase,
                                .onnx = {{"SequenceErase", 11}},
                                .traits = kAnyRank};
const OpDef ops::sequence_length{.name = "SequenceLength",
                                 .infer = infer_length,
                                 .eval = eval_length,
                                 .onnx = {{"SequenceLength", 11}},
                                 .traits = kAnyRank};
const OpDef ops::sequence_map{.name = "SequenceMap",
                              .attrs = {integer_attr("captures", 0)},
                              .max_inputs = 0xffff,
                              .infer = infer_map,
                              .eval = eval_map,
                              .onnx = {{"SequenceMap", 17, kEveryLater, import_map, "", 0, map_body_types}},
                              .traits = {.has_bodies = true, .any_rank = true}};
const OpDef ops::split_to_sequence{.name = "SplitToSequence",
                                   .attrs = {integer_attr("axis", 0), integer_attr("keepdims", 1)},
                                   .min_inputs = 1,
                                   .max_inputs = 2,
                                   .infer = infer_split,
                                   .eval = eval_split,
                                   .onnx = {{"SplitToSequence", 11}},
                                   .traits = kAnyRank};
const OpDef ops::concat_from_sequence{.name = "ConcatFromSequence",
                                      .attrs = {required_attr("axis", AttrKind::integer), integer_attr("new_axis", 0)},
                                      .infer = infer_concat,
                                      .eval = eval_concat,
                                      .onnx = {{"ConcatFromSequence", 11}},
                                      .traits = kAnyRank};
const OpDef ops::optional{.name = "Optional",
                          .attrs = {{"type", AttrKind::text, std::nullopt, false, "what an empty one would hold"}},
                          .min_inputs = 0,
                          .max_inputs = 1,
                          .infer = infer_optional,
                          .eval = eval_optional,
                          .onnx = {{"Optional", 15}},
                          .traits = kAnyRank};
const OpDef ops::optional_has_element{.name = "OptionalHasElement",
                                      .min_inputs = 0,
                                      .max_inputs = 1,
                                      .infer = infer_has,
                                      .eval = eval_has,
                                      .onnx = {{"OptionalHasElement", 15}},
                                      .traits = kAnyRank};
const OpDef ops::optional_get_element{.name = "OptionalGetElement",
                                      .infer = infer_get,
                                      .eval = eval_get,
                                      .onnx = {{"OptionalGetElement", 15}},
                                      .traits = kAnyRank};

}  // namespace hone
