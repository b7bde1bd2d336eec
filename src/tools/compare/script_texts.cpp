// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/script_texts.h"

namespace hone {

const char* const kPythonScript = R"SCRIPT(#!/usr/bin/env python3
# Written by: @COMMAND@
"""Runs the model by each of the runners below on the same inputs, and holds each against the first. Exit 0: they agree; 1: they do not."""

import base64
import io
import json
import os
import sys

import numpy as np

MODEL = @MODEL@
OUTPUTS = @OUTPUTS@  # tensors that are marked as outputs; empty: the model's own
FLAGS = @FLAGS@
PROFILE = {  # smallest, tuned and largest shapes
@PROFILE@}
INPUTS = {  # sizes, type, range of values
@INPUTS@}
SEED, ITERATIONS = @SEED@, @ITERATIONS@
ATOL, RTOL = @ATOL@, @RTOL@  # by output; "": of all others
SAVE_ENGINE, SAVE_TACTICS = @SAVE_ENGINE@, @SAVE_TACTICS@
SAVE_INPUTS, SAVE_OUTPUTS = @SAVE_INPUTS@, @SAVE_OUTPUTS@


def model_bytes():
    """The model, with OUTPUTS marked."""
    with open(MODEL, "rb") as file:
        content = file.read()
    if not OUTPUTS:
        return content
    import onnx

