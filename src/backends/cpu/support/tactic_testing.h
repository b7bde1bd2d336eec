// SPDX-License-Identifier: Apache-2.0
//
// The harness that tests tactics: every tactic that the source "cpu" offers for a region, at every instruction set that this
// machine has, with one and two workers, against the region's meaning, in several inferences. Also checks that a kernel stays
// inside its buffers and leaves its inputs alone, and that a tactic compiled for one size serves another. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "backends/cpu/run/device.h"
#include "backends/cpu/run/sources.h"
#include "backends/cpu/tactic_table.h"
#include "device/guarded_testing.h"
#include "device/regions_testing.h"
#include "ops/all.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "tensor/layout.h"

namespace hone::cpu {

struct CheckOptions {
  double tolerance = 1e-4;  // relative to the largest result; 0: exactly what the region's own types give
  uint64_t seed = 1;
  bool rounds = false;                                                  // operands may be rounded to bf16
  bool emulates = false;                                                // the processor's missing instructions for bf16
  bool halves = false;                                                  // weights may be kept as f16
  bool tf32 = true;                                                     // products of f32 may round as TF32 does
  SymbolValues tuned = {};                                              // sizes that the tactic is compiled for
  std::vector<SymbolValues> run = {};                                   // sizes that it is run at; none: the tuned ones
  std::function<std::vector<Tensor>(const Graph& region)> inputs = {};  // none: random_inputs()
};

namespace check {

/// Each tactic is run by its own team and by one of the other size, so two are enough where everything takes its time.
inline std::vector<int> teams() {
#ifdef __SANITIZE_ADDRESS__
  return {2};
#else
  return {1, 2};
#endif
}

inline std::vector<Isa> isas() {
  std::vector<Isa> result{Isa::scalar};
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (isa <= machine_isa()) result.push_back(isa);
  return result;
}

inline void poison(const GuardedMemory& memory) {
  std::memset(memory.data(), std::to_integer<int>(kPoison), memory.size());
}

/// Copies between a linear tensor and memory in another layout.
inline void relayout(const ConcreteType& type, const std::byte* from, std::byte* to, bool to_layout) {
  convert_layout(from, to, type.dtype, type.dims, to_layout ? Layout::linear : type.layout,
                 to_layout ? type.layout : Layout::linear);
}

inline Tensor widened(const Tensor& tensor) {
  return tensor.dtype() == DType::bf16 ? write_doubles(DType::f32, tensor.dims(), read_doubles(tensor)) : tensor;
}

/// The region as if nothing were rounded to bf16 on the way: kernels compute in f32 and round their result once.
inline Graph widened(const Graph& region) {
  Graph graph = region.clone();
  for (Value* input : graph.inputs())
    if (input->type.dtype == DType::bf16) input->type.dtype = DType::f32;
  for (Node* node : graph.nodes()) {
    if (node->is(ops::cast) && node->attrs.text("to") == "bf16") node->attrs.set("to", std::string("f32"));
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (const Value* value = node->input(i);
          value != nullptr && value->is_constant() && value->constant->dtype() == DType::bf16)
        graph.set_input(node, i, graph.add_constant(widened(*value->constant)));
  }
  graph.infer_all();
  return graph;
}

inline std::vector<Tensor> evaluate_widened(const Graph& region, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> wide;
  for (const Tensor& tensor : tensors) wide.push_back(widened(tensor));
  return evaluate(widened(region), wide);
}

/// A result of bf16 may be rounded once besides, unless it is to be exact.
inline void expect_close(const Tensor& expected, const Tensor& got, double tolerance, const std::string& label) {
  ASSERT_EQ(expected.dims(), got.dims()) << label;
  const std::vector<double> wanted = read_doubles(expected), found = read_doubles(got);
  double scale = 1;
  for (const double want : wanted)
    if (std::isfinite(want)) scale = std::max(scale, std::fabs(want));
  if (!is_float(expected.dtype())) tolerance = 0;
  const double rounding = tolerance > 0 && got.dtype() == DType::bf16 ? 0x1p-8 : 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double want = wanted[i], have = found[i];
    if (std::isnan(want) ? std::isnan(have)
                         : want == have || std::fabs(want - have) <= tolerance * scale + rounding * std::fabs(want))
      continue;
    FAIL() << label << ": element " << i << " of " << join_dims(expected.dims()) << " is " << have << ", not " << want;
  }
}

using hone::shapes_of;

/// As an engine loads it: with the sizes of the constants that compile() made, against which those that load() declares are held.
inline KernelShapes shapes_of(const Graph& region, const Tactic& tactic, const SymbolValues& symbols,
                              const Compiled& compiled) {
  KernelShapes shapes = shapes_of(region, tactic, symbols);
  shapes.constant_bytes.emplace();
  for (const Tensor& constant : compiled.constants) shapes.constant_bytes->push_back(constant.bytes().size());
  return shapes;
}

/// Inputs of a region, and what it makes of them.
struct Given {
  std::vector<Tensor> inputs, expected;
};

/// The same for every tactic and team, so it is kept while one region is checked: the reference takes its time.
inline const Given& given_at(const Graph& region, const CheckOptions& options, uint64_t draw) {
  constexpr size_t kKept = 16;
  static std::map<std::string, Given> kept;
  const std::string key =
      fmt::format("{} {} {} {}", options.seed, draw, options.tolerance == 0, options.inputs ? "" : print(region));
  if (kept.size() >= kKept || options.inputs) kept.clear();
  const auto [at, fresh] = kept.try_emplace(key);
  if (!fresh) return at->second;
  Given& given = at->second;
  given.inputs = options.inputs ? options.inputs(region) : random_inputs(region, options.seed + 1000 * draw);
  given.expected = options.tolerance == 0 ? evaluate(region, given.inputs) : evaluate_widened(region, given.inputs);
  return given;
}

/// Runs a kernel of one compiled tactic for one set of sizes: three inferences of one recording, the second on other values, each
/// on outputs and a workspace that hold NaNs.
inline void run_kernel(const Graph& region, const std::shared_ptr<const CpuKernel>& kernel, const Compiled& compiled,
                       const Tactic& tactic, const SymbolValues& symbols, CpuDevice& device,
                       const CheckOptions& options, const std::string& label) {
  const KernelShapes shapes = shapes_of(region, tactic, symbols);
  std::vector<GuardedMemory> inputs, outputs, constants;
  Launch launch;
  launch.kernel = kernel;
  for (const ConcreteType& type : shapes.inputs)
    launch.inputs.push_back(inputs.emplace_back(static_cast<size_t>(type.bytes())).data());
  for (const ConcreteType& type : shapes.outputs)
    launch.outputs.push_back(outputs.emplace_back(static_cast<size_t>(type.bytes())).data());
  for (const Tensor& constant : compiled.constants) {
    const GuardedMemory& copy = constants.emplace_back(constant.bytes().size());
    std::ranges::copy(constant.bytes(), copy.data());
    launch.constants.push_back(copy.data());
  }
  const GuardedMemory workspace(kernel->workspace_bytes());
  launch.workspace = workspace.data();
  const std::unique_ptr<Stream> stream = device.stream();
  const std::unique_ptr<Recording> recording = device.record({launch});

  for (const uint64_t draw : {0, 1, 0}) {
    const Given& given = given_at(region, options, draw);
    for (size_t i = 0; i < inputs.size(); ++i)
      relayout(shapes.inputs[i], given.inputs[i].bytes().data(), inputs[i].data(), true);
    for (const GuardedMemory& output : outputs) poison(output);
    poison(workspace);
    guarded_by() = label;
    recording->replay(*stream);
    std::vector<Tensor> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      TensorBuilder result(shapes.outputs[i].dtype, shapes.outputs[i].dims);
      relayout(shapes.outputs[i], outputs[i].data(), result.bytes(), false);
      results.push_back(result.finish());
      EXPECT_TRUE(outputs[i].intact()) << label << " writes past its result";
    }
    results = cut_to_sizes(region, std::move(results));
    for (size_t i = 0; i < given.expected.size(); ++i)
      expect_close(given.expected[i], results[i], options.tolerance, fmt::format("{}, draw {}", label, draw));
    EXPECT_TRUE(workspace.intact()) << label << " writes past its workspace";
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorBuilder after(shapes.inputs[i].dtype, shapes.inputs[i].dims);
      relayout(shapes.inputs[i], inputs[i].data(), after.bytes(), false);
      EXPECT_TRUE(std::ranges::equal(after.finish().bytes(), given.inputs[i].bytes())) << label << " changes its input";
    }
  }
}

