// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements: symbolic sizes, contents that carry shapes, and the elements themselves.
#include "ops/movement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/state_error.h"
#include "ops/ops.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

/// A graph with helpers to add operators with constant operands.
struct Bench {
  Graph graph;

  Value* input(const std::string& name, std::initializer_list<const char*> dims, DType dtype = DType::f32) {
    Shape shape;
    for (const char* dim : dims) shape.push_back(Dim::parse(dim));
    return graph.add_input(name, {dtype, std::move(shape)});
  }
  Value* list(std::vector<int64_t> values) {
    return graph.add_constant(
        Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values)));
  }
  Value* number(int64_t value) { return graph.add_constant(Tensor::scalar(value)); }
  Value* op(const OpDef& def, std::vector<Value*> inputs, Attrs attrs = {}, size_t outputs = 0) {
    return graph.add(def, std::move(inputs), std::move(attrs), std::string(def.name), outputs)->output();
  }
};

std::vector<std::string> texts(const Value& value) {
  std::vector<std::string> result;
  if (value.symbolic)
    for (const Dim& dim : *value.symbolic) result.push_back(dim.text());
  return result;
}

/// The results for the input 0, 1, 2, … of the given sizes.
std::vector<int64_t> run(const OpDef& def, Dims dims, std::vector<Tensor> operands, Attrs attrs = {}) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::i64, Shape(std::span<const int64_t>(dims))});
  std::vector<Value*> inputs{x};
  for (Tensor& operand : operands) inputs.push_back(graph.add_constant(std::move(operand)));
  graph.set_outputs({graph.add(def, std::move(inputs), std::move(attrs))->output()});
  const std::vector<int64_t> numbers = iota(elements(dims));
  const Tensor result =
      evaluate(graph, std::vector<Tensor>{Tensor::of<int64_t>(dims, std::span<const int64_t>(numbers))})[0];
  EXPECT_EQ(result.dims(), graph.outputs()[0]->type.shape.values());
  return result.integers();
}

