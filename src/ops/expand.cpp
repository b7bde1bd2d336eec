// SPDX-License-Identifier: Apache-2.0
//
// Repetition: Expand (broadcast to a shape) and Tile (whole copies along every axis). Both read with strides of zero.
#include <algorithm>

#include "base/checked.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

void infer_expand(InferContext& context) {
  if (!context.shape(1).is_static()) return context.set(0, unranked(context.dtype(0)));
  const size_t rank = known_count(context, 1);
  Shape target;
  if (const std::optional<SymbolicData> wanted = context.symbolic(1)) {
    for (const Dim& dim : *wanted)
      HONE_CHECK(!dim.is_constant() || dim.value() >= 0, "the size {} is negative", dim.text());
    target = broadcast(context.shape(0), Shape(*wanted));
  } else {
    for (size_t i = 0; i < std::max(rank, context.rank(0)); ++i) target.push_back(context.data_dependent(0, i));
  }
  context.set(0, context.dtype(0), std::move(target));
  propagate_moved(context);
}

void eval_expand(EvalContext& context) {
  const Tensor& data = context.input(0);
  const std::vector<int64_t> wanted = context.input(1).integers();
  for (const int64_t size : wanted) HONE_CHECK(size >= 0, "the size {} is negative", size);
  Dims dims = broadcast_dims(data.dims(), wanted);
  const Dims own = strides_of(data.dims());
  const size_t shift = dims.size() - own.size();
  Dims strides(dims.size(), 0);
  for (size_t i = 0; i < own.size(); ++i)
    if (data.dims()[i] != 1) strides[shift + i] = own[i];
  context.set(0, copy_strided(data, std::move(dims), 0, strides));
}

void infer_tile(InferContext& context) {
  Shape shape = context.shape(0);
  const size_t count = known_count(context, 1);
  HONE_CHECK(count == shape.rank(), "{} repeats are given for rank {}", count, shape.rank());
  const std::optional<SymbolicData> repeats = context.symbolic(1);
  for (size_t i = 0; i < count; ++i) {
    HONE_CHECK(!repeats || !(*repeats)[i].is_constant() || (*repeats)[i].value() >= 0, "the repeat {} is negative",
               (*repeats)[i].text());
    shape[i] = repeats ? shape[i] * (*repeats)[i] : context.data_dependent(0, i);
  }
  context.set(0, context.dtype(0), std::move(shape));
  propagate_moved(context);
}

void eval_tile(EvalContext& context) {
  const Tensor& data = context.input(0);
  const std::vector<int64_t> repeats = context.input(1).integers();
  const Dims own = strides_of(data.dims());
  HONE_CHECK(repeats.size() == own.size(), "{} repeats are given for rank {}", repeats.size(), own.size());
  Dims dims, split, strides;  // split: repeat, size, repeat, size, ...
  for (size_t i = 0; i < own.size(); ++i) {
    HONE_CHECK(repeats[i] >= 0, "the repeat {} is negative", repeats[i]);
    dims.push_back(checked_multiply(data.dims()[i], repeats[i]));
    split.insert(split.end(), {repeats[i], data.dims()[i]});
    strides.insert(strides.end(), {0, own[i]});
  }
  context.set(0, copy_strided(data, std::move(split), 0, strides).reshaped(std::move(dims)));
}

}  // namespace

namespace ops {

const OpDef expand = {.name = "Expand",
                      .min_inputs = 2,
                      .max_inputs = 2,
                      .infer = infer_expand,
                      .eval = eval_expand,
                      .onnx = {{"Expand"}},
                      .traits = {.hands_on = HandsOn::first, .few_bits = FewBits::follows}};
const OpDef tile = {.name = "Tile",
                    .min_inputs = 2,
                    .max_inputs = 2,
                    .infer = infer_tile,
                    .eval = eval_tile,
                    .onnx = {{"Tile", 6}},
                    .traits = {.hands_on = HandsOn::first, .few_bits = FewBits::follows}};

}  // namespace ops
}  // namespace hone
