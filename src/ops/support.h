// SPDX-License-Identifier: Apache-2.0
//
// What the arithmetic operators share: reading any numeric tensor as numbers, writing numbers back in the tensor's type,
// short forms for attribute schemas, and two formulas that several families use.
#pragma once

#include <vector>

#include "ir/op.h"

namespace hone {

/// A tensor's elements as floats; f32 is viewed, everything else converted.
class Floats {
 public:
  explicit Floats(const Tensor& tensor);
  Floats(Floats&&) noexcept = default;
  Floats& operator=(Floats&&) noexcept = default;
  std::span<const float> span() const { return view_; }
  const float* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  float operator[](int64_t i) const { return view_[static_cast<size_t>(i)]; }

 private:
  Tensor keep_;
  std::vector<float> own_;
  std::span<const float> view_;
};

std::vector<double> read_doubles(const Tensor& tensor);
/// Rounds to the type; integers truncate towards zero and saturate.
Tensor write_doubles(DType dtype, Dims dims, std::span<const double> values);
Tensor write_floats(DType dtype, Dims dims, std::span<const float> values);
Tensor write_integers(DType dtype, Dims dims, std::span<const int64_t> values);
/// One element of any numeric type.
Tensor scalar_of(DType dtype, double value);

/// The type behind a number of ONNX's TensorProto.DataType.
DType dtype_of_onnx(int64_t number);

AttrSpec integer_attr(std::string_view name, int64_t fallback);
AttrSpec real_attr(std::string_view name, double fallback);
AttrSpec text_attr(std::string_view name, std::string fallback);
AttrSpec integers_attr(std::string_view name);  ///< optional, no default
AttrSpec required_attr(std::string_view name, AttrKind kind);

/// Result 0 has the type and shape of operand 0.
void infer_same(InferContext& context);
void check_rank(const InferContext& context, size_t operand, size_t rank, std::string_view what);
/// Throws when both sizes are numbers and differ.
void check_equal(const Dim& a, const Dim& b, std::string_view what);

/// For the trait `entries_apart`, of operators that work on every entry alike: of operand 0, the others are weights; of operand 0
/// unless they work along the first axis themselves; of all operands that have the rank of the result.
bool first_apart(const Node& node, size_t operand);
bool first_apart_off_axis(const Node& node, size_t operand);
bool all_apart(const Node& node, size_t operand);

/// For the trait `body_types`: the type of an operand that must be given.
const TensorType& given_type(const std::vector<Value*>& operands, size_t i);

/// A pointwise operator with this formula.
OpDef formula_op(std::string_view name, size_t inputs, std::string_view formula, std::vector<OnnxRule> onnx,
                 std::vector<AttrSpec> attrs = {});

/// The element of a broadcast operand that belongs to element `i` of the result.
int64_t broadcast_offset(std::span<const int64_t> result, std::span<const int64_t> operand, int64_t i);

/// The product of the sizes before, at and behind an axis: how reductions along one axis see a tensor.
struct AxisView {
  int64_t outer = 1, length = 1, inner = 1;
  AxisView(std::span<const int64_t> dims, size_t axis);
};

}  // namespace hone
