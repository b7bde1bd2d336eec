// SPDX-License-Identifier: Apache-2.0
//
// If, Loop and Scan. What a body takes from around it is explicit: the node's last `captures` operands go to the last
// inputs of each body, unchanged in every iteration. Bodies of If: else first, then then (order of the attribute names).
#include <algorithm>
#include <cstring>
#include <set>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "tensor/free_memory.h"

namespace hone {
namespace {

const AttrSpec kCaptures = {"captures", AttrKind::integer, int64_t{0}, false,
                            "how many of the last operands are captured values"};

size_t captures_of(const Attrs& attrs, size_t operands) {
  const int64_t captures = attrs.integer("captures");
  HONE_CHECK(captures >= 0 && captures <= static_cast<int64_t>(operands),
             "{} operands are captured but there are only {}", captures, operands);
  return static_cast<size_t>(captures);
}

/// Gives a body's input its type and contents; whether that changed anything.
bool retype(Value& input, const TensorType& type, const std::shared_ptr<const SymbolicData>& symbolic) {
  const bool same_data = input.symbolic == symbolic || (input.symbolic && symbolic && *input.symbolic == *symbolic);
  if (input.type == type && same_data) return false;
  input.type = type;
  input.symbolic = symbolic;
  return true;
}

bool retype_captures(const Node& node, Graph& body, size_t captures) {
  bool changed = false;
  for (size_t i = 0; i < captures; ++i) {
    const Value& outside = *node.inputs[node.inputs.size() - captures + i];
    changed |= retype(*body.inputs()[body.inputs().size() - captures + i], outside.type, outside.symbolic);
  }
  return changed;
}

void check_bodies(const Node& node, size_t count, size_t inputs) {
  HONE_CHECK(node.bodies.size() == count, "{} needs {} bodies but has {}", node.op_name(), count, node.bodies.size());
  for (const auto& body : node.bodies)
    HONE_CHECK(body->inputs().size() == inputs, "a body of {} has {} inputs but the node gives it {}", node.op_name(),
               body->inputs().size(), inputs);
}

/// Whether the outside knows all symbols of a size, so that it means something there.
bool known_outside(const InferContext& context, const Dim& dim) {
  std::set<std::string> used, known;
  dim.collect_symbols(used);
  for (size_t i = 0; i < context.inputs() && !used.empty(); ++i) {
    if (!context.has(i)) continue;
    for (const Dim& size : context.type(i).shape) size.collect_symbols(known);
    if (const auto data = context.symbolic(i))
      for (const Dim& value : *data) value.collect_symbols(known);
  }
  return std::includes(known.begin(), known.end(), used.begin(), used.end());
}

/// `type` with every size that differs from `other` replaced by a symbol of the node; without rank where ranks differ.
TensorType widened(const InferContext& context, size_t output, const TensorType& type, const TensorType& other,
                   size_t first_axis = 0) {
  // An optional may be handed on as what it holds.
  if (type.dtype == DType::optional && other.dtype != DType::optional) return type;
  HONE_CHECK_AS(TypeError, type.dtype == other.dtype, "result {} is {} here and {} there", output, name_of(type.dtype),
                name_of(other.dtype));
  if (type.element != nullptr && other.element != nullptr) {
    if (type == other) return type;
    HONE_CHECK(type.dtype != DType::map && (type.element->element == nullptr) == (other.element->element == nullptr),
               "result {} is {} here and {} there", output, type.text(), other.text());
    if (type.element->element != nullptr)
      return container_of(type.dtype, widened(context, output, *type.element, *other.element));
    return container_of(type.dtype, *type.element == *other.element ? *type.element : unranked(type.element->dtype));
  }
  if (!type.ranked || !other.ranked || type.shape.rank() != other.shape.rank()) return unranked(type.dtype);
  TensorType result = type;
  for (size_t axis = 0; axis < type.shape.rank(); ++axis)
    if (!(type.shape[axis] == other.shape[axis]) || !known_outside(context, type.shape[axis]))
      result.shape[axis] = context.data_dependent(output, first_axis + axis);
  return result;
}

std::vector<Tensor> captured_tensors(const EvalContext& context, size_t captures) {
  std::vector<Tensor> tensors;
  for (size_t i = context.inputs() - captures; i < context.inputs(); ++i) tensors.push_back(context.input(i));
  return tensors;
}

// ---- If ----

void infer_if(InferContext& context) {
  const Node& node = context.node();
  const size_t captures = captures_of(context.attrs(), context.inputs());
  check_bodies(node, 2, captures);
  check_one(context, 0, "the condition");
  for (const auto& body : node.bodies) {
    if (retype_captures(node, *body, captures)) body->infer_all();
    HONE_CHECK(body->outputs().size() == context.outputs(), "a branch has {} results but the node {}",
               body->outputs().size(), context.outputs());
  }
  const auto decided = known_integers(context, 0);
  for (size_t i = 0; i < context.outputs(); ++i) {
    const TensorType &no = node.bodies[0]->outputs()[i]->type, &yes = node.bodies[1]->outputs()[i]->type;
    // Branches may differ altogether where only one can be taken.
    const TensorType& taken = decided && decided->front() == 0 ? no : yes;
    context.set(i, decided ? widened(context, i, taken, taken) : widened(context, i, yes, no));
  }
}

void eval_if(EvalContext& context) {
  const std::vector<Tensor> captured = captured_tensors(context, captures_of(context.attrs(), context.inputs()));
  const bool condition = context.input(0).integer(0) != 0;
  std::vector<Tensor> results = evaluate(*context.node().bodies[condition ? 1 : 0], captured);
  for (size_t i = 0; i < results.size(); ++i) context.set(i, std::move(results[i]));
}

void import_if(ImportContext& context) {
  HONE_CHECK(context.bodies().size() == 2, "the node needs then_branch and else_branch");
  std::vector<Value*> operands;
  for (size_t i = 0; i < context.inputs(); ++i) operands.push_back(context.input(i));
  const size_t results = context.bodies()[0]->outputs().size();
  set_outputs(context, *context.add("If", std::move(operands), context.attrs(), results));
}

// ---- Loop(trips, condition, carried...): body(iteration, condition, carried...) -> condition, carried..., scanned... ----

size_t carried_of(size_t operands, size_t captures) { return operands - captures > 2 ? operands - captures - 2 : 0; }

/// The number of iterations, when neither the condition nor the data decide it.
std::optional<Dim> known_trips(const InferContext& context, const Graph& body) {
  const auto trips = context.has(0) ? context.symbolic(0) : std::nullopt;
  if (!trips) return std::nullopt;
  const Value* again = body.outputs()[0];
  const bool passes_on =
      again == body.inputs()[1] || (again->producer != nullptr && again->producer->op_name() == "Identity" &&
                                    again->producer->input(0) == body.inputs()[1]);
  const bool always = again->is_constant() && again->constant->size() == 1 && again->constant->integer(0) != 0;
  const auto begins = context.has(1) ? known_integers(context, 1) : std::optional(std::vector<int64_t>{1});
  const bool enters = begins && begins->front() != 0;
  return enters && (passes_on || always) ? std::optional((*trips)[0]) : std::nullopt;
}

/// Sizes of carried values that change from one iteration to the next become symbols, until nothing changes any more.
/// A symbol once introduced stays, so that nested loops are not inferred anew for every loop around them.
void widen_carried(InferContext& context, Graph& body, size_t carried, bool changed) {
  for (size_t i = 0; i < carried; ++i) {
    Value& inside = *body.inputs()[2 + i];
    TensorType type = context.type(2 + i);
    for (size_t axis = 0; axis < type.shape.rank() && inside.type.shape.rank() == type.shape.rank(); ++axis)
      if (inside.type.shape[axis] == context.data_dependent(i, axis)) type.shape[axis] = inside.type.shape[axis];
    changed |= retype(inside, type, nullptr);
  }
  if (changed) body.infer_all();
  for (bool stable = false; !stable;) {
    stable = true;
    for (size_t i = 0; i < carried; ++i) {
      Value& inside = *body.inputs()[2 + i];
      const TensorType wide = widened(context, i, inside.type, body.outputs()[1 + i]->type);
      stable &= !retype(inside, wide, nullptr);
    }
    if (!stable) body.infer_all();
  }
}

void infer_loop(InferContext& context) {
  const Node& node = context.node();
  const size_t captures = captures_of(context.attrs(), context.inputs()),
               carried = carried_of(context.inputs(), captures);
  check_bodies(node, 1, 2 + carried + captures);
  check_one(context, 0, "the number of iterations");
  check_one(context, 1, "the condition");
  Graph& body = *node.bodies[0];
  HONE_CHECK(!body.outputs().empty(), "the body returns no condition");
  HONE_CHECK(body.outputs().size() == 1 + context.outputs() && context.outputs() >= carried,
             "the body has {} results but the node needs {}", body.outputs().size(), 1 + context.outputs());
  widen_carried(context, body, carried, retype_captures(node, body, captures));
  for (size_t i = 0; i < carried; ++i) {
    const TensorType &inside = body.inputs()[2 + i]->type, &handed_on = body.outputs()[1 + i]->type;
    context.set(i, inside.dtype == handed_on.dtype ? inside : handed_on);
  }
  const std::optional<Dim> trips = known_trips(context, body);
  for (size_t i = carried; i < context.outputs(); ++i) {
    const TensorType element = widened(context, i, body.outputs()[1 + i]->type, body.outputs()[1 + i]->type, 1);
    if (!element.ranked) {
      context.set(i, element);
      continue;
    }
    std::vector<Dim> dims{trips ? *trips : context.data_dependent(i, 0)};
    dims.insert(dims.end(), element.shape.begin(), element.shape.end());
    context.set(i, element.dtype, Shape(std::move(dims)));
  }
}

/// The pieces of one scanned result behind each other along a new axis `axis`.
Tensor stacked(const std::vector<Tensor>& pieces, const TensorType& element, size_t axis) {
  if (pieces.empty()) {
    Dims dims{0};
    for (const Dim& dim : element.shape) dims.push_back(dim.is_constant() ? dim.value() : 0);
    if (element.dtype == DType::string) return Tensor::of_strings(std::move(dims), {});
    return TensorBuilder(element.dtype, std::move(dims)).finish();
  }
  Dims dims = pieces[0].dims();
  const int64_t size = pieces[0].size();
  dims.insert(dims.begin(), static_cast<int64_t>(pieces.size()));
  if (pieces[0].dtype() == DType::string) {
    std::vector<std::string> all;
    for (const Tensor& piece : pieces) all.insert(all.end(), piece.strings().begin(), piece.strings().end());
    return Tensor::of_strings(std::move(dims), std::move(all));
  }
  TensorBuilder builder(pieces[0].dtype(), dims);
  std::byte* out = builder.bytes();
  for (const Tensor& piece : pieces) {
    HONE_CHECK(piece.size() == size, "a scanned result changes its size from [{}] to [{}]",
               join_dims(pieces[0].dims(), ","), join_dims(piece.dims(), ","));
    if (!piece.bytes().empty()) std::memcpy(out, piece.bytes().data(), piece.bytes().size());
    out += piece.bytes().size();
  }
  Tensor result = builder.finish();
  if (axis == 0) return result;
  Dims moved(result.dims().begin() + 1, result.dims().end()), strides = strides_of(result.dims());
  moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(axis), result.dims()[0]);
  std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  return copy_strided(result, std::move(moved), 0, strides);
}

void eval_loop(EvalContext& context) {
  const Graph& body = *context.node().bodies[0];
  const size_t captures = captures_of(context.attrs(), context.inputs()),
               carried = carried_of(context.inputs(), captures);
  const std::vector<Tensor> captured = captured_tensors(context, captures);
  const auto given = [&](size_t i) { return i + captures < context.inputs() && context.has(i); };
  const int64_t trips = given(0) ? context.input(0).integer(0) : INT64_MAX;
  bool again = !given(1) || context.input(1).integer(0) != 0;
  std::vector<Tensor> state;
  for (size_t i = 0; i < carried; ++i) state.push_back(context.input(2 + i));
  std::vector<std::vector<Tensor>> scanned(context.outputs() - carried);
  for (int64_t trip = 0; trip < trips && again; ++trip) {
    std::vector<Tensor> operands{Tensor::scalar<int64_t>(trip), Tensor::scalar(again)};
    operands.insert(operands.end(), state.begin(), state.end());
    operands.insert(operands.end(), captured.begin(), captured.end());
    std::vector<Tensor> results = evaluate(body, operands);
    again = results[0].integer(0) != 0;
    for (size_t i = 0; i < carried; ++i) state[i] = std::move(results[1 + i]);
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(std::move(results[1 + carried + i]));
  }
  for (size_t i = 0; i < carried; ++i) context.set(i, std::move(state[i]));
  for (size_t i = 0; i < scanned.size(); ++i)
    context.set(carried + i, stacked(scanned[i], body.outputs()[1 + carried + i]->type, 0));
}

void import_loop(ImportContext& context) {
  HONE_CHECK(context.bodies().size() == 1 && !context.bodies()[0]->outputs().empty(),
             "the node needs a body that returns its condition");
  std::vector<Value*> operands;
  for (size_t i = 0; i < context.inputs(); ++i) operands.push_back(context.input(i));
  const size_t results = context.bodies()[0]->outputs().size() - 1;
  set_outputs(context, *context.add("Loop", std::move(operands), context.attrs(), results));
}

// ---- Scan(states..., sequences...): body(states..., elements...) -> states..., elements... ----

struct ScanShape {
  size_t captures, states, sequences, scanned;
};

ScanShape scan_shape(const Attrs& attrs, size_t operands, size_t results) {
  const size_t captures = captures_of(attrs, operands);
  const int64_t sequences = attrs.integer("num_scan_inputs");
  HONE_CHECK(sequences >= 1 && sequences <= static_cast<int64_t>(operands - captures),
             "num_scan_inputs is {} but there are {} operands", sequences, operands - captures);
  const size_t states = operands - captures - static_cast<size_t>(sequences);
  HONE_CHECK(results >= states, "the node has {} results but {} states", results, states);
  return {captures, states, static_cast<size_t>(sequences), results - states};
}

int64_t list_entry(const Attrs& attrs, std::string_view name, size_t i) {
  if (!attrs.has(name) || attrs.integers(name).empty()) return 0;
  HONE_CHECK(i < attrs.integers(name).size(), "{} has only {} entries", name, attrs.integers(name).size());
  return attrs.integers(name)[i];
}

void infer_scan(InferContext& context) {
  const Node& node = context.node();
  const ScanShape s = scan_shape(context.attrs(), context.inputs(), context.outputs());
  check_bodies(node, 1, context.inputs());
  Graph& body = *node.bodies[0];
  HONE_CHECK(body.outputs().size() == context.outputs(), "the body has {} results but the node {}",
             body.outputs().size(), context.outputs());
  bool changed = retype_captures(node, body, s.captures);
  Dim steps;
  for (size_t i = 0; i < s.states + s.sequences; ++i) {
    TensorType type = context.type(i);
    if (i >= s.states) {
      std::vector<Dim> dims = type.shape.dims();
      const size_t axis = normalize_axis(list_entry(context.attrs(), "scan_input_axes", i - s.states), dims.size());
      steps = dims[axis];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
      type.shape = Shape(std::move(dims));
    }
    changed |= retype(*body.inputs()[i], type, nullptr);
  }
  if (changed) body.infer_all();
  for (size_t i = 0; i < context.outputs(); ++i) {
    const TensorType& inside = body.outputs()[i]->type;
    std::vector<Dim> dims = inside.shape.dims();
    if (i >= s.states) {
      const size_t axis =
          normalize_axis(list_entry(context.attrs(), "scan_output_axes", i - s.states), dims.size() + 1);
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), steps);
    }
    context.set(i, inside.dtype, Shape(std::move(dims)));
  }
}

