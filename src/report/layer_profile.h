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
  explicit LayerProfile(const Profile& profile);

  void layer(const Step& step, double milliseconds) override;

  /// Iterations seen, warm-up included.
  size_t iterations() const { return totals_.size(); }
  void print(const Logger& log) const;
  std::string json() const;

 private:
  struct Layer {
    std::string name;
    std::vector<float> samples;  // ms
  };

  const Step* first_;  // of the plan
  std::vector<Layer> layers_;
  std::vector<float> totals_;  // ms of every iteration
  size_t previous_ = 0;        // layer reported last
};

}  // namespace hone
