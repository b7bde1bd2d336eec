# SPDX-License-Identifier: Apache-2.0
"""hone surgeon, inspect model, inspect sparsity and check lint. The numbers in the tests' names are rows of docs/companions.md."""

import json
import subprocess
import sys

import conftest
import numpy as np
import onnx
import pytest
import tiny
from inference import reference_session
from onnx import TensorProto, helper, numpy_helper

IMAGE = [1, 3, 224, 224]


def subgraphs(path):
    """Y = x0 + (a * x1 + b)."""
    small = {name: np.full(IMAGE, value, np.float32) for name, value in (("a", 2), ("b", 1))}
    return tiny.save(path, [helper.make_node("Mul", ["a", "x1"], ["mul_out"]), helper.make_node("Add", ["mul_out", "b"], ["add_out"]),
                            helper.make_node("Add", ["x0", "add_out"], ["Y"])], small, [("x0", IMAGE), ("x1", IMAGE)], [("Y", IMAGE)], opset=11)


def constants(path):
    """output = input + ((a + b) + d)."""
    return tiny.save(path, [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Add", ["c", "d"], ["e"]),
                            helper.make_node("Add", ["input", "e"], ["output"])], {name: np.ones((1, 3), np.float32) for name in "abd"},
                     [("input", [1, 3])], [("output", [1, 3])], opset=11)


def scaled(path):
    """y = relu(x * 1)."""
    return tiny.save(path, [helper.make_node("Mul", ["x", "c"], ["m"], name="mul0"), helper.make_node("Relu", ["m"], ["y"], name="relu0")],
                     {"c": np.array(1, np.float32)}, [("x", [2, 8])], [("y", [2, 8])], opset=13)


def graph(path):
    return onnx.load(path).graph


def ops(path):
    return [node.op_type for node in graph(path).node]


def sizes(value):
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def weights(path):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph(path).initializer}


def test_rows_41_42_inspect_shows_header_nodes_attributes_and_weights(hone):
    constants(hone.folder / "model.onnx")
    said = hone("inspect", "model", "model.onnx")
    for text in ("==== ONNX Model ====", "ONNX Opset: 11", "3 Initializer(s)", "3 Node(s)"):
        assert text in said
    assert "Node 0" not in said
    shown = hone("inspect", "model", "model.onnx", "--show", "layers", "attrs", "weights")
    assert "Node 0    |  [Op: Add]" in shown and "[[1. 1. 1.]]" in shown and "Initializer | a [dtype=float32, shape=(1, 3)] | Values:" in shown
    old = hone("inspect", "model", "model.onnx", "--mode=full")
    assert old.splitlines()[0].startswith("[W] --mode is the old spelling") and old.split("\n", 1)[1] == shown
    tiny.convolutions(hone.folder / "conv.onnx")
    assert "---- Attributes ----" in (said := hone("inspect", "model", "conv.onnx", "--show", "layers", "attrs")) and "conv0.pads = [1, 1, 1, 1]" in said


def test_row_43_inspect_shows_plans(hone):
    tiny.perceptron(hone.folder / "model.onnx")
    hone("build", "model.onnx", "--min", "x:1x4", "--opt", "x:2x4", "--max", "x:8x4")
    said = hone("inspect", "model", "model.plan", "--show", "layers")
    for text in ("1 Engine Input(s)", "1 Engine Output(s)", "min=(1, 4), opt=(2, 4), max=(8, 4)", "---- Memory ----", "Tactic: ", "Layer(s) Per Profile"):
        assert text in said


def test_row_45_inspect_as_json(hone):
    tiny.convolutions(hone.folder / "model.onnx")
    found = json.loads(hone.answer("inspect", "model", "model.onnx", "--json"))
    assert found["ops"]["Conv"] == 2 and found["flops"] > 0
    assert found["parameters"] == sum(int(values.size) for values in weights(hone.folder / "model.onnx").values())


