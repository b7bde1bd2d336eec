// SPDX-License-Identifier: Apache-2.0
//
// .safetensors files and raw bytes: tensors whose bytes fit their sizes, or a refusal. What was read, and can be written, is read from there
// again as it was.
#include "base/file.h"
#include "harness.h"
#include "tools/compare/tensor_files.h"
#include "written_file.h"

namespace hone::fuzz {
namespace {

/// Every byte is read, so that the sanitizer sees it.
void read_all(const TensorList& list) {
  for (const NamedTensor& each : list)
    HONE_ASSERT(Blob::copy(each.tensor.bytes()).size() ==
                    static_cast<size_t>(byte_size(each.tensor.dtype(), each.tensor.dims())),
                "{} has {} bytes", each.name, each.tensor.bytes().size());
}

void expect_same(const TensorList& list, const std::string& path) {
  write_safetensors(path, list);
  const TensorList again = read_safetensors(path);
  HONE_ASSERT(again.size() == list.size(), "{} tensors become {}", list.size(), again.size());
  for (const NamedTensor& each : list) {
    const Tensor* found = find_tensor(again, each.name);
    HONE_ASSERT(found != nullptr && found->dims() == each.tensor.dims() && found->dtype() == each.tensor.dtype(),
                "{} changes", each.name);
  }
}

}  // namespace

std::vector<std::string> seed_inputs() {
  const WrittenFile file("seed.safetensors");
  write_safetensors(file.of(""), {{"x", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}, {"n", Tensor::of<int64_t>({0}, {})}});
  return {read_file(file.path()), std::string(16, '\1')};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  static const fuzz::WrittenFile file("input.safetensors"), raw("input.bin"), second("again.safetensors");
  fuzz::accepted([&] {
    const TensorList list = read_safetensors(file.of(fuzz::text_of(data, size)));
    fuzz::read_all(list);
    fuzz::expect_same(list, second.path());
  });
  for (const Dims& dims : {Dims{-1}, Dims{2, -1}, Dims{2, 2}, Dims{0, -1}, Dims{}})
    fuzz::accepted([&] {
      for (const TensorList& list : load_inputs({"x:" + raw.of(fuzz::text_of(data, size))}, {{"x", DType::f32, dims}}))
        fuzz::read_all(list);
    });
  return 0;
}
