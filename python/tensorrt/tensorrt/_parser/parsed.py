# SPDX-License-Identifier: Apache-2.0
"""The parameters of layers that a parser made, read of their ONNX nodes when somebody asks for them."""

from .._base import enums
from .._base.values import weights_of

_ELEMENTWISE = {"Add": "SUM", "Mul": "PROD", "Max": "MAX", "Min": "MIN", "Sub": "SUB", "Div": "DIV", "Pow": "POW", "And": "AND", "Or": "OR",
                "Xor": "XOR", "Equal": "EQUAL", "Greater": "GREATER", "Less": "LESS", "GreaterOrEqual": "GREATER", "LessOrEqual": "LESS"}
_UNARY = {"Reciprocal": "RECIP"}
_ACTIVATION = {"LeakyRelu": "LEAKY_RELU", "HardSigmoid": "HARD_SIGMOID", "ThresholdedRelu": "THRESHOLDED_RELU", "HardSwish": "HARD_SIGMOID",
               "Gelu": "GELU_ERF"}
_REDUCE = {"ReduceSum": "SUM", "ReduceProd": "PROD", "ReduceMax": "MAX", "ReduceMin": "MIN", "ReduceMean": "AVG", "GlobalAveragePool": "AVG",
           "GlobalMaxPool": "MAX"}


def _member(enum, name, otherwise):
    cls = enums.ALL[enum]
    return getattr(cls, name, None) or getattr(cls, otherwise)


def reader(record, weights, folder):
    """A function that gives (parameters, weights)."""

    def read():
        node = record.node
        attributes = node.attributes()

        def operand(at):
            name = record.operands[at] if at < len(record.operands) else None
            held = weights.get(name) if isinstance(name, str) else None
            return None if held is None else held.array(folder)

        made = _READ.get(record.kind)
        return ({}, {}) if made is None else made(record, node.op, attributes, operand)

    return read


def _window(attributes, rank):
    pads = attributes.get("pads") or [0] * 2 * rank
    auto = attributes.get("auto_pad", "NOTSET")
    mode = auto if auto in ("SAME_UPPER", "SAME_LOWER") else "EXPLICIT_ROUND_UP" if attributes.get("ceil_mode") else "EXPLICIT_ROUND_DOWN"
    return {"stride": tuple(attributes.get("strides") or [1] * rank), "pre_padding": tuple(pads[:rank]), "post_padding": tuple(pads[rank:]),
            "padding_mode": enums.ALL["PaddingMode"].__members__[mode]}


def _convolution(record, op, attributes, operand):
    held = {}
    for role, at in (("KERNEL", 1), ("BIAS", 2)):
        array = operand(at)
        if array is not None:
            held[role] = weights_of(array)
    kernel = operand(1)
    shape = tuple(kernel.shape) if kernel is not None else tuple(record.inputs[1].shape) if len(record.inputs) > 1 else ()
    window = tuple(attributes.get("kernel_shape") or shape[2:])
    groups = attributes.get("group", 1)
    maps = (shape[1] * groups if op == "ConvTranspose" else shape[0]) if shape else 0
    return {**_window(attributes, len(window)), "kernel_size": window, "dilation": tuple(attributes.get("dilations") or [1] * len(window)),
            "num_groups": groups, "num_output_maps": maps}, held


def _pooling(record, op, attributes, operand):
    window = tuple(attributes.get("kernel_shape", ()))
    return {**_window(attributes, len(window)), "window_size": window, "blend_factor": 0.0,
            "average_count_excludes_padding": not attributes.get("count_include_pad", 0),
            "operation": _member("PoolingType", "MAX" if op == "MaxPool" else "AVERAGE", "MAX")}, {}


def _activation(record, op, attributes, operand):
    name = _ACTIVATION.get(op, op.upper())
    if op == "Gelu" and attributes.get("approximate") == "tanh":
        name = "GELU_TANH"
    alpha = attributes.get("alpha", {"LeakyRelu": 0.01, "Elu": 1.0, "HardSigmoid": 0.2, "Selu": 1.6732632, "ThresholdedRelu": 1.0,
                                     "Softplus": 1.0}.get(op, 0.0))
    beta = attributes.get("beta", attributes.get("gamma", {"HardSigmoid": 0.5, "Selu": 1.050701, "Softplus": 1.0}.get(op, 0.0)))
    if op == "Clip":
        low, high = operand(1), operand(2)
        alpha = float(low) if low is not None else attributes.get("min", -3.4028234663852886e38)
        beta = float(high) if high is not None else attributes.get("max", 3.4028234663852886e38)
    return {"operation": _member("ActivationType", name, "RELU"), "alpha": float(alpha), "beta": float(beta)}, {}


