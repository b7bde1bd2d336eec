// SPDX-License-Identifier: Apache-2.0
//
// Layer, RMS, instance and group normalisation; statistics in f32 whatever the tensor's type. Rows whose length is fixed and not too
// long stay in registers between the passes, of some lanes of a warp or of a block, and may be sums of two tensors.
#include <algorithm>
#include <optional>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "ops/weight_codes.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

/// Of rows that stay in registers.
struct RowParameters {
  static constexpr std::string_view kKernel = "normalization_row";
  Reads x, added, scale, bias;
  Writes sum, y, whole;
  int32_t count = 0;
  float epsilon = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("added", self.added, "T");
    visit("scale", self.scale, "T");
    visit("bias", self.bias, "T");
    visit("sum", self.sum, "T");
    visit("y", self.y, "Result");
    visit("whole", self.whole, "T");
    visit("count", self.count);
    visit("epsilon", self.epsilon);
  }
};

struct BlockParameters {
  static constexpr std::string_view kKernel = "normalization";
  Reads x, scale, bias;
  Writes y;
  int32_t n = 0, groups = 0, step = 0, inner = 0;
  float epsilon = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("scale", self.scale, "T");
    visit("bias", self.bias, "T");
    visit("y", self.y, "Result");
    visit("n", self.n);
    visit("groups", self.groups);
    visit("step", self.step);
    visit("inner", self.inner);
    visit("epsilon", self.epsilon);
  }
};

constexpr int64_t kMostLanes = 512;

struct NormalizationCode {
  int64_t x = 0;       // which input
  int64_t added = -1;  // which one is added to it before, or -1
  int64_t sum = -1;    // which result the sum is, or -1
  int64_t y = 0;       // and which the rows
  int64_t whole = -1;  // which the same rows are before they become codes, or -1
  GivenPlace scale;
  Place bias;
  double epsilon = 0;
  int64_t axis = 0;               // of the first that a row has
  std::optional<int64_t> groups;  // of channels, which are rows then; 0: every channel
  int64_t lanes = 0;              // that share a row; 0: a block does, and reads it again
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, Place::kMost - 1);
    visit("added", self.added, -1, Place::kMost - 1);
    visit("sum", self.sum, -1, Place::kMost - 1);
    visit("y", self.y, 0, Place::kMost - 1);
    visit("whole", self.whole, -1, Place::kMost - 1);
    GivenPlace::fields(self.scale, visit, "scale");
    Place::fields(self.bias, visit, "bias");
    visit("epsilon", self.epsilon);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("groups", self.groups, 0, kMostSize);
    visit("lanes", self.lanes, 0, kMostLanes);
  }
};

bool over_rows(const Node& node) { return node.is(ops::layer_normalization) || node.is(ops::rms_normalization); }

/// How a row is spread over threads; no lanes where it does not stay in registers.
struct RowForm {
  int64_t n = 0, width = 1, lanes = 0;
};

constexpr int64_t kMostPerLane = 64, kMostOfBlock = 32;  // elements in registers: a warp's row, a block's

RowForm row_form(const Problem& problem) {
  const std::vector<Node*> nodes = problem.symbolic.nodes();
  const auto at = std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return over_rows(*node); });
  if (at == nodes.end()) return {};
  const Node* symbolic = *at;
  const Shape& shape = symbolic->input(0)->type.shape;
  RowForm form{.n = 1};
  for (size_t i = normalize_axis(symbolic->attrs.integer("axis"), shape.rank()); i < shape.rank(); ++i) {
    if (!shape[i].is_constant()) return {};
    form.n *= shape[i].value();
  }
  for (form.width = 16 / static_cast<int64_t>(size_of(symbolic->output()->type.dtype)); form.n % form.width != 0;)
    form.width /= 2;
  const bool in_warp = form.n <= 32 * kMostPerLane;
  if (form.n == 0 || form.n > kMostLanes * kMostOfBlock) return {};
  const int64_t most = in_warp ? 32 : kMostLanes, each = in_warp ? form.width : 2 * form.width;
  for (form.lanes = 1; form.lanes < most && form.lanes * each < form.n;) form.lanes *= 2;
  return form;
}

/// A normalisation, perhaps rounded, or of the sum of two tensors; others may read the sum, and the floats of which codes are made.
struct NormalizedRows {
  RoundedNode rounded;
  const Node* sum = nullptr;
  const Value* whole = nullptr;
};

