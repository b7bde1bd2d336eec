# SPDX-License-Identifier: Apache-2.0
"""Plugins as layers: those that a program adds to a network, and nodes of ONNX models that are called like one.

A node becomes a call of a function that is put into the model; so the parser, the types of tensors and the build all see it as one node
that has a meaning.
"""

import struct

import numpy as np

from .._base import enums, onnx
from .._base.elements import type_of_element
from .operators import DOMAIN, Refused, cuts_of, operator_of, plugin_of
from .registry import get_plugin_registry

OPSET = 18  # that functions are written in
_ADDED = {"plugin_version", "plugin_namespace"}  # attributes that say which plugin, and are none of its parameters


class _Writer:
    """Writes the nodes of a function, as to_onnx's emitter does for a layer's."""

    def __init__(self, node, rank):
        self._node, self._rank, self.nodes, self._count = node, rank, [], 0

    def fail(self, why):
        raise ValueError(f"{self._node.op}: {why}")

    def has(self, at):
        return at < len(self._node.inputs) and bool(self._node.inputs[at])

    def input(self, at):
        return f"x{at}"

    def out(self, at=0):
        return f"y{at}"

    def rank(self, at):
        return self._rank(self._node.inputs[at])

    def fresh(self):
        self._count += 1
        return f"t{self._count}"

    def node(self, op, inputs, output=None, domain="", **attributes):
        output = self.fresh() if output is None else output
        outputs = [output] if isinstance(output, str) else list(output)
        self.nodes.append(onnx.Node(op, inputs, outputs, f"{op}_{len(self.nodes)}", domain, **attributes))
        return outputs[0]

    def constant(self, values, dtype=None):
        return self.node("Constant", [], value=np.asarray(values, dtype))

    def ints(self, values):
        return self.constant(values, np.int64)


def _shapes(model):
    """What the model's graph says of its tensors' sizes, by name; -1 for those that may change."""
    infos = [*model.graph.inputs, *map(onnx.Info.read, model.graph.infos)]
    known = {info.name: [size if isinstance(size, int) else -1 for size in info.shape] for info in infos if info.shape is not None}
    return {**known, **{name: list(tensor.shape) for name, tensor in model.graph.tensors.items()}}


def _ranks(model):
    """Dimensions of the model's tensors by name; 3 where the graph says nothing."""
    known = _shapes(model)
    return lambda name: len(known[name]) if name in known else 3


def creator_of(node, attributes):
    """The creator that a node of a model is called like; None."""
    version = attributes.get("plugin_version", b"1")
    version = version.decode() if isinstance(version, bytes) else str(version)
    namespace = attributes.get("plugin_namespace", b"")
    namespace = namespace.decode() if isinstance(namespace, bytes) else str(namespace)
    return get_plugin_registry().get_creator(node.op, version, namespace)


def _is_plugin(node):
    """Whether a node may be one: ScatterND without a domain is ONNX's own."""
    return node.domain not in ("", "com.microsoft", "ai.onnx.ml") or node.op.endswith("_TRT")


def prepare(model):
    """Gives nodes that are called like plugins of TensorRT's their meaning, in place."""
    rank = None
    for node in model.graph.nodes:
        if not _is_plugin(node):
            continue
        try:
            attributes = node.attributes()
            creator = creator_of(node, attributes)
            if creator is None:
                continue
            if not hasattr(creator, "lower"):
                _as_operator(model, node, creator, attributes)
                continue
            rank = rank or _ranks(model)
        except (ValueError, TypeError, AttributeError, struct.error):
            continue  # what is malformed, the parser says
        writer = _Writer(node, rank)
        parameters = {name: value for name, value in attributes.items() if name not in _ADDED}
        try:
            creator.lower(writer, creator.of(node.name, parameters)._parameters)
        except (ValueError, TypeError, KeyError):
            continue  # the parser says that nobody has the operator
        kind = f"{node.op}_{len(model.functions)}"
        inputs, outputs = [f"x{at}" for at in range(len(node.inputs))], [f"y{at}" for at in range(creator.outputs)]
        model.functions.append(onnx.function(kind, DOMAIN, inputs, outputs[:len(node.outputs)], writer.nodes, OPSET))
        model.opsets[DOMAIN] = 1
        node.op, node.domain, node.raw_attributes = kind, DOMAIN, []


def _as_operator(model, node, creator, attributes):
    """A node that a program's own creator has a plugin for. Inputs whose type the file does not say are taken for FLOAT."""
    elements = {info.name: info.element for info in [*model.graph.inputs, *map(onnx.Info.read, model.graph.infos)]}
    elements.update({name: tensor.element for name, tensor in model.graph.tensors.items()})
    types = [type_of_element(elements.get(name)) or enums.DataType.FLOAT for name in node.inputs]
    shapes, rank = _shapes(model), _ranks(model)
    try:
        operator, _ = operator_of(plugin_of(creator, node.name, attributes), types,
                                  [shapes[name] for name in node.inputs] if all(name in shapes for name in node.inputs) else None)
        if cuts_of(operator, [(2,) * rank(name) for name in node.inputs]):
            raise Refused("a plugin whose data decide sizes is a layer (add_plugin_v3), no node of a model")
    except Refused:
        return  # the parser says that nobody has the operator
    model.opsets[DOMAIN] = 1
    node.op, node.domain, node.raw_attributes = operator, DOMAIN, []


def add_plugin_layer(network, kind, inputs, plugin):
    """A layer of a plugin; None with the reason in the log."""
    for tensor in inputs:
        network._own(tensor, "add_plugin")
    if hasattr(getattr(plugin, "_creator", None), "lower"):
        return network._add(kind, inputs, plugin.num_outputs, plugin=plugin)
    shapes = [tuple(tensor.shape) for tensor in inputs]
    try:
        operator, outputs = operator_of(plugin, [tensor.dtype for tensor in inputs], shapes)
        cuts = cuts_of(operator, shapes)
    except Refused as error:
        return network._failed(str(error))
    return network._add(kind, inputs, outputs, plugin=plugin, operator=operator, cuts=cuts)


def _lower(e, record):
    plugin, operator = e.param("plugin"), e.param("operator")
    if operator is None:
        plugin._creator.lower(e, plugin._parameters)
        return
    cuts = e.param("cuts") or {}
    raw = [e.fresh() if at in cuts else e.out(at) for at in range(len(record.outputs))]
    e.node(operator, [e.input(at) for at in range(len(record.inputs))], raw, DOMAIN)
    for at, said in cuts.items():
        _cut(e, raw, at, said)


def _cut(e, raw, at, said):
    """The beginning of an output's memory, in the sizes that other outputs say: a plugin writes it without gaps."""
    shape = e.node("Shape", [raw[at]])
    parts = [e.node("Slice", [shape, e.ints([axis]), e.ints([axis + 1])]) if output is None else
             e.node("Reshape", [e.cast(raw[output], onnx.INT64), e.ints([1])]) for axis, output in enumerate(said)]
    sizes = e.node("Concat", parts, axis=0)
    total = e.node("ReduceProd", [sizes, e.ints([0])], keepdims=1)
    flat = e.node("Slice", [e.node("Reshape", [raw[at], e.ints([-1])]), e.ints([0]), total])
    e.node("Reshape", [flat, sizes], e.out(at), allowzero=1)


LOWER = {"PLUGIN_V2": _lower, "PLUGIN_V3": _lower}
