// SPDX-License-Identifier: Apache-2.0
//
// Transpose, and the two operators that are a reshape around one: DepthToSpace and SpaceToDepth.
#include <algorithm>
#include <numeric>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"

namespace hone {
namespace {

std::vector<size_t> permutation(const Attrs& attrs, size_t rank) {
  std::vector<size_t> order(rank);
  if (!attrs.has("perm")) {
    for (size_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
    return order;
  }
  const std::vector<int64_t>& perm = attrs.integers("perm");
  HONE_CHECK(perm.size() == rank, "perm has {} entries but the input has rank {}", perm.size(), rank);
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    order[i] = normalize_axis(perm[i], rank);
    HONE_CHECK_AS(AttributeError, !seen[order[i]], "perm names axis {} twice", order[i]);
    seen[order[i]] = true;
  }
  return order;
}

Tensor transposed(const Tensor& data, std::span<const size_t> order) {
  const Dims from = strides_of(data.dims());
  Dims dims, strides;
  for (const size_t axis : order) {
    dims.push_back(data.dims()[axis]);
    strides.push_back(from[axis]);
  }
  return copy_strided(data, std::move(dims), 0, strides);
}

void infer_transpose(InferContext& context) {
  Shape shape;
  for (const size_t axis : permutation(context.attrs(), context.rank(0))) shape.push_back(context.shape(0)[axis]);
  context.set(0, context.dtype(0), std::move(shape));
  propagate_moved(context);
}
void eval_transpose(EvalContext& context) {
  const Tensor& data = context.input(0);
  context.set(0, transposed(data, permutation(context.attrs(), data.dims().size())));
}

// ---- DepthToSpace, SpaceToDepth ----

int64_t block_size(const Attrs& attrs) {
  const int64_t block = attrs.integer("blocksize");
  HONE_CHECK(block >= 1 && block < 1 << 20, "the block size {} is not positive", block);
  return block;
}

void infer_depth_to_space(InferContext& context) {
  const int64_t block = block_size(context.attrs());
  HONE_CHECK(context.rank(0) == 4, "the input must have rank 4, not {}", context.rank(0));
  const Shape& s = context.shape(0);
  HONE_CHECK(!s[1].is_constant() || s[1].value() % (block * block) == 0,
             "{} channels do not divide into blocks of {} x {}", s[1].text(), block, block);
  context.set(0, context.dtype(0),
              Shape{s[0], floor_divide(s[1], block * block), s[2] * Dim(block), s[3] * Dim(block)});
}
void eval_depth_to_space(EvalContext& context) {
  const Tensor& data = context.input(0);
  const Dims& d = data.dims();
  const int64_t block = block_size(context.attrs()), channels = d[1] / (block * block);
  const bool depth_first = context.attrs().text("mode") == "DCR";
  // n, b, b, c, h, w (or n, c, b, b, h, w) to n, c, h, b, w, b
  const Tensor split = data.reshaped(depth_first ? Dims{d[0], block, block, channels, d[2], d[3]}
                                                 : Dims{d[0], channels, block, block, d[2], d[3]});
  constexpr size_t kDepthFirst[] = {0, 3, 4, 1, 5, 2}, kColumnFirst[] = {0, 1, 4, 2, 5, 3};
  context.set(0, transposed(split, depth_first ? kDepthFirst : kColumnFirst)
                     .reshaped({d[0], channels, d[2] * block, d[3] * block}));
}

void infer_space_to_depth(InferContext& context) {
  const int64_t block = block_size(context.attrs());
  HONE_CHECK(context.rank(0) == 4, "the input must have rank 4, not {}", context.rank(0));
  const Shape& s = context.shape(0);
  for (const size_t axis : {2, 3})
    HONE_CHECK(!s[axis].is_constant() || s[axis].value() % block == 0, "size {} does not divide into blocks of {}",
               s[axis].text(), block);
  context.set(0, context.dtype(0),
              Shape{s[0], s[1] * Dim(block * block), floor_divide(s[2], block), floor_divide(s[3], block)});
}
void eval_space_to_depth(EvalContext& context) {
  const Tensor& data = context.input(0);
  const Dims& d = data.dims();
  const int64_t block = block_size(context.attrs());
  // n, c, h, b, w, b to n, b, b, c, h, w (or n, c, b, b, h, w)
  constexpr size_t kDepthFirst[] = {0, 3, 5, 1, 2, 4}, kColumnFirst[] = {0, 1, 3, 5, 2, 4};
  const Tensor split = data.reshaped({d[0], d[1], d[2] / block, block, d[3] / block, block});
  context.set(0, transposed(split, context.attrs().text("mode") == "DCR" ? kDepthFirst : kColumnFirst)
                     .reshaped({d[0], d[1] * block * block, d[2] / block, d[3] / block}));
}

bool transposes_apart(const Node& node, size_t) { return node.attrs.integers("perm")[0] == 0; }

}  // namespace

namespace ops {

const OpDef transpose = {
    .name = "Transpose",
    .attrs = {{"perm", AttrKind::integers, std::nullopt, false,
               "axes of the input in the order of the result; reversed when not given"}},
    .infer = infer_transpose,
    .eval = eval_transpose,
    .onnx = {{"Transpose"}},
    .traits = {.hands_on = HandsOn::first, .few_bits = FewBits::passes, .entries_apart = transposes_apart},
};

const OpDef depth_to_space = {
    .name = "DepthToSpace",
    .attrs = {{"blocksize", AttrKind::integer, std::nullopt, true, "edge of a block"},
              {"mode", AttrKind::text, std::string("DCR"), false, "DCR or CRD"}},
    .infer = infer_depth_to_space,
    .eval = eval_depth_to_space,
    .onnx = {{"DepthToSpace"}},
    .traits = {.few_bits = FewBits::follows},
};

const OpDef space_to_depth = {
    .name = "SpaceToDepth",
    .attrs = {{"blocksize", AttrKind::integer, std::nullopt, true, "edge of a block"},
              {"mode", AttrKind::text, std::string("DCR"), false, "DCR or CRD"}},
    .infer = infer_space_to_depth,
    .eval = eval_space_to_depth,
    .onnx = {{"SpaceToDepth"}},
    .traits = {.few_bits = FewBits::follows},
};

}  // namespace ops
}  // namespace hone
