// SPDX-License-Identifier: Apache-2.0
//
// The registry as a whole: names, rules and meanings are complete.
#include "ops/all.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace hone {
namespace {

TEST(AllOps, EveryNameIsListedOnceAndFound) {
  std::set<std::string_view> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(find_op(op->name), op);
  }
  EXPECT_EQ(find_op("NoSuchOperator"), nullptr);
}

TEST(AllOps, EveryOperatorHasAMeaningOrAFormula) {
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(op->eval != nullptr || op->is_pointwise() || op->traits.has_bodies) << op->name;
    EXPECT_TRUE(op->infer != nullptr || op->is_pointwise() || op->traits.has_bodies) << op->name;
  }
}

TEST(AllOps, NoTwoRulesAnswerForTheSameOnnxOperatorAndOpset) {
  for (const OpDef* a : all_ops())
    for (const OnnxRule& first : a->onnx)
      for (const OpDef* b : all_ops())
        for (const OnnxRule& second : b->onnx)
          if (&first != &second && first.op_type == second.op_type && first.domain == second.domain) {
            EXPECT_TRUE(first.until < second.since || second.until < first.since) << first.op_type;
          }
}

TEST(AllOps, FormulasBindWithTheirDefaultAttributes) {
  for (const OpDef* op : all_ops()) {
    if (!op->is_pointwise()) continue;
    Attrs attrs;
    for (const AttrSpec& spec : op->attrs)
      if (spec.fallback) attrs.set(std::string(spec.name), *spec.fallback);
    const Expr expr = op->pointwise.bind(attrs);
    for (const ExprNode& node : expr.nodes()) {
      EXPECT_NE(node.kind, ExprKind::attribute) << op->name;
      EXPECT_TRUE(node.kind != ExprKind::input || node.input < static_cast<int>(op->max_inputs)) << op->name;
    }
  }
}

}  // namespace
}  // namespace hone
