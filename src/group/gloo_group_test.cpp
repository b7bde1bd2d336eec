// SPDX-License-Identifier: Apache-2.0
//
// Collectives over Gloo against their meaning, and what becomes of a group whose ranks break off.
#include "group/gloo_group.h"

#include <gmock/gmock.h>

#include <cstring>

#include "group/elements.h"
#include "group/group_testing.h"
#include "group/work.h"
#include "ops/all.h"
#include "ops/collective.h"
#include "tensor/difference.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr DType kReducible[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8,  DType::u8,
                                DType::i16, DType::u16, DType::i32,  DType::u32, DType::i64, DType::u64};

struct Case {
  CollectiveForm form;
  Attrs attrs;
};

std::vector<Case> cases_of(DType dtype, int ranks, int64_t elements) {
  std::vector<Case> cases;
  const bool reducible = dtype != DType::boolean;
  for (size_t kind = 0; kind < kCollectiveNames.size(); ++kind)
    for (size_t reduce = 0; reduce < kReduceNames.size(); ++reduce) {
      const std::string name(kCollectiveNames[kind]);
      const bool reduces = name.find("reduce") != std::string::npos;
      if (reduces ? !reducible : reduce > 0) continue;
      cases.push_back({{.kind = static_cast<CollectiveKind>(kind),
                        .reduce = static_cast<ReduceKind>(reduce),
                        .root = ranks - 1,
                        .ranks = {},
                        .dtype = dtype,
                        .elements = elements},
                       {{"operation", name},
                        {"reduce", std::string(kReduceNames[reduce])},
                        {"root", int64_t{ranks - 1}},
                        {"group_size", int64_t{ranks}}}});
    }
  return cases;
}

/// Positive, so that averages of integers round alike in every order.
Tensor operand(DType dtype, int64_t elements, int rank) {
  return random_tensor(dtype, {elements}, 17 + static_cast<uint64_t>(rank), 0, dtype == DType::boolean ? 1 : 9);
}

void expect_meaning(Group& group, const Case& each) {
  std::vector<Tensor> operands;
  for (int rank = 0; rank < group.size(); ++rank)
    operands.push_back(operand(each.form.dtype, each.form.elements, rank));
  const auto place = static_cast<size_t>(group.rank());
  const Tensor expected = evaluate_collective(each.attrs, operands)[place];
  TensorBuilder result(each.form.dtype, expected.dims());
  group.run(each.form, operands[place].bytes().data(), result.bytes());
  const Tensor got = result.finish();
  const auto about = [&] { return fmt::format("{} of {}", each.attrs.print(), name_of(each.form.dtype)); };
  for (int64_t i = 0; i < got.size(); ++i) {
    const double tolerance = is_float(each.form.dtype) ? 0.01 * std::abs(expected.real(i)) : 0;
    ASSERT_NEAR(got.real(i), expected.real(i), tolerance) << about();
  }
}

TEST(GlooGroup, EveryCollectiveOfEveryTypeIsWhatItMeans) {
  EXPECT_THAT(in_ranks(2,
                       [](Group& group) {
                         for (const DType dtype : kReducible)
                           for (const Case& each : cases_of(dtype, 2, 6)) expect_meaning(group, each);
                         for (const Case& each : cases_of(DType::boolean, 2, 6)) expect_meaning(group, each);
                       }),
              Each(IsEmpty()));
}

TEST(GlooGroup, ThreeRanksAndLargeTensorsAreTheSame) {
  EXPECT_THAT(in_ranks(3,
                       [](Group& group) {
                         for (const Case& each : cases_of(DType::f32, 3, 300'000)) expect_meaning(group, each);
                       }),
              Each(IsEmpty()));
}

TEST(GlooGroup, RanksThatAreNotNamedTakeNoPart) {
  EXPECT_THAT(in_ranks(3,
                       [](Group& group) {
                         group.exchange(uint64_t{0});  // all are connected
                         if (group.rank() == 1) return;
                         const CollectiveForm form{.ranks = {0, 2}, .dtype = DType::i64, .elements = 1};
                         const int64_t mine = group.rank() + 1;
                         int64_t sum = 0;
                         group.run(form, &mine, &sum);
                         EXPECT_EQ(sum, 4);
                       }),
              Each(IsEmpty()));
}

TEST(GlooGroup, RanksTellEachOtherNumbersAndTextsOfAnyLength) {
  EXPECT_THAT(
      in_ranks(
          2,
          [](Group& group) {
            const auto number = static_cast<uint64_t>(group.rank()) + 5;
            EXPECT_EQ(group.exchange(number), (std::vector<uint64_t>{5, 6}));
            const std::string text = group.rank() == 0 ? "" : std::string(5000, 'x');
            EXPECT_EQ(group.exchange(std::string_view(text)), (std::vector<std::string>{"", std::string(5000, 'x')}));
          }),
      Each(IsEmpty()));
}

TEST(GlooGroup, ARankThatEndsIsNoticedByTheOthersAtOnceAndFromThenOn) {
  const std::vector<std::string> failures = in_ranks(2, [](Group& group) {
    group.exchange(uint64_t{0});  // all are connected
    if (group.rank() == 1) return;
    EXPECT_THROW(group.exchange(uint64_t{1}), GroupError);
    group.exchange(uint64_t{1});
  });
  EXPECT_THAT(failures[0], AllOf(HasSubstr("rank 0 of 2 lost the others"), HasSubstr("one has ended")));
}

TEST(GlooGroup, ARankThatDoesNotAnswerIsGivenUpInTime) {
  std::atomic<bool> over = false;
  const std::vector<std::string> failures = in_ranks(
      2,
      [&](Group& group) {
        if (group.rank() == 0) {
          const auto after = [&](bool*) { over = true; };
          bool ends = true;
          const std::unique_ptr<bool, decltype(after)> tells(&ends, after);
          group.exchange(uint64_t{1});
        }
        while (!over) std::this_thread::yield();
      },
      300);
  EXPECT_THAT(failures[0], HasSubstr("one has not answered within 0.3 s"));
}

TEST(GlooGroup, WhatRankZeroDoesAloneAllKnow) {
  EXPECT_THAT(in_ranks(
                  2,
                  [](Group& group) {
                    EXPECT_EQ(first_works(group,
                                          [] {
                                            std::this_thread::sleep_for(std::chrono::milliseconds(700));
                                            return std::string("chosen");
                                          }),
                              "chosen");
                    EXPECT_EQ(group.exchange(uint64_t{7}), (std::vector<uint64_t>{7, 7})) << "nothing is left over";
                  },
                  400),
              Each(IsEmpty()));
}

TEST(GlooGroup, WhatRankZeroCannotDoAllKnow) {
  const std::vector<std::string> failures =
      in_ranks(2, [](Group& group) { first_works(group, []() -> std::string { throw Error("no kernel fits"); }); });
  EXPECT_THAT(failures[0], HasSubstr("no kernel fits"));
  EXPECT_THAT(failures[1], HasSubstr("rank 0 has failed: no kernel fits"));
}

TEST(Elements, IntegersWrapAndExtremesKnowTheirSign) {
  const int8_t a[] = {100, -5}, b[] = {100, 3};
  int8_t to[2];
  reduce_function(ReduceKind::sum, DType::i8)(to, a, b, 2);
  EXPECT_THAT(to, testing::ElementsAre(-56, -2));
  reduce_function(ReduceKind::max, DType::i8)(to, a, b, 2);
  EXPECT_THAT(to, testing::ElementsAre(100, 3));
}

}  // namespace
}  // namespace hone
