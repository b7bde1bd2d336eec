// SPDX-License-Identifier: Apache-2.0
//
// ScatterElements and ScatterND without arithmetic: a copy of the data, into which the updates go.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr size_t kAxes = 8;

/// Of ScatterElements: the updates' sizes, the data's steps along the same axes but the indexed one, `n` and `step` along that. Of
/// ScatterND: sizes and steps of the axes that a position has entries for; `step` is the length of a row.
struct Updates {
  static constexpr std::string_view kName = "Updates";
  int64_t steps[kAxes] = {}, total = 0, step = 0;
  int32_t sizes[kAxes] = {1, 1, 1, 1, 1, 1, 1, 1}, rank = 0, n = 0;
  static void fields(auto& self, auto& visit) {
    visit("steps", self.steps);
    visit("total", self.total);
    visit("step", self.step);
    visit("sizes", self.sizes);
    visit("rank", self.rank);
    visit("n", self.n);
  }
};

struct CopyParameters {
  static constexpr std::string_view kKernel = "scatter_copy", kElement = "E";
  Reads data;
  Writes y, last;
  int64_t total = 0, elements = 0;
  static void fields(auto& self, auto& visit) {
    visit("data", self.data, "E");
    visit("y", self.y, "E");
    visit("last", self.last, "int");
    visit("total", self.total);
    visit("elements", self.elements);
  }
};

/// `last`: of each element of the result the number of the update that it gets, or -1.
struct ElementsLastParameters {
  static constexpr std::string_view kKernel = "scatter_elements_last";
  Reads indices;
  Writes last;
  Updates u;
  static void fields(auto& self, auto& visit) {
    visit("indices", self.indices, "Index");
    visit("last", self.last, "int");
    visit("u", self.u);
  }
};
struct RowsLastParameters : ElementsLastParameters {
  static constexpr std::string_view kKernel = "scatter_nd_last";
};

struct ElementsParameters {
  static constexpr std::string_view kKernel = "scatter_elements", kElement = "E";
  using Last = ElementsLastParameters;
  Reads indices, last, updates;
  Writes y;
  Updates u;
  static void fields(auto& self, auto& visit) {
    visit("indices", self.indices, "Index");
    visit("last", self.last, "int");
    visit("updates", self.updates, "E");
    visit("y", self.y, "E");
    visit("u", self.u);
  }
};
struct RowsParameters : ElementsParameters {
  static constexpr std::string_view kKernel = "scatter_nd";
  using Last = RowsLastParameters;
};

struct ScatterCode {
  GivenPlace data, indices, updates;
  int64_t axis = 0;  // of ScatterElements
  static void fields(auto& self, auto& visit) {
    GivenPlace::fields(self.data, visit, "data");
    GivenPlace::fields(self.indices, visit, "indices");
    GivenPlace::fields(self.updates, visit, "updates");
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  if (node.attrs.text("reduction") != "none") return "updates are combined: " + node.attrs.text("reduction");
  const DType dtype = node.input(0)->type.dtype, index = node.input(1)->type.dtype;
  if (!has_type_name(dtype)) return fmt::format("elements are {}", name_of(dtype));
  if (index != DType::i64 && index != DType::i32) return fmt::format("indices are {}", name_of(index));
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  if (problem.region.inputs().empty()) return "all operands are constant";
  const Shape &data = node.input(0)->type.shape, &indices = node.input(1)->type.shape;
  const auto most = int64_t{kAxes};
  if (node.is(ops::scatter_elements))
    return data.rank() <= kAxes ? "" : fmt::format("the data have {} axes", data.rank());
  const Dim& depth = indices[indices.rank() - 1];
  return depth.constant().value_or(0) >= 1 && depth.value() <= most ? ""
                                                                    : "positions have " + depth.text() + " entries";
}

template <typename Family>
void propose_for(const Problem& problem, const OpDef& op, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(op)) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse(Family::kName, std::move(reason));
  out.offer({"cuda",
             std::string(Family::kName),
             {},
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             {Layout::linear}});
}

Built<ScatterCode> generate_scatter(const Problem& problem) {
  const Node* node = problem.only();
  Built<ScatterCode> built;
  const auto place = [&](size_t operand) { return place_of(problem, node->input(operand), built.constants); };
  built.code.data = place(0);
  built.code.indices = place(1);
  built.code.updates = place(2);
  built.code.axis = node->attrs.has("axis") ? node->attrs.integer("axis") : 0;
  built.source =
      fmt::format("typedef {} Index;\n", type_name(node->input(1)->type.dtype)) +
      declare<CopyParameters, ElementsLastParameters, RowsLastParameters, ElementsParameters, RowsParameters>() +
      kernels::scatter;
  return built;
}

