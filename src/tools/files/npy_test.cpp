// SPDX-License-Identifier: Apache-2.0
//
// NumPy files that are damaged or malicious: nothing is unpickled, inflated without bound or read behind the end.
#include "tools/files/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "tools/files/zip_testing.h"

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

std::string refusal_of_archive(const std::string& text, const char* name = "x") {
  return refusal([&] { parse_npz(bytes_of(text), name); });
}

std::string numbers() { return npy_text(DType::f32, {2, 3}, bytes_of(std::string(24, '\1'))); }

TEST(Npz, EntriesMustLieInTheArchive) {
  for (const ZipSample& good : {ZipSample::stored(numbers()), ZipSample::compressed(numbers())}) {
    EXPECT_EQ(refusal_of_archive(good.text()), "");
    EXPECT_THAT(refusal_of_archive(good.text(), "z"), AllOf(HasSubstr("z"), HasSubstr("it holds x")));
    ZipSample longer = good, shorter = good, outside = good, shifted = good, secret = good, other = good;
    longer.size = 0xfffffff0, shorter.size -= 1;
    longer.packed_size = good.method == 0 ? 0xfffffff0 : good.packed_size;
    outside.directory = 0xffff;
    shifted.local_name = 0xffff;
    secret.flags = 1;
    other.method = 12;
    for (const ZipSample& bad : {longer, shorter, outside, shifted, secret, other})
      EXPECT_NE(refusal_of_archive(bad.text()), "");
    EXPECT_THAT(refusal_of_archive(other.text()), AllOf(HasSubstr("method 12"), HasSubstr("hint")));
    for (size_t size = 0; size < good.text().size(); ++size)
      EXPECT_NE(refusal_of_archive(good.text().substr(0, size)), "") << size;
  }
}

TEST(Npz, CompressedArraysAreWhatTheyWere) {
  std::string data(400'000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * i >> 7);
  const std::string archive = ZipSample::compressed(npy_text(DType::u8, {400'000}, bytes_of(data))).text();
  const NpyArray whole = parse_npz(bytes_of(archive), "x");
  EXPECT_TRUE(std::ranges::equal(whole.bytes, bytes_of(data)));
  NpyReader reader(bytes_of(archive), "x");
  std::string part(1000, '\0');
  for (const size_t at : {0UL, 1000UL, 300'000UL, 2000UL, 399'000UL}) {
    reader.read(at, std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part, data.substr(at, part.size())) << at;
  }
  reader.finish();
}

TEST(Npz, DamageIsSeen) {
  const std::string array = npy_text(DType::u8, {8}, bytes_of("12345678"));
  for (const ZipSample& good : {ZipSample::stored(array), ZipSample::compressed(array)}) {
    ZipSample wrong = good;
    wrong.checksum ^= 1;
    EXPECT_THAT(refusal_of_archive(wrong.text()), HasSubstr("checksum"));
    for (size_t i = 0; i < good.packed.size(); ++i) {
      ZipSample altered = good;
      altered.packed[i] = static_cast<char>(altered.packed[i] ^ 0x10);
      const std::string text = altered.text();
      if (refusal_of_archive(text).empty()) {  // another way to say the same
        EXPECT_TRUE(std::ranges::equal(parse_npz(bytes_of(text), "x").bytes, bytes_of("12345678"))) << i;
      }
    }
  }
}

TEST(Npz, BombsAreRefusedBeforeTheyAreInflated) {
  const std::string header = npy_text(DType::u8, {int64_t{1} << 40}, {});
  ZipSample bomb = ZipSample::compressed(header);
  bomb.size = header.size() + (uint64_t{1} << 30);
  EXPECT_THAT(refusal_of_archive(bomb.text()), HasSubstr("claims"));
  bomb.size = 0xffffffff;
  bomb.extra = little(1, 2) + little(8, 2) + little(header.size() + (uint64_t{1} << 40), 8);
  EXPECT_THAT(refusal_of_archive(bomb.text()), HasSubstr("claims"));
  ZipSample shape = ZipSample::compressed(header);
  EXPECT_THAT(refusal_of_archive(shape.text()), HasSubstr("takes 1099511627776 bytes"));
}

}  // namespace
}  // namespace hone
