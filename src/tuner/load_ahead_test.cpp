// SPDX-License-Identifier: Apache-2.0
#include "tuner/load_ahead.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"

namespace hone {
namespace {

std::atomic<int> g_compiled, g_loaded;

/// Whose tactic "wrong" does not compile.
class Source final : public TacticSource {
 public:
  Source(bool compiles_slowly, bool loads_slowly) : compiles_slowly_(compiles_slowly), loads_slowly_(loads_slowly) {}
  std::string_view name() const override { return "test"; }
  bool compiles_slowly() const override { return compiles_slowly_; }
  bool loads_slowly() const override { return loads_slowly_; }
  void propose(const Problem&, Candidates&) const override {}
  Compiled compile(const Problem&, const Tactic& tactic) const override {
    ++g_compiled;
    if (tactic.name == "wrong") throw Error("it does not compile");
    return {Blob::copy(tactic.name), {}};
  }

 private:
  bool compiles_slowly_, loads_slowly_;
};

class NoDevice final : public Device {
 public:
  DeviceInfo info() const override { return {}; }
  void* allocate(size_t) override { return nullptr; }
  void release(void*) noexcept override {}
  std::unique_ptr<Stream> stream() override { return nullptr; }
  void copy(void*, const void*, size_t, Stream&) override {}
  void fill(void*, std::byte, size_t, Stream&) override {}
  std::unique_ptr<Recording> record(std::vector<Launch>) override { return nullptr; }
  bool host_accessible() const override { return true; }
};

std::shared_ptr<const Kernel> load(Device&, std::string_view, const Blob&, const KernelShapes&) {
  ++g_loaded;
  return std::make_shared<const Kernel>();
}

class LoadAheadTest : public testing::Test {
 protected:
  LoadAheadTest() {
    g_compiled = g_loaded = 0;
    for (const char* name : {"first", "wrong", "last"}) {
      Candidate& candidate = candidates_.emplace_back();
      candidate.tactic.name = name;
    }
  }
  void load(const Source& source, const std::function<bool()>& stop = {}) {
    std::vector<LoadAhead::Request> requests;
    for (Candidate& candidate : candidates_) {
      candidate.source = &source;
      requests.push_back({&problem_, &candidate});
    }
    ahead_.load(requests, stop);
  }
  Loaded take(size_t candidate) { return ahead_.take({&problem_, &candidates_[candidate]}); }

  const Problem problem_{};
  std::vector<Candidate> candidates_;
  NoDevice device_;
  const Backend backend_{
      .name = "test", .devices = nullptr, .open = nullptr, .load = hone::load, .sources = {}, .versions = nullptr};
  LoadAhead ahead_{backend_, device_};
};

TEST_F(LoadAheadTest, LoadsEachOnceAndSaysWhatWentWrongWhereItIsTaken) {
  const Source source(false, true);
  load(source);
  load(source);
  EXPECT_EQ(g_compiled, 3);
  EXPECT_EQ(g_loaded, 2);
  EXPECT_NE(take(2).kernel, nullptr);
  EXPECT_EQ(take(0).compiled.code.text(), "first");
  EXPECT_THROW(take(1), Error);
  EXPECT_EQ(g_loaded, 2);
}

TEST_F(LoadAheadTest, LoadsWhereItIsTakenWhatOnlyCompilesSlowly) {
  const Source source(true, false);
  load(source);
  EXPECT_EQ(g_compiled, 3);
  EXPECT_EQ(g_loaded, 0);
  EXPECT_NE(take(0).kernel, nullptr);
  EXPECT_EQ(g_compiled, 3);
}

TEST_F(LoadAheadTest, LeavesTheFastOnesAndThoseBehindAStopForLater) {
  const Source fast(false, false), slow(true, true);
  load(fast);
  EXPECT_EQ(g_compiled, 0);
  load(slow, [] { return g_compiled > 0; });
  EXPECT_GE(g_compiled, 1);
  EXPECT_NE(take(2).kernel, nullptr);
}

TEST_F(LoadAheadTest, BeginsNoneThatIsStoppedAtOnce) {
  load(Source(true, true), [] { return true; });
  EXPECT_EQ(g_compiled, 0);
}

}  // namespace
}  // namespace hone
