// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft: operators on quantised tensors, written as dequantise, compute, quantise; and matmuls with weights of few
// bits, whose packing is undone when the model is read.
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <utility>

#include "ops/code_tables.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

Value* dequantized(ImportContext& context, Value* x, Value* scale, Value* zero) {
  return made(context, "DequantizeLinear", {x, scale, zero}, {{"axis", int64_t{0}}});
}

/// Back to the type of `like` when no zero point says it.
Value* quantized(ImportContext& context, Value* y, Value* scale, Value* zero, const Value* like) {
  if (zero == nullptr) zero = scalar_like(context, like, 0);
  return made(context, "QuantizeLinear", {y, scale, zero}, {{"axis", int64_t{0}}});
}

/// What a, b and y are multiplied by so that floats hold their sum: a power of two, which their steps do not notice. The scale of a
/// mask of the least float is near the end of what floats can be.
float moderating(const std::array<Value*, 3>& scales) {
  constexpr float kSteps = 256, kFactor = 0x1p-16F;
  std::array<float, 3> numbers = {};
  for (size_t i = 0; i < scales.size(); ++i) {
    const Value& scale = *scales[i];
    if (!scale.is_constant() || scale.type.dtype != DType::f32 || scale.constant->size() != 1) return 1;
    numbers[i] = std::abs(scale.constant->data<float>()[0]);
  }
  const auto& [a, b, y] = numbers;
  const bool fits = std::isfinite(kSteps * a + kSteps * b) && std::isfinite(kSteps * y);
  const bool shrinks = std::ranges::all_of(numbers, [](float x) { return x * kFactor >= FLT_MIN && std::isfinite(x); });
  return fits || !shrinks ? 1 : kFactor;
}

/// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
void import_add(ImportContext& context) {
  std::array<Value*, 3> scales = {context.input(1), context.input(4), context.input(6)};
  if (const float factor = moderating(scales); factor != 1)
    for (Value*& scale : scales) scale = scalar_like(context, scale, scale->constant->data<float>()[0] * factor);
  Value* a = dequantized(context, context.input(0), scales[0], given(context, 2));
  Value* b = dequantized(context, context.input(3), scales[1], given(context, 5));
  context.set_output(0, quantized(context, plus(context, a, b), scales[2], given(context, 7), context.input(0)));
}

/// The operands of import_add. ONNX Runtime multiplies the steps, then by a_scale b_scale / y_scale, and adds y_zero before it
/// rounds: which side of a half a product falls on depends on it.
void import_mul(ImportContext& context) {
  Value* one = scalar_like(context, context.input(1), 1);
  Value* steps = made(context, "Mul",
                      {dequantized(context, context.input(0), one, given(context, 2)),
                       dequantized(context, context.input(3), one, given(context, 5))});
  Value* ratio = made(context, "Div", {made(context, "Mul", {context.input(1), context.input(4)}), context.input(6)});
  Value* y = made(context, "Mul", {steps, ratio});
  if (Value* zero = given(context, 7)) y = plus(context, y, as_type(context, zero, y->type.dtype));
  context.set_output(0, quantized(context, y, one, nullptr, context.input(0)));
}

/// x, x_scale, x_zero, y_scale, y_zero around one operator with these attributes.
void import_unary(ImportContext& context, std::string_view op, Attrs attrs) {
  Value* x = dequantized(context, context.input(0), context.input(1), given(context, 2));
  context.set_output(0, quantized(context, made(context, op, {x}, std::move(attrs)), context.input(3),
                                  given(context, 4), context.input(0)));
}

