// SPDX-License-Identifier: Apache-2.0
//
// SpillFile: bytes that are made now and read later, kept on disk instead of in memory. A temporary file without a name,
// mapped piece by piece; the system drops its pages when memory is short, and the file when the last piece goes.
#pragma once

#include "base/bytes.h"

namespace hone {

class SpillFile {
 public:
  SpillFile() = default;
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// The same bytes in the file; the blob itself where no temporary file can be written.
  Blob keep(const Blob& blob);

 private:
  bool open();

  int descriptor_ = -1;
  bool failed_ = false;
  size_t end_ = 0;
};

}  // namespace hone
