// SPDX-License-Identifier: Apache-2.0
//
// Models made and edited through graph.hpp: what tests/test_graph.py makes in Python, too.
//
//   use_graph CASE OUT.onnx [IN.onnx]
#include "hone/graph.hpp"

#include <cstdio>
#include <functional>
#include <map>

namespace {

using hone::Graph;
using hone::GraphReference;
using hone::GraphSize;
using hone::Value;

Value filled(const std::vector<int64_t>& dims, float value) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  const std::vector<float> elements(count, value);
  return Value::tensor(dims, std::span<const float>(elements));
}

Value integers(const std::vector<int64_t>& values) {
  return Value::tensor({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

void need(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

Graph with_edges(int64_t opset, const hone::GraphTensor& input, const hone::GraphTensor& output) {
  Graph graph(opset);
  graph.declare(HONE_GRAPH_INPUTS, input);
  graph.declare(HONE_GRAPH_OUTPUTS, output);
  return graph;
}

std::vector<GraphSize> sizes(const std::vector<int64_t>& dims) { return {dims.begin(), dims.end()}; }

Graph example_01(const char*) {
  Graph graph = with_edges(11, {"X", hone::HONE_ONNX_FLOAT, sizes({1, 3, 5, 5})},
                           {"Y", hone::HONE_ONNX_FLOAT, sizes({1, 3, 1, 1})});
  graph.add("GlobalLpPool", {"X"}, {"Y"}, {{"p", int64_t{2}}});
  return graph;
}

Graph example_02(const char*) {
  Graph graph = with_edges(11, {"X", hone::HONE_ONNX_FLOAT, sizes({1, 3, 8, 8})},
                           {"Y", hone::HONE_ONNX_FLOAT, sizes({1, 5, 6, 6})});
  graph.set_weight("W", filled({5, 3, 3, 3}, 1));
  graph.add("Conv", {"X", "W"}, {"Y"});
  return graph;
}

Graph example_07(const char*) {
  Graph graph = with_edges(11, {"X", hone::HONE_ONNX_FLOAT, sizes({8, 8})}, {"y", hone::HONE_ONNX_FLOAT});
  graph.set_weight("A", filled({8, 8}, 1));
  graph.set_weight("B", filled({8, 8}, 0.5F));
  graph.add("Gemm", {"A", "X"}, {"product"}, {{"transA", int64_t{0}}, {"transB", int64_t{1}}});
  graph.add("Add", {"product", "B"}, {"sum"});
  graph.add("Relu", {"sum"}, {"clipped"});
  graph.add("Mul", {"clipped", "A"}, {"scaled"});
  graph.add("Add", {"scaled", "A"}, {"y"});
  graph.infer_shapes();
  return graph;
}

Graph example_09(const char*) {
  Graph graph = with_edges(11, {"data", hone::HONE_ONNX_FLOAT, {{"", 3, "", 5}}}, {"flattened", hone::HONE_ONNX_FLOAT});
  graph.declare(HONE_GRAPH_OUTPUTS, {"partially_flattened", hone::HONE_ONNX_FLOAT});
  graph.set_weight("first", integers({0, 1}));
  graph.set_weight("last", integers({2, 3}));
  const std::vector<hone::GraphAttribute> whole = {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{1}}};
  graph.add("Reshape", {"data", "partly"}, {"partially_flattened"});  // sort() puts it behind what it reads
  graph.add("Shape", {"data"}, {"shape"});
  graph.add("ReduceProd", {"shape"}, {"volume"}, whole);
  graph.add("Reshape", {"data", "volume"}, {"flattened"});
  graph.add("Gather", {"shape", "first"}, {"nc"});
  graph.add("Gather", {"shape", "last"}, {"hw"});
  graph.add("ReduceProd", {"hw"}, {"area"}, whole);
  graph.add("Concat", {"nc", "area"}, {"partly"}, {{"axis", int64_t{0}}});
  graph.sort();
  graph.infer_shapes();
  return graph;
}

/// y = scale * x + 1 as a function, called twice; one call leaves scale as it is by default.
Graph functions(const char*) {
  Graph scaled = Graph::function("mine", "Scaled", 17);
  scaled.declare(HONE_GRAPH_INPUTS, {"x"});
  scaled.declare(HONE_GRAPH_OUTPUTS, {"y"});
  scaled.put_parameter({"scale", 2.0F});
  scaled.add("Constant", {}, {"factor"}, {{"value_float", GraphReference{"scale", 1}}});
  scaled.set_weight("one", filled({}, 1));
  scaled.add("Mul", {"x", "factor"}, {"product"});
  scaled.add("Add", {"product", "one"}, {"y"});
  Graph graph = with_edges(17, {"x", hone::HONE_ONNX_FLOAT, {{"n"}}}, {"y", hone::HONE_ONNX_FLOAT, {{"n"}}});
  graph.set_opset("mine", 1);
  graph.put_function(scaled);
  graph.add("Scaled", {"x"}, {"h"}, {}, "first", "mine");
  graph.add("Scaled", {"h"}, {"y"}, {{"scale", 3.0F}}, "second", "mine");
  const std::vector<Graph> kept = graph.functions();
  need(kept.size() == 1 && kept[0].text(HONE_GRAPH_NAME) == "Scaled" && kept[0].text(HONE_GRAPH_DOMAIN) == "mine",
       "the function is another one");
  need(kept[0].size() == 4 && kept[0].node(0).op == "Constant", "the weight is no Constant node");
  return graph;
}

/// An If with two bodies that read a tensor around them; one is changed afterwards.
Graph bodies(const char*) {
  Graph graph = with_edges(17, {"x", hone::HONE_ONNX_FLOAT, {{"n"}}}, {"y", hone::HONE_ONNX_FLOAT, {{"n"}}});
  graph.declare(HONE_GRAPH_INPUTS, {"go", hone::HONE_ONNX_BOOL, std::vector<GraphSize>()});
  Graph then(17), otherwise(17);
  then.declare(HONE_GRAPH_OUTPUTS, {"a", hone::HONE_ONNX_FLOAT});
  then.add("Neg", {"h"}, {"a"});
  otherwise.declare(HONE_GRAPH_OUTPUTS, {"b", hone::HONE_ONNX_FLOAT});
  otherwise.add("Abs", {"h"}, {"b"});
  graph.add("Relu", {"x"}, {"h"});
  const size_t choice = graph.add("If", {"go"}, {"y"}, {{"then_branch", &then}, {"else_branch", &otherwise}}, "choice");
  Graph body = graph.body(choice, "then_branch");
  body.put(0, {"Exp", "", "", {"h"}, {"a"}, {}});
  graph.set(choice, {"then_branch", &body});
  need(graph.body(choice, "then_branch").node(0).op == "Exp", "the body is not the one that was put");
  need(graph.body(choice, "else_branch").node(0).op == "Abs", "the other body has changed");
  graph.rename("h", "middle");
  need(graph.body(choice, "else_branch").node(0).inputs[0] == "middle", "the body reads the old name");
  return graph;
}

/// Edits a model of Identity, Min, Max, Identity.
Graph edit(const char* path) {
  Graph graph = Graph::load(path);
  const std::vector<hone::GraphMatch> found = graph.match("Max(Min($x, #hi), #lo)");
  need(found.size() == 1 && found[0].nodes.size() == 2, "the pattern is not found once");
  need(graph.node(found[0].nodes[0]).op == "Max" && graph.matched(0, "x") == graph.node(0).outputs[0],
       "it is found elsewhere");
  need(graph.replace("Max(Min($x, $hi), $lo)", "Clip($x, $lo, $hi)") == 1, "nothing is replaced");
  need(graph.producer(graph.tensors(HONE_GRAPH_OUTPUTS)[0].name) == size_t{2}, "the output's producer is another one");
  std::vector<float> high;
  graph.read_weight(graph.node(1).inputs[2], [&](const hone_value* value) {
    high.assign(static_cast<const float*>(hone_value_data(value)),
                static_cast<const float*>(hone_value_data(value)) + 1);
  });
  need(high == std::vector<float>{6}, "the limit is another one");
  Graph copy = graph.copy();
  copy.erase(0);
  need(graph.size() == 3 && copy.size() == 2, "the copy is the graph itself");
  return graph;
}

/// output = input + ((a + b) + d).
Graph fold(const char*) {
  Graph graph =
      with_edges(13, {"input", hone::HONE_ONNX_FLOAT, sizes({1, 3})}, {"output", hone::HONE_ONNX_FLOAT, sizes({1, 3})});
  for (const char* name : {"a", "b", "d"}) graph.set_weight(name, filled({1, 3}, 1));
  graph.add("Add", {"a", "b"}, {"c"});
  graph.add("Add", {"c", "d"}, {"e"});
  graph.add("Add", {"input", "e"}, {"output"});
  graph.add("Neg", {"e"}, {"nobody"});
  need(graph.fold() == 3 && graph.size() == 1, "not everything is folded");
  graph.cleanup();
  need(graph.tensors(HONE_GRAPH_WEIGHTS).size() == 1 && graph.tensors(HONE_GRAPH_WEIGHTS)[0].name == "e",
       "other weights are left");
  return graph;
}

/// Every failure is an Error with a hint, and changes nothing.
Graph failures(const char*) {
  Graph graph = fold(nullptr);
  const auto refused = [&](const std::function<void()>& call, const char* text) {
    try {
      call();
    } catch (const hone::Error& error) {
      need(std::string(error.what()).find(text) != std::string::npos, error.what());
      return;
    }
    throw std::runtime_error(text);
  };
  refused([&] { graph.rename("nowhere", "x"); }, "does not exist in the model");
  refused([&] { graph.rename("input", "e"); }, "there is a tensor called e already");
  refused([&] { graph.replace("Add($x", "Neg($x)"); }, "cannot be read");
  refused([&] { graph.set(7, {"axis", int64_t{1}}); }, "node 7 is asked for, there are 1");
  refused([&] { graph.unset(0, "axis"); }, "has no attribute axis");
  refused([&] { graph.remove(HONE_GRAPH_WEIGHTS, "f"); }, "there is no f");
  refused([&] { Graph::load("/nowhere.onnx"); }, "nowhere.onnx");
  refused([&] { graph.put_function(graph); }, "is no function");
  graph.add("Neg", {"loop"}, {"loop"}, {}, "circle");
  refused([&] { graph.sort(); }, "circle -> circle");
  graph.erase(1);
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Graph (*)(const char*)> cases = {{"example_01", example_01},
                                                               {"example_02", example_02},
                                                               {"example_07", example_07},
                                                               {"example_09", example_09},
                                                               {"functions", functions},
                                                               {"bodies", bodies},
                                                               {"edit", edit},
                                                               {"fold", fold},
                                                               {"failures", failures}};
  if (argc < 3 || !cases.contains(argv[1])) return 2;
  try {
    cases.at(argv[1])(argc > 3 ? argv[3] : nullptr).save(argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