def test_rows_50_77_pruned_weights_are_sparse(hone):
    tiny.convolutions(hone.folder / "model.onnx")
    assert "Found non-sparse tensor: w1" in hone("inspect", "sparsity", "model.onnx")
    hone("surgeon", "prune", "model.onnx", "-o", "pruned.onnx")
    found = json.loads(hone.answer("inspect", "sparsity", "pruned.onnx", "--json"))
    assert {row["name"]: row["sparse"] for row in found if not row["skipped"]} == {"w1": True, "w2": True}
    assert [row["name"] for row in found if row["skipped"]] == ["w0"], "three channels are no multiple of four"
    after = weights(hone.folder / "pruned.onnx")["w1"]
    groups = np.moveaxis(after, 1, -1).reshape(-1, 4)
    assert (np.count_nonzero(groups, axis=1) == 2).all()


def faulty(path):
    """Two products of sizes that do not fit, a node that reads one of them, and two inputs, one node that do nothing."""
    value = helper.make_tensor_value_info
    made = helper.make_graph([helper.make_node("MatMul", ["A", "B"], ["0"], name="MatMul_0"), helper.make_node("Add", ["0", "C"], ["1"], name="Add_1"),
                              helper.make_node("MatMul", ["C", "D"], ["2"], name="MatMul_2"), helper.make_node("Relu", ["C"], ["y"], name="Relu_3"),
                              helper.make_node("Relu", ["unused"], ["z"], name="Relu_4")], "",
                             [value(name, TensorProto.FLOAT, dims) for name, dims in (("A", [1, 3]), ("B", [4, 4]), ("C", [4, 4]), ("D", [5, 4]), ("unused", [1]))],
                             [value("1", TensorProto.FLOAT, None), value("2", TensorProto.FLOAT, None), value("y", TensorProto.FLOAT, [4, 4])])
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)]), path)


def test_rows_51_52_lint_names_faulty_nodes_with_their_shapes(hone):
    faulty(hone.folder / "bad.onnx")
    done = hone.run("check", "lint", "bad.onnx", "-o", "report.json")
    assert done.returncode == 1 and "MatMul_0: [1,3] x [4,4]" in done.stdout
    report = json.loads((hone.folder / "report.json").read_text())
    assert report["summary"]["failing"] == ["MatMul_0", "MatMul_2"] and report["summary"]["passing"] == ["Relu_3", "Relu_4"]
    levels = [(entry["level"], entry["message"]) for entry in report["lint_entries"]]
    assert ("exception", "Field 'name' of 'graph' is required to be non-empty.") in levels
    assert [text for level, text in levels if level == "warning"] == ["Input: 'unused' does not affect outputs, can be removed.",
                                                                      "Node: 'Relu_4' does not affect outputs, can be removed."]
    scaled(hone.folder / "good.onnx")
    hone("check", "lint", "good.onnx", "-o", "good.json")
    assert json.loads((hone.folder / "good.json").read_text()) == {"summary": {"passing": ["mul0", "relu0"], "failing": []}, "lint_entries": []}


def test_row_53_lint_without_the_weights(hone):
    tiny.perceptron(hone.folder / "inside.onnx")
    hone("surgeon", "copy", "inside.onnx", "-o", "model.onnx", "--save-external-data=w.data", "--external-data-size-threshold", "0")
    (hone.folder / "w.data").unlink()
    assert hone.run("check", "lint", "model.onnx").returncode == 1, "the data are missing"
    hone("check", "lint", "model.onnx", "--ignore-external-data")
    model = onnx.load(hone.folder / "model.onnx", load_external_data=False)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5
    onnx.save(model, hone.folder / "wrong.onnx")
    done = hone.run("check", "lint", "wrong.onnx", "--ignore-external-data")
    assert done.returncode == 1 and "dense: [n,5] x [4,8]" in done.stdout


