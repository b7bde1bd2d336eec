// SPDX-License-Identifier: Apache-2.0
//
// LSTM, and GRU with linear_before_reset, as cuDNN's users know them: sigmoid and tanh, constant weights, whole sequences. What
// else ONNX lets them have runs on the host. Needs clusters, whose blocks hold the recurrent weights in registers.
#include <algorithm>
#include <array>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostBlocks = 8, kMostThreads = 512,
                  kMostPart = 128;  // of a cluster; of a block; columns in a thread

struct Sizes {
  static constexpr std::string_view kName = "Sizes";
  int32_t steps = 0, batch = 0, directions = 0;
  int32_t backwards = 0;  // the only direction
  static void fields(auto& self, auto& visit) {
    visit("steps", self.steps);
    visit("batch", self.batch);
    visit("directions", self.directions);
    visit("backwards", self.backwards);
  }
};

struct InputsParameters {
  static constexpr std::string_view kKernel = "recurrent_inputs";
  Reads x, weights, bias;
  Writes result;
  Sizes sizes;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("weights", self.weights, "float");
    visit("bias", self.bias, "float");
    visit("result", self.result, "float");
    visit("s", self.sizes);
  }
};

struct StepsParameters {
  static constexpr std::string_view kKernel = "recurrent";
  Reads inputs, weights, late_bias, first_h, first_c;
  Writes y, last_h, last_c;
  Sizes sizes;
  static void fields(auto& self, auto& visit) {
    visit("inputs", self.inputs, "float");
    visit("weights", self.weights, "float");
    visit("late_bias", self.late_bias, "float");
    visit("first_h", self.first_h, "T");
    visit("first_c", self.first_c, "T");
    visit("y", self.y, "T");
    visit("last_h", self.last_h, "T");
    visit("last_c", self.last_c, "T");
    visit("s", self.sizes);
  }
};

struct RecurrentCode {
  int64_t x = 0;  // which input
  Place first_h, first_c;
  int64_t rows = 1, width = 1, directions = 1;  // of the weights of a direction; of the input
  bool backwards = false;
  int64_t blocks = 1, threads = 1;                // of a cluster; of a block
  std::array<int64_t, 3> outputs = {-1, -1, -1};  // which results are y, h and c; -1: nobody reads them
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, Place::kMost - 1);
    Place::fields(self.first_h, visit, "first_h");
    Place::fields(self.first_c, visit, "first_c");
    visit("rows", self.rows, 1, kMostSize);
    visit("width", self.width, 1, kMostSize);
    visit("directions", self.directions, 1, 2);
    visit("backwards", self.backwards);
    visit("blocks", self.blocks, 1, kMostBlocks);
    visit("threads", self.threads, 1, kMostThreads);
    visit("outputs", self.outputs, -1, 2);
  }
};

/// How the hidden units are spread over a cluster.
struct Spread {
  int64_t blocks = 0, units = 0, parts = 0;
};

std::optional<Spread> spread_of(int64_t gates, int64_t hidden) {
  for (const int64_t blocks : {8, 4, 2, 1})
    for (const int64_t parts : {1, 2, 4}) {
      const int64_t units = hidden / blocks, threads = gates * units * parts;
      const bool fits = hidden % blocks == 0 && units >= 8 && hidden % (4 * parts) == 0 &&
                        hidden / parts <= kMostPart && threads <= kMostThreads && threads * (hidden / parts) <= 32768;
      if (fits) return Spread{blocks, units, parts};
    }
  return std::nullopt;
}

int64_t gates_of(const Node& node) { return node.is(ops::lstm) ? 4 : 3; }

bool usual_activations(const Node& node) {
  if (!node.attrs.has("activations")) return true;
  const std::vector<std::string>& names = node.attrs.texts("activations");
  const std::vector<std::string> usual = node.is(ops::lstm) ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                                            : std::vector<std::string>{"Sigmoid", "Tanh"};
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != usual[i % usual.size()]) return false;
  return true;
}

