// SPDX-License-Identifier: Apache-2.0
#include "group/work.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace hone {
namespace {

enum Beat : uint64_t { works = 0, done = 1, failed = 2 };

/// Tells the others again and again how this rank does, until nobody works any more.
class Heart {
 public:
  explicit Heart(Group& group) : group_(group), thread_([this] { run(); }) {}
  ~Heart() {
    if (thread_.joinable()) thread_.join();
  }
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  /// What became of all ranks, by rank. Throws what went wrong with the group.
  std::vector<uint64_t> end(Beat beat) {
    {
      const std::lock_guard lock(mutex_);
      beat_ = beat;
    }
    changed_.notify_all();
    thread_.join();
    if (failure_) throw GroupError(*failure_);
    return beats_;
  }

 private:
  void run() {
    constexpr auto kInterval = std::chrono::milliseconds(100);
    std::unique_lock lock(mutex_);
    try {
      for (;;) {
        changed_.wait_for(lock, kInterval, [this] { return beat_ != works; });
        const Beat beat = beat_;
        lock.unlock();
        beats_ = group_.exchange(uint64_t{beat});
        lock.lock();
        if (std::ranges::find(beats_, uint64_t{works}) == beats_.end()) return;
      }
    } catch (const GroupError& error) {
      failure_ = error;
    }
  }

  Group& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Beat beat_ = works;
  std::vector<uint64_t> beats_;
  std::optional<GroupError> failure_;
  std::thread thread_;
};

}  // namespace

void all_work(Group& group, const std::function<void()>& work) {
  Heart heart(group);
  std::exception_ptr failure;
  std::string text;
  try {
    work();
  } catch (const std::exception& error) {
    failure = std::current_exception();
    text = error.what();
  }
  const std::vector<uint64_t> beats = heart.end(failure ? failed : done);
  const auto fallen = std::ranges::find(beats, uint64_t{failed});
  if (fallen == beats.end()) return;
  const std::vector<std::string> texts = group.exchange(std::string_view(text));
  if (failure) std::rethrow_exception(failure);
  const auto rank = static_cast<size_t>(fallen - beats.begin());
  throw GroupError(fmt::format("rank {} has failed: {}", rank, texts[rank].substr(0, texts[rank].find('\n'))),
                   "its own message says more");
}

std::string first_works(Group& group, const std::function<std::string()>& work) {
  std::string text;
  all_work(group, [&] {
    if (group.rank() == 0) text = work();
  });
  return group.exchange(std::string_view(text)).front();
}

}  // namespace hone
