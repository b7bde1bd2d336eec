// SPDX-License-Identifier: Apache-2.0
//
// What the operators that only move elements share: copies for any element type, propagation of symbolic contents through
// a movement, and small readers of integer operands.
#pragma once

#include <optional>
#include <vector>

#include "ir/op.h"

namespace hone {

/// result[i...] = source[base + sum of i*strides] (strides in elements, may be zero or negative).
Tensor copy_strided(const Tensor& source, Dims dims, int64_t base, const Dims& strides);
/// result[i, j, ...] = source[indices[0][i], indices[1][j], ...]; an index of -1 takes the one element of `fill`.
Tensor pick(const Tensor& source, const std::vector<std::vector<int64_t>>& indices, const Tensor* fill = nullptr);
/// result[i] = source[flat[i]] for flat element numbers.
Tensor pick_flat(const Tensor& source, Dims dims, std::span<const int64_t> flat);
/// 0, 1, ... count-1.
std::vector<int64_t> iota(int64_t count);

/// How InferContext::data_dependent() begins its names.
inline constexpr std::string_view kDataSymbol = "u_";
/// Sets the symbolic contents of every result when those of the `moved` operands are known and the others are constant:
/// runs the operator's own `eval` on element numbers in place of contents. Call after the types are set.
void propagate_moved(InferContext& context, std::span<const size_t> moved);
void propagate_moved(InferContext& context);  ///< operand 0 is moved
/// The operand's contents when they are known numbers.
std::optional<std::vector<int64_t>> known_integers(const InferContext& context, size_t operand);
/// Number of elements of a rank-1 operand that gives sizes; throws Error when not a number.
size_t known_count(const InferContext& context, size_t operand);
/// Throws Error where an operand is known to have another number of elements than one; `what` it is.
void check_one(const InferContext& context, size_t operand, std::string_view what);
/// Whether an expression over sizes (which are positive) can be seen not to be negative.
bool surely_nonnegative(const Dim& dim);
/// `index` counted from the end when negative; throws Error when outside 0..size-1.
int64_t checked_index(int64_t index, int64_t size);

/// For the trait `accepts`: a size as far as it is known, 1 otherwise.
int64_t known_size(const Dim& size);
/// Positions along an axis of the shape, and lengths or counts along it: at least 1, at most its size. Nothing for a scalar.
std::optional<IntegerRange> positions_along(const Shape& shape, int64_t axis);
std::optional<IntegerRange> lengths_along(const Shape& shape, int64_t axis);
/// Operand 1 holds positions along the node's axis of operand 0, or along its last axis positions on several axes behind
/// the node's batch_dims.
std::optional<IntegerRange> accepts_positions(const Node& node, size_t operand);
std::optional<IntegerRange> accepts_whole_positions(const Node& node, size_t operand);

/// For rules: an attribute of an older opset as a constant operand; null when it is not given. Removes the attribute.
Value* operand_from_attr(ImportContext& context, const char* name);
Value* integer_constant(ImportContext& context, std::vector<int64_t> values);
/// Sets outputs 0.. of the ONNX node to those of `node`.
void set_outputs(ImportContext& context, const Node& node);

}  // namespace hone
