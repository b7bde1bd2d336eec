# SPDX-License-Identifier: Apache-2.0
"""Every node of a model that its outputs depend on stands behind a layer or was folded away before anything ran, none stands
behind both, and every row of a profile has a layer with its nodes."""

import json
import re

import numpy as np
import onnx
import pytest
import tiny
from onnx import TensorProto, helper

# Only these may make nodes unnecessary. A fusion has to hand the nodes' names on to what it makes of them.
FOLDING = {"import", "form_regions", "fold_constants", "fold_shapes", "fold_if", "eliminate_identity", "eliminate_expand", "eliminate_dead", "merge_common",
           "merge_views", "lower_view", "move_transpose", "move_view", "move_slice", "absorb_transpose", "absorb_heads",
           "simplify_arithmetic"}


def live_nodes(path):
    """Names of the nodes that the outputs depend on; Constant nodes are data."""
    graph = onnx.load(path, load_external_data=False).graph
    wanted, live = {output.name for output in graph.output}, set()
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= set(node.input)
            live |= {node.name} if node.op_type != "Constant" else set()
    return live


def shape_arithmetic(path):
    """A reshape whose target follows from the input's shape, an identity, a constant sum, an unused node."""
    weights = {"one": np.ones(1, np.float32), "two": np.full(1, 2, np.float32), "minus": np.array([-1], np.int64)}
    nodes = [helper.make_node("Shape", ["x"], ["s"], name="shape"),
             helper.make_node("Slice", ["s", "zero", "first"], ["n"], name="batch"),
             helper.make_node("Concat", ["n", "minus"], ["t"], name="target", axis=0),
             helper.make_node("Relu", ["x"], ["r"], name="relu"),
             helper.make_node("Identity", ["r"], ["i"], name="same"),
             helper.make_node("Reshape", ["i", "t"], ["f"], name="reshape"),
             helper.make_node("Add", ["one", "two"], ["c"], name="three"),
             helper.make_node("Mul", ["f", "c"], ["y"], name="scale"),
             helper.make_node("Neg", ["x"], ["unused"], name="unused")]
    weights |= {"zero": np.zeros(1, np.int64), "first": np.ones(1, np.int64)}
    return tiny.save(path, nodes, weights, inputs=[("x", ["n", 4, 4])])


def check(path, trtexec, *shapes):
    trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--profilingVerbosity=detailed", "--builderOptimizationLevel=1", *shapes)
    trtexec("--loadEngine=m.plan", "--warmUp=0", "--duration=0", "--iterations=1", "--exportLayerInfo=l.json", "--exportProfile=p.json")
    information = json.loads((trtexec.folder / "l.json").read_text())
    layers = {layer["Name"]: set(re.findall(r"\[ONNX Layer: ([^\]]*)\]", layer["Metadata"])) for layer in information["Layers"]}
    folded = {entry["Node"]: entry["Pass"] for entry in information["Folded"]}
    rows = [row["name"] for row in json.loads((trtexec.folder / "p.json").read_text())[1:]]
    assert set(rows) == set(layers)
    behind_rows = set().union(*(layers[row] for row in rows))
    expected = live_nodes(path)
    print(f"{len(expected)} nodes: {len(behind_rows)} behind {len(rows)} layers, {len(folded)} folded by {sorted(set(folded.values()))}")
    assert behind_rows.isdisjoint(folded)
    assert behind_rows | set(folded) == expected
    assert set(folded.values()) <= FOLDING
    return layers, folded


def test_nodes_of_a_small_model(trtexec, folder):
    layers, folded = check(shape_arithmetic(folder / "m.onnx"), trtexec, "--shapes=x:2x4x4")
    assert {"shape", "batch", "target", "three"} <= set(folded)
    assert "unused" not in folded
    assert {"relu", "scale"} <= set().union(*layers.values())


@pytest.mark.parametrize("name", ["resnet18.ts", "mobilenet_v3_large.ts", "hf_distilbert.ts"])
def test_nodes_of_a_model_of_the_zoo(name, trtexec, zoo):
    check(zoo(name), trtexec)


def test_random_indices_stay_inside_the_table(trtexec, folder):
    """An embedding of 3 rows, lengths of a recurrent layer and a mask: random inputs must be valid for all of them."""
    random = np.random.default_rng(5)
    weights = {"table": random.standard_normal((3, 8), np.float32)}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"),
             helper.make_node("Cast", ["mask"], ["m"], name="to_float", to=TensorProto.FLOAT),
             helper.make_node("Unsqueeze", ["m", "last"], ["u"], name="widen"),
             helper.make_node("Mul", ["e", "u"], ["y"], name="apply")]
    weights["last"] = np.array([2], np.int64)
    tiny.save(folder / "m.onnx", nodes, weights, inputs=[("ids", ["n", 16], TensorProto.INT64), ("mask", ["n", 16], TensorProto.INT64)])
    log = trtexec("--onnx=m.onnx", "--shapes=ids:8x16,mask:8x16", "--verbose", "--dumpRawBindingsToFile", "--warmUp=0", "--duration=0", "--iterations=1")
    assert "Random values for input ids are integers from 0 to 2, which its consumers accept." in log
    ids = np.fromfile(folder / "ids.input.8.16.Int64.raw", np.int64)
    mask = np.fromfile(folder / "mask.input.8.16.Int64.raw", np.int64)
    assert set(ids) == {0, 1, 2} and set(mask) == {0, 1}