std::string reason_against(const Problem& problem, const Node& node) {
  if (!has_clusters(problem.device.architecture)) return "the GPU has no clusters";
  for (const std::string& target : problem.targets)
    if (!has_clusters(target)) return "a target has no clusters";
  const Value* x = node.input(0);
  if (!is_kernel_float(x->type.dtype)) return fmt::format("input is {}, not a float", name_of(x->type.dtype));
  if (x->is_constant() || x->type.shape.elements() == Dim(0)) return "its input is constant or empty";
  for (const size_t i : {1, 2, 3})
    if (node.input(i) != nullptr && !node.input(i)->is_constant()) return "weights are not constant";
  for (const size_t i : {5, 6})
    if (node.input(i) != nullptr && node.input(i)->type.dtype != x->type.dtype) return "a first state has another type";
  if (node.input(4) != nullptr) return "sequences have lengths of their own";
  if (node.input(7) != nullptr) return "it has peepholes";
  if (node.attrs.has("clip") || !usual_activations(node)) return "its gates are unusual";
  if (node.is(ops::lstm) && node.attrs.integer("input_forget") != 0) return "input and forget are coupled";
  if (node.is(ops::gru) && node.attrs.integer("linear_before_reset") == 0) return "it resets before the matmul";
  const Dims &w = node.input(1)->constant->dims(), &r = node.input(2)->constant->dims();
  if (w.size() != 3 || r.size() != 3 || r[1] != gates_of(node) * r[2] || w[1] != r[1] || w[2] == 0)
    return "its weights contradict each other";
  if (node.input(3) != nullptr && node.input(3)->constant->size() != 2 * r[0] * r[1])
    return "its biases have another size";
  if (!spread_of(gates_of(node), r[2])) return fmt::format("{} hidden units", r[2]);
  return {};
}

/// [direction][row][column] as [direction][column][row].
Tensor columns_first(const Tensor& weights) {
  const int64_t directions = weights.dims()[0], rows = weights.dims()[1], columns = weights.dims()[2];
  std::vector<float> result(static_cast<size_t>(weights.size()));
  for (int64_t d = 0; d < directions; ++d)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        result[static_cast<size_t>((d * columns + j) * rows + i)] =
            static_cast<float>(weights.real((d * rows + i) * columns + j));
  return Tensor::of<float>({directions, columns, rows}, std::span<const float>(result));
}

/// What is added to the input's part of every gate, and what a GRU adds to its third matmul: [direction][gate][unit] and
/// [direction][unit].
std::array<Tensor, 2> biases_of(const Node& node, int64_t directions, int64_t hidden) {
  const int64_t gates = gates_of(node), rows = gates * hidden;
  std::vector<float> sums(static_cast<size_t>(directions * rows)), late(static_cast<size_t>(directions * hidden));
  if (node.input(3) != nullptr) {
    const Tensor& given = *node.input(3)->constant;
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t row = 0; row < rows; ++row) {
        const bool is_late = gates == 3 && row >= 2 * hidden;
        const double own = given.real(d * 2 * rows + row), recurrent = given.real(d * 2 * rows + rows + row);
        sums[static_cast<size_t>(d * rows + row)] = static_cast<float>(is_late ? own : own + recurrent);
        if (is_late) late[static_cast<size_t>(d * hidden + row - 2 * hidden)] = static_cast<float>(recurrent);
      }
  }
  return {Tensor::of<float>({directions, rows}, std::span<const float>(sums)),
          Tensor::of<float>({directions, hidden}, std::span<const float>(late))};
}

/// A state has an element for each hidden unit of each sequence, the input's batch, and each direction.
void require_state(const LoadContext& context, const Place& place, int64_t count) {
  if (!place.given()) return;
  const Dims& dims = context.dims_of(place);
  HONE_CHECK(elements(dims) == count, "a recurrent layer in the plan begins with {}", join_dims(dims));
}

