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
int handle_memory, window_memory;

/// What was asked of the library about windows.
struct Asked {
  int least_blocks = 0, most_blocks = 0;
  std::vector<std::string> calls;
  int polls = INT_MAX;  // until what was begun has come about
};
Asked asked;

nccl::Table table() {
  nccl::Table library;
  library.ncclGetErrorString = [](nccl::Result) { return "unhandled system error"; };
  library.ncclGetLastError = [](nccl::Handle) { return "a cable"; };
  library.ncclGetUniqueId = [](nccl::UniqueId*) { return nccl::kSuccess; };
  library.ncclCommInitRankConfig = [](nccl::Handle* handle, int, nccl::UniqueId, int, nccl::Config* config) {
    asked.least_blocks = config->least_blocks, asked.most_blocks = config->most_blocks;
    *handle = reinterpret_cast<nccl::Handle>(&handle_memory);
    return nccl::kSuccess;
  };
  library.ncclCommGetAsyncError = [](nccl::Handle, nccl::Result* result) {
    *result = asked.polls-- > 0 ? nccl::kInProgress : nccl::kSuccess;
    return nccl::kSuccess;
  };
  library.ncclCommWindowRegister = [](nccl::Handle, void*, size_t bytes, nccl::WindowHandle* window, int flags) {
    asked.calls.push_back(fmt::format("{} bytes, {}", bytes, flags == nccl::kSymmetric ? "symmetric" : "?"));
    *window = reinterpret_cast<nccl::WindowHandle>(&window_memory);
    return nccl::kSuccess;
  };
  library.ncclCommWindowDeregister = [](nccl::Handle, nccl::WindowHandle window) {
    asked.calls.push_back(window == reinterpret_cast<nccl::WindowHandle>(&window_memory) ? "back" : "another");
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
  void SetUp() override { graphs.destroyed = false, graphs.given_up = 0, asked = {}; }
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

TEST_F(CommunicatorTest, AWindowIsOneForAllThatHoldIt) {
  const auto communicator = std::make_shared<Communicator>(group_, std::vector<int>(), library_, Operands::in_windows);
  destroy_graphs();
  asked.polls = 3;
  EXPECT_GT(asked.least_blocks, 0);
  EXPECT_GE(asked.most_blocks, asked.least_blocks) << "the library refuses other limits, and what is left open";
  int memory = 0;
  std::shared_ptr<const Window> first = communicator->window(&memory, 4096),
                                second = communicator->window(&memory, 4096);
  EXPECT_EQ(first, second);
  EXPECT_LT(asked.polls, 1) << "a window is there when the library says so, not when it has begun";
  first = nullptr;
  EXPECT_THAT(asked.calls, testing::ElementsAre("4096 bytes, symmetric"));
  second = nullptr;
  EXPECT_THAT(asked.calls, testing::ElementsAre("4096 bytes, symmetric", "back"));
  const auto again = communicator->window(&memory, 8192);  // other memory at the same address
  EXPECT_THAT(asked.calls, testing::Contains("8192 bytes, symmetric"));
}

TEST_F(CommunicatorTest, WindowsEndWithTheirCommunicator) {
  const auto communicator = std::make_shared<Communicator>(group_, std::vector<int>(), library_);
  asked.polls = 0;
  EXPECT_EQ(asked.least_blocks, INT_MIN) << "the library's own";
  int memory = 0;
  std::shared_ptr<const Window> window = communicator->window(&memory, 4096);
  communicator->abort();
  destroy_graphs();
  window = nullptr;
  EXPECT_THAT(asked.calls, testing::ElementsAre("4096 bytes, symmetric")) << "what is given up is not asked any more";
}

}  // namespace
}  // namespace hone::cuda
