// SPDX-License-Identifier: Apache-2.0
//
// The source "host" against the reference, and what it refuses.
#include "backends/cpu/host/host.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "device/regions_testing.h"
#include "ops/all.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::cpu {
namespace {

std::optional<Tactic> offer_for(const Graph& graph) {
  Problem problem;
  problem.symbolic = graph.clone(), problem.region = graph.clone();
  Candidates candidates;
  host_source().propose(problem, candidates);
  return candidates.offers().empty() ? std::nullopt : std::optional(candidates.offers()[0]);
}

/// What the kernel makes of the operands; results whose sizes are known lie in memory, as an engine has them.
std::vector<Tensor> run_host(const Graph& graph, const std::vector<Tensor>& operands) {
  Problem problem;
  problem.symbolic = graph.clone(), problem.region = graph.clone();
  KernelShapes shapes;
  for (const Tensor& operand : operands) shapes.inputs.push_back({operand.dtype(), operand.dims()});
  std::vector<Tensor> managed(graph.outputs().size());
  std::vector<std::vector<std::byte>> memory(managed.size());
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Tensor& operand : operands) in.push_back(operand.bytes().data());
  for (size_t i = 0; i < managed.size(); ++i) {
    const TensorType& type = graph.outputs()[i]->type;
    const bool known = type.shape.is_static();
    shapes.outputs.push_back({type.dtype, known ? type.shape.values() : Dims(), Layout::linear, !known});
    memory[i].resize(known ? static_cast<size_t>(shapes.outputs[i].bytes()) : 0);
    out.push_back(known ? static_cast<void*>(memory[i].data()) : &managed[i]);
  }
  const auto kernel = load_host(host_source().compile(problem, {}).code, shapes);
  kernel->run(0, 0, 1, {in, out, {}, nullptr});
  for (size_t i = 0; i < managed.size(); ++i)
    if (!shapes.outputs[i].managed)
      managed[i] = Tensor(shapes.outputs[i].dtype, shapes.outputs[i].dims, Blob::copy(memory[i]));
  return managed;
}

void expect_like_reference(const std::string& text, const std::vector<Tensor>& operands, double tolerance = 0) {
  SCOPED_TRACE(text);
  const Graph graph = parse_graph(text, find_op);
  ASSERT_TRUE(offer_for(graph));
  const std::vector<Tensor> expected = evaluate(graph, operands), found = run_host(graph, operands);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].dtype(), expected[i].dtype());
    ASSERT_EQ(found[i].dims(), expected[i].dims()) << i;
    for (int64_t k = 0; k < found[i].size(); ++k)
      ASSERT_NEAR(found[i].real(k), expected[i].real(k), tolerance) << i << ", element " << k;
  }
}

template <typename T>
std::vector<Tensor> scalars(std::initializer_list<T> values) {
  std::vector<Tensor> tensors;
  for (const T value : values) tensors.push_back(Tensor::scalar(value));
  return tensors;
}

TEST(Host, Ranges) {
  const auto text = [](std::string_view type) {
    return fmt::format("(%a: {0}[], %b: {0}[], %c: {0}[]) {{\n %y = Range(%a, %b, %c)\n return %y\n}}", type);
  };
  for (const auto& [start, limit, step] :
       {std::tuple{0, 10, 3}, {10, 0, -3}, {0, 0, 1}, {5, 1, 1}, {-7, 8, 5}, {0, 9, 3}}) {
    expect_like_reference(text("i64"), scalars<int64_t>({start, limit, step}));
    expect_like_reference(text("i32"), scalars<int32_t>({start, limit, step}));
    expect_like_reference(text("f32"),
                          scalars<float>({0.1f * static_cast<float>(start), 0.1f * static_cast<float>(limit),
                                          0.1f * static_cast<float>(step)}));
  }
  expect_like_reference(text("f64"), scalars<double>({0, 1, 0.1}));
  constexpr int64_t kLast = INT64_MAX;
  expect_like_reference(text("i64"), scalars<int64_t>({kLast - 5, kLast, 2}));
  EXPECT_THROW(run_host(parse_graph(text("i64"), find_op), scalars<int64_t>({0, 5, 0})), Error);
  EXPECT_THROW(run_host(parse_graph(text("i64"), find_op), scalars<int64_t>({-kLast, kLast, 1})), Error);
  EXPECT_THROW(run_host(parse_graph(text("f32"), find_op), scalars<float>({0, 1e30f, 1})), Error);
}

TEST(Host, Fills) {
  const char* text = "(%s: i64[2]) {{\n %y = ConstantOfShape(%s){}\n return %y\n}}";
  const Tensor sizes = Tensor::of<int64_t>({2}, {3, 50}), none = Tensor::of<int64_t>({2}, {0, 50});
  for (const char* value :
       {"", " {value=tensor i64[1]{7}}", " {value=tensor bool[1]{1}}", " {value=tensor f32[1]{0.5}}"})
    for (const Tensor& dims : {sizes, none}) expect_like_reference(fmt::format(fmt::runtime(text), value), {dims});
  EXPECT_THROW(run_host(parse_graph(fmt::format(fmt::runtime(text), ""), find_op), {Tensor::of<int64_t>({2}, {3, -1})}),
               Error);
}

TEST(Host, Sizes) {
  const std::vector<Tensor> x{random_tensor(DType::f32, {2, 3, 5}, 1, 0, 1)};
  expect_like_reference("(%x: f32[2,3,5]) {\n %y = Shape(%x)\n return %y\n}", x);
  expect_like_reference("(%x: f32[2,3,5]) {\n %y = Shape(%x) {start=1, end=-1}\n return %y\n}", x);
  expect_like_reference("(%x: f32[2,3,5]) {\n %y = Size(%x)\n return %y\n}", x);
}