/// Loads and runs one compiled tactic for one set of sizes.
inline void run_tactic(const Graph& region, const Compiled& compiled, const Tactic& tactic, const SymbolValues& symbols,
                       CpuDevice& device, const CheckOptions& options, const std::string& label) {
  run_kernel(region, load(device.info(), compiled.code, shapes_of(region, tactic, symbols, compiled)), compiled, tactic,
             symbols, device, options, label);
}

}  // namespace check

inline Problem make_problem(const Graph& symbolic, const SymbolValues& tuned, const DeviceInfo& device) {
  Problem problem;
  problem.symbolic = symbolic.clone();
  problem.region = sample_at(symbolic, tuned);
  problem.symbols = tuned;
  problem.device = device;
  return problem;
}

/// What the family (all when empty) offers; refusals of the family go to `refusals`.
inline std::vector<Tactic> offers_of(const Problem& problem, std::string_view family, std::string* refusals = nullptr) {
  Candidates candidates;
  source().propose(problem, candidates);
  std::vector<Tactic> offers;
  for (const Tactic& tactic : candidates.offers())
    if (family.empty() || tactic.name == family) offers.push_back(tactic);
  if (refusals != nullptr)
    for (const Candidates::Refusal& refusal : candidates.refusals())
      if (family.empty() || refusal.tactic == family) *refusals += refusal.tactic + ": " + refusal.reason + "\n";
  return offers;
}