def _reduce(record, op, attributes, operand):
    given, rank = operand(1), len(record.inputs[0].shape)
    axes = given.reshape(-1).tolist() if given is not None else attributes.get("axes")
    if op.startswith("Global"):
        axes, keep = range(2, rank), True
    else:
        axes, keep = range(rank) if not axes else axes, bool(attributes.get("keepdims", 1))
    return {"op": _member("ReduceOperation", _REDUCE.get(op, "SUM"), "SUM"), "axes": sum(1 << axis % rank for axis in axes), "keep_dims": keep}, {}


def _shuffle(record, op, attributes, operand):
    rank = len(record.inputs[0].shape)
    if op == "Transpose":
        return {"first_transpose": tuple(attributes.get("perm") or range(rank)[::-1]), "zero_is_placeholder": True}, {}
    given = operand(1)
    sizes = given.reshape(-1).tolist() if op == "Reshape" and given is not None else list(record.outputs[0].shape)
    return {"reshape_dims": tuple(sizes), "zero_is_placeholder": not attributes.get("allowzero", 0)}, {}


def _axis(record, op, attributes, operand):
    rank = len(record.inputs[0].shape)
    default = {"Concat": 0, "Gather": 0, "GatherElements": 0, "ScatterElements": 0, "OneHot": -1}.get(op, 1)
    axis = attributes.get("axis", default)
    return {"axis": axis % rank if rank and axis < 0 else axis}, {}


def _gather(record, op, attributes, operand):
    mode = {"Gather": "DEFAULT", "GatherElements": "ELEMENT"}.get(op, "ND")
    return {**_axis(record, op, attributes, operand)[0], "mode": _member("GatherMode", mode, "DEFAULT"),
            "num_elementwise_dims": attributes.get("batch_dims", 0)}, {}


def _softmax(record, op, attributes, operand):
    rank = max(1, len(record.inputs[0].shape))
    return {"axes": 1 << attributes.get("axis", -1) % rank}, {}


def _topk(record, op, attributes, operand):
    rank, k = max(1, len(record.inputs[0].shape)), operand(1)
    largest = attributes.get("largest", 1) if op == "TopK" else op == "ArgMax"
    axis = attributes.get("axis", -1 if op == "TopK" else 0)
    return {"op": _member("TopKOperation", "MAX" if largest else "MIN", "MAX"), "k": int(k.reshape(-1)[0]) if k is not None else
            attributes.get("k", 1), "axes": 1 << axis % rank}, {}


def _matrices(record, op, attributes, operand):
    def word(at, name):
        if attributes.get(name):
            return "TRANSPOSE"
        return "VECTOR" if at < len(record.inputs) and len(record.inputs[at].shape) == 1 else "NONE"

    return {"op0": _member("MatrixOperation", word(0, "transA"), "NONE"), "op1": _member("MatrixOperation", word(1, "transB"), "NONE")}, {}


def _scale(record, op, attributes, operand):
    import numpy as np

    arrays = [operand(at) for at in range(1, 5)]
    if any(array is None for array in arrays):
        return {}, {}
    gamma, beta, mean, variance = (array.astype(np.float32) for array in arrays)
    scale = gamma / np.sqrt(variance + np.float32(attributes.get("epsilon", 1e-5)))
    return ({"mode": _member("ScaleMode", "CHANNEL", "UNIFORM"), "channel_axis": 1},
            {"SCALE": weights_of(scale), "SHIFT": weights_of(beta - mean * scale)})


def _cast(record, op, attributes, operand):
    return {"to_type": record.outputs[0].dtype}, {}


def _quantize(record, op, attributes, operand):
    block = attributes.get("block_size", 0)
    rank = len(record.inputs[0].shape)
    axis = attributes.get("axis", 1)
    shape = tuple(block if at == axis % rank else 1 for at in range(rank)) if block and rank else ()
    return {**_cast(record, op, attributes, operand)[0], "axis": axis, "block_shape": shape}, {}


def _numbers(array):
    return None if array is None else [int(each) for each in array.reshape(-1)]


