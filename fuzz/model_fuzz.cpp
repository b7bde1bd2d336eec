// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an ONNX model, whatever they are, are imported or refused with an Error; read to be changed and written again, what
// is written is a model that reads and writes as itself.
#include "harness.h"
#include "onnx/importer.h"
#include "onnx/model_file.h"
#include "onnx/model_writer.h"

namespace hone::fuzz {
namespace {

using W = onnx::ModelWriter;

std::string vector_of(const std::string& name) { return W::value(name, 1, {W::dim(2)}); }

Blob with_constants() {
  return W::model(
      W::graph({.nodes = {W::node("Concat", {"x", "w"}, {"c"}, {W::integer_attr("axis", 0)}, "join"),
                          W::node("Reshape", {"c", "to"}, {"y"}, {}, "fold")},
                .initializers = {W::raw_tensor("w", 1, {2}, std::string(8, '\1')), W::integers("to", {2}, {-1, 2})},
                .inputs = {W::value("x", 1, {W::dim("N")})},
                .outputs = {W::value("y", 1, {W::dim("M"), W::dim(2)})}}));
}

Blob with_bodies() {
  const std::string yes = W::graph({.nodes = {W::node("Neg", {"x"}, {"p"})}, .outputs = {vector_of("p")}}),
                    no = W::graph({.nodes = {W::node("Add", {"x", "x"}, {"q"})}, .outputs = {vector_of("q")}}),
                    loop = W::graph({.nodes = {W::node("Identity", {"go"}, {"on"}), W::node("Add", {"s", "x"}, {"t"})},
                                     .inputs = {W::value("i", 7, {}), W::value("go", 9, {}), vector_of("s")},
                                     .outputs = {W::value("on", 9, {}), vector_of("t")}});
  return W::model(W::graph(
      {.nodes = {W::node("If", {"c"}, {"z"}, {W::graph_attr("then_branch", yes), W::graph_attr("else_branch", no)}),
                 W::node("Loop", {"n", "", "z"}, {"y"}, {W::graph_attr("body", loop)})},
       .initializers = {W::integers("n", {}, {3})},
       .inputs = {W::value("c", 9, {}), vector_of("x")},
       .outputs = {vector_of("y")}}));
}

Blob with_functions() {
  const std::string inner = W::function("G", {"a"}, {"b"}, {W::node("Relu", {"a"}, {"b"})}),
                    outer = W::function("F", {"a"}, {"b"},
                                        {W::node("G", {"a"}, {"t"}, {}, "", "local"),
                                         W::node("Softmax", {"t"}, {"b"}, {W::reference_attr("axis", "k", 2)})});
  return W::model(W::graph({.nodes = {W::node("F", {"x"}, {"y"}, {W::integer_attr("k", 0)}, "f", "local")},
                            .inputs = {vector_of("x")},
                            .outputs = {vector_of("y")}}),
                  {inner, outer});
}

void write_again(const Blob& model) {
  const std::string written = onnx::ModelFile(model).encode();
  const std::string again = onnx::ModelFile(Blob::copy(std::as_bytes(std::span(written)))).encode();
  HONE_ASSERT(written == again, "a model of {} bytes becomes one of {}", written.size(), again.size());
}

}  // namespace

std::vector<std::string> seed_inputs() {
  std::vector<std::string> seeds;
  for (const Blob& model : {with_constants(), with_bodies(), with_functions()}) seeds.emplace_back(model.text());
  return seeds;
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const Blob model = Blob::copy(std::as_bytes(std::span(data, size)));
  fuzz::accepted([&] { import_onnx_bytes(model, silent_logger()); });
  fuzz::accepted([&] { fuzz::write_again(model); });
  return 0;
}