Tensor element_at(const Tensor& sequence, size_t axis, int64_t step) {
  Dims dims = sequence.dims(), strides = strides_of(dims);
  const int64_t base = step * strides[axis];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  return copy_strided(sequence, std::move(dims), base, strides);
}

void eval_scan(EvalContext& context) {
  const Graph& body = *context.node().bodies[0];
  const ScanShape s = scan_shape(context.attrs(), context.inputs(), context.outputs());
  const std::vector<Tensor> captured = captured_tensors(context, s.captures);
  std::vector<Tensor> state;
  for (size_t i = 0; i < s.states; ++i) state.push_back(context.input(i));
  std::vector<size_t> axes;
  std::optional<int64_t> steps;
  for (size_t i = 0; i < s.sequences; ++i) {
    const Dims& dims = context.input(s.states + i).dims();
    axes.push_back(normalize_axis(list_entry(context.attrs(), "scan_input_axes", i), dims.size()));
    HONE_CHECK(!steps || *steps == dims[axes.back()], "the sequences have {} and {} steps", *steps, dims[axes.back()]);
    steps = dims[axes.back()];
  }
  std::vector<std::vector<Tensor>> scanned(s.scanned);
  for (int64_t step = 0; step < *steps; ++step) {
    std::vector<Tensor> operands = state;
    for (size_t i = 0; i < s.sequences; ++i) {
      const bool reversed = list_entry(context.attrs(), "scan_input_directions", i) != 0;
      operands.push_back(element_at(context.input(s.states + i), axes[i], reversed ? *steps - 1 - step : step));
    }
    operands.insert(operands.end(), captured.begin(), captured.end());
    std::vector<Tensor> results = evaluate(body, operands);
    for (size_t i = 0; i < s.states; ++i) state[i] = std::move(results[i]);
    for (size_t i = 0; i < s.scanned; ++i) scanned[i].push_back(std::move(results[s.states + i]));
  }
  for (size_t i = 0; i < s.states; ++i) context.set(i, std::move(state[i]));
  for (size_t i = 0; i < s.scanned; ++i) {
    const TensorType& element = body.outputs()[s.states + i]->type;
    if (list_entry(context.attrs(), "scan_output_directions", i) != 0)
      std::reverse(scanned[i].begin(), scanned[i].end());
    context.set(s.states + i,
                stacked(scanned[i], element,
                        normalize_axis(list_entry(context.attrs(), "scan_output_axes", i), element.shape.rank() + 1)));
  }
}

