# SPDX-License-Identifier: Apache-2.0
"""hone.graph beside onnx_graphsurgeon: the same scripts, the same models. The numbers in the tests' names are rows of docs/companions.md."""

import functools
import subprocess
import sys
import warnings

import conftest
import graph_scripts as scripts
import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(conftest.PACKAGE))
import hone  # noqa: E402
import hone.graph as gs  # noqa: E402

onnx_graphsurgeon.logger.G_LOGGER.severity = onnx_graphsurgeon.logger.G_LOGGER.ERROR


def run(model):
    """Every output of ONNX Runtime on values from a seed that is the number of the input."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {}
    for seed, given in enumerate(session.get_inputs()):
        sizes = [size if isinstance(size, int) else 2 for size in given.shape]
        random = np.random.default_rng(seed)
        feeds[given.name] = np.array(3) if given.type == "tensor(int64)" else random.standard_normal(sizes).astype(np.float32)
    return session.run(None, feeds)


def ops(model):
    return [node.op_type for node in model.graph.node]


def sizes(value):
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def weights(model):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def declared(value):
    """GraphSurgeon writes -1 for a size that is open, Hone nothing."""
    kind = value.type.tensor_type
    return value.name, kind.elem_type, kind.HasField("shape") and [None if size == -1 else size or None for size in sizes(value)]


def same(mine, theirs):
    """Models of one meaning, with the same nodes under the same names."""
    onnx.checker.check_model(mine)
    assert ops(mine) == ops(theirs)
    assert [(list(node.input), list(node.output), node.name) for node in mine.graph.node] == \
           [(list(node.input), list(node.output), node.name) for node in theirs.graph.node]
    assert [declared(value) for value in [*mine.graph.input, *mine.graph.output]] == \
           [declared(value) for value in [*theirs.graph.input, *theirs.graph.output]]
    assert {name: values.tolist() for name, values in weights(mine).items()} == {name: values.tolist() for name, values in weights(theirs).items()}
    for mine_is, theirs_is in zip(run(mine), run(theirs)):
        np.testing.assert_array_equal(mine_is, theirs_is)


SAME = ["example_01", "example_02", "example_03", "example_04", "example_05", "example_06", "example_07", "example_08", "example_09", "example_11",
        "add_a_node", "loop_with_outer_values", "sort_shuffled", "copy_and_edit", "subgraph_model"]


@pytest.mark.parametrize("script", SAME)
def test_row_68_scripts_come_to_the_same_model(script):
    make = getattr(scripts, script)
    same(make(gs), make(onnx_graphsurgeon))


def test_row_68_nothing_but_numpy_is_needed(tmp_path):
    code = ("import sys; sys.modules['onnx'] = None; sys.path.insert(0, sys.argv[1]); import numpy as np, hone.graph as gs\n"
            "x, y = (gs.Variable(name, np.float32, (2,)) for name in 'xy')\n"
            "graph = gs.Graph([gs.Node('Relu', inputs=[x], outputs=[y])], [x], [y])\n"
            "gs.save(graph, 'made.onnx'); assert gs.import_onnx('made.onnx').nodes[0].op == 'Relu'")
    subprocess.run([sys.executable, "-c", code, str(conftest.PACKAGE)], cwd=tmp_path, check=True)
    onnx.checker.check_model(onnx.load(tmp_path / "made.onnx"))


def test_row_68_a_batch_is_opened_and_the_output_says_so():
    model = scripts.example_10(gs)
    assert weights(model).keys() == weights(scripts.example_10(onnx_graphsurgeon)).keys() and [-1, 21632] in [v.tolist() for v in weights(model).values() if v.ndim == 1]
    graph = gs.import_onnx(model).infer_shapes()
    assert graph.outputs[0].shape == ["N", 10] and graph.outputs[0].dtype == np.float32
    assert [output.shape for output in run(gs.export_onnx(graph))] == [(2, 10)]


def test_row_68_outputs_without_a_type_are_refused():
    x = gs.Variable("x", np.float32, (1,))
    graph = gs.Graph([gs.Node("Relu", inputs=[x], outputs=[y := gs.Variable("y")])], [x], [y])
    with pytest.raises(gs.GraphError, match="inputs and outputs need a type: y"):
        gs.export_onnx(graph)
    assert gs.export_onnx(graph, do_type_check=False).graph.output[0].name == "y"


def test_row_68_two_tensors_of_one_name_are_refused():
    x = gs.Variable("x", np.float32, (1,))
    nodes = [gs.Node("Relu", inputs=[x], outputs=[gs.Variable("y", np.float32)]) for _ in range(2)]
    with pytest.raises(gs.GraphError, match="two tensors are called y"):
        gs.export_onnx(gs.Graph(nodes, [x], [nodes[0].outputs[0]]))


def test_row_60_a_cycle_is_told_with_its_nodes():
    graph = gs.import_onnx(scripts.subgraph_model(gs))
    for node, name in zip(graph.nodes, ("first", "second", "third")):
        node.name = name
    graph.nodes[0].inputs.append(graph.nodes[1].outputs[0])
    with pytest.raises(gs.GraphError, match="cycle: (first -> second -> first|second -> first -> second)"):
        graph.toposort()


def test_row_58_shapes_are_folded():
    mine = scripts.fold_shapes(gs)
    assert ops(mine) == ["Reshape", "Reshape"] == ops(scripts.fold_shapes(onnx_graphsurgeon))
    assert sorted(values.tolist() for values in weights(mine).values()) == [[2, 3, 20], [120]]
    for mine_is, theirs_is in zip(run(mine), run(scripts.fold_shapes(onnx_graphsurgeon))):
        np.testing.assert_array_equal(mine_is, theirs_is)


def test_row_59_large_results_stay():
    x, y = gs.Variable("x", np.float32, (1 << 16,)), gs.Variable("y", np.float32, (1 << 16,))
    graph = gs.Graph(inputs=[x], outputs=[y], opset=13)
    large = graph.layer(op="Expand", inputs=[np.ones(1, np.float32), np.array([1 << 16])], outputs=["large"])[0]
    graph.layer(op="Add", inputs=[x, large], outputs=[y])
    graph.fold_constants(size_threshold=1 << 10).cleanup()
    assert [node.op for node in graph.nodes] == ["Expand", "Add"]
    graph.fold_constants(should_exclude_node=lambda node: node.op == "Expand").cleanup()
    assert [node.op for node in graph.nodes] == ["Expand", "Add"]
    graph.fold_constants().cleanup()
    assert [node.op for node in graph.nodes] == ["Add"] and graph.nodes[0].inputs[1].values.shape == (1 << 16,)


def test_row_56_a_known_condition_becomes_its_branch():
    mine, theirs = scripts.flatten_condition(gs), scripts.flatten_condition(onnx_graphsurgeon)
    onnx.checker.check_model(mine, full_check=True)
    assert ops(mine) == ops(theirs) == ["Relu", "Mul", "Neg"]
    np.testing.assert_array_equal(run(mine)[0], run(theirs)[0])


def test_row_56_a_branch_that_hands_on_what_is_around_it():
    """Its output is no node's of its own, and it is both outputs."""
    x, a, b = gs.Variable("x", np.float32, (2,)), gs.Variable("a", np.float32, (2,)), gs.Variable("b", np.float32, (2,))
    inner = gs.Variable("a", np.float32, (2,))  # the name of an outer tensor
    branch = gs.Graph([gs.Node("Neg", inputs=[x], outputs=[inner])], [], [inner, inner], name="then", opset=16)
    other = gs.Graph([], [], [x, x], name="else", opset=16)
    for condition, wanted in ((True, ["Neg", "Identity"]), (False, ["Identity", "Identity"])):
        graph = gs.Graph([gs.Node("If", attrs={"then_branch": branch, "else_branch": other},
                                  inputs=[gs.Constant("c", np.array([condition]))], outputs=[a, b])], [x], [a, b], opset=16).copy()
        model = gs.export_onnx(graph.fold_constants().cleanup().toposort())
        onnx.checker.check_model(model, full_check=True)
        assert ops(model) == wanted
        given = np.random.default_rng(0).standard_normal(2).astype(np.float32)
        for output in run(model):
            np.testing.assert_array_equal(output, -given if condition else given)