void import_sigmoid(ImportContext& context) { import_unary(context, "Sigmoid", {}); }
void import_leaky_relu(ImportContext& context) {
  import_unary(context, "LeakyRelu", {{"alpha", context.attrs().has("alpha") ? context.attrs().real("alpha") : 0.01}});
}
/// The same of images, whose channels may come last.
void import_pool(ImportContext& context, std::string_view op, Attrs attrs) {
  const bool last = context.attrs().integer_or("channels_last", 0) != 0;
  Value* x = context.input(0);
  std::vector<int64_t> forth, back;
  if (last) {
    HONE_CHECK(x->type.ranked && x->type.shape.rank() >= 3, "{} of an image whose rank is not known", op);
    const auto rank = static_cast<int64_t>(x->type.shape.rank());
    forth = {0, rank - 1}, back = {0};
    for (int64_t i = 1; i + 1 < rank; ++i) forth.push_back(i), back.push_back(i + 1);
    back.push_back(1);
    x = made(context, "Transpose", {x}, {{"perm", forth}});
  }
  x = made(context, op, {dequantized(context, x, context.input(1), given(context, 2))}, std::move(attrs));
  x = quantized(context, x, context.input(3), given(context, 4), context.input(0));
  context.set_output(0, last ? made(context, "Transpose", {x}, {{"perm", back}}) : x);
}

void import_global_average(ImportContext& context) { import_pool(context, "GlobalAveragePool", {}); }
void import_average(ImportContext& context) {
  Attrs attrs = context.attrs();
  attrs.erase("channels_last");
  import_pool(context, "AveragePool", std::move(attrs));
}

/// y_scale, y_zero, then x, scale, zero of each part
void import_concat(ImportContext& context) {
  std::vector<Value*> parts;
  for (size_t i = 2; i + 1 < context.inputs(); i += 3)
    parts.push_back(dequantized(context, context.input(i), context.input(i + 1), given(context, i + 2)));
  HONE_CHECK(!parts.empty(), "QLinearConcat has nothing to join");
  context.set_output(
      0, quantized(context, made(context, "Concat", std::move(parts), {{"axis", context.attrs().integer("axis")}}),
                   context.input(0), context.input(1), context.input(2)));
}

/// In models of an opset before 13 everything from the axis on is one row.
void import_softmax(ImportContext& context) {
  const int64_t axis = context.attrs().integer_or("axis", -1);
  Value* x = dequantized(context, context.input(0), context.input(1), given(context, 2));
  const bool flattens = context.attrs().integer_or("opset", 13) < 13;
  Value* rows = flattens ? made(context, "Flatten", {x}, {{"axis", axis}}) : x;
  Value* y = made(context, "Softmax", {rows}, {{"axis", flattens ? int64_t{-1} : axis}});
  if (flattens) y = made(context, "Reshape", {y, made(context, "Shape", {x})});
  context.set_output(0, quantized(context, y, context.input(3), given(context, 4), context.input(0)));
}

/// condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero
void import_where(ImportContext& context) {
  Value* x = dequantized(context, context.input(1), context.input(2), given(context, 3));
  Value* y = dequantized(context, context.input(4), context.input(5), given(context, 6));
  context.set_output(0, quantized(context, made(context, "Where", {context.input(0), x, y}), context.input(7),
                                  given(context, 8), context.input(1)));
}

// ---- Matmuls ----

/// a, a_scale, a_zero, b, b_scale, b_zero, c?, y_scale?, y_zero?; c counts steps of a_scale b_scale. Without y_scale the
/// result stays in floats.
void import_q_gemm(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  const double alpha = attrs.has("alpha") ? attrs.real("alpha") : 1;
  const int64_t trans_a = attrs.integer_or("transA", 0), trans_b = attrs.integer_or("transB", 0);
  Value* a = dequantized(context, context.input(0), context.input(1), given(context, 2));
  Value* b = made(context, "DequantizeLinear", {context.input(3), context.input(4), given(context, 5)},
                  {{"axis", int64_t{trans_b != 0 ? 0 : 1}}});
  Value* y = made(context, "Gemm", {a, b}, {{"transA", trans_a}, {"transB", trans_b}});
  if (alpha != 1) y = made(context, "Mul", {y, scalar_like(context, y, alpha)});
  if (Value* c = given(context, 6)) {
    Value* step = made(context, "Mul", {context.input(1), context.input(4)});
    if (alpha != 1) step = made(context, "Mul", {step, scalar_like(context, step, alpha)});
    y = plus(context, y, made(context, "Mul", {as_type(context, c, step->type.dtype), step}));
  }
  Value* y_scale = given(context, 7);
  context.set_output(0, y_scale == nullptr ? y : quantized(context, y, y_scale, given(context, 8), context.input(0)));
}