def test_rows_54_55_extract(hone):
    subgraphs(hone.folder / "model.onnx")
    hone("surgeon", "extract", "model.onnx", "--inputs", "x1:auto:auto", "--outputs", "add_out:auto", "-o", "sub.onnx", "--check")
    sub = graph(hone.folder / "sub.onnx")
    assert [node.op_type for node in sub.node] == ["Mul", "Add"] and sorted(t.name for t in sub.initializer) == ["a", "b"]
    assert [(v.name, sizes(v)) for v in (*sub.input, *sub.output)] == [("x1", IMAGE), ("add_out", IMAGE)]
    onnx.checker.check_model(onnx.load(hone.folder / "sub.onnx"), full_check=True)
    hone("surgeon", "extract", "model.onnx", "--inputs", "mul_out:[2,3,4,4]:float32", "x0", "-o", "rest.onnx")
    rest = graph(hone.folder / "rest.onnx")
    assert [(v.name, sizes(v)) for v in rest.input] == [("mul_out", [2, 3, 4, 4]), ("x0", IMAGE)]
    wrong = hone.run("surgeon", "extract", "model.onnx", "--inputs", "nope:auto:auto", "-o", "no.onnx")
    assert wrong.returncode == 2 and "Tensor: nope does not exist" in wrong.stdout and "did you mean" in wrong.stdout
    lacking = hone.run("surgeon", "extract", "model.onnx", "--inputs", "x0", "-o", "no.onnx")
    assert lacking.returncode == 2 and "also depend on x1" in lacking.stdout and not (hone.folder / "no.onnx").exists()
    assert hone.run("surgeon", "extract", "none.onnx", "--inputs", "x0", "-o", "no.onnx").returncode == 3


@pytest.mark.parametrize("flag", ["--fold-constants", "--fold-constant"])
def test_rows_56_57_constants_are_folded(hone, flag):
    constants(hone.folder / "model.onnx")
    said = hone("surgeon", "sanitize", "model.onnx", flag, "-o", "folded.onnx", "--check")
    assert "Folding Constants | Pass 1" in said and "Original:     3, After Folding:     1 |     2 Nodes Folded" in said
    assert ops(hone.folder / "folded.onnx") == ["Add"]
    (name, values), = weights(hone.folder / "folded.onnx").items()
    assert name == "e" and np.array_equal(values, np.full((1, 3), 3, np.float32))


def shape_operations(path):
    node = helper.make_node
    nodes = [node("Shape", ["tensor0"], ["s"]), node("ReduceProd", ["s"], ["p"], axes=[0], keepdims=1), node("Reshape", ["tensor0", "p"], ["flat"]),
             node("Gather", ["s", "zero"], ["d0"]), node("Gather", ["s", "one"], ["d1"]), node("Gather", ["s", "two_three"], ["d23"]),
             node("ReduceProd", ["d23"], ["p23"], axes=[0], keepdims=1), node("Concat", ["d0", "d1", "p23"], ["all"], axis=0),
             node("Reshape", ["tensor0", "all"], ["partly"])]
    constant = {"zero": np.array([0]), "one": np.array([1]), "two_three": np.array([2, 3])}
    return tiny.save(path, nodes, constant, [("tensor0", ["a", 3, "b", 5])], [("flat", ["f"]), ("partly", ["g", "h", "i"])], opset=13)


def test_row_58_shapes_are_folded_once_inputs_are_fixed(hone):
    shape_operations(hone.folder / "model.onnx")
    hone("surgeon", "sanitize", "model.onnx", "--override-input-shapes", "tensor0:[2,3,4,5]", "--fold-constants", "-o", "f.onnx", "--check")
    made = graph(hone.folder / "f.onnx")
    assert [node.op_type for node in made.node] == ["Reshape", "Reshape"]
    assert sorted(values.tolist() for values in weights(hone.folder / "f.onnx").values()) == [[2, 3, 20], [120]]
    assert [sizes(output) for output in made.output] == [[120], [2, 3, 20]]
    hone("surgeon", "sanitize", "model.onnx", "--override-input-shapes", "tensor0:[2,3,4,5]", "--fold-constants", "--no-fold-shapes", "-o", "n.onnx")
    assert len(ops(hone.folder / "n.onnx")) == 9


