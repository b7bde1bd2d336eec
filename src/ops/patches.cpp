// SPDX-License-Identifier: Apache-2.0
//
// Putting elements back where they came from: Col2Im (columns of patches), MaxUnpool (maxima), and CenterCropPad.
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

// ---- Col2Im(columns, image sizes, block sizes) ----

void infer_col2im(InferContext& context) {
  check_rank(context, 0, 3, "the input of Col2Im");
  const size_t axes = known_count(context, 1);
  const std::optional<SymbolicData> image = context.symbolic(1), block = context.symbolic(2);
  Dim taps(1);
  if (block)
    for (const Dim& size : *block) taps = taps * size;
  Shape result{context.shape(0)[0], block ? floor_divide(context.shape(0)[1], taps) : context.data_dependent(0, 1)};
  for (size_t i = 0; i < axes; ++i) result.push_back(image ? (*image)[i] : context.data_dependent(0, 2 + i));
  context.set(0, context.dtype(0), std::move(result));
}

void eval_col2im(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Dims image = context.input(1).integers(), block = context.input(2).integers();
  HONE_CHECK(image.size() == block.size(), "the image has {} axes, the block {}", image.size(), block.size());
  const WindowAttrs window(context.attrs(), image.size(), block);
  Dims positions;
  for (size_t i = 0; i < image.size(); ++i) positions.push_back(window.result_size(Dim(image[i]), i).value());
  const WindowTable table(window, image, positions);
  HONE_CHECK(x.dims()[1] % table.taps == 0 && x.dims()[2] == table.results,
             "columns of [{}] do not make an image of [{}]", join_dims(x.dims(), ","), join_dims(image, ","));
  const int64_t batch = x.dims()[0], channels = x.dims()[1] / table.taps;
  const std::vector<double> columns = read_doubles(x);
  std::vector<double> out(static_cast<size_t>(batch * channels * table.inputs));
  for (int64_t plane = 0; plane < batch * channels; ++plane)
    for (int64_t i = 0; i < table.taps * table.results; ++i)
      if (const int32_t offset = table.offsets[static_cast<size_t>(i)]; offset >= 0)
        out[static_cast<size_t>(plane * table.inputs + offset)] +=
            columns[static_cast<size_t>(plane * table.taps * table.results + i)];
  Dims dims{batch, channels};
  dims.insert(dims.end(), image.begin(), image.end());
  context.set(0, write_doubles(x.dtype(), std::move(dims), out));
}

// ---- CenterCropPad(x, sizes): every axis is cut or filled up on both sides, an odd element at the end ----

std::vector<size_t> chosen_axes(const Attrs& attrs, size_t rank, size_t count) {
  std::vector<size_t> axes;
  if (attrs.has("axes")) {
    for (const int64_t axis : attrs.integers("axes")) axes.push_back(normalize_axis(axis, rank));
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  HONE_CHECK(axes.size() == count, "{} sizes are given for {} axes", count, axes.size());
  return axes;
}

void infer_center(InferContext& context) {
  const std::optional<SymbolicData> sizes = context.symbolic(1);
  Shape result = context.shape(0);
  const std::vector<size_t> axes = chosen_axes(context.attrs(), result.rank(), known_count(context, 1));
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = sizes ? (*sizes)[i] : context.data_dependent(0, axes[i]);
  context.set(0, context.dtype(0), std::move(result));
}

void eval_center(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Dims sizes = context.input(1).integers();
  std::vector<std::vector<int64_t>> indices;
  for (const int64_t size : x.dims()) indices.push_back(iota(size));
  const std::vector<size_t> axes = chosen_axes(context.attrs(), x.dims().size(), sizes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t have = x.dims()[axes[i]], want = sizes[i];
    HONE_CHECK(want >= 0, "CenterCropPad is asked for {} elements", want);
    const int64_t cut = have > want ? (have - want) / 2 : 0, before = want > have ? (want - have) / 2 : 0;
    std::vector<int64_t>& index = indices[axes[i]];
    index.assign(static_cast<size_t>(want), -1);
    for (int64_t at = 0; at < std::min(have, want); ++at) index[static_cast<size_t>(before + at)] = cut + at;
  }
  const Tensor zero = x.dtype() == DType::string ? Tensor::of_strings({1}, {""}) : scalar_of(x.dtype(), 0);
  context.set(0, pick(x, indices, &zero));
}

/// Where sizes are known, a Slice and a Pad.
void import_center(ImportContext& context) {
  Value *x = context.input(0), *asked = context.input(1);
  const auto as_it_is = [&] {
    context.set_output(0, context.add("CenterCropPad", {x, asked}, context.attrs())->output());
  };
  if (!x->type.ranked || !asked->is_constant() || is_object(x->type.dtype)) return as_it_is();
  const Shape& shape = x->type.shape;
  const Dims sizes = asked->constant->integers();
  const std::vector<size_t> axes = chosen_axes(context.attrs(), shape.rank(), sizes.size());
  Dims starts, ends, along, pads(2 * shape.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!shape[axes[i]].is_constant() || sizes[i] < 0) return as_it_is();
    const int64_t have = shape[axes[i]].value(), want = sizes[i], kept = std::min(have, want);
    starts.push_back((have - kept) / 2), ends.push_back(starts.back() + kept);
    along.push_back(static_cast<int64_t>(axes[i]));
    pads[axes[i]] = (want - kept) / 2, pads[shape.rank() + axes[i]] = want - kept - (want - kept) / 2;
  }
  x = made(context, "Slice",
           {x, integer_constant(context, starts), integer_constant(context, ends), integer_constant(context, along)});
  context.set_output(0, made(context, "Pad", {x, integer_constant(context, pads)}));
}

