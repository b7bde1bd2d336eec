// SPDX-License-Identifier: Apache-2.0
//
// Gather and GatherND: rows copied by index or by position, in units of up to 16 bytes.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr size_t kMaxDepth = 8;

struct GatherParameters {
  static constexpr std::string_view kKernel = "gather", kElement = "E";
  Reads data, indices;
  Writes y;
  int32_t n = 0, row = 0, count = 0;
  int64_t total = 0;
  static void fields(auto& self, auto& visit) {
    visit("data", self.data, "E");
    visit("indices", self.indices, "Index");
    visit("y", self.y, "E");
    visit("n", self.n);
    visit("row", self.row);
    visit("count", self.count);
    visit("total", self.total);
  }
};

/// Positions of each batch, and how far apart the batches' data lie.
struct Positions {
  static constexpr std::string_view kName = "Positions";
  int32_t depth = 0, sizes[kMaxDepth] = {};
  int64_t steps[kMaxDepth] = {}, in_batch = 0, batch_step = 0;
  static void fields(auto& self, auto& visit) {
    visit("depth", self.depth);
    visit("sizes", self.sizes);
    visit("steps", self.steps);
    visit("in_batch", self.in_batch);
    visit("batch_step", self.batch_step);
  }
};

struct GatherNdParameters {
  static constexpr std::string_view kKernel = "gather_nd", kElement = "E";
  Reads data, indices;
  Writes y;
  Positions positions;
  int32_t row = 0;
  int64_t total = 0;
  static void fields(auto& self, auto& visit) {
    visit("data", self.data, "E");
    visit("indices", self.indices, "Index");
    visit("y", self.y, "E");
    visit("p", self.positions);
    visit("row", self.row);
    visit("total", self.total);
  }
};

struct Operands {
  GivenPlace data, indices;
  static void fields(auto& self, auto& visit) {
    GivenPlace::fields(self.data, visit, "data");
    GivenPlace::fields(self.indices, visit, "indices");
  }
};

struct GatherCode {
  Operands operands;
  int64_t axis = 0;
  static void fields(auto& self, auto& visit) {
    Operands::fields(self.operands, visit);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
  }
};

struct GatherNdCode {
  Operands operands;
  int64_t batch_dims = 0;
  static void fields(auto& self, auto& visit) {
    Operands::fields(self.operands, visit);
    visit("batch_dims", self.batch_dims, 0, kMostAxes);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.region.outputs().size() != 1) return "more than one result is used";
  if (is_object(node.input(0)->type.dtype)) return "gathers objects";
  const DType index = node.input(1)->type.dtype;
  if (index != DType::i64 && index != DType::i32) return fmt::format("indices are {}", name_of(index));
  if (problem.symbolic.nodes().back()->input(0)->type.shape.elements() == Dim(0)) return "empty operand";
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  if (node.input(0)->is_constant() && node.input(1)->is_constant()) return "both operands are constant";
  const Shape& indices = node.input(1)->type.shape;
  if (node.is(ops::gather_nd) && indices[indices.rank() - 1].value() > int64_t{kMaxDepth})
    return fmt::format("positions have more than {} entries", kMaxDepth);
  return {};
}

void propose_for(const Problem& problem, const OpDef& op, std::string_view family, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(op)) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse(family, std::move(reason));
  out.offer({"cuda",
             std::string(family),
             {},
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             {Layout::linear}});
}

/// Of a family whose code keeps this attribute besides its operands.
template <typename Parameters, typename Code>
Built<Code> generate_for(const Problem& problem, std::string_view attribute, const char* text) {
  const Node& node = *problem.only();
  Built<Code> built;
  const Place data = place_of(problem, node.input(0), built.constants),
              indices = place_of(problem, node.input(1), built.constants);
  built.code = {{data, indices}, node.attrs.integer(attribute)};
  built.source =
      fmt::format("typedef {} Index;\n", type_name(node.input(1)->type.dtype)) + declare<Parameters>() + text;
  return built;
}

struct GatherFamily {
  static constexpr std::string_view kName = "gather";
  static constexpr int kVersion = 2;
  using Params = NoParams;
  using Code = GatherCode;