def test_row_59_large_results_stay(hone):
    tiny.save(hone.folder / "model.onnx", [helper.make_node("Expand", ["one", "dims"], ["wide"]), helper.make_node("Mul", ["x", "wide"], ["y"])],
              {"one": np.ones(1, np.float32), "dims": np.array([16 << 20])}, [("x", [1])], [("y", [16 << 20])])
    hone("surgeon", "sanitize", "model.onnx", "--fold-constants", "--fold-size-threshold", "1M", "-o", "kept.onnx")
    assert ops(hone.folder / "kept.onnx") == ["Expand", "Mul"]
    hone("surgeon", "sanitize", "model.onnx", "--fold-constants", "-o", "folded.onnx")
    assert ops(hone.folder / "folded.onnx") == ["Mul"]


def test_row_60_nodes_are_sorted_and_cycles_told(hone):
    tiny.convolutions(hone.folder / "model.onnx")
    model = onnx.load(hone.folder / "model.onnx")
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, hone.folder / "shuffled.onnx")
    hone("surgeon", "sanitize", "shuffled.onnx", "--toposort", "-o", "sorted.onnx", "--check")
    onnx.checker.check_model(onnx.load(hone.folder / "sorted.onnx"), full_check=True)
    tiny.save(hone.folder / "cycle.onnx", [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"], name="second"),
                                           helper.make_node("Relu", ["a"], ["y"], name="outside")])
    done = hone.run("surgeon", "sanitize", "cycle.onnx", "--toposort", "-o", "no.onnx")
    assert done.returncode == 1 and not (hone.folder / "no.onnx").exists()
    (line,) = [line for line in done.stdout.splitlines() if "cycle" in line and "hone surgeon" in line and "Command" not in line]
    assert "first" in line and "second" in line and "outside" not in line


def test_row_61_dead_branches_go(hone):
    tiny.save(hone.folder / "model.onnx", [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Mul", ["x", "w"], ["dead"]),
                                           helper.make_node("Relu", ["dead"], ["deader"])], {"w": np.ones(4, np.float32)})
    hone("surgeon", "sanitize", "model.onnx", "--cleanup", "-o", "clean.onnx", "--check")
    assert ops(hone.folder / "clean.onnx") == ["Relu"] and not weights(hone.folder / "clean.onnx")


def test_row_62_symbolic_input_shapes_reach_the_outputs(hone):
    tiny.save(hone.folder / "model.onnx", [helper.make_node("Identity", ["x"], ["y"])], {}, [("x", [1, 1, 2, 2])], [("y", [1, 1, 2, 2])])
    hone("surgeon", "sanitize", "model.onnx", "--override-input-shapes", "x:['batch',1,2,2]", "-o", "open.onnx")
    made = graph(hone.folder / "open.onnx")
    assert sizes(made.input[0]) == sizes(made.output[0]) == ["batch", 1, 2, 2]


def test_row_63_sizes_that_only_a_run_knows_are_bounded(hone):
    tiny.save(hone.folder / "model.onnx", [helper.make_node("ReduceMax", ["x"], ["limit"], keepdims=0), helper.make_node("Range", ["zero", "limit", "one"], ["y"])],
              {"zero": np.array(0), "one": np.array(1)}, [("x", ["n"])], [("y", None)], dtype=TensorProto.INT64)
    assert "[limit]" in hone("inspect", "model", "model.onnx", "--list-unbounded-dds")
    hone("surgeon", "sanitize", "model.onnx", "--set-unbounded-dds-upper-bound", "1000", "-o", "bounded.onnx")
    assert ops(hone.folder / "bounded.onnx") == ["ReduceMax", "Min", "Range"]
    onnx.checker.check_model(onnx.load(hone.folder / "bounded.onnx"))
    assert "DDS: []" in hone("inspect", "model", "bounded.onnx", "--list-unbounded-dds")
    session = reference_session(hone.folder / "bounded.onnx")
    assert session.run(None, {"x": np.array([5, 3])})[0].tolist() == [0, 1, 2, 3, 4] and session.run(None, {"x": np.array([5000])})[0].size == 1000


