// SPDX-License-Identifier: Apache-2.0
//
// What passes share: questions about values, small constants, and new nodes that inherit names and origins.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace hone {

/// The number that all elements of a numeric constant have; nothing for other values.
std::optional<double> splat(const Value* value);
/// Whether the value is a constant of about this number (relative tolerance 1e-4: exporters round differently).
bool is_splat(const Value* value, double number);
/// The largest finite number of f16, bf16, f32 or a type of few bits.
double largest_of(DType dtype);
/// Whether the value can be told to hold neither infinities nor NaN: numbers made of truths, integers and constants whose
/// magnitudes stay within its type all the way.
bool surely_finite(const Value* value);
/// Exactly one operand reads the value and it is no graph output.
bool used_once(const Graph& graph, const Value* value);
/// The producer when it is this operator and nothing else reads its result; else null.
Node* sole_producer(const Graph& graph, const Value* value, const OpDef& op);
Node* producer(const Value* value, const OpDef& op);
/// Whether `from` may be redirected to `to` without the interface losing a name.
bool may_replace(const Graph& graph, const Value* from, const Value* to);

Value* scalar(Graph& graph, DType dtype, double number);
Value* integers(Graph& graph, std::vector<int64_t> values);
Tensor tensor_from(DType dtype, Dims dims, std::span<const double> values);
std::vector<double> numbers_of(const Tensor& tensor);

/// "a" and "b" of "a + b".
std::vector<std::string_view> name_parts(std::string_view name);
/// "a + b" of the nodes' names, each part once.
std::string joined_name(std::span<const Node* const> parts);
void inherit(Node* node, std::span<const Node* const> parts);
/// A new node before `position` that takes the place of `parts`.
Node* insert_for(Graph& graph, Node* position, const OpDef& op, std::vector<Value*> inputs, Attrs attrs,
                 std::vector<const Node*> parts, size_t outputs = 0);

std::vector<std::string> texts_of(const Shape& shape);
/// A View before `position`, or `value` itself when it has the shape already.
Value* view(Graph& graph, Node* position, Value* value, const Shape& shape, std::vector<const Node*> parts);
/// Names of the sizes that the graph's inputs define. Sizes known only from data cannot be computed before a run.
bool follows_from_inputs(const Graph& graph, const Shape& shape);

}  // namespace hone