def casts(through, back, op=None):
    x, y = gs.Variable("x", np.int64, (3,)), gs.Variable("y", np.int64, (3,))
    graph = gs.Graph(inputs=[x], outputs=[y], opset=13)
    middle = graph.layer(op="Cast", inputs=[x], outputs=["middle"], attrs={"to": through})[0]
    middle.dtype = through
    if op:
        middle = graph.layer(op=op, inputs=[middle, np.array([2], through)], outputs=["computed"])[0]
    after = graph.layer(op="Cast", inputs=[middle], outputs=["after"], attrs={"to": back})[0]
    graph.layer(op="Neg", inputs=[after], outputs=[y])
    graph.nodes[-1].outputs[0].dtype = back
    return [node.op for node in graph.fold_constants().cleanup().nodes]


def test_row_56_pairs_of_casts_go_where_nothing_is_lost():
    assert casts(np.float32, np.int64) == ["Cast", "Cast", "Neg"], "2^24 + 1 is no float"
    assert casts(np.int32, np.int64) == ["Cast", "Cast", "Neg"]
    assert casts(np.float32, np.int64, "Mul") == ["Mul", "Neg"]
    assert casts(np.float32, np.int64, "Div") == ["Cast", "Div", "Cast", "Neg"], "7 / 2 * 2 is 7 in floats alone"
    x, y = gs.Variable("x", np.float16, (3,)), gs.Variable("y", np.float16, (3,))
    graph = gs.Graph(inputs=[x], outputs=[y], opset=13)
    wide = graph.layer(op="Cast", inputs=[x], outputs=["wide"], attrs={"to": np.float32})[0]
    graph.layer(op="Neg", inputs=graph.layer(op="Cast", inputs=[wide], outputs=["narrow"], attrs={"to": np.float16}), outputs=[y])
    assert [node.op for node in graph.fold_constants().cleanup().nodes] == ["Neg"]
    assert graph.nodes[0].inputs[0] is x


