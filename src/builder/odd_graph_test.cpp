// SPDX-License-Identifier: Apache-2.0
//
// Valid models that are odd, through import, passes, builder and engine, against the reference; and indices that only the
// data make wrong, with memory behind the operands that nobody may touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "backends/all.h"
#include "builder/build.h"
#include "onnx/importer.h"
#include "onnx/model_writer.h"
#include "runtime/engine.h"

namespace hone {
namespace {

using W = onnx::ModelWriter;
using ::testing::HasSubstr;

/// Memory whose last byte is the last of its page; behind it lies one that nobody may touch.
class Fenced {
 public:
  explicit Fenced(size_t bytes) : size_((bytes + kPage - 1) / kPage * kPage + 2 * kPage) {
    start_ =
        static_cast<std::byte*>(::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(start_, kPage, PROT_NONE);
    ::mprotect(start_ + size_ - kPage, kPage, PROT_NONE);
    data_ = start_ + size_ - kPage - (bytes + kAligned - 1) / kAligned * kAligned;
  }
  ~Fenced() { ::munmap(start_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  std::byte* data() const { return data_; }

 private:
  static constexpr size_t kPage = 4096, kAligned = 64;
  size_t size_;
  std::byte *start_, *data_;
};

struct Cpu {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<Device> device = backend->open(0);
};

std::vector<Tensor> run_engine(const Graph& graph, std::span<const Tensor> inputs, BuildOptions options = {}) {
  const Cpu cpu;
  TimingCache cache;
  options.optimization_level = 0;
  const auto engine =
      Engine::load(build(graph.clone(), options, *cpu.backend, *cpu.device, cache), *cpu.backend, cpu.device);
  const std::unique_ptr<ExecutionContext> context = engine->context();
  std::vector<std::unique_ptr<Fenced>> memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    memory.push_back(std::make_unique<Fenced>(inputs[i].bytes().size()));
    std::copy(inputs[i].bytes().begin(), inputs[i].bytes().end(), memory.back()->data());
    context->set_shape(graph.inputs()[i]->name, inputs[i].dims());
    context->bind(graph.inputs()[i]->name, memory.back()->data());
  }
  for (const Value* output : graph.outputs()) {
    if (engine->by_value(output->name)) continue;
    memory.push_back(std::make_unique<Fenced>(static_cast<size_t>(context->bytes(output->name))));
    context->bind(output->name, memory.back()->data());
  }
  const std::unique_ptr<Stream> stream = engine->device().stream();
  context->enqueue(*stream);
  stream->synchronize();
  std::vector<Tensor> results;
  for (const Value* output : graph.outputs()) {
    const Tensor view = context->value(output->name);
    results.push_back(is_object(view.dtype()) ? view : Tensor(view.dtype(), view.dims(), Blob::copy(view.bytes())));
  }
  return results;
}

void expect_like_reference(const Blob& model, const SymbolValues& sizes = {}) {
  const Graph graph = import_onnx_bytes(model, silent_logger()).graph;
  const Graph numbers = graph.specialize(sizes);
  const std::vector<Tensor> inputs = random_inputs(numbers, 3), expected = evaluate(numbers, inputs);
  BuildOptions options;
  if (!sizes.empty()) {
    options.profiles.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!graph.inputs()[i]->type.shape.is_static())
        options.profiles[0][graph.inputs()[i]->name] = {inputs[i].dims(), inputs[i].dims(), inputs[i].dims()};
  }
  const std::vector<Tensor> found = run_engine(graph, inputs, options);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].dims(), expected[i].dims()) << graph.outputs()[i]->name;
    ASSERT_EQ(found[i].dtype(), expected[i].dtype());
    for (int64_t k = 0; k < found[i].size(); ++k) {
      const double a = found[i].real(k), b = expected[i].real(k);
      EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-5 * std::max(1.0, std::abs(b)))
          << graph.outputs()[i]->name << "[" << k << "]: " << a << ", expected " << b;
    }
  }
}

std::string value(const char* name, const Dims& dims, int type = 1) {
  std::vector<std::string> sizes;
  for (const int64_t size : dims) sizes.push_back(size < 0 ? W::dim("N") : W::dim(size));
  return W::value(name, type, sizes);
}