def test_row_64_insert_replaces_what_lay_between(hone):
    scaled(hone.folder / "a.onnx")
    hone("surgeon", "insert", "a.onnx", "--inputs", "m", "--outputs", "y", "--op", "LeakyRelu", "--name", "lr", "--attrs", "alpha=0.1", "-o", "i.onnx")
    made = graph(hone.folder / "i.onnx")
    assert [node.op_type for node in made.node] == ["Mul", "LeakyRelu"]
    assert made.node[1].name == "lr" and helper.get_attribute_value(made.node[1].attribute[0]) == pytest.approx(0.1)


def identities(path):
    return tiny.save(path, [helper.make_node("Identity", ["x"], ["m0"]), helper.make_node("FakeNodeToRemove", ["m0"], ["m1"], name="fake"),
                            helper.make_node("Identity", ["m1"], ["y"])], {}, [("x", IMAGE)], [("y", None)])


def test_row_65_a_node_is_taken_out(hone):
    identities(hone.folder / "model.onnx")
    hone("surgeon", "remove", "model.onnx", "--op", "FakeNodeToRemove", "-o", "r.onnx")
    made = graph(hone.folder / "r.onnx")
    assert [node.op_type for node in made.node] == ["Identity", "Identity"] and sizes(made.output[0]) == IMAGE
    onnx.checker.check_model(onnx.load(hone.folder / "r.onnx"), full_check=True)
    unknown = hone.run("surgeon", "remove", "model.onnx", "--op", "FakeNode", "-o", "no.onnx")
    assert unknown.returncode == 2 and "the model has no FakeNode node\n  hint: did you mean" in unknown.stdout


def test_row_66_a_subgraph_is_replaced(hone):
    nodes = [helper.make_node("Identity", ["x"], ["i"]), helper.make_node("Min", ["i", "six"], ["low"]), helper.make_node("Max", ["low", "zero"], ["clipped"]),
             helper.make_node("Identity", ["clipped"], ["y"])]
    tiny.save(hone.folder / "model.onnx", nodes, {"six": np.array(6, np.float32), "zero": np.array(0, np.float32)}, [("x", [3])], [("y", [3])])
    hone("surgeon", "replace", "model.onnx", "--pattern", "Max(Min($x,$hi),$lo)", "--with", "Clip($x,$lo,$hi)", "-o", "c.onnx", "--check")
    made = graph(hone.folder / "c.onnx")
    assert [node.op_type for node in made.node] == ["Identity", "Clip", "Identity"] and list(made.node[1].input)[1:] == ["zero", "six"]
    x = np.array([-1, 3, 9], np.float32)
    np.testing.assert_array_equal(reference_session(hone.folder / "c.onnx").run(None, {"x": x})[0], [0, 3, 6])
    tiny.save(hone.folder / "shared.onnx", [*nodes, helper.make_node("Relu", ["low"], ["z"])], {"six": np.array(6, np.float32), "zero": np.array(0, np.float32)},
              [("x", [3])], [("y", [3]), ("z", [3])])
    assert hone.run("surgeon", "replace", "shared.onnx", "--pattern", "Max(Min($x,$hi),$lo)", "--with", "Clip($x,$lo,$hi)", "-o", "no.onnx").returncode == 2


def test_row_67_a_node_is_added_in_between(hone):
    tiny.save(hone.folder / "model.onnx", [helper.make_node("Identity", ["x"], ["m"]), helper.make_node("Identity", ["m"], ["y"])], {"one": np.ones(4, np.float32)})
    hone("surgeon", "insert", "model.onnx", "--inputs", "m", "one", "--outputs", "m", "--op", "Add", "-o", "a.onnx")
    made = graph(hone.folder / "a.onnx")
    assert [node.op_type for node in made.node] == ["Identity", "Add", "Identity"] and made.node[2].input[0] == made.node[1].output[0]
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(reference_session(hone.folder / "a.onnx").run(None, {"x": x})[0], x + 1)


