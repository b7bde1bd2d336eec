// SPDX-License-Identifier: Apache-2.0
//
// A program in C++ that uses Hone through hone.hpp alone; tests/test_capi.py drives it:
//
//   use_hpp MODEL.onnx PLAN ROWS
//
// builds a model with one float input x [n,4] and one float output, saves and loads the plan, runs it on ROWS rows of 0, 1, 2, ...
// in the calling thread and in a stream, and prints the output. Status 1 for an exception, 2 where the header broke a promise.
#include <cstdio>
#include <cstdlib>
#include <future>
#include <numeric>

#include "hone/network.hpp"

namespace {

void promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::exit(2);
}

/// y = a transposed x w of x [n,2], a = 0.5, by hand; told of in a stream, placed by a function.
void run_by_hand(const hone::Device& device) {
  const std::vector<float> weights{1, 2, 3, 4};
  hone::Network network;
  network.add_input("x", HONE_F32, {-1, 2}, {"n"});
  network.add_constant("w", hone::Value::tensor({2, 2}, std::span<const float>(weights)));
  network.add_node("Gemm", {"x", "w", ""}, {"h"}, {{"alpha", 0.5F}, {"transB", int64_t{0}}}, "multiply");
  network.add_node("Transpose", {"h"}, {"y"}, {{"perm", std::vector<int64_t>{1, 0}}});
  network.mark_output("y");
  promise(hone::Model::parse(network.bytes()).tensors().size() == 2, "a network is a file");
  hone::Model model = network.model();
  promise(model.weights().size() == 1 && model.weights()[0].name == "w", "weights have names");
  const std::vector<float> doubled{2, 4, 6, 8};
  model.set_weight("w", std::as_bytes(std::span(doubled)));
  hone::Context context(
      hone::Engine(hone::Plan::build(model, device, {"--builderOptimizationLevel=0", "--shapes=x:3x2"}), device));
  std::vector<float> x{1, 0, 0, 1, 1, 1}, y(6);
  context.set_shape("x", {3, 2});
  context.bind("x", std::span(x));
  context.set_output_function("y", [&](std::span<const int64_t> dims, int64_t bytes) {
    promise(dims[0] == 2 && dims[1] == 3 && bytes == 24, "a function is told the sizes");
    return y.data();
  });
  hone::Stream stream(device);
  std::promise<hone_status> done;
  context.enqueue(stream);
  stream.call([&](hone_status status) { done.set_value(status); });
  promise(done.get_future().get() == HONE_OK, "a stream calls");
  promise(y == std::vector<float>{1, 3, 4, 2, 4, 6}, "a network by hand computes");
}

int run(const std::string& model_path, const std::string& plan_path, int64_t rows) {
  const hone::Device device("cpu");
  run_by_hand(device);
  int lines = 0;
  const hone::Log log(HONE_LOG_INFO, [&](hone_severity, std::string_view text) { lines += text.empty() ? 0 : 1; });
  hone::Options options{"--builderOptimizationLevel=1"};
  options.add_profile({{"x", {1, 4}, {2, 4}, {8, 4}}});
  hone::TimingCache cache;
  options.set_timing_cache(cache);
  const hone::Plan built = hone::Plan::build(hone::Model::load(model_path, log), device, options, log);
  promise(lines > 0, "a build logs");
  promise(cache.entries() > 0 && hone::TimingCache(cache.bytes()).entries() == cache.entries(), "times are kept");
  promise(!built.layers().empty() && built.layers()[0].name[0] != '\0', "a plan has layers");
  built.save(plan_path);
  const hone::Engine engine(hone::Plan::load(plan_path), device);
  promise(engine.tensors().size() == 2 && engine.tensors()[0].name == "x", "the engine has an input and an output");

  hone::Context context(engine);
  context.set_shape("x", {rows, 4});
  const std::string result = engine.tensors()[1].name;
  std::vector<float> input(static_cast<size_t>(rows) * 4), output(static_cast<size_t>(context.bytes(result)) / 4);
  std::iota(input.begin(), input.end(), 0.0f);
  context.bind("x", std::span<const float>(input));
  context.bind(result, std::span(output));
  context.run();
  promise(!context.profile().empty(), "a profile has layers");
  const std::vector<float> first = output;

  hone::Stream stream(device);
  hone::Event begin(device), end(device);
  std::fill(output.begin(), output.end(), -1.0f);
  begin.record(stream);
  context.enqueue(stream);
  end.record(stream);
  stream.synchronize();
  promise(output == first, "a stream gives the same");
  promise(end.milliseconds_since(begin) >= 0, "events have times");
  promise(context.output(result).elements<float>().size() == output.size(), "an output has its elements");

  try {
    context.bind("x", std::span(output).first(1));
    promise(false, "memory that is too small is refused");
  } catch (const hone::Error& error) {
    promise(error.status() == HONE_INVALID_ARGUMENT && !error.hint().empty(), "errors carry a status and a hint");
  }
  for (const float value : first) std::printf("%.9g\n", static_cast<double>(value));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    return run(argv[1], argv[2], std::atoll(argv[3]));
  } catch (const hone::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
