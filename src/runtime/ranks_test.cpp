// SPDX-License-Identifier: Apache-2.0
//
// What ranks must have the same, and what they may.
#include "runtime/ranks.h"

#include <gmock/gmock.h>

namespace hone {
namespace {

/// Rank 0 of two: the other says what it is told to say.
class PairedGroup final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  int timeout_ms() const override { return 1; }
  void run(const CollectiveForm&, const void*, void*) override {}
  std::vector<std::string> exchange(std::string_view text) override { return {std::string(text), other_text}; }
  std::vector<uint64_t> exchange(uint64_t number) override {
    said.push_back(number);
    return {number, said.size() <= other_said.size() ? other_said[said.size() - 1] : 0};
  }
  void fail(const GroupError& error) override { failure = error.what(); }
  void on_failure(std::function<void()>) override {}
  void require_sound() const override {}

  std::vector<uint64_t> said, other_said;
  std::string other_text, failure;
};

/// Whether two ranks that say these agree on the aside.
bool agree_with(PairedGroup& group, const std::string& text, const std::string& aside, const std::string& other_text,
                const std::string& other_aside) {
  PairedGroup other;
  other.other_text = other_text;  // so that listening to it does not throw
  agree(other, "shapes", other_text, "", other_aside);
  group.said.clear();
  group.other_said = other.said;
  group.other_text = other_text;
  return agree(group, "shapes", text, "give both the same", aside);
}

TEST(Ranks, AnAsideIsSharedWhereAllSayTheSame) {
  PairedGroup group;
  EXPECT_TRUE(agree_with(group, "x [2]", "0>64", "x [2]", "0>64"));
  EXPECT_FALSE(agree_with(group, "x [2]", "0>64", "x [2]", "0>128"));
  EXPECT_FALSE(agree_with(group, "x [2]", "0>64", "x [2]", ""));
  EXPECT_FALSE(agree_with(group, "x [2]", "", "x [2]", "")) << "nobody has anything to share";
  EXPECT_EQ(group.failure, "");
}

TEST(Ranks, OtherShapesEndTheGroupWhateverTheAside) {
  for (const std::string aside : {"0>64", "0>128"}) {
    PairedGroup group;
    try {
      agree_with(group, "x [2]", "0>64", "x [3]", aside);
      ADD_FAILURE() << "an error was expected";
    } catch (const GroupError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("different shapes: rank 0 has x [2], rank 1 has x [3]"));
    }
    EXPECT_THAT(group.failure, testing::HasSubstr("different shapes"));
  }
}

}  // namespace
}  // namespace hone
