// SPDX-License-Identifier: Apache-2.0
//
// Operators that only move elements: see kernels/strided_copy.h for how, tactics/copy_plan.h for which.
#include <algorithm>

#include "backends/cpu/tactic_table.h"
#include "backends/cpu/kernels/strided_copy.h"
#include "backends/regions/copy_request.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

bool is_flat(std::string_view op) { return op == "Identity" || op == "View" || op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze"; }

bool image_rank(const Value* value) { return value->type.shape.rank() >= 3 && value->type.shape.rank() <= 5; }

constexpr Layout kPadded[] = {Layout::blocked8, Layout::blocked16, Layout::blocked2, Layout::blocked4, Layout::blocked32, Layout::channels_last8, Layout::channels_last16};

void offer(const Problem& problem, Layout in, Layout result, Candidates& out) {
  const Graph& region = problem.region;
  const auto layouts = [](const std::vector<Value*>& values, Layout layout) {
    std::vector<Layout> list;
    for (const Value* value : values) list.push_back(image_rank(value) ? layout : Layout::linear);
    return list;
  };
  out.offer({"cpu", "copy", {}, layouts(region.inputs(), in), layouts(region.outputs(), result)});
}

void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !has_copy_plan(node->op_name())) return;
  Attrs attrs;
  std::vector<Tensor> constants;
  if (std::string reason = read_copy(problem, attrs, constants); !reason.empty()) return out.refuse("copy", std::move(reason));
  const std::string_view op = node->op_name();
  constexpr Layout kL = Layout::linear, kC = Layout::channels_last;
  const bool image = image_rank(node->output()) && node->input(0)->type.shape.rank() == node->output()->type.shape.rank();
  if (op == "Reformat") {
    if (!image) return offer(problem, kL, kL, out);
    offer(problem, kL, kC, out);
    offer(problem, kC, kL, out);
    for (const Layout padded : kPadded)
      for (const Layout plain : {kL, kC}) offer(problem, plain, padded, out), offer(problem, padded, plain, out);
    return;
  }
  offer(problem, kL, kL, out);
  if (!image || (is_flat(op) && op != "Identity")) return;
  offer(problem, kC, kC, out);
  if (op != "Transpose") return;
  offer(problem, kC, kL, out);
  offer(problem, kL, kC, out);
}

Compiled compile(const Problem& problem, const Tactic&) {
  Attrs attrs;
  Compiled compiled;
  const std::string reason = read_copy(problem, attrs, compiled.constants);
  HONE_ASSERT(reason.empty(), "refused after all: {}", reason);
  compiled.code = encode_code("copy", attrs);
  return compiled;
}

class Copy final : public CpuKernel {
 public:
  Copy(const CopyRequest& request, const std::vector<CopyStep>& steps) {
    for (const CopyStep& step : steps) {
      const CopySource& source = request.sources[static_cast<size_t>(step.source)];
      parts_.push_back({CopyLoops(step.copy, size_of(source.type.dtype)), source.index, step.destination, items_});
      items_ += parts_.back().loops.items();
      elements_ += parts_.back().loops.elements();
    }
  }
  bool serial() const override { return elements_ < 4096; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(items_, worker, workers);
    for (const Part& part : parts_) {
      const int64_t begin = std::max(share.begin, part.first), end = std::min(share.end, part.first + part.loops.items());
      if (begin >= end) continue;
      const void* source = part.source >= 0 ? bindings.inputs[static_cast<size_t>(part.source)] : bindings.constants[static_cast<size_t>(-1 - part.source)];
      part.loops.run(begin - part.first, end - part.first, source, bindings.outputs[static_cast<size_t>(part.destination)]);
    }
  }

 private:
  struct Part {
    CopyLoops loops;
    int source, destination;
    int64_t first;                // number of its first item
  };
  std::vector<Part> parts_;
  int64_t items_ = 0, elements_ = 0;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo&) {
  const CopyRequest request = copy_request(attrs, shapes);
  return std::make_shared<Copy>(request, plan_copies(request));
}

}  // namespace

const CpuTactic tactics::copy = {"copy", propose, compile, load};

}  // namespace hone::cpu
