# SPDX-License-Identifier: Apache-2.0
"""What layers made by add_* are in ONNX's words, second half: choosing, gathering, normalising."""

import numpy as np

from .._base import onnx
from .._base.elements import element_of_type
from .layers import bits


def _one_axis(e, mask, what):
    axes = bits(mask)
    if len(axes) != 1:
        e.fail(f"{what} has one axis, one bit of `axes`")
    return axes[0]


def _index_type(e):
    asked = e.param("indices_type")
    return onnx.INT32 if asked is None else element_of_type(asked)


def _topk(e, r):
    k = e.node("Reshape", [e.cast(e.input(1), onnx.INT64), e.ints([1])]) if e.has(1) else e.ints([e.param("k")])
    where = e.fresh()
    e.node("TopK", [e.input(0), k], [e.out(0), where], axis=_one_axis(e, e.param("axes"), "a TopK"),
           largest=int(e.param("op").name == "MAX"), sorted=1)
    e.cast(where, _index_type(e), e.out(1))


def _gather(e, r):
    mode, axis, batch = e.param("mode").name, e.param("axis", 0), e.param("num_elementwise_dims", 0)
    if mode == "DEFAULT" and not batch:
        e.node("Gather", [e.input(0), e.input(1)], e.out(), axis=axis)
    elif mode == "DEFAULT":
        if axis < batch:
            e.fail(f"its axis {axis} is one of its {batch} elementwise dimensions")
        _gather_in_batches(e, axis, batch)
    elif mode == "ELEMENT":
        e.node("GatherElements", [e.input(0), e.cast(e.input(1), onnx.INT64)], e.out(), axis=axis)
    else:
        e.node("GatherND", [e.input(0), e.cast(e.input(1), onnx.INT64)], e.out(), batch_dims=batch)


def _gather_in_batches(e, axis, batch):
    """The axis goes behind the batch dimensions, GatherND, and the axes of the indices to where it was."""
    rank, places = e.rank(0), e.rank(1) - batch
    order = [*range(batch), axis, *(at for at in range(batch, rank) if at != axis)]
    data = e.node("Transpose", [e.input(0)], perm=order)
    indices = e.node("Unsqueeze", [e.cast(e.input(1), onnx.INT64), e.ints([places + batch])])
    found = e.node("GatherND", [data, indices], batch_dims=batch)
    first = batch + places
    before, behind = range(first, first + axis - batch), range(first + axis - batch, rank + places - 1)
    e.node("Transpose", [found], e.out(), perm=[*range(batch), *before, *range(batch, first), *behind])


def _scatter(e, r):
    element = e.param("mode").name == "ELEMENT"
    e.node("ScatterElements" if element else "ScatterND", [e.input(0), e.cast(e.input(1), onnx.INT64), e.input(2)], e.out(),
           axis=e.param("axis", 0) if element else None)


def _scale(e, r):
    """(x * scale + shift) ** power."""
    name, element, mode, axis, rank = e.input(0), e.element(0), e.param("mode").name, e.param("channel_axis", 1), e.rank(0)
    sizes = e.sizes(0)
    shape = {"UNIFORM": [], "CHANNEL": [sizes[axis], *([1] * (rank - axis - 1))], "ELEMENTWISE": sizes[axis:]}[mode]
    for op, role in (("Mul", "SCALE"), ("Add", "SHIFT"), ("Pow", "POWER")):
        held = e.weights(role, shape, element)
        if held is not None:
            name = e.node(op, [name, held])
    e.node("Identity", [name], e.out())


