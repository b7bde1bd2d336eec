# SPDX-License-Identifier: Apache-2.0
"""Plugins as layers: those that a program adds to a network, and nodes of ONNX models that are called like one.

A node becomes a call of a function that is put into the model; so the parser, the types of tensors and the build all see it as one node
that has a meaning.
"""

import struct

import numpy as np

from . import _onnx
from ._plugins import get_plugin_registry

DOMAIN = "hone.plugins"
OPSET = 18  # that functions are written in
_ADDED = {"plugin_version", "plugin_namespace"}  # attributes that say which plugin, and are none of its parameters


class _Writer:
    """Writes the nodes of a function, as _to_onnx's emitter does for a layer's."""

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
        self.nodes.append(_onnx.Node(op, inputs, outputs, f"{op}_{len(self.nodes)}", domain, **attributes))
        return outputs[0]

    def constant(self, values, dtype=None):
        return self.node("Constant", [], value=np.asarray(values, dtype))

    def ints(self, values):
        return self.constant(values, np.int64)


def _ranks(model):
    """Dimensions of what the model's graph says of its tensors; 3 where it says nothing."""
    infos = [*model.graph.inputs, *map(_onnx.Info.read, model.graph.infos)]
    known = {info.name: len(info.shape) for info in infos if info.shape is not None}
    return lambda name: known.get(name, 3)


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
            if not hasattr(creator, "lower"):
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
        model.functions.append(_onnx.function(kind, DOMAIN, inputs, outputs[:len(node.outputs)], writer.nodes, OPSET))
        model.opsets[DOMAIN] = 1
        node.op, node.domain, node.raw_attributes = kind, DOMAIN, []


def add_plugin_layer(network, kind, inputs, plugin):
    """A layer of a plugin; None with the reason in the log."""
    lower = getattr(getattr(plugin, "_creator", None), "lower", None)
    if lower is None:
        return network._failed(f"{type(plugin).__name__} is no plugin of a creator of TensorRT's own (get_plugin_registry()); plugins of a "
                               "program's cannot be added yet", code="UNSUPPORTED_STATE")
    return network._add(kind, inputs, plugin.num_outputs, plugin=plugin)


def _lower(e, record):
    plugin = e.param("plugin")
    plugin._creator.lower(e, plugin._parameters)


LOWER = {"PLUGIN_V2": _lower, "PLUGIN_V3": _lower}
