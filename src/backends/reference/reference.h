// SPDX-License-Identifier: Apache-2.0
//
// The last tactic: any region at all, by the operators' own reference code. Slow, always right, always there.
// The region itself, with its symbols, is the code; a program is that region at concrete sizes.
#pragma once

#include "device/tactic.h"

namespace hone::reference {

const TacticSource& source();

/// A region ready to be evaluated on host memory. Unlike every other kernel it allocates when it runs.
class Program {
 public:
  Program(const Blob& code, const KernelShapes& shapes);
  /// Throws Error when the data are invalid (a bad index).
  void run(const Bindings& bindings) const;

 private:
  Graph region_;
  KernelShapes shapes_;
};

}  // namespace hone::reference
