// SPDX-License-Identifier: Apache-2.0
//
// A build's events as a tree of phases:
//
//   build
//     FP16                (with --best: one for each network that is built)
//       prepare           1 step: passes
//       profile 0         3 steps
//         tune            a step for each layer
//         choose          1 step: reformats, tactics and layouts together
//         write           1 step: kernels compiled, weights packed
//
// Without --best phases of a network are the root's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ranges.h"
#include "builder/events/listener.h"
#include "hone/tools.h"

namespace hone::capi {

class ProgressTree final : public BuildListener {
 public:
  explicit ProgressTree(const hone_progress& told);
  /// Whether the program wants the end.
  bool stops();
  /// Behind the build: all phases end at their last step.
  void finish();

  void tuning_begun(bool times_are_kept) override;
  void profile_begun(size_t index, size_t count) override;
  void tuning_advanced(size_t done, size_t total) override;
  void tactics_chosen(const Choice& choice, double seconds) override;
  void lowered(const Profile& profile, double seconds) override;
  void precision_begun(std::string_view types) override;
  void precision_timed(std::string_view types, double ms, double error) override;
  void precision_refused(std::string_view types, std::string_view reason) override;

 private:
  struct Phase {
    std::string name;
    int steps = 1, done = 0;
    std::unique_ptr<NamedRange> range = {};  // for a profiler
  };
  void begin(std::string name, int steps);
  void step(int done);
  void end();
  void end_to(size_t depth);

  const hone_progress told_;
  std::vector<Phase> open_;  // the root first
  size_t network_ = 1;       // how many of them stay open while a network is built
  bool stopped_ = false;
};

/// Tells what is best so far: of each layer, and of each network that is built.
class BestSoFar final : public BuildListener {
 public:
  BestSoFar(hone_timed_fn function, void* user) : function_(function), user_(user) {}
  void layer_timed(const Layer& layer, const ProfilePoints& points, double seconds) override;
  void precision_timed(std::string_view types, double ms, double error) override;

 private:
  hone_timed_fn function_;
  void* user_;
};

}  // namespace hone::capi