  static void propose(const Problem& problem, Candidates& out) { propose_for(problem, ops::gather, kName, out); }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    return generate_for<GatherParameters, Code>(problem, "axis", kernels::gather);
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1, "a gathering kernel in the plan has {} results",
               context.shapes.outputs.size());
    const ConcreteType& out = context.shapes.outputs[0];
    const Dims &data = context.dims_of(code.operands.data), &indices = context.dims_of(code.operands.indices);
    const size_t axis = normalize_axis(code.axis, data.size());
    const int64_t outer = elements(std::span(data).first(axis)), behind = elements(std::span(data).subspan(axis + 1)),
                  row = behind * static_cast<int64_t>(size_of(out.dtype));
    const int64_t n = data[axis], count = elements(indices);
    HONE_CHECK(n > 0 && count > 0 && row > 0 && elements(out.dims) == elements(Dims{outer, count, behind}),
               "a gathering kernel in the plan contradicts its tensors");
    const int64_t unit = unit_of(row), total = outer * count * (row / unit);
    const GatherParameters parameters{.data = code.operands.data.pointer(),
                                      .indices = code.operands.indices.pointer(),
                                      .y = output(0),
                                      .n = static_cast<int32_t>(n),
                                      .row = static_cast<int32_t>(row / unit),
                                      .count = static_cast<int32_t>(count),
                                      .total = total};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(total, 256)}}, fmt::format("_{}", unit)));
  }
};

struct GatherNdFamily {
  static constexpr std::string_view kName = "gather_nd";
  static constexpr int kVersion = 2;
  using Params = NoParams;
  using Code = GatherNdCode;

  static void propose(const Problem& problem, Candidates& out) { propose_for(problem, ops::gather_nd, kName, out); }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    return generate_for<GatherNdParameters, Code>(problem, "batch_dims", kernels::gather_nd);
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1, "a gathering kernel in the plan has {} results",
               context.shapes.outputs.size());
    const ConcreteType& out = context.shapes.outputs[0];
    const Dims &data = context.dims_of(code.operands.data), &indices = context.dims_of(code.operands.indices);
    HONE_CHECK(!indices.empty() && indices.back() >= 1 && indices.back() <= int64_t{kMaxDepth},
               "a gathering kernel in the plan has indices {}", join_dims(indices));
    const auto batch = static_cast<size_t>(code.batch_dims), depth = static_cast<size_t>(indices.back());
    HONE_CHECK(batch < indices.size() && batch + depth <= data.size(),
               "a gathering kernel in the plan has data {} and indices {}", join_dims(data), join_dims(indices));
    const auto element = static_cast<int64_t>(size_of(out.dtype));
    const int64_t row = elements(std::span(data).subspan(batch + depth)) * element;
    const int64_t batches = elements(std::span(data).first(batch)), positions = elements(indices) / indices.back();
    HONE_CHECK(elements(data) > 0 && positions > 0 && positions % batches == 0 &&
                   out.bytes() == elements(Dims{positions, row}),
               "a gathering kernel in the plan contradicts its tensors");
    const int64_t unit = unit_of(row), total = positions * (row / unit);
    GatherNdParameters parameters{.data = code.operands.data.pointer(),
                                  .indices = code.operands.indices.pointer(),
                                  .y = output(0),
                                  .positions = {.depth = static_cast<int32_t>(depth)},
                                  .row = static_cast<int32_t>(row / unit),
                                  .total = total};
    const Dims strides = strides_of(data);
    for (size_t i = 0; i < depth; ++i) {
      parameters.positions.sizes[i] = static_cast<int32_t>(data[batch + i]);
      parameters.positions.steps[i] = strides[batch + i] * element / unit;
    }
    parameters.positions.in_batch = positions / batches;
    parameters.positions.batch_step = elements(data) / batches * element / unit;
    return single(context, launch_of(*context.module, parameters, {{blocks_of(total, 256)}}, fmt::format("_{}", unit)));
  }
};

}  // namespace

const CudaTactic tactics::gather = describe<GatherFamily>();
const CudaTactic tactics::gather_nd = describe<GatherNdFamily>();

}  // namespace hone::cuda
