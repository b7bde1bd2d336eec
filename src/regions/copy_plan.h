// SPDX-License-Identifier: Apache-2.0
//
// From an operator that only moves elements to the strided copies that it is, for concrete shapes and layouts.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "regions/copy_code.h"

namespace hone {

/// to[to_offset + sum i*to_strides] = from[from_offset + sum i*from_strides], all in elements. Strides may be zero or negative.
struct StridedCopy {
  Dims sizes, from, to;
  int64_t from_offset = 0, to_offset = 0;
};

/// Where a copy reads: a region input (>= 0) or constant -1 - k.
struct CopySource {
  int index = 0;
  ConcreteType type;
};

struct CopyStep {
  StridedCopy copy;
  int source = 0;       // index into CopyRequest::sources
  int destination = 0;  // region output
};

struct CopyRequest {
  std::vector<CopyOperator> operators;  // at least one
  std::vector<CopySource> sources;
  std::vector<ConcreteType> outputs;
  SymbolValues symbols;

  /// The only operator, or the first of an assembly.
  const CopyOperator& op() const { return operators.front(); }
  /// A list of size expressions, evaluated.
  Dims numbers(const std::vector<std::string>& texts) const;
};

/// Throws Error when the request contradicts itself: it comes out of a plan file. Every copy stays inside its tensors.
std::vector<CopyStep> plan_copies(const CopyRequest& request);

}  // namespace hone
