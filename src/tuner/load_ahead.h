// SPDX-License-Identifier: Apache-2.0
//
// Candidates made ready to be launched: compiled and loaded. Those of sources that take long are made so side by side, those of
// several layers together, before anything of them is timed: then no processor waits, and no clock is disturbed.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <span>
#include <unordered_map>

#include "device/tactic.h"
#include "tuner/candidate.h"

namespace hone {

/// A candidate as it can be launched.
struct Loaded {
  Compiled compiled;
  KernelShapes shapes;
  std::shared_ptr<const Kernel> kernel;
};

class LoadAhead {
 public:
  struct Request {
    const Problem* problem;
    const Candidate* candidate;
  };

  LoadAhead(const Backend& backend, Device& device) : backend_(backend), device_(device) {}

  /// Those of slow sources that are not ready yet; returns when they are. Begins none once `stop`, which may be empty and is asked in
  /// this thread now and then, is true.
  void load(std::span<const Request> requests, const std::function<bool()>& stop);
  /// What was loaded ahead, or is now. Throws what went wrong with it.
  Loaded take(const Request& request);

 private:
  Loaded compiled(const Request& request, bool loads) const;
  void load(const Request& request, Loaded& result) const;

  const Backend& backend_;
  Device& device_;
  std::unordered_map<const Candidate*, std::future<Loaded>> ready_;
};

}  // namespace hone
