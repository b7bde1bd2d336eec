// SPDX-License-Identifier: Apache-2.0
//
// Reading a region that only moves elements: operands become numbers where they follow from the shapes.
#include "regions/copy_request.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "base/enum_names.h"
#include "ops/channel_shuffle.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone {
namespace {

/// Operand `i` of the node as size expressions; false when its contents are not known.
bool read_numbers(std::vector<std::string>& to, const Node& node, size_t i) {
  std::optional<std::vector<std::string>> texts = size_texts(node.input(i));
  if (!texts) return false;
  to = std::move(*texts);
  return true;
}

/// The axes 0, 1, ... count - 1.
std::vector<std::string> first_axes(size_t count) {
  std::vector<std::string> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(std::to_string(i));
  return axes;
}

std::string read_slice(const Node& node, CopyOperator& op) {
  if (!read_numbers(op.starts, node, 1)) return "starts are not known";
  if (node.input(3) == nullptr) op.axes = first_axes(op.starts.size());
  else if (!read_numbers(op.axes, node, 3)) return "axes are not known";
  if (node.input(4) == nullptr) op.steps.assign(op.starts.size(), "1");
  else if (!read_numbers(op.steps, node, 4)) return "steps are not known";
  return {};
}

/// Whether a mirrored or wrapped border is known to be wider than what there is to take it from.
bool repeats_its_mirror(const Node& node, const CopyOperator& op) {
  if (op.mode != PadMode::reflect && op.mode != PadMode::wrap) return false;
  const Shape& shape = node.input(0)->type.shape;
  for (size_t i = 0; i < op.pads.size(); ++i) {
    const Dim axis = Dim::parse(op.axes.at(i % (op.pads.size() / 2))), pad = Dim::parse(op.pads[i]);
    if (!axis.is_constant() || !pad.is_constant()) continue;
    const Dim& size = shape[normalize_axis(axis.value(), shape.rank())];
    if (size.is_constant() && pad.value() > size.value() - (op.mode == PadMode::reflect ? 1 : 0)) return true;
  }
  return false;
}

std::string read_pad(const Node& node, CopyOperator& op) {
  const std::optional<PadMode> mode = value_named<PadMode>(node.attrs.text("mode"));
  if (!mode) return "its mode is unknown";
  op.mode = *mode;
  if (node.input(3) == nullptr) op.axes = first_axes(node.input(0)->type.shape.rank());
  else if (!read_numbers(op.axes, node, 3)) return "axes are not known";
  if (!read_numbers(op.pads, node, 1)) return "pads are not known";
  for (const std::string& text : op.pads)
    if (text.starts_with('-') && op.mode != PadMode::constant) return "cuts instead of padding";
  if (repeats_its_mirror(node, op)) return "repeats what it mirrors or wraps";
  return {};
}

std::string read_split(const Problem& problem, const Node& node, CopyOperator& op) {
  op.axis = node.attrs.integer("axis");
  const size_t axis = normalize_axis(op.axis, node.input(0)->type.shape.rank());
  for (const Value* output : node.outputs) op.sizes.push_back(output->type.shape[axis].text());
  for (const Value* output : problem.symbolic.outputs()) op.parts.push_back(static_cast<int64_t>(output->index));
  return {};
}

/// Nearest neighbour whose every source index is output index / factor.
std::string read_resize(const Node& node) {
  if (node.attrs.text("mode") != "nearest") return "interpolates";
  const Shape &from = node.input(0)->type.shape, &to = node.output()->type.shape;
  const std::string &mode = node.attrs.text("coordinate_transformation_mode"),
                    &rounding = node.attrs.text("nearest_mode");
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] == Dim(0)) return "empty input";
    const Dim factor = floor_divide(to[axis], from[axis]);
    if (!factor.is_constant() || factor * from[axis] != to[axis]) return "does not enlarge by whole factors";
    const bool exact =
        (mode == "asymmetric" && (rounding == "floor" || (rounding == "round_prefer_floor" && factor.value() <= 2))) ||
        ((mode == "half_pixel" || mode == "half_pixel_symmetric") && rounding.starts_with("round_prefer"));
    if (factor != Dim(1) && !exact) return fmt::format("its coordinates are {} with {}", mode, rounding);
  }
  return {};
}

