// SPDX-License-Identifier: Apache-2.0
//
// The build side of a backend. A Problem is a region (a small graph) at concrete sizes; a TacticSource proposes ways to
// solve it; a Tactic is a plain value that can be printed, compared, stored; compile() turns it into bytes of the plan.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace hone {

/// Element kinds that tactics may compute in besides f32, and whether zeros among weights of 2:4 structure may be left out: all of
/// the region's have it then.
struct Precision {
  bool f16 = false, bf16 = false, i8 = false, tf32 = true, sparse = false;
};

struct Problem {
  Graph region;          // all sizes known (the opt point); inputs in order, weights are constants
  Graph symbolic;        // the same region with its symbols, for what must hold at every shape
  SymbolValues symbols;  // the opt point: region is symbolic with these put in
  DeviceInfo device;
  Precision allowed;
  std::vector<std::string> targets = {};  // further architectures that compiled code has to serve: "sm_80"
  /// Canonical text of the region: names, origins and weight values removed.
  std::string key() const;
  /// The region's single node, or null when there are more.
  const Node* only() const;
};

/// Whether a region is one node that decides sizes of its result and that a device may run (Traits::most).
bool decides_sizes(const Graph& region);
/// The results of a region as a kernel writes them. Where it decides sizes the first has its largest ones, without gaps between
/// what is there, and an i64 tensor stands behind it, for the sizes that there are.
std::vector<TensorType> result_types(const Graph& region);

struct Tactic {
  std::string source;           // "cpu", "onednn", "reference"
  std::string name;             // family and variant: "conv_nhwc", "softmax_rows"
  Attrs params;                 // what compile() needs to know; small numbers and texts
  std::vector<Layout> in, out;  // layouts of the region's inputs and outputs (dynamic ones only, in region order)
  int64_t workspace = 0;        // bytes at the opt point, 0 when unknown
  bool consistent = true;       // the result does not depend on the number of workers
  /// "cpu.conv_nhwc(mr=14, nv=2) channels_last -> channels_last": unique among the tactics of a problem.
  std::string text() const;
};

/// What an engine gives a kernel of a region whose sizes are known.
KernelShapes shapes_of(const Graph& region, const Tactic& tactic, const SymbolValues& symbols);

/// How a tactic's time compares with what its problem needs at the least (tuner/estimate.h): times the arithmetic at the device's
/// rate of f32 products, times its inputs and outputs at the rate of the caches, times its weights at the rate of the memory.
struct Cost {
  double arithmetic = 1, operands = 1, weights = 1;
};

/// What sources answer to a problem.
class Candidates {
 public:
  void offer(Tactic tactic) { offers_.push_back(std::move(tactic)); }
  void refuse(std::string_view tactic, std::string reason) {
    refusals_.push_back({std::string(tactic), std::move(reason)});
  }

  struct Refusal {
    std::string tactic, reason;
  };
  const std::vector<Tactic>& offers() const { return offers_; }
  const std::vector<Refusal>& refusals() const { return refusals_; }

 private:
  std::vector<Tactic> offers_;
  std::vector<Refusal> refusals_;
};

/// compile()'s result: code is all that load() needs, constants are bound to the kernel at launch in this order.
struct Compiled {
  Blob code;
  std::vector<Tensor> constants;
};

class TacticSource {
 public:
  virtual ~TacticSource() = default;
  virtual std::string_view name() const = 0;
  /// Cheap: guards with reasons; no compiling, no timing. Best guesses first.
  virtual void propose(const Problem& problem, Candidates& out) const = 0;
  /// Independent of the concrete sizes that are symbolic in problem.symbolic: load() sees those.
  virtual Compiled compile(const Problem& problem, const Tactic& tactic) const = 0;
  /// Whether compile(), or the backend's load(), takes so long that candidates are worth a thread each. Both may be called side by side.
  virtual bool compiles_slowly() const { return false; }
  virtual bool loads_slowly() const { return false; }
  /// What stands in for a time where nothing is timed. The default is for sources of which nobody has measured it: what they offer
  /// for a problem is alike, and the order of their offers decides.
  virtual Cost cost(const Problem&, const Tactic&) const { return {}; }
  /// What a launch costs its neighbours besides the time that was measured for it.
  virtual double break_ms() const { return 0; }
};

}  // namespace hone