struct RecurrentFamily {
  static constexpr std::string_view kName = "recurrent";
  static constexpr int kVersion = 3;
  using Params = NoParams;
  using Code = RecurrentCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::lstm) || node->is(ops::gru))) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cuda",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node& node = *problem.only();
    const Tensor &w = *node.input(1)->constant, &r = *node.input(2)->constant;
    const int64_t gates = gates_of(node), hidden = r.dims()[2], width = w.dims()[2], directions = r.dims()[0];
    const Spread spread = *spread_of(gates, hidden);
    const auto [bias, late] = biases_of(node, directions, hidden);
    Built<Code> built;
    built.constants = {columns_first(w), columns_first(r), bias, late};
    built.code = {.x = input_index(problem.region, node.input(0)),
                  .first_h = place_of(problem, node.input(5), built.constants),
                  .first_c = place_of(problem, node.input(6), built.constants),
                  .rows = gates * hidden,
                  .width = width,
                  .directions = directions,
                  .backwards = node.attrs.text("direction") == "reverse",
                  .blocks = spread.blocks,
                  .threads = gates * spread.units * spread.parts};
    for (size_t i = 0; i < std::min<size_t>(node.outputs.size(), 3); ++i)
      built.code.outputs[i] = result_of(problem, node.output(i));
    built.source = fmt::format(
        "typedef {} T;\n#define GATES {}\n#define HIDDEN {}\n#define UNITS {}\n#define BLOCKS {}\n#define PARTS {}\n"
        "#define WIDTH {}\n",
        type_name(node.input(0)->type.dtype), gates, hidden, spread.units, spread.blocks, spread.parts, width);
    built.source += declare<InputsParameters, StepsParameters>() + kernels::recurrent;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Dims& in = context.dims_of({PlaceKind::input, code.x});
    HONE_CHECK(in.size() == 3 && in[0] > 0 && in[1] > 0 && in[1] < 65536 && in[2] == code.width,
               "a recurrent layer in the plan reads {}", join_dims(in));
    HONE_CHECK(context.constants.size() >= 4 && context.constants[2].dims == (Dims{code.directions, code.rows}),
               "a recurrent layer in the plan has {} directions of {} rows", code.directions, code.rows);
    const Dims& units = context.constants[3].dims;
    for (const Place& state : {code.first_h, code.first_c}) require_state(context, state, elements(units) * in[1]);
    require_sizes(Dims{code.directions, in[0], in[1], code.rows});
    const Sizes sizes{.steps = static_cast<int32_t>(in[0]),
                      .batch = static_cast<int32_t>(in[1]),
                      .directions = static_cast<int32_t>(code.directions),
                      .backwards = code.backwards};
    const InputsParameters inputs{
        .x = input(code.x), .weights = constant(0), .bias = constant(2), .result = to_workspace(), .sizes = sizes};
    const StepsParameters steps{.inputs = from_workspace(),
                                .weights = constant(1),
                                .late_bias = constant(3),
                                .first_h = code.first_h.pointer(),
                                .first_c = code.first_c.pointer(),
                                .y = result_pointer(code.outputs[0]),
                                .last_h = result_pointer(code.outputs[1]),
                                .last_c = result_pointer(code.outputs[2]),
                                .sizes = sizes};
    std::vector<GridLaunch> launches{
        launch_of(*context.module, inputs,
                  {{blocks_of(in[0] * in[1], 8), blocks_of(code.rows, 128), code.directions}, 128}),
        launch_of(*context.module, steps,
                  {{code.blocks, code.directions, in[1]}, static_cast<unsigned>(code.threads)})};
    const auto workspace = static_cast<size_t>(code.directions * in[0] * in[1] * code.rows) * sizeof(float);
    return std::make_shared<GridKernel>(context.module, std::move(launches), workspace);
  }
};

}  // namespace

const CudaTactic tactics::recurrent = describe<RecurrentFamily>();

}  // namespace hone::cuda
