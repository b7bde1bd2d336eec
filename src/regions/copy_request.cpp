// SPDX-License-Identifier: Apache-2.0
//
// Reading a region that only moves elements: operands become numbers where they follow from the shapes.
#include "regions/copy_request.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "device/code.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone {
namespace {

/// Operand `i` of the node as size expressions under `name`; false when its contents are not known.
bool write_numbers(Attrs& attrs, const char* name, const Node& node, size_t i) {
  std::optional<std::vector<std::string>> texts = size_texts(node.input(i));
  if (!texts) return false;
  attrs.set(name, std::move(*texts));
  return true;
}

std::vector<std::string> repeated(size_t count, const char* text) { return std::vector<std::string>(count, text); }

std::string read_slice(const Node& node, Attrs& attrs) {
  if (!write_numbers(attrs, "starts", node, 1)) return "starts are not known";
  const size_t count = attrs.texts("starts").size();
  if (node.input(3) == nullptr) {
    std::vector<std::string> axes;
    for (size_t i = 0; i < count; ++i) axes.push_back(std::to_string(i));
    attrs.set("axes", std::move(axes));
  } else if (!write_numbers(attrs, "axes", node, 3)) {
    return "axes are not known";
  }
  if (node.input(4) == nullptr) attrs.set("steps", repeated(count, "1"));
  else if (!write_numbers(attrs, "steps", node, 4)) return "steps are not known";
  return {};
}

/// Whether a mirrored or wrapped border is known to be wider than what there is to take it from.
bool repeats_its_mirror(const Node& node, const Attrs& attrs) {
  const std::string& mode = node.attrs.text("mode");
  if (mode != "reflect" && mode != "wrap") return false;
  const Shape& shape = node.input(0)->type.shape;
  const std::vector<std::string>& pads = attrs.texts("pads");
  for (size_t i = 0; i < pads.size(); ++i) {
    const size_t which = i % (pads.size() / 2);
    const Dim axis = attrs.has("axes") ? Dim::parse(attrs.texts("axes").at(which)) : Dim(static_cast<int64_t>(which)),
              pad = Dim::parse(pads[i]);
    if (!axis.is_constant() || !pad.is_constant()) continue;
    const Dim& size = shape[normalize_axis(axis.value(), shape.rank())];
    if (size.is_constant() && pad.value() > size.value() - (mode == "reflect" ? 1 : 0)) return true;
  }
  return false;
}

std::string read_pad(const Node& node, Attrs& attrs) {
  attrs.set("mode", node.attrs.text("mode"));
  if (node.input(3) != nullptr && !write_numbers(attrs, "axes", node, 3)) return "axes are not known";
  if (!write_numbers(attrs, "pads", node, 1)) return "pads are not known";
  for (const std::string& text : attrs.texts("pads"))
    if (text.starts_with('-') && node.attrs.text("mode") != "constant") return "cuts instead of padding";
  if (repeats_its_mirror(node, attrs)) return "repeats what it mirrors or wraps";
  return {};
}

std::string read_split(const Problem& problem, const Node& node, Attrs& attrs) {
  attrs.set("axis", node.attrs.integer("axis"));
  const size_t axis = normalize_axis(node.attrs.integer("axis"), node.input(0)->type.shape.rank());
  std::vector<std::string> sizes;
  for (const Value* output : node.outputs) sizes.push_back(output->type.shape[axis].text());
  attrs.set("sizes", std::move(sizes));
  Dims parts;
  for (const Value* output : problem.symbolic.outputs()) parts.push_back(static_cast<int64_t>(output->index));
  attrs.set("parts", std::move(parts));
  return {};
}

/// Nearest neighbour whose every source index is output index / factor.
std::string read_resize(const Node& node, Attrs&) {
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

std::string read_operator(const Problem& problem, const Node& node, Attrs& attrs) {
  const std::string_view op = node.op_name();
  attrs.set("op", std::string(op));
  if (op == "Slice") return read_slice(node, attrs);
  if (op == "Pad") return read_pad(node, attrs);
  if (op == "Split") return read_split(problem, node, attrs);
  if (op == "Resize") return read_resize(node, attrs);
  if (op == "Concat") attrs.set("axis", node.attrs.integer("axis"));
  if (op == "DepthToSpace" || op == "SpaceToDepth")
    attrs.set("blocksize", node.attrs.integer("blocksize")), attrs.set("mode", node.attrs.text("mode"));
  if (op == "Transpose") {
    Dims perm(node.input(0)->type.shape.rank());
    std::iota(perm.rbegin(), perm.rend(), 0);
    attrs.set("perm", node.attrs.has("perm") ? node.attrs.integers("perm") : perm);
  }
  return {};
}

/// Number of operands that are copied from; the others are parameters.
size_t source_count(const Node& node) { return node.op_name() == "Concat" ? node.inputs.size() : 1; }

/// A value that is copied from: a region input or a constant.
std::string add_source(const Problem& problem, const Value* value, Attrs& attrs, Dims& sources,
                       std::vector<Tensor>& constants) {
  if (!value->is_constant()) {
    sources.push_back(input_index(problem.symbolic, value));
    return sources.back() < 0 ? "an operand follows from the shapes" : "";
  }
  sources.push_back(-1 - static_cast<int64_t>(constants.size()));
  attrs.set(fmt::format("constant{}", constants.size()), value->constant->dims());
  constants.push_back(*value->constant);
  return {};
}

/// A region of Slices and Concats as numbered steps: operands are sources, then the results of earlier steps.
std::string read_assembly(const Problem& problem, Attrs& attrs, std::vector<Tensor>& constants) {
  std::vector<const Node*> nodes;
  for (const Node* node : problem.symbolic.nodes())
    if (!node->is(ops::symbolic_constant)) nodes.push_back(node);
  std::map<const Value*, int64_t> number;
  Dims sources;
  for (const Node* node : nodes)
    for (size_t i = 0; i < source_count(*node); ++i) {
      const Value* value = node->input(i);
      const bool made_inside =
          std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) { return n == value->producer; });
      if (made_inside || number.contains(value)) continue;
      number[value] = static_cast<int64_t>(sources.size());
      if (std::string reason = add_source(problem, value, attrs, sources, constants); !reason.empty()) return reason;
    }
  for (size_t k = 0; k < nodes.size(); ++k) {
    const Node& node = *nodes[k];
    Attrs own;
    if (std::string reason = read_operator(problem, node, own); !reason.empty()) return reason;
    if (node.is(ops::slice)) {
      std::vector<std::string> counts;
      const Shape& result = node.output()->type.shape;
      for (const std::string& axis : own.texts("axes")) {
        const Dim number_of_axis = Dim::parse(axis);
        if (!number_of_axis.is_constant()) return "axes are not known";
        counts.push_back(result[normalize_axis(number_of_axis.value(), result.rank())].text());
      }
      own.set("counts", std::move(counts));
    }
    Dims operands;
    for (size_t i = 0; i < source_count(node); ++i) operands.push_back(number.at(node.input(i)));
    own.set("operands", std::move(operands));
    for (const auto& [name, value] : own) attrs.set(fmt::format("{}{}", name, k), value);
    number[node.output()] = static_cast<int64_t>(sources.size() + k);
  }
  attrs.set("op", std::string("Assemble"));
  attrs.set("sources", std::move(sources));
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
  if (nodes.empty() || (nodes.size() > 1 && !nodes.back()->is(ops::concat))) return nullptr;
  const bool assembles = nodes.size() == 1 || std::all_of(nodes.begin(), nodes.end(), [](const Node* node) {
                           return node->is(ops::slice) || node->is(ops::concat);
                         });
  return assembles ? nodes.back() : nullptr;
}