template <typename Parameters>
std::shared_ptr<const CudaKernel> load_scatter(const ScatterCode& code, const LoadContext& context, Updates updates) {
  const ConcreteType& out = context.shapes.outputs[0];
  const int64_t unit = unit_of(out.bytes());
  const Module& module = *context.module;
  const int64_t count = elements(out.dims);
  const CopyParameters copy{code.data.pointer(), output(0), to_workspace(), out.bytes() / unit, count};
  std::vector<GridLaunch> launches{launch_of(module, copy, {{blocks_of(copy.total, 256)}}, fmt::format("_{}", unit))};
  updates.total = elements(context.dims_of(code.updates));
  HONE_CHECK(updates.total < int64_t{1} << 31, "a scattering kernel in the plan has {} updates", updates.total);
  if (updates.total > 0) {
    typename Parameters::Last last;
    last.indices = code.indices.pointer();
    last.last = to_workspace();
    last.u = updates;
    Parameters put;
    put.indices = code.indices.pointer();
    put.last = from_workspace();
    put.updates = code.updates.pointer();
    put.y = output(0);
    put.u = updates;
    const Blocks blocks{{blocks_of(updates.total, 256)}};
    launches.push_back(launch_of(module, last, blocks));
    launches.push_back(launch_of(module, put, blocks, fmt::format("_{}", size_of(out.dtype))));
  }
  return std::make_shared<GridKernel>(context.module, std::move(launches),
                                      static_cast<size_t>(count) * sizeof(int32_t));
}

void require(bool condition, const Dims& data, const Dims& indices, const Dims& updates) {
  HONE_CHECK(condition, "a scattering kernel in the plan has data {}, indices {} and updates {}", join_dims(data),
             join_dims(indices), join_dims(updates));
}

/// What both have in common of their operands' sizes.
void require_operands(const ScatterCode& code, const LoadContext& context) {
  const Dims &data = context.dims_of(code.data), &indices = context.dims_of(code.indices),
             &updates = context.dims_of(code.updates);
  require(context.shapes.outputs.size() == 1 && context.shapes.outputs[0].dims == data && elements(data) > 0 &&
              std::ranges::all_of(data, [](int64_t size) { return size < int64_t{1} << 31; }),
          data, indices, updates);
}

struct ScatterElementsFamily {
  static constexpr std::string_view kName = "scatter_elements";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = ScatterCode;

  static void propose(const Problem& problem, Candidates& out) {
    propose_for<ScatterElementsFamily>(problem, ops::scatter_elements, out);
  }
  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    return generate_scatter(problem);
  }
  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    require_operands(code, context);
    const Dims &data = context.dims_of(code.data), &indices = context.dims_of(code.indices);
    const size_t axis = normalize_axis(code.axis, data.size());
    require(data.size() <= kAxes && indices.size() == data.size() && context.dims_of(code.updates) == indices, data,
            indices, context.dims_of(code.updates));
    const Dims strides = strides_of(data);
    Updates updates{
        .step = strides[axis], .rank = static_cast<int32_t>(data.size()), .n = static_cast<int32_t>(data[axis])};
    for (size_t i = 0; i < data.size(); ++i) {
      require(i == axis ? indices[i] < int64_t{1} << 31 : indices[i] <= data[i], data, indices, indices);
      updates.sizes[i] = static_cast<int32_t>(indices[i]);
      updates.steps[i] = i == axis ? 0 : strides[i];
    }
    return load_scatter<ElementsParameters>(code, context, updates);
  }
};

struct ScatterNdFamily {
  static constexpr std::string_view kName = "scatter_nd";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = ScatterCode;

  static void propose(const Problem& problem, Candidates& out) {
    propose_for<ScatterNdFamily>(problem, ops::scatter_nd, out);
  }
  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    return generate_scatter(problem);
  }
  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    require_operands(code, context);
    const Dims &data = context.dims_of(code.data), &indices = context.dims_of(code.indices),
               &given = context.dims_of(code.updates);
    const int64_t depth = indices.empty() ? 0 : indices.back();
    require(depth >= 1 && depth <= static_cast<int64_t>(std::min(kAxes, data.size())), data, indices, given);
    const auto entries = static_cast<size_t>(depth);
    const int64_t row = elements(std::span(data).subspan(entries));
    require(elements(given) == elements(indices) / depth * row, data, indices, given);
    const Dims strides = strides_of(data);
    Updates updates{.step = row, .rank = static_cast<int32_t>(depth)};
    for (size_t i = 0; i < entries; ++i) {
      updates.sizes[i] = static_cast<int32_t>(data[i]);
      updates.steps[i] = strides[i];
    }
    return load_scatter<RowsParameters>(code, context, updates);
  }
};

}  // namespace

const CudaTactic tactics::scatter_elements = describe<ScatterElementsFamily>();
const CudaTactic tactics::scatter_nd = describe<ScatterNdFamily>();

}  // namespace hone::cuda
