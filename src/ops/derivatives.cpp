// SPDX-License-Identifier: Apache-2.0
//
// The table of derivatives. `g` is the gradient of the result, `x` and `y` are the node's operands and result.
#include "ops/derivatives.h"

#include <algorithm>

#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone {
namespace {

int64_t rank_of(const Value* value) { return static_cast<int64_t>(value->type.shape.rank()); }

std::vector<int64_t> known_axes(const Value* axes, std::string_view what) {
  if (!axes->is_constant())
    throw Error(fmt::format("the {} are not known before the run", what), "give them as a constant in the model");
  return axes->constant->integers();
}

// ---- Pointwise operators whose formula would overflow on the way ----

Value* sigmoid_slope(Backward& node, Value* sigmoid) {
  return node.add("Mul", {sigmoid, node.add("Sub", {node.number(sigmoid, 1), sigmoid})});
}
void derive_sigmoid(Backward& node) { node.give(0, node.add("Mul", {node.gradient(), sigmoid_slope(node, node.y())})); }
/// y = x s(ax): s + a x s'.
void derive_swish(Backward& node) {
  Value* x = node.x();
  const double alpha = node.attrs().has("alpha") ? node.attrs().real("alpha") : 1;
  Value* s = node.add("Sigmoid", {alpha == 1 ? x : node.add("Mul", {x, node.number(x, alpha)})});
  Value* slope = node.add("Mul", {node.add("Mul", {x, sigmoid_slope(node, s)}), node.number(x, alpha)});
  node.give(0, node.add("Mul", {node.gradient(), node.add("Add", {s, slope})}));
}

// ---- The same elements, moved ----

void derive_identity(Backward& node) { node.give(0, node.gradient()); }
void derive_reshape(Backward& node) { node.give(0, node.reshaped_like(node.gradient(), node.x())); }
void derive_expand(Backward& node) { node.give(0, node.summed_to(node.gradient(), node.x())); }
void derive_cast(Backward& node) {
  node.give(0, node.add("Cast", {node.gradient()}, {{"to", std::string(name_of(node.x()->type.dtype))}}));
}

Value* swapped(Backward& node, Value* value, size_t a, size_t b) {
  std::vector<int64_t> perm = iota(rank_of(value));
  std::swap(perm[a], perm[b]);
  return node.add("Transpose", {value}, {{"perm", perm}});
}

void derive_transpose(Backward& node) {
  const int64_t rank = rank_of(node.x());
  std::vector<int64_t> perm = iota(rank), inverse(static_cast<size_t>(rank));
  if (node.attrs().has("perm")) perm = node.attrs().integers("perm");
  else std::reverse(perm.begin(), perm.end());
  for (size_t i = 0; i < perm.size(); ++i) inverse[normalize_axis(perm[i], perm.size())] = static_cast<int64_t>(i);
  node.give(0, node.add("Transpose", {node.gradient()}, {{"perm", inverse}}));
}

Value* flat(Backward& node, Value* value) { return node.add("Reshape", {value, node.integers({-1})}); }

/// Zeros like `value`, with updates added at the flat positions.
Value* scattered(Backward& node, Value* value, Value* positions, Value* updates) {
  Value* zeros = flat(node, node.filled_like(value, 0));
  Value* sum = node.add("ScatterElements", {zeros, flat(node, positions), flat(node, updates)},
                        {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  return node.reshaped_like(sum, value);
}

/// Adds what each result element got to the element of the operand that it came from: the operator itself, applied to the
/// elements' numbers, says which that is.
void derive_moved(Backward& node) {
  Value* x = node.x();
  Value* numbers = node.add("Range", {node.integers({0}), node.add("Size", {x}), node.integers({1})});
  std::vector<Value*> operands = node.node().inputs;
  operands[0] = node.reshaped_like(numbers, x);
  node.give(0, scattered(node, x, node.add(node.node().op_name(), std::move(operands), node.attrs()), node.gradient()));
}

void derive_gather(Backward& node) {
  if (normalize_axis(node.attrs().integer("axis"), node.x()->type.shape.rank()) != 0) return derive_moved(node);
  Value* rows = node.add("Unsqueeze", {node.x(1), node.integers({-1})});
  node.give(0, node.add("ScatterND", {node.filled_like(node.x(), 0), rows, node.gradient()},
                        {{"reduction", std::string("add")}}));
}

void derive_concat(Backward& node) {
  const int64_t axis = static_cast<int64_t>(normalize_axis(node.attrs().integer("axis"), node.y()->type.shape.rank()));
  Value* begin = node.integers({0});
  for (size_t i = 0; i < node.node().inputs.size(); ++i) {
    Value* size = node.add("Shape", {node.x(i)}, {{"start", axis}, {"end", axis + 1}});
    Value* end = node.add("Add", {begin, size});
    if (node.wants(i)) node.give(i, node.add("Slice", {node.gradient(), begin, end, node.integers({axis})}));
    begin = end;
  }
}

void derive_split(Backward& node) {
  std::vector<Value*> parts;
  for (size_t i = 0; i < node.node().outputs.size(); ++i) parts.push_back(node.gradient(i));
  node.give(0, node.add("Concat", std::move(parts), {{"axis", node.attrs().integer("axis")}}));
}

/// Of the data and of the updates; both only where nothing is overwritten.
void derive_scatter(Backward& node) {
  if (node.attrs().text("reduction") != "add")
    throw Error(fmt::format("{} has a derivative only with the reduction 'add'", node.node().op_name()));
  const bool elements = node.node().is(ops::scatter_elements);
  if (node.wants(0)) node.give(0, node.gradient());
  if (!node.wants(2)) return;
  const Attrs attrs = elements ? Attrs{{"axis", node.attrs().integer("axis")}} : Attrs{};
  node.give(2, node.add(elements ? "GatherElements" : "GatherND", {node.gradient(), node.x(1)}, attrs));
}

// ---- Products ----

Value* product(Backward& node, Value* a, Value* b) { return node.add("MatMul", {a, b}); }
Value* turned(Backward& node, Value* value) {
  const size_t rank = value->type.shape.rank();
  return swapped(node, value, rank - 2, rank - 1);
}

/// Vectors are matrices of one row or column meanwhile.
void derive_mat_mul(Backward& node) {
  Value *a = node.x(0), *b = node.x(1), *g = node.gradient();
  const bool row = rank_of(a) == 1, column = rank_of(b) == 1;
  if (row) a = node.add("Unsqueeze", {a, node.integers({0})});
  if (column) b = node.add("Unsqueeze", {b, node.integers({1})});
  if (column) g = node.add("Unsqueeze", {g, node.integers({-1})});
  if (row) g = node.add("Unsqueeze", {g, node.integers({-2})});
  if (node.wants(0)) node.give(0, node.reshaped_like(node.summed_to(product(node, g, turned(node, b)), a), node.x(0)));
  if (node.wants(1)) node.give(1, node.reshaped_like(node.summed_to(product(node, turned(node, a), g), b), node.x(1)));
}

void derive_gemm(Backward& node) {
  Value *a = node.x(0), *b = node.x(1), *g = node.gradient();
  const double alpha = node.attrs().real("alpha"), beta = node.attrs().real("beta");
  const bool trans_a = node.attrs().integer("transA") != 0, trans_b = node.attrs().integer("transB") != 0;
  const auto gemm = [&](Value* left, bool turn_left, Value* right, bool turn_right) {
    return node.add("Gemm", {left, right},
                    {{"alpha", alpha}, {"transA", int64_t{turn_left}}, {"transB", int64_t{turn_right}}});
  };
  if (node.wants(0)) node.give(0, trans_a ? gemm(b, trans_b, g, true) : gemm(g, false, b, !trans_b));
  if (node.wants(1)) node.give(1, trans_b ? gemm(g, true, a, trans_a) : gemm(a, !trans_a, g, false));
  if (!node.wants(2)) return;
  Value* scaled = beta == 1 ? g : node.add("Mul", {g, node.number(g, beta)});
  node.give(2, node.summed_to(scaled, node.x(2)));
}

// ---- Convolutions: each is the other's derivative by its input ----

Dims spatial_sizes(const Value* value) {
  const Shape& shape = value->type.shape;
  Dims sizes;
  for (size_t i = 2; i < shape.rank(); ++i) {
    if (!shape[i].is_constant())
      throw Error(
          fmt::format("the derivative of a convolution needs sizes of images that are numbers; axis {} of '{}' is {}",
                      i, value->label(), shape[i].text()),
          "fix the sizes of the model's inputs");
    sizes.push_back(shape[i].value());
  }
  return sizes;
}

/// The attributes that both kinds share, in full.
struct ConvolutionAttrs {
  Dims pads, strides, dilations, kernel;
  int64_t group;

  explicit ConvolutionAttrs(const Backward& node) : group(node.attrs().integer("group")) {
    const WindowAttrs window(node.attrs(), node.x()->type.shape.rank() - 2, kernel_of_weight(node.x(1)->type.shape));
    HONE_CHECK(window.auto_pad == "NOTSET" || window.auto_pad == "VALID", "the padding is not known as numbers");
    pads = window.auto_pad == "VALID" ? Dims(window.pads.size(), 0) : window.pads;
    strides = window.strides, dilations = window.dilations, kernel = window.kernel;
  }
  Attrs attrs() const {
    return {{"kernel_shape", kernel}, {"pads", pads}, {"strides", strides}, {"dilations", dilations}, {"group", group}};
  }
};

/// What the filters of a convolution from `image` get: for each tap the product of what it read with the gradient of what it
/// wrote. That is a convolution of the image with the gradient, channels in place of images, strides in place of dilations.
Value* filter_gradient(Backward& node, const ConvolutionAttrs& a, Value* image, Value* gradient) {
  const Dims sizes = spatial_sizes(image);
  Value* channels = image;
  if (a.group == 1) {
    channels = swapped(node, image, 0, 1);
  } else {  // [N, G*C, ...] as [C, G*N, ...]
    const Dim& count = image->type.shape[1];
    HONE_CHECK(count.is_constant(), "the number of channels is not known");
    const int64_t each = count.value() / a.group;
    std::vector<int64_t> split{0, a.group, each}, joined{each, -1};
    split.insert(split.end(), sizes.begin(), sizes.end());
    joined.insert(joined.end(), sizes.begin(), sizes.end());
    Value* parts = swapped(node, node.add("Reshape", {image, node.integers(split)}), 0, 2);
    channels = node.add("Reshape", {parts, node.integers(joined)});
  }
  Value* taps = node.add("Conv", {channels, swapped(node, gradient, 0, 1)},
                         {{"kernel_shape", spatial_sizes(gradient)},
                          {"pads", a.pads},
                          {"strides", a.dilations},
                          {"dilations", a.strides},
                          {"group", a.group}});
  Dims axes;
  for (size_t i = 0; i < a.kernel.size(); ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  taps = node.add("Slice", {taps, node.integers(Dims(axes.size(), 0)), node.integers(a.kernel), node.integers(axes)});
  return swapped(node, taps, 0, 1);
}

void give_bias_gradient(Backward& node) {
  if (!node.wants(2)) return;
  std::vector<int64_t> axes = iota(rank_of(node.x()));
  axes.erase(axes.begin() + 1);
  node.give(2, node.add("ReduceSum", {node.gradient(), node.integers(axes)}, {{"keepdims", int64_t{0}}}));
}

void derive_conv(Backward& node) {
  const ConvolutionAttrs a(node);
  if (node.wants(0)) {
    const Dims from = spatial_sizes(node.x()), to = spatial_sizes(node.y());
    Dims extra;  // rows that no window reached
    for (size_t i = 0; i < from.size(); ++i)
      extra.push_back(from[i] + a.pads[i] + a.pads[i + from.size()] - (to[i] - 1) * a.strides[i] -
                      (a.kernel[i] - 1) * a.dilations[i] - 1);
    Attrs attrs = a.attrs();
    attrs.set("output_padding", extra);
    node.give(0, node.add("ConvTranspose", {node.gradient(), node.x(1)}, std::move(attrs)));
  }
  if (node.wants(1)) node.give(1, filter_gradient(node, a, node.x(), node.gradient()));
  give_bias_gradient(node);
}

void derive_conv_transpose(Backward& node) {
  const ConvolutionAttrs a(node);
  if (node.wants(0)) node.give(0, node.add("Conv", {node.gradient(), node.x(1)}, a.attrs()));
  if (node.wants(1)) node.give(1, filter_gradient(node, a, node.gradient(), node.x()));
  give_bias_gradient(node);
}

// ---- Reductions ----

/// `value`, which has the shape of the result, repeated along the reduced axes.
Value* spread(Backward& node, Value* value) {
  const Value* axes = node.x(1);
  const bool none = axes == nullptr || known_axes(axes, "axes of a reduction").empty();
  if (none && node.attrs().integer("noop_with_empty_axes") != 0) return value;
  if (node.attrs().integer("keepdims") == 0) {
    std::vector<int64_t> reduced = none ? iota(rank_of(node.x())) : axes->constant->integers();
    for (int64_t& axis : reduced) axis = static_cast<int64_t>(normalize_axis(axis, node.x()->type.shape.rank()));
    std::sort(reduced.begin(), reduced.end());
    if (!reduced.empty()) value = node.add("Unsqueeze", {value, node.integers(reduced)});
  }
  return node.add("Expand", {value, node.shape_of(node.x())});
}

void derive_reduce_sum(Backward& node) { node.give(0, spread(node, node.gradient())); }
void derive_reduce_mean(Backward& node) {
  Value* count = node.add("Div", {node.add("Size", {node.x()}), node.add("Size", {node.y()})});
  Value* divisor = node.add("Cast", {count}, {{"to", std::string(name_of(node.x()->type.dtype))}});
  node.give(0, node.add("Div", {spread(node, node.gradient()), divisor}));
}
/// Elements that share the extreme value share the gradient.
void derive_reduce_extreme(Backward& node) {
  const Attrs to_type{{"to", std::string(name_of(node.x()->type.dtype))}};
  Value* hit = node.add("Cast", {node.add("Equal", {node.x(), spread(node, node.y())})}, to_type);
  std::vector<Value*> summed = node.node().inputs;
  summed[0] = hit;
  Value* share = node.add("Div", {node.gradient(), node.add("ReduceSum", std::move(summed), node.attrs())});
  node.give(0, node.add("Mul", {hit, spread(node, share)}));
}
void derive_reduce_l1(Backward& node) {
  node.give(0, node.add("Mul", {spread(node, node.gradient()), node.add("Sign", {node.x()})}));
}
void derive_reduce_l2(Backward& node) {
  node.give(0, node.add("Mul", {spread(node, node.add("Div", {node.gradient(), node.y()})), node.x()}));
}
void derive_reduce_sum_square(Backward& node) {
  Value* twice = node.add("Mul", {node.gradient(), node.number(node.x(), 2)});
  node.give(0, node.add("Mul", {spread(node, twice), node.x()}));
}
void derive_reduce_log_sum(Backward& node) {
  node.give(0, spread(node, node.add("Div", {node.gradient(), node.add("Exp", {node.y()})})));
}
void derive_reduce_log_sum_exp(Backward& node) {
  Value* weight = node.add("Exp", {node.add("Sub", {node.x(), spread(node, node.y())})});
  node.give(0, node.add("Mul", {spread(node, node.gradient()), weight}));
}
void derive_global_average(Backward& node) {
  int64_t area = 1;
  for (const int64_t size : spatial_sizes(node.x())) area *= size;
  Value* each = node.add("Div", {node.gradient(), node.number(node.x(), static_cast<double>(area))});
  node.give(0, node.add("Expand", {each, node.shape_of(node.x())}));
}

Value* summed_along(Backward& node, Value* value) {
  return node.add("ReduceSum", {value, node.integers({node.attrs().integer("axis")})}, {{"keepdims", int64_t{1}}});
}
void derive_softmax(Backward& node) {
  Value* weighted = summed_along(node, node.add("Mul", {node.gradient(), node.y()}));
  node.give(0, node.add("Mul", {node.y(), node.add("Sub", {node.gradient(), weighted})}));
}
void derive_log_softmax(Backward& node) {
  Value* part = node.add("Mul", {node.add("Exp", {node.y()}), summed_along(node, node.gradient())});
  node.give(0, node.add("Sub", {node.gradient(), part}));
}

/// The loss of each target is its weight times the score of its class, negative.
void derive_loss(Backward& node) {
  Value *scores = node.x(0), *target = node.x(1), *valid = nullptr;
  if (node.attrs().has("ignore_index")) {
    Value* ignored = node.number(target, static_cast<double>(node.attrs().integer("ignore_index")));
    valid = node.add("Not", {node.add("Equal", {target, ignored})});
    target = node.add("Where", {valid, target, node.number(target, 0)});
  }
  Value* one = node.add("Expand", {node.number(scores, 1), node.shape_of(target)});
  Value* weight = node.x(2) != nullptr ? node.add("Gather", {node.x(2), target}) : one;
  if (valid != nullptr) weight = node.add("Where", {valid, weight, node.number(scores, 0)});
  Value* share = node.add("Mul", {node.gradient(), weight});
  if (node.attrs().text("reduction") == "mean")
    share = node.add("Div", {share, node.add("ReduceSum", {weight}, {{"keepdims", int64_t{0}}})});
  Value* class_axis = node.integers({1});
  node.give(0, node.add("ScatterElements",
                        {node.filled_like(scores, 0), node.add("Unsqueeze", {target, class_axis}),
                         node.add("Unsqueeze", {node.add("Neg", {share}), class_axis})},
                        {{"axis", int64_t{1}}, {"reduction", std::string("add")}}));
}

struct Row {
  const OpDef& op;
  DerivativeRule rule;
};
const Row kRows[] = {
    {ops::sigmoid, derive_sigmoid},
    {ops::silu, derive_swish},
    {ops::swish, derive_swish},
    {ops::identity, derive_identity},
    {ops::reshape, derive_reshape},
    {ops::flatten, derive_reshape},
    {ops::squeeze, derive_reshape},
    {ops::unsqueeze, derive_reshape},
    {ops::transpose, derive_transpose},
    {ops::expand, derive_expand},
    {ops::cast, derive_cast},
    {ops::slice, derive_moved},
    {ops::gather, derive_gather},
    {ops::gather_elements, derive_moved},
    {ops::gather_nd, derive_moved},
    {ops::tile, derive_moved},
    {ops::depth_to_space, derive_moved},
    {ops::space_to_depth, derive_moved},
    {ops::concat, derive_concat},
    {ops::split, derive_split},
    {ops::scatter_elements, derive_scatter},
    {ops::scatter_nd, derive_scatter},
    {ops::mat_mul, derive_mat_mul},
    {ops::gemm, derive_gemm},
    {ops::conv, derive_conv},
    {ops::conv_transpose, derive_conv_transpose},
    {ops::reduce_sum, derive_reduce_sum},
    {ops::reduce_mean, derive_reduce_mean},
    {ops::reduce_max, derive_reduce_extreme},
    {ops::reduce_min, derive_reduce_extreme},
    {ops::reduce_l1, derive_reduce_l1},
    {ops::reduce_l2, derive_reduce_l2},
    {ops::reduce_sum_square, derive_reduce_sum_square},
    {ops::reduce_log_sum, derive_reduce_log_sum},
    {ops::reduce_log_sum_exp, derive_reduce_log_sum_exp},
    {ops::global_average_pool, derive_global_average},
    {ops::softmax, derive_softmax},
    {ops::log_softmax, derive_log_softmax},
    {ops::negative_log_likelihood_loss, derive_loss},
};

}  // namespace

DerivativeRule derivative_of(const OpDef& op) {
  for (const Row& row : kRows)
    if (&row.op == &op) return row.rule;
  return op.is_pointwise() ? derive_formula : nullptr;
}

}  // namespace hone
