// SPDX-License-Identifier: Apache-2.0
//
// Operators of its own through operators.hpp and nothing else: sizes by text and by function, several results, one that is left out,
// workspace, attributes of all kinds, both layouts, constants as operands; in networks by hand, in a plan that is saved and loaded.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "hone/network.hpp"
#include "hone/operators.hpp"

namespace {

void promise(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

/// sums[n] and halves[n,(m+1)/2] of x[n,m], times the sum of `factors` and the constant w[1].
void sum_up(const hone::Call& call) {
  const auto x = call.read<float>(0), w = call.read<float>(1);
  promise(!call.has(2), "an operand that is left out is none");
  const hone_attribute* factors = call.attribute("factors");
  promise(factors != nullptr && factors->kind == HONE_ATTRIBUTE_REALS && factors->count == 2, "factors are given");
  promise(call.attribute("word") != nullptr && std::string_view(call.attribute("word")->text) == "a b", "so is a text");
  promise(call.integer("start") == 1 && call.real("nothing", 7) == 7, "defaults hold");
  const float factor = (factors->reals[0] + factors->reals[1]) * w[0];
  const auto rows = static_cast<size_t>(call.input(0).dims[0]), columns = static_cast<size_t>(call.input(0).dims[1]);
  auto* work = reinterpret_cast<float*>(call.workspace().data());
  promise(call.workspace().size() >= columns * sizeof(float), "there is room to work in");
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < columns; ++i) work[i] = x[row * columns + i] * factor;
    call.write<float>(0)[row] = std::accumulate(work, work + columns, 0.0f);
    for (size_t i = 0; i < columns; i += 2) call.write<float>(1)[row * ((columns + 1) / 2) + i / 2] = work[i];
  }
}

std::vector<float> run(hone::Context& context, const std::vector<int64_t>& shape, const std::string& output) {
  std::vector<float> x(static_cast<size_t>(shape[0] * shape[1]));
  std::iota(x.begin(), x.end(), 1.0f);
  context.set_shape("x", shape);
  context.set_value("x", hone::Value::tensor<float>(shape, x));
  std::vector<float> y(static_cast<size_t>(context.bytes(output)) / sizeof(float));
  context.bind(output, std::span(y));
  context.run();
  return y;
}

void several_results(const char* plan_path) {
  hone::Operator sums("com.acme", "Sums", 2, 2, {"x0[0]", "x0[0], (x0[1] + start) / 2"});
  const int types[] = {HONE_TYPE_OF_INPUT(0), HONE_F32};
  hone_attribute start{};
  start.size = sizeof start;
  start.name = "start";
  start.integer = 1;  // of the kind 0
  sums.options().output_types = types;
  sums.options().max_inputs = 3;
  sums.options().attributes = &start;
  sums.options().attribute_count = 1;
  sums.run = sum_up;
  sums.workspace = [](const hone::Call& call) { return static_cast<size_t>(call.input(0).dims[1]) * sizeof(float); };
  sums.add();
  const hone::Device device("cpu");
  for (const std::string output : {"s", "h"}) {  // the other one nobody reads
    hone::Network network;
    const float w = 2;
    network.add_input("x", HONE_F32, {-1, -1}, {"n", "m"});
    network.add_constant("w", hone::Value::tensor<float>(std::vector<int64_t>{1}, std::span(&w, 1)));
    network.add_node("Relu", {"x"}, {"r"});
    network.add_node("Sums", {"r", "w"}, {"sums", "halves"},
                     {{"factors", std::vector<float>{0.25f, 0.25f}}, {"word", std::string("a b")}}, "sums", "com.acme");
    network.add_node("Neg", {output == "s" ? "sums" : "halves"}, {output});
    network.mark_output(output);
    const hone::Options options{"--builderOptimizationLevel=0", "--minShapes=x:1x1", "--optShapes=x:2x3",
                                "--maxShapes=x:8x9"};
    hone::Plan::build(network.model(), device, options).save(plan_path);
    hone::Context context(hone::Engine(hone::Plan::load(plan_path), device));
    promise(run(context, {2, 3}, output) ==
                (output == "s" ? std::vector<float>{-6, -15} : std::vector<float>{-1, -3, -4, -6}),
            "results are right");
    promise(run(context, {1, 4}, output) == (output == "s" ? std::vector<float>{-10} : std::vector<float>{-1, -3}),
            "and at other sizes");
  }
  sums.remove();
}

/// The rows of x[n,m] whose first value is above 2: a function says the sizes, of which it knows no more than the shape.
void sizes_by_function() {
  hone::Operator twice("com.acme", "Twice", 1, 1);
  twice.sizes = [](const hone::Call& call) {
    const auto dims = hone::Call::dims(call.input(0));
    call.set_dims(0, std::vector<int64_t>{dims[0] * 2, dims[1]});
  };
  twice.run = [](const hone::Call& call) {
    for (size_t i = 0; i < call.write<float>(0).size(); ++i)
      call.write<float>(0)[i] = call.read<float>(0)[i % call.read<float>(0).size()];
  };
  twice.add();
  const hone::Device device("cpu");
  for (const bool dynamic : {false, true}) {
    hone::Network network;
    network.add_input("x", HONE_F32, {dynamic ? -1 : 2, 2}, {"n"});
    network.add_node("Twice", {"x"}, {"t"}, {}, "twice", "com.acme");
    network.add_node("Neg", {"t"}, {"y"});
    network.mark_output("y");
    std::vector<std::string> flags{"--builderOptimizationLevel=0"};
    if (dynamic) flags.insert(flags.end(), {"--minShapes=x:1x2", "--optShapes=x:2x2", "--maxShapes=x:8x2"});
    hone::Context context(hone::Engine(hone::Plan::build(network.model(), device, hone::Options(flags)), device));
    const float x[] = {1, 2, 3, 4};
    if (dynamic) context.set_shape("x", {2, 2});
    context.set_value("x", hone::Value::tensor<float>(std::vector<int64_t>{2, 2}, x));
    std::vector<float> bound(8);
    if (!dynamic) context.bind("y", std::span(bound));
    context.run();
    const hone::Value y = context.output("y");
    promise(std::ranges::equal(y.elements<float>(), std::vector<float>{-1, -2, -3, -4, -1, -2, -3, -4}),
            "it is there twice");
  }
  twice.remove();
}

void failures() {
  hone::Operator odd("com.acme", "Odd", 1, 1, {"x0"});
  odd.run = [](const hone::Call& call) { static_cast<void>(call.read<double>(0)); };
  odd.add();
  hone::Network network;
  network.add_input("x", HONE_F32, {2});
  network.add_node("Odd", {"x"}, {"y"}, {}, "odd", "com.acme");
  network.mark_output("y");
  const hone::Device device("cpu");
  hone::Context context(
      hone::Engine(hone::Plan::build(network.model(), device, {"--builderOptimizationLevel=0"}), device));
  std::vector<float> x(2), y(2);
  context.bind("x", std::span(x));
  context.bind("y", std::span(y));
  try {
    context.run();
    promise(false, "an exception is a failure");
  } catch (const hone::Error& error) {
    promise(error.message().find("an operand has another type") != std::string::npos, "with its words");
    promise(error.message().find("running node odd") != std::string::npos, "and the node's name");
  }
  odd.remove();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    several_results(argv[1]);
    sizes_by_function();
    failures();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
