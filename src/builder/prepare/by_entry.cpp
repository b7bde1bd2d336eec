// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/by_entry.h"

#include <algorithm>

#include "builder/problem.h"
#include "plan/turns.h"
#include "tuner/few_rows.h"

namespace hone {
namespace {

/// What a layer reads and writes of tensors may be this share of the last cache: others use it, too.
constexpr double kCacheShare = 0.25;

class Marker {
 public:
  Marker(const BuildSession& session, const ProfilePoints& points)
      : session_(session),
        points_(points),
        most_bytes_(kCacheShare * static_cast<double>(session.device.info().shared_cache_bytes)) {}

  void run(std::vector<Region>& regions) {
    const std::vector<Value*>& inputs = session_.graph.inputs();
    if (most_bytes_ == 0 || inputs.empty() || inputs[0]->type.shape.rank() == 0 || session_.options.debug_unfused ||
        !session_.graph.size_deciders().empty())
      return;
    count_ = inputs[0]->type.shape[0];
    const int64_t entries = count_.evaluate(points_.opt);
    if (entries < 2 || count_.evaluate(points_.max) > kMostRounds ||
        std::ranges::none_of(regions, [this](const Region& region) { return is_large(region); }))
      return;
    for (const Value* input : inputs)
      if (input->type.shape.rank() > 0 && input->type.shape[0] == count_) batches_.insert(input);
    std::vector<Region*> head;
    size_t marked = 0;
    for (Region& region : regions) {
      if (!goes_apart(region)) continue;
      batches_.insert(region.outputs.begin(), region.outputs.end());
      head.push_back(&region);
      if (is_large(region)) marked = head.size();
    }
    if (marked < 2) return;  // it is what they hand on that stays in a cache
    for (size_t i = 0; i < marked; ++i) head[i]->rounds = entries;
    std::stable_partition(regions.begin(), regions.end(), [](const Region& region) { return region.rounds > 1; });
    session_.listeners.tell(&BuildListener::head_goes_by_entry, marked, entries);
  }

 private:
  bool is_large(const Region& region) const {
    double bytes = 0;
    for (const auto* list : {&region.inputs, &region.outputs})
      for (const Value* value : *list) {
        const TensorType& type = value->type;
        if (!type.ranked || is_object(type.dtype)) return false;
        bytes += static_cast<double>(byte_size(type.dtype, type.shape.evaluate(points_.opt)));
      }
    return bytes > most_bytes_;
  }

  bool goes_apart(const Region& region) const {
    const auto is_batch = [this](const Value* value) { return batches_.contains(value); };
    const auto has_bytes = [](const Value* value) { return bits_of(value->type.dtype) >= 8; };  // so has an entry
    if (region.is_view || region.inputs.empty() || !std::ranges::all_of(region.inputs, is_batch) ||
        !std::ranges::all_of(region.outputs, has_bytes))
      return false;
    const Problem problem = make_problem(region, points_.opt, session_.device.info(), {});
    return one_entry_of(problem.region, Dim(count_.evaluate(points_.opt))) && one_entry_of(problem.symbolic, count_);
  }

  const BuildSession& session_;
  const ProfilePoints& points_;
  const double most_bytes_;
  Dim count_{1};
  std::unordered_set<const Value*> batches_;  // tensors with an entry for each of the network's
};

}  // namespace

void mark_by_entry(const BuildSession& session, const ProfilePoints& points, std::vector<Region>& regions) {
  Marker(session, points).run(regions);
}

Problem of_one_entry(Problem problem, const Region& region) {
  problem.region = *one_entry_of(problem.region, Dim(region.rounds));
  problem.symbolic = *one_entry_of(problem.symbolic, region.inputs[0]->type.shape[0]);
  return problem;
}

TensorType entry_type(TensorType type) {
  type.shape[0] = Dim(1);
  return type;
}

Turns::Turns(const Graph& graph, std::span<const Layer> layers) : graph_(graph) {
  for (const Layer& layer : layers) {
    if (layer.region.rounds == 1) continue;
    rounds_ = layer.region.rounds;
    nodes_.insert(layer.region.nodes.begin(), layer.region.nodes.end());
  }
}

bool Turns::seen_inside(const Value& value) const {
  return nodes_.contains(value.producer) ||
         std::ranges::any_of(value.uses, [this](const Use& use) { return nodes_.contains(use.node); });
}

bool Turns::seen_outside(const Value& value) const {
  return graph_.is_output(&value) ||
         std::ranges::any_of(value.uses, [this](const Use& use) { return !nodes_.contains(use.node); });
}

}  // namespace hone