def _resize(e, r):
    mode = e.param("resize_mode")
    mode = "nearest" if mode is None else {"NEAREST": "nearest", "LINEAR": "linear", "CUBIC": "cubic"}[mode.name]
    how = e.param("coordinate_transformation")
    how = "asymmetric" if how is None else {"ALIGN_CORNERS": "align_corners", "ASYMMETRIC": "asymmetric", "HALF_PIXEL": "half_pixel"}[how.name]
    upper = e.param("selector_for_single_pixel")
    if upper is not None and upper.name == "UPPER" and how == "half_pixel":
        how = "pytorch_half_pixel"
    rounding = e.param("nearest_rounding")
    rounding = "floor" if rounding is None else {"HALF_UP": "round_prefer_ceil", "HALF_DOWN": "round_prefer_floor", "FLOOR": "floor",
                                                 "CEIL": "ceil"}[rounding.name]
    if e.has(1):
        scales, sizes = "", e.cast(e.input(1), onnx.INT64)
    elif e.param("scales"):
        scales, sizes = e.constant(e.param("scales"), np.float32), ""
    elif e.param("shape") is not None:
        scales, sizes = "", e.ints(list(e.param("shape")))
    else:  # the size that it has
        scales, sizes = e.constant([1.0] * e.rank(0), np.float32), ""
    e.node("Resize", [e.input(0), "", scales, sizes] if sizes else [e.input(0), "", scales], e.out(), mode=mode,
           coordinate_transformation_mode=how, nearest_mode=rounding if mode == "nearest" else None,
           exclude_outside=int(bool(e.param("exclude_outside", False))), cubic_coeff_a=float(e.param("cubic_coeff", -0.75)))


def _non_zero(e, r):
    e.cast(e.node("NonZero", [e.input(0)]), _index_type(e), e.out())


def _one_hot(e, r):
    e.node("OneHot", [e.input(0), e.input(2), e.input(1)], e.out(), axis=e.param("axis", -1))


def _normalization(e, r):
    """Over the axes, or over all behind the channels in groups of them; scale and bias broadcast."""
    x, scale, bias, axes, groups = e.input(0), e.input(1), e.input(2), bits(e.param("axes")), e.param("num_groups", 1)
    epsilon, rank, element = float(e.param("epsilon", 1e-5)), e.rank(0), e.element(0)
    shape = e.node("Shape", [x])
    if groups != 1:
        head = e.node("Slice", [shape, e.ints([0]), e.ints([1])])
        x = e.node("Reshape", [x, e.node("Concat", [head, e.ints([groups, -1])], axis=0)])
        axes = [2]
    mean = e.node("ReduceMean", [x, e.ints(axes)], keepdims=1)
    centred = e.node("Sub", [x, mean])
    variance = e.node("ReduceMean", [e.node("Mul", [centred, centred]), e.ints(axes)], keepdims=1)
    y = e.node("Div", [centred, e.node("Sqrt", [e.node("Add", [variance, e.scalar(epsilon, element)])])])
    if groups != 1:
        y = e.node("Reshape", [y, shape])
        if e.rank(1) == rank and e.param("is_v2", False) is False and e.sizes(1)[1] == groups != e.sizes(0)[1]:
            per = e.sizes(0)[1] // groups  # a scale a group
            scale, bias = (_repeated(e, each, per, rank) for each in (scale, bias))
    e.node("Add", [e.node("Mul", [y, scale]), bias], e.out())


def _repeated(e, name, times, rank):
    """Each entry of axis 1 so many times."""
    wide = e.node("Unsqueeze", [name, e.ints([2])])
    wide = e.node("Expand", [wide, e.ints([1, 1, times] + [1] * (rank - 2))])
    return e.node("Reshape", [wide, e.ints([1, -1] + [1] * (rank - 2))])


def _parametric_relu(e, r):
    e.node("PRelu", [e.input(0), e.input(1)], e.out())


def _lrn(e, r):
    e.node("LRN", [e.input(0)], e.out(), size=e.param("window_size"), alpha=float(e.param("alpha")),
           beta=float(e.param("beta")), bias=float(e.param("k")))


def _padding(e, r):
    pre, post, rank = list(e.param("pre_padding")), list(e.param("post_padding")), e.rank(0)
    zeros = [0] * (rank - len(pre))
    e.node("Pad", [e.input(0), e.ints(zeros + pre + zeros + post)], e.out(), mode="constant")


def _einsum(e, r):
    e.node("Einsum", [e.input(at) for at in range(len(r.inputs))], e.out(), equation=e.param("equation"))