def test_row_73_functions():
    model, theirs = scripts.example_11(gs), scripts.example_11(onnx_graphsurgeon)
    assert len(model.functions) == 1 and len(model.functions[0].node) == 12 and ops(model).count("SelfAttention") == 4
    assert {opset.domain: opset.version for opset in model.opset_import} == {"": 18, "onnx_graphsurgeon": 1}
    assert sorted(model.functions[0].attribute) == sorted(theirs.functions[0].attribute)
    read = gs.import_onnx(model)
    function, = read.functions
    assert function.unique_id == ("onnx_graphsurgeon", "SelfAttention") and function.attrs["Wq"] is None and function.attrs["transpose_perm"] == [0, 2, 1]
    assert gs.export_onnx(read) == model, "read and written again"
    function.nodes.reverse()
    read.toposort()
    np.testing.assert_array_equal(run(gs.export_onnx(read))[0], run(theirs)[0])


@pytest.mark.parametrize("dtype, number", [(ml_dtypes.bfloat16, TensorProto.BFLOAT16), (ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E4M3FN)])
def test_row_74_types_that_numpy_lacks(dtype, number):
    model = scripts.example_12(gs, dtype)
    assert model.graph.initializer[0].data_type == model.graph.input[0].type.tensor_type.elem_type == number
    read = gs.import_onnx(model)
    assert read.inputs[0].dtype == dtype and (read.nodes[0].inputs[1].values == np.full((5, 3, 3, 3), 0.5, dtype)).all()