// ---- MaxUnpool(x, indices, sizes?) ----

void infer_unpool(InferContext& context) {
  const Shape& x = context.shape(0);
  HONE_CHECK(x.rank() >= 3, "MaxUnpool reads tensors of rank 3 or more, not {}", x.rank());
  if (context.has(2)) {
    const std::optional<SymbolicData> sizes = context.symbolic(2);
    Shape result;
    for (size_t i = 0; i < x.rank(); ++i) result.push_back(sizes ? (*sizes)[i] : context.data_dependent(0, i));
    return context.set(0, context.dtype(0), std::move(result));
  }
  const WindowAttrs window(context.attrs(), x.rank() - 2, {});
  Shape result{x[0], x[1]};
  for (size_t i = 0; i + 2 < x.rank(); ++i)
    result.push_back((x[i + 2] - Dim(1)) * Dim(window.strides[i]) +
                     Dim(window.kernel[i] - window.pads[i] - window.pads[i + x.rank() - 2]));
  context.set(0, context.dtype(0), std::move(result));
}

/// Indices count in the tensor that was pooled, whose sizes are those without an operand of their own.
void eval_unpool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const WindowAttrs window(context.attrs(), x.dims().size() - 2, {});
  Dims pooled{x.dims()[0], x.dims()[1]};
  for (size_t i = 0; i + 2 < x.dims().size(); ++i)
    pooled.push_back((x.dims()[i + 2] - 1) * window.strides[i] + window.kernel[i] - window.pads[i] -
                     window.pads[i + x.dims().size() - 2]);
  const Dims dims = context.has(2) ? context.input(2).integers() : pooled;
  HONE_CHECK(dims.size() == pooled.size(), "MaxUnpool is asked for rank {}, not {}", dims.size(), pooled.size());
  const std::vector<double> values = read_doubles(x);
  std::vector<double> out(static_cast<size_t>(elements(dims)));
  const Dims strides = strides_of(dims);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = checked_index(context.input(1).integer(i), elements(pooled)), at = 0;
    for (size_t axis = pooled.size(); axis-- > 0; rest /= pooled[axis]) at += rest % pooled[axis] * strides[axis];
    out[static_cast<size_t>(checked_index(at, elements(dims)))] = values[static_cast<size_t>(i)];
  }
  context.set(0, write_doubles(x.dtype(), dims, out));
}

void import_unpool(ImportContext& context) {
  Attrs attrs = context.attrs();
  complete_window_attrs(context, attrs, context.input(0)->type.shape, {}, false);
  std::vector<Value*> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  context.set_output(0, context.add("MaxUnpool", std::move(inputs), std::move(attrs))->output());
}

}  // namespace

const OpDef ops::col2im{.name = "Col2Im",
                        .attrs = {integers_attr("dilations"), integers_attr("pads"), integers_attr("strides")},
                        .min_inputs = 3,
                        .max_inputs = 3,
                        .infer = infer_col2im,
                        .eval = eval_col2im,
                        .onnx = {{"Col2Im", 18}}};

const OpDef ops::center_crop_pad{.name = "CenterCropPad",
                                 .attrs = {integers_attr("axes")},
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .infer = infer_center,
                                 .eval = eval_center,
                                 .onnx = {{"CenterCropPad", 18, kEveryLater, import_center}}};

const OpDef ops::max_unpool{.name = "MaxUnpool",
                            .attrs = {required_attr("kernel_shape", AttrKind::integers), integers_attr("pads"),
                                      integers_attr("strides"), text_attr("auto_pad", "NOTSET")},
                            .min_inputs = 2,
                            .max_inputs = 3,
                            .infer = infer_unpool,
                            .eval = eval_unpool,
                            .onnx = {{"MaxUnpool", 9, kEveryLater, import_unpool}}};

}  // namespace hone
