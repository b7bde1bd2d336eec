// SPDX-License-Identifier: Apache-2.0
//
// Rotate: rotary embeddings, one pass over the vectors. What the axes before the last are to the angles (theirs, or shared) makes
// groups: theirs, shared, theirs, shared. Vectors in up to three axes fit.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr size_t kMostRank = 4;

struct RotaryParameters {
  static constexpr std::string_view kKernel = "rotary";
  Reads x, cosines, sines;
  Writes y;
  int32_t items = 0, heads = 1, tokens = 1, inner = 1, half = 1;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("cosines", self.cosines, "T");
    visit("sines", self.sines, "T");
    visit("y", self.y, "T");
    visit("items", self.items);
    visit("heads", self.heads);
    visit("tokens", self.tokens);
    visit("inner", self.inner);
    visit("half", self.half);
  }
};

struct RotaryCode {
  int64_t x = 0;  // which input
  GivenPlace cosines, sines;
  int64_t width = 1;  // elements of each half that a thread takes at once
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, 2);
    GivenPlace::fields(self.cosines, visit, "cosines");
    GivenPlace::fields(self.sines, visit, "sines");
    visit("width", self.width, 1, 8);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_float(problem, node); !reason.empty()) return reason;
  const size_t rank = node.input(0)->type.shape.rank();
  return rank > kMostRank ? fmt::format("vectors in {} axes", rank - 1) : std::string();
}

/// The sizes of the groups behind the first, from the innermost axis outwards.
struct Groups {
  int64_t heads = 1, tokens = 1, inner = 1;
};

Groups groups_of(const Dims& x, const Dims& angles) {
  Groups groups;
  int64_t* const sizes[] = {&groups.inner, &groups.tokens, &groups.heads};
  size_t group = 0;  // the even ones share their angles
  for (size_t i = 1; i < x.size(); ++i) {
    const int64_t size = x[x.size() - 1 - i], own = i < angles.size() ? angles[angles.size() - 1 - i] : 1;
    HONE_CHECK(own == 1 || own == size, "a rotation in the plan has {} angles for {}", join_dims(angles), join_dims(x));
    if (size == 1) continue;
    if ((own == 1) != (group % 2 == 0)) ++group;
    if (group < std::size(sizes)) *sizes[group] *= size;
  }
  return groups;
}

struct RotaryFamily {
  static constexpr std::string_view kName = "rotary";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = RotaryCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::rotate)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cuda",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node* node = problem.only();
    const Shape& shape = node->input(0)->type.shape;
    const DType dtype = node->output()->type.dtype;
    Built<Code> built;
    built.code.x = input_index(problem.region, node->input(0));
    built.code.cosines = place_of(problem, node->input(1), built.constants);
    built.code.sines = place_of(problem, node->input(2), built.constants);
    const int64_t half = shape[shape.rank() - 1].value() / 2;
    for (built.code.width = vector_width(dtype); half % built.code.width != 0;) built.code.width /= 2;
    built.source = fmt::format("typedef {} T;\n#define V {}\n", type_name(dtype), built.code.width) +
                   declare<RotaryParameters>() + kernels::rotary;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const std::vector<ConcreteType>& inputs = context.shapes.inputs;
    HONE_CHECK(code.x < static_cast<int64_t>(inputs.size()), "a rotation in the plan has {} inputs", inputs.size());
    const Dims &dims = inputs[static_cast<size_t>(code.x)].dims, &angles = context.dims_of(code.cosines);
    HONE_CHECK(context.shapes.outputs.size() == 1 && context.shapes.outputs[0].dims == dims && !dims.empty() &&
                   dims.size() <= kMostRank && !angles.empty() && angles.size() <= dims.size() &&
                   angles.back() == dims.back() && context.dims_of(code.sines) == angles,
               "a rotation in the plan turns {} by {}", join_dims(dims), join_dims(angles));
    const int64_t half = dims.back() / 2, count = elements(dims);
    HONE_CHECK(half > 0 && dims.back() % 2 == 0 && half % code.width == 0 && count > 0 && count < int64_t{1} << 31,
               "a rotation in the plan turns {} by {} at a time", join_dims(dims), code.width);
    const Groups groups = groups_of(dims, angles);
    const int64_t items = count / 2 / code.width;
    const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
    const RotaryParameters parameters{.x = input(code.x),
                                      .cosines = code.cosines.pointer(),
                                      .sines = code.sines.pointer(),
                                      .y = output(0),
                                      .items = number(items),
                                      .heads = number(groups.heads),
                                      .tokens = number(groups.tokens),
                                      .inner = number(groups.inner),
                                      .half = number(half)};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(items, 128)}, 128}));
  }
};

}  // namespace

const CudaTactic tactics::rotary = describe<RotaryFamily>();

}  // namespace hone::cuda
