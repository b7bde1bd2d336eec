// SPDX-License-Identifier: Apache-2.0
//
// Operators that only move elements: see kernels/strided_copy.h for how, tactics/copy_plan.h for which.
#include <algorithm>
#include <numeric>

#include "backends/cpu/region_match.h"
#include "backends/cpu/tactic_table.h"
#include "backends/cpu/tactics/copy_plan.h"
#include "backends/cpu/tactics/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
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
    const Dim axis = attrs.has("axes") ? Dim::parse(attrs.texts("axes").at(which)) : Dim(static_cast<int64_t>(which)), pad = Dim::parse(pads[i]);
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
  const std::string &mode = node.attrs.text("coordinate_transformation_mode"), &rounding = node.attrs.text("nearest_mode");
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] == Dim(0)) return "empty input";
    const Dim factor = floor_divide(to[axis], from[axis]);
    if (!factor.is_constant() || factor * from[axis] != to[axis]) return "does not enlarge by whole factors";
    const bool exact = (mode == "asymmetric" && (rounding == "floor" || (rounding == "round_prefer_floor" && factor.value() <= 2))) ||
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
  if (op == "DepthToSpace" || op == "SpaceToDepth") attrs.set("blocksize", node.attrs.integer("blocksize")), attrs.set("mode", node.attrs.text("mode"));
  if (op == "Transpose") {
    Dims perm(node.input(0)->type.shape.rank());
    std::iota(perm.rbegin(), perm.rend(), 0);
    attrs.set("perm", node.attrs.has("perm") ? node.attrs.integers("perm") : perm);
  }
  return {};
}

/// Number of operands that are copied from; the others are parameters.
size_t source_count(const Node& node) { return node.op_name() == "Concat" ? node.inputs.size() : 1; }

/// Reads the whole region; returns why not. `constants` in the order in which the sources number them.
std::string read_region(const Problem& problem, Attrs& attrs, std::vector<Tensor>& constants) {
  const Node& node = *problem.symbolic.nodes().back();
  if (is_object(node.input(0)->type.dtype)) return "copies strings";
  if (std::string reason = read_operator(problem, node, attrs); !reason.empty()) return reason;
  Dims sources;
  for (size_t i = 0; i < source_count(node); ++i) {
    const Value* value = node.input(i);
    sources.push_back(value->is_constant() ? -1 - static_cast<int64_t>(constants.size()) : input_index(problem.symbolic, value));
    if (!value->is_constant()) {
      if (sources.back() < 0) return "an operand follows from the shapes";
      continue;
    }
    attrs.set(fmt::format("constant{}", constants.size()), value->constant->dims());
    constants.push_back(*value->constant);
  }
  const bool fills = node.op_name() == "Pad" || node.op_name() == "Reformat";
  if (fills) {
    const Value* fill = node.op_name() == "Pad" ? node.input(2) : nullptr;
    if (const int64_t place = fill == nullptr || fill->is_constant() ? -1 : input_index(problem.symbolic, fill); place >= 0) {
      sources.push_back(place);
      attrs.set("sources", std::move(sources));
      return {};
    }
    if (fill != nullptr && !fill->is_constant()) return "its value follows from the shapes";
    sources.push_back(-1 - static_cast<int64_t>(constants.size()));
    attrs.set(fmt::format("constant{}", constants.size()), Dims{1});
    const DType dtype = node.input(0)->type.dtype;
    constants.push_back(fill != nullptr ? fill->constant->reshaped({1}) : Tensor(dtype, {1}, Blob::own(zeroed(size_of(dtype)))));
  }
  attrs.set("sources", std::move(sources));
  return {};
}

