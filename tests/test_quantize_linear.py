# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear of every type, by tensor, axis and block, with all their attributes, against ONNX's reference."""

import os
import pathlib
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

RANGES = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767), "UINT16": (0, 65535), "INT4": (-8, 7), "UINT4": (0, 15),
          "INT2": (-2, 1), "UINT2": (0, 3)}
FLOATS = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
SCALES = {"tensor": (), "axis": (6,), "block": (4, 3, 5)}


def check(op, x, scale, zero, result, **attributes):
    """The node on x gives what the reference gives, bit for bit."""
    names = ["x", "scale"] + ([] if zero is None else ["zero"])
    constants = [numpy_helper.from_array(array, name) for name, array in (("scale", scale), ("zero", zero)) if array is not None]
    type_ = lambda array: helper.np_dtype_to_tensor_dtype(array.dtype)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", [helper.make_tensor_value_info("x", type_(x), x.shape)],
                              [helper.make_tensor_value_info("y", result, x.shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = np.array(hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0"]).engine().context().run({"x": x})["y"])
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64), err_msg=f"{op} {attributes}")


@pytest.mark.parametrize("kind", [*RANGES, *FLOATS])
def test_every_type(kind):
    number, random = getattr(TensorProto, kind), np.random.default_rng(3)
    dtype = helper.tensor_dtype_to_np_dtype(number)
    low, high = RANGES.get(kind, (-2, 2))
    x, codes = random.standard_normal((4, 6, 5), np.float32) * 3, random.integers(low, high + 1, (4, 6, 5)).astype(np.float32).astype(dtype)
    for size in SCALES.values():
        scale = random.uniform(0.01, 0.1, size).astype(np.float32)
        zero = (random.integers(0, 2, size) if kind in RANGES else np.zeros(size)).astype(dtype)
        place = {"axis": 1, **({"block_size": 2} if len(size) == 3 else {})}
        check("QuantizeLinear", x, scale, zero, number, **place)
        check("QuantizeLinear", x, scale, None, number, output_dtype=number, **place)
        check("DequantizeLinear", codes, scale, zero, TensorProto.FLOAT, **place)
        for wanted in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
            check("DequantizeLinear", codes, scale, zero, wanted, output_dtype=wanted, **place)
        check("DequantizeLinear", codes, scale.astype(np.float16), zero, TensorProto.FLOAT, output_dtype=TensorProto.FLOAT, **place)
    if kind in FLOATS[:4]:
        check("QuantizeLinear", x * 1e4, np.float32(0.03).reshape(()), None, number, output_dtype=number, saturate=0)


def test_the_precision_of_the_division():
    """Halves divided in f32."""
    x, scale = np.float16([0.3, 1.7, 2.9, -5.3]), np.float16(0.03)
    check("QuantizeLinear", x, scale, None, TensorProto.UINT16, output_dtype=TensorProto.UINT16, precision=TensorProto.FLOAT)


def test_zero_points_that_no_memory_holds_are_refused():
    """output_dtype alone asks for a zero point of the scale's sizes."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2 ** 40]) for name in ("x", "scale")]
    graph = helper.make_graph([helper.make_node("QuantizeLinear", ["x", "scale"], ["y"], output_dtype=TensorProto.INT8)], "g", inputs,
                              [helper.make_tensor_value_info("y", TensorProto.INT8, [2 ** 40])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    with pytest.raises(hone.Error, match="1099511627776 zero points"):
        hone.Model.parse(model.SerializeToString())
