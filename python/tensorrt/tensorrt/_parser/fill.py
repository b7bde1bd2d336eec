# SPDX-License-Identifier: Apache-2.0
"""From a model that Hone reads to the records of a network: a layer for each node, and one for each weight that a layer reads as a tensor."""

import numpy as np

from .._base import onnx
from .._base.values import type_of_array, weights_of
from .._network.layers import Record
from .._network.tensors import ITensor
from .kinds import kind_of, weight_places
from .parsed import reader


def constants(model):
    """{name: Tensor} of the Constant nodes."""
    found = {}
    for node in model.graph.nodes:
        if node.op == "Constant" and node.domain == "":
            held = _constant(node)
            if held is not None:
                found[node.outputs[0]] = held
    return found


def _constant(node):
    """What a Constant holds as a tensor; None for texts and sparse ones, which stay nodes."""
    for name, value in node.attributes().items():
        if name == "value" and value.element != onnx.STRING:
            return onnx.Tensor(memoryview(value.bytes(node.outputs[0])), node.outputs[0])
        kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
        if name in kinds:
            return onnx.Tensor(memoryview(onnx.tensor(node.outputs[0], np.asarray(value, kinds[name]))))
    return None


def _weights(held, folder):
    """What a CONSTANT layer shows; none where the release has no such type."""
    array = held.array(folder)
    return {} if array is None or type_of_array(array.dtype) is None else {"CONSTANT": weights_of(array)}


class _Filling:
    """One parse."""

    def __init__(self, network, model, folder, types):
        self.network, self.model, self.folder, self.types = network, model, folder, types
        self.values = {}  # {name in the file: ITensor}
        self.layers = {}

    def run(self):
        network, graph = self.network, self.model.graph
        network._source, network._folder, network._reading = self.model, self.folder, True
        held = constants(self.model)
        network._file_weights = {**graph.tensors, **held}
        for info in graph.inputs:
            if info.name not in graph.tensors:
                self._input(info)
        for node in graph.nodes:
            if not (node.op == "Constant" and node.domain == "" and node.outputs[0] in held):
                self._node(node)
        for info in graph.outputs:
            tensor = self._tensor(info.name)
            if tensor is not None:
                network.mark_output(tensor)
        network._reading = False
        return self.layers

    def _input(self, info):
        network = self.network
        tensor = ITensor(network, None, len(network._inputs), info.name)
        tensor._element = info.element
        tensor._sizes = [size if isinstance(size, int) else -1 for size in info.shape or ()]
        tensor._dims = {at: size for at, size in enumerate(info.shape or ()) if isinstance(size, str)}
        network._inputs.append(tensor)
        network._tensors[info.name] = self.values[info.name] = tensor

    def _tensor(self, name):
        """A value as a tensor: of a layer, or of a CONSTANT layer that is made now."""
        if name in self.values:
            return self.values[name]
        held = self.network._file_weights.get(name)
        if held is None:
            return None
        record = Record(self.network, "CONSTANT", self.network._fresh_layer_name(name), [], {"shape": tuple(held.shape), "weight": name})
        record.default_name, record.metadata = False, f"[ONNX Layer: {name}]"
        record.node = onnx.Node("Identity", [name], [name], f"{name}/constant")
        record.operands, record.read = [name], lambda: ({}, _weights(held, self.folder))
        record.params["made"] = {}
        self._output(record, name, held.element, list(held.shape))
        # under the file's own name stands the weight, so the layer's tensor is another name of it in the model
        record.params["made"] = {name: record.outputs[0]}
        self.network._append(record)
        record.typed = True
        self.values[name] = record.outputs[0]
        return record.outputs[0]

    def _output(self, record, name, element, sizes):
        tensor = self.network._new_tensor(record, len(record.outputs), name)
        tensor._element, tensor._sizes, tensor._default_name = element, sizes, False
        record.outputs.append(tensor)
        return tensor

    def _node(self, node):
        network, places, operands = self.network, weight_places(node), []
        for at, name in enumerate(node.inputs):
            if not name:
                operands.append(None)
            elif at in places and name not in self.values and name in network._file_weights:
                operands.append(name)
            else:
                operands.append(self._tensor(name))
        captured, weights = {}, []
        for name in node.outer_names():
            if name in network._file_weights and name not in self.values:
                weights.append(name)
            elif name in self.values:
                captured[name] = self.values[name]
        called = node.name or f"node_of_{next((name for name in node.outputs if name), node.op)}"
        inputs = list(dict.fromkeys([each for each in operands if isinstance(each, ITensor)] + list(captured.values()))) if captured else \
            [each for each in operands if isinstance(each, ITensor)]
        record = Record(network, kind_of(node), network._fresh_layer_name(called), inputs)
        record.node, record.operands, record.default_name = node, operands, False
        record.metadata = f"[ONNX Layer: {called}]"
        made = {}
        for name in node.outputs:
            if name:
                element, sizes = self.types.get(name, (None, None))
                made[name] = self.values[name] = self._output(record, name, element, sizes)
        record.params = {"made": made, "captured": captured, "captured_weights": weights}
        record.read = reader(record, network._file_weights, self.folder)
        network._append(record)
        record.typed = True
        self.layers[called] = record


def fill(network, model, folder, types):
    """Puts the model into the network; {name of a node: its record}."""
    made = _Filling(network, model, folder, types).run()
    network._dirty = False
    return made