/// The matmul of integers, scaled.
Value* scaled_product(ImportContext& context, Value* a, Value* b, Value* a_scale, Value* b_scale, Value* a_zero,
                      Value* b_zero) {
  Value* sum = made(context, "MatMulInteger", {a, b, a_zero, b_zero});
  return made(context, "Mul", {as_type(context, sum, a_scale->type.dtype), made(context, "Mul", {a_scale, b_scale})});
}

/// a, b, a_scale, b_scale, a_zero?, b_zero?, bias?
void import_integer_to_float(ImportContext& context) {
  Value* y = scaled_product(context, context.input(0), context.input(1), context.input(2), context.input(3),
                            given(context, 4), given(context, 5));
  context.set_output(0, plus(context, y, given(context, 6)));
}

/// a, b, b_scale, b_zero?, bias?
void import_dynamic_matmul(ImportContext& context) {
  const Node* a = context.add("DynamicQuantizeLinear", {context.input(0)});
  Value* y = scaled_product(context, a->outputs[0], context.input(1), a->outputs[1], context.input(2), a->outputs[2],
                            given(context, 3));
  context.set_output(0, plus(context, y, given(context, 4)));
}

// ---- MatMulNBits(a, b, scales, zeros?, group index?, bias?) ----

/// MatMulNBits as DequantizeLinear has it: weights [k, n], scales and zero points [blocks, n].
class PackedWeight {
 public:
  explicit PackedWeight(const Attrs& attrs)
      : k_(attrs.integer("K")),
        n_(attrs.integer("N")),
        bits_(attrs.integer_or("bits", 4)),
        block_(attrs.integer("block_size")) {
    constexpr int64_t kMost = INT32_MAX;  // what is multiplied below fits
    HONE_CHECK((bits_ == 2 || bits_ == 4 || bits_ == 8) && block_ >= 16 && k_ > 0 && n_ > 0 && block_ < kMost &&
                   k_ < kMost && n_ < kMost,
               "MatMulNBits with {} bits in blocks of {}", bits_, block_);
    blocks_ = (k_ + block_ - 1) / block_;
  }
  int64_t block() const { return std::min(block_, k_); }

  /// From [n, blocks of k, bytes]. Where no zero points are given they are the middle of the range: signed codes need none.
  Tensor weights(const Tensor& b, bool is_signed) const {
    const int64_t row = blocks_ * block_ * bits_ / 8;
    HONE_CHECK(b.dtype() == DType::u8 && b.size() == n_ * row, "the packed weight does not have {} rows of {} blocks",
               n_, blocks_);
    return unpacked(b.data<uint8_t>(), row, k_, is_signed);
  }
  Tensor scales(const Tensor& given) const { return per_block(given, "scales"); }
  /// As numbers, or packed like the weights.
  Tensor zeros(const Tensor& given) const {
    if (given.dtype() != DType::u8) return per_block(given, "zero points");
    const int64_t row = (blocks_ * bits_ + 7) / 8;
    HONE_CHECK(given.size() == n_ * row, "the zero points do not have {} rows of {} blocks", n_, blocks_);
    return unpacked(given.data<uint8_t>(), row, blocks_, false);
  }
  /// Of [blocks, n] the row that the group index names, for each of the k rows of weights.
  Tensor rows_of(const Tensor& of_blocks, const Tensor& groups) const {
    HONE_CHECK(groups.size() == k_, "the group index has {} elements, not one for each of {} rows", groups.size(), k_);
    const size_t row = of_blocks.bytes().size() / static_cast<size_t>(blocks_);
    TensorBuilder rows(of_blocks.dtype(), {k_, n_});
    for (int64_t i = 0; i < k_; ++i) {
      const int64_t group = groups.integer(i);
      HONE_CHECK(group >= 0 && group < blocks_, "the group index names group {} of {}", group, blocks_);
      std::memcpy(rows.bytes() + static_cast<size_t>(i) * row,
                  of_blocks.bytes().data() + static_cast<size_t>(group) * row, row);
    }
    return rows.finish();
  }

