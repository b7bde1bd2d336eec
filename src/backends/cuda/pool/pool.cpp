// SPDX-License-Identifier: Apache-2.0
//
// MaxPool and AveragePool of one to three spatial axes.
#include <algorithm>
#include <array>

#include "backends/cuda/family.h"
#include "backends/cuda/support/divisor.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

/// Depth, height and width.
struct Window {
  static constexpr std::string_view kName = "Window";
  int32_t input[3] = {1, 1, 1}, before[3] = {}, after[3] = {};
  Divisor result[3], groups;  // of what a thread takes at once: channels, or results of a row
  static void fields(auto& self, auto& visit) {
    visit("input", self.input);
    visit("before", self.before);
    visit("after", self.after);
    visit("result", self.result);
    visit("groups", self.groups);
  }
};

struct PoolParameters {
  static constexpr std::string_view kKernel = "pool";
  Reads x;
  Writes y;
  Window window;
  int32_t channels = 0, count_pad = 0, results = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "T");
    visit("window", self.window);
    visit("channels", self.channels);
    visit("count_pad", self.count_pad);
    visit("results", self.results);
  }
};

constexpr int64_t kPlanes = 4, kMostOfRow = 8;  // planes, and results of a row, of a thread

struct PoolCode {
  WindowAttrs window;
  bool count_padding = false;
  int64_t width = 1;  // channels that a thread may take at once
  int64_t row = 0;    // results of a row, likewise; 0: always one
  static void fields(auto& self, auto& visit) {
    WindowAttrs::fields(self.window, visit);
    visit("count_padding", self.count_padding);
    visit("width", self.width, 1, 16);
    visit("row", self.row, 0, kMostOfRow);
  }
};

Window window_of(const WindowAttrs& attrs, const Dims& in, const Dims& out) {
  Window window;
  const size_t spatial = in.size() - 2;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = 3 - spatial + i;
    const auto [before, after] = attrs.padding(in[2 + i], i);
    window.input[axis] = static_cast<int32_t>(in[2 + i]);
    window.result[axis] = Divisor(out[2 + i]);
    window.before[axis] = static_cast<int32_t>(before);
    window.after[axis] = static_cast<int32_t>(after);
  }
  return window;
}

/// Padding before each row.
int64_t before_row(const WindowAttrs& window) { return window.pads[window.kernel.size() - 1]; }

std::string window_text(const WindowAttrs& attrs) {
  std::string text;
  const size_t spatial = attrs.kernel.size();
  for (size_t axis = 0; axis < 3; ++axis) {
    const std::string_view name = std::array{"DEPTH", "HEIGHT", "WIDTH"}[axis];
    const bool there = axis + spatial >= 3;
    const auto of = [&](const auto& list) { return there ? list[axis + spatial - 3] : 1; };
    text += fmt::format("#define {0} {1}\n#define {0}_STRIDE {2}\n#define {0}_DILATION {3}\n", name, of(attrs.kernel),
                        of(attrs.strides), of(attrs.dilations));
  }
  return text;
}

/// How many results of a row a thread may make together: where it reads little beyond what lies side by side with them.
int64_t row_of(const WindowAttrs& window, DType dtype) {
  constexpr int64_t kMostBeside = 4, kMostStride = 2, kMostSteps = 16;
  const int64_t kernel = window.kernel.back(), stride = window.strides.back(), before = before_row(window);
  const bool fits = window.auto_pad == "NOTSET" && window.dilations.back() == 1 && stride <= kMostStride &&
                    before >= 0 && before <= kMostBeside && kernel - before - stride <= kMostBeside &&
                    std::ranges::all_of(window.kernel, [](int64_t size) { return size <= kMostSteps; });
  return fits ? std::min(vector_width(dtype), kMostOfRow) : 0;
}

/// Whether all that lies side by side with a thread's results is there, in whole vectors.
bool in_rows(const PoolCode& code, int64_t in, int64_t out) {
  return code.row > 0 && out % code.row == 0 && in % code.row == 0 && in >= out * code.window.strides.back();
}

struct PoolFamily {
  static constexpr std::string_view kName = "pool";
  static constexpr int kVersion = 6;
  using Params = NoParams;
  using Code = PoolCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::max_pool) || node->is(ops::average_pool))) return;
    const bool codes = node->is(ops::max_pool) && node->input(0)->type.dtype == DType::i8;
    if (std::string reason = codes ? reason_not_unary(problem, *node) : reason_not_float(problem, *node);
        !reason.empty())
      return out.refuse(kName, std::move(reason));
    if (problem.region.outputs()[0] != node->output(0)) return out.refuse(kName, "indices are wanted");
    const size_t rank = node->input(0)->type.shape.rank();
    if (rank < 3 || rank > 5) return out.refuse(kName, fmt::format("{} spatial axes", rank - 2));
    offer_layouts(problem, "cuda", kName, out);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    const Node* node = problem.only();
    const DType dtype = node->output()->type.dtype;
    const bool channels_last = tactic.in[0] == Layout::channels_last;
    const WindowAttrs window(node->attrs, node->input(0)->type.shape.rank() - 2, {});
    const Code code{.window = window,
                    .count_padding = node->attrs.integer_or("count_include_pad", 0) != 0,
                    .width = channels_last ? vector_width(dtype) : 1,
                    .row = channels_last ? 0 : row_of(window, dtype)};
    const std::string switches = fmt::format(
        "typedef {} T;\n#define NARROW {:d}\n#define MAXIMUM {:d}\n#define CHANNELS_LAST {}\n#define V {}\n#define "
        "MOST_PLANES {}\n",
        type_name(dtype), size_of(dtype) <= 2, node->is(ops::max_pool), channels_last, code.width, kPlanes);
    std::string source = switches + window_text(window) + declare<PoolParameters>() + kernels::division + kernels::pool;
    if (code.row > 0)
      source += fmt::format("#define ROW {}\n#define LEFT {}\n", code.row, before_row(window)) + kernels::pool_rows;
    return {code, std::move(source)};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1,
               "a pool in the plan has {} inputs", context.shapes.inputs.size());
    const Dims &in = context.shapes.inputs[0].dims, &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() >= 3 && in.size() <= 5 && in.size() == out.size() && in[0] == out[0] && in[1] == out[1],
               "a pool in the plan turns {} into {}", join_dims(in), join_dims(out));
    code.window.check(in.size() - 2);
    const bool columns = code.width > 1 && in[1] % code.width == 0;
    const bool rows = in_rows(code, in.back(), out.back()) && context.fills(elements(out) / code.row);
    const bool planes =
        !rows && code.width == 1 && out[0] * out[1] % kPlanes == 0 && context.fills(elements(out) / kPlanes);
    const int64_t results = elements(out) / (columns ? code.width : rows ? code.row : planes ? kPlanes : 1);
    HONE_CHECK(results > 0 && results < int64_t{1} << 31, "a pool in the plan has {} results", results);
    Window window = window_of(code.window, in, out);
    window.groups = Divisor(rows ? out.back() / code.row : in[1] / (columns ? code.width : 1));
    const PoolParameters parameters{.x = input(0),
                                    .y = output(0),
                                    .window = window,
                                    .channels = static_cast<int32_t>(in[1]),
                                    .count_pad = code.count_padding,
                                    .results = static_cast<int32_t>(results)};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(results, 128)}, 128},
                                     columns  ? "_columns"
                                     : rows   ? "_rows"
                                     : planes ? "_planes"
                                              : ""));
  }
};

}  // namespace

const CudaTactic tactics::pool = describe<PoolFamily>();

}  // namespace hone::cuda
