// SPDX-License-Identifier: Apache-2.0
//
// Element copies by size, so that one loop serves every type; texts go through their own vector.
#include "ops/movement.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/limits.h"

namespace hone {
namespace {

/// Calls `copy(source, result)` with spans of unsigned words of the element's size, or of strings.
template <typename Copy>
Tensor with_words(const Tensor& source, Dims dims, const Copy& copy) {
  if (source.dtype() == DType::string) {
    std::vector<std::string> result(static_cast<size_t>(elements(dims)));
    copy(std::span<const std::string>(source.strings()), std::span<std::string>(result));
    return Tensor::of_strings(std::move(dims), std::move(result));
  }
  TensorBuilder builder(source.dtype(), std::move(dims));
  const auto typed = [&]<typename Word>(Word) {
    copy(std::span(reinterpret_cast<const Word*>(source.bytes().data()), source.bytes().size() / sizeof(Word)),
         std::span(reinterpret_cast<Word*>(builder.bytes()), static_cast<size_t>(elements(builder.dims()))));
  };
  switch (size_of(source.dtype())) {
    case 1: typed(uint8_t{}); break;
    case 2: typed(uint16_t{}); break;
    case 4: typed(uint32_t{}); break;
    default: typed(uint64_t{}); break;
  }
  return builder.finish();
}

}  // namespace

Tensor copy_strided(const Tensor& source, Dims dims, int64_t base, const Dims& strides) {
  if (dims.empty()) return pick_flat(source, {}, std::span(&base, 1));
  return with_words(source, dims, [&](auto from, auto to) {
    if (to.empty()) return;
    const size_t last = dims.size() - 1;
    const int64_t inner = dims[last], step = strides[last];
    Dims index(dims.size(), 0);
    int64_t at = base;
    for (size_t out = 0; out < to.size();) {
      for (int64_t i = 0; i < inner; ++i) to[out++] = from[static_cast<size_t>(at + i * step)];
      for (size_t axis = last; axis-- > 0;) {
        at += strides[axis];
        if (++index[axis] < dims[axis]) break;
        at -= strides[axis] * dims[axis];
        index[axis] = 0;
      }
    }
  });
}

Tensor pick(const Tensor& source, const std::vector<std::vector<int64_t>>& indices, const Tensor* fill) {
  Dims dims;
  for (const auto& list : indices) dims.push_back(static_cast<int64_t>(list.size()));
  const Dims strides = strides_of(source.dims());
  std::vector<int64_t> flat(static_cast<size_t>(elements(dims)));
  if (dims.empty()) {
    flat[0] = 0;
  } else if (!flat.empty()) {
    Dims index(dims.size(), 0);
    for (int64_t& number : flat) {
      number = 0;
      for (size_t axis = 0; axis < dims.size() && number >= 0; ++axis) {
        const int64_t at = indices[axis][static_cast<size_t>(index[axis])];
        number = at < 0 ? -1 : number + at * strides[axis];
      }
      for (size_t axis = dims.size(); axis-- > 0;) {
        if (++index[axis] < dims[axis]) break;
        index[axis] = 0;
      }
    }
  }
  if (fill == nullptr) return pick_flat(source, std::move(dims), flat);
  HONE_CHECK(fill->dtype() == source.dtype() && fill->size() == 1,
             "the fill value must be one element of the data's type");
  if (source.dtype() == DType::string)
    return with_words(source, std::move(dims), [&](auto from, auto to) {
      if constexpr (std::is_same_v<std::remove_const_t<typename decltype(from)::element_type>, std::string>)
        for (size_t i = 0; i < to.size(); ++i)
          to[i] = flat[i] < 0 ? fill->strings()[0] : from[static_cast<size_t>(flat[i])];
    });
  return with_words(source, std::move(dims), [&](auto from, auto to) {
    using Word = std::remove_const_t<typename decltype(from)::element_type>;
    if constexpr (!std::is_same_v<Word, std::string>) {
      Word empty;
      std::memcpy(&empty, fill->bytes().data(), sizeof empty);
      for (size_t i = 0; i < to.size(); ++i) to[i] = flat[i] < 0 ? empty : from[static_cast<size_t>(flat[i])];
    }
  });
}

Tensor pick_flat(const Tensor& source, Dims dims, std::span<const int64_t> flat) {
  return with_words(source, std::move(dims), [&](auto from, auto to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = from[static_cast<size_t>(flat[i])];
  });
}

std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return numbers;
}