 private:
  DType type(bool is_signed) const {
    if (bits_ == 2) return is_signed ? DType::i2 : DType::u2;
    if (bits_ == 4) return is_signed ? DType::i4 : DType::u4;
    return is_signed ? DType::i8 : DType::u8;
  }

  /// Fields of `n_` rows, the first in the lowest bits, by columns.
  Tensor unpacked(std::span<const uint8_t> from, int64_t row_bytes, int64_t count, bool is_signed) const {
    const int64_t middle = is_signed ? 1 << (bits_ - 1) : 0;
    std::vector<int64_t> codes(static_cast<size_t>(count * n_));
    for (int64_t row = 0; row < n_; ++row)
      for (int64_t i = 0; i < count; ++i) {
        const int64_t bit = i * bits_, byte = from[static_cast<size_t>(row * row_bytes + bit / 8)];
        codes[static_cast<size_t>(i * n_ + row)] = ((byte >> (bit % 8)) & ((1 << bits_) - 1)) - middle;
      }
    return write_integers(type(is_signed), {count, n_}, codes);
  }

  Tensor per_block(const Tensor& given, std::string_view what) const {
    HONE_CHECK(given.size() == n_ * blocks_, "the {} do not have {} rows of {} blocks", what, n_, blocks_);
    const std::vector<double> from = read_doubles(given);
    std::vector<double> turned(from.size());
    for (int64_t row = 0; row < n_; ++row)
      for (int64_t i = 0; i < blocks_; ++i)
        turned[static_cast<size_t>(i * n_ + row)] = from[static_cast<size_t>(row * blocks_ + i)];
    return write_doubles(given.dtype(), {blocks_, n_}, turned);
  }

  int64_t k_, n_, bits_, block_, blocks_ = 0;
};

/// Codes in the bytes of the last axis, the first in the lowest bits, as numbers of a type.
Value* fields_of(ImportContext& context, Value* bytes, int64_t bits, DType dtype) {
  if (bits == 8) return as_type(context, bytes, dtype);
  const auto byte = [&](int64_t value) { return scalar_like(context, bytes, static_cast<double>(value)); };
  Value* last = integer_constant(context, {-1});
  std::vector<Value*> fields;
  for (int64_t at = 0; at < 8; at += bits) {  // by arithmetic: a GPU has no operators on bits
    Value* field = at == 0 ? bytes : made(context, "Div", {bytes, byte(1 << at)});
    if (at + bits < 8) field = made(context, "Mod", {field, byte(1 << bits)});
    fields.push_back(made(context, "Unsqueeze", {field, last}));
  }
  Value* all = made(context, "Concat", std::move(fields), {{"axis", int64_t{-1}}});
  std::vector<int64_t> shape(bytes->type.shape.rank() - 1, 0);
  shape.push_back(-1);
  return as_type(context, made(context, "Reshape", {all, integer_constant(context, shape)}), dtype);
}

