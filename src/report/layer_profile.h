// SPDX-License-Identifier: Apache-2.0
//
// LayerProfile: collects the time of every layer over a run and prints it as a table or as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "tensor/tensor.h"

namespace hone {

/// A layer of an engine, as far as a profile tells of it.
struct ProfiledLayer {
  std::string name, source;
  bool is_view = false;          // launches nothing
  int64_t flops = 0, bytes = 0;  // at the shapes that were tuned for; 0: not known
  DType operand = DType::f16;    // of its first input
};

/// What the device has been seen to do at best, per second; 0: not known.
struct ProfileCeilings {
  double bytes = 0, f16_flops = 0, f32_flops = 0, i8_flops = 0;
  /// What layers with operands of that type can reach.
  double flops_of(DType operand) const;
};

class LayerProfile {
 public:
  /// All layers, in the order of execution, are listed, run or not. Where the device's ceilings are known, the report also says what
  /// part of them each layer reaches.
  explicit LayerProfile(const std::vector<ProfiledLayer>& layers, const ProfileCeilings& ceilings = {});

  /// A layer has run: of several that are called so, the next in the order.
  void layer(std::string_view name, double milliseconds);

  /// Iterations seen, warm-up included.
  size_t iterations() const { return totals_.size(); }
  void print(const Logger& log) const;
  std::string json() const;

 private:
  struct Layer {
    ProfiledLayer what;
    double floor_ms = 0;              // what the ceilings allow; 0 when unknown
    bool moves = false;               // rather than computes, at the floor
    std::vector<float> samples = {};  // ms
  };
  void print_shares(const Logger& log, float total) const;
  void print_sum(const Logger& log) const;
  size_t next_called(std::string_view name) const;

  ProfileCeilings ceilings_;
  std::vector<Layer> layers_;
  std::vector<float> totals_;  // ms of every iteration
  size_t previous_ = 0;        // layer reported last
};

}  // namespace hone
