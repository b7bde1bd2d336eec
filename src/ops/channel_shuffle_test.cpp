// SPDX-License-Identifier: Apache-2.0
#include "ops/channel_shuffle.h"

#include <gtest/gtest.h>

#include "ops/all.h"

namespace hone {
namespace {

/// Of a model's last node; 0 where it does not shuffle.
int64_t groups(std::string_view grouped, std::string_view perm, std::string_view result, std::string_view more = "") {
  const Graph graph = parse_graph(fmt::format(R"((%x: f32[N,6,4,4]) {{
    %a = View(%x) {{shape=[{}]}}
    %b = Transpose(%a) {{perm=[{}]}}
    {}
    %z = View(%b) {{shape=[{}]}}
    return %z
  }})",
                                              grouped, perm, more, result),
                                  find_op);
  const std::optional<ChannelShuffle> shuffle = channel_shuffle(graph.nodes().back());
  return shuffle ? shuffle->groups : 0;
}

constexpr std::string_view kGrouped = R"("N", "2", "3", "4", "4")", kPerm = "0, 2, 1, 3, 4",
                           kResult = R"("N", "6", "4", "4")";

TEST(ChannelShuffle, IsFoundAsExportersWriteIt) {
  EXPECT_EQ(groups(kGrouped, kPerm, kResult), 2);
  EXPECT_EQ(groups(R"("N", "3", "2", "4", "4")", kPerm, kResult), 3);
}

TEST(ChannelShuffle, IsNothingElse) {
  EXPECT_EQ(groups(kGrouped, "0, 2, 1, 4, 3", kResult), 0) << "rows and columns change places, too";
  EXPECT_EQ(groups(kGrouped, kPerm, R"("N", "6", "2", "8")"), 0) << "the result has another shape";
  EXPECT_EQ(groups(R"("N", "6", "1", "2", "8")", kPerm, kResult), 0) << "groups are made of more than channels";
  EXPECT_EQ(groups(kGrouped, kPerm, kResult, "%r = Relu(%b)"), 0) << "read in between";
}

}  // namespace
}  // namespace hone
