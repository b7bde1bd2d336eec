# SPDX-License-Identifier: Apache-2.0
"""Scan as opset 8 had it, over a batch of sequences that end at different steps, against ONNX Runtime."""

import os
import pathlib
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper

import inference

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

BATCH, STEPS, WIDTH = 3, 5, 4
value = helper.make_tensor_value_info


def running_sums(directions):
    """state + element, handed on and put out."""
    row = lambda name: value(name, TensorProto.FLOAT, [WIDTH])
    body = helper.make_graph([helper.make_node("Add", ["state", "element"], ["next"]), helper.make_node("Mul", ["next", "next"], ["square"])],
                             "body", [row("state"), row("element")], [row("next"), row("square")])
    node = helper.make_node("Scan", ["lengths", "start", "x"], ["last", "squares"], name="scan", body=body, num_scan_inputs=1, directions=directions)
    graph = helper.make_graph([node], "scan", [value("lengths", TensorProto.INT64, [BATCH]), value("start", TensorProto.FLOAT, [BATCH, WIDTH]),
                                               value("x", TensorProto.FLOAT, [BATCH, STEPS, WIDTH])],
                              [value("last", TensorProto.FLOAT, [BATCH, WIDTH]), value("squares", TensorProto.FLOAT, [BATCH, STEPS, WIDTH])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=7)


@pytest.mark.parametrize("direction", [0, 1])
def test_a_sequence_ends_at_its_length(direction):
    random = np.random.default_rng(7)
    feeds = {"lengths": np.array([5, 1, 3], np.int64), "start": random.standard_normal((BATCH, WIDTH)).astype(np.float32),
             "x": random.standard_normal((BATCH, STEPS, WIDTH)).astype(np.float32)}
    model = running_sums([direction]).SerializeToString()
    last, squares = inference.session_of(model).run(None, feeds)
    found = hone.Model.parse(model).build(["--builderOptimizationLevel=0"]).engine().context().run(feeds)
    np.testing.assert_allclose(found["last"], last, rtol=1e-5, atol=1e-6)
    for sequence, length in enumerate(feeds["lengths"]):
        np.testing.assert_allclose(found["squares"][sequence, :length], squares[sequence, :length], rtol=1e-5, atol=1e-6)
        assert not found["squares"][sequence, length:].any()
