// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tools/common/terminal.h"
#include "tools/common/watcher.h"
#include "tools/watch/screen.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

WatchState tuned(double now = 10) {
  WatchState state;
  state.take(R"({"begin":"build","parent":"","steps":1})", 0);
  state.take(R"({"begin":"prepare","parent":"build","steps":1})", 0);
  state.take(R"({"end":"prepare"})", 1);
  state.take(R"({"begin":"tune","parent":"build","steps":24})", 2);
  state.take(R"({"best":"conv1","fastest":"cpu.conv","ms":0.5,"candidates":8})", 3);
  state.take(R"({"best":"conv2","fastest":"cpu.winograd","ms":0.25,"candidates":3})", 4);
  state.take(R"({"step":"tune","done":6})", now);
  return state;
}

TEST(WatchState, KnowsWhatIsLeftAndTheBestSoFar) {
  const WatchState state = tuned();
  EXPECT_EQ(state.layers(), 2U);
  EXPECT_DOUBLE_EQ(state.layers_ms(), 0.75);
  EXPECT_DOUBLE_EQ(state.left(10).value(), 8.0 / 6 * 18);
  EXPECT_EQ(state.last_best(), "conv2: cpu.winograd, 0.25 ms, of 3");
  EXPECT_EQ(state.phases().back().depth, 1U);
}

TEST(WatchState, PassesOverWhatItDoesNotUnderstand) {
  WatchState state = tuned();
  for (const char* line : {"", "{", "[1]", "7", R"({"end":"nothing"})", R"({"queries":[[1,2]]})",
                           R"({"measured":true})", R"({"begin":7,"steps":"many"})", R"({"step":"tune","done":-5})"})
    state.take(line, 11);
  EXPECT_EQ(state.layers(), 2U);
  EXPECT_TRUE(state.latencies().empty());
}

TEST(WatchState, AddsQueriesOfAnEngineTogether) {
  WatchState state;
  state.take(R"({"measuring":"m.plan","warmUpMs":200,"durationMs":3000})", 0);
  for (const double ms : {1.0, 1.0, 1.0, 10.0})
    state.take(fmt::format(R"({{"queries":[[{},25]],"atMs":1200,"bestMs":{}}})", latency_bucket(ms), ms), 1);
  const WatchedLatency& latency = state.latencies().at(0);
  EXPECT_EQ(latency.count, 100);
  EXPECT_NEAR(latency.percentile(50), 1, 0.03);
  EXPECT_NEAR(latency.percentile(90), 10, 0.3);
  EXPECT_EQ(latency.best_ms, 1);
  EXPECT_DOUBLE_EQ(state.left(1).value(), 2);
}

TEST(Screen, FitsTheTerminal) {
  WatchState state = tuned();
  state.take(R"({"measuring":"a very long name of a plan that does not fit into a line.plan","durationMs":3000})", 10);
  state.take(R"({"queries":[[0,5],[10,9],[30,1]],"atMs":1200,"bestMs":1})", 11);
  for (const bool unicode : {false, true})
    for (const size_t columns : {20, 80, 200})
      for (const size_t rows : {2, 8, 50}) {
        const std::vector<std::string> lines = screen_lines(state, "hone bench", 0, 12, {columns, rows}, unicode);
        EXPECT_LT(lines.size(), rows);
        for (const std::string& line : lines)
          EXPECT_LE(std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }),
                    static_cast<std::ptrdiff_t>(columns))
              << line;
      }
  EXPECT_THAT(screen_lines(tuned(), "hone build", 0, 10, {80, 30}, false),
              AllOf(Contains(StartsWith("hone build   10 s, about 24 s left")),
                    Contains("    tune                [######..................] 6 of 24"),
                    Contains(StartsWith("    prepare             done in 1.0 s")),
                    Contains("best so far  0.75 ms in 2 layers")));
}

TEST(PlainLines, TellEachThingOnce) {
  PlainLines plain;
  WatchState state = tuned();
  EXPECT_THAT(plain.news(state, 5), ElementsAre("prepare: done in 1.0 s"));
  EXPECT_TRUE(plain.news(state, 6).empty());
  EXPECT_THAT(plain.news(state, 16), ElementsAre(HasSubstr("tune: 6 of 24, about 42 s left, best so far  0.75 ms")));
  EXPECT_TRUE(plain.news(state, 17).empty());
}

TEST(TerminalText, LeavesNothingThatMovesTheCursorOrIsTwoWide) {
  EXPECT_EQ(terminal_text("a\033[2J\n\x7f"), "a?[2J??");
  EXPECT_EQ(terminal_text("\xc2\x9b\xc3\xa4\xe4\xb8\xad\xe2\x80\xae"), "?\xc3\xa4??");
}

}  // namespace
}  // namespace hone
