// SPDX-License-Identifier: Apache-2.0
//
// Triangles and unit matrices.
#include <cstring>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

void infer_trilu(InferContext& context) {
  HONE_CHECK(context.rank(0) >= 2, "Trilu needs rank 2 or more, not {}", context.rank(0));
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_trilu(EvalContext& context) {
  const Tensor& x = context.input(0);
  const int64_t k = context.has(1) ? context.input(1).integer(0) : 0, rows = x.dims()[x.dims().size() - 2], columns = x.dims().back();
  const bool upper = context.attrs().integer("upper") != 0;
  TensorBuilder builder(x.dtype(), x.dims());
  const auto size = static_cast<int64_t>(size_of(x.dtype()));
  std::memset(builder.bytes(), 0, x.bytes().size());
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    if (upper ? column - row >= k : column - row <= k) std::memcpy(builder.bytes() + i * size, x.bytes().data() + i * size, static_cast<size_t>(size));
  }
  context.set(0, builder.finish());
}

void infer_eye(InferContext& context) {
  HONE_CHECK(context.rank(0) == 2, "EyeLike needs a matrix, not rank {}", context.rank(0));
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_eye(EvalContext& context) {
  const Tensor& x = context.input(0);
  const int64_t k = context.attrs().integer("k");
  TensorBuilder builder(x.dtype(), x.dims());
  visit(x.dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < x.size(); ++i) {
      const bool one = i % x.dims()[1] - i / x.dims()[1] == k;
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) builder.data<T>()[static_cast<size_t>(i)] = T(one ? 1.0f : 0.0f);
      else builder.data<T>()[static_cast<size_t>(i)] = static_cast<T>(one);
    }
  });
  context.set(0, builder.finish());
}

void import_eye(ImportContext& context) {
  Value* x = context.input(0);
  if (context.attrs().has("dtype")) x = context.add("Cast", {x}, {{"to", std::string(name_of(dtype_of_onnx(context.attrs().integer("dtype"))))}})->output();
  context.set_output(0, context.add("EyeLike", {x}, {{"k", context.attrs().integer_or("k", 0)}})->output());
}

}  // namespace

const OpDef trilu{.name = "Trilu", .attrs = {{"upper", AttrKind::integer, int64_t{1}}}, .min_inputs = 1, .max_inputs = 2, .infer = infer_trilu, .eval = eval_trilu, .onnx = {{"Trilu", 14}}};
const OpDef eye_like{.name = "EyeLike", .attrs = {{"k", AttrKind::integer, int64_t{0}}}, .infer = infer_eye, .eval = eval_eye, .onnx = {{"EyeLike", 9, 1 << 20, import_eye}}};

}  // namespace hone::ops
