# SPDX-License-Identifier: Apache-2.0
"""A network as one ONNX model, which is what Hone builds engines of.

Layers that the parser made keep their ONNX node. Layers made by add_* become nodes of their own (layers*.py); where the file has
another version of ONNX's operators than they are written in, they go into a function of the model, which has its own version. Inputs and
outputs whose type the program chose are cast at the edge.
"""

import dataclasses

import hone
import numpy as np

from .._base import onnx
from .._base.elements import element_of_type
from .._parser import parsed
from .._plugins import layers as plugin_layers
from . import flow, layers, layers_more, quantised, recurrent, transformers

OPSET = 24  # that layers made by add_* are written in
DOMAIN = "hone.layers"
PREFIX = "hone.assertion/"  # of the outputs that are conditions of assertions
LOWER = {**layers.LOWER, **layers_more.LOWER, **quantised.LOWER, **transformers.LOWER, **recurrent.LOWER, **plugin_layers.LOWER}


class CannotLower(hone.Error):
    """A layer has no meaning as it stands; the text says which and why."""


class Emitter:
    """The nodes of one layer in the making."""

    def __init__(self, names, record, prefix=None):
        """`names`: of tensors, {ITensor: text}."""
        self.names, self.record, self.prefix = names, record, record.name if prefix is None else prefix
        self.nodes, self.tensors, self.count = [], {}, 0
        self.types = {}  # elements of tensors that are not the network's

    def fail(self, why):
        raise CannotLower(f"{self.record.name}: {why}")

    # -- what the layer reads and makes --

    def has(self, at):
        return at < len(self.record.inputs) and self.record.inputs[at] is not None

    def input(self, at):
        if not self.has(at):
            self.fail(f"input {at} is missing")
        return self.names[self.record.inputs[at]]

    def element(self, at):
        """ONNX's number of an input's type."""
        self.input(at)
        return self.record.inputs[at]._element

    def sizes(self, at):
        """An input's sizes, -1 for dynamic ones."""
        self.input(at)
        sizes = self.record.inputs[at]._sizes
        if sizes is None:
            self.fail(f"the sizes of {self.record.inputs[at]._name} are not known")
        return list(sizes)

    def rank(self, at):
        return len(self.sizes(at))

    def out(self, at=0):
        return self.names[self.record.outputs[at]]

    def param(self, name, default=None):
        value = self.record.known().get(name, default)
        return default if value is None else value

    def contents(self, at):
        """The numbers of an input that is a constant; None."""
        self.input(at)
        record = self.record.inputs[at]._record
        if record is None or record.kind != "CONSTANT":
            return None
        record.known()
        return record.weights["CONSTANT"]._flat()

    # -- nodes --

    def fresh(self):
        self.count += 1
        return f"{self.prefix}/{self.count}"

    def node(self, op, inputs, output=None, domain="", **attributes):
        """An operator with one output, whose name it returns."""
        output = self.fresh() if output is None else output
        outputs = [output] if isinstance(output, str) else list(output)
        self.nodes.append(onnx.Node(op, inputs, outputs, f"{self.prefix}/{op}_{len(self.nodes)}", domain, **attributes))
        return outputs[0]

    def constant(self, values, dtype=None):
        """Numbers that belong to the layer's meaning."""
        return self.node("Constant", [], value=np.asarray(values, dtype))

    def scalar(self, value, element):
        """One number of an ONNX type."""
        kind = onnx.numpy_of(element)
        if kind is None:
            return self.node("Cast", [self.constant(value, np.float32)], to=element)
        whole = np.issubdtype(kind, np.integer)
        if whole and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
            self.fail(f"{value} is no number of {kind}")
        with np.errstate(over="ignore"):  # beyond a float's range is infinity
            return self.constant(np.asarray(value).astype(kind))

    def ints(self, values):
        return self.constant(values, np.int64)

    def cast(self, name, element, output=None):
        return self.node("Cast", [name], output, to=element)

    def weights(self, role, shape=None, element=None):
        """The name of the layer's weights of a role, as a tensor of the model; None where there are none."""
        self.record.known()
        held = self.record.weights.get(role)
        if held is None or not len(held):
            return None
        name = self.record.network._weights_name(self.record, role)
        if name not in self.tensors:
            count = len(held)
            shape = (count,) if shape is None else tuple(shape)
            if int(np.prod(shape)) != count:
                self.fail(f"the {role.lower()} has {count} numbers, the sizes {shape} need {int(np.prod(shape))}")
            self.tensors[name] = onnx.tensor(name, held._flat(), element_of_type(held.dtype), shape)
        if element is not None and element != element_of_type(held.dtype):
            return self.cast(name, element)
        return name


