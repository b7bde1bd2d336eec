// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/collective/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <tuple>

#include "base/clock.h"
#include "base/text.h"

namespace hone::cuda {

namespace {

/// Of kernels that reach across: measured on two H200, sums of 4 MB take 28 us with what the library chooses, 19 with these, and no longer
/// than without windows at any size from 16 KB to 32 MB.
constexpr int kBlocksAcross = 32;

}  // namespace

Communicator::Communicator(std::shared_ptr<Group> group, const std::vector<int>& ranks, const nccl::Table& library,
                           Operands operands)
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
  if (operands == Operands::in_windows) config.least_blocks = config.most_blocks = kBlocksAcross;
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

std::shared_ptr<const Window> Communicator::window(void* memory, size_t bytes) {
  Registered& registered = windows_[memory];
  std::shared_ptr<const Window> window = registered.window.lock();
  if (!window)
    registered.window = window = std::make_shared<const Window>(shared_from_this(), registered.handle, memory, bytes);
  return window;
}

Window::Window(std::shared_ptr<Communicator> communicator, nccl::WindowHandle& handle, void* memory, size_t bytes)
    : communicator_(std::move(communicator)), handle_(handle) {
  communicator_->run("sharing memory (HONE_RANK_WINDOWS=0 does without)", [&](nccl::Handle ranks) {
    const nccl::Result begun =
        communicator_->library_.ncclCommWindowRegister(ranks, memory, bytes, &handle_, nccl::kSymmetric);
    return begun == nccl::kSuccess ? nccl::kInProgress : begun;  // it says success when it has begun
  });
}

/// A communicator that was given up has given up its windows, too.
Window::~Window() {
  communicator_->locked(
      [&](nccl::Handle handle) { return communicator_->library_.ncclCommWindowDeregister(handle, handle_); });
}

std::shared_ptr<Communicator> communicator_of(const std::shared_ptr<Group>& group, const std::vector<int>& ranks,
                                              Operands operands) {
  const nccl::Table& library = nccl::library();  // ends after what is below
  static std::mutex mutex;
  static std::map<std::tuple<const Group*, std::vector<int>, Operands>, std::shared_ptr<Communicator>> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Communicator>& found = known[{group.get(), ranks, operands}];
  if (!found) found = std::make_shared<Communicator>(group, ranks, library, operands);
  return found;
}

}  // namespace hone::cuda
