# SPDX-License-Identifier: Apache-2.0
"""Weights that list their elements which are not zero: initialisers and constants, by numbers of elements and by axes."""

import os
import pathlib
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

WHOLE = np.array([[0, 2, 0, 0], [0, 0, 0, -3], [0.5, 0, 0, 0]], np.float32)


def sparse(values, places, sizes=WHOLE.shape, kind=TensorProto.FLOAT):
    places = np.array(places, np.int64)
    return helper.make_sparse_tensor(helper.make_tensor("w", kind, [len(values)], values),
                                     helper.make_tensor("places", TensorProto.INT64, places.shape, places.ravel()), sizes)


def model(path, weight, constant=False):
    """y = x + w"""
    nodes = [helper.make_node("Constant", [], ["w"], sparse_value=weight)] if constant else []
    kind = weight.values.data_type
    graph = helper.make_graph([*nodes, helper.make_node("Add", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", kind, [3, 4])],
                              [helper.make_tensor_value_info("y", kind, [3, 4])], sparse_initializer=[] if constant else [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def sum_with(path, x):
    with hone.build(path, ["--builderOptimizationLevel=0"]).engine().context() as context:
        return context.run({"x": x})["y"]


@pytest.mark.parametrize("constant", [False, True], ids=["initialiser", "constant"])
@pytest.mark.parametrize("places", [[1, 7, 8], [[0, 1], [1, 3], [2, 0]]], ids=["by_elements", "by_axes"])
def test_a_sparse_weight_is_a_dense_one(tmp_path, places, constant):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(sum_with(model(tmp_path / "m.onnx", sparse([2, -3, 0.5], places), constant), x), x + WHOLE)


def test_sparse_integers_and_a_weight_without_elements(tmp_path):
    x = np.ones((3, 4), np.int8)
    found = sum_with(model(tmp_path / "m.onnx", sparse([5], [11], kind=TensorProto.INT8)), x)
    assert found.dtype == np.int8 and found.ravel().tolist() == [1] * 11 + [6]
    np.testing.assert_array_equal(sum_with(model(tmp_path / "n.onnx", sparse([], np.zeros(0))), x.astype(np.float32)), x)


@pytest.mark.parametrize(("values", "places", "sizes", "told"), [
    ([1], [12], (3, 4), "place 12 of"),
    ([1], [[0, 4]], (3, 4), "place 4 of a sparse weight is outside of the size 4"),
    ([1, 2], [3], (3, 4), "2 values and 1 places"),
    ([1], [0], (1 << 20, 1 << 20), "more than")])
def test_places_that_do_not_fit_are_told(tmp_path, values, places, sizes, told):
    with pytest.raises(hone.Error, match=told) as refused:
        hone.build(model(tmp_path / "m.onnx", sparse(values, places, sizes)), [])
    assert "'w'" in str(refused.value)