def emitted(record, names, prefix=None):
    """The nodes of a layer made by add_*."""
    emitter = Emitter(names, record, prefix)
    if record.node is not None and record.kind != "CONSTANT" and not parsed.can_change(record):
        emitter.fail(f"it stands for the ONNX operator {record.node.op}, of which its parameters do not say all; they cannot be changed")
    lower = LOWER.get(record.kind)
    if lower is None:
        emitter.fail(f"Hone has no meaning for a layer of the kind {record.kind}")
    types = record.types if record.kind != "CAST" else {}
    asked = {at: dtype for at, dtype in types.items() if at < len(record.outputs) and _converts(record, at, dtype)}
    if asked:
        finals = {at: names[record.outputs[at]] for at in asked}
        emitter.names = {**names, **{record.outputs[at]: f"{finals[at]}/before_cast" for at in asked}}
    try:
        lower(emitter, record)
    except (TypeError, ValueError, IndexError, KeyError, OverflowError, ZeroDivisionError, MemoryError) as error:  # a program may set anything
        emitter.fail(f"its parameters do not fit its inputs or each other ({type(error).__name__}: {error})")
    for at, dtype in asked.items():
        emitter.cast(emitter.names[record.outputs[at]], element_of_type(dtype), finals[at])
    return emitter


_REALS = ("FLOAT", "HALF", "BF16")


def _converts(record, at, dtype):
    """Whether the type that is asked of an output is a conversion, and no wish about how to compute."""
    if record.kind in ("IDENTITY", "SHAPE", "CONSTANT", "FILL", "TOPK", "NON_ZERO"):
        return record.kind != "CONSTANT"
    return dtype.name not in (*_REALS, "INT8", "FP8")


@dataclasses.dataclass
class LoweredModel:
    """What a build needs to know of a network."""

    data: bytes  # of the ONNX model
    path: str | None  # a file instead of them
    folder: str | None  # where its external data lie
    inputs: list  # ITensor, in order
    outputs: list
    nodes: dict  # {layer: [names or beginnings of names of its nodes]}, a beginning ends in "/"
    weights: dict  # {(layer, role): name of the weight}
    tensors: dict  # {name of a tensor of the network: name in the model}


