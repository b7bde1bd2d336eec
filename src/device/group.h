// SPDX-License-Identifier: Apache-2.0
//
// Ranks: processes that run one network together, a device each. What they do together they call in the same order, with the same forms;
// a group says who is there, and moves host memory between them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/collective.h"

namespace hone {

/// Ranks that cannot go on together. The group says so again at every later call.
class GroupError : public Error {
 public:
  using Error::Error;
};

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// How long a rank waits for the others before it gives up.
  virtual int timeout_ms() const = 0;
  /// On host memory. Throws GroupError where a rank has ended, broken off or not come in time.
  virtual void run(const CollectiveForm& form, const void* input, void* output) = 0;
  /// What each rank says, by rank: texts of any length, or numbers at less cost.
  virtual std::vector<std::string> exchange(std::string_view text) = 0;
  virtual std::vector<uint64_t> exchange(uint64_t number) = 0;
  /// From now on every call throws this. From any thread.
  virtual void fail(const GroupError& error) = 0;
  /// Called once, when the group fails: what is under way elsewhere is to end.
  virtual void on_failure(std::function<void()> function) = 0;
  /// Throws GroupError where it has failed.
  virtual void require_sound() const = 0;
};

/// Memory of a device into which the devices of other ranks can reach.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual void* data() const = 0;
  virtual size_t size() const = 0;
};

/// A device that may be a rank's. Kernels that need other ranks are loaded with its group.
class HasGroup {
 public:
  virtual ~HasGroup() = default;
  void join(std::shared_ptr<Group> group) { group_ = std::move(group); }
  /// Null where the process is alone.
  const std::shared_ptr<Group>& group() const { return group_; }
  /// Null where the device has no such memory. Throws Error with the amount when it cannot.
  virtual std::shared_ptr<SharedMemory> shared_memory(size_t /*bytes*/) { return nullptr; }
  /// Whether kernels may run on it that wait for ranks that have gone for as long as the process lives, whatever is given up.
  virtual bool ends_only_with_process() const { return false; }

 private:
  std::shared_ptr<Group> group_;
};

/// A kernel that ranks launch together: such launches keep their order among each other.
class IsTogether {
 public:
  virtual ~IsTogether() = default;
};

/// A recording of launches some of which ranks make together, faster where their operands lie at the same places of every rank's shared
/// memory.
class ReachesAcross {
 public:
  virtual ~ReachesAcross() = default;
  /// Where in the memory those operands lie, and how much is held of it. Empty: nowhere.
  virtual std::string places_in(const SharedMemory& memory) const = 0;
  /// From now on kernels reach across. Called on every rank at once, where all ranks' places are the same. The memory must outlive it.
  virtual void reach_across(SharedMemory& memory) = 0;
};

}  // namespace hone
