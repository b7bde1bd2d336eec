// SPDX-License-Identifier: Apache-2.0
//
// Ranges of inputs by their consumers. Operators are made for the test: only names, operands and attributes matter.
#include "ir/range.h"

#include <gtest/gtest.h>

#include "ir/op.h"

namespace hone {
namespace {

void infer_float(InferContext& context) { context.set(0, DType::f32, Shape{1}); }
void infer_same(InferContext& context) { context.set(0, context.dtype(0), context.shape(0)); }

AttrSpec integer_attr(std::string_view name, int64_t fallback) {
  return {.name = name, .kind = AttrKind::integer, .fallback = fallback};
}

const OpDef kGather{
    .name = "Gather", .attrs = {integer_attr("axis", 0)}, .min_inputs = 2, .max_inputs = 2, .infer = infer_float};
const OpDef kLstm{.name = "LSTM", .min_inputs = 3, .max_inputs = 8, .infer = infer_float};
const OpDef kReverse{.name = "ReverseSequence",
                     .attrs = {integer_attr("time_axis", 0)},
                     .min_inputs = 2,
                     .max_inputs = 2,
                     .infer = infer_float};
const OpDef kRoiAlign{.name = "RoiAlign", .min_inputs = 3, .max_inputs = 3, .infer = infer_float};
const OpDef kReshape{.name = "Unsqueeze", .min_inputs = 1, .max_inputs = 1, .infer = infer_same};
const OpDef kCast{.name = "Cast", .min_inputs = 1, .max_inputs = 1, .infer = infer_float};
const OpDef kAdd{.name = "Add", .min_inputs = 2, .max_inputs = 2, .infer = infer_same};

struct Model {
  Graph graph;
  Value* ids = graph.add_input("ids", {DType::i64, Shape{4}});
  Value* data(Shape shape) { return graph.add_input("data", {DType::f32, std::move(shape)}); }
};

TEST(AcceptedRange, OfIndicesIsTheSizeOfTheAxis) {
  Model model;
  model.graph.add(kGather, {model.data(Shape{30, 10}), model.ids}, {{"axis", int64_t{-1}}});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{0, 9}));
}

TEST(AcceptedRange, OfImageNumbersIsTheBatch) {
  Model model;
  Value* x = model.data(Shape{3, 4, 8, 8});
  model.graph.add(kRoiAlign, {x, x, model.ids});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{0, 2}));
}

TEST(AcceptedRange, IsTheNarrowestOfAllConsumersSeenThroughViews) {
  Model model;
  Value* view = model.graph.add(kReshape, {model.ids})->output();
  model.graph.add(kGather, {model.data(Shape{30, 10}), model.ids});
  model.graph.add(kGather, {model.data(Shape{7, 10}), view});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{0, 6}));
}

TEST(AcceptedRange, OfLengthsBeginsAtOne) {
  Model model;
  Value* x = model.data(Shape{12, 4, 8});
  model.graph.add(kLstm, {x, x, x, nullptr, model.ids});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{1, 12}));
  model.graph.add(kReverse, {x, model.ids}, {{"time_axis", int64_t{2}}});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{1, 8}));
}

TEST(AcceptedRange, OfMasksIsZeroOrOne) {
  Model model;
  model.graph.add(kCast, {model.ids});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{0, 1}));
}

TEST(AcceptedRange, AdmitsTheFirstIndexAloneWhereOnlyTheRunKnowsTheSize) {
  Model model;
  model.graph.add(kGather, {model.data(Shape{Dim::symbol("n"), 10}), model.ids});
  EXPECT_EQ(accepted_range(model.ids), (IntegerRange{0, 0}));
}

TEST(AcceptedRange, IsOpenWhereAnyValueWillDo) {
  Model model;
  model.graph.add(kAdd, {model.ids, model.ids});
  EXPECT_FALSE(accepted_range(model.ids).has_value());
  EXPECT_FALSE(accepted_range(model.data(Shape{2})).has_value()) << "floats have no range";
}

}  // namespace
}  // namespace hone
