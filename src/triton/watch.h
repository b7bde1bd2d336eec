// SPDX-License-Identifier: Apache-2.0
//
// Ends inferences whose requests have all been cancelled: one thread looks at those under way. The server tells nobody that a request
// was cancelled, it answers when asked.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <span>
#include <thread>

#include "triton/server.h"

namespace hone::triton {

class Watch {
 public:
  struct Flight {
    Context* context;
    std::span<TRITONBACKEND_Request* const> requests;
  };
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The flight is watched as long as this lives.
  class Watched {
   public:
    Watched(Watch& watch, const Flight& flight);
    ~Watched();
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    Watch& watch_;
    std::list<Flight>::iterator place_;
  };

 private:
  void look();

  std::mutex mutex_;
  std::condition_variable stopping_;
  std::list<Flight> flights_;
  bool stop_ = false;
  std::thread thread_;
};

bool is_cancelled(TRITONBACKEND_Request* request) noexcept;

}  // namespace hone::triton