bool is_flat(std::string_view op) { return op == "Identity" || op == "View" || op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze"; }

bool image_rank(const Value* value) { return value->type.shape.rank() >= 3 && value->type.shape.rank() <= 5; }

constexpr Layout kPadded[] = {Layout::blocked8, Layout::blocked16, Layout::blocked2, Layout::blocked4, Layout::blocked32, Layout::channels_last8, Layout::channels_last16};

void offer(const Problem& problem, Layout in, Layout result, Candidates& out) {
  const Graph& region = problem.region;
  const auto layouts = [](const std::vector<Value*>& values, Layout layout) {
    std::vector<Layout> list;
    for (const Value* value : values) list.push_back(image_rank(value) ? layout : Layout::linear);
    return list;
  };
  out.offer({"cpu", "copy", {}, layouts(region.inputs(), in), layouts(region.outputs(), result)});
}

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !has_copy_plan(node->op_name())) return;
  Attrs attrs;
  std::vector<Tensor> constants;
  if (std::string reason = read_region(problem, attrs, constants); !reason.empty()) return out.refuse("copy", std::move(reason));
  const std::string_view op = node->op_name();
  constexpr Layout kL = Layout::linear, kC = Layout::channels_last;
  const bool image = image_rank(node->output()) && node->input(0)->type.shape.rank() == node->output()->type.shape.rank();
  if (op == "Reformat") {
    if (!image) return offer(problem, kL, kL, out);
    offer(problem, kL, kC, out);
    offer(problem, kC, kL, out);
    for (const Layout padded : kPadded)
      for (const Layout plain : {kL, kC}) offer(problem, plain, padded, out), offer(problem, padded, plain, out);
    return;
  }
  offer(problem, kL, kL, out);
  if (!image || (is_flat(op) && op != "Identity")) return;
  offer(problem, kC, kC, out);
  if (op != "Transpose") return;
  offer(problem, kC, kL, out);
  offer(problem, kL, kC, out);
}

Compiled compile(const Problem& problem, const Tactic&) {
  Attrs attrs;
  Compiled compiled;
  const std::string reason = read_region(problem, attrs, compiled.constants);
  HONE_ASSERT(reason.empty(), "refused after all: {}", reason);
  compiled.code = encode_code("copy", attrs);
  return compiled;
}

class Copy final : public CpuKernel {
 public:
  Copy(const CopyRequest& request, const std::vector<CopyStep>& steps) {
    for (const CopyStep& step : steps) {
      const CopySource& source = request.sources[static_cast<size_t>(step.source)];
      parts_.push_back({CopyLoops(step.copy, size_of(source.type.dtype)), source.index, step.destination, items_});
      items_ += parts_.back().loops.items();
      elements_ += parts_.back().loops.elements();
    }
  }
  bool serial() const override { return elements_ < 4096; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(items_, worker, workers);
    for (const Part& part : parts_) {
      const int64_t begin = std::max(share.begin, part.first), end = std::min(share.end, part.first + part.loops.items());
      if (begin >= end) continue;
      const void* source = part.source >= 0 ? bindings.inputs[static_cast<size_t>(part.source)] : bindings.constants[static_cast<size_t>(-1 - part.source)];
      part.loops.run(begin - part.first, end - part.first, source, bindings.outputs[static_cast<size_t>(part.destination)]);
    }
  }

 private:
  struct Part {
    CopyLoops loops;
    int source, destination;
    int64_t first;                // number of its first item
  };
  std::vector<Part> parts_;
  int64_t items_ = 0, elements_ = 0;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo&) {
  CopyRequest request{attrs.text("op"), attrs, {}, shapes.outputs, shapes.symbols};
  HONE_CHECK(!shapes.outputs.empty() && !attrs.integers("sources").empty(), "a copying kernel in the plan has nothing to copy");
  for (const int64_t index : attrs.integers("sources")) {
    if (index >= 0) {
      HONE_CHECK(index < static_cast<int64_t>(shapes.inputs.size()), "a copying kernel in the plan reads input {}", index);
      request.sources.push_back({static_cast<int>(index), shapes.inputs[static_cast<size_t>(index)]});
    } else {
      request.sources.push_back({static_cast<int>(index), {shapes.outputs[0].dtype, attrs.integers(fmt::format("constant{}", -1 - index)), Layout::linear}});
    }
  }
  return std::make_shared<Copy>(request, plan_copies(request));
}

}  // namespace

const CpuTactic tactics::copy = {"copy", propose, compile, load};

}  // namespace hone::cpu
