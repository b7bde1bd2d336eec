// SPDX-License-Identifier: Apache-2.0
//
// NonZero, whose kernels say themselves how many elements they found.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr int64_t kPiece = 8192;  // elements of a block
constexpr size_t kAxes = 8;

struct Box {
  static constexpr std::string_view kName = "Box";
  int64_t sizes[kAxes] = {1, 1, 1, 1, 1, 1, 1, 1};
  int32_t rank = 0;
  static void fields(auto& self, auto& visit) {
    visit("sizes", self.sizes);
    visit("rank", self.rank);
  }
};

struct CountParameters {
  static constexpr std::string_view kKernel = "non_zero_count";
  Reads x;
  Writes found_by_block;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("found_by_block", self.found_by_block, "int");
    visit("count", self.count);
  }
};

struct WriteParameters {
  static constexpr std::string_view kKernel = "non_zero_write";
  Reads x, found_by_block;  // the latter of several blocks
  Writes places, sizes;
  Box box;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("found_by_block", self.found_by_block, "int");
    visit("places", self.places, "i64");
    visit("sizes", self.sizes, "i64");
    visit("box", self.box);
    visit("count", self.count);
  }
};

std::string reason_against(const Node& node) {
  const TensorType& type = node.input(0)->type;
  if (!has_type_name(type.dtype)) return fmt::format("elements are {}", name_of(type.dtype));
  if (node.input(0)->is_constant()) return "the operand is constant";
  const size_t rank = type.shape.rank();
  return rank >= 1 && rank <= kAxes ? "" : fmt::format("the operand has {} axes", rank);
}

struct NonZeroFamily {
  static constexpr std::string_view kName = "non_zero";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = NoCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::non_zero)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    out.offer({"cuda", std::string(kName), {}, {Layout::linear}, {Layout::linear}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const std::string switches =
        fmt::format("typedef {} T;\n#define PIECE {}\n", type_name(problem.only()->input(0)->type.dtype), kPiece);
    return {{}, switches + declare<CountParameters, WriteParameters>() + kernels::non_zero};
  }

  /// That the results have room for all elements is what the kernel was made for (support/signature.h).
  static std::shared_ptr<const CudaKernel> load(const Code&, const LoadContext& context) {
    HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 2,
               "a NonZero in the plan has {} operands", context.shapes.inputs.size());
    const Dims& dims = context.shapes.inputs[0].dims;
    HONE_CHECK(!dims.empty() && dims.size() <= kAxes, "a NonZero in the plan has an operand of {} axes", dims.size());
    const int64_t count = elements(dims), blocks = blocks_of(count, kPiece);
    HONE_CHECK(count > 0 && blocks < int64_t{1} << 31, "a NonZero in the plan has an operand {}", join_dims(dims));
    WriteParameters write{.x = input(0),
                          .found_by_block = blocks > 1 ? from_workspace() : Reads{},
                          .places = output(0),
                          .sizes = output(1),
                          .box = {.rank = static_cast<int32_t>(dims.size())},
                          .count = count};
    std::ranges::copy(dims, write.box.sizes);
    std::vector<GridLaunch> launches;
    if (blocks > 1)
      launches.push_back(launch_of(*context.module, CountParameters{input(0), to_workspace(), count}, {{blocks}}));
    launches.push_back(launch_of(*context.module, write, {{blocks}}));
    const auto workspace = static_cast<size_t>(blocks > 1 ? blocks : 0) * sizeof(int32_t);
    return std::make_shared<GridKernel>(context.module, std::move(launches), workspace);
  }
};

}  // namespace

const CudaTactic tactics::non_zero = describe<NonZeroFamily>();

}  // namespace hone::cuda