@pytest.mark.parametrize("word", ["int4", "uint4", "float4_e2m1fn", "int2", "uint2", "bool", "complex64", "float16"])
def test_row_74_elements_are_packed_as_files_hold_them(word):
    dtype = getattr(ml_dtypes, word, None) or np.dtype(word)
    values = np.array([0, 1, 1, 0, 1], dtype)
    y = gs.Variable("y", dtype, (5,))
    model = gs.export_onnx(gs.Graph([gs.Node("Identity", inputs=[gs.Constant("w", values)], outputs=[y])], [], [y], opset=25))
    np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), values)
    if word != "complex64":
        np.testing.assert_array_equal(gs.import_onnx(model).nodes[0].inputs[0].values, values)
    assert gs.export_onnx(gs.import_onnx(model)) == model


def rich_model():
    """All that a round trip may lose: documentation, metadata, an unknown domain, attributes of each kind, bodies, sequences."""
    node = helper.make_node("Odd", ["x", "", "w"], ["a", ""], name="odd", domain="com.elsewhere", doc_string="what it does", number=3, real=0.1, text="t",
                            numbers=[1, 2], reals=[0.5], texts=["a", "b"], tensor=numpy_helper.from_array(np.arange(3), "t"), none_at_all=[0.25])
    node.metadata_props.add(key="pkg", value="module.layer")
    next(each for each in node.attribute if each.name == "text").doc_string = "of an attribute"
    body = helper.make_graph([helper.make_node("Add", ["a", "w2"], ["b"], doc_string="inside")], "then", [], [helper.make_tensor_value_info("b", 1, [3])],
                             [numpy_helper.from_array(np.ones(3, np.float32), "w2")], doc_string="of a body")
    other = helper.make_graph([helper.make_node("Identity", ["a"], ["b2"])], "else", [], [helper.make_tensor_value_info("b2", 1, [3])])
    choice = helper.make_node("If", ["go"], ["y"], then_branch=body, else_branch=other)
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node, choice], "rich", [value("x", 1, ["batch", None, 3], doc_string="an input"), value("go", 9, []), value("w", 1, [2])],
                              [value("y", 1, None)], [numpy_helper.from_array(np.ones(2, np.float32), "w"), numpy_helper.from_array(np.ones(2), "nobody reads")],
                              doc_string="of the graph", value_info=[value("w", 1, [2]), value("a", 1, [3], doc_string="of a value")])
    graph.input.append(helper.make_tensor_sequence_value_info("list", 1, [2]))
    graph.metadata_props.add(key="k", value="v")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.elsewhere", 2)], doc_string="of the model",
                              producer_name="somebody", model_version=7)
    model.metadata_props.add(key="author", value="me")
    return model


def test_row_75_what_nobody_edits_stays():
    model = rich_model()
    graph = gs.import_onnx(model)
    assert gs.export_onnx(graph) == model
    assert gs.export_onnx(graph.copy()) == model
    odd = graph.nodes[0]
    odd.attrs["number"], odd.name = 4, "renamed"
    odd.attrs["reals"].append(1.5)
    attributes = {attribute.name: attribute for attribute in model.graph.node[0].attribute}
    attributes["number"].i, model.graph.node[0].name = 4, "renamed"
    attributes["reals"].floats.append(1.5)
    assert gs.export_onnx(graph) == model, "nothing but the edits"


def test_row_75_members_are_those_of_graphsurgeon():
    mine, theirs = (module.import_onnx(rich_model()) for module in (gs, onnx_graphsurgeon))
    assert [tensor.name for tensor in mine.inputs] == [tensor.name for tensor in theirs.inputs]
    assert list(mine.tensors()) == list(theirs.tensors())
    for at in range(2):
        for name in ("op", "name", "domain"):
            assert getattr(mine.nodes[at], name) == getattr(theirs.nodes[at], name)
    for name in ("number", "real", "text", "numbers", "reals", "texts"):
        assert mine.nodes[0].attrs[name] == theirs.nodes[0].attrs[name]
    assert mine.nodes[0].attrs["tensor"].values.tolist() == [0, 1, 2]
    assert (mine.opset, mine.name, mine.doc_string, mine.producer_name, mine.ir_version) == (theirs.opset, theirs.name, theirs.doc_string, "somebody", theirs.ir_version)
    assert mine.inputs[0].shape == theirs.inputs[0].shape and mine.inputs[0].dtype == theirs.inputs[0].dtype
    body = mine.nodes[1].attrs["then_branch"]
    assert body.nodes[0].inputs[0] is mine.nodes[0].outputs[0], "a body reads the tensor around it itself"
    assert list(body.tensors()) == list(theirs.nodes[1].attrs["then_branch"].tensors())