def test_row_69_neighbours_of_nodes_and_tensors(hone):
    scaled(hone.folder / "a.onnx")
    said = hone("inspect", "model", "a.onnx", "--show", "layers", "attrs", "--neighbours")
    assert "Father nodes: []\n        Son nodes: [relu0]" in said and "Father nodes: [mul0]\n        Son nodes: []" in said
    assert "Tensor m\n        Producer: mul0\n        Consumers: [relu0]\n        Father tensors: [c, x]\n        Son tensors: [y]" in said


def test_row_70_weights_are_exchanged(hone):
    tiny.perceptron(hone.folder / "m.onnx")
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.save(hone.folder / "w.npy", values)
    hone("surgeon", "set-weight", "m.onnx", "w=w.npy", "-o", "n.onnx")
    np.testing.assert_array_equal(weights(hone.folder / "n.onnx")["w"], values)
    np.save(hone.folder / "w.npy", values.reshape(8, 4))
    done = hone.run("surgeon", "set-weight", "m.onnx", "w=w.npy", "-o", "no.onnx")
    assert done.returncode == 1 and "w is [4,8]; the values given are [8,4]" in done.stdout and not (hone.folder / "no.onnx").exists()


def test_row_71_attributes_and_names(hone):
    tiny.convolutions(hone.folder / "m.onnx")
    model = onnx.shape_inference.infer_shapes(onnx.load(hone.folder / "m.onnx"))
    onnx.save(model, hone.folder / "m.onnx")
    hone("surgeon", "set-attr", "m.onnx", "--node", "conv0", "pads=[2,2,2,2]", "-o", "n.onnx")
    made = graph(hone.folder / "n.onnx")
    assert list(made.node[0].attribute[0].ints) == [2, 2, 2, 2]
    assert sizes(next(v for v in made.value_info if v.name == "c0")) == ["n", 16, 18, 18], "inferred anew"
    hone("surgeon", "rename", "m.onnx", "y=scores", "--nodes", "conv0=first", "-o", "r.onnx")
    made = graph(hone.folder / "r.onnx")
    assert made.output[0].name == "scores" and made.node[0].name == "first" and made.node[-1].output[0] == "scores"
    assert hone.run("surgeon", "rename", "m.onnx", "y=x", "-o", "no.onnx").returncode == 1, "the name is taken"


def test_row_72_the_batch_is_left_open(hone):
    random = np.random.default_rng(3)
    print("seed 3")
    data = {"w": random.standard_normal((32, 1, 3, 3), np.float32), "shape": np.array([1, 21632]), "v": random.standard_normal((21632, 10), np.float32)}
    tiny.save(hone.folder / "model.onnx", [helper.make_node("Conv", ["input_1", "w"], ["c"]), helper.make_node("Reshape", ["c", "shape"], ["flat"]),
                                           helper.make_node("MatMul", ["flat", "v"], ["y"])], data, [("input_1", [1, 1, 28, 28])], [("y", [1, 10])])
    hone("surgeon", "set-dynamic", "model.onnx", "--dim", "input_1:0=N", "-o", "d.onnx")
    made = graph(hone.folder / "d.onnx")
    assert sizes(made.input[0]) == ["N", 1, 28, 28] and sizes(made.output[0]) == ["N", 10]
    assert weights(hone.folder / "d.onnx")["shape"].tolist() == [-1, 21632]
    x = random.standard_normal((4, 1, 28, 28), np.float32)
    one = reference_session(hone.folder / "model.onnx")
    expected = np.concatenate([one.run(None, {"input_1": image[None]})[0] for image in x])
    np.testing.assert_allclose(reference_session(hone.folder / "d.onnx").run(None, {"input_1": x})[0], expected, rtol=1e-4, atol=1e-3)