std::string read_copy(const Problem& problem, Attrs& attrs, std::vector<Tensor>& constants) {
  const Node& node = *problem.symbolic.nodes().back();
  if (is_object(node.input(0)->type.dtype)) return "copies strings";
  if (problem.only() == nullptr) return read_assembly(problem, attrs, constants);
  if (std::string reason = read_operator(problem, node, attrs); !reason.empty()) return reason;
  Dims sources;
  for (size_t i = 0; i < source_count(node); ++i) {
    if (std::string reason = add_source(problem, node.input(i), attrs, sources, constants); !reason.empty())
      return reason;
  }
  const bool fills = node.op_name() == "Pad" || node.op_name() == "Reformat";
  if (fills) {
    const Value* fill = node.op_name() == "Pad" ? node.input(2) : nullptr;
    if (const int64_t place = fill == nullptr || fill->is_constant() ? -1 : input_index(problem.symbolic, fill);
        place >= 0) {
      sources.push_back(place);
      attrs.set("sources", std::move(sources));
      return {};
    }
    if (fill != nullptr && !fill->is_constant()) return "its value follows from the shapes";
    sources.push_back(-1 - static_cast<int64_t>(constants.size()));
    attrs.set(fmt::format("constant{}", constants.size()), Dims{1});
    const DType dtype = node.input(0)->type.dtype;
    AlignedBuffer zeros(size_of(dtype));
    std::memset(zeros.data(), 0, zeros.size());
    constants.push_back(fill != nullptr ? fill->constant->reshaped({1})
                                        : Tensor(dtype, {1}, Blob::own(std::move(zeros))));
  }
  attrs.set("sources", std::move(sources));
  return {};
}

CopyRequest copy_request(const Attrs& attrs, const KernelShapes& shapes) {
  CopyRequest request{attrs.text("op"), attrs, {}, shapes.outputs, shapes.symbols};
  HONE_CHECK(!shapes.outputs.empty() && !attrs.integers("sources").empty(),
             "a copying kernel in the plan has nothing to copy");
  for (const int64_t index : attrs.integers("sources")) {
    if (index >= 0) {
      HONE_CHECK(index < static_cast<int64_t>(shapes.inputs.size()), "a copying kernel in the plan reads input {}",
                 index);
      request.sources.push_back({static_cast<int>(index), shapes.inputs[static_cast<size_t>(index)]});
    } else {
      request.sources.push_back(
          {static_cast<int>(index), constant_operand(shapes, -1 - index, shapes.outputs[0].dtype,
                                                     attrs.integers(fmt::format("constant{}", -1 - index)))});
    }
  }
  return request;
}

}  // namespace hone