def test_row_68_lists_keep_both_ends_in_step():
    a, b, c = (gs.Variable(name) for name in "abc")
    node, other = gs.Node("Add", inputs=[a, b], outputs=[c]), gs.Node("Relu", inputs=[c])
    assert a.outputs[0] is node and c.inputs[0] is node and node.o() is other and other.i() is node and c.i(1) is b
    node.inputs[0] = c
    assert not a.outputs and [reader.op for reader in c.outputs] == ["Relu", "Add"]
    del node.inputs[0]
    node.inputs += [a, a]
    assert len(a.outputs) == 2 and len(node.inputs) == 3
    node.inputs = [b]
    assert not a.outputs and b.outputs[0] is node and isinstance(node.inputs + [a], list) and not a.outputs
    other.inputs = node.outputs
    assert [reader.op for reader in c.outputs] == ["Relu"] and node.outputs == [c]
    c.inputs.clear()
    assert not node.outputs
    node.inputs.insert(0, c)
    node.inputs[0:2] = [a]
    assert not b.outputs and not [reader for reader in c.outputs if reader is node] and node.inputs.pop() is a and not a.outputs
    with pytest.raises(gs.GraphError, match="did you forget to unpack"):
        gs.Node("Add", inputs=[[a, b]])


def patterns(module):
    """A pattern inside a pattern: Conv, then Relu(Add(_, constant))."""
    inner = module.GraphPattern()
    given = inner.variable()
    inner.set_output_tensors([inner.add("relu", "Relu", inputs=[inner.add("add", "Add", inputs=[given, inner.constant("bias")])])])
    outer = module.GraphPattern()
    given = outer.variable()
    conv = outer.add("conv", "Conv", check_func=lambda node: node.attrs.get("group", 1) == 1, inputs=[given, outer.constant("weight")])
    outer.set_output_tensors([outer.add("tail", inner, inputs=[conv])])
    return outer


def pattern_model(module, read_inside=False, group=1):
    graph = module.Graph(inputs=[module.Variable("x", np.float32, (1, 1, 4, 4))], opset=13)
    conv = graph.layer(op="Conv", inputs=[graph.inputs[0], np.ones((1, 1, 1, 1), np.float32)], outputs=["c"], attrs={"group": group})
    total = graph.layer(op="Add", inputs=[*conv, np.ones(1, np.float32)], outputs=["s"])
    graph.outputs = [*graph.layer(op="Relu", inputs=total, outputs=["r"]), *(graph.layer(op="Neg", inputs=total, outputs=["n"]) if read_inside else [])]
    return graph


@pytest.mark.parametrize("module", [gs, onnx_graphsurgeon], ids=["hone", "graphsurgeon"])
def test_row_78_patterns_find_what_graphsurgeon_finds(module):
    found, = patterns(module).match_all(pattern_model(module))
    assert found.get("conv").op == "Conv" and found.get("tail").get("add").op == "Add" and found["tail"].get("relu").op == "Relu"
    assert [tensor.name for tensor in found.inputs] == ["x"] and [tensor.name for tensor in found.outputs] == ["r_6"]
    assert list(found.constants) == ["weight"] and found["tail"].constants["bias"].name == "onnx_graphsurgeon_constant_3"
    assert patterns(module).match_all(pattern_model(module, read_inside=True)) == []
    assert patterns(module).match_all(pattern_model(module, group=2)) == []