void propagate_moved(InferContext& context, std::span<const size_t> moved) {
  const TensorType& result = context.node().outputs[0]->type;
  if (is_float(result.dtype) || result.dtype == DType::string) return;
  for (const Value* output : context.node().outputs)
    if (!output->type.shape.is_static() || elements(output->type.shape.values()) > kMaxSymbolicElements) return;
  const auto is_moved = [&](size_t i) { return std::find(moved.begin(), moved.end(), i) != moved.end(); };

  // Element numbers in place of contents; `all` maps them back.
  SymbolicData all;
  std::vector<Tensor> numbers(context.inputs());
  std::vector<const Tensor*> operands(context.inputs(), nullptr);
  for (size_t i = 0; i < context.inputs(); ++i) {
    if (!context.has(i)) continue;
    if (!is_moved(i)) {
      operands[i] = context.constant(i);
      if (operands[i] == nullptr) return;
      continue;
    }
    if (!context.shape(i).is_static()) return;
    const std::optional<SymbolicData> contents = context.symbolic(i);
    if (!contents) return;
    std::vector<int64_t> ids(contents->size());
    std::iota(ids.begin(), ids.end(), static_cast<int64_t>(all.size()));
    all.insert(all.end(), contents->begin(), contents->end());
    numbers[i] = Tensor::of<int64_t>(context.shape(i).values(), std::span<const int64_t>(ids));
    operands[i] = &numbers[i];
  }
  EvalContext evaluation(context.node(), std::move(operands));
  context.node().op->eval(evaluation);
  for (size_t i = 0; i < evaluation.results().size(); ++i) {
    SymbolicData data;
    for (const int64_t id : evaluation.results()[i].integers()) data.push_back(all[static_cast<size_t>(id)]);
    context.set_symbolic(i, std::move(data));
  }
}

void propagate_moved(InferContext& context) {
  const size_t first = 0;
  propagate_moved(context, std::span(&first, 1));
}

void check_one(const InferContext& context, size_t operand, std::string_view what) {
  if (!context.has(operand) || !context.ranked(operand) || !context.shape(operand).is_static()) return;
  HONE_CHECK(elements(context.shape(operand).values()) == 1, "{} has the shape [{}] where one element is needed", what,
             context.shape(operand).text());
}

std::optional<std::vector<int64_t>> known_integers(const InferContext& context, size_t operand) {
  const std::optional<SymbolicData> data = context.symbolic(operand);
  if (!data) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& dim : *data) {
    if (!dim.is_constant()) return std::nullopt;
    numbers.push_back(dim.value());
  }
  return numbers;
}

size_t known_count(const InferContext& context, size_t operand) {
  const Shape& shape = context.shape(operand);
  HONE_CHECK(shape.rank() == 1 && shape[0].is_constant(), "operand {} of {} must be a list of known length but is [{}]",
             operand, context.node().op->name, shape.text());
  HONE_CHECK(shape[0].value() <= static_cast<int64_t>(kMaxRank), "operand {} of {} lists {} axes; tensors may have {}",
             operand, context.node().op->name, shape[0].text(), kMaxRank);
  return static_cast<size_t>(shape[0].value());
}

bool surely_nonnegative(const Dim& dim) {
  return dim.is_constant() ? dim.value() >= 0 : dim.text().find('-') == std::string::npos;
}

int64_t checked_index(int64_t index, int64_t size) {
  HONE_CHECK(index >= -size && index < size, "index {} is out of range for a size of {}", index, size);
  return index < 0 ? index + size : index;
}

int64_t known_size(const Dim& size) { return size.is_constant() ? std::max<int64_t>(size.value(), 1) : 1; }

std::optional<IntegerRange> positions_along(const Shape& shape, int64_t axis) {
  if (shape.rank() == 0) return std::nullopt;
  return IntegerRange{0, known_size(shape[normalize_axis(axis, shape.rank())]) - 1};
}

std::optional<IntegerRange> lengths_along(const Shape& shape, int64_t axis) {
  if (shape.rank() == 0) return std::nullopt;
  return IntegerRange{1, known_size(shape[normalize_axis(axis, shape.rank())])};
}

std::optional<IntegerRange> accepts_positions(const Node& node, size_t operand) {
  if (operand != 1) return std::nullopt;
  return positions_along(node.input(0)->type.shape, node.attrs.integer_or("axis", 0));
}

std::optional<IntegerRange> accepts_whole_positions(const Node& node, size_t operand) {
  if (operand != 1) return std::nullopt;
  const Shape &data = node.input(0)->type.shape, &positions = node.input(1)->type.shape;
  const Dim length = positions.rank() > 0 ? positions[positions.rank() - 1] : Dim(0);
  if (!length.is_constant()) return std::nullopt;
  const auto first = static_cast<size_t>(node.attrs.integer_or("batch_dims", 0));
  std::optional<IntegerRange> range;
  for (size_t axis = first; axis < std::min(data.rank(), first + static_cast<size_t>(length.value())); ++axis) {
    const int64_t last = known_size(data[axis]) - 1;
    range = IntegerRange{0, range ? std::min(range->high, last) : last};
  }
  return range;
}

Value* operand_from_attr(ImportContext& context, const char* name) {
  const AttrValue* attr = context.attrs().find(name);
  if (attr == nullptr) return nullptr;
  Value* value = integer_constant(context, context.attrs().integers(name));
  context.attrs().erase(name);
  return value;
}

Value* integer_constant(ImportContext& context, std::vector<int64_t> values) {
  return context.constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values)));
}

void set_outputs(ImportContext& context, const Node& node) {
  for (size_t i = 0; i < context.outputs() && i < node.outputs.size(); ++i) context.set_output(i, node.outputs[i]);
}

}  // namespace hone