/// The weights [k, n] where an operand is computed: what is written above, as nodes.
Value* computed_weight(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  const int64_t k = attrs.integer("K"), n = attrs.integer("N"), bits = attrs.integer_or("bits", 4),
                block = attrs.integer("block_size"), blocks = (k + block - 1) / block;
  Value *bytes = context.input(1), *scales = context.input(2), *zeros = given(context, 3), *groups = given(context, 4);
  const DType dtype = scales->type.dtype;
  const auto shaped = [&](Value* value, std::vector<int64_t> dims) {
    return made(context, "Reshape", {value, integer_constant(context, std::move(dims))});
  };
  const auto first = [&](Value* value, int64_t count) {
    return made(
        context, "Slice",
        {value, integer_constant(context, {0}), integer_constant(context, {count}), integer_constant(context, {1})});
  };
  /// Of [n, blocks] what belongs to each of k.
  const auto spread = [&](Value* value) {
    if (groups != nullptr) return made(context, "Gather", {value, groups}, {{"axis", int64_t{1}}});
    Value* repeated =
        made(context, "Expand", {shaped(value, {n, blocks, 1}), integer_constant(context, {n, blocks, block})});
    return first(shaped(repeated, {n, -1}), k);
  };
  Value* middle = context.constant(scalar_of(dtype, static_cast<double>(int64_t{1} << (bits - 1))));
  if (zeros != nullptr) {
    if (zeros->type.dtype == DType::u8) zeros = first(fields_of(context, shaped(zeros, {n, -1}), bits, dtype), blocks);
    middle = spread(shaped(as_type(context, zeros, dtype), {n, blocks}));
  }
  Value* codes = first(fields_of(context, shaped(bytes, {n, -1}), bits, dtype), k);
  Value* weight = made(context, "Mul", {made(context, "Sub", {codes, middle}), spread(shaped(scales, {n, blocks}))});
  return made(context, "Transpose", {weight}, {{"perm", std::vector<int64_t>{1, 0}}});
}

void import_n_bits(ImportContext& context) {
  const PackedWeight packed(context.attrs());
  const auto is_known = [&](size_t i) { return given(context, i) == nullptr || context.input(i)->is_constant(); };
  if (!is_known(1) || !is_known(2) || !is_known(3) || !is_known(4)) {
    Value* product = made(context, "MatMul", {context.input(0), computed_weight(context)});
    return context.set_output(0, plus(context, product, given(context, 5)));
  }
  const Value *zeros = given(context, 3), *groups = given(context, 4);
  const auto placed = [&](const Tensor& of_blocks) {
    return context.constant(groups == nullptr ? of_blocks : packed.rows_of(of_blocks, *groups->constant));
  };
  Value* weight = made(context, "DequantizeLinear",
                       {context.constant(packed.weights(*context.input(1)->constant, zeros == nullptr)),
                        placed(packed.scales(*context.input(2)->constant)),
                        zeros == nullptr ? nullptr : placed(packed.zeros(*zeros->constant))},
                       {{"axis", int64_t{0}}, {"block_size", groups == nullptr ? packed.block() : int64_t{1}}});
  context.set_output(0, plus(context, made(context, "MatMul", {context.input(0), weight}), given(context, 5)));
}

// ---- MatMulBnb4(a, b, largest) ----

/// Weights [k, n] of [n, k], or as they are, in one row of half bytes, the first in the upper half; each block of that row has a
/// scale, its largest.
class TableWeight {
 public:
  TableWeight(const Attrs& attrs, const Tensor& codes, const Tensor& largest)
      : k_(attrs.integer("K")),
        n_(attrs.integer("N")),
        block_(attrs.integer("block_size")),
        turned_(attrs.integer_or("transB", 1) != 0),
        largest_(largest) {
    const int64_t type = attrs.integer("quant_type");
    constexpr int64_t kMost = INT32_MAX;
    HONE_CHECK(k_ > 0 && n_ > 0 && block_ > 0 && k_ < kMost && n_ < kMost && (type == 0 || type == 1),
               "MatMulBnb4 of {} by {} in blocks of {}, type {}", k_, n_, block_, type);
    table_ = type == 0 ? "fp4" : "nf4";
    const int64_t count = k_ * n_;
    HONE_CHECK(codes.dtype() == DType::u8 && codes.size() == (count + 1) / 2 &&
                   largest.size() == (count + block_ - 1) / block_,
               "MatMulBnb4 has {} bytes of weights and {} scales for {} weights in blocks of {}", codes.size(),
               largest.size(), count, block_);
    const std::span<const uint8_t> bytes = codes.data<uint8_t>();
    codes_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const unsigned byte = bytes[static_cast<size_t>(i / 2)];
      codes_[place(i)] = i % 2 == 0 ? byte >> 4 : byte & 15U;
    }
  }

  /// As DequantizeTable where each block is of one column, else as floats.
  Value* value(ImportContext& context) const {
    if (!turned_ || k_ % block_ != 0) return context.constant(floats());
    return made(context, "DequantizeTable",
                {context.constant(write_integers(DType::u4, {k_, n_}, codes_)), context.constant(scales())},
                {{"block_size", block_}, {"table", table_}});
  }

 private:
  /// Of the i-th code among the rows of columns.
  size_t place(int64_t i) const { return static_cast<size_t>(turned_ ? i % k_ * n_ + i / k_ : i); }

  Tensor scales() const {
    const int64_t blocks = k_ / block_;
    const std::vector<double> from = read_doubles(largest_);
    std::vector<double> turned(from.size());
    for (int64_t i = 0; i < blocks * n_; ++i)
      turned[static_cast<size_t>(i % blocks * n_ + i / blocks)] = from[static_cast<size_t>(i)];
    return write_doubles(largest_.dtype(), {blocks, n_}, turned);
  }
  Tensor floats() const {
    const std::vector<double> scales = read_doubles(largest_);
    std::vector<double> weights(codes_.size());
    for (int64_t i = 0; i < k_ * n_; ++i)
      weights[place(i)] =
          code_table(table_)[static_cast<size_t>(codes_[place(i)])] * scales[static_cast<size_t>(i / block_)];
    return write_doubles(largest_.dtype(), {k_, n_}, weights);
  }

  int64_t k_, n_, block_;
  bool turned_;
  const Tensor& largest_;
  std::string table_;
  std::vector<int64_t> codes_;  // [k, n]
};