/// Runs every tactic of `family` (all when empty) for the region; returns how many there were, over all instruction sets.
inline int check_tactics(const Graph& symbolic, std::string_view family, const CheckOptions& options = {}) {
  SCOPED_TRACE("seed " + std::to_string(options.seed) + "\n" + print(symbolic));
  int tried = 0;
  const bool emulates = options.rounds || options.emulates;
  if (emulates) setenv("HONE_CPU_BF16", "emulated", 1);
  for (const Isa isa : check::isas())
    for (const int workers : check::teams()) {
      CpuDevice device({.workers = workers, .isa = isa}), other({.workers = 3 - workers, .isa = isa});
      Problem problem = make_problem(symbolic, options.tuned, device.info());
      problem.allowed.bf16 = options.rounds, problem.allowed.f16 = options.halves, problem.allowed.tf32 = options.tf32;
      for (const Tactic& tactic : offers_of(problem, family)) {
        const std::string label = tactic.text() + " " + std::string(to_string(isa)) + " x" + std::to_string(workers);
        SCOPED_TRACE(label);
        const Compiled compiled = source().compile(problem, tactic);
        const std::vector<SymbolValues> points = options.run.empty() ? std::vector{options.tuned} : options.run;
        for (const SymbolValues& point : points)
          check::run_tactic(symbolic.specialize(point), compiled, tactic, point, device, options, label);
        check::run_tactic(symbolic.specialize(options.tuned), compiled, tactic, options.tuned, other, options,
                          label + ", loaded by another team");
        ++tried;
      }
    }
  if (emulates) unsetenv("HONE_CPU_BF16");
  return tried;
}

inline int check_tactics(std::string_view text, std::string_view family, const CheckOptions& options = {}) {
  return check_tactics(parse_graph(text, find_op), family, options);
}

}  // namespace hone::cpu