void import_scan(ImportContext& context) {
  HONE_CHECK(context.bodies().size() == 1, "the node needs a body");
  std::vector<Value*> operands;
  for (size_t i = 0; i < context.inputs(); ++i) operands.push_back(context.input(i));
  const size_t results = context.bodies()[0]->outputs().size();
  set_outputs(context, *context.add("Scan", std::move(operands), context.attrs(), results));
}

/// A body that is left out behind the end of a sequence, where states stay and elements are 0. Its inputs are those of `body` with the
/// step's number between elements and captures, and the sequence's length behind all.
std::unique_ptr<Graph> until_end(ImportContext& context, std::unique_ptr<Graph> body, size_t states, size_t captures) {
  auto whole = std::make_unique<Graph>(), idle = std::make_unique<Graph>();
  const TensorType number{DType::i64, Shape()};
  const size_t count = body->inputs().size();
  std::vector<Value*> operands{nullptr};
  Value* step = nullptr;
  for (size_t i = 0; i <= count; ++i) {
    if (i == count - captures) step = whole->add_input(whole->unique_name("step"), number);
    if (i == count) break;
    const Value& input = *body->inputs()[i];
    operands.push_back(whole->add_input(whole->unique_name(input.name), input.type));
    idle->add_input(idle->unique_name(input.name), input.type);
  }
  Value* length = whole->add_input(whole->unique_name("length"), number);
  operands[0] = whole->add(context.op("Less"), {step, length})->output();
  std::vector<Value*> kept;
  for (size_t i = 0; i < body->outputs().size(); ++i) {
    if (i < states) {
      kept.push_back(idle->add(context.op("Identity"), {idle->inputs()[i]})->output());
      continue;
    }
    const TensorType& type = body->outputs()[i]->type;
    HONE_CHECK(type.ranked && type.shape.is_static(), "a Scan with sequence_lens needs elements of known sizes, not {}",
               type.text());
    const Dims dims = type.shape.values();
    require_memory(DType::f64, dims);
    const std::vector<double> zeros(static_cast<size_t>(elements(dims)), 0.0);
    kept.push_back(
        idle->add(context.op("Identity"), {idle->add_constant(write_doubles(type.dtype, dims, zeros))})->output());
  }
  idle->set_outputs(std::move(kept));
  const size_t results = body->outputs().size();
  std::vector<std::unique_ptr<Graph>> branches;
  branches.push_back(std::move(idle));
  branches.push_back(std::move(body));
  const auto all = static_cast<int64_t>(operands.size()) - 1;
  Node* choice = whole->add(context.op("If"), std::move(operands), {{"captures", all}},
                            std::string(context.node_name()), results, std::move(branches));
  whole->set_outputs(choice->outputs);
  return whole;
}

