# SPDX-License-Identifier: Apache-2.0
"""Which tensors are shape tensors: small integers whose values feed a shape. It takes the whole network to know.

From each operand that says sizes the way goes back to what it is computed of, until a Shape layer or something that is no small tensor of
integers. What a Shape layer makes counts as well.
"""

from .._base import onnx
from .._parser.kinds import KINDS

# Operands that say sizes, of layers made by add_* and of ONNX's nodes.
_OF_LAYERS = {"SHUFFLE": (1,), "SLICE": (1, 2, 3, 5), "RESIZE": (1,), "FILL": (0,), "TOPK": (1,), "ONE_HOT": (2,), "SQUEEZE": (1,),
              "UNSQUEEZE": (1,), "TRIP_LIMIT": (0,), "LOOP_OUTPUT": (1,)}
_OF_NODES = {"Reshape": (1,), "Slice": (1, 2, 3, 4), "Expand": (1,), "Tile": (1,), "ConstantOfShape": (0,), "Range": (0, 1, 2),
             "Resize": (2, 3), "Upsample": (1,), "Pad": (1, 3), "TopK": (1,), "Squeeze": (1,), "Unsqueeze": (1,), "Split": (1,),
             "OneHot": (1,), "CenterCropPad": (1,), "AffineGrid": (1,), "Loop": (0,),
             **dict.fromkeys(KINDS["REDUCE"].split(), (1,))}


def may_decide_sizes(tensor):
    """Whether the contents may: integers, or a few reals as factors, of rank 0 or 1."""
    return (tensor._element in (onnx.INT32, onnx.INT64, onnx.BOOL, onnx.FLOAT) and tensor._sizes is not None and len(tensor._sizes) < 2
            and (not tensor._sizes or 0 <= tensor._sizes[0] <= 64))


def operands(record):
    """The tensors among a layer's inputs that say sizes."""
    if record.node is not None:
        at = _OF_NODES.get(record.node.op, ()) if record.node.domain == "" else ()
        return [each for place, each in enumerate(record.operands) if place in at and each is not None and not isinstance(each, str)]
    at = _OF_LAYERS.get(record.kind, ())
    if record.kind == "TRIP_LIMIT" and record.params["kind"].name != "COUNT":
        at = ()
    return [each for place, each in enumerate(record.inputs) if place in at and each is not None]


def of(network):
    """(shape tensors, those of them that no layer computes with)."""
    if network._shape_tensors is not None:
        return network._shape_tensors
    network._type_everything()
    found, waiting, sizes_of = set(), list(network._shape_outputs), set()
    for record in network._records:
        for tensor in operands(record):
            waiting.append(tensor)
        if record.kind == "SHAPE":
            found.update(record.outputs)
    while waiting:
        tensor = waiting.pop()
        if tensor in found and tensor in sizes_of or not may_decide_sizes(tensor):
            continue
        found.add(tensor)
        sizes_of.add(tensor)
        if tensor._record is not None and tensor._record.kind != "SHAPE":
            waiting += [each for each in tensor._record.inputs if each is not None]
    computed = set()
    for record in network._records:
        if not any(tensor in found for tensor in record.outputs):
            says = set(operands(record))
            computed.update(tensor for tensor in record.inputs if tensor is not None and tensor not in says)
    computed.update(tensor for tensor in network._outputs if tensor not in network._shape_outputs)
    network._shape_tensors = found, found - computed
    return network._shape_tensors
