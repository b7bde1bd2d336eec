# SPDX-License-Identifier: Apache-2.0
"""Matmuls with constant weights of few bits, as ONNX writes them - DequantizeLinear, perhaps a Transpose, then MatMul or Gemm -
against the same in double precision: whatever the blocks, the zero points and the number of rows, 1e-5 of the result's norm."""

import os
import pathlib
import sys

import ml_dtypes
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


FLOATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}


def float_model(kind, weights, opset):
    """x times weights that are floats of few bits, with a scale for each block of 32 rows."""
    depth, columns = weights.shape
    scales = np.random.default_rng(3).uniform(0.01, 0.1, (-(-depth // 32), columns)).astype(np.float32)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32), helper.make_node("MatMul", ["x", "d"], ["y"])]
    graph = helper.make_graph(nodes, kind, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", depth])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", columns])],
                              [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11), scales


@pytest.mark.parametrize("rows", [1, 5, 150])
@pytest.mark.parametrize("kind", FLOATS)
def test_floats_of_few_bits_agree_with_double_precision(kind, rows):
    random = np.random.default_rng(7)
    weights = random.standard_normal((96, 56)).astype(FLOATS[kind])
    model, scales = float_model(kind, weights, 23)
    x = random.standard_normal((rows, 96)).astype(np.float32)
    exact = x.astype(np.float64) @ (weights.astype(np.float64) * np.repeat(scales.astype(np.float64), 32, 0))
    assert inference.relative_error(run(model, x), exact) < 1e-5


def test_weights_that_are_no_numbers_are_what_the_reference_makes_of_them():
    weights = np.ones((32, 8), ml_dtypes.float8_e4m3fn)
    weights[3, 5] = np.nan
    model, _ = float_model("nan", weights, 23)
    x = np.ones((1, 32), np.float32)
    y = hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0", "--shapes=x:1x32"]).engine().context().run({"x": x})["y"]
    assert np.isnan(y[0, 5]) and np.isfinite(np.delete(y[0], 5)).all()


@pytest.mark.parametrize("scales", ["table", "row", "block", "column"])
@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.INT8, TensorProto.UINT8], ids=NAMES.get)
def test_rows_of_a_table_of_few_bits_are_gathered_before_they_become_floats(kind, scales):
    """The table stays as it is in the plan: 6,000 rows of 64 are 384 kB in bytes, 1,536 in floats."""
    random = np.random.default_rng(11)
    shape = (6000, 64)
    sizes, axis, block = {"table": ((), 0, 0), "row": ((6000,), 0, 0), "column": ((64,), 1, 0), "block": ((6000, 4), 1, 16)}[scales]
    codes, zeros = drawn(random, kind, *shape), drawn(random, kind, *sizes)
    steps = random.uniform(0.01, 0.1, sizes).astype(np.float32)
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=axis, block_size=block),
             helper.make_node("Gather", ["d", "i"], ["y"], axis=0)]
    graph = helper.make_graph(nodes, "rows", [helper.make_tensor_value_info("i", TensorProto.INT64, [2, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 64])],
                              [helper.make_tensor("w", kind, shape, codes.ravel()), numpy_helper.from_array(steps, "s"),
                               helper.make_tensor("z", kind, sizes, np.ravel(zeros))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    plan = hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0"])
    assert len(plan.bytes()) < 900_000, "the table became floats"
    picked = np.array([[0, 5999, 17], [4096, 17, 3]], np.int64)
    floats = (codes - expanded(np.asarray(zeros), shape, axis, block)) * expanded(steps.astype(np.float64), shape, axis, block)
    assert inference.relative_error(plan.engine().context().run({"i": picked})["y"], floats[picked]) < 1e-6