class Lowering:
    """Puts the model together."""

    def __init__(self, network, wanted=None, asserted=False):
        """`wanted`: the tensors that shall be outputs; without, those that are marked. `asserted`: the conditions of assertions as well."""
        self.network, self.asserted = network, asserted
        self.outputs = list(network._outputs) if wanted is None else list(wanted)
        source = network._source
        self.graph = onnx.Graph(network.name or "network")
        self.model = onnx.Model(self.graph, OPSET)
        if source is not None:
            self.model.ir, self.model.opsets, self.model.functions = source.ir, dict(source.opsets), list(source.functions)
            self.model.opsets.setdefault("", OPSET)
            self.graph.rest = list(source.graph.rest)
        self.nodes, self.weights = {}, {}
        self.names = network._names()
        self.written = {}  # {loop or conditional: how often}: one that is inside of another may be written several times

    def run(self):
        network = self.network
        before, after = self._edges()
        for unit in flow.order(network):
            for node in self._unit(unit):
                self.graph.nodes.append(node)
        self.graph.nodes[:0] = before
        self.graph.nodes += after
        data = self.model.bytes()
        tensors = {tensor._name: name for tensor, name in self.names.items()}
        return LoweredModel(data, None, network._folder, list(network._inputs), list(self.outputs), self.nodes, self.weights, tensors)

    def fresh(self, name):
        """A name for a loop or conditional, another one each time."""
        count = self.written[name] = self.written.get(name, 0) + 1
        return name if count == 1 else f"{name}/{count}"

    # -- inputs and outputs --

    def _edges(self):
        """Declares inputs and outputs; the casts behind the former and before the latter."""
        before, after = [], []
        for tensor in self.network._inputs:
            element = element_of_type(tensor.dtype)
            shape = [tensor._dims.get(at) if size < 0 else size for at, size in enumerate(tensor._sizes)]
            self.graph.inputs.append(onnx.Info(tensor._name, element, shape))
            if tensor._element not in (None, element):
                self.names[tensor] = f"{tensor._name}/cast"
                before.append(onnx.Node("Cast", [tensor._name], [self.names[tensor]], f"{tensor._name}/cast", to=tensor._element))
        for tensor in dict.fromkeys(self.outputs):
            element = element_of_type(tensor.dtype)
            self.graph.outputs.append(onnx.Info(tensor._name, element, None))
            if tensor._record is None:
                raise CannotLower(f"the input {tensor._name} is marked as an output; put an identity layer between")
            self.network._typed(tensor)
            if tensor._element not in (None, element):
                self.names[tensor] = f"{tensor._name}/before_cast"
                after.append(onnx.Node("Cast", [self.names[tensor]], [tensor._name], f"{tensor._name}/cast", to=element))
        for record in self._assertions():
            name = f"{PREFIX}{record.name}"
            after.append(onnx.Node("Cast", [self.names[record.inputs[0]]], [name], name, to=onnx.BOOL))
            self.graph.outputs.append(onnx.Info(name, onnx.BOOL, None))
        return before, after

    def _assertions(self):
        """Those whose condition lies outside of loops and conditionals."""
        inside = {record for unit in flow.order(self.network) if isinstance(unit, flow.Group) for record in unit.records}
        return [record for record in self.network._records if record.kind == "ASSERTION" and record.node is None and self.asserted
                and record.inputs[0]._record not in inside]

    # -- layers --

    def _unit(self, unit):
        """The nodes of a layer, a loop, a conditional or an attention."""
        if isinstance(unit, flow.Group):
            return self._added(unit.name, *flow.lower(unit, self, self.names))
        if unit.node is not None and not unit.edited:
            return self.parsed(unit)
        emitter = emitted(unit, self.names)
        return self._added(unit.name, emitter.nodes, emitter.tensors, [self.names[each] for each in unit.outputs], unit)

    def parsed(self, record):
        """The node of the file, with the names that tensors have by now."""
        self._keep(record)
        self.nodes[record.name] = [record.node.name or record.name]
        return parsed_nodes(record, self.names)

    def _keep(self, record):
        for name in [each for each in record.operands if isinstance(each, str)] + list(record.params.get("captured_weights", ())):
            if name in self.network._file_weights:
                self.graph.tensors[name] = self.network._file_weights[name]

    def keep_weights(self, record, tensors):
        self.graph.tensors.update(tensors)
        for role in record.weights:
            if role != "POWER" or len(record.weights[role]):
                self.weights[record.name, role] = self.network._weights_name(record, role)

    def _added(self, name, nodes, tensors, outputs, record=None):
        """Nodes written in OPSET; as a function where the model has another version."""
        if record is not None:
            self.keep_weights(record, tensors)
        else:
            self.graph.tensors.update(tensors)
        self.nodes[name] = [node.name for node in nodes]
        if self.model.opsets[""] == OPSET or not nodes:
            return nodes
        body = onnx.Graph()
        body.nodes = nodes
        inputs = body.free_names()
        kind = f"layer_{len(self.model.functions)}"
        self.model.functions.append(onnx.function(kind, DOMAIN, inputs, outputs, nodes, OPSET))
        self.model.opsets[DOMAIN] = 1
        self.nodes[name] = [f"{name}/"]
        return [onnx.Node(kind, inputs, outputs, name, DOMAIN)]


def parsed_nodes(record, names):
    """The node of a parsed layer over other names; none for a weight whose tensor has its name."""
    if record.kind == "CONSTANT" and names[record.outputs[0]] == record.operands[0]:
        return []
    node, captured = record.node, record.params.get("captured", {})
    renames = {old: names[tensor] for old, tensor in captured.items() if names[tensor] != old}
    made = node.renamed(renames) if renames else node.renamed({})
    made.inputs = ["" if each is None else each if isinstance(each, str) else names[each] for each in record.operands]
    at = {old: names[tensor] for old, tensor in record.params["made"].items()}
    made.outputs = [at.get(old, old) for old in node.outputs]
    made.name = node.name or record.name
    return [made]


def network_model(network, wanted=None, asserted=False):
    """The network as an ONNX model: LoweredModel. CannotLower says what stands in the way."""
    return Lowering(network, wanted, asserted).run()
