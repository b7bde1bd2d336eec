// SPDX-License-Identifier: Apache-2.0
//
// What the emulated driver writes for cuTensorMapEncodeTiled(): a tensor of bytes without gaps, its sizes and those of a box of it, from the
// innermost on.
#pragma once

namespace emulated {

struct MappedOperand {
  const char* from;
  long long sizes[4];
  unsigned box[4];
  unsigned axes;
};

}  // namespace emulated