void import_bnb4(ImportContext& context) {
  for (const size_t i : {size_t{1}, size_t{2}})
    HONE_CHECK(context.input(i)->is_constant(), "operand {} of MatMulBnb4 must be a constant", i);
  const TableWeight weight(context.attrs(), *context.input(1)->constant, *context.input(2)->constant);
  context.set_output(0, made(context, "MatMul", {context.input(0), weight.value(context)}));
}

// ---- GatherBlockQuantized(data, indices, scales, zeros?) ----

/// Fields of `bits` in the bytes of the last axis, as signed codes or not.
Tensor unpacked_rows(const Tensor& packed, int64_t bits, bool is_signed) {
  const int64_t fields = 8 / bits, middle = is_signed ? int64_t{1} << (bits - 1) : 0;
  std::vector<int64_t> codes;
  for (const uint8_t byte : packed.data<uint8_t>())
    for (int64_t i = 0; i < fields; ++i) codes.push_back(((byte >> (i * bits)) & ((1 << bits) - 1)) - middle);
  Dims dims = packed.dims();
  dims.back() *= fields;
  const DType type = bits == 8 ? (is_signed ? DType::i8 : DType::u8) : is_signed ? DType::i4 : DType::u4;
  return write_integers(type, std::move(dims), codes);
}

/// The first of each row, as many as there are in rows of these sizes: packed zero points fill whole bytes.
Tensor cut_last_axis(const Tensor& tensor, const Dims& wanted) {
  Dims given = tensor.dims();
  HONE_CHECK(given.size() == wanted.size() && !given.empty() && given.back() >= wanted.back(),
             "the zero points of GatherBlockQuantized are [{}], its scales [{}]", join_dims(given), join_dims(wanted));
  const int64_t row = std::exchange(given.back(), wanted.back());
  HONE_CHECK(given == wanted, "the zero points of GatherBlockQuantized do not fit its scales [{}]", join_dims(wanted));
  std::vector<int64_t> codes;
  const std::vector<int64_t> all = tensor.integers();
  for (size_t i = 0; i < all.size(); ++i)
    if (static_cast<int64_t>(i) % row < wanted.back()) codes.push_back(all[i]);
  return write_integers(tensor.dtype(), wanted, codes);
}

int64_t axis_of(const Attrs& attrs, const char* name, int64_t fallback, size_t rank) {
  const int64_t given = attrs.integer_or(name, fallback), count = static_cast<int64_t>(rank),
                axis = given < 0 ? given + count : given;
  HONE_CHECK(axis >= 0 && axis < count, "{} is {} in GatherBlockQuantized of rank {}", name, given, rank);
  return axis;
}

