// SPDX-License-Identifier: Apache-2.0

#include "device/fields.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hone {
namespace {

enum class Side { left, right };
constexpr std::array<std::string_view, 2> field_names(Side) { return {"left", "right"}; }

struct Operand {
  int64_t place = 0;
  std::vector<int64_t> dims;
  static void fields(auto& self, auto& visit) {
    visit("place", self.place, -1, 8);
    visit("dims", self.dims, 0, 100, 3);
  }
};

struct Code {
  int rows = 1;
  bool fast = false;
  float scale = 1;
  Side side = Side::left;
  DType type = DType::f32;
  std::string name;
  std::array<int64_t, 2> strides = {1, 1};
  std::optional<int64_t> limit;
  std::vector<Operand> operands;
  static void fields(auto& self, auto& visit) {
    visit("rows", self.rows, 1, 16);
    visit("fast", self.fast);
    visit("scale", self.scale);
    visit("side", self.side);
    visit("type", self.type);
    visit("name", self.name);
    visit("strides", self.strides, 1, 4);
    visit("limit", self.limit, 0, 10);
    visit("operands", self.operands, 2);
  }
};

Code example() {
  return {.rows = 4,
          .fast = true,
          .scale = 0.5f,
          .side = Side::right,
          .type = DType::bf16,
          .name = "x",
          .strides = {2, 3},
          .limit = 7,
          .operands = {{1, {2, 3}}, {-1, {}}}};
}

TEST(Fields, ReadingIsTheInverseOfWriting) {
  const Attrs attrs = write_fields(example());
  const Code code = read_fields<Code>(attrs);
  EXPECT_EQ(code.rows, 4);
  EXPECT_TRUE(code.fast);
  EXPECT_EQ(code.scale, 0.5f);
  EXPECT_EQ(code.side, Side::right);
  EXPECT_EQ(code.type, DType::bf16);
  EXPECT_EQ(code.name, "x");
  EXPECT_EQ(code.strides, (std::array<int64_t, 2>{2, 3}));
  EXPECT_EQ(code.limit, 7);
  ASSERT_EQ(code.operands.size(), 2u);
  EXPECT_EQ(code.operands[0].dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(code.operands[1].place, -1);
  EXPECT_EQ(write_fields(code).print(), attrs.print());
}

TEST(Fields, AnOptionalFieldIsLeftOut) {
  Code code = example();
  code.limit.reset();
  const Attrs attrs = write_fields(code);
  EXPECT_FALSE(attrs.has("limit"));
  EXPECT_FALSE(read_fields<Code>(attrs).limit.has_value());
}

TEST(Fields, ReadingRefusesWhatIsMissingUnknownOfAnotherKindOrOutOfBounds) {
  const auto refuses = [](const char* name, std::optional<AttrValue> value) {
    Attrs attrs = write_fields(example());
    if (value) attrs.set(name, *value);
    else attrs.erase(name);
    EXPECT_THROW(read_fields<Code>(attrs), Error) << name;
  };
  for (const auto& [name, value] : write_fields(example()))
    if (name != "limit") refuses(name.c_str(), std::nullopt);
  refuses("unknown", int64_t{1});
  refuses("rows", int64_t{0});
  refuses("rows", int64_t{17});
  refuses("rows", 1.0);
  refuses("fast", int64_t{2});
  refuses("side", std::string("middle"));
  refuses("type", std::string("f33"));
  refuses("strides", std::vector<int64_t>{1});
  refuses("strides", std::vector<int64_t>{1, 5});
  refuses("limit", int64_t{11});
  refuses("operands", int64_t{3});
  refuses("operands", int64_t{1});  // leaves those of the second unread
  refuses("operands.0.dims", std::vector<int64_t>{1, 1, 1, 1});
  refuses("operands.1.place", int64_t{9});
}

TEST(Fields, TheListTellsBounds) {
  const std::vector<Field> list = list_fields<Code>();
  const auto find = [&](std::string_view name) {
    for (const Field& field : list)
      if (field.name == name) return field;
    return Field{"", 0, -1};
  };
  EXPECT_EQ(find("rows").high, 16);
  EXPECT_EQ(find("fast").high, 1);
  EXPECT_FALSE(find("scale").is_integer());
  EXPECT_EQ(find("operands.0.place").low, -1);
}

}  // namespace
}  // namespace hone
