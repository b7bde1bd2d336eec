// SPDX-License-Identifier: Apache-2.0
//
// TopK, ArgMax and ArgMin: the best elements of each line along an axis. A block sorts a line; single elements of lines that lie
// beside each other are found by a thread each.
#include <algorithm>
#include <bit>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr int64_t kBuffer = 4096;  // elements that a block sorts at once: 32 KB
constexpr int64_t kBeside = 32;    // lines beside each other that make a thread for each worth while

struct Lines {
  static constexpr std::string_view kName = "Lines";
  int32_t n = 0, inner = 0, k = 0, buffer = 0, largest = 0;
  int32_t last = 0;  // of equal elements the last one is best, else the first
  static void fields(auto& self, auto& visit) {
    visit("n", self.n);
    visit("inner", self.inner);
    visit("k", self.k);
    visit("buffer", self.buffer);
    visit("largest", self.largest);
    visit("last", self.last);
  }
};

struct LineParameters {
  static constexpr std::string_view kKernel = "top_k_line";
  Reads x;
  Writes values, places;
  Lines lines;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("values", self.values, "T");
    visit("places", self.places, "i64");
    visit("lines", self.lines);
  }
};

struct BesideParameters {
  static constexpr std::string_view kKernel = "top_k_beside";
  LineParameters common;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    LineParameters::fields(self.common, visit);
    visit("count", self.count);
  }
};

struct TopKCode {
  int64_t axis = -1;
  bool one = false;  // of each line, and no axis for it in the result; else as many as the result has along the axis
  bool largest = true, last = false;
  int64_t values = -1, places = -1;  // which results; -1: nobody reads them
  static void fields(auto& self, auto& visit) {
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("one", self.one);
    visit("largest", self.largest);
    visit("last", self.last);
    visit("values", self.values, -1, 1);
    visit("places", self.places, -1, 1);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  const DType dtype = node.input(0)->type.dtype;
  if (!is_kernel_float(dtype) && dtype != DType::i32) return fmt::format("elements are {}", name_of(dtype));
  if (node.input(0)->is_constant()) return "the operand is constant";
  if (node.input(0)->type.shape.rank() == 0) return "the operand is a scalar";
  if (problem.symbolic.nodes().back()->input(0)->type.shape.elements() == Dim(0)) return "empty operand";
  if (!node.is(ops::top_k)) return {};
  if (!node.input(1)->is_constant()) return "k is not known";
  const Shape& result = problem.symbolic.outputs()[0]->type.shape;
  const Dim& k = result[normalize_axis(node.attrs.integer("axis"), result.rank())];
  return k.largest().value_or(INT64_MAX) <= kBuffer / 2 ? "" : fmt::format("k is {}", k.text());
}

struct TopKFamily {
  static constexpr std::string_view kName = "top_k";
  static constexpr int kVersion = 3;
  using Params = NoParams;
  using Code = TopKCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::top_k) || node->is(ops::arg_max) || node->is(ops::arg_min))) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cuda",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node* node = problem.only();
    const bool sorted = node->is(ops::top_k);
    const Code code{.axis = node->attrs.integer("axis"),
                    .one = !sorted,
                    .largest = sorted ? node->attrs.integer("largest") != 0 : node->is(ops::arg_max),
                    .last = !sorted && node->attrs.integer("select_last_index") != 0,
                    .values = sorted ? result_of(problem, node->output(0)) : -1,
                    .places = result_of(problem, node->output(sorted ? 1 : 0))};
    return {code, fmt::format("typedef {} T;\n", type_name(node->input(0)->type.dtype)) +
                      declare<LineParameters, BesideParameters>() + kernels::top_k};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const std::vector<ConcreteType>&inputs = context.shapes.inputs, &outputs = context.shapes.outputs;
    HONE_CHECK(!inputs.empty() && !inputs[0].dims.empty() && !outputs.empty() &&
                   (code.one || outputs[0].dims.size() == inputs[0].dims.size()),
               "a ranking kernel in the plan has no operand or no result");
    const Dims& dims = inputs[0].dims;
    const size_t axis = normalize_axis(code.axis, dims.size());
    const int64_t count = elements(dims), n = dims[axis], k = code.one ? 1 : outputs[0].dims[axis];
    if (k > n || k > kBuffer / 2) throw Error(fmt::format("k is {} but the axis has {} elements", k, n));
    HONE_CHECK(count > 0 && n < int64_t{1} << 31, "a ranking kernel in the plan has an operand {}", join_dims(dims));
    const int64_t lines = count / n, inner = elements(std::span(dims).subspan(axis + 1));
    for (const ConcreteType& output : outputs)
      HONE_CHECK(elements(output.dims) == lines * k, "a ranking kernel in the plan contradicts its tensors");
    const LineParameters parameters{
        .x = input(0),
        .values = result_pointer(code.values),
        .places = result_pointer(code.places),
        .lines = {.n = static_cast<int32_t>(n),
                  .inner = static_cast<int32_t>(inner),
                  .k = static_cast<int32_t>(k),
                  .buffer = static_cast<int32_t>(std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)), kBuffer)),
                  .largest = code.largest,
                  .last = code.last}};
    if (k == 1 && inner >= kBeside)
      return single(context,
                    launch_of(*context.module, BesideParameters{parameters, lines}, {{blocks_of(lines, 256)}}));
    return single(context, launch_of(*context.module, parameters, {{lines}}));
  }
};

}  // namespace

const CudaTactic tactics::top_k = describe<TopKFamily>();

}  // namespace hone::cuda
