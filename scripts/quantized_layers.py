# SPDX-License-Identifier: Apache-2.0
"""A quantised model cut into its layers: each quantised tensor made of ONNX Runtime's own quantised tensors before it."""

import dataclasses

import numpy as np
import onnx
import onnxruntime

QUANTIZERS = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul", "QLinearSigmoid",
              "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearConcat", "QLinearSoftmax", "QGemm"}


def session_of(path, rewritten):
    """ONNX Runtime's own, with its rewriting of the graph or as the model is written."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not rewritten:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def quantized_tensors(graph):
    """What nodes make of activations: bytes, and the scales and zero points that are found as the model runs."""
    return [output for node in graph.node if node.op_type in QUANTIZERS for output in node.output if output]


def typed(name, array):
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


@dataclasses.dataclass
class Layers:
    path: object  # of the model whose inputs are the tensors fed0, fed1, ... besides the network's, and outputs made0, made1, ...
    names: list   # of the tensors, by number
    values: list  # what ONNX Runtime gives for them

    def feeds(self, feeds):
        return feeds | {f"fed{i}": value for i, value in enumerate(self.values)}

    def outputs(self):
        return [f"made{i}" for i in range(len(self.values))]


def layer_by_layer(path, feeds):
    """The model with every quantised tensor as an input for its readers and as an output of its maker, and what ONNX Runtime gives
    for them where it runs the model as it is written (its quantised Softmax, for one, looks exponentials up in a coarser table)."""
    model = onnx.load(path)
    names = quantized_tensors(model.graph)
    kept = list(model.graph.output)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in {output.name for output in kept})
    exposed = path.with_name(path.name + ".exposed")
    onnx.save(model, exposed)
    values = dict(zip(names, session_of(exposed, False).run(names, feeds)))
    exposed.unlink()
    number = {name: i for i, name in enumerate(names)}
    for node in model.graph.node:
        node.input[:] = [f"fed{number[name]}" if name in number else name for name in node.input]
        node.output[:] = [f"made{number[name]}" if name in number else name for name in node.output]
    del model.graph.output[:], model.graph.value_info[:]
    model.graph.input.extend(typed(f"fed{number[name]}", value) for name, value in values.items())
    model.graph.output.extend(typed(f"made{number[name]}", value) for name, value in values.items())
    layers = path.with_name(path.name + ".layers.onnx")
    onnx.save(model, layers)
    return Layers(layers, names, [values[name] for name in names])


def difference(found, expected):
    """(elements that differ, by how many steps at most); of floats, those that are off by more than 1e-5 of their value."""
    if expected.dtype == np.float32:
        off = ~np.isclose(found, expected, rtol=1e-5, atol=0)
        return int(off.sum()), float(np.max(np.abs(found - expected)[off], initial=0))
    steps = np.abs(found.astype(int) - expected.astype(int))
    return int((steps > 0).sum()), int(steps.max(initial=0))