std::string ones(const char* name, const Dims& dims) {
  std::string raw;
  for (int64_t i = 0; i < elements(dims); ++i) raw.append("\0\0\x80?", 4);
  return W::raw_tensor(name, 1, dims, raw);
}

Blob one_node(const std::string& node, const std::vector<std::string>& inputs,
              const std::vector<std::string>& constants = {}) {
  return W::model(
      W::graph({.nodes = {node}, .initializers = constants, .inputs = inputs, .outputs = {value("y", {})}}));
}

TEST(OddGraph, OutputsMayBeConstantsAndEachOther) {
  expect_like_reference(
      W::model(W::graph({.nodes = {W::node("Identity", {"x"}, {"same"}), W::node("Relu", {"x"}, {"r"}),
                                   W::node("Reshape", {"r", "flat"}, {"view"}), W::node("Identity", {"w"}, {"copy"}),
                                   W::node("Identity", {"view"}, {"again"})},
                         .initializers = {ones("w", {2}), W::integers("flat", {1}, {-1})},
                         .inputs = {value("x", {2, 3})},
                         .outputs = {value("same", {}), value("r", {}), value("view", {}), value("w", {}),
                                     value("copy", {}), value("again", {})}})));
}
TEST(OddGraph, InputsMayBeUnusedAndResultsDropped) {
  expect_like_reference(W::model(
      W::graph({.nodes = {W::node("TopK", {"x", "k"}, {"", "where"}, {}, "top"), W::node("Relu", {"x"}, {"nobody"}),
                          W::node("Dropout", {"x"}, {"d"}), W::node("Abs", {"d"}, {"y"})},
                .initializers = {W::integers("k", {1}, {2})},
                .inputs = {value("x", {2, 3}), value("spare", {4})},
                .outputs = {value("where", {}), value("y", {})}})));
}
TEST(OddGraph, ANodeMayReadOneValueTwice) {
  expect_like_reference(one_node(W::node("Mul", {"x", "x"}, {"y"}), {value("x", {5})}));
  expect_like_reference(
      one_node(W::node("Concat", {"x", "x", "x"}, {"y"}, {W::integer_attr("axis", 0)}), {value("x", {2, 3})}));
  expect_like_reference(one_node(W::node("MatMul", {"x", "x"}, {"y"}), {value("x", {4, 4})}));
  expect_like_reference(one_node(W::node("Conv", {"x", "x"}, {"y"}), {value("x", {3, 3, 2, 2})}));
}
TEST(OddGraph, TensorsMayBeEmpty) {
  expect_like_reference(one_node(W::node("Relu", {"x"}, {"y"}), {value("x", {0, 3})}));
  expect_like_reference(one_node(W::node("MatMul", {"x", "w"}, {"y"}), {value("x", {0, 4})}, {ones("w", {4, 2})}));
  expect_like_reference(one_node(W::node("MatMul", {"x", "z"}, {"y"}), {value("x", {3, 0}), value("z", {0, 2})}));
  expect_like_reference(one_node(W::node("ReduceSum", {"x"}, {"y"}), {value("x", {2, 0})}));
  expect_like_reference(one_node(W::node("Concat", {"x", "z"}, {"y"}, {W::integer_attr("axis", 0)}),
                                 {value("x", {0, 3}), value("z", {2, 3})}));
  expect_like_reference(
      one_node(W::node("Conv", {"x", "w"}, {"y"}), {value("x", {0, 2, 5, 5})}, {ones("w", {3, 2, 3, 3})}));
  expect_like_reference(one_node(W::node("Softmax", {"x"}, {"y"}), {value("x", {4, 0})}));
  expect_like_reference(
      one_node(W::node("Gather", {"x", "i"}, {"y"}), {value("x", {4, 2})}, {W::integers("i", {0}, {})}));
  expect_like_reference(one_node(W::node("Transpose", {"x"}, {"y"}), {value("x", {2, 0, 3})}));
  expect_like_reference(one_node(W::node("Add", {"x", "z"}, {"y"}), {value("x", {2, 0}), value("z", {1})}));
}
TEST(OddGraph, TensorsMayBeScalars) {
  expect_like_reference(one_node(W::node("Add", {"x", "z"}, {"y"}), {value("x", {}), value("z", {})}));
  expect_like_reference(one_node(W::node("Softplus", {"x"}, {"y"}), {value("x", {})}));
  expect_like_reference(
      one_node(W::node("ReduceMax", {"x"}, {"y"}, {W::integer_attr("keepdims", 0)}), {value("x", {3, 2})}));
  expect_like_reference(
      one_node(W::node("Unsqueeze", {"x", "a"}, {"y"}), {value("x", {})}, {W::integers("a", {2}, {0, 1})}));
  expect_like_reference(
      one_node(W::node("Gather", {"x", "i"}, {"y"}), {value("x", {4})}, {W::integers("i", {}, {-1})}));
  expect_like_reference(
      one_node(W::node("Where", {"c", "x", "z"}, {"y"}), {value("c", {}, 9), value("x", {}), value("z", {3})}));
}
TEST(OddGraph, TensorsMayHaveManyAxes) {
  const Dims nine{2, 1, 2, 1, 2, 1, 2, 1, 2};
  expect_like_reference(one_node(W::node("Sigmoid", {"x"}, {"y"}), {value("x", nine)}));
  expect_like_reference(one_node(W::node("Transpose", {"x"}, {"y"}), {value("x", nine)}));
  expect_like_reference(one_node(W::node("Add", {"x", "z"}, {"y"}), {value("x", nine), value("z", {2, 2, 1, 2})}));
  expect_like_reference(
      one_node(W::node("ReduceMean", {"x"}, {"y"}, {W::integers_attr("axes", {0, 4, 8})}), {value("x", nine)}));
  expect_like_reference(
      one_node(W::node("MatMul", {"x", "z"}, {"y"}), {value("x", nine), value("z", {1, 1, 1, 2, 1, 1, 1, 2, 3})}));
  expect_like_reference(
      one_node(W::node("Concat", {"x", "x"}, {"y"}, {W::integer_attr("axis", 7)}), {value("x", nine)}));
  expect_like_reference(one_node(W::node("Softmax", {"x"}, {"y"}, {W::integer_attr("axis", 2)}), {value("x", nine)}));
  expect_like_reference(one_node(W::node("Slice", {"x", "s", "e"}, {"y"}), {value("x", nine)},
                                 {W::integers("s", {1}, {1}), W::integers("e", {1}, {2})}));
  const Dims many(32, 1);
  expect_like_reference(one_node(W::node("Tanh", {"x"}, {"y"}), {value("x", many)}));
  expect_like_reference(one_node(W::node("Transpose", {"x"}, {"y"}), {value("x", many)}));
}
TEST(OddGraph, NamesMayHoldAnything) {
  const std::string quote = "a\"b\\c\n\t'd' %e; {f} \xc3\xa4 \xff\xfe", empty_looking = " ", path = "../../etc/passwd";
  expect_like_reference(W::model(W::graph({.nodes = {W::node("Relu", {quote}, {empty_looking}, {}, quote),
                                                     W::node("Neg", {empty_looking}, {path}, {}, "%x = Add(")},
                                           .inputs = {value(quote.c_str(), {2, -1})},
                                           .outputs = {value(path.c_str(), {}), value(empty_looking.c_str(), {})}})),
                        {{"N", 3}});
}