def _slice(record, op, attributes, operand):
    """What is cut out, as far as the file says it: starts, sizes and steps of all axes."""
    shape, made = tuple(record.inputs[0].shape), tuple(record.outputs[0].shape)
    rank, modes = len(shape), {"edge": "CLAMP", "reflect": "REFLECT", "wrap": "WRAP"}
    if op == "Slice":
        starts, axes, steps = _numbers(operand(1)), _numbers(operand(3)), _numbers(operand(4))
        starts, axes = starts or attributes.get("starts"), axes or attributes.get("axes")
        if starts is None:
            return {}, {}
        start, stride = [0] * rank, [1] * rank
        for at, axis in enumerate(axes or range(len(starts))):
            step = steps[at] if steps else 1
            first = starts[at] + (shape[axis] if starts[at] < 0 <= shape[axis] else 0)
            start[axis] = max(0, min(first, shape[axis] - (step < 0)) if shape[axis] >= 0 else first)
            stride[axis] = step
        return {"start": tuple(start), "shape": made, "stride": tuple(stride), "mode": _member("SampleMode", "STRICT_BOUNDS", "DEFAULT")}, {}
    if op == "Pad":
        pads = _numbers(operand(1)) or attributes.get("pads")
        mode = modes.get(attributes.get("mode", "constant"), "FILL")
        start = tuple(-size for size in pads[:rank]) if pads and len(pads) == 2 * rank else ()
        return {"start": start, "shape": made, "stride": (1,) * rank, "mode": _member("SampleMode", mode, "FILL")}, {}
    if op == "Tile":
        return {"start": (0,) * rank, "shape": made, "stride": (1,) * rank, "mode": _member("SampleMode", "WRAP", "WRAP")}, {}
    if op == "Expand":
        behind = (1,) * (len(made) - rank) + shape
        return {"start": (0,) * len(made), "shape": made, "stride": tuple(0 if size == 1 else 1 for size in behind),
                "mode": _member("SampleMode", "STRICT_BOUNDS", "DEFAULT")}, {}
    return {}, {}


def _resize(record, op, attributes, operand):
    scales = operand(1 if op == "Upsample" else 2)
    how = attributes.get("coordinate_transformation_mode", "asymmetric" if op == "Upsample" else "half_pixel")
    rounding = {"round_prefer_ceil": "HALF_UP", "round_prefer_floor": "HALF_DOWN", "ceil": "CEIL"}.get(attributes.get("nearest_mode"))
    rounding = rounding or ("FLOOR" if op == "Upsample" or attributes.get("nearest_mode") == "floor" else "HALF_DOWN")
    return {"scales": [float(each) for each in scales.reshape(-1)] if scales is not None and scales.size else None,
            "shape": tuple(record.outputs[0].shape),
            "resize_mode": _member("InterpolationMode", attributes.get("mode", "nearest").upper(), "NEAREST"),
            "coordinate_transformation": _member("ResizeCoordinateTransformation", how.upper().replace("PYTORCH_", ""), "HALF_PIXEL"),
            "selector_for_single_pixel": _member("ResizeSelector", "UPPER" if how == "pytorch_half_pixel" else "FORMULA", "FORMULA"),
            "nearest_rounding": _member("ResizeRoundMode", rounding, "FLOOR"),
            "exclude_outside": bool(attributes.get("exclude_outside", 0)), "cubic_coeff": float(attributes.get("cubic_coeff_a", -0.75))}, {}


def _normalization(record, op, attributes, operand):
    rank = len(record.inputs[0].shape)
    first = attributes.get("axis", -1) % rank if op in ("LayerNormalization", "RMSNormalization") and rank else 2
    return {"epsilon": float(attributes.get("epsilon", 1e-5)), "axes": sum(1 << axis for axis in range(first, rank)),
            "num_groups": attributes.get("num_groups", 1)}, {}


def _fill(record, op, attributes, operand):
    made = {"shape": tuple(record.outputs[0].shape), "to_type": record.outputs[0].dtype}
    if op.startswith("Random"):
        uniform = "Uniform" in op
        return {**made, "operation": _member("FillOperation", "RANDOM_UNIFORM" if uniform else "RANDOM_NORMAL", "LINSPACE"),
                "alpha": float(attributes.get("low" if uniform else "mean", 0.0)),
                "beta": float(attributes.get("high" if uniform else "scale", 1.0))}, {}
    numbers = {"alpha": operand(0), "beta": operand(2)} if op == "Range" else {}
    return {**made, "operation": _member("FillOperation", "LINSPACE", "LINSPACE"),
            **{name: array.reshape(-1)[0].item() for name, array in numbers.items() if array is not None}}, {}