/// Opset 8 had an axis of batches in front of everything: a Scan over the batches around the one that is meant.
void import_batched_scan(ImportContext& context) {
  HONE_CHECK(context.bodies().size() == 1, "the node needs a body");
  Value* lengths = context.input(0);
  const int64_t captures = context.attrs().integer("captures"),
                own = static_cast<int64_t>(context.inputs()) - 1 - captures,
                scanned = context.attrs().integer("num_scan_inputs"), states = own - scanned;
  Dims directions = context.attrs().has("directions") ? context.attrs().integers("directions") : Dims();
  auto batch = std::make_unique<Graph>();
  batch->name = "batch";
  std::vector<Value*> operands, inner;
  const auto add_operand = [&](Value* operand, bool batched) {
    operands.push_back(operand);
    TensorType type = operand->type;
    if (batched) type.shape = Shape(std::vector<Dim>(type.shape.begin() + 1, type.shape.end()));
    return batch->add_input(batch->unique_name(operand->name), std::move(type));
  };
  for (int64_t i = 0; i < own; ++i) {
    Value* operand = context.input(static_cast<size_t>(i) + 1);
    // From the end of a sequence, which is not that of its row.
    if (const auto at = static_cast<size_t>(i - states);
        lengths != nullptr && i >= states && at < directions.size() && directions[at] != 0) {
      operand =
          context.add("ReverseSequence", {operand, lengths}, {{"time_axis", int64_t{1}}, {"batch_axis", int64_t{0}}})
              ->output();
      directions[at] = 0;
    }
    inner.push_back(add_operand(operand, true));
  }
  Value* length = lengths != nullptr ? add_operand(lengths, true) : nullptr;
  if (length != nullptr) {
    const auto number = [&](int64_t value) { return batch->add_constant(Tensor::scalar<int64_t>(value)); };
    Value* sizes = batch->add(context.op("Shape"), {inner[static_cast<size_t>(states)]})->output();
    Value* steps = batch->add(context.op("Gather"), {sizes, number(0)})->output();
    inner.push_back(batch->add(context.op("Range"), {number(0), steps, number(1)})->output());
  }
  for (int64_t i = own; i < own + captures; ++i)
    inner.push_back(add_operand(context.input(static_cast<size_t>(i) + 1), false));
  if (length != nullptr) inner.push_back(length);
  const size_t results = context.bodies()[0]->outputs().size();
  const int64_t extra = length != nullptr ? 1 : 0;
  Attrs attrs{{"num_scan_inputs", scanned + extra}, {"captures", captures + extra}};
  if (!directions.empty()) {
    directions.resize(static_cast<size_t>(scanned + extra), 0);
    attrs.set("scan_input_directions", directions);
  }
  std::vector<std::unique_ptr<Graph>> body;
  body.push_back(std::move(context.bodies()[0]));
  if (length != nullptr)
    body[0] = until_end(context, std::move(body[0]), static_cast<size_t>(states), static_cast<size_t>(captures));
  Node* scan = batch->add(context.op("Scan"), std::move(inner), std::move(attrs), std::string(context.node_name()),
                          results, std::move(body));
  scan->origin = {std::string(context.node_name())};
  batch->set_outputs(scan->outputs);
  context.bodies()[0] = std::move(batch);
  set_outputs(context, *context.add("Scan", std::move(operands),
                                    {{"num_scan_inputs", own + extra}, {"captures", captures}}, results));
}

