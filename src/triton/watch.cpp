// SPDX-License-Identifier: Apache-2.0
//
// The thread that looks for cancelled requests.
#include "triton/watch.h"

#include <algorithm>
#include <chrono>

namespace hone::triton {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(20);  // asleep it costs nothing that can be measured

}  // namespace

bool is_cancelled(TRITONBACKEND_Request* request) noexcept {
  bool cancelled = false;
  tell(TRITONBACKEND_RequestIsCancelled(request, &cancelled));
  return cancelled;
}

Watch::Watch() : thread_([this] { look(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  thread_.join();
}

void Watch::look() {
  std::unique_lock lock(mutex_);
  while (!stopping_.wait_for(lock, kEvery, [this] { return stop_; }))
    for (const Flight& flight : flights_)
      if (std::ranges::all_of(flight.requests, is_cancelled)) hone_context_cancel(flight.context->get());
}

Watch::Watched::Watched(Watch& watch, const Flight& flight) : watch_(watch) {
  const std::lock_guard lock(watch.mutex_);
  place_ = watch.flights_.insert(watch.flights_.end(), flight);
}

Watch::Watched::~Watched() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.flights_.erase(place_);
}

}  // namespace hone::triton
