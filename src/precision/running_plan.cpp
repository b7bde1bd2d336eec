// SPDX-License-Identifier: Apache-2.0
#include "precision/running_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "perf/random_input.h"
#include "tensor/difference.h"
#include "tensor/layout.h"

namespace hone {
namespace {

constexpr double kBurstMs = 20;
constexpr int kMostInBurst = 50;
constexpr int kProfiledRuns = 5;

class StepTimes final : public Profiler {
 public:
  void layer(const Step& step, double milliseconds) override { all_[&step].push_back(milliseconds); }
  double of(const Step& step) const {
    const auto found = all_.find(&step);
    return found == all_.end() ? 0 : median(found->second);
  }

 private:
  std::map<const Step*, std::vector<double>> all_;
};

bool is_within(const Dims& dims, const ProfileRange& range) {
  if (dims.size() != range.min.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < range.min[i] || dims[i] > range.max[i]) return false;
  return true;
}

/// The largest relative difference of two tensors of a name; NaN where an element is no number in one alone.
double error_between(const NamedTensors& found, const NamedTensors& expected) {
  double largest = 0;
  for (const auto& [name, tensor] : expected) {
    const double error = relative_difference(found.at(name), tensor);
    if (std::isnan(error)) return error;
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace

RunningPlan::RunningPlan(Plan plan, const Backend& backend, const std::shared_ptr<Device>& device, const Sample& sample,
                         const NamedTensors* expected, const OperatorList& operators)
    : plan_(std::move(plan)) {
  std::unique_ptr<ExecutionContext> context = Engine::load(plan_, backend, device, operators)->context();
  set_shapes(*context, sample);
  query_ = std::make_unique<Query>(std::move(context), false);
  query_->allocate();
  run(sample);
  if (expected != nullptr) error_ = error_between(outputs_, *expected);
}

void RunningPlan::run(const Sample& sample) {
  fill_inputs(sample);
  query_->upload();
  usual_ms_ = query_->run(now_ms()).compute();
  query_->download();
  read_outputs();
}

void RunningPlan::set_shapes(ExecutionContext& context, const Sample& sample) const {
  for (const ProfileRange& range : plan_.profiles[0].ranges) {
    const auto given = sample.find(range.tensor);
    const bool fits = given != sample.end() && is_within(given->second.dims(), range);
    context.set_shape(range.tensor, fits ? given->second.dims() : range.opt);
  }
}

void RunningPlan::fill_inputs(const Sample& sample) {
  for (const IoTensor& io : plan_.io) {
    if (!io.is_input) continue;
    const Dims dims = query_->context().shape(io.name);
    const std::span<std::byte> memory(query_->host(io.name), static_cast<size_t>(query_->context().bytes(io.name)));
    const auto given = sample.find(io.name);
    if (given == sample.end() || given->second.dims() != dims || given->second.dtype() != io.type.dtype) {
      fill_random(io, dims, memory);
      continue;
    }
    std::memset(memory.data(), 0, memory.size());
    convert_layout(given->second.bytes().data(), memory.data(), io.type.dtype, dims, Layout::linear, io.type.layout);
  }
}

void RunningPlan::read_outputs() {
  ExecutionContext& context = query_->context();
  for (const IoTensor& io : plan_.io) {
    if (io.is_input || is_object(io.type.dtype) || io.type.dtype == DType::string) continue;
    const Dims dims = context.shape(io.name);
    AlignedBuffer linear(static_cast<size_t>(byte_size(io.type.dtype, dims)));
    convert_layout(query_->host(io.name), linear.data(), io.type.dtype, dims, io.type.layout, Layout::linear);
    outputs_.insert_or_assign(io.name, Tensor(io.type.dtype, dims, Blob::own(std::move(linear))));
  }
}

double RunningPlan::burst() {
  query_->run(now_ms());
  const int count = std::clamp(static_cast<int>(kBurstMs / std::max(usual_ms_, 1e-3)), 1, kMostInBurst);
  std::vector<double> ms;
  for (int i = 0; i < count; ++i) ms.push_back(query_->run(now_ms()).compute());
  return usual_ms_ = median(std::move(ms));
}

std::vector<LayerTime> RunningPlan::layer_times() {
  StepTimes times;
  query_->context().set_profiler(&times);
  for (int i = 0; i < kProfiledRuns; ++i) query_->run(now_ms());
  query_->context().set_profiler(nullptr);
  std::vector<LayerTime> result;
  for (const Step& step : query_->context().engine().plan().profiles[0].steps)
    result.push_back({step.origin, times.of(step)});
  return result;
}

}  // namespace hone
