// SPDX-License-Identifier: Apache-2.0
//
// What the rules of derivatives build with.
#include "ops/derivatives.h"
#include "ops/movement.h"
#include "ops/support.h"

namespace hone {

Value* Backward::gradient(size_t i) {
  if (gradients_[i] == nullptr) gradients_[i] = filled_like(y(i), 0);
  return gradients_[i];
}

Value* Backward::add(std::string_view op, std::vector<Value*> inputs, Attrs attrs) {
  return context_.add(op, std::move(inputs), std::move(attrs))->output();
}

Value* Backward::integers(std::vector<int64_t> values) { return integer_constant(context_, std::move(values)); }

Value* Backward::number(const Value* like, double value) {
  return context_.constant(scalar_of(like->type.dtype, value));
}

Value* Backward::shape_of(Value* value) {
  return value->type.shape.is_static() ? integers(value->type.shape.values()) : add("Shape", {value});
}

Value* Backward::filled_like(Value* value, double number_of_each) {
  Value* scalar = number(value, number_of_each);
  return value->type.shape.rank() == 0 ? scalar : add("Expand", {scalar, shape_of(value)});
}

Value* Backward::summed_to(Value* value, Value* like) {
  const Shape &from = value->type.shape, &to = like->type.shape;
  HONE_ASSERT(from.rank() >= to.rank(), "a gradient of rank {} for an operand of rank {}", from.rank(), to.rank());
  const size_t leading = from.rank() - to.rank();
  std::vector<int64_t> outer, ones;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    if (axis < leading) {
      outer.push_back(static_cast<int64_t>(axis));
      continue;
    }
    const Dim& size = to[axis - leading];
    if (size == from[axis]) continue;
    if (!(size == Dim(1)))
      throw Error(fmt::format("whether axis {} of '{}' is broadcast depends on {} and {}", axis - leading,
                              like->label(), size.text(), from[axis].text()),
                  "give these sizes as numbers in the model");
    ones.push_back(static_cast<int64_t>(axis - leading));
  }
  if (!outer.empty()) value = add("ReduceSum", {value, integers(outer)}, {{"keepdims", int64_t{0}}});
  if (!ones.empty()) value = add("ReduceSum", {value, integers(ones)}, {{"keepdims", int64_t{1}}});
  return value;
}

}  // namespace hone