std::string read_operator(const Problem& problem, const Node& node, CopyOperator& op) {
  const std::optional<CopyKind> kind = copy_kind(node.op_name());
  HONE_ASSERT(kind.has_value(), "{} does more than to move elements", node.op_name());
  op.kind = *kind;
  switch (op.kind) {
    case CopyKind::slice: return read_slice(node, op);
    case CopyKind::pad: return read_pad(node, op);
    case CopyKind::split: return read_split(problem, node, op);
    case CopyKind::resize: return read_resize(node);
    case CopyKind::concat: op.axis = node.attrs.integer("axis"); return {};
    case CopyKind::depth_to_space:
    case CopyKind::space_to_depth:
      op.block = node.attrs.integer("blocksize"), op.channels_first = node.attrs.text("mode") == "CRD";
      return {};
    case CopyKind::transpose:
      op.perm.resize(node.input(0)->type.shape.rank());
      std::iota(op.perm.rbegin(), op.perm.rend(), 0);
      if (node.attrs.has("perm")) op.perm = node.attrs.integers("perm");
      return {};
    default: return {};
  }
}

/// Number of operands that are copied from; the others are parameters.
size_t source_count(const Node& node) { return node.op_name() == "Concat" ? node.inputs.size() : 1; }

/// A value that is copied from: a region input or a constant.
std::string add_source(const Problem& problem, const Value* value, CopyCode& code, std::vector<Tensor>& constants) {
  if (!value->is_constant()) {
    code.sources.push_back({input_index(problem.symbolic, value)});
    return code.sources.back().place < 0 ? "an operand follows from the shapes" : "";
  }
  code.sources.push_back({-1 - static_cast<int64_t>(constants.size()), value->constant->dims()});
  constants.push_back(*value->constant);
  return {};
}

/// How many elements a Slice of an assembly leaves along each of its axes.
std::string read_counts(const Node& node, CopyOperator& op) {
  const Shape& result = node.output()->type.shape;
  for (const std::string& text : op.axes) {
    const Dim axis = Dim::parse(text);
    if (!axis.is_constant()) return "axes are not known";
    op.counts.push_back(result[normalize_axis(axis.value(), result.rank())].text());
  }
  return {};
}

/// A region of Slices and Concats, and of a shuffle, as numbered operators: operands are sources, then the results of earlier ones.
std::string read_assembly(const Problem& problem, CopyCode& code, std::vector<Tensor>& constants) {
  std::vector<const Node*> nodes;
  for (const Node* node : problem.symbolic.nodes())
    if (node->is(ops::slice) || node->is(ops::concat)) nodes.push_back(node);
  const std::optional<ChannelShuffle> shuffle = channel_shuffle(problem.symbolic.nodes().back());
  if (shuffle) nodes.push_back(shuffle->nodes[0]);
  std::map<const Value*, int64_t> number;
  for (const Node* node : nodes)
    for (size_t i = 0; i < source_count(*node); ++i) {
      const Value* value = node->input(i);
      const bool made_inside =
          std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) { return n == value->producer; });
      if (made_inside || number.contains(value)) continue;
      number[value] = static_cast<int64_t>(code.sources.size());
      if (std::string reason = add_source(problem, value, code, constants); !reason.empty()) return reason;
    }
  for (const Node* node : nodes) {
    CopyOperator& op = code.operators.emplace_back();
    if (shuffle && node == shuffle->nodes[0]) op.kind = CopyKind::shuffle, op.block = shuffle->groups;
    else if (std::string reason = read_operator(problem, *node, op); !reason.empty()) return reason;
    if (node->is(ops::slice))
      if (std::string reason = read_counts(*node, op); !reason.empty()) return reason;
    for (size_t i = 0; i < source_count(*node); ++i) op.operands.push_back(number.at(node->input(i)));
    number[node->output()] = static_cast<int64_t>(code.sources.size() + code.operators.size() - 1);
  }
  HONE_ASSERT(nodes.size() > 1 || shuffle, "an assembly of {} operators", nodes.size());
  return {};
}

