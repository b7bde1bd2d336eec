// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C as a request: while an Interrupt lives, the first one is remembered; the second ends the program as usual.
#pragma once

namespace hone {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
};

}  // namespace hone
