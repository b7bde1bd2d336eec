// SPDX-License-Identifier: Apache-2.0
//
// LayerProfile: collects the time of every layer over a run and prints it as a table or as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/engine.h"

namespace hone {

class LayerProfile : public Profiler {
 public:
  /// For the steps of one profile of a plan, which must outlive this; all of them are listed, run or not.
  /// Where the device's ceilings are known, the report also says what part of them each layer reaches.
  explicit LayerProfile(const Profile& profile, const Ceilings& ceilings = {});

  void layer(const Step& step, double milliseconds) override;

  /// Iterations seen, warm-up included.
  size_t iterations() const { return totals_.size(); }
  void print(const Logger& log) const;
  std::string json() const;

 private:
  struct Layer {
    std::string name, source;
    int64_t flops = 0, bytes = 0;     // at the shapes that were tuned for
    double floor_ms = 0;              // what the ceilings allow; 0 when unknown
    bool moves = false;               // rather than computes, at the floor
    std::vector<float> samples = {};  // ms
  };
  void print_shares(const Logger& log, float total) const;
  void print_sum(const Logger& log) const;

  const Step* first_;  // of the plan
  Ceilings ceilings_;
  std::vector<Layer> layers_;
  std::vector<float> totals_;  // ms of every iteration
  size_t previous_ = 0;        // layer reported last
};

}  // namespace hone
