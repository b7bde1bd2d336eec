// SPDX-License-Identifier: Apache-2.0
#include "precision/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Mix, PartsThatAreFasterInAnotherTypeChange) {
  const EngineTimes engines[] = {{"fp32", {{{"a"}, 4}, {{"b"}, 4}, {{"c"}, 4}}},
                                 {"int8", {{{"a"}, 1}, {{"b"}, 6}, {{"c"}, 3.8}}}};
  EXPECT_THAT(mixed_types(engines, 0), ElementsAre(Pair("*", "fp32"), Pair("a", "int8")));
  EXPECT_THAT(mixed_types(engines, 1), ElementsAre(Pair("*", "int8"), Pair("b", "fp32")));
}

TEST(Mix, NodesThatShareALayerInAnyEngineGoTogether) {
  const EngineTimes engines[] = {{"fp32", {{{"a", "b"}, 2}, {{"c"}, 2}}}, {"bf16", {{{"a"}, 1}, {{"b", "c"}, 2}}}};
  EXPECT_THAT(mixed_types(engines, 0),
              ElementsAre(Pair("*", "fp32"), Pair("a", "bf16"), Pair("b", "bf16"), Pair("c", "bf16")));
}

TEST(Mix, LittleGainsAndWhatAnEngineFoldedAreLeftAlone) {
  const EngineTimes same[] = {{"fp32", {{{"a"}, 4}}}, {"int8", {{{"a"}, 3.9}}}};
  EXPECT_THAT(mixed_types(same, 0), IsEmpty());
  const EngineTimes tiny[] = {{"fp32", {{{"a"}, 1000}, {{"b"}, 0.1}}}, {"int8", {{{"a"}, 1000}, {{"b"}, 0.01}}}};
  EXPECT_THAT(mixed_types(tiny, 0), IsEmpty());
  const EngineTimes folded[] = {{"fp32", {{{"a"}, 4}, {{"b"}, 4}}}, {"int8", {{{"a"}, 4}}}};
  EXPECT_THAT(mixed_types(folded, 0), IsEmpty());
}

TEST(Mix, SeveralLayersOfANodeCountTogether) {
  const EngineTimes engines[] = {{"fp32", {{{"a"}, 4}}}, {"int8", {{{"a"}, 1}, {{"a"}, 4}}}};
  EXPECT_THAT(mixed_types(engines, 0), IsEmpty());
}

}  // namespace
}  // namespace hone
