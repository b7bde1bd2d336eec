// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/collective/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/text.h"

namespace hone::cuda {

Communicator::Communicator(std::shared_ptr<Group> group, const std::vector<int>& ranks, const nccl::Table& library)
    : library_(library), group_(std::move(group)) {
  std::vector<int> members = ranks;
  if (members.empty()) {
    members.resize(static_cast<size_t>(group_->size()));
    std::iota(members.begin(), members.end(), 0);
  }
  size_ = static_cast<int>(members.size());
  place_ = static_cast<int>(std::ranges::find(members, group_->rank()) - members.begin());
  HONE_ASSERT(place_ < size_, "rank {} makes a communicator of others", group_->rank());
  nccl::UniqueId id{};
  if (place_ == 0) settle("naming the communicator", library_.ncclGetUniqueId(&id));
  // Every rank says one, those that lead nobody an empty one.
  const std::vector<std::string> ids =
      group_->exchange(place_ == 0 ? std::string_view(id.bytes, sizeof id.bytes) : std::string_view());
  const std::string& told = ids[static_cast<size_t>(members.front())];
  HONE_CHECK(told.size() == sizeof id.bytes, "rank {} named no communicator", members.front());
  std::memcpy(id.bytes, told.data(), sizeof id.bytes);
  nccl::Config config;
  settle("joining the communicator", library_.ncclCommInitRankConfig(&handle_, size_, id, place_, &config));
  group_->on_failure([this] { abort(); });
}

Communicator::~Communicator() {
  constexpr std::chrono::seconds kMoment(2);
  if (aborted_.valid()) aborted_.wait_for(kMoment);
}

void Communicator::abort() {
  const std::lock_guard lock(mutex_);
  if (handle_ == nullptr) return;
  std::promise<void> ended;
  aborted_ = ended.get_future();
  std::thread([end = library_.ncclCommAbort, handle = std::exchange(handle_, nullptr),
               ended = std::move(ended)]() mutable {
    end(handle);
    ended.set_value();
  }).detach();
}

void Communicator::fail(const std::string& what) {
  const GroupError error(fmt::format("rank {} of {} lost the others in NCCL: {}", group_->rank(), group_->size(), what),
                         "NCCL_DEBUG=WARN tells more; HONE_RANK_TIMEOUT=SECONDS says how long to wait");
  group_->fail(error);
  abort();  // also while it is being made, when the group does not know it yet
  throw GroupError(error);
}

void Communicator::settle(const char* what, nccl::Result result) {
  constexpr double kPatienceMs = 1;  // most calls are over by then
  const double begin = now_ms();
  while (result == nccl::kInProgress) {
    const double waited = now_ms() - begin;
    if (waited > group_->timeout_ms())
      fail(fmt::format("{}: they have not come within {:g} s", what, group_->timeout_ms() / 1000.0));
    if (waited < kPatienceMs) std::this_thread::yield();
    else std::this_thread::sleep_for(std::chrono::microseconds(100));
    const std::lock_guard lock(mutex_);
    if (handle_ == nullptr) break;
    if (library_.ncclCommGetAsyncError(handle_, &result) != nccl::kSuccess) break;
  }
  group_->require_sound();
  if (result == nccl::kSuccess) return;
  fail(fmt::format("{}: {} ({})", what, library_.ncclGetErrorString(result), library_.ncclGetLastError(nullptr)));
}

std::shared_ptr<Communicator> communicator_of(const std::shared_ptr<Group>& group, const std::vector<int>& ranks) {
  const nccl::Table& library = nccl::library();  // ends after what is below
  static std::mutex mutex;
  static std::map<std::pair<const Group*, std::vector<int>>, std::shared_ptr<Communicator>> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Communicator>& found = known[{group.get(), ranks}];
  if (!found) found = std::make_shared<Communicator>(group, ranks, library);
  return found;
}

}  // namespace hone::cuda
