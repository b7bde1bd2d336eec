// SPDX-License-Identifier: Apache-2.0
//
// A communicator of NCCL for the ranks of a group, or for some of them. It is never waited for without end: what does not come about in
// the group's time is given up, and so is everything once the group has failed.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/collective/nccl_abi.h"
#include "device/group.h"

namespace hone::cuda {

/// Where a communicator's calls have their operands. The library takes those in windows through kernels of their own, without copies of its
/// own between the ranks, if both operands lie in one: who mixes the two on one communicator has to be sure that all ranks do.
enum class Operands { anywhere, in_windows };

class Window;

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// All ranks of the group call it at the same place. Throws GroupError where the others do not come.
  Communicator(std::shared_ptr<Group> group, const std::vector<int>& ranks, const nccl::Table& library,
               Operands operands = Operands::anywhere);
  /// What NCCL holds is left to the end of the process: at that point its own threads may have ended already. What is being given up has
  /// a moment to end.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int place() const { return place_; }
  int size() const { return size_; }
  const std::shared_ptr<Group>& group() const { return group_; }
  /// Whether the library knows windows.
  bool has_windows() const { return library_.ncclCommWindowRegister != nullptr; }
  /// Memory of each rank, as large on all, made one window as long as somebody holds it. All ranks call it at the same place.
  std::shared_ptr<const Window> window(void* memory, size_t bytes);
  /// A call of the library: call(handle) returns what it returned. Throws GroupError where it fails, now or before.
  template <typename Call>
  void run(const char* what, const Call& call) {
    group_->require_sound();
    settle(what, locked(call));
  }
  /// What is in the stream ends at once; from any thread. Does not wait: the library goes on giving up for as long as there are graphs
  /// that hold its calls, which who calls this may be the one to destroy.
  void abort();

 private:
  friend class Window;
  /// Not while another thread ends the communicator. Calls return at once.
  template <typename Call>
  nccl::Result locked(const Call& call) {
    const std::lock_guard lock(mutex_);
    return handle_ == nullptr ? nccl::kSuccess : call(handle_);  // ended: settle() says so
  }
  void settle(const char* what, nccl::Result result);
  [[noreturn]] void fail(const std::string& what);

  const nccl::Table& library_;
  std::shared_ptr<Group> group_;
  int place_ = 0, size_ = 1;
  std::mutex mutex_;
  nccl::Handle handle_ = nullptr;
  std::future<void> aborted_;  // of the thread that gives up
  struct Registered {
    std::weak_ptr<const Window> window;
    nccl::WindowHandle handle = nullptr;  // here, because the library may write it behind a call that was given up
  };
  std::map<void*, Registered> windows_;  // by memory
};

/// Ends what the library knows of the memory, which must still be there.
class Window {
 public:
  Window(std::shared_ptr<Communicator> communicator, nccl::WindowHandle& handle, void* memory, size_t bytes);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

 private:
  std::shared_ptr<Communicator> communicator_;
  nccl::WindowHandle& handle_;
};

/// One for each set of ranks and kind of operands, as long as the process lives. Empty: all ranks. Throws as the constructor does, and Error
/// without NCCL.
std::shared_ptr<Communicator> communicator_of(const std::shared_ptr<Group>& group, const std::vector<int>& ranks,
                                              Operands operands = Operands::anywhere);

}  // namespace hone::cuda
