// SPDX-License-Identifier: Apache-2.0
//
// What the emulated driver writes for cuTensorMapEncodeTiled(): rows of bytes, one behind the other, and how many a box has.
#pragma once

namespace emulated {

struct MappedRows {
  const char* from;
  long long rows, row_bytes, box_rows;
};

}  // namespace emulated