// ---- bodies at fixed sizes: everything inside becomes numbers too ----

std::string branch(const std::vector<std::string>& nodes, const char* result,
                   const std::vector<std::string>& constants = {}) {
  return W::graph({.nodes = nodes, .initializers = constants, .outputs = {value(result, {})}});
}
Blob with_if(const std::string& yes, const std::string& no) {
  return W::model(
      W::graph({.nodes = {W::node("ReduceMax", {"x"}, {"m"}, {W::integer_attr("keepdims", 0)}),
                          W::node("Greater", {"m", "zero"}, {"c"}),
                          W::node("If", {"c"}, {"z"},
                                  {W::graph_attr("then_branch", yes), W::graph_attr("else_branch", no)}, "choose"),
                          W::node("Relu", {"z"}, {"y"})},
                .initializers = {W::raw_tensor("zero", 1, {}, std::string(4, '\0'))},
                .inputs = {value("x", {-1, 4})},
                .outputs = {value("y", {})}}));
}
TEST(FixedSizes, ReachIntoBranches) {
  expect_like_reference(
      with_if(branch({W::node("Neg", {"x"}, {"p"})}, "p"), branch({W::node("Abs", {"x"}, {"q"})}, "q")), {{"N", 3}});
  const std::vector<std::string> reshaped{W::node("Shape", {"x"}, {"s"}), W::node("ReduceProd", {"s"}, {"n"}),
                                          W::node("Reshape", {"x", "n"}, {"p"})};
  expect_like_reference(
      with_if(branch(reshaped, "p"), branch({W::node("Flatten", {"x"}, {"f"}, {W::integer_attr("axis", 0)}),
                                             W::node("Squeeze", {"f", "a"}, {"q"})},
                                            "q", {W::integers("a", {1}, {0})})),
      {{"N", 3}});
}
TEST(FixedSizes, LetBranchesDiffer) {
  expect_like_reference(with_if(branch({W::node("Concat", {"x", "x"}, {"p"}, {W::integer_attr("axis", 0)})}, "p"),
                                branch({W::node("Abs", {"x"}, {"q"})}, "q")),
                        {{"N", 3}});
  expect_like_reference(with_if(branch({W::node("Identity", {"w"}, {"p"})}, "p", {ones("w", {3, 4})}),
                                branch({W::node("Abs", {"x"}, {"q"})}, "q")),
                        {{"N", 3}});
  expect_like_reference(with_if(branch({W::node("Identity", {"w"}, {"p"})}, "p", {ones("w", {3, 4})}),
                                branch({W::node("Abs", {"x"}, {"q"})}, "q")),
                        {{"N", 2}});
}
Blob with_loop(const std::string& count, const std::vector<std::string>& body) {
  const std::string graph = W::graph({.nodes = body,
                                      .inputs = {value("i", {}, 7), value("go", {}, 9), value("s", {-1, 4})},
                                      .outputs = {value("on", {}, 9), value("t", {}), value("each", {})}});
  return W::model(
      W::graph({.nodes = {W::node("Shape", {"x"}, {"dims"}), W::node("Gather", {"dims", "first"}, {"n"}),
                          W::node("Loop", {count, "", "x"}, {"last", "all"}, {W::graph_attr("body", graph)}, "turn")},
                .initializers = {W::integers("first", {}, {0}), W::integers("three", {}, {3})},
                .inputs = {value("x", {-1, 4})},
                .outputs = {value("last", {}), value("all", {})}}));
}
TEST(FixedSizes, ReachIntoLoops) {
  const std::vector<std::string> sum{W::node("Identity", {"go"}, {"on"}), W::node("Add", {"s", "x"}, {"t"}),
                                     W::node("Identity", {"t"}, {"each"})};
  expect_like_reference(with_loop("three", sum), {{"N", 2}});
  expect_like_reference(with_loop("n", sum), {{"N", 2}});
  const std::vector<std::string> view{W::node("Identity", {"go"}, {"on"}), W::node("Reshape", {"s", "dims"}, {"r"}),
                                      W::node("Add", {"r", "x"}, {"t"}), W::node("Expand", {"n", "dims"}, {"e"}),
                                      W::node("Cast", {"e"}, {"each"}, {W::integer_attr("to", 1)})};
  expect_like_reference(with_loop("n", view), {{"N", 5}});
}
TEST(FixedSizes, LetLoopsGrow) {
  const std::vector<std::string> grow{W::node("Identity", {"go"}, {"on"}),
                                      W::node("Concat", {"s", "x"}, {"t"}, {W::integer_attr("axis", 0)}),
                                      W::node("Identity", {"x"}, {"each"})};
  expect_like_reference(with_loop("three", grow), {{"N", 2}});
  const std::vector<std::string> stop{W::node("Less", {"i", "n"}, {"on"}), W::node("Abs", {"s"}, {"t"}),
                                      W::node("Identity", {"t"}, {"each"})};
  expect_like_reference(with_loop("three", stop), {{"N", 1}});
}
TEST(FixedSizes, ReachThroughBodiesInBodies) {
  const std::string inner =
      W::graph({.nodes = {W::node("Identity", {"go2"}, {"on2"}), W::node("Reshape", {"s2", "dims"}, {"r2"}),
                          W::node("Add", {"r2", "x"}, {"t2"})},
                .inputs = {value("i2", {}, 7), value("go2", {}, 9), value("s2", {-1, 4})},
                .outputs = {value("on2", {}, 9), value("t2", {})}});
  const std::string yes =
                        branch({W::node("Loop", {"n", "", "s"}, {"p"}, {W::graph_attr("body", inner)}, "inner")}, "p"),
                    no = branch({W::node("Neg", {"s"}, {"q"})}, "q");
  expect_like_reference(
      with_loop("n", {W::node("Identity", {"go"}, {"on"}), W::node("Equal", {"i", "first"}, {"even"}),
                      W::node("If", {"even"}, {"t"},
                              {W::graph_attr("then_branch", yes), W::graph_attr("else_branch", no)}, "choose"),
                      W::node("Identity", {"t"}, {"each"})}),
      {{"N", 3}});
}
TEST(FixedSizes, ReachIntoScans) {
  const std::string body = W::graph({.nodes = {W::node("Add", {"s", "e"}, {"t"}), W::node("Mul", {"t", "t"}, {"o"})},
                                     .inputs = {value("s", {4}), value("e", {4})},
                                     .outputs = {value("t", {4}), value("o", {4})}});
  expect_like_reference(
      W::model(
          W::graph({.nodes = {W::node("Scan", {"start", "x"}, {"last", "all"},
                                      {W::graph_attr("body", body), W::integer_attr("num_scan_inputs", 1)}, "walk")},
                    .initializers = {ones("start", {4})},
                    .inputs = {value("x", {-1, 4})},
                    .outputs = {value("last", {}), value("all", {})}})),
      {{"N", 3}});
}

