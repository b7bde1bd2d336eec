// SPDX-License-Identifier: Apache-2.0
//
// The one clock: monotonic, in milliseconds since an unspecified start.
#pragma once

#include <chrono>

namespace hone {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double seconds_since(double start_ms) { return (now_ms() - start_ms) / 1000; }

}  // namespace hone