    model = onnx.load_from_string(content)
    own = {output.name: output for output in model.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(own.get(name) or onnx.ValueInfoProto(name=name) for name in OUTPUTS)
    return model.SerializeToString()


def own_engine(device):
    import hone

    model = hone.Model.parse(model_bytes(), os.path.dirname(MODEL) or ".", threshold=hone.WARNING)
    plan = model.build(FLAGS, device, threshold=hone.WARNING, profiles=[PROFILE] if PROFILE else ())
    if SAVE_ENGINE:
        plan.save(SAVE_ENGINE)
    if SAVE_TACTICS:
        layers = {layer.name: {"implementation": layer.source, "tactic": layer.tactic} for layer in plan.layers()}
        with open(SAVE_TACTICS, "w") as file:
            json.dump({"replay": layers}, file, indent=2)
    context = plan.engine(device).context()
    return lambda feed: {name: np.array(value) for name, value in context.run(feed).items()}


def onnx_runtime():
    import onnxruntime

    session = onnxruntime.InferenceSession(model_bytes(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feed: dict(zip(names, session.run(None, feed)))


def draw(iteration):
    """Inputs of an iteration, each from one generator with the iteration's seed."""
    random = np.random.RandomState(SEED + iteration)
    feed = {}
    for name, (sizes, dtype, low, high) in INPUTS.items():
        if np.issubdtype(dtype, np.floating):
            feed[name] = (random.random_sample(size=sizes) * (high - low) + low).astype(dtype)
        else:
            feed[name] = random.randint(low=int(low), high=int(high) + 1, size=sizes, dtype=dtype)
    return feed


def array(values):
    """As Polygraphy keeps arrays in JSON."""
    file = io.BytesIO()
    np.save(file, values)
    return {"array": base64.b64encode(file.getvalue()).decode(), "polygraphy_class": "ndarray"}


def agree(name, found, expected):
    """An element is off where it exceeds both tolerances."""
    if found.shape != expected.shape:
        print(f"FAILED | Output: '{name}' | shapes {found.shape} and {expected.shape}")
        return False
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    absolute = np.abs(found - expected)
    relative = absolute / np.where(expected == 0, np.finfo(np.float64).eps, np.abs(expected))
    atol, rtol = ATOL.get(name, ATOL[""]), RTOL.get(name, RTOL[""])
    good = not np.any(~(absolute <= atol) & ~(relative <= rtol))
    print(f"{'PASSED' if good else 'FAILED'} | Output: '{name}' | max abs {absolute.max(initial=0):.5g}, max rel {relative.max(initial=0):.5g}")
    return good


def main():
    runners = [
@RUNNERS@    ]
    feeds = [draw(iteration) for iteration in range(ITERATIONS)]
    results = {name: [run(feed) for feed in feeds] for name, run in runners}
    if SAVE_INPUTS:
        with open(SAVE_INPUTS, "w") as file:
            json.dump([{name: array(values) for name, values in feed.items()} for feed in feeds], file)
    if SAVE_OUTPUTS:
        runs = [[name, [{"outputs": {output: {"values": array(values), "polygraphy_class": "LazyArray"} for output, values in each.items()},
                         "runtime": 0.0, "runner_name": name, "polygraphy_class": "IterationResult"} for each in iterations]]
                for name, iterations in results.items()]
        with open(SAVE_OUTPUTS, "w") as file:
            json.dump({"lst": runs, "polygraphy_class": "RunResults"}, file)
    all_good = True
    (first, golden), *others = results.items()
    for name, iterations in others:
        passed = sum(all([agree(output, mine[output], values) for output, values in theirs.items()]) for mine, theirs in zip(golden, iterations))
        print(f"Accuracy Summary | {first} vs. {name} | Passed: {passed}/{ITERATIONS} iterations | Pass Rate: {100 * passed / ITERATIONS:.2f}%")
        all_good &= passed == ITERATIONS
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
)SCRIPT";

const char* const kCppScript = R"TEXT(// Written by: @COMMAND@
//
// Runs the model on each of the devices below on the same inputs, and holds each against the first. Exit 0: they agree; 1: they do not.
// Build: g++ -std=c++20 FILE $(pkg-config --cflags --libs hone)
#include <hone/hone.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::string kModel = @MODEL@, kSaveEngine = @SAVE_ENGINE@;
const std::vector<std::string> kFlags = @FLAGS@, kDevices = @DEVICES@;
constexpr unsigned kSeed = @SEED@;
constexpr int kIterations = @ITERATIONS@;
const std::map<std::string, double> kAbsolute = @ATOL@, kRelative = @RTOL@;  // by output; "": of all others

struct Range {
  std::string input;
  std::vector<std::int64_t> min, opt, max;
};
const std::vector<Range> kProfile = {
@PROFILE@};

struct Input {
  std::string name;
  std::vector<std::int64_t> sizes;
  double low, high;
};
const std::vector<Input> kInputs = {
@INPUTS@};

using Values = std::map<std::string, std::vector<float>>;

/// The inputs that hone run draws: 53 bits of two words each.
Values draw(int iteration) {
  std::mt19937 random(kSeed + static_cast<unsigned>(iteration));
  Values values;
  for (const Input& input : kInputs) {
    std::size_t count = 1;
    for (const std::int64_t size : input.sizes) count *= static_cast<std::size_t>(size);
    std::vector<float>& of_input = values[input.name];
    for (std::size_t i = 0; i < count; ++i) {
      const double a = static_cast<double>(random() >> 5), b = static_cast<double>(random() >> 6);
      of_input.push_back(static_cast<float>((a * 67108864.0 + b) / 9007199254740992.0 * (input.high - input.low) + input.low));
    }
  }
  return values;
}

std::vector<Values> run(const std::string& name) {
  hone::Device device(name);
  hone::Options options(kFlags);
  if (!kProfile.empty()) {
    int profile = 0;
    hone::check(hone_options_add_profile(options.get(), &profile));
    for (const Range& range : kProfile)
      hone::check(hone_options_set_range(options.get(), profile, range.input.c_str(), range.min.data(), range.opt.data(), range.max.data(),
                                         static_cast<int>(range.opt.size())));
  }
  const hone::Plan plan = hone::Plan::build(hone::Model::load(kModel), device, options);
  if (!kSaveEngine.empty()) plan.save(kSaveEngine);
  const hone::Engine engine(plan, device);
  hone_context* context = nullptr;
  hone::check(hone_context_create(engine.get(), 0, &context));
  std::vector<Values> results;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    Values inputs = draw(iteration), outputs;
    for (const Input& input : kInputs) {
      hone::check(hone_context_set_shape(context, input.name.c_str(), input.sizes.data(), static_cast<int>(input.sizes.size())));
      hone::check(hone_context_bind(context, input.name.c_str(), inputs[input.name].data(), HONE_MEMORY_HOST));
    }
    std::map<std::string, std::vector<std::max_align_t>> memory;
    for (std::size_t i = 0; i < hone_engine_tensors(engine.get()); ++i) {
      hone_tensor tensor{};
      tensor.size = sizeof tensor;
      hone::check(hone_engine_tensor(engine.get(), i, &tensor));
      if (tensor.is_input || tensor.by_value) continue;
      std::int64_t bytes = 0;
      hone::check(hone_context_bytes(context, tensor.name, &bytes));
      auto& held = memory[tensor.name];
      held.resize(static_cast<std::size_t>(bytes) / sizeof(std::max_align_t) + 1);
      hone::check(hone_context_bind(context, tensor.name, held.data(), HONE_MEMORY_HOST));
    }
    hone::check(hone_context_run(context));
    for (std::size_t i = 0; i < hone_engine_tensors(engine.get()); ++i) {
      hone_tensor tensor{};
      tensor.size = sizeof tensor;
      hone::check(hone_engine_tensor(engine.get(), i, &tensor));
      if (tensor.is_input) continue;
      hone_value* value = nullptr;
      hone::check(hone_value_create_from_output(context, tensor.name, &value));
      hone_tensor found{};
      found.size = sizeof found;
      hone::check(hone_value_describe(value, &found));
      std::size_t count = 1;
      for (int axis = 0; axis < found.rank; ++axis) count *= static_cast<std::size_t>(found.dims[axis]);
      const void* data = hone_value_data(value);
      std::vector<float>& of_output = outputs[tensor.name];
      for (std::size_t k = 0; k < count; ++k) {
        if (found.dtype == HONE_F32) of_output.push_back(static_cast<const float*>(data)[k]);
        else if (found.dtype == HONE_I64) of_output.push_back(static_cast<float>(static_cast<const std::int64_t*>(data)[k]));
        else if (found.dtype == HONE_I32) of_output.push_back(static_cast<float>(static_cast<const std::int32_t*>(data)[k]));
        else throw std::runtime_error(std::string("output ") + tensor.name + " is of a type that this program does not compare");
      }
      hone_value_destroy(value);
    }
    results.push_back(outputs);
  }
  hone_context_destroy(context);
  return results;
}

/// An element is off where it exceeds both tolerances.
bool agree(const std::string& name, const std::vector<float>& found, const std::vector<float>& expected) {
  bool good = found.size() == expected.size();
  const auto limit = [&](const std::map<std::string, double>& limits) { return limits.count(name) ? limits.at(name) : limits.at(""); };
  const double atol = limit(kAbsolute), rtol = limit(kRelative);
  double worst = 0;
  for (std::size_t i = 0; good && i < found.size(); ++i) {
    const double absolute = std::abs(double{found[i]} - double{expected[i]});
    const double relative = absolute / (expected[i] == 0 ? std::numeric_limits<double>::epsilon() : std::abs(double{expected[i]}));
    worst = std::max(worst, absolute);
    if (!(absolute <= atol) && !(relative <= rtol)) good = false;
  }
  std::printf("%s | Output: '%s' | %zu values, max abs %.5g\n", good ? "PASSED" : "FAILED", name.c_str(), found.size(), worst);
  return good;
}

}  // namespace

int main() {
  try {
    std::vector<std::vector<Values>> results;
    for (const std::string& device : kDevices) results.push_back(run(device));
    bool all = true;
    for (std::size_t other = 0; other < results.size(); ++other) {
      int passed = 0;
      for (int i = 0; i < kIterations; ++i) {
        bool good = true;
        for (const auto& [name, values] : results[other][static_cast<std::size_t>(i)]) good &= agree(name, results[0][static_cast<std::size_t>(i)][name], values);
        passed += good;
      }
      if (other > 0 || results.size() == 1) std::printf("Accuracy Summary | %s vs. %s | Passed: %d/%d iterations\n", kDevices[0].c_str(), kDevices[other].c_str(), passed, kIterations);
      all &= passed == kIterations;
    }
    return all ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
)TEXT";

}  // namespace hone