// ---- What nodes give to their bodies ----

std::vector<TensorType> if_body_types(std::vector<Value*>&, const Attrs&) { return {}; }

/// Number of the step, condition, and the values carried on.
std::vector<TensorType> loop_body_types(std::vector<Value*>& operands, const Attrs&) {
  operands.resize(std::max<size_t>(operands.size(), 2), nullptr);
  std::vector<TensorType> types{{DType::i64, {}}, {DType::boolean, {}}};
  for (size_t i = 2; i < operands.size(); ++i) types.push_back(given_type(operands, i));
  return types;
}

/// States, then the sequences without their axis of steps.
std::vector<TensorType> scan_body_types(std::vector<Value*>& operands, const Attrs& attrs) {
  const int64_t scanned = attrs.integer("num_scan_inputs");
  HONE_CHECK(scanned >= 1 && scanned <= static_cast<int64_t>(operands.size()),
             "num_scan_inputs is {} but the node has {} operands", scanned, operands.size());
  const size_t states = operands.size() - static_cast<size_t>(scanned);
  std::vector<TensorType> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    TensorType type = given_type(operands, i);
    if (i >= states) {
      const bool given = attrs.has("scan_input_axes") && attrs.integers("scan_input_axes").size() > i - states;
      std::vector<Dim> dims = type.shape.dims();
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(normalize_axis(
                                    given ? attrs.integers("scan_input_axes")[i - states] : 0, dims.size())));
      type.shape = Shape(std::move(dims));
    }
    types.push_back(std::move(type));
  }
  return types;
}

