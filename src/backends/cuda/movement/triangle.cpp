// SPDX-License-Identifier: Apache-2.0
//
// Trilu: one triangle of matrices, from a diagonal that may be a number of the device's.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

struct TriangleParameters {
  static constexpr std::string_view kKernel = "triangle";
  Reads x, diagonal;
  Writes y;
  int64_t rows = 0, columns = 0, count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "E");
    visit("diagonal", self.diagonal, "i64");
    visit("y", self.y, "E");
    visit("rows", self.rows);
    visit("columns", self.columns);
    visit("count", self.count);
  }
};

struct TriangleCode {
  int64_t x = 0;
  GivenPlace diagonal;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    GivenPlace::fields(self.diagonal, visit, "diagonal");
  }
};

/// Elements are copied as they lie.
std::string_view element_name(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return "unsigned char";
    case 2: return "unsigned short";
    case 4: return "unsigned";
    default: return "unsigned long long";
  }
}

std::string reason_against(const Node& node) {
  const TensorType& type = node.output()->type;
  if (!has_type_name(type.dtype)) return fmt::format("elements are {}", name_of(type.dtype));
  if (node.input(0)->is_constant()) return "the matrices are constant";
  return type.shape.elements() == Dim(0) ? "empty result" : "";
}

struct TriangleFamily {
  static constexpr std::string_view kName = "triangle";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = TriangleCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::trilu)) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    out.offer({"cuda",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node& node = *problem.only();
    Built<Code> built;
    built.code.x = input_index(problem.region, node.input(0));
    if (node.input(1) != nullptr) {
      built.code.diagonal = place_of(problem, node.input(1), built.constants);
    } else {
      built.code.diagonal = Place{PlaceKind::constant, 0};
      built.constants.push_back(Tensor::scalar<int64_t>(0));
    }
    built.source = fmt::format("typedef {} E;\n#define UPPER {:d}\n", element_name(node.output()->type.dtype),
                               node.attrs.integer("upper") != 0) +
                   declare<TriangleParameters>() + kernels::triangle;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1, "a triangle in the plan has {} results",
               context.shapes.outputs.size());
    const Dims& dims = context.shapes.outputs[0].dims;
    const int64_t count = elements(dims);
    HONE_CHECK(dims.size() >= 2 && count > 0 && context.dims_of(Place{PlaceKind::input, code.x}) == dims &&
                   elements(context.dims_of(code.diagonal)) == 1,
               "a triangle in the plan is of {}", join_dims(dims));
    const TriangleParameters parameters{.x = input(code.x),
                                        .diagonal = code.diagonal.pointer(),
                                        .y = output(0),
                                        .rows = dims[dims.size() - 2],
                                        .columns = dims.back(),
                                        .count = count};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(count, 256)}}));
  }
};

}  // namespace

const CudaTactic tactics::triangle = describe<TriangleFamily>();

}  // namespace hone::cuda
