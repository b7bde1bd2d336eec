// SPDX-License-Identifier: Apache-2.0

#include "regions/squeeze_excite.h"

#include <algorithm>

#include "ops/ops.h"
#include "regions/reduce_axes.h"
#include "regions/region_match.h"

namespace hone {
namespace {

bool is_one_pixel(const Shape& shape) {
  return shape.rank() >= 3 && std::all_of(shape.begin() + 2, shape.end(), [](const Dim& dim) { return dim == Dim(1); });
}

bool pools_pixels(const Node& node) {
  if (node.is(ops::global_average_pool)) return true;
  if (!node.is(ops::reduce_mean) || !is_one_pixel(node.output()->type.shape)) return false;
  const std::optional<Dims> axes = reduced_axes(node);
  const size_t rank = node.input(0)->type.shape.rank();
  return axes && axes->size() == rank - 2 && std::find(axes->begin(), axes->end(), 0) == axes->end() &&
         std::find(axes->begin(), axes->end(), 1) == axes->end();
}

bool is_matmul_of_one_pixel(const Node& node) {
  const auto constant = [](const Value* value) { return value == nullptr || value->is_constant(); };
  if (!node.is(ops::conv) || node.attrs.integer("group") != 1 || !constant(node.input(1)) || !constant(node.input(2)))
    return false;
  const Dims pads = node.attrs.has("pads") ? node.attrs.integers("pads") : Dims{};
  return is_one_pixel(node.output()->type.shape) && is_one_pixel(node.input(1)->type.shape) &&
         std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
}

/// Walks a chain in which every value has one reader.
class Chain {
 public:
  explicit Chain(const Graph& region) : region_(region), nodes_(region.nodes()) {}
  const Node* next() const {
    if (at_ >= nodes_.size()) return nullptr;
    const Node* node = nodes_[at_];
    const bool joined = at_ == 0 || (node->input(0) == nodes_[at_ - 1]->output() && node->input(0)->uses.size() == 1 &&
                                     !region_.is_output(node->input(0)));
    return joined ? node : nullptr;
  }
  const Node* take() { return nodes_[at_++]; }
  /// Roundings, and at most one activation among them.
  std::vector<EpilogueStep> take_steps(bool activates) {
    std::vector<EpilogueStep> steps;
    for (const Node* node = next(); node != nullptr; node = next()) {
      const std::optional<Activation> activation = activates ? activation_of(*node) : std::nullopt;
      if (node->is(ops::fake_quantize))
        steps.push_back({.kind = EpilogueStep::Kind::rounding, .rounding = rounding_of(*node)});
      else if (activation) steps.push_back({.kind = EpilogueStep::Kind::activation, .activation = *activation});
      else break;
      activates = activates && !activation;
      ++at_;
    }
    return steps;
  }
  bool ended() const { return at_ == nodes_.size(); }

 private:
  const Graph& region_;
  const std::vector<Node*> nodes_;
  size_t at_ = 0;
};

}  // namespace

std::optional<SqueezeExcite> read_squeeze_excite(const Graph& region) {
  Chain chain(region);
  SqueezeExcite result;
  if (chain.next() == nullptr || !pools_pixels(*chain.next())) return std::nullopt;
  result.pool = chain.take();
  result.pooled = chain.take_steps(false);
  if (chain.next() == nullptr || !is_matmul_of_one_pixel(*chain.next())) return std::nullopt;
  result.squeeze = chain.take();
  result.squeezed = chain.take_steps(true);
  if (chain.next() == nullptr || !is_matmul_of_one_pixel(*chain.next())) return std::nullopt;
  result.excite = chain.take();
  result.excited = chain.take_steps(true);
  return chain.ended() ? std::optional(result) : std::nullopt;
}

}  // namespace hone