/// Opset 8: behind the lengths come states with an axis of batches, then sequences with those of batches and of steps.
std::vector<TensorType> batched_scan_body_types(std::vector<Value*>& operands, const Attrs& attrs) {
  const int64_t scanned = attrs.integer("num_scan_inputs");
  HONE_CHECK(scanned >= 1 && scanned < static_cast<int64_t>(operands.size()),
             "num_scan_inputs is {} but the node has {} operands", scanned, operands.size());
  std::vector<TensorType> types;
  for (size_t i = 1; i < operands.size(); ++i) {
    TensorType type = given_type(operands, i);
    const size_t leading = i < operands.size() - static_cast<size_t>(scanned) ? 1 : 2;
    HONE_CHECK(type.shape.rank() >= leading, "operand {} of rank {} has no axes of batches and steps", i,
               type.shape.rank());
    type.shape = Shape(std::vector<Dim>(type.shape.begin() + static_cast<std::ptrdiff_t>(leading), type.shape.end()));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace

namespace ops {

const OpDef if_ = {
    .name = "If",
    .attrs = {kCaptures},
    .min_inputs = 1,
    .max_inputs = 0xffff,
    .outputs = 0,
    .infer = infer_if,
    .eval = eval_if,
    .onnx = {{"If", 1, kEveryLater, import_if, "", 0, if_body_types}},
    .traits = {.has_bodies = true, .any_rank = true},
};

const OpDef loop = {
    .name = "Loop",
    .attrs = {kCaptures},
    .min_inputs = 0,
    .max_inputs = 0xffff,
    .outputs = 0,
    .infer = infer_loop,
    .eval = eval_loop,
    .onnx = {{"Loop", 1, kEveryLater, import_loop, "", 0, loop_body_types}},
    .traits = {.has_bodies = true, .any_rank = true},
};

const OpDef scan = {
    .name = "Scan",
    .attrs = {kCaptures,
              {"num_scan_inputs", AttrKind::integer, std::nullopt, true, "how many operands are sequences"},
              {"scan_input_axes", AttrKind::integers, std::nullopt, false, "axis of each sequence; 0"},
              {"scan_input_directions", AttrKind::integers, std::nullopt, false, "1: from the end"},
              {"scan_output_axes", AttrKind::integers, std::nullopt, false, "axis of each scanned result; 0"},
              {"scan_output_directions", AttrKind::integers, std::nullopt, false, "1: from the end"}},
    .min_inputs = 1,
    .max_inputs = 0xffff,
    .outputs = 0,
    .infer = infer_scan,
    .eval = eval_scan,
    .onnx = {{"Scan", 9, kEveryLater, import_scan, "", 0, scan_body_types},
             {"Scan", 8, 8, import_batched_scan, "", 0, batched_scan_body_types}},
    .traits = {.has_bodies = true, .any_rank = true},
};

}  // namespace ops
}  // namespace hone
