// SPDX-License-Identifier: Apache-2.0
//
// NumPy's files: an array whose bytes lie inside the file, or a refusal. Every byte is read, so that the sanitizer sees it.
#include "harness.h"
#include "tools/common/npy.h"

namespace hone::fuzz {
namespace {

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
  return out;
}

/// A zip archive with one stored entry.
std::string archive(const std::string& name, const std::string& content) {
  const std::string sizes = little(content.size(), 4) + little(content.size(), 4);
  const std::string local =
      "PK\3\4" + little(20, 2) + little(0, 12) + sizes + little(name.size(), 2) + little(0, 2) + name;
  const std::string entry = "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 12) + sizes + little(name.size(), 2) +
                            little(0, 12) + little(0, 4) + name;
  return local + content + entry + "PK\5\6" + little(0, 4) + little(1, 2) + little(1, 2) + little(entry.size(), 4) +
         little(local.size() + content.size(), 4) + little(0, 2);
}

void read_all(const NpyArray& array) {
  unsigned sum = 0;
  for (const std::byte b : array.bytes) sum += static_cast<unsigned>(b);
  HONE_ASSERT(sum != 0xffffffff && array.bytes.size() == static_cast<size_t>(byte_size(array.dtype, array.dims)),
              "an array of {} bytes", array.bytes.size());
}

}  // namespace

std::vector<std::string> seed_inputs() {
  const std::string bytes(24, '\1');
  const std::string array = npy_text(DType::f32, {2, 3}, std::as_bytes(std::span(bytes)));
  return {array, npy_text(DType::u8, {24}, std::as_bytes(std::span(bytes))), archive("x.npy", array)};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  fuzz::accepted([&] { fuzz::read_all(parse_npy(file)); });
  fuzz::accepted([&] { fuzz::read_all(parse_npz(file, "x")); });
  return 0;
}
