// SPDX-License-Identifier: Apache-2.0
#include "tools/files/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace hone {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    return "read: " + Json(parse_yaml(text)).dump();
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(Yaml, PlainWordsAreWhatPythonTakesThemFor) {
  EXPECT_EQ(
      Json(parse_yaml("[1, -2, 0x1f, 1.5, -2.5e+3, 1e3, yes, Off, ~, null, word, '1', \"true\", 1_000]"))[0].dump(),
      R"([1,-2,31,1.5,-2500.0,"1e3",true,false,null,null,"word","1","true",1000])");
}

TEST(Yaml, DocumentsBlocksAndAliasesAreRead) {
  EXPECT_EQ(Json(parse_yaml("---\nname: a\nwhere: &id001\n- x\n- {k: [1]}\nagain: *id001\n---\n---\nb\n")).dump(),
            R"([{"name":"a","where":["x",{"k":[1]}],"again":["x",{"k":[1]}]},"b"])");
}

TEST(Yaml, WhatIsWrittenIsReadAgain) {
  const Json plugin{{"name", "toy"},
                    {"list", {1, 2.0, 1e300, -0.5, true, nullptr}},
                    {"empty", Json::array()},
                    {"texts", {"", "1", "no", "a: b", "# c", "two\nlines", " edge ", "'", "~"}},
                    {"1", Json::object()}};
  EXPECT_EQ(Json(parse_yaml(yaml_text({plugin, plugin}))), Json({plugin, plugin})) << yaml_text({plugin});
}

TEST(Yaml, WhatIsNoneOrTooMuchIsRefusedWithItsLine) {
  EXPECT_THAT(refusal("a: b\nc: [1\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal("a: *b"), HasSubstr("no anchor"));
  EXPECT_THAT(refusal("? [1]\n: 2"), HasSubstr("key is no text"));
  EXPECT_THAT(refusal(std::string(200, '[')), HasSubstr("nested deeper"));
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char at = 'b'; at < 'k'; ++at)
    bomb += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", at, static_cast<char>(at - 1));
  EXPECT_THAT(refusal(bomb), HasSubstr("more than"));
}

}  // namespace
}  // namespace hone