// ---- indices from data ----

/// Runs the node with data of 4 rows and indices that all are `index`; on failure what was said.
std::string said_with_index(const std::string& node, const Dims& indices, int64_t index, bool reference,
                            const std::vector<std::string>& more = {}) {
  std::vector<std::string> inputs{value("x", {4, 3}), value("i", indices, 7)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  const Graph graph = import_onnx_bytes(one_node(node, inputs), silent_logger()).graph;
  std::vector<Tensor> values = random_inputs(graph, 1);
  values[1] = Tensor::of<int64_t>(indices, std::vector<int64_t>(static_cast<size_t>(elements(indices)), index));
  BuildOptions options;
  if (reference) options.disabled_sources = {"cpu", "onednn"};
  try {
    run_engine(graph, values, options);
    return {};
  } catch (const InternalError& error) {
    return fmt::format("INTERNAL {}", error.what());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(IndicesFromData, NeverReachOutsideTheirOperand) {
  const std::string updates = value("u", {2, 3}), same = value("u", {4, 3});
  const struct {
    std::string node;
    Dims indices;
    std::vector<std::string> more;
  } cases[] = {
      {W::node("Gather", {"x", "i"}, {"y"}, {}, "at"), {2}, {}},
      {W::node("Gather", {"x", "i"}, {"y"}, {W::integer_attr("axis", 1)}, "at"), {2}, {}},
      {W::node("GatherElements", {"x", "i"}, {"y"}, {}, "at"), {2, 3}, {}},
      {W::node("GatherND", {"x", "i"}, {"y"}, {}, "at"), {2, 2}, {}},
      {W::node("ScatterElements", {"x", "i", "u"}, {"y"}, {}, "at"), {2, 3}, {updates}},
      {W::node("ScatterElements", {"x", "i", "u"}, {"y"}, {W::text_attr("reduction", "add")}, "at"), {2, 3}, {updates}},
      {W::node("ScatterND", {"x", "i", "u"}, {"y"}, {}, "at"), {2, 1}, {updates}}};
  for (const auto& test : cases)
    for (const int64_t index :
         {int64_t{4}, int64_t{-5}, int64_t{1000000}, int64_t{-1000000}, int64_t{1} << 62, INT64_MAX, INT64_MIN}) {
      EXPECT_EQ(said_with_index(test.node, test.indices, index, false, test.more), "")
          << "tuned: brought inside, index " << index;
      EXPECT_THAT(said_with_index(test.node, test.indices, index, true, test.more),
                  ::testing::AllOf(HasSubstr("node at"), Not(HasSubstr("INTERNAL"))))
          << "the reference refuses, index " << index;
    }
}

}  // namespace
}  // namespace hone