TEST(Host, Windows) {
  for (const int type : {1, 11})
    for (const int periodic : {0, 1})
      for (const int64_t size : {0, 2, 3, 10, 401})
        expect_like_reference(fmt::format("(%n: i64[]) {{\n %y = Window(%n) {{output_datatype={}, periodic={}, "
                                          "weights=[0.42, -0.5, 0.08]}}\n return %y\n}}",
                                          type, periodic),
                              scalars<int64_t>({size}), 1e-7);
}

TEST(Host, MelMatrices) {
  const char* text = R"((%b: i64[], %l: i64[], %r: i64[], %f: f32[], %t: f32[]) {
  %y = MelWeightMatrix(%b, %l, %r, %f, %t)
  return %y
})";
  for (const auto& [bands, length, low, high] :
       {std::tuple{80, 400, 0.0f, 8000.0f}, {8, 16, 0.0f, 4096.0f}, {40, 64, -300.0f, 20000.0f}}) {
    std::vector<Tensor> operands = scalars<int64_t>({bands, length, 16000});
    for (Tensor& edge : scalars<float>({low, high})) operands.push_back(std::move(edge));
    expect_like_reference(text, operands, 1e-7);
  }
}

TEST(Host, UnpoolingRefusesIndicesOutside) {
  const std::string text =
      "(%x: f32[2,3,4,5], %i: i64[2,3,4,5]) {\n %y = MaxUnpool(%x, %i) {kernel_shape=[2, 2], "
      "strides=[2, 2], pads=[0, 0, 0, 0]}\n return %y\n}";
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 120; ++i) indices.push_back(i * 4 + i % 4);
  const auto operands = [&] {
    return std::vector{random_tensor(DType::f32, {2, 3, 4, 5}, 3, -1, 1),
                       Tensor::of<int64_t>({2, 3, 4, 5}, std::span<const int64_t>(indices))};
  };
  expect_like_reference(text, operands());
  indices[7] = indices[8];  // the last one stays
  expect_like_reference(text, operands());
  indices[7] = 480;
  EXPECT_THROW(run_host(parse_graph(text, find_op), operands()), Error);
}

TEST(Host, UnpoolingIntoOtherSizes) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 12; ++i) indices.push_back(i * 4);
  const std::vector<Tensor> operands{random_tensor(DType::f64, {1, 1, 3, 4}, 3, -1, 1),
                                     Tensor::of<int64_t>({1, 1, 3, 4}, std::span<const int64_t>(indices)),
                                     Tensor::of<int64_t>({4}, {1, 1, 7, 9})};
  expect_like_reference(
      "(%x: f64[1,1,3,4], %i: i64[1,1,3,4], %s: i64[4]) {\n %y = MaxUnpool(%x, %i, %s) "
      "{kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0]}\n return %y\n}",
      operands);
}

TEST(Host, UniqueElements) {
  for (const int sorted : {0, 1})
    for (const char* results : {"%y, %f, %i, %c", "%y"})
      for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::i8, DType::f32, DType::f64}) {
        const std::string text = fmt::format("(%x: {}[7,41]) {{\n {} = Unique(%x) {{sorted={}}}\n return {}\n}}",
                                             name_of(dtype), results, sorted, results);
        const Tensor whole = random_tensor(DType::i32, {7, 41}, 5, dtype == DType::u8 ? 0 : -20, 20);
        expect_like_reference(text, {write_doubles(dtype, {7, 41}, read_doubles(whole))});
      }
}

TEST(Host, ZerosOfBothSignsAreOneAndNaNsAreLast) {
  const Tensor x = Tensor::of<float>({6}, {NAN, 0.0f, 1.0f, NAN, -0.0f, -1.0f});
  const std::vector<Tensor> found =
      run_host(parse_graph("(%x: f32[6]) {\n %y, %f, %i, %c = Unique(%x)\n return %y, %f, %i, %c\n}", find_op), {x});
  EXPECT_EQ(found[1].integers(), (Dims{5, 1, 2, 0}));
  EXPECT_EQ(found[2].integers(), (Dims{3, 1, 2, 3, 1, 0}));
  EXPECT_EQ(found[3].integers(), (Dims{1, 2, 1, 2}));
}

TEST(Host, LeavesToTheReferenceWhatItHasNoRuleFor) {
  EXPECT_FALSE(offer_for(parse_graph("(%x: f32[6]) {\n %y = NonZero(%x)\n return %y\n}", find_op)));
  EXPECT_FALSE(offer_for(parse_graph("(%x: f32[6,2]) {\n %y = Unique(%x) {axis=0}\n return %y\n}", find_op)));
}

TEST(Host, RefusesCodeThatItDoesNotWrite) {
  const auto code_of = [](const char* text) { return serialize(parse_graph(text, find_op)); };
  const KernelShapes shapes{.inputs = {{DType::f32, {6}}}, .outputs = {{DType::f32, {6}}}};
  EXPECT_THROW(load_host(code_of("(%x: f32[6]) {\n %y = Relu(%x)\n return %y\n}"), shapes), Error);
  EXPECT_THROW(load_host(code_of("(%x: f32[6]) {\n return %x\n}"), shapes), Error);
  EXPECT_THROW(load_host(code_of("(%x: f32[5]) {\n %y = Size(%x)\n return %y\n}"), shapes), Error);
}

}  // namespace
}  // namespace hone::cpu