NormalizedRows read_rows(const Problem& problem) {
  const std::vector<Node*> nodes = problem.region.nodes();
  if (nodes.size() == 2 && nodes[0]->is(ops::add) && over_rows(*nodes[1]) && nodes[1]->input(0) == nodes[0]->output())
    return {{nodes[1]}, nodes[0]};
  if (nodes.size() == 2 && over_rows(*nodes[0]) && makes_codes(*nodes[1]) && nodes[1]->input(0) == nodes[0]->output() &&
      problem.region.outputs().size() == 2)
    return {{nodes[0], nodes[1]}, nullptr, nodes[0]->output()};
  return {read_rounded(problem)};
}

std::string reason_against(const Problem& problem, const NormalizedRows& rows) {
  const Node& node = *rows.rounded.node;
  if (rows.sum == nullptr && rows.whole == nullptr) {
    if (std::string reason = reason_not_float(problem, node); !reason.empty()) return reason;
  } else {
    const TensorType& type = node.input(0)->type;
    if (!is_kernel_float(type.dtype)) return "rows are not floats";
    if (node.output()->type != type) return "rows have another type than the result";
    if (type.shape.elements() == Dim(0)) return "empty input";
    if (row_form(problem).lanes == 0) return "rows with several results do not stay in registers";
    const auto whole_input = [&](const Value* value) {
      return input_index(problem.region, value) >= 0 && value->type == type;
    };
    if (rows.sum == nullptr ? !whole_input(node.input(0)) : !std::ranges::all_of(rows.sum->inputs, whole_input))
      return "a row is not one of a tensor, or the sum of two of its type and shape";
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.input(i) == node.input(0)) return "rows are the scale or the bias, too";
  }
  const Shape& x = node.input(0)->type.shape;
  Dim n = x[1];
  if (over_rows(node)) {
    n = 1;
    for (size_t i = normalize_axis(node.attrs.integer("axis"), x.rank()); i < x.rank(); ++i) n = n * x[i];
  }
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.input(i) != nullptr &&
        (node.input(i)->type.shape.elements() != n || node.input(i)->type.dtype != node.input(0)->type.dtype))
      return "scale or bias is broadcast";
  return {};
}

struct Rows {
  int64_t count = 1, n = 1, groups = 1, step = 0, inner = 1;
};

Rows rows_of(const NormalizationCode& code, const Dims& dims) {
  Rows rows;
  const int64_t total = elements(dims);
  if (!code.groups) {
    for (size_t i = normalize_axis(code.axis, dims.size()); i < dims.size(); ++i) rows.n *= dims[i];
  } else {
    HONE_CHECK(dims.size() >= 2 && dims[1] > 0, "a normalization in the plan works on {}", join_dims(dims));
    rows.groups = *code.groups == 0 ? dims[1] : *code.groups;
    HONE_CHECK(dims[1] % rows.groups == 0, "a normalization in the plan has {} groups", rows.groups);
    rows.step = dims[1] / rows.groups;
    rows.inner = std::max<int64_t>(total / std::max<int64_t>(dims[0] * dims[1], 1), 1);
    rows.n = rows.step * rows.inner;
  }
  HONE_CHECK(rows.n > 0 && rows.n < int64_t{1} << 31, "a normalization in the plan has rows of {}", rows.n);
  rows.count = total / rows.n;
  return rows;
}

/// A scale or bias of as many elements as the kernel reads.
void require_parameters(const LoadContext& context, const Place& place, int64_t count) {
  if (!place.given()) return;
  const Dims& dims = context.dims_of(place);
  HONE_CHECK(elements(dims) == count, "a normalization in the plan scales rows of {} by {}", count, join_dims(dims));
}

struct NormalizationFamily {
  static constexpr std::string_view kName = "normalization";
  static constexpr int kVersion = 8;
  using Params = NoParams;
  using Code = NormalizationCode;