/// The element that fills the border of a Pad or the padding of a layout.
std::string add_fill(const Problem& problem, const Node& node, CopyCode& code, std::vector<Tensor>& constants) {
  const Value* fill = code.operators[0].kind == CopyKind::pad ? node.input(2) : nullptr;
  if (fill != nullptr && !fill->is_constant()) {
    code.sources.push_back({input_index(problem.symbolic, fill)});
    return code.sources.back().place < 0 ? "its value follows from the shapes" : "";
  }
  code.sources.push_back({-1 - static_cast<int64_t>(constants.size()), {1}});
  const DType dtype = node.input(0)->type.dtype;
  AlignedBuffer zeros(size_of(dtype));
  std::memset(zeros.data(), 0, zeros.size());
  constants.push_back(fill != nullptr ? fill->constant->reshaped({1})
                                      : Tensor(dtype, {1}, Blob::own(std::move(zeros))));
  return {};
}

}  // namespace

std::optional<std::vector<std::string>> size_texts(const Value* value) {
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  if (value->is_constant()) {
    for (const int64_t number : value->constant->integers()) texts.push_back(std::to_string(number));
    return texts;
  }
  if (value->symbolic == nullptr) return std::nullopt;
  for (const Dim& dim : *value->symbolic) texts.push_back(dim.text());
  return texts;
}

const Node* copy_root(const Graph& region) {
  const std::vector<Node*> nodes = region.nodes();
  if (nodes.size() < 2) return nodes.empty() ? nullptr : nodes[0];
  const std::optional<ChannelShuffle> shuffle = channel_shuffle(nodes.back());
  if (!shuffle && !nodes.back()->is(ops::concat)) return nullptr;
  const bool assembles = std::ranges::all_of(nodes, [&](Node* node) {
    return node->is(ops::slice) || node->is(ops::concat) ||
           (shuffle && std::ranges::find(shuffle->nodes, node) != shuffle->nodes.end());
  });
  return assembles ? nodes.back() : nullptr;
}

std::string read_copy(const Problem& problem, CopyCode& code, std::vector<Tensor>& constants) {
  const Node& node = *problem.symbolic.nodes().back();
  if (is_object(node.input(0)->type.dtype)) return "copies strings";
  if (problem.only() == nullptr) return read_assembly(problem, code, constants);
  CopyOperator& op = code.operators.emplace_back();
  if (std::string reason = read_operator(problem, node, op); !reason.empty()) return reason;
  for (size_t i = 0; i < source_count(node); ++i)
    if (std::string reason = add_source(problem, node.input(i), code, constants); !reason.empty()) return reason;
  const bool fills = op.kind == CopyKind::pad || op.kind == CopyKind::reformat;
  return fills ? add_fill(problem, node, code, constants) : "";
}

std::vector<ConstantSpec> copy_constants(const CopyCode& code, const KernelShapes& shapes) {
  HONE_CHECK(!shapes.outputs.empty() && !code.sources.empty(), "a copying kernel in the plan has nothing to copy");
  const DType dtype = shapes.outputs[0].dtype;
  HONE_CHECK(!is_object(dtype), "a copying kernel in the plan has elements of type {}", name_of(dtype));
  std::vector<ConstantSpec> specs;
  for (const CopyOperand& source : code.sources) {
    if (source.place >= 0) continue;
    HONE_CHECK(source.place == -1 - static_cast<int64_t>(specs.size()),
               "a copying kernel in the plan reads constant {}", -1 - source.place);
    specs.push_back({dtype, source.dims});
  }
  return specs;
}

CopyRequest copy_request(const CopyCode& code, const KernelShapes& shapes) {
  CopyRequest request{code.operators, {}, shapes.outputs, shapes.symbols};
  for (const CopyOperand& source : code.sources) {
    HONE_CHECK(source.place < static_cast<int64_t>(shapes.inputs.size()), "a copying kernel in the plan reads input {}",
               source.place);
    if (source.place < 0) require_sizes(source.dims);
    request.sources.push_back({static_cast<int>(source.place),
                               source.place >= 0 ? shapes.inputs[static_cast<size_t>(source.place)]
                                                 : ConcreteType{shapes.outputs[0].dtype, source.dims, Layout::linear}});
  }
  return request;
}

}  // namespace hone