def annotated(path):
    """A model with everything that a careless tool loses."""
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["taken"], name="inner")], "branch", [], [helper.make_tensor_value_info("taken", 1, None)],
                               doc_string="a body's")
    nodes = [helper.make_node("Strange", ["x"], ["s"], name="strange", domain="my.domain", doc_string="a node's", depth=3),
             helper.make_node("If", ["flag"], ["t"], name="choose", then_branch=branch, else_branch=branch), helper.make_node("Add", ["s", "t"], ["y"])]
    made = helper.make_graph(nodes, "annotated", [helper.make_tensor_value_info("x", 1, [2], doc_string="an input's"), helper.make_tensor_value_info("flag", 9, [])],
                             [helper.make_tensor_value_info("y", 1, [2])], doc_string="the graph's")
    function = helper.make_function("my.domain", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 2)], functions=[function],
                              doc_string="the model's", producer_name="a test", model_version=7)
    helper.set_model_props(model, {"key": "value"})
    node = model.graph.node[0].metadata_props.add()
    node.key, node.value = "scope", "deep"
    onnx.save(model, path)
    return model


def test_row_75_nothing_is_lost(hone):
    model = annotated(hone.folder / "m.onnx")
    with open(hone.folder / "m.onnx", "ab") as file:
        file.write(b"\xfa\x7f\x05later")  # field 2047, which nobody knows
    hone("surgeon", "copy", "m.onnx", "-o", "c.onnx")
    assert (hone.folder / "c.onnx").read_bytes() == (hone.folder / "m.onnx").read_bytes()
    hone("surgeon", "rename", "m.onnx", "x=input", "-o", "r.onnx")
    renamed = onnx.load(hone.folder / "r.onnx")
    assert (renamed.doc_string, renamed.graph.doc_string, renamed.graph.node[0].doc_string) == ("the model's", "the graph's", "a node's")
    assert renamed.metadata_props == model.metadata_props and renamed.graph.node[0].metadata_props == model.graph.node[0].metadata_props
    assert renamed.functions == model.functions and renamed.graph.input[0].doc_string == "an input's"
    assert renamed.graph.node[1].attribute[0].g.node[0].input[0] == "input", "bodies read it by its new name"


def test_row_76_weights_are_stripped_and_reconstructed(hone):
    data = {"w": np.ones((32, 1, 3, 3), np.float32), "shape": np.array([1, 21632]), "v": np.ones((21632, 10), np.float32)}
    path = tiny.save(hone.folder / "m.onnx", [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Reshape", ["c", "shape"], ["flat"]),
                                              helper.make_node("MatMul", ["flat", "v"], ["y"])], data, [("x", [1, 1, 28, 28])], [("y", [1, 10])])
    assert "Finished stripping 2 weights" in hone("surgeon", "weight-strip", "m.onnx", "-o", "s.onnx")
    assert path.stat().st_size > 860_000 and (hone.folder / "s.onnx").stat().st_size < 2048
    assert "Finished reconstructing 2 weights" in hone("surgeon", "weight-reconstruct", "s.onnx", "-o", "r.onnx")
    assert {n: (v.shape, v.dtype) for n, v in weights(hone.folder / "r.onnx").items()} == {n: (v.shape, v.dtype) for n, v in data.items()}
    reference_session(hone.folder / "r.onnx")


def test_row_79_models_are_compared(hone):
    scaled(hone.folder / "a.onnx")
    hone("surgeon", "insert", "a.onnx", "--inputs", "m", "--outputs", "y", "--op", "LeakyRelu", "--name", "lr", "-o", "b.onnx")
    hone("surgeon", "diff", "a.onnx", "a.onnx")
    done = hone.run("surgeon", "diff", "a.onnx", "b.onnx")
    assert done.returncode == 1 and "- relu0 (Relu)" in done.stdout and "+ lr (LeakyRelu)" in done.stdout
    model = onnx.load(hone.folder / "a.onnx")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array(2, np.float32), "c"))
    onnx.save(model, hone.folder / "c.onnx")
    assert "weight c: other values" in hone.run("surgeon", "diff", "a.onnx", "c.onnx").stdout


