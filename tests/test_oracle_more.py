# SPDX-License-Identifier: Apache-2.0
"""More rows of docs/companions.md beside Polygraphy itself: folders of iterations, places within a tolerance, lint, surgery, repetition, files of
either program in the hands of the other, models for several devices."""

import json
import os
import re
import stat
import subprocess
import sys

import conftest
import numpy as np
import onnx
import pytest
import test_oracle
import tiny
from onnx import TensorProto, helper
from test_oracle import assert_alike, graph_of, ours, place, theirs, verdicts  # noqa: F401 - place is a fixture

pytest.importorskip("polygraphy")
from polygraphy.json import load_json, save_json  # noqa: E402

pytestmark = test_oracle.pytestmark
HONE_TENSORRT = conftest.BIN.parent / "tensorrt/cudart/libcudart.so"


def on_hone(folder, *words):
    """Polygraphy on Hone's module tensorrt: exit status and output."""
    done = subprocess.run([conftest.BIN / "hone", "trt-env", "--", sys.executable, "-c", test_oracle.POLYGRAPHY, *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", timeout=600, check=False, env={**os.environ, "HONE_TENSORRT_DEVICE": "cpu"})
    return done.returncode, done.stdout


# Runs


@pytest.fixture(scope="module")
def kept(place):  # noqa: F811
    """What either program keeps of three iterations, and of inputs that name places: `straight` and the same with neighbours exchanged."""
    straight = np.arange(16, dtype=np.float32).reshape(2, 8)
    swapped = straight.reshape(2, 4, 2)[:, :, ::-1].reshape(2, 8)
    save_json([{"x": straight}], str(place / "straight.json"))
    save_json([{"x": np.ascontiguousarray(swapped)}], str(place / "swapped.json"))
    for program in (ours, theirs):
        name = program.__name__
        for words in (["--iterations", "3", "--save-inputs", f"{name}_ind", "--save-outputs", f"{name}_outd"],
                      ["--load-inputs", "straight.json", "--save-outputs", f"{name}_straight.json"]):
            status, said = program(place, "run", "a.onnx", "--onnxrt", *words)
            assert status == 0, said
    return place


RUNS = {
    "row 13": (["b.onnx", "--load-inputs", "KEPT_ind", "--load-outputs", "KEPT_outd", "--check-average", "--check-error-stat", "mean", "--rtol", "2e-3"], ()),
    "row 13 fails": (["b.onnx", "--load-inputs", "KEPT_ind", "--load-outputs", "KEPT_outd", "--check-average", "--check-error-stat", "mean", "--rtol", "2e-4"], ()),
    "row 17 exact": (["a.onnx", "--load-inputs", "swapped.json", "--load-outputs", "KEPT_straight.json", "--compare", "indices", "--postprocess", "top-8"],
                     ("Accuracy Summary",)),
    "row 17 neighbours": (["a.onnx", "--load-inputs", "swapped.json", "--load-outputs", "KEPT_straight.json", "--compare", "indices", "--postprocess", "top-8",
                           "--index-tolerance", "1"], ("Accuracy Summary",)),
    "row 18": (["a.onnx", "--load-inputs", "KEPT_ind", "--load-outputs", "KEPT_outd"], ("Accuracy Summary",)),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_runs_on_what_either_program_kept(kept, name, whose):
    words, kinds = RUNS[name]
    words = ["run", words[0], "--onnxrt", *(word.replace("KEPT", whose) for word in words[1:])]
    (status, said), (expected, other) = ours(kept, *words), theirs(kept, *words)
    assert "Traceback" not in other, other
    assert status == expected == (1 if name in ("row 13 fails", "row 17 exact") else 0), f"exit {status}, Polygraphy {expected}\n{said}\n{other}"
    assert_alike(verdicts(said), verdicts(other), kinds)


def test_row_18_folders_hold_the_same_files(kept):
    for kind in ("ind", "outd"):
        names = [sorted(path.name for path in (kept / f"{whose}_{kind}").iterdir()) for whose in ("ours", "theirs")]
        assert names[0] == names[1] == [f"000000000{i}.json" for i in range(3)]
    for i in range(3):
        one, two = (load_json(str(kept / f"{whose}_ind/000000000{i}.json")) for whose in ("ours", "theirs"))
        np.testing.assert_array_equal(np.asarray(one["x"]), np.asarray(two["x"]))


# Lint


def faulty(path):
    """Three nodes whose sizes do not fit, and three inputs that reach no output."""
    value, node = helper.make_tensor_value_info, helper.make_node
    nodes = [node("MatMul", ["A", "B"], ["m0"], name="MatMul_0"), node("Add", ["E", "F"], ["s0"], name="Add_0"), node("MatMul", ["C", "D"], ["m3"], name="MatMul_3"),
             node("Relu", ["E"], ["y"], name="Relu_0")]
    sizes = {"A": [1, 3], "B": [4, 4], "C": [4, 4], "D": [5, 4], "E": [4, 4], "F": [3, 3], "G": [1], "H": [2], "I": [3]}
    graph = helper.make_graph(nodes, "", [value(name, TensorProto.FLOAT, dims) for name, dims in sizes.items()],
                              [value("y", TensorProto.FLOAT, [4, 4]), *(value(name, TensorProto.FLOAT, None) for name in ("m0", "s0", "m3"))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def test_rows_51_52_lint_finds_what_polygraphy_finds(place):  # noqa: F811
    faulty(place / "bad.onnx")
    reports = []
    for program in (ours, theirs):
        status, said = program(place, "check", "lint", "bad.onnx", "-o", f"{program.__name__}_lint.json")
        assert status == 1, said
        reports.append(json.loads((place / f"{program.__name__}_lint.json").read_text()))
        assert program(place, "check", "lint", "a.onnx", "-o", f"{program.__name__}_clean.json")[0] == 0
    assert sorted(reports[0]["summary"]["failing"]) == sorted(reports[1]["summary"]["failing"]) == ["Add_0", "MatMul_0", "MatMul_3"]
    assert reports[0]["summary"]["passing"] == reports[1]["summary"]["passing"] == ["Relu_0"]
    for level in ("warning",):
        found = [sorted(entry["message"] for entry in report["lint_entries"] if entry["level"] == level) for report in reports]
        assert found[0] == found[1] == [f"Input: '{name}' does not affect outputs, can be removed." for name in "GHI"]
    assert all("Field 'name' of 'graph' is required to be non-empty." in json.dumps(report) for report in reports)
    assert not any(json.loads((place / f"{name}_clean.json").read_text())["lint_entries"] for name in ("ours", "theirs"))


# Surgery


def test_row_59_a_threshold_keeps_large_results(place):  # noqa: F811
    tiny.save(place / "wide.onnx", [helper.make_node("Expand", ["one", "dims"], ["wide"], name="e"), helper.make_node("Mul", ["x", "wide"], ["y"], name="m")],
              {"one": np.ones(1, np.float32), "dims": np.array([16 << 20])}, [("x", [1])], [("y", [16 << 20])], opset=13)
    for threshold, kept in (("1M", ["Expand", "Mul"]), ("128M", ["Mul"])):
        for program in (ours, theirs):
            status, said = program(place, "surgeon", "sanitize", "wide.onnx", "--fold-constants", "--fold-size-threshold", threshold, "-o", "less.onnx")
            assert status == 0 and [node.op_type for node in onnx.load(place / "less.onnx").graph.node] == kept, said


def test_row_63_bounds_are_put_where_polygraphy_puts_them(place):  # noqa: F811
    """Its file has the nodes in an order that ONNX's checker refuses."""
    tiny.save(place / "range.onnx", [helper.make_node("ReduceMax", ["x"], ["limit"], keepdims=0, name="max"),
                                     helper.make_node("Range", ["zero", "limit", "one"], ["y"], name="range")], {"zero": np.array(0), "one": np.array(1)},
              [("x", ["n"])], [("y", ["m"])], opset=13, dtype=TensorProto.INT64)
    listed = [program(place, "inspect", "model", "range.onnx", "--list-unbounded-dds") for program in (ours, theirs)]
    assert all(status == 0 and "limit" in said.split("unbounded")[-1] for status, said in listed), listed
    found = {}
    for program in (ours, theirs):
        status, said = program(place, "surgeon", "sanitize", "range.onnx", "--set-unbounded-dds-upper-bound", "1000", "-o", f"{program.__name__}_bounded.onnx")
        assert status == 0, said
        graph = onnx.load(place / f"{program.__name__}_bounded.onnx").graph
        found[program.__name__] = sorted(node.op_type for node in graph.node)
    assert found["ours"] == found["theirs"] == ["Min", "Range", "ReduceMax"]
    onnx.checker.check_model(onnx.load(place / "ours_bounded.onnx"))


def test_row_76_stripped_weights_are_polygraphys(place):  # noqa: F811
    """Either program puts weights back into what the other stripped."""
    data = {"w": np.ones((32, 1, 3, 3), np.float32), "shape": np.array([1, 21632]), "v": np.ones((21632, 10), np.float32)}
    tiny.save(place / "heavy.onnx", [helper.make_node("Conv", ["x", "w"], ["c"], name="c"), helper.make_node("Reshape", ["c", "shape"], ["flat"], name="r"),
                                     helper.make_node("MatMul", ["flat", "v"], ["y"], name="m")], data, [("x", [1, 1, 28, 28])], [("y", [1, 10])], opset=13)
    assert theirs(place, "surgeon", "prune", "conv.onnx", "-o", "few.onnx")[0] == 0
    for strips, rebuilds in ((ours, theirs), (theirs, ours)):
        assert strips(place, "surgeon", "weight-strip", "few.onnx", "-o", "light.onnx")[0] == 0
        assert rebuilds(place, "surgeon", "weight-reconstruct", "light.onnx", "-o", "whole.onnx")[0] == 0
        assert "Found sparse tensor: w" in ours(place, "inspect", "sparsity", "whole.onnx")[1], "what was sparse is again"
        status, said = strips(place, "surgeon", "weight-strip", "heavy.onnx", "-o", "light.onnx")
        assert status == 0 and "Finished stripping 2 weights" in said and (place / "light.onnx").stat().st_size < 2048, said
        status, said = rebuilds(place, "surgeon", "weight-reconstruct", "light.onnx", "-o", "whole.onnx")
        assert status == 0 and "Finished reconstructing 2 weights" in said, said
        weights = {weight.name: onnx.numpy_helper.to_array(weight) for weight in onnx.load(place / "whole.onnx").graph.initializer}
        assert {name: (values.shape, values.dtype) for name, values in weights.items()} == {name: (values.shape, values.dtype) for name, values in data.items()}


# Searches


def test_row_87_repetition_counts_alike(place):  # noqa: F811
    script = place / "flaky.sh"
    script.write_text("#!/bin/sh\necho x >> count\ncp count trace.txt\n[ $(wc -l < count) -ne 3 ]\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    sorted_into = []
    for program in (ours, theirs):
        (place / "count").unlink(missing_ok=True)
        status, said = program(place, "debug", "repeat", "--until", "bad", "--artifacts", "trace.txt", "--art-dir", f"{program.__name__}_kept", "--check", "./flaky.sh")
        assert status == (1 if program is ours else 0) and "Passed: 2/3 | Pass Rate: 66." in said, said
        sorted_into.append({kind: sorted(path.read_text() for path in (place / f"{program.__name__}_kept" / kind).iterdir()) for kind in ("good", "bad")})
    assert sorted_into[0] == sorted_into[1] == {"good": ["x\n", "x\nx\n"], "bad": ["x\nx\nx\n"]}


def test_row_88_replays_of_either_program_are_read_by_the_other(place):  # noqa: F811
    """What they ask is not the same, so answers that fit no question are asked anew; the reduced model is the one that comes without a replay."""
    (place / "check.py").write_text("import onnx, sys\nsys.exit(any(n.op_type == 'Mul' for n in onnx.load('polygraphy_debug.onnx').graph.node))\n")
    check = ["--check", sys.executable, "check.py"]
    for program, other in ((ours, theirs), (theirs, ours)):
        name = program.__name__
        status, said = program(place, "debug", "reduce", "affine.onnx", "-o", f"{name}_red.onnx", "--mode=linear", "--save-debug-replay", f"{name}_replay.json", *check)
        assert status == 0, said
        (place / "polygraphy_debug.onnx").unlink(missing_ok=True)
        status, said = other(place, "debug", "reduce", "affine.onnx", "-o", "again.onnx", "--mode=linear", "--load-debug-replay", f"{name}_replay.json",
                             "--save-debug-replay", "other.json", *check)
        assert status == 0, said
        (place / "polygraphy_debug.onnx").unlink(missing_ok=True)
        assert [node.op_type for node in onnx.load(place / "again.onnx").graph.node] == [node.op_type for node in onnx.load(place / f"{name}_red.onnx").graph.node] == ["Mul"]


@pytest.mark.skipif(not HONE_TENSORRT.exists(), reason="the Python module tensorrt is not built")
def test_row_84_tactic_files_of_either_program_are_read_by_the_other(place):  # noqa: F811
    """Polygraphy reads what --save-tactics wrote and shows the same layers; Hone what Polygraphy recorded."""
    for model, device in (("affine.onnx", "--cpu"), ("conv.onnx", "--cpu")):
        status, said = ours(place, "run", model, device, "--save-tactics", "ours_tactics.json")
        assert status == 0, said
        (status, mine), (expected, other) = ours(place, "inspect", "tactics", "ours_tactics.json"), on_hone(place, "inspect", "tactics", "ours_tactics.json")
        assert status == expected == 0, mine + other
        layers = [re.findall(r"Layer: (.*)\n\s*Algorithm: \(Implementation: (.*), Tactic: (.*)\) \| Inputs", text) for text in (mine, other)]
        assert layers[0] and sorted(layers[0]) == sorted(layers[1])
        status, said = on_hone(place, "run", model, "--trt", "--save-tactics", "theirs_tactics.json")
        assert status == 0, said
        (status, mine), (expected, other) = ours(place, "inspect", "tactics", "theirs_tactics.json"), on_hone(place, "inspect", "tactics", "theirs_tactics.json")
        assert status == expected == 0, mine + other
        assert re.findall(r"Layer: (.*)", mine) and sorted(re.findall(r"Layer: (.*)", mine)) == sorted(re.findall(r"Layer: (.*)", other))
        for good, bad in (("ours_tactics.json", "theirs_tactics.json"), ("theirs_tactics.json", "ours_tactics.json")):
            assert ours(place, "inspect", "diff-tactics", "--good", good, "--bad", bad)[0] == 0


# Several devices


def attention(path, named="sequence_length"):
    """Two layers of attention behind each other, each with projections; the sequence is the second axis."""
    random, node = np.random.default_rng(4), helper.make_node
    nodes, weights, last = [], {}, "x"
    for layer in range(2):
        for part in "qkv":
            weights[f"{part}{layer}_w"] = random.standard_normal((8, 8), np.float32)
            nodes.append(node("MatMul", [last, f"{part}{layer}_w"], [f"{part}{layer}"], name=f"{part}_{layer}"))
        nodes += [node("Transpose", [f"k{layer}"], [f"kt{layer}"], name=f"kt_{layer}", perm=[0, 2, 1]),
                  node("MatMul", [f"q{layer}", f"kt{layer}"], [f"s{layer}"], name=f"scores_{layer}"),
                  node("Softmax", [f"s{layer}"], [f"p{layer}"], name=f"softmax_{layer}", axis=-1),
                  node("MatMul", [f"p{layer}", f"v{layer}"], [f"o{layer}"], name=f"result_{layer}")]
        last = f"o{layer}"
    sizes = [1, named, 8]
    tiny.save(path, nodes, weights, [("x", sizes), ("unused", [2])], [(last, sizes)], opset=17)
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    onnx.save(model, path)


@pytest.mark.parametrize("kind", [[], ["--cp-type", "fused", "--q-shuffle", "0", "2", "1", "--is-causal", "--nb-rank", "2"], ["--no-suggest-io", "--gpus", "4", "--groups", "0", "1"],
                                  ["--reduce-op", "sum", "--root", "0"]])
def test_hints_for_several_devices_are_polygraphys(place, kind):  # noqa: F811
    attention(place / "attention.onnx")
    found = []
    for program in (ours, theirs):
        status, said = program(place, "template", "shard-hints", "attention.onnx", "--k-idx", "2", "--v-idx", "1", *kind, "-o", f"{program.__name__}_hints.json")
        assert status == 0, said
        found.append(json.loads((place / f"{program.__name__}_hints.json").read_text()))
    assert found[0] == found[1]
    assert [layer["q"] for layer in found[0]["attention_layers"]] == ["q0", "q1"]
    assert [each["name"] for each in found[0]["inputs"]] == ([] if "--no-suggest-io" in kind else ["x"])


def shape_of(model):
    """What the graph does, whatever its tensors are called: each node with the path of operators to it, and the attributes of the collectives."""
    producer = {output: node for node in model.graph.node for output in node.output}

    def told(tensor, depth=6):
        node = producer.get(tensor)
        if node is None or depth == 0:
            return "." if node is not None else tensor
        attributes = sorted((attribute.name, str(helper.get_attribute_value(attribute))) for attribute in node.attribute)
        return (node.op_type, attributes, [told(each, depth - 1) for each in node.input])

    return [told(output.name) for output in model.graph.output]


@pytest.mark.parametrize("flags", [["--k-idx", "2", "--v-idx", "1"], ["--cp-type", "fused", "--q-shuffle", "0", "2", "1"]], ids=["native", "fused"])
@pytest.mark.parametrize("whose", ["ours", "theirs", "one shot"])
def test_models_for_several_devices_are_polygraphys(place, flags, whose):  # noqa: F811
    """Each follows hints of either; ours are sorted, and an output keeps its name."""
    attention(place / "attention.onnx")
    if whose != "one shot":
        program = ours if whose == "ours" else theirs
        assert program(place, "template", "shard-hints", "attention.onnx", *flags, "-o", "hints.json")[0] == 0
    how = ["--one-shot", *flags] if whose == "one shot" else ["-s", "hints.json"]
    models = []
    for program in (ours, theirs):
        status, said = program(place, "multi-device", "shard", "attention.onnx", *how, "-o", f"{program.__name__}_shards.onnx")
        assert status == 0, said
        models.append(onnx.load(place / f"{program.__name__}_shards.onnx"))
    assert shape_of(models[0]) == shape_of(models[1])
    assert [output.name for output in models[0].graph.output] == ["o1"]
    seen = {value.name for value in [*models[0].graph.input, *models[0].graph.initializer]}
    for node in models[0].graph.node:
        assert seen.issuperset(filter(None, node.input)), "nodes are sorted"
        seen.update(node.output)


def test_several_devices_what_is_wrong_is_said(place):  # noqa: F811
    attention(place / "attention.onnx")
    assert ours(place, "template", "shard-hints", "attention.onnx", "-o", "hints.json")[0] == 0
    hints = json.loads((place / "hints.json").read_text())
    for change, status, text in (({"parallelism": "TP"}, 2, "TP parallelism, which is not built"), ({"kv_rank": None, "k_seq_len_idx": 7}, 1, "there is none with number 7"),
                                 ({"attention_layers": []}, 1, "none of the 0 attention layer(s)"), ({"inputs": [{"name": "y", "seq_len_idx": 0}]}, 2, "y does not exist"),
                                 ({"inputs": 3}, 3, "holds no hints"), ({"attention_layers": [{"q": "x"}]}, 3, "holds no hints")):
        (place / "wrong.json").write_text(json.dumps({**hints, **change}))
        found, said = ours(place, "multi-device", "shard", "attention.onnx", "-s", "wrong.json", "-o", "no.onnx")
        assert found == status and text in said and not (place / "no.onnx").exists(), (change, found, said)
    for words, text in ((["shard", "attention.onnx", "-o", "no.onnx"], "either --hint or --one-shot"), (["shard", "attention.onnx", "--one-shot", "--cp-type", "odd", "-o", "no.onnx"],
                                                                                                      "there is no such kind"), ([], "which multi-device command?")):
        found, said = ours(place, "multi-device", *words)
        assert found == 2 and text in said, said
    assert ours(place, "template", "shard-hints", "a.onnx", "-o", "none.json")[0] == 0
    assert ours(place, "multi-device", "shard", "a.onnx", "-s", "none.json", "-o", "no.onnx")[0] == 1


@pytest.mark.skipif(not HONE_TENSORRT.exists(), reason="the Python module tensorrt is not built")
def test_networks_in_onnx_form(place):  # noqa: F811
    """--convert-to onnx-like-trt-network: both write what is built, layer by layer, with the model's inputs and outputs."""
    found = []
    for program, name in ((ours, "ours_like.onnx"), (on_hone, "theirs_like.onnx")):
        status, said = program(place, "convert", "affine.onnx", "--convert-to", "onnx-like-trt-network", "-o", name)
        assert status == 0, said
        graph = onnx.load(place / name).graph
        found.append(([value.name for value in graph.input], [value.name for value in graph.output]))
        assert {"mul", "add", "sum"} <= {node.name for node in graph.node}
    assert found[0] == found[1] == (["x0", "x1"], ["output"])
    shown = ours(place, "inspect", "model", "ours_like.onnx", "--show", "layers", "attrs", "weights")[1]
    assert "Op: hone.mul" in shown or "[Op: " in shown