/// The codes' rows and those of their scales are gathered, then multiplied: the table stays as it is.
void import_gather_blocks(ImportContext& context) {
  const Attrs& attrs = context.attrs();
  Value *data = context.input(0), *indices = context.input(1), *scales = context.input(2), *zeros = given(context, 3);
  const int64_t bits = attrs.integer_or("bits", 4), block = attrs.integer_or("block_size", 128);
  const size_t rank = data->type.shape.rank();
  const int64_t gather = axis_of(attrs, "gather_axis", 0, rank), along = axis_of(attrs, "quantize_axis", 1, rank);
  HONE_CHECK((bits == 4 || bits == 8) && block > 0 && gather != along,
             "GatherBlockQuantized with {} bits in blocks of {} along axis {}, gathered along {}", bits, block, along,
             gather);
  if (data->type.dtype == DType::u8) {
    const bool last = along + 1 == static_cast<int64_t>(rank);
    HONE_CHECK(data->is_constant() && (zeros == nullptr || zeros->is_constant()) && last,
               "GatherBlockQuantized reads bytes that hold several codes from constants, along the last axis");
    // Without zero points they are the middle of the range, for which signed codes need none.
    data = context.constant(unpacked_rows(*data->constant, bits, zeros == nullptr));
    if (zeros != nullptr) {
      Tensor points = unpacked_rows(*zeros->constant, bits, false);
      if (points.dims() != scales->type.shape.values()) points = cut_last_axis(points, scales->type.shape.values());
      zeros = context.constant(std::move(points));
    }
  }
  const Dim& size = data->type.shape[static_cast<size_t>(along)];
  HONE_CHECK(size.is_constant() && size.value() > 0, "GatherBlockQuantized of a size that is not known");
  const auto rows = [&](Value* table) {
    return table == nullptr ? nullptr : made(context, "Gather", {table, indices}, {{"axis", gather}});
  };
  const int64_t moved = along < gather ? along : along - 1 + static_cast<int64_t>(indices->type.shape.rank());
  context.set_output(0, made(context, "DequantizeLinear", {rows(data), rows(scales), rows(zeros)},
                             {{"axis", moved}, {"block_size", std::min(block, size.value())}}));
}

const OnnxRule kRules[] = {
    {"QLinearAdd", 1, kEveryLater, import_add, kDomain, 0x5b},
    {"QLinearMul", 1, kEveryLater, import_mul, kDomain, 0x5b},
    {"QLinearSigmoid", 1, kEveryLater, import_sigmoid, kDomain, 0xb},
    {"QLinearLeakyRelu", 1, kEveryLater, import_leaky_relu, kDomain, 0xb},
    {"QLinearAveragePool", 1, kEveryLater, import_average, kDomain, 0xb},
    {"QLinearGlobalAveragePool", 1, kEveryLater, import_global_average, kDomain, 0xb},
    {"QLinearConcat", 1, kEveryLater, import_concat, kDomain, 0x7},
    {"QLinearSoftmax", 1, kEveryLater, import_softmax, kDomain, 0xb},
    {"QLinearWhere", 1, kEveryLater, import_where, kDomain, 0xb7},
    {"QGemm", 1, kEveryLater, import_q_gemm, kDomain, 0x3f},
    {"MatMulIntegerToFloat", 1, kEveryLater, import_integer_to_float, kDomain, 0xf},
    {"DynamicQuantizeMatMul", 1, kEveryLater, import_dynamic_matmul, kDomain, 0x7},
    {"MatMulNBits", 1, kEveryLater, import_n_bits, kDomain, 0x7},
    {"MatMulBnb4", 1, kEveryLater, import_bnb4, kDomain, 0x7},
    {"GatherBlockQuantized", 1, kEveryLater, import_gather_blocks, kDomain, 0x7},
};

}  // namespace

std::span<const OnnxRule> microsoft_quantized_rules() { return kRules; }

}  // namespace hone
