// SPDX-License-Identifier: Apache-2.0
//
// LSTM, and GRU with linear_before_reset, as cuDNN's users know them: sigmoid and tanh, constant weights, whole sequences. What
// else ONNX lets them have runs on the host. Needs clusters, whose blocks hold the recurrent weights in registers.
#include <algorithm>
#include <array>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostBlocks = 8, kMostThreads = 512,
                  kMostPart = 128;  // of a cluster; of a block; columns in a thread

struct SizesArgument {
  int32_t steps, batch, directions, backwards;
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
  if (!has_clusters(problem.device.architecture)) return "the card has no clusters";
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
  if (node.is(ops::gru) && node.attrs.integer("linear_before_reset") == 0) return "it resets before the product";
  const Dims &w = node.input(1)->constant->dims(), &r = node.input(2)->constant->dims();
  if (w.size() != 3 || r.size() != 3 || r[1] != gates_of(node) * r[2] || w[1] != r[1] || w[2] == 0)
    return "its weights contradict each other";
  if (node.input(3) != nullptr && node.input(3)->constant->size() != 2 * r[0] * r[1])
    return "its biases have another size";
  if (!spread_of(gates_of(node), r[2])) return fmt::format("{} hidden units", r[2]);
  return {};
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !(node->is(ops::lstm) || node->is(ops::gru))) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("recurrent", std::move(reason));
  out.offer({"cuda",
             "recurrent",
             {},
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
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

/// What is added to the input's part of every gate, and what a GRU adds to its third product: [direction][gate][unit] and
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

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  const Node& node = *problem.only();
  const Tensor &w = *node.input(1)->constant, &r = *node.input(2)->constant;
  const int64_t gates = gates_of(node), hidden = r.dims()[2], width = w.dims()[2], directions = r.dims()[0];
  const Spread spread = *spread_of(gates, hidden);
  Generated result;
  const auto [bias, late] = biases_of(node, directions, hidden);
  result.constants = {columns_first(w), columns_first(r), bias, late};
  result.attrs = {{"rows", gates * hidden}, {"hidden", hidden}, {"width", width}, {"directions", directions}};
  result.attrs.set("backwards", int64_t{node.attrs.text("direction") == "reverse"});
  result.attrs.set("spread", Dims{spread.blocks, gates * spread.units * spread.parts});
  result.attrs.set("x", old_place_of(problem, node.input(0), result.constants));
  result.attrs.set("first_h", old_place_of(problem, node.input(5), result.constants));
  result.attrs.set("first_c", old_place_of(problem, node.input(6), result.constants));
  Dims outputs;
  const auto& wanted = problem.region.outputs();
  for (size_t i = 0; i < 3; ++i) {
    const Value* value = i < node.outputs.size() ? node.output(i) : nullptr;
    const auto at = std::find(wanted.begin(), wanted.end(), value);
    outputs.push_back(value == nullptr || at == wanted.end() ? -1 : at - wanted.begin());
  }
  result.attrs.set("outputs", outputs);
  result.source = fmt::format(
      "typedef {} T;\n#define GATES {}\n#define HIDDEN {}\n#define UNITS {}\n#define BLOCKS {}\n#define PARTS {}\n"
      "#define WIDTH {}\n",
      type_name(node.input(0)->type.dtype), gates, hidden, spread.units, spread.blocks, spread.parts, width);
  result.source += kernels::recurrent;
  return result;
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const Attrs& attrs = context.attrs;
  const int64_t x = attrs.integer("x"), rows = attrs.integer("rows"), width = attrs.integer("width"),
                directions = attrs.integer("directions");
  const Dims &spread = attrs.integers("spread"), &outputs = attrs.integers("outputs");
  HONE_CHECK(x >= 0 && x < static_cast<int64_t>(context.shapes.inputs.size()) && spread.size() == 2 && spread[0] > 0 &&
                 spread[0] <= kMostBlocks && spread[1] > 0 && spread[1] <= kMostThreads && outputs.size() == 3,
             "a recurrent layer in the plan reads input {}", x);
  const Dims& in = context.shapes.inputs[static_cast<size_t>(x)].dims;
  HONE_CHECK(in.size() == 3 && in[0] > 0 && in[1] > 0 && in[1] < 65536 && in[2] == width && rows > 0 && directions > 0,
             "a recurrent layer in the plan reads {}", join_dims(in));
  HONE_CHECK(directions <= 2 && constant_dims(attrs, 2) == (Dims{directions, rows}),
             "a recurrent layer in the plan has {} directions of {} rows", directions, rows);
  require_sizes(Dims{directions, in[0], in[1], rows});
  const SizesArgument sizes{.steps = static_cast<int32_t>(in[0]),
                            .batch = static_cast<int32_t>(in[1]),
                            .directions = static_cast<int32_t>(directions),
                            .backwards = static_cast<int32_t>(attrs.integer("backwards"))};
  GridLaunch inputs{.function = context.module->function("recurrent_inputs"),
                    .grid = {blocks_of(in[0] * in[1], 8), blocks_of(rows, 128), directions},
                    .block = 128};
  inputs.arguments.input(x).constant(0).constant(2).workspace().value(sizes);
  GridLaunch steps{.function = context.module->function("recurrent"),
                   .grid = {spread[0], directions, in[1]},
                   .block = static_cast<unsigned>(spread[1])};
  steps.arguments.workspace().constant(1).constant(3);
  for (const char* name : {"first_h", "first_c"}) add_place(steps.arguments, attrs.integer(name));
  for (const int64_t output : outputs) {
    HONE_CHECK(output >= -1 && output < static_cast<int64_t>(context.shapes.outputs.size()),
               "a recurrent layer in the plan writes output {}", output);
    if (output < 0) steps.arguments.null();
    else steps.arguments.output(output);
  }
  steps.arguments.value(sizes);
  const auto workspace = static_cast<size_t>(directions * in[0] * in[1] * rows) * sizeof(float);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(inputs), std::move(steps)}, workspace);
}

}  // namespace

const CudaTactic tactics::recurrent = describe_old<generate, load>("recurrent", propose);

}  // namespace hone::cuda