Tensor ints(std::vector<int64_t> values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

TEST(Reshape, SolvesTheOpenSizeExactly) {
  Bench b;
  EXPECT_EQ(b.op(ops::reshape, {b.input("x", {"N", "4", "6"}), b.list({0, 3, -1})})->type.text(), "f32[N,3,8]");
  EXPECT_EQ(b.op(ops::reshape, {b.input("z", {"N", "S", "64"}), b.list({-1, 64})})->type.text(), "f32[N*S,64]");
}

TEST(Reshape, TakesSizesFromShapesThatTravelThroughTheGraph) {
  Bench b;
  Value* x = b.input("x", {"N", "S", "64"});
  Value* shape = b.op(ops::shape, {x});
  Value* batch = b.op(ops::unsqueeze, {b.op(ops::gather, {shape, b.number(0)}), b.list({0})});
  Value* steps = b.op(ops::slice, {shape, b.list({1}), b.list({2})});
  Value* target = b.op(ops::concat, {batch, steps, b.list({4, 16})}, {{"axis", int64_t{0}}});
  EXPECT_THAT(texts(*target), ElementsAre("N", "S", "4", "16"));
  EXPECT_EQ(b.op(ops::reshape, {x, target})->type.text(), "f32[N,S,4,16]");
}

TEST(Reshape, RefusesSizesThatDoNotFit) {
  Bench b;
  Value* x = b.input("x", {"2", "3"});
  EXPECT_THROW(b.op(ops::reshape, {x, b.list({4, 2})}), Error);
  EXPECT_THROW(b.op(ops::reshape, {x, b.list({4, -1})}), Error);
  EXPECT_THROW(b.op(ops::reshape, {x, b.list({-1, -1})}), Error);
}

TEST(Squeeze, DropsAndAddsAxes) {
  Bench b;
  EXPECT_EQ(b.op(ops::squeeze, {b.input("x", {"1", "N", "1"})})->type.text(), "f32[N]");
  EXPECT_EQ(b.op(ops::squeeze, {b.input("y", {"1", "N", "1"}), b.list({-1})})->type.text(), "f32[1,N]");
  EXPECT_EQ(b.op(ops::unsqueeze, {b.input("z", {"N"}), b.list({2, 0})})->type.text(), "f32[1,N,1]");
  EXPECT_EQ(b.op(ops::flatten, {b.input("w", {"N", "2", "3"})})->type.text(), "f32[N,6]");
}

TEST(Shape, ReportsAPartOfTheAxes) {
  Bench b;
  EXPECT_THAT(texts(*b.op(ops::shape, {b.input("x", {"N", "C", "7"})}, {{"start", int64_t{-2}}})),
              ElementsAre("C", "7"));
  EXPECT_THAT(texts(*b.op(ops::size, {b.input("y", {"N", "7"})})), ElementsAre("7*N"));
}

TEST(Slice, ClampsToSymbolicSizes) {
  Bench b;
  Value* x = b.input("x", {"N", "8"});
  const auto sliced = [&](int64_t start, int64_t end, int64_t step, int64_t axis) {
    return b.op(ops::slice, {x, b.list({start}), b.list({end}), b.list({axis}), b.list({step})})
        ->type.shape[static_cast<size_t>(axis)]
        .text();
  };
  EXPECT_EQ(sliced(0, INT64_MAX, 1, 0), "N");
  EXPECT_EQ(sliced(1, INT32_MAX, 1, 0), "N - 1");
  EXPECT_EQ(sliced(0, -1, 1, 0), "N - 1");
  EXPECT_EQ(sliced(-1, INT64_MAX, 1, 0), "1");
  EXPECT_EQ(sliced(0, 5, 1, 0), Dim::parse("min(5, N)").text());
  EXPECT_EQ(sliced(-1, INT64_MIN, -1, 0), "N");
  EXPECT_EQ(sliced(2, 100, 3, 1), "2");
  EXPECT_EQ(sliced(-1, INT64_MIN, -3, 1), "3");
}

TEST(Slice, WalksBackwards) {
  EXPECT_THAT(run(ops::slice, {6}, {ints({-1}), ints({INT64_MIN}), ints({0}), ints({-2})}), ElementsAre(5, 3, 1));
  EXPECT_THAT(run(ops::slice, {2, 3}, {ints({1}), ints({-10}), ints({1}), ints({-1})}), ElementsAre(1, 0, 4, 3));
  EXPECT_THAT(run(ops::slice, {3}, {ints({5}), ints({9})}), ElementsAre());
}

TEST(Transpose, PermutesSizesAndElements) {
  Bench b;
  EXPECT_EQ(
      b.op(ops::transpose, {b.input("x", {"N", "C", "H"})}, {{"perm", std::vector<int64_t>{0, 2, 1}}})->type.text(),
      "f32[N,H,C]");
  EXPECT_THAT(run(ops::transpose, {2, 3}, {}), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Concat, AddsSizesAndFindsTheNumberAmongSymbols) {
  Bench b;
  EXPECT_EQ(
      b.op(ops::concat, {b.input("x", {"N", "2"}), b.input("y", {"N", "P"})}, {{"axis", int64_t{1}}})->type.text(),
      "f32[N,P + 2]");
  EXPECT_EQ(
      b.op(ops::concat, {b.input("u", {"N", "2"}), b.input("v", {"3", "2"})}, {{"axis", int64_t{1}}})->type.text(),
      "f32[3,4]");
}

TEST(Split, CutsEvenlyWithASmallerLastPart) {
  Bench b;
  const Node* node = b.graph.add(ops::split, {b.input("x", {"N", "7"})}, {{"axis", int64_t{1}}}, "split", 3);
  EXPECT_EQ(node->output(0)->type.text(), "f32[N,3]");
  EXPECT_EQ(node->output(2)->type.text(), "f32[N,1]");
  EXPECT_THROW(b.graph.add(ops::split, {b.input("y", {"7"}), b.list({3, 3})}, {}, "bad", 2), Error);
}

TEST(Gather, JoinsSizesAndRefusesForeignReads) {
  Bench b;
  EXPECT_EQ(b.op(ops::gather, {b.input("table", {"100", "64"}), b.input("ids", {"N", "S"}, DType::i64)})->type.text(),
            "f32[N,S,64]");
  EXPECT_THAT(run(ops::gather, {2, 3}, {ints({-1, 0})}, {{"axis", int64_t{1}}}), ElementsAre(2, 0, 5, 3));
  EXPECT_THROW(run(ops::gather, {2, 3}, {ints({2})}), Error);
  EXPECT_THROW(run(ops::gather, {2, 3}, {ints({-3})}), Error);
}

TEST(GatherElements, AndGatherNdFollowTheirIndices) {
  EXPECT_THAT(run(ops::gather_elements, {2, 2}, {Tensor::of<int64_t>({2, 2}, {1, 1, 0, -1})}, {{"axis", int64_t{0}}}),
              ElementsAre(2, 3, 0, 3));
  EXPECT_THAT(run(ops::gather_nd, {2, 3}, {Tensor::of<int64_t>({2, 2}, {1, 2, 0, -1})}), ElementsAre(5, 2));
  EXPECT_THAT(run(ops::gather_nd, {2, 2, 2}, {Tensor::of<int64_t>({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}}),
              ElementsAre(2, 3, 4, 5));
}

TEST(Scatter, WritesAndReduces) {
  EXPECT_THAT(run(ops::scatter_elements, {4}, {ints({1, 1}), ints({10, 20})}, {{"reduction", std::string("add")}}),
              ElementsAre(0, 31, 2, 3));
  EXPECT_THAT(run(ops::scatter_nd, {2, 2}, {Tensor::of<int64_t>({1, 1}, {1}), Tensor::of<int64_t>({1, 2}, {7, 8})}),
              ElementsAre(0, 1, 7, 8));
  EXPECT_THROW(run(ops::scatter_nd, {2, 2}, {Tensor::of<int64_t>({1, 1}, {2}), Tensor::of<int64_t>({1, 2}, {7, 8})}),
               Error);
}

TEST(Expand, BroadcastsToSymbolicSizes) {
  Bench b;
  Value* like = b.op(ops::shape, {b.input("like", {"N", "3"})});
  EXPECT_EQ(b.op(ops::expand, {b.input("x", {"1", "3"}), like})->type.text(), "f32[N,3]");
  EXPECT_THAT(run(ops::expand, {2, 1}, {ints({2, 2})}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(run(ops::tile, {2, 2}, {ints({2, 2})}), ElementsAre(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3));
}

TEST(Pad, KnowsItsModes) {
  const auto padded = [](const char* mode, std::vector<int64_t> pads) {
    return run(ops::pad, {3}, {ints(std::move(pads))}, {{"mode", std::string(mode)}});
  };
  EXPECT_THAT(padded("constant", {1, 1}), ElementsAre(0, 0, 1, 2, 0));
  EXPECT_THAT(padded("reflect", {2, 3}), ElementsAre(2, 1, 0, 1, 2, 1, 0, 1));
  EXPECT_THAT(padded("edge", {1, 2}), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(padded("wrap", {1, 1}), ElementsAre(2, 0, 1, 2, 0));
  EXPECT_THAT(padded("constant", {-1, 0}), ElementsAre(1, 2));
}

TEST(Range, CountsOverSizes) {
  Bench b;
  Value* steps = b.op(ops::gather, {b.op(ops::shape, {b.input("x", {"N", "S"})}), b.number(1)});
  EXPECT_EQ(b.op(ops::range, {b.number(0), steps, b.number(1)})->type.text(), "i64[S]");
  EXPECT_EQ(b.op(ops::range, {b.number(10), b.number(0), b.number(-3)})->type.text(), "i64[4]");
  EXPECT_THROW(b.op(ops::range, {b.number(0), b.number(4), b.number(0)}), Error);
}

TEST(TopK, RanksWithTiesInOrderOfPosition) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape{Dim(5)}});
  const Node* node = graph.add(ops::top_k, {x, graph.add_constant(ints({3}))}, {}, "top");
  graph.set_outputs({node->output(0), node->output(1)});
  const std::vector<Tensor> results = evaluate(graph, std::vector<Tensor>{Tensor::of<float>({5}, {1, 3, 3, 0, 2})});
  EXPECT_THAT(results[1].integers(), ElementsAre(1, 2, 4));
}

TEST(DataDependentSizes, AreTheSameSymbolAtEveryInference) {
  Bench b;
  Value* found = b.op(ops::non_zero, {b.input("x", {"N", "3"})});
  const std::string before = found->type.text();
  EXPECT_EQ(found->type.shape[0], Dim(2));
  EXPECT_FALSE(found->type.shape[1].is_constant());
  b.graph.infer_all();
  EXPECT_EQ(found->type.text(), before);
}

TEST(DepthToSpace, IsUndoneBySpaceToDepth) {
  for (const char* mode : {"DCR", "CRD"}) {
    const Attrs attrs{{"blocksize", int64_t{2}}, {"mode", std::string(mode)}};
    Graph graph;
    Value* x = graph.add_input("x", {DType::i64, Shape{Dim(1), Dim(8), Dim(2), Dim(3)}});
    Value* wide = graph.add(ops::depth_to_space, {x}, attrs)->output();
    EXPECT_EQ(wide->type.text(), "i64[1,2,4,6]");
    graph.set_outputs({graph.add(ops::space_to_depth, {wide}, attrs)->output()});
    const std::vector<int64_t> numbers = iota(48);
    const Tensor data = Tensor::of<int64_t>({1, 8, 2, 3}, std::span<const int64_t>(numbers));
    EXPECT_THAT(evaluate(graph, std::vector<Tensor>{data})[0].integers(), ElementsAreArray(numbers));
  }
}

TEST(Loop, WidensSizesThatGrow) {
  auto body = std::make_unique<Graph>();
  body->add_input("i", {DType::i64, {}});
  Value* again = body->add_input("again", {DType::boolean, {}});
  Value* grown = body->add_input("grown", {DType::i64, Shape{Dim(1)}});
  Value* more = body->add(ops::concat, {grown, grown}, {{"axis", int64_t{0}}}, "double")->output();
  body->set_outputs({again, more});
  Graph graph;
  Value* x = graph.add_input("x", {DType::i64, Shape{Dim(1)}});
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(std::move(body));
  Value* trips = graph.add_constant(Tensor::scalar<int64_t>(3));
  Node* node = graph.add(ops::loop, {trips, nullptr, x}, {}, "grow", 1, std::move(bodies));
  graph.set_outputs({node->output()});
  EXPECT_FALSE(node->output()->type.shape[0].is_constant());
  EXPECT_THAT(evaluate(graph, std::vector<Tensor>{ints({7})})[0].integers(), ElementsAre(7, 7, 7, 7, 7, 7, 7, 7));
  EXPECT_EQ(evaluate(graph.clone(), std::vector<Tensor>{ints({7})})[0].size(), 8);
}

/// What `op` says of sizes that only come with a run.
std::string refusal_of_sizes(const OpDef& op, const std::vector<Value*>& first, Graph& graph, Tensor sizes,
                             Attrs attrs = {}) {
  std::vector<Value*> operands = first;
  operands.push_back(graph.add_input("sizes", sizes.type()));
  graph.set_outputs({graph.add(op, operands, std::move(attrs), "bad")->output()});
  try {
    evaluate(graph, std::vector<Tensor>{std::move(sizes)});
  } catch (const OutOfMemory& error) {
    return error.what();
  }
  return {};
}

TEST(SizesOfRuns, BeyondAllMemoryAreRefusedBeforeTheOperatorWorks) {
  constexpr int64_t kHuge = int64_t{1} << 44;
  const Attrs window{
      {"output_datatype", int64_t{1}}, {"periodic", int64_t{1}}, {"weights", std::vector<double>{0.5, -0.5}}};
  Graph a, b, c;
  const std::string refusals[] = {
      refusal_of_sizes(ops::expand, {a.add_constant(ints({1}))}, a, ints({3, kHuge})),
      refusal_of_sizes(ops::tile, {b.add_constant(ints({1, 2}))}, b, ints({kHuge})),
      refusal_of_sizes(ops::window, {}, c, Tensor::scalar(kHuge), window),
  };
  for (const std::string& refusal : refusals) EXPECT_THAT(refusal, AllOf(HasSubstr("node bad"), HasSubstr("are free")));
  Graph small;
  EXPECT_EQ(refusal_of_sizes(ops::tile, {small.add_constant(ints({1, 2}))}, small, ints({3})), "");
}

}  // namespace
}  // namespace hone
