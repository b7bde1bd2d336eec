// SPDX-License-Identifier: Apache-2.0
//
// Gather along an axis: rows copied by index. An index outside of the axis is brought inside, so that bad data cannot
// make the kernel read elsewhere.
#include <algorithm>
#include <cstring>

#include "backends/cpu/region_match.h"
#include "backends/cpu/tactic_table.h"
#include "backends/cpu/tactics/region_reader.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.region.outputs().size() != 1) return "more than one result is used";
  if (node.input(0)->type.dtype == DType::string) return "gathers strings";
  const DType index = node.input(1)->type.dtype;
  if (index != DType::i64 && index != DType::i32) return fmt::format("indices are {}", name_of(index));
  const Shape& data = problem.symbolic.nodes().back()->input(0)->type.shape;
  if (data.elements() == Dim(0)) return "empty operand";
  if (node.input(0)->is_constant() && node.input(1)->is_constant()) return "both operands are constant";
  return {};
}

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || node->op_name() != "Gather") return;
  if (std::string reason = reason_against(problem, *node); !reason.empty()) return out.refuse("gather", std::move(reason));
  out.offer({"cpu", "gather", {}, std::vector<Layout>(problem.region.inputs().size(), Layout::linear), {Layout::linear}});
}

Compiled compile(const Problem& problem, const Tactic&) {
  const Node* node = problem.only();
  Compiled compiled;
  Attrs attrs{{"axis", node->attrs.integer("axis")}};
  for (const auto& [name, value] : {std::pair{"data", node->input(0)}, std::pair{"indices", node->input(1)}}) {
    attrs.set(name, int64_t{input_index(problem.region, value)});      // -1: constant 0
    if (!value->is_constant()) continue;
    attrs.set("constant_dims", value->constant->dims());
    attrs.set("constant_type", std::string(name_of(value->constant->dtype())));
    compiled.constants.push_back(*value->constant);
  }
  compiled.code = encode_code("gather", attrs);
  return compiled;
}

class Gather final : public CpuKernel {
 public:
  Gather(const Attrs& attrs, const KernelShapes& shapes) {
    const ConcreteType data = operand(attrs, "data", shapes, data_), indices = operand(attrs, "indices", shapes, indices_);
    const size_t axis = normalize_axis(attrs.integer("axis"), data.dims.size());
    row_ = static_cast<int64_t>(size_of(data.dtype));
    for (size_t i = 0; i < axis; ++i) outer_ *= data.dims[i];
    for (size_t i = axis + 1; i < data.dims.size(); ++i) row_ *= data.dims[i];
    n_ = data.dims[axis];
    count_ = elements(indices.dims);
    wide_ = indices.dtype == DType::i64;
    const bool valid = n_ > 0 && (wide_ || indices.dtype == DType::i32) && data.dtype == shapes.outputs[0].dtype && shapes.outputs[0].bytes() == outer_ * count_ * row_;
    HONE_CHECK(valid, "a gathering kernel in the plan contradicts its tensors");
  }
  bool serial() const override { return outer_ * count_ * row_ < 16384; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const auto bound = [&](int64_t place) { return static_cast<const std::byte*>(place >= 0 ? bindings.inputs[static_cast<size_t>(place)] : bindings.constants[0]); };
    const std::byte *data = bound(data_), *indices = bound(indices_);
    std::byte* result = static_cast<std::byte*>(bindings.outputs[0]);
    const Share share = share_of(outer_ * count_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t i = item % count_;
      int64_t index = wide_ ? reinterpret_cast<const int64_t*>(indices)[i] : reinterpret_cast<const int32_t*>(indices)[i];
      index = std::clamp<int64_t>(index < 0 ? index + n_ : index, 0, n_ - 1);
      std::memcpy(result + item * row_, data + (item / count_ * n_ + index) * row_, static_cast<size_t>(row_));
    }
  }

 private:
  static ConcreteType operand(const Attrs& attrs, std::string_view name, const KernelShapes& shapes, int64_t& place) {
    place = attrs.integer(name);
    HONE_CHECK(place >= -1 && place < static_cast<int64_t>(shapes.inputs.size()), "a gathering kernel in the plan reads input {}", place);
    if (place >= 0) return shapes.inputs[static_cast<size_t>(place)];
    const std::optional<DType> dtype = parse_dtype(attrs.text("constant_type"));
    HONE_CHECK(dtype.has_value(), "a gathering kernel in the plan has an unknown element type");
    return {*dtype, attrs.integers("constant_dims"), Layout::linear};
  }

  int64_t data_ = 0, indices_ = 0, outer_ = 1, n_ = 1, row_ = 1, count_ = 1;
  bool wide_ = true;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo&) {
  HONE_CHECK(shapes.outputs.size() == 1, "a gathering kernel in the plan has {} results", shapes.outputs.size());
  return std::make_shared<Gather>(attrs, shapes);
}

}  // namespace

const CpuTactic tactics::gather = {"gather", propose, compile, load};

}  // namespace hone::cpu
