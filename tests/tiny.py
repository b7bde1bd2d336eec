# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models made in place."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path, nodes, weights=(), inputs=(("x", ["n", 4]),), outputs=(("y", None),), opset=17, ir_version=8, dtype=TensorProto.FLOAT):
    """Inputs and outputs are (name, sizes) or (name, sizes, type); `dtype` is the type of those without one."""
    tensors, results = ([helper.make_tensor_value_info(name, *(type or [dtype]), dims) for name, dims, *type in values]
                        for values in (inputs, outputs))
    initializers = [numpy_helper.from_array(values, name) for name, values in dict(weights).items()]
    graph = helper.make_graph(list(nodes), "tiny", tensors, results, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version), path)
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


def classifier(path, data="x", answer="y", dtype=np.float32, **options):
    """A classifier of images in the shape of the tutorials' models: [-1,3,224,224] to [-1,1000], with little to compute."""
    random = np.random.default_rng(11)
    weights = {name: (random.standard_normal(shape, np.float32) * np.float32(0.1)).astype(dtype)
               for name, shape in {"w0": (8, 3, 7, 7), "b0": (8,), "w1": (8, 8, 3, 3), "w2": (8, 1000), "b2": (1000,)}.items()}
    nodes = [helper.make_node("Conv", [data, "w0", "b0"], ["c0"], name="/conv1/Conv", strides=[8, 8], pads=[3, 3, 3, 3]),
             helper.make_node("Relu", ["c0"], ["r0"], name="/relu/Relu"),
             helper.make_node("MaxPool", ["r0"], ["m0"], name="/maxpool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Conv", ["m0", "w1"], ["c1"], name="/conv2/Conv", pads=[1, 1, 1, 1]),
             helper.make_node("Add", ["c1", "m0"], ["s1"], name="/Add"),
             helper.make_node("GlobalAveragePool", ["s1"], ["p1"], name="/avgpool/GlobalAveragePool"),
             helper.make_node("Flatten", ["p1"], ["f1"], name="/Flatten"),
             helper.make_node("Gemm", ["f1", "w2", "b2"], [answer], name="/fc/Gemm")]
    return save(path, nodes, weights, inputs=[(data, ["batch", 3, 224, 224])], outputs=[(answer, ["batch", 1000])],
                dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), **options)