  static void propose(const Problem& problem, Candidates& out) {
    const NormalizedRows rows = read_rows(problem);
    const Node* node = rows.rounded.node;
    if (node == nullptr ||
        !(over_rows(*node) || node->is(ops::instance_normalization) || node->is(ops::group_normalization)))
      return;
    if (std::string reason = reason_against(problem, rows); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cuda",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const auto [rounded, sum, whole] = read_rows(problem);
    const Node* node = rounded.node;
    const RowForm form = row_form(problem);
    Built<Code> built;
    built.code.x = input_index(problem.region, (sum != nullptr ? sum : node)->input(0));
    if (sum != nullptr) built.code.added = input_index(problem.region, sum->input(1));
    if (sum != nullptr) built.code.sum = result_of(problem, sum->output());
    built.code.y = result_of(problem, rounded.last()->output());
    built.code.whole = result_of(problem, whole);
    built.code.scale = place_of(problem, node->input(1), built.constants);
    built.code.bias = place_of(problem, node->input(2), built.constants);
    built.code.epsilon = node->attrs.real("epsilon");
    built.code.lanes = form.lanes;
    if (over_rows(*node)) built.code.axis = node->attrs.integer("axis");
    else built.code.groups = node->is(ops::group_normalization) ? node->attrs.integer("num_groups") : 0;
    built.source = fmt::format("typedef {} T;\n#define CENTRED {}\n", type_name(node->output()->type.dtype),
                               !node->is(ops::rms_normalization));
    if (form.lanes > 0) {
      const auto varies = [](const Value* value) { return value != nullptr && !value->is_constant(); };
      built.source += fmt::format(
          "#define ROW {}\n#define V {}\n#define LANES {}\n#define CONSTANT_SCALE {:d}\n#define SUMMED {:d}\n#define "
          "KEEPS_WHOLE {:d}\n",
          form.n, form.width, form.lanes, !varies(node->input(1)) && !varies(node->input(2)), sum != nullptr,
          whole != nullptr);
    }
    built.source += declare<RowParameters, BlockParameters>() + rounding_text(rounded) + kernels::normalization;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Dims& dims = context.dims_of({PlaceKind::input, code.x});
    const Rows rows = rows_of(code, dims);
    const int64_t parameters = code.groups ? dims[1] : rows.n;
    for (const Place& place : {Place(code.scale), code.bias}) require_parameters(context, place, parameters);
    const std::vector<ConcreteType>& outputs = context.shapes.outputs;
    const DType dtype = context.shapes.inputs[static_cast<size_t>(code.x)].dtype;
    const auto alike = [&](const ConcreteType& type) { return type.dims == dims && type.dtype == dtype; };
    HONE_CHECK(std::ranges::all_of(outputs, [&](const ConcreteType& type) { return type.dims == dims; }),
               "a normalization in the plan changes the size of {}", join_dims(dims));
    HONE_CHECK(code.added < std::ssize(context.shapes.inputs) && code.sum < std::ssize(outputs) &&
                   code.whole < std::ssize(outputs) &&
                   (code.added < 0 || alike(context.shapes.inputs[static_cast<size_t>(code.added)])) &&
                   (code.sum < 0 || alike(outputs[static_cast<size_t>(code.sum)])) &&
                   (code.whole < 0 || alike(outputs[static_cast<size_t>(code.whole)])),
               "a normalization in the plan adds tensors of other types");
    return single(context, code.lanes > 0 ? launch_lanes(code, context, rows) : launch_blocks(code, context, rows));
  }

 private:
  static GridLaunch launch_lanes(const Code& code, const LoadContext& context, const Rows& rows) {
    // Few rows: a warp to a block, so that every processor has some.
    const int64_t threads =
        std::max<int64_t>(code.lanes, rows.count * code.lanes < 128 * context.processors ? 32 : 128);
    const RowParameters parameters{.x = input(code.x),
                                   .added = code.added < 0 ? Reads() : input(code.added),
                                   .scale = code.scale.pointer(),
                                   .bias = code.bias.pointer(),
                                   .sum = result_pointer(code.sum),
                                   .y = output(code.y),
                                   .whole = result_pointer(code.whole),
                                   .count = static_cast<int32_t>(rows.count),
                                   .epsilon = static_cast<float>(code.epsilon)};
    return launch_of(*context.module, parameters,
                     {{blocks_of(rows.count, threads / code.lanes)}, static_cast<unsigned>(threads)});
  }

  static GridLaunch launch_blocks(const Code& code, const LoadContext& context, const Rows& rows) {
    const BlockParameters parameters{.x = input(code.x),
                                     .scale = code.scale.pointer(),
                                     .bias = code.bias.pointer(),
                                     .y = output(code.y),
                                     .n = static_cast<int32_t>(rows.n),
                                     .groups = static_cast<int32_t>(rows.groups),
                                     .step = static_cast<int32_t>(rows.step),
                                     .inner = static_cast<int32_t>(rows.inner),
                                     .epsilon = static_cast<float>(code.epsilon)};
    const unsigned threads = rows.n <= 64 ? 32 : rows.n <= 256 ? 64 : rows.n <= 2048 ? 128 : 512;
    return launch_of(*context.module, parameters, {{rows.count}, threads});
  }
};

}  // namespace

const CudaTactic tactics::normalization = describe<NormalizationFamily>();

}  // namespace hone::cuda