def test_row_78_patterns_branch_and_meet():
    pattern = gs.GraphPattern()
    left, right = pattern.add("split", "Split", inputs=[pattern.variable()], num_output_tensors=2)
    pattern.set_output_tensors([pattern.add("meet", "Mul", inputs=[pattern.add("gate", "Sigmoid", inputs=[right]), left])])
    graph = gs.Graph(inputs=[gs.Variable("x", np.float32, (2, 4))], opset=13)
    out = graph.inputs[0]
    for _ in range(3):
        halves = graph.layer(op="Split", inputs=[out], outputs=["left", "right"])
        graph.layer(op="Sigmoid", inputs=[halves[0]], outputs=["other"])
        gate = graph.layer(op="Sigmoid", inputs=[halves[1]], outputs=["gate"])
        out = graph.layer(op="Mul", inputs=[*gate, halves[0]], outputs=["met"])[0]
    assert pattern.match_all(graph) == [], "the left half is read outside, too"
    for node in [node for node in graph.nodes if node.outputs[0].name.startswith("other")]:
        node.inputs.clear()
        graph.nodes.remove(node)
    assert [found.get("gate").outputs[0].name for found in pattern.match_all(graph)] == [node.outputs[0].name for node in graph.nodes if node.op == "Sigmoid"]
    with pytest.raises(gs.GraphError, match="has a node meet already"):
        pattern.add("meet", "Neg", inputs=[left])


