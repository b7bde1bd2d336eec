# SPDX-License-Identifier: Apache-2.0
"""hone surgeon, continued: what folding leaves, other types, functions, references inside of attributes. The numbers in the tests' names are
rows of docs/companions.md."""

import subprocess
import sys

import conftest
import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from onnx import TensorProto, helper, numpy_helper
from test_surgeon import graph, ops, sizes, weights


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def cast(given, made, to):
    return helper.make_node("Cast", [given], [made], to=to)


@pytest.mark.parametrize("through, back, kept", [(TensorProto.DOUBLE, TensorProto.FLOAT, ["Neg"]), (TensorProto.FLOAT16, TensorProto.FLOAT, ["Cast", "Cast", "Neg"]),
                                                 (TensorProto.DOUBLE, TensorProto.FLOAT16, ["Cast", "Neg"])])
def test_row_56_pairs_of_casts_go_where_no_value_changes(hone, through, back, kept):
    tiny.save(hone.folder / "m.onnx", [cast("x", "a", through), cast("a", "b", back), helper.make_node("Neg", ["b"], ["y"])],
              outputs=[("y", ["n", 4], back)], opset=13)
    hone("surgeon", "sanitize", "m.onnx", "--fold-constants", "-o", "f.onnx", "--check")
    assert ops(hone.folder / "f.onnx") == kept
    x = np.array([[0.1, -3e4, 1e-6, 7]], np.float32)
    for mine, was in zip(session(hone.folder / "f.onnx").run(None, {"x": x}), session(hone.folder / "m.onnx").run(None, {"x": x})):
        np.testing.assert_array_equal(mine, was)


