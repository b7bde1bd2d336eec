# SPDX-License-Identifier: Apache-2.0
"""Quantising layers in ONNX's words: with a scale for the tensor, for each entry of an axis or for each block, and with scales that are found
as the network runs. ONNX has blocks along one axis; blocks of several are scales that are spread over the tensor."""

from .._base import onnx
from .._base.elements import element_of_type

_REALS = (onnx.FLOAT, onnx.FLOAT16, onnx.BFLOAT16)
_LARGEST = {"FP8": 448.0, "FP4": 6.0, "INT8": 127.0, "INT4": 7.0}  # what stands for the largest value of a block


def blocks_of(e, rank, sizes):
    """The layer's block of each axis, 1 where it has none; None without blocks."""
    blocks = list(e.param("block_shape") or ())
    if not blocks:
        return None
    if len(blocks) != rank:
        e.fail(f"block_shape has {len(blocks)} entries, the tensor has {rank} dimensions")
    return [size if block == -1 else block for block, size in zip(blocks, sizes)]


def spread(e, name, blocks):
    """Each entry of a tensor as often as the blocks say."""
    shape = e.node("Shape", [name])
    for axis in reversed(range(len(blocks))):
        if blocks[axis] == 1:
            continue
        wide = e.node("Unsqueeze", [name, e.ints([axis + 1])])
        times = [1] * (len(blocks) + 1)
        times[axis + 1] = blocks[axis]
        name = e.node("Expand", [wide, e.ints(times)])
        target = e.node("Mul", [shape, e.ints([block if at >= axis else 1 for at, block in enumerate(blocks)])])
        name = e.node("Reshape", [name, target])
    return name


def _axis(e):
    return e.param("axis", -1) if e.rank(1) else None


def _zero(e, at):
    """The zero point; one in reals is 0, as the interface says."""
    return [e.input(at)] if e.has(at) and e.element(at) not in _REALS else []


def rounded(e, x, element, output=None):
    """Reals as the nearest numbers of a type."""
    return e.node("QuantizeLinear", [x, e.scalar(1.0, onnx.FLOAT)], output, output_dtype=element)


def _float(e, name, element):
    return name if element == onnx.FLOAT else e.cast(name, onnx.FLOAT)


def _quantize(e, r):
    element = element_of_type(r.types.get(0) or e.param("to_type"))
    blocks = blocks_of(e, e.rank(0), e.sizes(0))
    zero = _zero(e, 2)
    if blocks is None:
        e.node("QuantizeLinear", [e.input(0), e.input(1), *zero], e.out(), axis=_axis(e), output_dtype=None if zero else element)
        return
    scale = spread(e, _float(e, e.input(1), e.element(1)), blocks)
    rounded(e, e.node("Div", [_float(e, e.input(0), e.element(0)), scale]), element, e.out())


def _dequantize(e, r):
    element = element_of_type(r.types.get(0) or e.param("to_type"))
    blocks = blocks_of(e, e.rank(0), e.sizes(0))
    if blocks is None:
        made = e.node("DequantizeLinear", [e.input(0), e.input(1), *_zero(e, 2)], axis=_axis(e))
        e.node("Identity", [made], e.out()) if element == e.element(1) else e.cast(made, element, e.out())
        return
    values = e.node("Mul", [e.cast(e.input(0), onnx.FLOAT), spread(e, _float(e, e.input(1), e.element(1)), blocks)])
    e.node("Identity", [values], e.out()) if element == onnx.FLOAT else e.cast(values, element, e.out())


def _divided(e, name, sizes, blocks):
    """(the tensor with each blocked axis as two, where the second ones are)."""
    shape, parts, inner = e.node("Shape", [name]), [], []
    for axis, block in enumerate(blocks):
        if sizes[axis] > 0 and sizes[axis] % block:
            e.fail(f"axis {axis} has {sizes[axis]} entries, which is no multiple of the block's {block}")
        size = e.node("Slice", [shape, e.ints([axis]), e.ints([axis + 1])]) if sizes[axis] < 0 else e.ints([sizes[axis]])
        if block == 1:
            parts.append(size)
            continue
        parts += [e.node("Div", [size, e.ints([block])]), e.ints([block])] if sizes[axis] < 0 else [e.ints([sizes[axis] // block]), e.ints([block])]
        inner.append(len(parts) - 1)
    return e.node("Reshape", [name, e.node("Concat", parts, axis=0)]), inner


def scales_of_blocks(e, x, sizes, blocks, largest, kind, second):
    """(scales as they are told, what values are multiplied by) of blocks of x, f32."""
    wide, inner = _divided(e, x, sizes, blocks)
    most = e.node("ReduceMax", [e.node("Abs", [wide]), e.ints(inner)], keepdims=0)
    scale = e.node("Div", [most, e.scalar(largest, onnx.FLOAT)])
    if kind == onnx.FLOAT:
        return scale, _inverse(e, e.node("Div", [e.scalar(largest, onnx.FLOAT), most]), most)
    if kind == onnx.FLOAT8E8M0:  # the next power of two
        power = e.node("Ceil", [e.node("Div", [e.node("Log", [e.node("Max", [scale, e.scalar(2.0 ** -127, onnx.FLOAT)])]),
                                               e.scalar(0.6931471805599453, onnx.FLOAT)])])
        scale = e.node("Pow", [e.scalar(2.0, onnx.FLOAT), power])
        return e.cast(scale, kind), _inverse(e, e.node("Reciprocal", [scale]), scale)
    if second is not None:
        scale = e.node("Div", [scale, second])
    told = rounded(e, scale, kind)
    real = e.cast(told, onnx.FLOAT)
    real = real if second is None else e.node("Mul", [real, second])
    return told, _inverse(e, e.node("Reciprocal", [real]), real)


def _inverse(e, inverse, of):
    """1 where it would be infinite: nothing but zeros is multiplied by it."""
    return e.node("Where", [e.node("Equal", [of, e.scalar(0.0, onnx.FLOAT)]), e.scalar(1.0, onnx.FLOAT), inverse])


def _dynamic_quantize(e, r):
    """Values divided by what makes the largest of each block the type's largest, and those scales."""
    sizes, rank = e.sizes(0), e.rank(0)
    blocks = blocks_of(e, rank, sizes)
    if blocks is None:
        axis = e.param("axis", -1)
        blocks = [e.param("block_size", 16) if at == axis % rank else 1 for at in range(rank)]
    if any(block < 1 for block in blocks):
        e.fail(f"its blocks are {blocks}; they have sizes that are known and greater than 0")
    kind = element_of_type(e.param("to_type"))
    x = _float(e, e.input(0), e.element(0))
    second = e.node("Reshape", [_float(e, e.input(1), e.element(1)), e.ints([])]) if e.has(1) else None
    told, factor = scales_of_blocks(e, x, sizes, blocks, _LARGEST[e.param("to_type").name], element_of_type(e.param("scale_type")), second)
    rounded(e, e.node("Mul", [x, spread(e, factor, blocks)]), kind, e.out(0))
    e.node("Identity", [told], e.out(1))


def through(e, name, element, scale, kind):
    """Reals of a type, rounded to what a quantised type with this scale holds. The scale broadcasts."""
    x = _float(e, name, element)
    real = e.cast(rounded(e, e.node("Div", [x, scale]), kind), onnx.FLOAT)
    made = e.node("Mul", [real, scale])
    return made if element == onnx.FLOAT else e.cast(made, element)


LOWER = {"QUANTIZE": _quantize, "DEQUANTIZE": _dequantize, "DYNAMIC_QUANTIZE": _dynamic_quantize}
