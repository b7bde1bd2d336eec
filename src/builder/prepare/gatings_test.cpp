// SPDX-License-Identifier: Apache-2.0
//
// Which layers are given the longer form of f32, from offers of a source that has no kernels.
#include "builder/prepare/gatings.h"

#include <gtest/gtest.h>

#include "builder/tune.h"
#include "device/device_testing.h"
#include "ops/all.h"

namespace hone {
namespace {

/// So many gated layers behind each other; scaling by a constant is none.
std::string gated_layers(int count) {
  std::string text =
      "(%x0: f32[4,8]) {\n  %w = constant f32[8,8]!1\n  %v = constant f32[8,8]!2\n  %s = constant f32[8]!3\n";
  for (int i = 0; i < count; ++i)
    text += fmt::format(
        "  %a{0} = Linear(%x{0}, %w) \"a{0}\"\n  %b{0} = Linear(%x{0}, %v) \"b{0}\"\n  %m{0} = Mul(%a{0}, %b{0})\n"
        "  %x{1} = Mul(%m{0}, %s)\n",
        i, i + 1);
  return text + fmt::format("  return %x{}\n}}", count);
}

TEST(Gatings, CountsProductsOfTwoResultsOnTheLongestWay) {
  const Graph graph = parse_graph(R"((%x: f32[4], %y: f32[4]) {
  %a = Relu(%x)
  %b = Relu(%y)
  %p = Mul(%a, %b)
  %q = Mul(%p, %x)
  %r = Mul(%p, %p)
  %m = ReduceMax(%a) {keepdims=1}
  %s = Mul(%r, %m)
  return %s, %q
})",
                                  find_op);
  const Gatings gatings(graph);
  const std::vector<Node*> nodes = graph.nodes();
  EXPECT_EQ(gatings.behind(*nodes[0]), 2) << "through p and r: q is a product by an input, s by one number";
  EXPECT_EQ(gatings.behind(*nodes[2]), 1);
  EXPECT_EQ(gatings.behind(*nodes[4]), 0);
}

class NoKernels final : public TacticSource {
 public:
  std::string_view name() const override { return "none"; }
  void propose(const Problem& problem, Candidates& out) const override {
    out.offer({"none", "any", {}, std::vector(problem.region.inputs().size(), Layout::linear), {Layout::linear}});
  }
  Compiled compile(const Problem&, const Tactic&) const override { throw Error("compiled"); }
};

class DeviceWithTf32 final : public TestDevice {
 public:
  DeviceInfo info() const override { return {.name = "test", .architecture = "none", .tf32_matmuls = true}; }
};

/// Of each layer with products in the order of the network, whether TF32 is allowed for it.
std::vector<bool> allowed(Device& device, bool tf32 = true) {
  const NoKernels source;
  const TacticSource* const sources[] = {&source};
  const Backend backend{"test", nullptr, nullptr, nullptr, sources, [] { return std::string(); }};
  const BuildOptions options{.tf32 = tf32, .optimization_level = 0};
  const Listeners listeners;
  TimingCache cache;
  BuildSession session(parse_graph(gated_layers(12), find_op), options, backend, device, cache, listeners);
  std::vector<bool> found;
  for (const Layer& layer : make_layers(session, session.prepared.profiles.front()))
    if (layer.region.name().starts_with("a") || layer.region.name().starts_with("b"))
      found.push_back(layer.problem->allowed.tf32);
  return found;
}

TEST(Gatings, LayersBeforeTenOfThemComputeAsIfWithoutTf32) {
  TestDevice device;
  const std::vector<bool> found = allowed(device);
  ASSERT_EQ(found.size(), 12u) << "the two products of a layer are one";
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i >= 3) << i;
  for (const bool layer : allowed(device, false)) EXPECT_FALSE(layer);
}

TEST(Gatings, TakeNothingFromADeviceThatHasTf32) {
  DeviceWithTf32 device;
  for (const bool layer : allowed(device)) EXPECT_TRUE(layer);
}

}  // namespace
}  // namespace hone