def test_row_80_weights_of_gigabytes_are_referred_to(tmp_path):
    """3 GiB, of a file with holes: half of them in a weight that is cut off. 200 MiB are more than importing numpy takes."""
    size = 3 << 29
    with open(tmp_path / "big.data", "wb") as file:
        file.truncate(2 * size)
    tensors = []
    for at, name in enumerate(("w0", "w1")):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[size // 4], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "big.data"), ("offset", at * size), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["x", "w0"], ["h"]), helper.make_node("Add", ["h", "w1"], ["y"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "big", [value("x", 1, [size // 4])], [value("y", 1, [size // 4])], tensors), ir_version=10), tmp_path / "big.onnx")
    # Of this program alone: ru_maxrss begins with what its parent had.
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import hone.graph as gs\n"
            "graph = gs.import_onnx('big.onnx'); assert graph.nodes[1].inputs[1].shape == [3 << 27]\n"
            "graph.outputs = [graph.nodes[0].outputs[0]]; graph.infer_shapes().fold_constants().cleanup(); gs.save(graph, 'cut.onnx')\n"
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))")
    done = subprocess.run([sys.executable, "-c", code, str(conftest.PACKAGE)], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 200 << 10
    cut = onnx.load(tmp_path / "cut.onnx", load_external_data=False).graph
    assert [tensor.name for tensor in cut.initializer] == ["w0"] and cut.initializer[0].external_data[0].value == "big.data"


def test_row_117_layers_cost_the_same_however_many_there_are():
    """Calls are counted, no time is taken."""

    def calls(count):
        made = 0

        def seen(frame, event, argument):
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(seen)
        try:
            graph = gs.Graph(inputs=[gs.Variable("x", np.float32, (1,))])
            out = graph.inputs[0]
            for _ in range(count):
                out = graph.layer(op="Add", inputs=[out, np.ones(1, np.float32)], outputs=["o"])[0]
            out.dtype, graph.outputs = np.float32, [out]
            gs.export_bytes(graph)
        finally:
            sys.setprofile(None)
        return made

    few, many = calls(200), calls(800)
    assert many < 4.2 * few


def test_errors_say_what_to_do(tmp_path):
    (tmp_path / "no.onnx").write_bytes(b"no model")
    for wrong in (tmp_path / "no.onnx", b"\x08", tmp_path / "missing.onnx"):
        with pytest.raises(hone.Error):
            gs.import_onnx(wrong)
    with pytest.raises(gs.GraphError, match="is no model"):
        gs.import_onnx(3)
    with pytest.raises(gs.GraphError, match="array of numpy"):
        gs.Constant("c", [1, 2])
    with pytest.raises(AttributeError, match="registered for the operator sets"):
        scripts.register(gs)
        gs.Graph(opset=12).activation()
    graph = gs.import_onnx(scripts.subgraph_model(gs))
    graph.nodes[0].attrs["odd"] = object()
    with pytest.raises(gs.GraphError, match="attribute odd cannot be written"):
        gs.export_onnx(graph)


def in_cpp(folder, case, *given):
    """The model that tests/capi/use_graph.cpp makes."""
    done = subprocess.run([conftest.UNIT / "use_graph", case, "cpp.onnx", *given], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    model = onnx.load(folder / "cpp.onnx")
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("case", ["example_01", "example_02", "example_07", "example_09"])
def test_row_68_models_from_scratch_in_cpp(folder, case):
    made, wanted = in_cpp(folder, case), getattr(scripts, case)(gs)
    assert sorted(ops(made)) == sorted(ops(wanted))
    for mine, theirs in zip(run(made), run(wanted)):
        np.testing.assert_array_equal(mine, theirs)


def test_rows_66_78_patterns_in_cpp(folder):
    scripts.register(gs)
    graph = gs.Graph(inputs=[gs.Variable("input", np.float32, (4, 4))], opset=13)
    low = graph.min_out(graph.identity_out(graph.inputs[0]), np.array(6, np.float32))
    graph.outputs = [graph.identity_out(graph.max_out(low, np.array(0, np.float32)))]
    graph.outputs[0].to_variable(np.float32, (4, 4))
    gs.save(graph, folder / "before.onnx")
    made = in_cpp(folder, "edit", "before.onnx")
    assert ops(made) == ["Identity", "Clip", "Identity"]
    np.testing.assert_array_equal(run(made)[0], run(gs.export_onnx(graph))[0])


def test_rows_56_73_folding_functions_and_bodies_in_cpp(folder):
    folded = in_cpp(folder, "fold")
    assert ops(folded) == ["Add"] and weights(folded)["e"].tolist() == [[3, 3, 3]]
    x = np.random.default_rng(0).standard_normal(2).astype(np.float32)
    np.testing.assert_allclose(run(in_cpp(folder, "functions"))[0], (x * 2 + 1) * 3 + 1, rtol=1e-6)
    model = in_cpp(folder, "bodies")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for go, wanted in ((True, np.exp(np.maximum(x, 0))), (False, np.maximum(x, 0))):
        np.testing.assert_allclose(session.run(None, {"x": x, "go": np.array(go)})[0], wanted, rtol=1e-6)
    in_cpp(folder, "failures")


def test_the_document_is_true(folder, monkeypatch, capsys):
    """Every block of Python in docs/graph-api.md, one after the other."""
    text = (conftest.ROOT / "docs/graph-api.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) == 11
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], name="product"), helper.make_node("Relu", ["m"], ["h"], name="clip"),
             helper.make_node("Identity", ["h"], ["i"], name="nothing"), helper.make_node("Add", ["b", "b"], ["c"]), helper.make_node("Mul", ["i", "c"], ["y"])]
    value = helper.make_tensor_value_info
    constant = [numpy_helper.from_array(np.full(size, 2, np.float32), name) for name, size in (("w", (4, 8)), ("b", (8,)))]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [value("x", 1, ["n", 4])], [value("y", 1, ["n", 8])], constant),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    monkeypatch.chdir(folder)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/graph-api.md", "exec"), names)  # noqa: S102
    assert [node.op for node in names["graph"].nodes] == ["MatMul", "LeakyRelu", "Mul"]
    assert ops(onnx.load("part.onnx")) == ["Add", "Mul"]
    assert sizes(onnx.load("made.onnx").graph.output[0]) == ["batch", 8] and "onnx_graphsurgeon_node" in capsys.readouterr().out
    product = np.maximum(np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32) @ np.ones((4, 8), np.float32), 0)
    np.testing.assert_allclose(run(onnx.load("function.onnx"))[0], 3 * product / (1 + np.exp(-product)), rtol=1e-5)


