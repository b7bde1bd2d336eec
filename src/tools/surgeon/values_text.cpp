// SPDX-License-Identifier: Apache-2.0
//
// Elements as NumPy prints arrays: nested brackets, and of long axes three at either end.
#include "base/text.h"
#include "tools/surgeon/describe_model.h"

namespace hone {
namespace {

std::string element_text(const Tensor& tensor, int64_t index) {
  if (tensor.dtype() == DType::string) return fmt::format("'{}'", tensor.strings()[static_cast<size_t>(index)]);
  if (is_small(tensor.dtype()) && is_float(tensor.dtype()))
    return exact(small_to_float(tensor.dtype(), tensor.codes()[static_cast<size_t>(index)]));
  if (tensor.dtype() == DType::boolean) return tensor.integer(index) != 0 ? "True" : "False";
  if (is_integer(tensor.dtype())) return std::to_string(tensor.integer(index));
  std::string text =
      tensor.dtype() == DType::f64 ? exact(tensor.real(index)) : exact(static_cast<float>(tensor.real(index)));
  return text.find_first_of(".en") == std::string::npos ? text + "." : text;
}

class ArrayText {
 public:
  ArrayText(const Tensor& tensor, bool shortens) : tensor_(tensor), shortens_(shortens) {}

  void print(size_t axis, int64_t first, std::string& out) const {
    const Dims& dims = tensor_.dims();
    if (axis == dims.size()) {
      out += element_text(tensor_, first);
      return;
    }
    const bool last = axis + 1 == dims.size();
    const int64_t stride = strides_of(dims)[axis];
    const std::string between = last ? " " : "\n" + std::string(axis + 1, ' ');
    out += "[";
    for (int64_t i = 0; i < dims[axis]; ++i) {
      if (i > 0) out += between;
      if (shortens_ && dims[axis] > 6 && i == 3) {
        out += "..." + between;
        i = dims[axis] - 3;
      }
      print(axis + 1, first + i * stride, out);
    }
    out += "]";
  }

 private:
  const Tensor& tensor_;
  bool shortens_;
};

}  // namespace

std::string values_text(const Tensor& tensor, size_t most) {
  std::string out;
  if (tensor.size() == 0) return "[]";
  ArrayText(tensor, static_cast<size_t>(tensor.size()) > most).print(0, 0, out);
  return out;
}

}  // namespace hone
