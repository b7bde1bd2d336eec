// SPDX-License-Identifier: Apache-2.0
#include "model_samples.h"

#include "onnx/model_writer.h"

namespace hone::fuzz {
namespace {

using W = onnx::ModelWriter;

std::string vector_of(const std::string& name) { return W::value(name, 1, {W::dim(2)}); }

/// Constants to fold, a shape to open, a pattern to find, weights to prune.
Blob with_constants() {
  return W::model(
      W::graph({.nodes = {W::node("Add", {"w", "w"}, {"v"}, {}, "fold me"), W::node("Min", {"x", "v"}, {"m"}),
                          W::node("Max", {"m", "w"}, {"c"}, {}, "clip"), W::node("Shape", {"x"}, {"s"}),
                          W::node("Concat", {"c", "v"}, {"d"}, {W::integer_attr("axis", 0)}, "join"),
                          W::node("Reshape", {"d", "to"}, {"y"}, {}, "reshape"), W::node("MatMul", {"y", "p"}, {"z"}),
                          W::node("Cast", {"s"}, {"f"}, {W::integer_attr("to", 1)}),
                          W::node("Cast", {"f"}, {"i"}, {W::integer_attr("to", 7)}), W::node("NonZero", {"x"}, {"n"})},
                .initializers = {W::raw_tensor("w", 1, {2}, std::string(8, '\1')), W::integers("to", {2}, {2, 2}),
                                 W::raw_tensor("p", 1, {2, 8}, std::string(64, '\2')),
                                 W::external("e", 1, {2}, {{"location", "elsewhere.data"}, {"length", "8"}})},
                .inputs = {W::value("x", 1, {W::dim(2)})},
                .outputs = {W::value("z", 1, {W::dim(2), W::dim(8)}), W::value("i", 7, {W::dim(1)}),
                            W::value("n", 7, {W::dim(1), W::dim("k")})}}));
}

/// Sizes that only a run knows, and a list of them that has to be folded.
Blob with_open_sizes() {
  return W::model(
      W::graph({.nodes = {W::node("Concat", {"x", "w"}, {"c"}, {W::integer_attr("axis", 0)}, "join"),
                          W::node("Reshape", {"c", "to"}, {"y"}, {}, "fold")},
                .initializers = {W::raw_tensor("w", 1, {2}, std::string(8, '\1')), W::integers("to", {2}, {-1, 2})},
                .inputs = {W::value("x", 1, {W::dim("N")})},
                .outputs = {W::value("y", 1, {W::dim("M"), W::dim(2)})}}));
}

/// The condition is a weight, so that one branch goes, or an input, so that both stay.
Blob with_bodies(bool chosen) {
  const std::string yes = W::graph({.nodes = {W::node("Neg", {"x"}, {"p"})}, .outputs = {vector_of("p")}}),
                    no = W::graph({.nodes = {W::node("Add", {"x", "x"}, {"q"})}, .outputs = {vector_of("q")}}),
                    loop = W::graph({.nodes = {W::node("Identity", {"go"}, {"on"}), W::node("Add", {"s", "x"}, {"t"})},
                                     .inputs = {W::value("i", 7, {}), W::value("go", 9, {}), vector_of("s")},
                                     .outputs = {W::value("on", 9, {}), vector_of("t")}}),
                    count = W::integers("n", {}, {3});
  return W::model(W::graph(
      {.nodes = {W::node("If", {"c"}, {"z"}, {W::graph_attr("then_branch", yes), W::graph_attr("else_branch", no)}),
                 W::node("Loop", {"n", "", "z"}, {"y"}, {W::graph_attr("body", loop)}),
                 W::node("Constant", {}, {"k"}, {W::tensor_attr("value", W::integers("", {}, {3}))})},
       .initializers =
           chosen ? std::vector{count, W::raw_tensor("c", 9, {}, std::string(1, '\1'))} : std::vector{count},
       .inputs = chosen ? std::vector{vector_of("x")} : std::vector{W::value("c", 9, {}), vector_of("x")},
       .outputs = {vector_of("y"), W::value("k", 7, {})}}));
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

}  // namespace

std::vector<std::string> model_samples() {
  std::vector<std::string> samples;
  for (const Blob& model :
       {with_constants(), with_open_sizes(), with_bodies(true), with_bodies(false), with_functions()})
    samples.emplace_back(model.text());
  return samples;
}

}  // namespace hone::fuzz
