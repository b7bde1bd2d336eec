# SPDX-License-Identifier: Apache-2.0
"""What an engine's notes say of what is decided before it runs: outputs whose sizes follow from sizes and shape tensors, assertions that do,
and outputs that may lie in an input's memory."""

from .._lowering import to_onnx
from .._network import shape_tensors

# Layers whose data decide how large their outputs are.
_LAYERS = ("NON_ZERO", "NMS", "PLUGIN", "PLUGIN_V2", "PLUGIN_V3")
_NODES = ("NonZero", "NonMaxSuppression", "Unique", "Compress", "Loop", "Scan", "If", "SequenceAt", "ConcatFromSequence", "StringSplit")


def _behind(tensors, ends=()):
    """All layers before these tensors; those of the kinds `ends` close the way."""
    found, waiting = set(), list(tensors)
    while waiting:
        tensor = waiting.pop()
        record = None if tensor is None else tensor._record
        if record is not None and record not in found:
            found.add(record)
            waiting += () if record.kind in ends else record.inputs
    return found


def _by_data(records):
    return any(record.kind in _LAYERS or record.node is not None and (record.node.op in _NODES or record.node.domain) for record in records)


def _of_sizes(tensor):
    """Whether a value follows from sizes and shape tensors."""
    found = _behind([tensor], ("SHAPE",))
    sources = [each for record in found if record.kind != "SHAPE" for each in record.inputs if each is not None] + [tensor]
    return not _by_data(_behind([tensor])) and all(each._record is not None or each.is_shape_tensor for each in sources)


def _sized_by_shapes(tensor):
    """Whether the sizes of a tensor follow from sizes and shape tensors."""
    found = _behind([tensor])
    return not _by_data(found) and all(_of_sizes(says) for record in found for says in shape_tensors.operands(record))


def assertions(network):
    """{output: (message, condition)} of those that the engine checks."""
    return {f"{to_onnx.PREFIX}{record.name}": (record.known().get("message", ""), record.inputs[0])
            for record in to_onnx.Lowering(network, asserted=True)._assertions()}


# Which input says an output's sizes, one for one.
_SAYS = {"SHUFFLE": 1, "SLICE": 2, "FILL": 0, "RESIZE": 1}


def _shaped_by(tensor):
    """The shape tensor, an input of the network, whose contents are the sizes of an output; None."""
    record = tensor._record
    if record is None or record.node is not None or record.known().get("second_transpose") is not None:
        return None
    at = _SAYS.get(record.kind, len(record.inputs))
    source = record.inputs[at] if at < len(record.inputs) else None
    return source if source is not None and source._record is None else None


def note(network, inputs, outputs):
    """The entries of the note that there are."""
    checked = assertions(network)
    found = {"assertions": {name: message for name, (message, _) in checked.items()},
             "checked_by_shapes": [name for name, (_, condition) in checked.items() if _of_sizes(condition)],
             "decided_by_shapes": [tensor.name for tensor in outputs if _sized_by_shapes(tensor)]
             if any(tensor.is_shape_tensor or -1 in tuple(tensor.shape) for tensor in inputs) else [],
             "shaped_by": {tensor.name: _shaped_by(tensor)._name for tensor in outputs if _shaped_by(tensor) is not None},
             "aliased": {tensor.name: tensor._record.inputs[0]._name for tensor in outputs
                         if tensor._record is not None and tensor._record.kind == "KV_CACHE_UPDATE"}}
    return {key: value for key, value in found.items() if value}
