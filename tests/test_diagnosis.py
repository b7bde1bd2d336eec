# SPDX-License-Identifier: Apache-2.0
"""Diagnoses of models from Python: every refused node, of what kind the trouble is, and which nodes are supported."""

import sys

import numpy as np
import onnx
import pytest
import tiny
from conftest import PACKAGE
from onnx import helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")
Problem = hone.Problem


@pytest.fixture
def broken(folder):
    """Two nodes that are wrong, and between them what is right."""
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="first"), helper.make_node("Frobnicate", ["a"], ["b"], name="strange", domain="acme"),
             helper.make_node("Sigmoid", ["b"], ["c"], name="between"), helper.make_node("Concat", ["c", "a"], ["d"], name="axes", axis=7),
             helper.make_node("Tanh", ["a"], ["y"], name="last")]
    return tiny.save(folder / "model.onnx", nodes)


def test_every_refused_node_is_listed(broken):
    diagnosis = hone.diagnose(broken)
    assert [(entry.severity, entry.problem, entry.node, entry.name) for entry in diagnosis.entries] == [
        (1, Problem.OPERATOR, 1, "strange"), (3, Problem.UNJUDGED, 2, "between"), (3, Problem.UNJUDGED, 3, "axes")]
    first = diagnosis.entries[0]
    assert (first.op, first.domain) == ("Frobnicate", "acme") and "acme::Frobnicate is not known" in first.text and first.hint
    assert [node.supported for node in diagnosis.nodes] == [True, False, True, True, True] and diagnosis.runs == ((0,), (2, 3, 4))
    assert not diagnosis.ok
    with pytest.raises(hone.Error):
        hone.Model.load(broken)


def test_known_types_let_later_nodes_be_judged(broken):
    model = onnx.load(broken)
    model.graph.value_info.append(helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, ["n", 4]))
    diagnosis = hone.diagnose(model.SerializeToString())
    assert [(entry.problem, entry.name) for entry in diagnosis.entries][0] == (Problem.OPERATOR, "strange")
    assert [entry.name for entry in diagnosis.entries] == ["strange", "axes"] and diagnosis.runs == ((0,), (2,), (4,))


def test_a_registered_operator_is_known_to_a_diagnosis(folder):
    @hone.operator("test.diagnosis", "Double", inputs=1, sizes="x0")
    def double(x):
        return x * 2

    path = tiny.save(folder / "model.onnx", [helper.make_node("Double", ["x"], ["y"], domain="test.diagnosis"),
                                             helper.make_node("Triple", ["x"], ["z"], domain="test.diagnosis")])
    assert [entry.op for entry in hone.diagnose(path).entries] == ["Triple"]


def test_a_right_model_a_network_and_what_is_no_model(folder):
    diagnosis = hone.diagnose(tiny.convolutions(folder / "right.onnx"))
    assert diagnosis.ok and not diagnosis.entries and diagnosis.runs == (tuple(range(8)),)
    network = hone.Network()
    network.input("x", "float32", [1])
    network.node("Relu", ["nothing"], ["y"], name="lost")
    network.output("y")
    (entry,) = hone.diagnose(network).entries
    assert entry.problem == Problem.GRAPH and entry.name == "lost" and "'nothing' is not defined" in entry.text
    (entry,) = hone.diagnose(b"PK\x03\x04 an archive").entries
    assert entry.problem == Problem.FILE and entry.node == -1 and "ZIP" in entry.text
    with pytest.raises(hone.Error, match="nowhere.onnx"):
        hone.diagnose(folder / "nowhere.onnx")


def test_weights_attributes_types_versions_and_warnings_have_kinds_of_their_own(folder):
    nodes = [helper.make_node("Add", ["x", "w"], ["a"], name="reads"), helper.make_node("Relu", ["x"], ["b"], name="extra", wrong=1),
             helper.make_node("Upsample", ["x", "s"], ["c"], name="gone"), helper.make_node("Relu", ["x"], ["d"], name="twin"),
             helper.make_node("Relu", ["d"], ["y"], name="twin"), helper.make_node("BitwiseNot", ["x"], ["e"], name="floats")]
    model = onnx.load(tiny.save(folder / "model.onnx", nodes, {"w": np.ones(4, np.float32), "s": np.ones(2, np.float32)}, opset=18))
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.bin")
    onnx.save(model, folder / "external.onnx")
    entries = hone.diagnose(folder / "external.onnx").entries
    assert [(entry.problem, entry.name) for entry in entries] == [
        (Problem.WEIGHT, ""), (Problem.ATTRIBUTE, "extra"), (Problem.VERSION, "gone"), (Problem.NAME, ""),
        (Problem.TYPE, "floats")]
    assert [entry.severity for entry in entries] == [1, 1, 1, 2, 1]
