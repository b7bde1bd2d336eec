// SPDX-License-Identifier: Apache-2.0
//
// What every object of the C interface begins with: a mark that says of which kind it is, and that it has not been destroyed.
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::capi {

enum class Kind : uint32_t {
  device,
  options,
  model,
  plan,
  engine,
  context,
  value,
  buffer,
  stream,
  event,
  timing_cache,
  network,
  benchmark,
  check,
  diagnosis,
  graph,
  reference
};

constexpr std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {
      "hone_device",    "hone_options", "hone_model",     "hone_plan",  "hone_engine",       "hone_context",
      "hone_value",     "hone_buffer",  "hone_stream",    "hone_event", "hone_timing_cache", "hone_network",
      "hone_benchmark", "hone_check",   "hone_diagnosis", "hone_graph", "hone_reference"};
  return kNames[static_cast<size_t>(kind)];
}

template <Kind kind>
class Handle {
 public:
  static constexpr Kind kKind = kind;
  Handle() = default;
  Handle(const Handle&) {}
  Handle& operator=(const Handle&) { return *this; }
  ~Handle() { mark_ = 0; }
  bool is_valid() const { return mark_ == kMark; }

 private:
  static constexpr uint64_t kMark = 0x686f6e6500000000 | (static_cast<uint64_t>(kind) + 1);
  volatile uint64_t mark_ = kMark;  // volatile: the destructor's write stays
};

}  // namespace hone::capi
