# SPDX-License-Identifier: Apache-2.0
"""What layers made by add_* are in ONNX's words, first half: images, matrices, values, shapes. Each function gets an Emitter and the record."""

import numpy as np

from .._base import onnx

INTEGERS = (onnx.INT32, onnx.INT64, onnx.INT8, onnx.UINT8, onnx.INT4)


def bits(mask):
    """The axes of a mask."""
    return [at for at in range(32) if mask >> at & 1]


def _auto_pad(e):
    return {"SAME_UPPER": "SAME_UPPER", "SAME_LOWER": "SAME_LOWER"}.get(e.param("padding_mode").name)


def _kernel(e, transposed):
    """(kernel, bias) of a convolution, weights or tensors."""
    maps, groups, window = e.param("num_output_maps"), e.param("num_groups", 1), list(e.param("kernel_size"))
    channels = e.sizes(0)[-len(window) - 1]
    shape = [channels, maps // groups, *window] if transposed else [maps, channels // groups, *window]
    kernel = e.input(1) if e.has(1) else e.weights("KERNEL", shape, e.element(0))
    if kernel is None:
        e.fail("it has no kernel, neither weights nor input 1")
    bias = e.input(2) if e.has(2) else e.weights("BIAS", [maps], e.element(0))
    return [kernel] + ([bias] if bias is not None else [])


def _images(e, spatial):
    """The input with one batch dimension, and what gives the output the dimensions in front of its channels back."""
    sizes = e.sizes(0)
    front = len(sizes) - spatial - 1
    if front < 2:
        return e.input(0), None
    if any(size < 0 for size in sizes):
        e.fail(f"it has {front} dimensions in front of its channels, so its sizes have to be known")
    return e.node("Reshape", [e.input(0), e.ints([-1, *sizes[front:]])]), sizes[:front]


def _fronted(e, made, front):
    """The output with these dimensions in front."""
    if front is not None:
        behind = e.node("Shape", [made], start=1)
        e.node("Reshape", [made, e.node("Concat", [e.ints(front), behind], axis=0)], e.out())


def _convolution(e, r):
    auto, (x, front) = _auto_pad(e), _images(e, len(e.param("kernel_size")))
    made = e.node("Conv", [x, *_kernel(e, False)], None if front else e.out(), kernel_shape=list(e.param("kernel_size")), strides=list(e.param("stride")),
                  dilations=list(e.param("dilation")), group=e.param("num_groups", 1), auto_pad=auto,
                  pads=None if auto else [*e.param("pre_padding"), *e.param("post_padding")])
    _fronted(e, made, front)


def _deconvolution(e, r):
    auto, (x, front) = _auto_pad(e), _images(e, len(e.param("kernel_size")))
    made = e.node("ConvTranspose", [x, *_kernel(e, True)], None if front else e.out(), kernel_shape=list(e.param("kernel_size")),
                  strides=list(e.param("stride")), dilations=list(e.param("dilation")), group=e.param("num_groups", 1), auto_pad=auto,
                  pads=None if auto else [*e.param("pre_padding"), *e.param("post_padding")])
    _fronted(e, made, front)


def _fully_connected(e, r):
    """(N, C, H, W) to (N, K, 1, 1)."""
    maps = e.param("num_output_channels")
    sizes = e.sizes(0)
    flat = e.node("Flatten", [e.input(0)], axis=len(sizes) - 3)
    inner = int(np.prod(sizes[-3:]))
    kernel = e.weights("KERNEL", [maps, inner], e.element(0))
    bias = e.weights("BIAS", [maps], e.element(0))
    product = e.node("Gemm", [flat, kernel] + ([bias] if bias else []), transB=1)
    e.node("Unsqueeze", [product, e.ints([2, 3])], e.out())


def _pooling(e, r):
    auto, mode, kind = _auto_pad(e), e.param("padding_mode").name, e.param("operation").name
    common = dict(kernel_shape=list(e.param("window_size")), strides=list(e.param("stride")), auto_pad=auto,
                  ceil_mode=1 if mode.endswith("ROUND_UP") else None,
                  pads=None if auto else [*e.param("pre_padding"), *e.param("post_padding")])
    includes = dict(count_include_pad=0 if e.param("average_count_excludes_padding", True) else 1)
    if kind == "MAX":
        e.node("MaxPool", [e.input(0)], e.out(), **common)
    elif kind == "AVERAGE":
        e.node("AveragePool", [e.input(0)], e.out(), **common, **includes)
    else:
        factor, element = e.param("blend_factor", 0.0), e.element(0)
        largest = e.node("Mul", [e.node("MaxPool", [e.input(0)], **common), e.scalar(1.0 - factor, element)])
        mean = e.node("Mul", [e.node("AveragePool", [e.input(0)], **common, **includes), e.scalar(factor, element)])
        e.node("Add", [largest, mean], e.out())


def _activation(e, r):
    x, alpha, beta, kind, element = e.input(0), e.param("alpha", 0.0), e.param("beta", 0.0), e.param("operation").name, e.element(0)
    plain = {"RELU": "Relu", "SIGMOID": "Sigmoid", "TANH": "Tanh", "SOFTSIGN": "Softsign"}
    if kind in plain:
        e.node(plain[kind], [x], e.out())
    elif kind == "LEAKY_RELU":
        e.node("LeakyRelu", [x], e.out(), alpha=alpha)
    elif kind == "ELU":
        e.node("Elu", [x], e.out(), alpha=alpha)
    elif kind == "SELU":
        e.node("Selu", [x], e.out(), alpha=alpha, gamma=beta)
    elif kind == "SOFTPLUS":
        e.node("Mul", [e.node("Softplus", [e.node("Mul", [x, e.scalar(beta, element)])]), e.scalar(alpha, element)], e.out())
    elif kind == "CLIP":
        e.node("Clip", [x, e.scalar(alpha, element), e.scalar(beta, element)], e.out())
    elif kind == "HARD_SIGMOID":
        e.node("HardSigmoid", [x], e.out(), alpha=alpha, beta=beta)
    elif kind == "SCALED_TANH":
        e.node("Mul", [e.node("Tanh", [e.node("Mul", [x, e.scalar(beta, element)])]), e.scalar(alpha, element)], e.out())
    elif kind == "THRESHOLDED_RELU":
        e.node("ThresholdedRelu", [x], e.out(), alpha=alpha)
    else:
        e.node("Gelu", [x], e.out(), approximate="tanh" if kind == "GELU_TANH" else "none")


_ELEMENTWISE = {"SUM": "Add", "PROD": "Mul", "MAX": "Max", "MIN": "Min", "SUB": "Sub", "DIV": "Div", "POW": "Pow", "AND": "And", "OR": "Or",
                "XOR": "Xor", "EQUAL": "Equal", "GREATER": "Greater", "LESS": "Less"}


def _elementwise(e, r):
    a, b, kind = e.input(0), e.input(1), e.param("op").name
    if e.rank(0) != e.rank(1):
        e.fail(f"its inputs have ranks {e.rank(0)} and {e.rank(1)}; they must be equal")
    if e.element(0) != e.element(1):
        e.fail("its inputs have different types")
    if kind != "FLOOR_DIV":
        e.node(_ELEMENTWISE[kind], [a, b], e.out())
    elif e.element(0) not in INTEGERS:
        e.node("Floor", [e.node("Div", [a, b])], e.out())
    else:  # a remainder whose sign differs from the divisor's: one less than what Div, which truncates, gives
        rest = e.node("Mod", [a, b])
        e.node("Div", [e.node("Sub", [a, rest]), b], e.out())


def _unary(e, r):
    x, kind = e.input(0), e.param("op").name
    plain = {"EXP": "Exp", "LOG": "Log", "SQRT": "Sqrt", "RECIP": "Reciprocal", "ABS": "Abs", "NEG": "Neg", "SIN": "Sin", "COS": "Cos",
             "TAN": "Tan", "SINH": "Sinh", "COSH": "Cosh", "ASIN": "Asin", "ACOS": "Acos", "ATAN": "Atan", "ASINH": "Asinh",
             "ACOSH": "Acosh", "ATANH": "Atanh", "CEIL": "Ceil", "FLOOR": "Floor", "ERF": "Erf", "NOT": "Not", "SIGN": "Sign",
             "ROUND": "Round", "ISINF": "IsInf", "ISNAN": "IsNaN"}
    e.node(plain[kind], [x], e.out())


def _matrix_multiply(e, r):
    sides, ops = [], [e.param("op0").name, e.param("op1").name]
    for at, op in enumerate(ops):
        name, rank = e.input(at), e.rank(at)
        if op == "TRANSPOSE":
            order = list(range(rank))
            order[-2:] = order[:-3:-1]
            name = e.node("Transpose", [name], perm=order)
        elif op == "VECTOR":
            name = e.node("Unsqueeze", [name, e.ints([rank - 1 if at == 0 else rank])])
        sides.append(name)
    drop = [axis for axis, op in ((-2, ops[0]), (-1, ops[1])) if op == "VECTOR"]
    if not drop:
        e.node("MatMul", sides, e.out())
    else:
        e.node("Squeeze", [e.node("MatMul", sides), e.ints(drop)], e.out())


def _constant(e, r):
    held = e.weights("CONSTANT", e.param("shape", ()))
    if held is None:  # sizes of 0
        from .._base.elements import element_of_type

        kind = onnx.numpy_of(element_of_type(r.weights["CONSTANT"].dtype))
        held = e.constant(np.zeros(e.param("shape"), kind))
    if held != e.out():
        e.node("Identity", [held], e.out())


def _shuffle(e, r):
    name, rank = e.input(0), e.rank(0)
    first, second = e.param("first_transpose"), e.param("second_transpose")
    if first is not None:
        name = e.node("Transpose", [name], perm=list(first[:rank]))
    allow_zero = 0 if e.param("zero_is_placeholder", True) else 1
    target = e.param("reshape_dims")
    if e.has(1):
        name, rank = e.node("Reshape", [name, e.cast(e.input(1), onnx.INT64)], allowzero=allow_zero), e.sizes(1)[0]
    elif target is not None:
        name, rank = e.node("Reshape", [name, e.ints(list(target))], allowzero=allow_zero), len(target)
    if second is not None:
        name = e.node("Transpose", [name], perm=list(second[:rank]))
    e.node("Identity", [name], e.out())


def _slice_operands(e):
    """start, size and stride as int64 tensors."""
    names = []
    for at, word in ((1, "start"), (2, "shape"), (3, "stride")):
        names.append(e.cast(e.input(at), onnx.INT64) if e.has(at) else e.ints(list(e.param(word, ()))))
    return names


def _slice(e, r):
    """Rows start + i * stride of each axis; outside of the tensor what the mode says."""
    start, size, stride = _slice_operands(e)
    mode, x, rank = e.param("mode").name, e.input(0), e.rank(0)
    if mode in ("STRICT_BOUNDS", "DEFAULT"):
        axes = e.cast(e.input(5), onnx.INT64) if e.has(5) else e.ints(list(e.param("axes") or range(rank)))
        return _strict(e, x, start, size, stride, axes)
    axes = _known_axes(e, rank)
    sizes = e.node("Shape", [x])
    inside, zero, one = None, e.constant(0, np.int64), e.constant(1, np.int64)
    for at, axis in enumerate(axes):
        pick = [e.node("Gather", [each, e.constant(at, np.int64)]) for each in (start, size, stride)]
        extent = e.node("Gather", [sizes, e.constant(axis, np.int64)])
        index = e.node("Add", [pick[0], e.node("Mul", [e.node("Range", [zero, pick[1], one]), pick[2]])])
        last = e.node("Sub", [extent, one])
        if mode == "WRAP":
            index = e.node("Mod", [index, extent])
        elif mode == "REFLECT":  # a triangle wave: 0 1 2 ... last ... 2 1 0
            period = e.node("Max", [e.node("Mul", [last, e.constant(2, np.int64)]), one])
            index = e.node("Mod", [index, period])
            index = e.node("Min", [index, e.node("Sub", [period, index])])
        else:
            clamped = e.node("Min", [e.node("Max", [index, zero]), last])
            if mode == "FILL":
                inside = _and(e, inside, e.node("Equal", [index, clamped]), axis, rank)
            index = clamped
        x = e.node("Gather", [x, index], axis=axis)
    if mode == "FILL":
        value = e.input(4) if e.has(4) else e.scalar(0, e.element(0))
        return e.node("Where", [inside, x, e.node("Reshape", [value, e.ints([])])], e.out())
    return e.node("Identity", [x], e.out())


def _known_axes(e, rank):
    """The axes as numbers; as a tensor they have to be a constant."""
    if not e.has(5):
        return list(e.param("axes") or range(rank))
    held = e.contents(5)
    if held is None:
        e.fail("its axes are a tensor that is no constant; only mode STRICT_BOUNDS takes those")
    return [int(axis) % rank for axis in held]


def _and(e, so_far, mask, axis, rank):
    """A mask of one axis, spread over all."""
    spread = e.node("Unsqueeze", [mask, e.ints([at for at in range(rank) if at != axis])]) if rank > 1 else mask
    return spread if so_far is None else e.node("And", [so_far, spread])


def _strict(e, x, start, size, stride, axes):
    """Slice. Behind the last element of a negative stride lies -1, which ONNX would read from the end; what is known now is computed
    now, so that sizes stay known."""
    far = -2 ** 40
    if not (e.has(1) or e.has(2) or e.has(3)):
        ends = [at + count * step for at, count, step in zip(e.param("start"), e.param("shape"), e.param("stride"))]
        end = e.ints([far if last < 0 else last for last in ends])
    else:
        end = e.node("Add", [start, e.node("Mul", [size, stride])])
        if e.has(3) or any(step < 0 for step in e.param("stride", ())):
            end = e.node("Where", [e.node("Less", [end, e.constant(0, np.int64)]), e.constant(far, np.int64), end])
    e.node("Slice", [x, start, end, axes, stride], e.out())


def _identity(e, r):
    e.node("Identity", [e.input(0)], e.out())


def _cast(e, r):
    from .._base.elements import element_of_type

    target, ranges = element_of_type(e.param("to_type")), r.outputs[0]._range
    if target == onnx.INT8 and ranges is not None and e.element(0) == onnx.FLOAT:  # INT8 stands for this range
        scaled = e.node("Div", [e.input(0), e.scalar(max(ranges) / 127, onnx.FLOAT)])
        scaled = e.node("Clip", [scaled, e.scalar(-127.0, onnx.FLOAT), e.scalar(127.0, onnx.FLOAT)])
        e.cast(e.node("Round", [scaled]), target, e.out())
    elif target == onnx.UINT8 and e.element(0) in (onnx.FLOAT, onnx.FLOAT16, onnx.BFLOAT16):  # 0 below 0, what is above wraps
        whole = e.cast(e.node("Relu", [e.input(0)]), onnx.INT64)
        e.cast(e.node("Mod", [whole, e.constant(256, np.int64)]), target, e.out())
    else:
        e.cast(e.input(0), target, e.out())


def _fill(e, r):
    from .._base.elements import element_of_type

    asked = r.types.get(0)
    element = element_of_type(asked or e.param("to_type"))
    shape = e.cast(e.input(0), onnx.INT64) if e.has(0) else e.ints(list(e.param("shape", ())))
    kind, alpha, beta = e.param("operation").name, e.param("alpha", 0.0), e.param("beta", 1.0)
    if kind != "LINSPACE":
        if e.has(1) or e.has(2):
            return _random_between(e, shape, kind, element)
        sizes = [int(size) for size in e.param("shape", ())]
        if e.has(0):
            blank = e.node("ConstantOfShape", [shape], value=np.zeros(1, np.float32))
            how = dict(low=float(alpha), high=float(beta)) if kind == "RANDOM_UNIFORM" else dict(mean=float(alpha), scale=float(beta))
            return e.node("RandomUniformLike" if kind == "RANDOM_UNIFORM" else "RandomNormalLike", [blank], e.out(), dtype=element, **how)
        how = dict(low=float(alpha), high=float(beta)) if kind == "RANDOM_UNIFORM" else dict(mean=float(alpha), scale=float(beta))
        return e.node("RandomUniform" if kind == "RANDOM_UNIFORM" else "RandomNormal", [], e.out(), shape=sizes, dtype=element, **how)
    rank = (e.sizes(0) or [0])[0] if e.has(0) else len(e.param("shape", ()))  # a number of rank 0 is a shape of rank 0
    first = e.cast(e.input(1), element) if e.has(1) else e.scalar(alpha, element)
    first = e.node("Reshape", [first, e.ints([])])
    if rank == 0:
        return e.node("Identity", [first], e.out())
    total = None
    for axis in range(rank):
        count = e.node("Gather", [shape, e.constant(axis, np.int64)])
        step = e.cast(e.input(2), element) if e.has(2) else e.scalar(beta, element)
        if e.has(2) and len(e.sizes(2)):
            step = e.node("Gather", [step, e.constant(axis, np.int64)])
        elif rank > 1 and not e.has(2):
            e.fail("a LINSPACE of several axes needs a step for each (input 2)")
        row = e.node("Mul", [e.cast(e.node("Range", [e.constant(0, np.int64), count, e.constant(1, np.int64)]), element), step])
        row = e.node("Unsqueeze", [row, e.ints([at for at in range(rank) if at != axis])]) if rank > 1 else row
        total = row if total is None else e.node("Add", [total, row])
    e.node("Add", [first, total], e.out())


def _random_between(e, shape, kind, element):
    """Random numbers whose bounds, or mean and scale, are tensors."""
    blank = e.node("ConstantOfShape", [shape], value=np.zeros(1, np.float32))
    drawn = e.node("RandomUniformLike" if kind == "RANDOM_UNIFORM" else "RandomNormalLike", [blank], dtype=onnx.FLOAT)
    first, second = (e.node("Reshape", [e.cast(e.input(at), onnx.FLOAT), e.ints([])]) if e.has(at) else e.scalar(e.param(word, default), onnx.FLOAT)
                     for at, word, default in ((1, "alpha", 0.0), (2, "beta", 1.0)))
    wide = e.node("Sub", [second, first]) if kind == "RANDOM_UNIFORM" else second
    e.cast(e.node("Add", [e.node("Mul", [drawn, wide]), first]), element, e.out())


def _concatenation(e, r):
    e.node("Concat", [e.input(at) for at in range(len(r.inputs))], e.out(), axis=e.param("axis", 0))


def _softmax(e, r):
    axes = bits(e.param("axes"))
    if len(axes) != 1:
        e.fail("a softmax has one axis, one bit of `axes`")
    e.node("Softmax", [e.input(0)], e.out(), axis=axes[0])


def _reduce(e, r):
    op = e.param("op").name
    word = {"SUM": "ReduceSum", "PROD": "ReduceProd", "MAX": "ReduceMax", "MIN": "ReduceMin", "AVG": "ReduceMean"}.get(op)
    if word is None:
        return e.node("Identity", [e.input(0)], e.out())
    e.node(word, [e.input(0), e.ints(bits(e.param("axes")))], e.out(), keepdims=int(bool(e.param("keep_dims", False))))


def _shape(e, r):
    from .._base import surface

    if surface.MAJOR == "8":
        return e.cast(e.node("Shape", [e.input(0)]), onnx.INT32, e.out())
    e.node("Shape", [e.input(0)], e.out())


def _select(e, r):
    e.node("Where", [e.input(0), e.input(1), e.input(2)], e.out())


LOWER = {"CONVOLUTION": _convolution, "DECONVOLUTION": _deconvolution, "FULLY_CONNECTED": _fully_connected, "POOLING": _pooling,
         "ACTIVATION": _activation, "ELEMENTWISE": _elementwise, "UNARY": _unary, "MATRIX_MULTIPLY": _matrix_multiply,
         "CONSTANT": _constant, "SHUFFLE": _shuffle, "SLICE": _slice, "IDENTITY": _identity, "CAST": _cast, "FILL": _fill,
         "CONCATENATION": _concatenation, "SOFTMAX": _softmax, "REDUCE": _reduce, "SHAPE": _shape, "SELECT": _select}
