// SPDX-License-Identifier: Apache-2.0
//
// Texts that an object makes when they are asked for; they stay where they are as long as it lives.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace hone::capi {

class Texts {
 public:
  template <typename Make>
  const char* kept(const std::string& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto at = texts_.find(key);
    return (at != texts_.end() ? at : texts_.emplace(key, make()).first)->second.c_str();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace hone::capi
