// SPDX-License-Identifier: Apache-2.0
//
// NumPy's files: an array whose bytes lie inside the file or were inflated from it, or a refusal. Every byte is read, so that the sanitizer sees it.
#include "harness.h"
#include "tools/files/npy.h"
#include "tools/files/zip_testing.h"

namespace hone::fuzz {
namespace {

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
  return {array, npy_text(DType::u8, {24}, std::as_bytes(std::span(bytes))), ZipSample::stored(array).text(),
          ZipSample::compressed(array).text()};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  fuzz::accepted([&] { fuzz::read_all(parse_npy(file)); });
  fuzz::accepted([&] { fuzz::read_all(parse_npz(file, "x")); });
  return 0;
}
