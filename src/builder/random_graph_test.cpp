// SPDX-License-Identifier: Apache-2.0
//
// Random graphs through the whole builder and the runtime, against the reference evaluation of the graph as it was. What
// fails is reduced, by turning inner values into inputs and dropping outputs, and printed as text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "backends/all.h"
#include "builder/build.h"
#include "builder/random_graph.h"
#include "ops/all.h"
#include "runtime/engine.h"

namespace hone {
namespace {

constexpr int kGraphs = 2000;

struct Cpu {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<Device> device = backend->open(0);
};

std::vector<Tensor> run_engine(const Cpu& cpu, const Graph& graph, std::span<const Tensor> inputs) {
  TimingCache cache;
  BuildOptions options;
  options.optimization_level = 0;
  const auto engine =
      Engine::load(build(graph.clone(), options, *cpu.backend, *cpu.device, cache), *cpu.backend, cpu.device);
  const std::unique_ptr<ExecutionContext> context = engine->context();
  std::vector<AlignedBuffer> memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    memory.emplace_back(std::max<size_t>(inputs[i].bytes().size(), 1));
    std::copy(inputs[i].bytes().begin(), inputs[i].bytes().end(), memory.back().data());
    context->bind(graph.inputs()[i]->name, memory.back().data());
  }
  for (const Value* output : graph.outputs()) {
    if (engine->by_value(output->name)) continue;
    memory.emplace_back(static_cast<size_t>(std::max<int64_t>(context->bytes(output->name), 1)));
    context->bind(output->name, memory.back().data());
  }
  const std::unique_ptr<Stream> stream = engine->device().stream();
  context->enqueue(*stream);
  stream->synchronize();
  std::vector<Tensor> results;
  for (const Value* output : graph.outputs()) {
    const Tensor view = context->value(output->name);
    results.push_back(Tensor(view.dtype(), view.dims(), Blob::copy(view.bytes())));
  }
  return results;
}

/// Empty when the engine gives what the reference gives.
std::string difference(const Cpu& cpu, const Graph& graph, std::span<const Tensor> inputs) {
  const std::vector<Tensor> expected = evaluate(graph, inputs);
  std::vector<Tensor> found;
  try {
    found = run_engine(cpu, graph, inputs);
  } catch (const std::exception& error) {
    return error.what();
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string& name = graph.outputs()[i]->name;
    if (found[i].dims() != expected[i].dims())
      return fmt::format("{} is [{}], expected [{}]", name, join_dims(found[i].dims(), ","),
                         join_dims(expected[i].dims(), ","));
    double largest = 1;
    for (int64_t k = 0; k < expected[i].size(); ++k)
      if (std::isfinite(expected[i].real(k))) largest = std::max(largest, std::abs(expected[i].real(k)));
    for (int64_t k = 0; k < expected[i].size(); ++k) {
      const double a = found[i].real(k), b = expected[i].real(k);
      if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-4 * largest) continue;
      return fmt::format("element {} of {} is {}, expected {}", k, name, a, b);
    }
  }
  return {};
}

/// The graph with only some outputs and with the value `cut` (if any) as a further input.
struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
};

/// Tries smaller graphs as long as they fail too.
Case reduced(const Cpu& cpu, Case failing) {
  bool smaller = true;
  while (smaller) {
    smaller = false;
    const size_t outputs = failing.graph.outputs().size();
    for (size_t i = 0; i < outputs && outputs > 1 && !smaller; ++i) {
      Case candidate{failing.graph.clone(), failing.inputs};
      candidate.graph.set_outputs({candidate.graph.outputs()[i]});
      candidate.graph.erase_dead();
      if (difference(cpu, candidate.graph, candidate.inputs).empty()) continue;
      failing = std::move(candidate);
      smaller = true;
    }
    const size_t nodes = failing.graph.node_count();
    for (size_t i = 0; i < nodes && !smaller; ++i) {  // the results of node i become inputs, nodes before it fall away
      Case candidate{failing.graph.clone(), failing.inputs};
      Node* node = candidate.graph.nodes()[i];
      if (node->outputs.size() != 1 || candidate.graph.is_output(node->output()) ||
          !node->output()->type.shape.is_static())
        continue;
      Graph alone = failing.graph.clone();
      alone.set_outputs({alone.nodes()[i]->output()});
      candidate.inputs.push_back(evaluate(alone, failing.inputs)[0]);
      Value* input =
          candidate.graph.add_input("cut" + std::to_string(i) + "_" + std::to_string(nodes), node->output()->type);
      candidate.graph.replace(node->output(), input);
      candidate.graph.erase_dead();
      if (candidate.graph.node_count() >= nodes || difference(cpu, candidate.graph, candidate.inputs).empty()) continue;
      failing = std::move(candidate);
      smaller = true;
    }
  }
  return failing;
}

TEST(RandomGraphs, GiveTheSameThroughTheEngineAsByTheReference) {
  const char* given = std::getenv("HONE_TEST_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
  std::cout << "seeds " << first << " to " << first + kGraphs - 1 << " (HONE_TEST_SEED sets the first)\n";
  const Cpu cpu;
  int failures = 0;
  for (uint64_t seed = first; seed < first + kGraphs && failures < 5; ++seed) {
    Case one{RandomGraph(seed).make(), {}};
    one.inputs = random_inputs(one.graph, seed);
    const std::string what = difference(cpu, one.graph, one.inputs);
    if (what.empty()) continue;
    ++failures;
    const Case small = reduced(cpu, std::move(one));
    ADD_FAILURE() << "seed " << seed << ": " << what << "\nreduced: " << difference(cpu, small.graph, small.inputs)
                  << "\n"
                  << print(small.graph);
  }
}

}  // namespace
}  // namespace hone
