# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models made in place."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path, nodes, weights=(), inputs=(("x", ["n", 4]),), outputs=(("y", None),), opset=17):
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in outputs]
    initializers = [numpy_helper.from_array(values, name) for name, values in dict(weights).items()]
    graph = helper.make_graph(list(nodes), "tiny", tensors, results, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def perceptron(path):
    """y = relu(x W + b), x of shape [n,4]."""
    weights = {"w": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8), "b": np.ones(8, np.float32)}
    return save(path, [helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="dense"),
                       helper.make_node("Relu", ["h"], ["y"], name="act")], weights)


def convolutions(path):
    """Two convolutions, a residual sum, pooling and a classifier; x of shape [n,3,16,16]."""
    random = np.random.default_rng(7)
    weights = {name: random.standard_normal(shape, np.float32) * np.float32(0.2)
               for name, shape in {"w0": (16, 3, 3, 3), "w1": (16, 16, 3, 3), "b1": (16,), "w2": (16, 10)}.items()}
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c0"], name="conv0", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c0"], ["r0"], name="relu0"),
             helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
             helper.make_node("Add", ["c1", "r0"], ["s"], name="sum"),
             helper.make_node("Sigmoid", ["s"], ["g"], name="gate"),
             helper.make_node("GlobalAveragePool", ["g"], ["p"], name="pool"),
             helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
             helper.make_node("MatMul", ["f", "w2"], ["y"], name="classify")]
    return save(path, nodes, weights, inputs=[("x", ["n", 3, 16, 16])])