def test_row_56_sizes_are_computed_as_integers(hone):
    """Floor(size * 2) / 2 as exporters write it: what can stay among integers does."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), cast("s", "f", TensorProto.FLOAT), helper.make_node("Mul", ["f", "two"], ["m"]),
             cast("m", "i", TensorProto.INT64), helper.make_node("ConstantOfShape", ["i"], ["y"])]
    tiny.save(hone.folder / "m.onnx", nodes, {"two": np.array([1, 2], np.float32)}, outputs=[("y", ["a", "b"])], opset=13)
    said = hone("surgeon", "sanitize", "m.onnx", "--fold-constants", "--no-fold-shapes", "-o", "f.onnx", "--check")
    assert "2 Cast(s) that change nothing dropped" in said and ops(hone.folder / "f.onnx") == ["Shape", "Mul", "ConstantOfShape"]
    assert weights(hone.folder / "f.onnx").popitem()[1].tolist() == [1, 2]
    assert session(hone.folder / "f.onnx").run(None, {"x": np.zeros((3, 4), np.float32)})[0].shape == (3, 8)


def conditional(path, condition, hands_on):
    """Branches that name tensors as the graph around does, have weights, and hold an If of their own. `hands_on`: outputs that are no node's
    of the branch, or twice the same, which ONNX Runtime refuses."""
    value = helper.make_tensor_value_info
    weight = [numpy_helper.from_array(np.array([2, 2, 2, 2], np.float32), "w")]
    deep = helper.make_graph([helper.make_node("Abs", ["h"], ["t"])], "deep", [], [value("t", 1, None)])
    deeper = helper.make_graph([helper.make_node("Neg", ["h"], ["t"])], "deeper", [], [value("t", 1, None)])
    alias = [] if hands_on else [helper.make_node("Identity", ["h"], ["h2"])]
    then = helper.make_graph([helper.make_node("Mul", ["h", "w"], ["a"]), helper.make_node("If", ["c2"], ["t2"], then_branch=deep, else_branch=deeper),
                              helper.make_node("Add", ["a", "t2"], ["b"]), *alias], "then", [],
                             [value(name, 1, None) for name in (("b", "b", "h") if hands_on else ("b", "a", "h2"))], weight)
    other = helper.make_graph([helper.make_node("Sub", ["h", "w"], ["a"]), helper.make_node("Neg", ["a"], ["z"]), *alias], "else", [],
                              [value(name, 1, None) for name in (("a", "h", "a") if hands_on else ("a", "h2", "z"))], weight)
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(condition))),
             helper.make_node("If", ["c"], ["y", "z", "a"], then_branch=then, else_branch=other, name="choice"), helper.make_node("Neg", ["y"], ["b"])]
    outputs = [(name, ["n", 4]) for name in ("y", "z", "a", "b")]
    return tiny.save(path, nodes, {"c2": np.array(False), "w": np.ones(4, np.float32)}, outputs=outputs, opset=16)


@pytest.mark.parametrize("hands_on", [True, False])
@pytest.mark.parametrize("condition", [True, False])
def test_row_56_ifs_with_a_known_condition_become_their_branch(hone, condition, hands_on):
    conditional(hone.folder / "m.onnx", condition, hands_on)
    said = hone("surgeon", "sanitize", "m.onnx", "--fold-constants", "-o", "f.onnx", "--check")
    assert f"{2 if condition else 1} If(s) with a known condition flattened" in said and "agree in the reference" in said
    onnx.checker.check_model(onnx.load(hone.folder / "f.onnx"), full_check=True)
    assert "If" not in ops(hone.folder / "f.onnx")
    if not hands_on:
        x = np.random.default_rng(2).standard_normal((2, 4)).astype(np.float32)
        for mine, was in zip(session(hone.folder / "f.onnx").run(None, {"x": x}), session(hone.folder / "m.onnx").run(None, {"x": x})):
            np.testing.assert_array_equal(mine, was)
    hone("surgeon", "sanitize", "m.onnx", "--fold-constants", "--no-flatten", "-o", "k.onnx")
    assert "If" in ops(hone.folder / "k.onnx")


def test_row_57_partitioning_is_accepted_and_checked(hone):
    tiny.perceptron(hone.folder / "m.onnx")
    hone("surgeon", "sanitize", "m.onnx", "--fold-constants", "--partitioning", "recursive", "-o", "f.onnx")
    done = hone.run("surgeon", "sanitize", "m.onnx", "--fold-constants", "--partitioning", "some", "-o", "f.onnx")
    assert done.returncode == 2 and "'some' is no partitioning" in done.stdout


def test_row_60_floats_become_fp16(hone):
    tiny.convolutions(hone.folder / "m.onnx")
    said = hone("surgeon", "sanitize", "m.onnx", "--fold-constants", "--fp-to-fp16", "-o", "h.onnx")
    made = graph(hone.folder / "h.onnx")
    assert "node(s) in FP16" in said and {tensor.data_type for tensor in made.initializer} == {TensorProto.FLOAT16}
    assert made.input[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    x = np.random.default_rng(1).standard_normal((2, 3, 16, 16)).astype(np.float32)
    wanted, = session(hone.folder / "m.onnx").run(None, {"x": x})
    found, = session(hone.folder / "h.onnx").run(None, {"x": x.astype(np.float16)})
    np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=2e-2, atol=2e-2)
    done = hone.run("surgeon", "sanitize", "m.onnx", "--fp-to-fp16", "--check", "-o", "h.onnx")
    assert done.returncode == 2 and "--fp-to-fp16 rounds" in done.stdout


def with_function(path, ops_inside, **edits):
    function = helper.make_function("local", "F", ["a"], ["b"], [helper.make_node(op, ["a" if at == 0 else f"t{at - 1}"],
                                    ["b" if at == len(ops_inside) - 1 else f"t{at}"]) for at, op in enumerate(ops_inside)],
                                    [helper.make_opsetid("", edits.get("opset", 17))], edits.get("attributes", ()))
    made = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="local")], "g", [helper.make_tensor_value_info("x", 1, [2])],
                             [helper.make_tensor_value_info("y", 1, [2])])
    functions = [function] * edits.get("count", 1)
    onnx.save(helper.make_model(made, functions=functions, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], ir_version=9), path)


def test_row_79_functions_are_compared(hone):
    with_function(hone.folder / "a.onnx", ["Relu", "Neg"])
    hone("surgeon", "diff", "a.onnx", "a.onnx")
    with_function(hone.folder / "b.onnx", ["Relu", "Abs"])
    done = hone.run("surgeon", "diff", "a.onnx", "b.onnx")
    assert done.returncode == 1 and "b (Abs) in function local::F" in done.stdout and "op Neg -> Abs" in done.stdout
    with_function(hone.folder / "c.onnx", ["Relu", "Neg"], attributes=["alpha"])
    assert "function local::F: its attributes, operator sets or documentation differ" in hone.run("surgeon", "diff", "a.onnx", "c.onnx").stdout
    with_function(hone.folder / "d.onnx", ["Relu", "Neg"], count=0)
    assert "function local::F removed" in hone.run("surgeon", "diff", "a.onnx", "d.onnx").stdout


def test_row_75_references_inside_of_attributes_follow_the_model(hone):
    """A Constant node, one in a body and one in a function, whose elements lie in another file."""
    (hone.folder / "near").mkdir()
    (hone.folder / "near/w.data").write_bytes(np.arange(8, dtype=np.float32).tobytes())

    def constant(name, at):
        tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "w.data"), ("offset", at * 8), ("length", 8)):
            tensor.external_data.add(key=key, value=str(value))
        return helper.make_node("Constant", [], [name], value=tensor)

    value = helper.make_tensor_value_info
    then = helper.make_graph([constant("k", 1), helper.make_node("Add", ["s", "k"], ["p"])], "then", [], [value("p", 1, [2])])
    other = helper.make_graph([helper.make_node("Identity", ["s"], ["q"])], "else", [], [value("q", 1, [2])])
    function = helper.make_function("local", "F", ["a"], ["b"], [constant("k", 2), helper.make_node("Add", ["a", "k"], ["b"])], [helper.make_opsetid("", 17)])
    nodes = [constant("w", 0), helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("If", ["go"], ["h"], then_branch=then, else_branch=other),
             helper.make_node("F", ["h"], ["y"], domain="local")]
    model = helper.make_model(helper.make_graph(nodes, "g", [value("x", 1, [2]), value("go", 9, [])], [value("y", 1, [2])]), functions=[function],
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], ir_version=9)
    (hone.folder / "near/m.onnx").write_bytes(model.SerializeToString())
    (hone.folder / "far").mkdir()
    hone("surgeon", "rename", "near/m.onnx", "s=sum", "-o", "far/m.onnx")
    made = onnx.load(hone.folder / "far/m.onnx", load_external_data=False)
    tensors = [made.graph.node[0].attribute[0].t, made.graph.node[2].attribute[1].g.node[0].attribute[0].t, made.functions[0].node[0].attribute[0].t]
    data = (hone.folder / "far/m.onnx.data").read_bytes()
    for at, tensor in enumerate(tensors):
        entries = {entry.key: entry.value for entry in tensor.external_data}
        assert entries["location"] == "m.onnx.data"
        start = int(entries["offset"])
        assert np.frombuffer(data[start:start + int(entries["length"])], np.float32).tolist() == [2 * at, 2 * at + 1]
    hone("surgeon", "rename", "near/m.onnx", "s=sum", "-o", "near/n.onnx")
    assert onnx.load(hone.folder / "near/n.onnx", load_external_data=False).graph.node[0].attribute[0].t.external_data[0].value == "w.data"
    assert sizes(made.graph.output[0]) == [2]


def gates(path, read_outside=False):
    """Split, then the product of one half and the sigmoid of the other; beside it a sum of the halves."""
    nodes = [helper.make_node("Split", ["x"], ["left", "right"], axis=1, num_outputs=2), helper.make_node("Sigmoid", ["right"], ["gate"]),
             helper.make_node("Mul", ["gate", "left"], ["y"]), helper.make_node("Add", ["right", "left"], ["z"])]
    if read_outside:
        nodes.append(helper.make_node("Neg", ["gate"], ["odd"]))
    outputs = [(name, ["n", 2]) for name in ("y", "z", *(["odd"] if read_outside else []))]
    return tiny.save(path, nodes, outputs=outputs, opset=18)


GATE = "$a, $b = Split($x); Mul($a, Sigmoid($b)); Add($a, $b)"


def test_row_66_patterns_with_several_results(hone):
    gates(hone.folder / "m.onnx")
    hone("surgeon", "replace", "m.onnx", "--pattern", GATE, "--with", "$l, $r = Halve($x); Gate($l, $r); Add($l, $r)", "-o", "r.onnx")
    made = graph(hone.folder / "r.onnx")
    assert [(node.op_type, list(node.output)) for node in made.node] == [("Halve", ["Halve_out", "Halve_out_1"]), ("Gate", ["y"]), ("Add", ["z"])]
    same = "$a, $b = Split($x); $g = Sigmoid($b); Mul($a, $g); Sub($a, Neg($b))"
    with_attributes = same.replace("Split(", "Split[axis=1,num_outputs=2](")
    hone("surgeon", "replace", "m.onnx", "--pattern", GATE, "--with", with_attributes, "-o", "s.onnx", "--check")
    assert sorted(ops(hone.folder / "s.onnx")) == ["Mul", "Neg", "Sigmoid", "Split", "Sub"]


def test_row_66_what_others_read_is_named_or_not_found(hone):
    gates(hone.folder / "m.onnx", read_outside=True)
    done = hone.run("surgeon", "replace", "m.onnx", "--pattern", GATE, "--with", "$l, $r = Halve($x); Gate($l, $r); Add($l, $r)", "-o", "r.onnx")
    assert done.returncode == 2 and "the pattern is nowhere in the model" in done.stdout
    named = "$a, $b = Split($x); $g = Sigmoid($b); Mul($a, $g); Add($a, $b); $g"
    hone("surgeon", "replace", "m.onnx", "--pattern", named, "--with", "$l, $r = Halve($x); Gate($l, $r); Add($l, $r); Soft($r)", "-o", "r.onnx")
    made = graph(hone.folder / "r.onnx")
    assert [(node.op_type, list(node.output)) for node in made.node] == [("Halve", ["Halve_out", "Halve_out_1"]), ("Gate", ["y"]), ("Add", ["z"]),
                                                                        ("Soft", ["gate"]), ("Neg", ["odd"])]


@pytest.mark.parametrize("pattern, by, text", [("Relu($x); Neg($x)", "Relu($x)", "2 result(s), the replacement 1"), ("$x", "Relu($x)", "a pattern is a node"),
                                               ("$t = Relu($x)", "Relu($x)", "a result is expected"), ("$t = $x; Relu($t)", "Relu($x)", "a node is expected"),
                                               ("$t = Relu($x); $t = Neg($x); $t", "Relu($x)", "made already"), ("Split($x)", "Neg($y)", "$y is in the replacement")])
def test_row_66_patterns_that_say_nothing_are_refused(hone, pattern, by, text):
    gates(hone.folder / "m.onnx")
    nodes = [helper.make_node("Split", ["x"], ["y"], num_outputs=1), helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Neg", ["x"], ["n"])]
    tiny.save(hone.folder / "m.onnx", nodes, outputs=[(name, ["n", 4]) for name in ("y", "r", "n")], opset=18)
    done = hone.run("surgeon", "replace", "m.onnx", "--pattern", pattern, "--with", by, "-o", "r.onnx")
    assert done.returncode != 0 and text in done.stdout and not (hone.folder / "r.onnx").exists()


def opened(hone, nodes, data, inputs, outputs, feeds, opset=17):
    """What the model gives on a larger batch once its batch is open, and what it gave batch by batch."""
    tiny.save(hone.folder / "m.onnx", nodes, data, inputs, outputs, opset=opset)
    said = hone("surgeon", "set-dynamic", "m.onnx", "--dim", "x:0=N", "-o", "d.onnx")
    assert "still has fixed sizes" not in said
    onnx.checker.check_model(onnx.load(hone.folder / "d.onnx"), full_check=True)
    fixed, free = session(hone.folder / "m.onnx"), session(hone.folder / "d.onnx")
    (size,) = [value.shape[0] for value in fixed.get_inputs()]
    assert free.get_inputs()[0].shape[0] == "N"
    found = free.run(None, {"x": feeds})
    np.testing.assert_allclose(free.run(None, {"x": feeds[:size]})[0], fixed.run(None, {"x": feeds[:size]})[0], rtol=1e-6)
    return found, [np.concatenate(each) for each in zip(*(fixed.run(None, {"x": feeds[at:at + size]}) for at in range(0, len(feeds), size)))]


def test_row_72_an_expanded_token_follows_the_batch(hone):
    """As in vision transformers: one token is expanded to the batch and put before the others."""
    random = np.random.default_rng(5)
    data = {"token": random.standard_normal((1, 1, 3), np.float32), "shape": np.array([1, 1, 3]), "w": random.standard_normal((3, 3), np.float32)}
    nodes = [helper.make_node("Expand", ["token", "shape"], ["tokens"]), helper.make_node("Concat", ["tokens", "x"], ["all"], axis=1),
             helper.make_node("MatMul", ["all", "w"], ["y"])]
    found, wanted = opened(hone, nodes, data, [("x", [1, 4, 3])], [("y", [1, 5, 3])], random.standard_normal((3, 4, 3), np.float32))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert "shape" not in weights(hone.folder / "d.onnx") and "Shape" in ops(hone.folder / "d.onnx")


def test_row_72_tile_slice_and_constants_follow_the_batch(hone):
    random = np.random.default_rng(6)
    data = {"row": random.standard_normal((1, 3), np.float32), "times": np.array([2, 1]), "starts": np.array([0, 1]), "ends": np.array([2, 3]), "axes": np.array([0, 1]),
            "zeros": np.array([2, 2])}
    nodes = [helper.make_node("Tile", ["row", "times"], ["rows"]), helper.make_node("Concat", ["x", "rows"], ["both"], axis=1),
             helper.make_node("Slice", ["both", "starts", "ends", "axes"], ["cut"]),
             helper.make_node("ConstantOfShape", ["zeros"], ["o"], value=numpy_helper.from_array(np.ones(1, np.float32))),
             helper.make_node("Concat", ["cut", "o"], ["y"], axis=1)]
    found, wanted = opened(hone, nodes, data, [("x", [2, 3])], [("y", [2, 4])], random.standard_normal((6, 3), np.float32))
    np.testing.assert_array_equal(found[0], wanted[0])
    made = weights(hone.folder / "d.onnx")
    assert any(values.tolist() == [np.iinfo(np.int64).max, 3] for values in made.values()), "the slice reaches to the end"
    assert ops(hone.folder / "d.onnx").count("Shape") == 1, "the size is read once"


def test_row_72_numbers_that_only_look_like_the_batch_stay(hone):
    """The features are as many as the batch."""
    random = np.random.default_rng(7)
    data = {"shape": np.array([4, 4]), "column": random.standard_normal((4, 1), np.float32)}
    nodes = [helper.make_node("Expand", ["column", "shape"], ["square"]), helper.make_node("MatMul", ["x", "square"], ["y"])]
    found, wanted = opened(hone, nodes, data, [("x", [4, 4])], [("y", [4, 4])], random.standard_normal((8, 4), np.float32))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert weights(hone.folder / "d.onnx")["shape"].tolist() == [4, 4]


def test_row_72_an_output_that_nothing_opens_is_told(hone):
    tiny.save(hone.folder / "m.onnx", [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=1), helper.make_node("Identity", ["x"], ["y"])],
              outputs=[("s", [1, 1]), ("y", [2, 4])], inputs=[("x", [2, 4])], opset=13)
    assert "output s still has fixed sizes" in hone("surgeon", "set-dynamic", "m.onnx", "--dim", "x:0=N", "-o", "d.onnx")
    assert sizes(graph(hone.folder / "d.onnx").output[1]) == ["N", 4]


def convolution(path, weight, given, opset):
    """Conv of an input of one type and a weight of another."""
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], "g", [helper.make_tensor_value_info("x", given, [1, 2, 4, 4])],
                              [helper.make_tensor_value_info("y", given, [1, 2, 2, 2])], [helper.make_tensor("w", weight, [2, 2, 3, 3], np.ones(36), raw=False)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)


@pytest.mark.parametrize("weight, given, opset, text", [
    (TensorProto.FLOAT, TensorProto.BFLOAT16, 22, "wants operands 0 and 1 to be of one type; they are bf16 and f32"),
    (TensorProto.FLOAT16, TensorProto.FLOAT, 17, "wants operands 0 and 1 to be of one type; they are f32 and f16"),
    (TensorProto.BFLOAT16, TensorProto.BFLOAT16, 17, "takes no bf16 as operand 0 in operator set 17 (from operator set 22 on it does)"),
    (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FN, 22, "takes no f8e4m3fn as operand 0 (put a Cast before it)"),
    (TensorProto.BFLOAT16, TensorProto.BFLOAT16, 22, None)])
def test_row_74_types_that_an_operator_does_not_take_are_refused(hone, weight, given, opset, text):
    convolution(hone.folder / "m.onnx", weight, given, opset)
    done = hone.run("check", "lint", "m.onnx")
    assert done.returncode == (1 if text else 0) and (not text or f"ONNX's Conv {text}" in done.stdout), done.stdout
    try:
        onnx.checker.check_model(onnx.load(hone.folder / "m.onnx"), full_check=True)
        refused = False
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        refused = True
    assert not refused or text, "what ONNX's checker refuses is refused here"


def test_row_74_the_table_of_types_is_onnx_own():
    subprocess.run([sys.executable, conftest.ROOT / "scripts/operand_types.py", "--check"], check=True)
