// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <set>

#include "base/checked.h"
#include "base/file.h"
#include "base/folder_testing.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/markup.h"
#include "base/numbers.h"
#include "base/spill.h"
#include "base/text.h"
#include "base/utf8.h"

namespace hone {
namespace {

TEST(Error, ShowsMessageNotesAndHintInThisOrder) {
  try {
    with_note([] { return std::string("importing node A"); },
              []() -> int { throw Error("axis 4 is out of range", "use 0..2"); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "axis 4 is out of range\n  while importing node A\n  hint: use 0..2");
  }
}

TEST(Checked, RefusesProductsThatWrap) {
  EXPECT_EQ(checked_multiply(1 << 20, 1 << 20), int64_t{1} << 40);
  EXPECT_THROW(checked_multiply(int64_t{1} << 40, int64_t{1} << 40), Error);
  EXPECT_THROW(checked_add(INT64_MAX, 1), Error);
}

TEST(Text, ParsesOnlyWholeNumbers) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_FALSE(parse_integer("12x"));
  EXPECT_FALSE(parse_integer(""));
  EXPECT_EQ(parse_real("1e-3"), 1e-3);
}

TEST(Text, FindsTheNearestName) {
  const std::string_view names[] = {"--onnx", "--saveEngine", "--loadEngine"};
  EXPECT_EQ(nearest("--saveEngin", names), "--saveEngine");
}

TEST(File, WritesWholeOrNotAtAll) {
  const TestFolder folder;
  const std::string directory = folder.path(), path = folder.file("a.txt");
  write_file(path, "one");
  write_file(path, "two");
  EXPECT_EQ(read_file(path), "two");
  EXPECT_THROW(write_file(directory + "/missing/a.txt", "x"), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  EXPECT_THROW(MappedFile::open(directory + "/nothing"), Error);
  EXPECT_THROW(MappedFile::open(directory), Error);
}

TEST(Text, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(valid_utf8("plain \"\n"), "plain \"\n");
  EXPECT_EQ(valid_utf8("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(valid_utf8("\xff"
                       "a\xc3"),
            "\\xffa\\xc3");
  EXPECT_EQ(valid_utf8("\xc0\xaf\xed\xa0\x80"), "\\xc0\\xaf\\xed\\xa0\\x80")
      << "too long a form, and half a surrogate pair";
  EXPECT_EQ(valid_utf8("\xf5\xe2\x82"), "\\xf5\\xe2\\x82");
}

TEST(Markup, SpellsOutWhatXmlWouldRead) {
  EXPECT_EQ(markup_text("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot;\n");
  EXPECT_EQ(markup_text(std::string_view("\x01\0\xff", 3)), "\\x01\\x00\\xff");
}

TEST(Spill, GivesTheSameBytesFromAFile) {
  SpillFile file;
  Blob first = file.keep(Blob::copy(std::string(10'000, 'a')));
  const Blob second = file.keep(Blob::copy(std::string(5'000, 'b'))), empty = file.keep(Blob());
  EXPECT_EQ(first.text(), std::string(10'000, 'a'));
  EXPECT_EQ(second.text(), std::string(5'000, 'b'));
  EXPECT_EQ(empty.size(), 0u);
}

TEST(Limits, AreNamedAndPositive) {
  std::set<std::string_view> names;
  for (const Limit& limit : limit_table()) {
    EXPECT_TRUE(names.insert(limit.name).second) << limit.name;
    EXPECT_GT(limit.value, 0) << limit.name;
  }
  EXPECT_GE(names.size(), 10u);
}

TEST(Hash, IsThatOfEveryOtherProgram) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "hone ";
  EXPECT_EQ(hash64("hone"), 0xe81290a307a31e85u);
  EXPECT_EQ(hash64(text), 0xa6d18dd18fdc0e99u);
  EXPECT_EQ(hash_hex(text), "868353983350237aa6d18dd18fdc0e99");
}

TEST(Numbers, IntegersWrapAtTheirEnds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(wrapping_add(kMost, int64_t{1}), kLeast);
  EXPECT_EQ(wrapping_subtract(kLeast, int64_t{1}), kMost);
  EXPECT_EQ(wrapping_multiply(kLeast, int64_t{-1}), kLeast);
  EXPECT_EQ(wrapping_multiply<uint16_t>(65535, 65535), 1);  // as ints they overflow
  EXPECT_EQ(wrapping_add<int8_t>(127, 1), -128);
  EXPECT_EQ(wrapping_add(0.25, 0.5), 0.75);
}

TEST(Numbers, FloatsSaturateOnTheWayToIntegers) {
  EXPECT_EQ(saturated<int64_t>(1e30), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(saturated<int64_t>(-std::numeric_limits<double>::infinity()), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(saturated<int32_t>(2147483648.0f), 2147483647);
  EXPECT_EQ(saturated<uint8_t>(-3.0f), 0);
  EXPECT_EQ(saturated<uint8_t>(254.9f), 254);
  EXPECT_EQ(saturated<int16_t>(std::numeric_limits<float>::quiet_NaN()), 0);
}

}  // namespace
}  // namespace hone
