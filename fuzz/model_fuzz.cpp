// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an ONNX model, whatever they are, are imported or refused with an Error; read to be changed and written again, what
// is written is a model that reads and writes as itself.
#include "harness.h"
#include "model_samples.h"
#include "onnx/importer.h"
#include "onnx/model_file.h"

namespace hone::fuzz {
namespace {

void write_again(const Blob& model) {
  const std::string written = onnx::ModelFile(model).encode();
  const std::string again = onnx::ModelFile(Blob::copy(std::as_bytes(std::span(written)))).encode();
  HONE_ASSERT(written == again, "a model of {} bytes becomes one of {}", written.size(), again.size());
}

}  // namespace

std::vector<std::string> seed_inputs() { return model_samples(); }

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const Blob model = Blob::copy(std::as_bytes(std::span(data, size)));
  fuzz::accepted([&] { import_onnx_bytes(model, silent_logger()); });
  fuzz::accepted([&] { fuzz::write_again(model); });
  return 0;
}
