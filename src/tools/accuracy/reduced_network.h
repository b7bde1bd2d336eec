// SPDX-License-Identifier: Apache-2.0
//
// A network that is built in few bits, with any of its nodes left in FP32, and how near it comes to FP32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "builder/options.h"
#include "precision/running_plan.h"
#include "tools/common/keep_list.h"
#include "tools/common/progress.h"
#include "tools/model/data_set.h"
#include "tools/model/handles.h"
#include "tuner/timing_cache.h"

namespace hone {

/// One way to build it.
struct Trial {
  NodeNames kept;    // in FP32
  double error = 0;  // the largest relative one of an output
  double ms = 0;     // of an inference
};

/// The first few batches of a data set; one of values drawn at random where there is none.
class Samples {
 public:
  explicit Samples(std::unique_ptr<DataSet> data) : data_(std::move(data)) {}
  size_t count() const { return data_ == nullptr ? 1 : data_->batches(); }
  Sample at(size_t batch) const { return data_ == nullptr ? Sample() : data_->values(batch); }
  const DataSet* data() const { return data_.get(); }

 private:
  std::unique_ptr<DataSet> data_;
};

class ReducedNetwork {
 public:
  /// `options` allow the types; `exact` is the network in FP32, which may be the same. All have to stay.
  ReducedNetwork(const hone_model& model, const hone_model& exact, const hone_device& device,
                 const BuildOptions& options, const Samples& samples);

  /// All times that tuning has taken serve later builds.
  Plan plan(const NodeNames& kept);
  /// In FP32, unfused around these tensors.
  Plan exact_plan(const std::vector<std::string>& tensors) const;
  std::unique_ptr<RunningPlan> running(Plan plan) const;
  /// Builds and measures.
  Trial trial(const NodeNames& kept);
  /// Of the exact plan.
  double exact_ms() const { return exact_ms_; }
  const Samples& samples() const { return samples_; }

 private:
  const hone_model &model_, &exact_;
  const hone_device& device_;
  const BuildOptions& options_;
  const Samples& samples_;
  TimingCache cache_;
  std::vector<NamedTensors> expected_;  // outputs in FP32, by batch
  double exact_ms_ = 0;
};

/// Of layers by their nodes, the worst first, so many to keep that the error is within the budget, and of their nodes those that it
/// takes. What is kept in the end is the last of the trials, even where all of them are not enough.
std::vector<Trial> fewest_kept(ReducedNetwork& network, const std::vector<std::vector<std::string>>& worst_first,
                               double budget, Progress& progress);

}  // namespace hone