def _grid_sample(e, r):
    mode, outside = e.param("interpolation_mode"), e.param("sample_mode")
    mode = "linear" if mode is None else mode.name.lower()
    outside = {"FILL": "zeros", "CLAMP": "border", "REFLECT": "reflection"}.get("FILL" if outside is None else outside.name)
    if outside is None:
        e.fail("a grid sample fills, clamps or reflects")
    e.node("GridSample", [e.input(0), e.input(1)], e.out(), mode=mode, padding_mode=outside, align_corners=int(bool(e.param("align_corners", False))))


def _nms(e, r):
    """(count, 3) indices of batch, class, box, and their count."""
    box_format = e.param("bounding_box_format")
    center = 0 if box_format is None else int(box_format)
    boxes = e.input(0)
    if len(e.sizes(0)) == 4:
        boxes = e.node("Squeeze", [boxes, e.ints([2])])
    scores = e.node("Transpose", [e.input(1)], perm=[0, 2, 1])
    extra = []
    for at in (3, 4):
        extra.append(e.node("Reshape", [e.input(at), e.ints([1])]) if e.has(at) else e.constant([0.0 if at == 3 else -3.0e38], np.float32))
    most = e.node("Reshape", [e.cast(e.input(2), onnx.INT64), e.ints([1])])
    found = e.node("NonMaxSuppression", [boxes, scores, most, *extra], center_point_box=center)
    e.cast(found, _index_type(e), e.out(0))
    count = e.node("Gather", [e.node("Shape", [found]), e.constant(0, np.int64)])
    e.cast(count, onnx.INT32, e.out(1))


def _reverse_sequence(e, r):
    e.node("ReverseSequence", [e.input(0), e.cast(e.input(1), onnx.INT64)], e.out(), batch_axis=e.param("batch_axis", 1),
           time_axis=e.param("sequence_axis", 0))


def _cumulative(e, r):
    e.node("CumSum", [e.input(0), e.node("Reshape", [e.cast(e.input(1), onnx.INT64), e.ints([])])], e.out(),
           exclusive=int(e.param("exclusive", False)), reverse=int(e.param("reverse", False)))


def _axes(word):
    def lower(e, r):
        e.node(word, [e.input(0), e.node("Reshape", [e.cast(e.input(1), onnx.INT64), e.ints([-1])])], e.out())

    return lower


def _ragged_softmax(e, r):
    """Rows of (..., n), of which the first `bounds` count; the rest is 0."""
    x = e.input(0)
    size = e.node("Gather", [e.node("Shape", [x]), e.constant(e.rank(0) - 1, np.int64)])
    at = e.cast(e.node("Range", [e.constant(0, np.int64), size, e.constant(1, np.int64)]), onnx.INT32)
    inside = e.node("Less", [at, e.cast(e.input(1), onnx.INT32)])
    low = e.node("Where", [inside, x, e.scalar(-3.0e38 if e.element(0) != onnx.FLOAT16 else -6.0e4, e.element(0))])
    e.node("Where", [inside, e.node("Softmax", [low], axis=-1), e.scalar(0.0, e.element(0))], e.out())


def _nothing(e, r):
    """A layer that computes nothing: an assertion holds, or it was not asked."""


LOWER = {"TOPK": _topk, "GATHER": _gather, "SCATTER": _scatter, "SCALE": _scale, "RESIZE": _resize, "NON_ZERO": _non_zero,
         "ONE_HOT": _one_hot, "NORMALIZATION": _normalization,
         "PARAMETRIC_RELU": _parametric_relu, "LRN": _lrn, "PADDING": _padding, "EINSUM": _einsum, "GRID_SAMPLE": _grid_sample, "NMS": _nms,
         "REVERSE_SEQUENCE": _reverse_sequence, "CUMULATIVE": _cumulative, "SQUEEZE": _axes("Squeeze"), "UNSQUEEZE": _axes("Unsqueeze"),
         "ASSERTION": _nothing, "RAGGED_SOFTMAX": _ragged_softmax, "ATTENTION_INPUT": _nothing}