@functools.cache
def node_cases():
    """ONNX's own node cases with their models: every operator, each kind of attribute, bodies, functions, sequences."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return [(case, onnx.load(f"{case.model_dir}/model.onnx") if case.model is None else case.model) for case in cases]


def test_row_75_onnx_own_models_are_read_and_written_as_they_are():
    count = 0
    for case, model in node_cases():
        graph = gs.import_onnx(model)
        assert gs.export_onnx(graph, do_type_check=False) == model, case.name
        assert gs.export_onnx(graph.copy(), do_type_check=False) == model, f"{case.name}, copied"
        count += 1
    assert count > 1500


def test_row_56_folding_leaves_what_onnx_own_models_compute():
    """Each case's inputs become constants: where everything is folded, the result is the case's own."""
    folded = 0
    for case, model in node_cases()[::7]:
        if len(model.graph.node) != 1 or case.data_sets is None:
            continue
        inputs, outputs = case.data_sets[0]
        if not all(isinstance(each, np.ndarray) for each in [*inputs, *outputs]):
            continue
        graph = gs.import_onnx(model)
        for tensor, values in zip(list(graph.inputs), inputs):
            tensor.to_constant(values)
        graph.inputs = []
        results = list(graph.outputs)
        graph.outputs = [gs.Variable(f"last_{at}", tensor.dtype, tensor.shape) for at, tensor in enumerate(results)]
        graph.nodes.extend(gs.Node("Identity", inputs=[tensor], outputs=[last]) for tensor, last in zip(results, graph.outputs))
        graph.fold_constants(should_exclude_node=lambda node: node.op == "Identity").cleanup()
        for tensor, wanted in zip(results, outputs):
            if isinstance(tensor, gs.Constant):
                folded += 1
                assert tensor.values.shape == wanted.shape and tensor.values.dtype == wanted.dtype, case.name
                if wanted.dtype.kind == "f":
                    np.testing.assert_allclose(tensor.values, wanted, rtol=1e-3, atol=1e-5, err_msg=case.name)
    assert folded > 100


def test_row_73_functions_are_folded_and_cleaned():
    a, b = gs.Variable("a", np.float32), gs.Variable("b", np.float32)
    function = gs.Function("F", domain="mine", inputs=[a], outputs=[b], opset=17)
    three = function.layer(op="Add", inputs=[np.ones(2, np.float32), np.full(2, 2, np.float32)], outputs=["three"])[0]
    function.layer(op="Neg", inputs=[three], outputs=["dead"])
    function.layer(op="Mul", inputs=[a, three], outputs=[b])
    x = gs.Variable("x", np.float32, (2,))
    graph = gs.Graph(inputs=[x], opset=17, functions=[function])
    graph.outputs = graph.F(inputs=[x])
    graph.outputs[0].dtype, graph.outputs[0].shape = np.float32, (2,)
    before = run(gs.export_onnx(graph))[0]
    graph.fold_constants().cleanup()
    assert [node.op for node in function.nodes] == ["Mul"] and function.nodes[0].inputs[1].values.tolist() == [3, 3]
    np.testing.assert_array_equal(run(gs.export_onnx(graph))[0], before)


def test_errors_about_names_that_are_no_text():
    model = bytearray(scripts.subgraph_model(gs).SerializeToString())
    model[model.index(b"Mul")] = 0xEC
    graph = gs.import_onnx(bytes(model).replace(b"x1", b"\xffx"))  # read with what stands for the bytes that are none
    assert graph.nodes[0].op.startswith("\ufffd")
    damaged = bytes(model).replace(b"mul_out", b"\xec\xff\xfful_o")[:-3]
    with pytest.raises(hone.Error):
        gs.import_onnx(damaged)
