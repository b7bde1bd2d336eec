// SPDX-License-Identifier: Apache-2.0
//
// A communicator is given up without waiting for what its owner has still to destroy. A table in NCCL's place: no card, no library.
#include "backends/cuda/collective/communicator.h"

#include <gmock/gmock.h>

#include <atomic>

namespace hone::cuda {
namespace {

class LoneGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int timeout_ms() const override { return timeout; }
  void run(const CollectiveForm&, const void*, void*) override {}
  std::vector<std::string> exchange(std::string_view text) override { return {std::string(text)}; }
  std::vector<uint64_t> exchange(uint64_t number) override { return {number}; }
  void fail(const GroupError& error) override {
    failure = error;
    if (end) end();
  }
  void on_failure(std::function<void()> function) override { end = std::move(function); }
  void require_sound() const override {
    if (failure) throw GroupError(*failure);
  }

  int timeout = 60'000;
  std::optional<GroupError> failure;
  std::function<void()> end;
};

/// What the library does while it gives up: it waits until the graphs that hold its calls are destroyed.
struct Graphs {
  std::atomic<bool> destroyed = false;
  std::atomic<int> given_up = 0;
};
Graphs graphs;
int handle_memory;

nccl::Table table() {
  nccl::Table library;
  library.ncclGetErrorString = [](nccl::Result) { return "unhandled system error"; };
  library.ncclGetLastError = [](nccl::Handle) { return "a cable"; };
  library.ncclGetUniqueId = [](nccl::UniqueId*) { return nccl::kSuccess; };
  library.ncclCommInitRankConfig = [](nccl::Handle* handle, int, nccl::UniqueId, int, nccl::Config*) {
    *handle = reinterpret_cast<nccl::Handle>(&handle_memory);
    return nccl::kSuccess;
  };
  library.ncclCommGetAsyncError = [](nccl::Handle, nccl::Result* result) {
    *result = nccl::kInProgress;
    return nccl::kSuccess;
  };
  library.ncclCommAbort = [](nccl::Handle) {
    graphs.destroyed.wait(false);
    ++graphs.given_up;
    return nccl::kSuccess;
  };
  return library;
}

class CommunicatorTest : public testing::Test {
 protected:
  void SetUp() override { graphs.destroyed = false, graphs.given_up = 0; }
  static void destroy_graphs() {
    graphs.destroyed = true;
    graphs.destroyed.notify_all();
  }

  const nccl::Table library_ = table();
  std::shared_ptr<LoneGroup> group_ = std::make_shared<LoneGroup>();
};

TEST_F(CommunicatorTest, IsGivenUpByTheThreadThatOwnsTheGraphs) {
  {
    Communicator communicator(group_, {}, library_);
    group_->fail(GroupError("rank 1 has ended", ""));  // does not wait for the graphs
    EXPECT_EQ(graphs.given_up, 0);
    EXPECT_THROW(communicator.run("a collective", [](nccl::Handle) { return nccl::kSuccess; }), GroupError);
    communicator.abort();  // once is enough
    destroy_graphs();
  }
  EXPECT_EQ(graphs.given_up, 1);
}

TEST_F(CommunicatorTest, ACallThatDoesNotEndInTimeEndsTheGroup) {
  group_->timeout = 5;
  Communicator communicator(group_, {}, library_);
  destroy_graphs();
  try {
    communicator.run("a collective", [](nccl::Handle) { return nccl::kInProgress; });
    ADD_FAILURE() << "an error was expected";
  } catch (const GroupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("a collective: they have not come within 0.005 s"));
  }
}

TEST_F(CommunicatorTest, ACallThatFailsSaysWhatTheLibrarySays) {
  constexpr auto kSystemError = static_cast<nccl::Result>(2);
  Communicator communicator(group_, {}, library_);
  destroy_graphs();
  EXPECT_THROW(communicator.run("a collective", [](nccl::Handle) { return kSystemError; }), GroupError);
  EXPECT_THAT(group_->failure->what(), testing::HasSubstr("a collective: unhandled system error (a cable)"));
}

}  // namespace
}  // namespace hone::cuda
