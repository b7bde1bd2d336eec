// SPDX-License-Identifier: Apache-2.0
//
// NumPy files that are damaged or malicious: nothing is unpickled, unpacked or read behind the end.
#include "tools/common/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string refusal(auto&& body) {
  try {
    body();
  } catch (const InternalError& error) {
    return fmt::format("INTERNAL {}", error.what());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string refusal_of(const std::string& file) {
  return refusal([&] { parse_npy(bytes_of(file)); });
}

std::string little(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
  return out;
}

/// Version 1 of the format around any dictionary.
std::string file_with(const std::string& header, const std::string& data = std::string(24, '\1')) {
  return std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + data;
}
std::string dictionary(const std::string& type, const std::string& shape) {
  return "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(Npy, ReadsWhatItWrites) {
  const std::string data(24, '\1');
  const std::string file = npy_text(DType::f32, {2, 3}, bytes_of(data));
  const NpyArray array = parse_npy(bytes_of(file));
  EXPECT_EQ(array.dims, (Dims{2, 3}));
  EXPECT_EQ(array.bytes.size(), 24u);
}

TEST(Npy, ObjectsAreNeverUnpickled) {
  for (const char* type : {"'|O'", "'O'", "[('a', '<f4')]", "'<U8'", "'|V4'", "'<M8[ns]'", "'>f4'"})
    EXPECT_NE(refusal_of(file_with(dictionary(type, "(2, 3)"))), "") << type;
  EXPECT_THAT(refusal_of(file_with(dictionary("'|O'", "(2, 3)"))), AllOf(HasSubstr("|O"), HasSubstr("hint")));
}

TEST(Npy, CutsAndLongHeadersAreRefused) {
  const std::string whole = npy_text(DType::f32, {2, 3}, bytes_of(std::string(24, '\1')));
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_NE(refusal_of(whole.substr(0, size)), "") << size;
  EXPECT_THAT(refusal_of(std::string("\x93NUMPY\1\0\xff\xff", 10) + "{"), HasSubstr("cut short"));
  EXPECT_THAT(refusal_of(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12) + "{"), HasSubstr("cut short"));
  EXPECT_THAT(refusal_of(std::string("\x93NUMPY\7\0", 8) + std::string(80, ' ')), HasSubstr("version 7"));
}

TEST(Npy, ShapesMustFitTheData) {
  for (const char* shape :
       {"(7,)", "(4611686018427387904, 4)", "(4294967296, 4294967296, 4294967296)", "(-1,)", "(2, x)", "2", "(", ""})
    EXPECT_NE(refusal_of(file_with(dictionary("'<f4'", shape))), "") << shape;
  EXPECT_EQ(refusal_of(file_with(dictionary("'<f4'", "(2, 3)"))), "");
  EXPECT_EQ(refusal_of(file_with(dictionary("'<f4'", "()"))), "");
}

/// A zip archive with one entry, whose fields may be wrong.
struct Archive {
  std::string content;
  uint64_t method = 0, size = 0, directory = 0, local_name = 5;
  std::string text() const {
    const std::string sizes = little(size, 4) + little(size, 4), name = "x.npy";
    const std::string local = std::string("PK\3\4", 4) + little(20, 2) + little(0, 2) + little(method, 2) +
                              little(0, 8) + sizes + little(local_name, 2) + little(0, 2) + name;
    const std::string entry = std::string("PK\1\2", 4) + little(20, 2) + little(20, 2) + little(0, 2) +
                              little(method, 2) + little(0, 8) + sizes + little(name.size(), 2) + little(0, 12) +
                              little(0, 4) + name;
    return local + content + entry + std::string("PK\5\6", 4) + little(0, 4) + little(1, 2) + little(1, 2) +
           little(entry.size(), 4) + little(local.size() + content.size() + directory, 4) + little(0, 2);
  }
};

TEST(Npz, EntriesMustLieInTheArchive) {
  const std::string array = npy_text(DType::f32, {2, 3}, bytes_of(std::string(24, '\1')));
  const auto refusal_of_archive = [](const std::string& text, const char* name = "x") {
    return refusal([&] { parse_npz(bytes_of(text), name); });
  };
  Archive good{.content = array, .size = array.size()};
  EXPECT_EQ(refusal_of_archive(good.text()), "");
  EXPECT_THAT(refusal_of_archive(good.text(), "z"), AllOf(HasSubstr("z"), HasSubstr("it holds x")));
  Archive bomb = good, longer = good, outside = good, shifted = good;
  bomb.method = 8;
  EXPECT_THAT(refusal_of_archive(bomb.text()), AllOf(HasSubstr("compressed"), HasSubstr("hint")));
  longer.size = 0xffffffff;
  outside.directory = 0xffff;
  shifted.local_name = 0xffff;
  for (const Archive& bad : {longer, outside, shifted}) EXPECT_NE(refusal_of_archive(bad.text()), "");
  for (size_t size = 0; size < good.text().size(); ++size)
    EXPECT_NE(refusal_of_archive(good.text().substr(0, size)), "") << size;
}

}  // namespace
}  // namespace hone