def large_model(folder, size):
    """y = (x + w0) + w1, each weight `size` floats in a sparse file of holes but for its first and last elements."""
    (folder / "far").mkdir()
    with open(folder / "far/w.data", "wb") as file:
        for at in range(2):
            for index in (0, size - 1):
                file.seek((at * size + index) * 4)
                file.write(np.float32(at + 1 + index % 7).tobytes())
    tensors = []
    for at in range(2):
        tensor = TensorProto(name=f"w{at}", data_type=1, dims=[size], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "w.data"), ("offset", at * size * 4), ("length", size * 4)):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
    value = helper.make_tensor_value_info
    made = helper.make_graph([helper.make_node("Add", ["x", "w0"], ["m"]), helper.make_node("Add", ["m", "w1"], ["y"])], "large",
                             [value("x", 1, [1])], [value("y", 1, [size])], tensors)
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]), folder / "far/m.onnx")


def test_row_80_weights_of_gigabytes_are_copied_by_range(hone):
    size = 400_000_000  # floats of a weight: 3.2 GB in all
    large_model(hone.folder, size)
    command = [conftest.BIN / "hone", "surgeon", "extract", "far/m.onnx", "--inputs", "m", "-o", "near.onnx", "--silent"]
    # A program's peak counts what the process that started it held: the tests' own Python holds 200 MiB.
    small = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-S", "-c", small, *command], cwd=hone.folder, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 200 << 10, "KiB"
    made = onnx.load(hone.folder / "near.onnx", load_external_data=False).graph
    (tensor,) = made.initializer
    entries = {entry.key: entry.value for entry in tensor.external_data}
    assert tensor.name == "w1" and entries == {"location": "near.onnx.data", "offset": "0", "length": str(size * 4)}
    data = np.memmap(hone.folder / "near.onnx.data", np.float32, "r")
    assert data.size == size and data[0] == 2 and data[-1] == 2 + (size - 1) % 7
    hone("surgeon", "copy", "far/m.onnx", "-o", "far/c.onnx", "--silent")
    assert sorted(p.name for p in (hone.folder / "far").iterdir()) == ["c.onnx", "m.onnx", "w.data"], "beside the data they stay where they are"


def test_row_116_long_chains(hone):
    tiny.save(hone.folder / "chain.onnx", [helper.make_node("Relu", [f"n{i - 1}" if i else "x"], [f"n{i}"], name=f"relu{i}") for i in range(3000)], {},
              outputs=[("n2999", None)])
    said = hone("surgeon", "sanitize", "chain.onnx", "--fold-constants", "--cleanup", "--toposort", "-o", "same.onnx")
    assert "Original:  3000, After Folding:  3000 |     0 Nodes Folded" in said and len(ops(hone.folder / "same.onnx")) == 3000


def test_the_surgeon_refuses_with_the_status_that_scripts_ask_for(hone):
    scaled(hone.folder / "a.onnx")
    for words, status, text in ((["surgeon"], 2, "extract"), (["surgeon", "extrakt"], 2, "did you mean extract"), (["surgeon", "copy", "a.onnx"], 2, "-o"),
                                (["surgeon", "copy", "a.onnx", "--bogus"], 2, "there is no flag --bogus"), (["inspect", "model", "none.onnx"], 3, "none.onnx"),
                                (["check", "lint", "none.onnx"], 3, "none.onnx")):
        done = hone.run(*words)
        assert done.returncode == status and text in done.stdout, (words, done.stdout)
    (hone.folder / "broken.onnx").write_bytes(b"\x0a\xff\xff\xff")
    done = hone.run("surgeon", "copy", "broken.onnx", "-o", "no.onnx")
    assert done.returncode == 1 and "not an ONNX model" in done.stdout and not (hone.folder / "no.onnx").exists()
