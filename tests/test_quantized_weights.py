# SPDX-License-Identifier: Apache-2.0
"""Matmuls with constant weights of few bits, as ONNX writes them - DequantizeLinear, perhaps a Transpose, then MatMul or Gemm -
against the same in double precision: whatever the blocks, the zero points and the number of rows, 1e-5 of the result's norm."""

import os
import pathlib
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import inference

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

RANGES = {TensorProto.INT4: (-8, 7), TensorProto.UINT4: (0, 15), TensorProto.INT8: (-128, 127), TensorProto.UINT8: (0, 255)}
NAMES = {TensorProto.INT4: "int4", TensorProto.UINT4: "uint4", TensorProto.INT8: "int8", TensorProto.UINT8: "uint8"}


def drawn(random, kind, *shape):
    low, high = RANGES[kind]
    return random.integers(low, high + 1, shape)


def expanded(values, shape, axis, block):
    """Scales or zero points, one for each weight."""
    if values.ndim == 0 or values.size == 1:
        return np.broadcast_to(values.reshape(()), shape)
    if block == 0:
        return np.broadcast_to(values.reshape([-1 if i == axis else 1 for i in range(2)]), shape)
    return np.repeat(values, block, axis)[tuple(slice(size) for size in shape)]


def model_of(kind, form, block, rows, dtype=np.float32, depth=80, columns=56):
    """The model, its input, and what it gives in double precision."""
    random = np.random.default_rng(7)
    transposed = form != "plain"
    shape = (columns, depth) if transposed else (depth, columns)
    axis = 1 if transposed else 0  # of the depth
    x = random.standard_normal((rows, depth)).astype(dtype)
    codes = drawn(random, kind, *shape)
    if block == "tensor":
        size, count, along = (), 0, axis
    elif block == "column":
        size, count, along = (columns,), 0, 1 - axis
    else:
        blocks = -(-depth // block)
        size, count, along = ((columns, blocks) if transposed else (blocks, columns)), block, axis
    scales, zeros = random.uniform(0.01, 0.1, size).astype(dtype), drawn(random, kind, *size)
    weights = [helper.make_tensor("w", kind, shape, codes.ravel()), numpy_helper.from_array(scales, "s"),
               helper.make_tensor("z", kind, size, zeros.ravel())]
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=along, block_size=count)]
    if form == "gemm":
        weights.append(numpy_helper.from_array(random.standard_normal(columns).astype(dtype), "b"))
        nodes.append(helper.make_node("Gemm", ["x", "d", "b"], ["y"], transB=1))
    else:
        if transposed:
            nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "t" if transposed else "d"], ["y"]))
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(nodes, "few_bits", [helper.make_tensor_value_info("x", type_, ["rows", depth])],
                              [helper.make_tensor_value_info("y", type_, ["rows", columns])], weights)
    floats = (codes - expanded(zeros, shape, along, count)) * expanded(scales.astype(np.float64), shape, along, count)
    exact = x.astype(np.float64) @ (floats.T if transposed else floats)
    if form == "gemm":
        exact = exact + numpy_helper.to_array(weights[3]).astype(np.float64)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), x, exact


def run(model, x):
    options = ["--builderOptimizationLevel=0", f"--shapes=x:{'x'.join(map(str, x.shape))}"]
    plan = hone.Model.parse(model.SerializeToString()).build(options)
    assert "quantized_linear" in plan.json(), "the weights became floats"
    return plan.engine().context().run({"x": x})["y"]


@pytest.mark.parametrize("rows", [1, 5, 150])
@pytest.mark.parametrize("block", ["tensor", "column", 32, 20])
@pytest.mark.parametrize("form", ["plain", "transposed", "gemm"])
@pytest.mark.parametrize("kind", RANGES, ids=NAMES.get)
def test_agrees_with_double_precision(kind, form, block, rows):
    model, x, exact = model_of(kind, form, block, rows)
    assert inference.relative_error(run(model, x), exact) < 1e-5


@pytest.mark.parametrize("form", ["plain", "gemm"])
def test_a_network_of_halves_keeps_its_weights(form):
    model, x, exact = model_of(TensorProto.UINT4, form, 32, 3, np.float16)
    found = run(model, x)
    assert found.dtype == np.float16 and inference.relative_error(found, exact) < 1e-3