def _grid_sample(record, op, attributes, operand):
    mode = {"bilinear": "LINEAR", "bicubic": "CUBIC"}.get(attributes.get("mode", "linear"), attributes.get("mode", "linear").upper())
    outside = {"border": "CLAMP", "reflection": "REFLECT"}.get(attributes.get("padding_mode", "zeros"), "FILL")
    return {"interpolation_mode": _member("InterpolationMode", mode, "LINEAR"), "align_corners": bool(attributes.get("align_corners", 0)),
            "sample_mode": _member("SampleMode", outside, "FILL")}, {}


_READ = {
    "CONVOLUTION": _convolution, "DECONVOLUTION": _convolution, "POOLING": _pooling, "ACTIVATION": _activation, "REDUCE": _reduce,
    "ELEMENTWISE": lambda record, op, attributes, operand: ({"op": _member("ElementWiseOperation", _ELEMENTWISE.get(op, "SUM"), "SUM")}, {}),
    "UNARY": lambda record, op, attributes, operand: ({"op": _member("UnaryOperation", _UNARY.get(op, op.upper()), "EXP")}, {}),
    "SHUFFLE": _shuffle, "CONCATENATION": _axis, "SCATTER": _axis, "ONE_HOT": _axis, "GATHER": _gather, "SOFTMAX": _softmax, "TOPK": _topk,
    "MATRIX_MULTIPLY": _matrices, "SCALE": _scale, "CAST": _cast,
    "QUANTIZE": _quantize, "DEQUANTIZE": _quantize, "SLICE": _slice, "RESIZE": _resize, "NORMALIZATION": _normalization, "FILL": _fill,
    "GRID_SAMPLE": _grid_sample,
    "CUMULATIVE": lambda record, op, attributes, operand: ({"exclusive": bool(attributes.get("exclusive", 0)),
                                                            "reverse": bool(attributes.get("reverse", 0))}, {}),
    "REVERSE_SEQUENCE": lambda record, op, attributes, operand: ({"batch_axis": attributes.get("batch_axis", 1),
                                                                  "sequence_axis": attributes.get("time_axis", 0)}, {}),
    "NMS": lambda record, op, attributes, operand: ({"bounding_box_format": _member(
        "BoundingBoxFormat", "CENTER_SIZES" if attributes.get("center_point_box") else "CORNER_PAIRS", "CORNER_PAIRS")}, {}),
    "ROTARY_EMBEDDING": lambda record, op, attributes, operand: ({"interleaved": bool(attributes.get("interleaved", 0)),
                                                                  "rotary_embedding_dim": attributes.get("rotary_embedding_dim", 0)}, {}),
    "EINSUM": lambda record, op, attributes, operand: ({"equation": attributes.get("equation", "")}, {}),
    "LRN": lambda record, op, attributes, operand: ({"window_size": attributes.get("size", 0), "alpha": attributes.get("alpha", 1e-4),
                                                     "beta": attributes.get("beta", 0.75), "k": attributes.get("bias", 1.0)}, {}),
}

# Operators whose parameters say all that the node does, and attributes that no parameter has.
_WHOLE = """Conv ConvTranspose MaxPool AveragePool Relu Sigmoid Tanh LeakyRelu Elu Softsign Clip Add Mul Sub Div Pow Max Min And Or Xor Equal Greater
    Less Exp Log Sqrt Reciprocal Abs Neg Ceil Floor Erf Not Sign Round ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean Transpose Concat
    MatMul""".split()
_BEYOND = ("output_padding", "output_shape", "dilations", "storage_order", "noop_with_empty_axes")


def can_change(record):
    """Whether a parsed layer can be lowered of its parameters."""
    node = record.node
    beyond = [name for name, value in node.attributes().items() if name in _BEYOND and not (name == "dilations" and node.op.startswith("Conv"))
              and value not in (0, [1] * 3, [1] * 2, [1])]
    return node.op in _WHOLE and node.domain == "" and not beyond and len(record.outputs) == 1 and len(node.inputs) <= 3
