// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/layer_errors.h"

#include <algorithm>
#include <cmath>

#include "tools/accuracy/paused_run.h"

namespace hone {
namespace {

using Counterparts = std::map<std::string, Counterpart, std::less<>>;

const Profile& profile_of(const Plan& plan) { return plan.profiles[0]; }

const Counterpart* find(const Counterparts& counterparts, const BufferSlot& slot) {
  const auto found = counterparts.find(slot.name);
  if (found == counterparts.end() || !limits_of(slot.type.dtype, found->second.scale)) return nullptr;
  return &found->second;
}

/// What a layer computes: views and copies compute nothing.
bool computes(const Step& step) { return step.code >= 0 && step.kind != "Reformat"; }

std::set<std::string> real_tensors(const Graph& graph) {
  std::set<std::string> names;
  for (const Node* node : graph.nodes())
    for (const Value* output : node->outputs)
      if (limits_of(output->type.dtype, std::nullopt)) names.insert(output->name);
  names.erase("");
  return names;
}

}  // namespace

/// Three inferences side by side.
class LayerErrors::Pass {
 public:
  Pass(LayerErrors& owner, const Sample& sample)
      : owner_(owner), free_(owner.free_, sample), led_(owner.led_, sample), exact_(owner.exact_, sample) {
    for (const Step& step : profile_of(owner.free_.plan()).steps)
      for (const BufferId id : compared(step)) ++uses_[owner.counterpart(id)->tensor];
  }

  void run() {
    const std::vector<Step>& steps = profile_of(owner_.free_.plan()).steps;
    for (size_t i = 0; free_.next() != nullptr; ++i) {
      led_.next();
      for (const BufferId id : compared(steps[i])) compare(id);
    }
  }

 private:
  std::vector<BufferId> compared(const Step& step) const {
    std::vector<BufferId> ids;
    for (const BufferId id : step.outputs)
      if (computes(step) && owner_.counterpart(id) != nullptr) ids.push_back(id);
    return ids;
  }

  void compare(BufferId id) {
    const Counterpart& counterpart = *owner_.counterpart(id);
    const std::optional<Tensor> free = free_.context().buffer_value(id), led = led_.context().buffer_value(id);
    const std::vector<float>* exact = exact_values(counterpart.tensor);
    if (free && led && exact != nullptr && exact->size() == static_cast<size_t>(free->size())) {
      Row& row = owner_.rows_[id];
      row.free.add(*real_values(*free, counterpart.scale), *exact);
      row.led.add(*real_values(*led, counterpart.scale), *exact);
      count(row, *exact, *limits_of(free->dtype(), counterpart.scale));
      led_.context().set_buffer_value(id, rounded(*exact, led->dtype(), led->dims(), counterpart.scale));
    }
    if (--uses_.at(counterpart.tensor) == 0) waiting_.erase(counterpart.tensor);
  }

  /// Lets the exact inference run on until it has the tensor; null where it has none.
  const std::vector<float>* exact_values(const std::string& tensor) {
    auto found = waiting_.find(tensor);
    while (found == waiting_.end()) {
      const Step* step = exact_.next();
      if (step == nullptr) return nullptr;
      if (step == &profile_of(owner_.exact_.plan()).steps.front()) keep_inputs();
      for (const BufferId id : step->outputs) keep(id);
      found = waiting_.find(tensor);
    }
    return &found->second;
  }

  void keep_inputs() {
    const std::vector<BufferSlot>& buffers = profile_of(owner_.exact_.plan()).buffers;
    for (size_t id = 0; id < buffers.size(); ++id)
      if (buffers[id].kind == BufferKind::input) keep(static_cast<BufferId>(id));
  }

  void keep(BufferId id) {
    const std::string& name = profile_of(owner_.exact_.plan()).buffers[static_cast<size_t>(id)].name;
    const auto uses = uses_.find(name);
    if (uses == uses_.end() || uses->second == 0 || waiting_.contains(name)) return;
    const std::optional<Tensor> value = exact_.context().buffer_value(id);
    std::optional<std::vector<float>> values = value ? real_values(*value, std::nullopt) : std::nullopt;
    if (!values) return;
    waiting_.emplace(name, std::move(*values));
    owner_.most_waiting_ = std::max(owner_.most_waiting_, waiting_.size());
  }

  static void count(Row& row, std::span<const float> exact, const TypeLimits& limits) {
    for (const float value : exact) {
      if (!std::isfinite(value)) continue;
      const double x = value;
      row.low = row.elements == 0 ? x : std::min(row.low, x);
      row.high = row.elements == 0 ? x : std::max(row.high, x);
      ++row.elements;
      row.beyond += x < limits.low || x > limits.high;
      row.below += x != 0 && std::abs(x) < limits.least;
    }
  }

  LayerErrors& owner_;
  PausedRun free_, led_, exact_;
  std::map<std::string, int> uses_;                    // that are to come
  std::map<std::string, std::vector<float>> waiting_;  // in FP32, until their layer has computed them
};

LayerErrors::LayerErrors(RunningPlan& free, RunningPlan& led, RunningPlan& exact, const Counterparts& counterparts)
    : free_(free), led_(led), exact_(exact), counterparts_(counterparts) {
  for (const BufferSlot& slot : profile_of(exact.plan()).buffers) exact_names_.insert(slot.name);
}

const Counterpart* LayerErrors::counterpart(BufferId id) const {
  const Counterpart* found = find(counterparts_, profile_of(free_.plan()).buffers[static_cast<size_t>(id)]);
  return found != nullptr && exact_names_.contains(found->tensor) ? found : nullptr;
}

void LayerErrors::add(const Sample& sample) { Pass(*this, sample).run(); }

std::vector<LayerError> LayerErrors::errors() const {
  std::vector<LayerError> errors;
  const Profile& profile = profile_of(free_.plan());
  for (const Step& step : profile.steps)
    for (const BufferId id : step.outputs) {
      const auto found = rows_.find(id);
      if (found == rows_.end()) continue;
      const Row& row = found->second;
      const BufferSlot& slot = profile.buffers[static_cast<size_t>(id)];
      const Counterpart& exact = *counterpart(id);
      const auto share = [&](size_t count) {
        return row.elements == 0 ? 0 : static_cast<double>(count) / static_cast<double>(row.elements);
      };
      errors.push_back({.step = &step,
                        .type = slot.type.dtype,
                        .error = row.free.error(exact.tensor),
                        .alone = row.led.error(exact.tensor).relative,
                        .low = row.low,
                        .high = row.high,
                        .limits = *limits_of(slot.type.dtype, exact.scale),
                        .beyond = share(row.beyond),
                        .below = share(row.below)});
    }
  return errors;
}

std::vector<std::string> exact_tensors(const Plan& plan, const Graph& exact, const Counterparts& counterparts) {
  const std::set<std::string> there = real_tensors(exact);
  std::set<std::string> wanted;
  for (const Step& step : profile_of(plan).steps) {
    if (!computes(step)) continue;
    for (const BufferId id : step.outputs) {
      const Counterpart* counterpart = find(counterparts, profile_of(plan).buffers[static_cast<size_t>(id)]);
      if (counterpart != nullptr && there.contains(counterpart->tensor)) wanted.insert(counterpart->tensor);
    }
  }
  return {wanted.begin(), wanted.end()};
}

}  // namespace hone
