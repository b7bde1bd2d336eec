# SPDX-License-Identifier: Apache-2.0
"""What types and sizes the tensors of a network have: Hone is asked, so that the answer is the engine's.

Layers of a file are asked together: all their outputs as outputs of one model. A layer made by add_* is asked alone, over inputs of the
types that are known by now; small tensors of integers, whose contents decide sizes, come with the layers that make them.
"""

import hone

from .._base import native, onnx
from .._base.elements import HONE, element_of_type, type_of_element
from .._lowering import flow, to_onnx
from . import shape_tensors


def _asked(nodes, tensors, inputs, outputs, network, functions=()):
    """{name: (element, sizes)} of the outputs; raises hone.Error."""
    graph = onnx.Graph("types")
    graph.nodes, graph.tensors, graph.inputs = nodes, tensors, inputs
    graph.outputs = [onnx.Info(name) for name in outputs]
    model = onnx.Model(graph, to_onnx.OPSET)
    source = network._source
    if source is not None:
        model.ir, model.functions = source.ir, [*source.functions, *functions]
        model.opsets = {**source.opsets, **({to_onnx.DOMAIN: 1} if functions else {})}
        model.opsets.setdefault("", to_onnx.OPSET)
    read = hone.Model.parse(model.bytes(), network._folder)
    found = {name: (HONE[kind], list(sizes)) for name, kind, is_input, sizes, *_ in read.handle.tensors() if not is_input}
    read.close()
    return found


def type_all(network):
    """Types of all layers that have none yet."""
    order = [record for record in flow.sort(network._records) if not record.typed]
    parsed = [record for record in order if record.node is not None and not record.edited]
    if len(parsed) > 1:
        _type_together(network, parsed)
    for record in order:
        if not record.typed:
            _type_alone(network, record)


def _boundary(tensor):
    """A tensor that is known by now as an input of the model that is asked."""
    shape = None if tensor._sizes is None else [None if size < 0 else size for size in tensor._sizes]
    return onnx.Info(tensor._name, tensor._element, shape)


def _give(record, found, names):
    for tensor in record.outputs:
        if names[tensor] in found:
            tensor._element, tensor._sizes = found[names[tensor]]
        elif type(tensor._element) is not int:
            tensor._element, tensor._sizes = None, None
    record.typed, record.failure = True, None


def _type_together(network, records):
    names, made, inputs, tensors, nodes = network._names(), set(), {}, {}, []
    for record in records:
        for tensor in record.inputs:
            if tensor is not None and tensor not in made and tensor not in inputs:
                if tensor._element is None:
                    return  # made by a layer that is not typed yet
                if shape_tensors.may_decide_sizes(tensor) and tensor._record is not None:
                    return
                inputs[tensor] = _boundary(tensor)
        made.update(record.outputs)
        nodes += to_onnx.parsed_nodes(record, names)
        _file_weights(network, record, tensors)
    outputs = [names[tensor] for record in records for tensor in record.outputs]
    try:
        found = _asked(nodes, tensors, list(inputs.values()), outputs, network)
    except hone.Error:
        return  # one by one: the layer that is wrong says so
    for record in records:
        _give(record, found, names)


def _file_weights(network, record, tensors):
    for name in [each for each in record.operands if isinstance(each, str)] + list(record.params.get("captured_weights", ())):
        if name in network._file_weights:
            tensors[name] = network._file_weights[name]


def _cone(tensors):
    """The layers that make small tensors of integers, and the tensors at which their cone ends."""
    records, ends, waiting = {}, {}, list(tensors)
    while waiting:
        tensor = waiting.pop()
        record = tensor._record
        if record is None or record in records:
            if record is None:
                ends[tensor] = True
            continue
        if not shape_tensors.may_decide_sizes(tensor) or record.owner is not None or record.failure:
            ends[tensor] = True
            continue
        records[record] = True
        waiting += flow.reads(record)
    for record in records:
        for tensor in record.outputs:
            ends.pop(tensor, None)
    return list(records), list(ends)


def _type_alone(network, record):
    if not record.outputs:
        record.typed, record.failure = True, None
        return
    operands = flow.reads(record)
    missing = [tensor for tensor in operands if tensor._element is None]
    if missing:
        return _failed(network, record, f"the type of its input {missing[0]._name} is not known", quiet=True)
    if record.kind == "CONSTANT" and record.node is None:
        held = record.weights["CONSTANT"]
        record.outputs[0]._element, record.outputs[0]._sizes = element_of_type(held.dtype), list(record.params["shape"])
        record.typed, record.failure = True, None
        return
    names = network._names()
    try:
        nodes, tensors, functions, inputs = [], {}, [], {}
        cone, ends = _cone(operands)
        chosen = sorted(cone, key=network._position) + [record]
        made = {tensor for each in chosen for tensor in each.outputs}
        for tensor in ends + [each for one in chosen for each in flow.reads(one)]:
            if tensor not in made:
                inputs[tensor] = _boundary(tensor)
        for each in chosen:
            nodes += _nodes_of(network, each, names, tensors, functions)
        found = _asked(nodes, tensors, list(inputs.values()), [names[tensor] for tensor in record.outputs], network, functions)
    except hone.Error as error:
        return _failed(network, record, native.text_of(error))
    except to_onnx.CannotLower as error:
        return _failed(network, record, str(error))
    _give(record, found, names)


def _nodes_of(network, record, names, tensors, functions):
    if record.node is not None and not record.edited:
        _file_weights(network, record, tensors)
        return to_onnx.parsed_nodes(record, names)
    if record.kind in flow.FLAT:
        emitter = to_onnx.Emitter(names, record)
        flow.FLAT[record.kind](emitter, record)
    else:
        emitter = to_onnx.emitted(record, names)
    tensors.update(emitter.tensors)
    source = network._source
    if source is None or source.opsets.get("", to_onnx.OPSET) == to_onnx.OPSET or not emitter.nodes:
        return emitter.nodes
    body = onnx.Graph()
    body.nodes = emitter.nodes
    inputs, outputs, kind = body.free_names(), [names[tensor] for tensor in record.outputs], f"typed_{len(functions)}"
    functions.append(onnx.function(kind, to_onnx.DOMAIN, inputs, outputs, emitter.nodes, to_onnx.OPSET))
    return [onnx.Node(kind, inputs, outputs, record.name, to_onnx.DOMAIN)]


def _failed(network, record, text, quiet=False):
    for tensor in record.outputs:
        tensor._element, tensor._sizes = None, None
    record.typed, record.failure = True, text
    if not quiet:
        network._failed(f"{record.name}: {text}" if not text.startswith(record.name) else text)


def visible(element):
    """TensorRT's type of a tensor; FLOAT where it is not known."""
    return type_of_element(element) or type_of_element(onnx.FLOAT)
