# SPDX-License-Identifier: Apache-2.0
"""Rows that Polygraphy's users expect, held against Polygraphy itself: the same files and flags give the same exit status, the same verdict lines
and the same numbers. Both run ONNX Runtime, so that nothing but the programs differs."""

import glob
import os
import re
import subprocess
import sys
import tempfile

import conftest
import numpy as np
import onnx
import pytest
import tiny
from onnx import TensorProto, helper

pytest.importorskip("polygraphy")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx_graphsurgeon")
LIBRARIES = [os.environ.get("HONE_ONNXRUNTIME_LIB", ""), *glob.glob(f"{sys.prefix}/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so*")]
pytestmark = pytest.mark.skipif(not any(map(os.path.exists, LIBRARIES)), reason="there is no libonnxruntime.so")
POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?|nan|inf")


def tensor(name, sizes, dtype=TensorProto.FLOAT):
    return name, sizes, dtype


def models(folder):
    """a, b: as everywhere; inf: x / 0; nan: log of what is negative; perm: what shape has two axes exchanged; fold, shapes: for the surgeon."""
    for name, factor in (("a", 1), ("b", 1.001)):
        tiny.save(folder / f"{name}.onnx", [helper.make_node("Mul", ["x", "c"], ["m"], name="mul0"), helper.make_node("Relu", ["m"], ["y"], name="relu0")],
                  {"c": np.array(factor, np.float32)}, [("x", [2, 8])], [("y", [2, 8])], opset=13)
    tiny.save(folder / "inf.onnx", [helper.make_node("Div", ["x", "zero"], ["y"], name="div")], {"zero": np.float32(0)}, [("x", [4])], [("y", [4])], opset=13)
    tiny.save(folder / "nan.onnx", [helper.make_node("Neg", ["x"], ["n"], name="neg"), helper.make_node("Log", ["n"], ["y"], name="log")], {}, [("x", [4])], [("y", [4])],
              opset=13)
    tiny.save(folder / "flat.onnx", [helper.make_node("Reshape", ["x", "s"], ["y"], name="flat")], {"s": np.array([16], np.int64)}, [("x", [2, 8])], [("y", [16])], opset=13)
    tiny.save(folder / "dynamic.onnx", [helper.make_node("Relu", ["x"], ["y"], name="relu")], {}, [("x", ["n", 3])], [("y", ["n", 3])], opset=13)
    weights = {name: np.ones((1, 3), np.float32) for name in "abd"}
    tiny.save(folder / "fold.onnx", [helper.make_node("Add", ["a", "b"], ["c"], name="add0"), helper.make_node("Add", ["c", "d"], ["e"], name="add1"),
                                     helper.make_node("Add", ["input", "e"], ["output"], name="add2")], weights, [("input", [1, 3])], [("output", [1, 3])], opset=11)
    sizes = [1, 3, 4, 4]
    tiny.save(folder / "affine.onnx", [helper.make_node("Mul", ["a", "x1"], ["mul_out"], name="mul"), helper.make_node("Add", ["mul_out", "b"], ["add_out"], name="add"),
                                       helper.make_node("Add", ["x0", "add_out"], ["output"], name="sum")],
              {"a": np.ones((1, 3, 1, 1), np.float32), "b": np.ones((1, 3, 1, 1), np.float32)}, [("x0", sizes), ("x1", sizes)], [("output", sizes)], opset=13)
    random = np.random.default_rng(2)
    tiny.save(folder / "conv.onnx", [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], {"w": random.standard_normal((16, 8, 3, 3), np.float32)},
              [("x", [1, 8, 6, 6])], [("y", [1, 16, 4, 4])], opset=13)


@pytest.fixture(scope="module")
def place():
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as name:
        folder = conftest.pathlib.Path(name)
        models(folder)
        for program in (ours, theirs):
            for model, flags in (("a", []), ("a_all", ["--onnx-outputs", "*"]), ("inf", []), ("nan", []), ("flat", [])):
                source = model.split("_")[0]
                assert program(folder, "run", f"{source}.onnx", "--onnxrt", *flags, "--save-outputs", f"{program.__name__}_{model}.json")[0] == 0
        yield folder


def ours(folder, *words):
    done = subprocess.run([conftest.BIN / "polygraphy", *words], cwd=folder, env={**os.environ, "HONE_ONNXRUNTIME_LIB": next(filter(os.path.exists, LIBRARIES))},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=600, check=False)
    return done.returncode, done.stdout


def theirs(folder, *words):
    done = subprocess.run([sys.executable, "-c", POLYGRAPHY, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=600, check=False)
    return done.returncode, done.stdout


VERDICTS = ("Minimum Required Tolerance", "PSNR:", "SNR:", "L2 Norm:", "Cosine Similarity:", "Absolute Difference | Stats", "Relative Difference | Stats",
            "Comparing Output:", "Mismatched outputs", "All outputs matched", "Difference exceeds", "Difference is within", "Accuracy Summary", "Errors detected in output",
            "Inf Detected", "NaN Detected")


def verdicts(said):
    """Of each kind of line the numbers and quoted names, in order."""
    found = {kind: [] for kind in VERDICTS}
    for line in said.splitlines():
        for kind in VERDICTS:
            if kind not in line:
                continue
            text = line.split(kind, 1)[1]
            if kind == "Accuracy Summary":
                text = text.split("Passed:")[-1]
            found[kind].append(([float(number) for number in NUMBER.findall(re.sub(r"'[^']*'", "", text))] if kind not in ("Inf Detected", "NaN Detected") else [],
                                re.findall(r"'([^']*)'", text) if "outputs" in kind else []))
    return found


def assert_alike(one, other, kinds):
    for kind in kinds:
        assert len(one[kind]) == len(other[kind]), (kind, one[kind], other[kind])
        for (numbers, names), (more, others) in zip(one[kind], other[kind]):
            assert names == others, kind
            assert numbers == pytest.approx(more, rel=1e-3, nan_ok=True), (kind, numbers, more)


SIMPLE = ("Minimum Required Tolerance", "Absolute Difference | Stats", "Relative Difference | Stats", "Mismatched outputs", "All outputs matched", "Difference exceeds",
          "Difference is within", "Accuracy Summary")
RUNS = {
    "row 8": (["b.onnx", "--load-outputs", "KEPT_a.json"], SIMPLE),
    "row 9 mean": (["b.onnx", "--load-outputs", "KEPT_a.json", "--check-error-stat", "mean", "--atol", "1e-3"], SIMPLE),
    "row 9 median": (["b.onnx", "--load-outputs", "KEPT_a.json", "--check-error-stat", "median"], SIMPLE),
    "row 9 max": (["b.onnx", "--load-outputs", "KEPT_a.json", "--check-error-stat", "max", "--rtol", "1e-2"], SIMPLE),
    "row 9 quantile": (["b.onnx", "--load-outputs", "KEPT_a.json", "--check-error-stat", "quantile", "--error-quantile", "0.5", "--rtol", "2e-3"], SIMPLE),
    "row 10": (["b.onnx", "--onnx-outputs", "*", "--load-outputs", "KEPT_a_all.json", "--rtol", "1e-2", "m:1e-6", "--atol", "1e-9"], SIMPLE),
    "row 10 atol": (["b.onnx", "--onnx-outputs", "*", "--load-outputs", "KEPT_a_all.json", "--atol", "m:1e-2", "y:1e-6"], SIMPLE),
    "row 5 mark all": (["a.onnx", "--onnx-outputs", "mark", "all", "--load-outputs", "KEPT_a_all.json"], SIMPLE),
    "row 7 excluded": (["a.onnx", "--onnx-outputs", "*", "--onnx-exclude-outputs", "m", "--load-outputs", "KEPT_a.json"], SIMPLE),
    "row 11 psnr": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "psnr"], ("PSNR:", "Accuracy Summary")),
    "row 11 psnr fails": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "psnr", "--psnr-threshold", "70"], ("PSNR:", "Accuracy Summary")),
    "row 11 snr": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "snr"], ("SNR:", "Accuracy Summary")),
    "row 11 l2": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "l2"], ("L2 Norm:", "Accuracy Summary")),
    "row 11 cosine": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "cosine_similarity"], ("Cosine Similarity:", "Accuracy Summary")),
    "row 11 both": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "distance_metrics", "--l2-threshold", "0.1"], ("L2 Norm:", "Cosine Similarity:")),
    "row 12": (["b.onnx", "--onnx-outputs", "*", "--load-outputs", "KEPT_a_all.json", "--fail-fast"], ("Minimum Required Tolerance", "Comparing Output:")),
    "row 14 inf": (["inf.onnx", "--validate"], ("Inf Detected", "Errors detected in output")),
    "row 14 nan": (["nan.onnx", "--validate"], ("NaN Detected", "Errors detected in output")),
    "row 14 fine": (["a.onnx", "--validate"], ("Inf Detected", "NaN Detected")),
    "row 15 infinities": (["inf.onnx", "--load-outputs", "KEPT_inf.json"], ("Accuracy Summary",)),
    "row 15 equal": (["inf.onnx", "--load-outputs", "KEPT_inf.json", "--infinities-compare-equal"], ("Accuracy Summary",)),
    "row 15 nans": (["nan.onnx", "--load-outputs", "KEPT_nan.json"], ("Accuracy Summary",)),
    "row 16 shapes": (["a.onnx", "--load-outputs", "KEPT_flat.json"], ("Accuracy Summary",)),
    "row 16 no check": (["a.onnx", "--load-outputs", "KEPT_flat.json", "--no-shape-check"], ("Accuracy Summary",)),
    "row 17": (["b.onnx", "--load-outputs", "KEPT_a.json", "--compare", "indices", "--postprocess", "top-3"], ("Accuracy Summary",)),
    "row 24": (["dynamic.onnx"], ()),
    "row 57 prefix": (["b.onnx", "--load-outputs", "KEPT_a.json", "--check-error", "max"], ()),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("kept", ["ours", "theirs"])
def test_runs_come_to_the_same_verdicts_and_numbers(place, name, kept):
    """On files that either of the two wrote."""
    words, kinds = RUNS[name]
    if kept == "theirs" and not any("KEPT" in word for word in words):
        pytest.skip("reads no file")
    words = ["run", words[0], "--onnxrt", *(word.replace("KEPT", kept) for word in words[1:])]
    (status, said), (expected, other) = ours(place, *words), theirs(place, *words)
    assert "Traceback" not in other, other
    assert status == expected, f"exit {status}, Polygraphy {expected}: {' '.join(words)}\n{said}\n{other}"
    assert_alike(verdicts(said), verdicts(other), kinds)


def graph_of(path):
    graph = onnx.load(path).graph
    return ([(node.op_type, list(node.input), list(node.output)) for node in graph.node], [value.name for value in graph.input], [value.name for value in graph.output],
            sorted(weight.name for weight in graph.initializer))


EDITS = {
    "row 54": ["extract", "affine.onnx", "--inputs", "x1:auto:auto", "--outputs", "add_out:auto"],
    "row 56": ["sanitize", "fold.onnx", "--fold-constants"],
    "row 57": ["sanitize", "fold.onnx", "--fold-constant"],
    "row 62": ["sanitize", "a.onnx", "--override-input-shapes", "x:['batch',8]"],
    "row 64": ["insert", "a.onnx", "--inputs", "m", "--outputs", "y", "--op", "LeakyRelu", "--name", "lr", "--attrs", "alpha=0.1"],
    "row 77": ["prune", "conv.onnx"],
}


@pytest.mark.parametrize("name", EDITS)
def test_edits_make_the_same_graphs(place, name):
    words = ["surgeon", *EDITS[name]]
    (status, said), (expected, other) = ours(place, *words, "-o", "ours.onnx"), theirs(place, *words, "-o", "theirs.onnx")
    assert status == expected == 0, said + other
    one, two = graph_of(place / "ours.onnx"), graph_of(place / "theirs.onnx")
    assert [node[0] for node in one[0]] == [node[0] for node in two[0]] and one[1:3] == two[1:3]
    values = [{weight.name: onnx.numpy_helper.to_array(weight) for weight in onnx.load(place / file).graph.initializer} for file in ("ours.onnx", "theirs.onnx")]
    assert sorted(map(len, values)) == [len(values[0])] * 2
    if name == "row 77":
        blocks = [(array.transpose(0, 2, 3, 1).reshape(-1, 4) != 0).sum(axis=1) for each in values for array in each.values()]
        assert all(block.max() <= 2 for block in blocks)
    else:
        for left, right in zip(sorted(values[0].values(), key=lambda each: each.tobytes()), sorted(values[1].values(), key=lambda each: each.tobytes())):
            np.testing.assert_array_equal(left, right)


def test_rows_18_19_inputs_are_drawn_alike(place):
    """Of all types and ranges, over iterations."""
    nodes = [helper.make_node("Cast", [name], [f"{name}_out"], to=TensorProto.FLOAT) for name in ("f", "h", "i", "l", "s", "u", "t")]
    kinds = {"f": TensorProto.FLOAT, "h": TensorProto.FLOAT16, "i": TensorProto.INT32, "l": TensorProto.INT64, "s": TensorProto.INT8, "u": TensorProto.UINT8, "t": TensorProto.BOOL}
    tiny.save(place / "types.onnx", nodes, {}, [(name, [3, 5], kind) for name, kind in kinds.items()], [(f"{name}_out", [3, 5]) for name in kinds], opset=13)
    from polygraphy.json import load_json

    words = ["run", "types.onnx", "--onnxrt", "--iterations", "3", "--seed", "7", "--val-range", "[0,1]", "f:[-2,3]", "i:[-5,9]", "l:[0,1000]", "u:[3,200]", "--save-inputs"]
    feeds = []
    for program in (ours, theirs):
        status, said = program(place, *words, f"{program.__name__}_in.json")
        assert status == 0, said
        feeds.append(load_json(str(place / f"{program.__name__}_in.json")))
    assert len(feeds[0]) == len(feeds[1]) == 3
    for one, two in zip(*feeds):
        for name, values in two.items():
            np.testing.assert_array_equal(np.asarray(one[name]), np.asarray(values), err_msg=name)


def test_row_50_sparsity(place):
    theirs(place, "surgeon", "prune", "conv.onnx", "-o", "sparse.onnx")
    for model, kind in (("sparse.onnx", "Found sparse tensor: w"), ("conv.onnx", "Found non-sparse tensor: w")):
        for program in (ours, theirs):
            status, said = program(place, "inspect", "sparsity", model)
            assert status == 0 and kind in said and "1 weight tensor(s) eligible for pruning." in said, said


def test_rows_41_42_model_in_words(place):
    for show in ([], ["--show", "layers"], ["--show", "layers", "attrs", "weights"]):
        (status, said), (_, other) = ours(place, "inspect", "model", "fold.onnx", *show), theirs(place, "inspect", "model", "fold.onnx", *show)
        heads = [re.findall(r"---- .* ----|Node \d+ +\|.*Op: \w+", text) for text in (said, other)]
        assert status == 0 and [re.sub(r" +", " ", head) for head in heads[0]] == [re.sub(r" +", " ", head) for head in heads[1]]


COMMANDS = ["run", "convert", "inspect model", "inspect data", "inspect tactics", "inspect diff-tactics", "inspect sparsity", "check lint", "check accuracy", "surgeon extract", "surgeon sanitize",
            "surgeon insert", "surgeon prune", "surgeon weight-strip", "surgeon weight-reconstruct", "debug build", "debug precision", "debug reduce", "debug repeat", "data merge",
            "data concat", "template trt-network", "template trt-config", "template onnx-gs", "plugin list", "plugin match", "plugin replace", "plugin autotune"]


@pytest.mark.parametrize("command", COMMANDS)
def test_row_119_no_flag_is_unknown(place, command):
    """Every flag that Polygraphy's help has is one of ours."""
    flags = []
    for program in (ours, theirs):
        status, said = program(place, *command.split(), "--help")
        assert status == 0, said
        flags.append(set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", "\n".join(line for line in said.splitlines() if re.match(r"^  -", line)))))
    assert len(flags[1]) >= 4 and not flags[1] - flags[0], sorted(flags[1] - flags[0])


def test_inputs_as_raw_bytes_and_from_a_function(place):
    """--save-input-blob and --data-loader-script: what either program makes of them is the same."""
    (place / "loader.py").write_text("import numpy as np\ndef load_data():\n    for i in range(2):\n        yield {'x': np.full((2, 8), i + 0.5, np.float32)}\n"
                                     "def other():\n    yield {'x': np.ones((2, 8), np.float32)}\n")
    python = {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    for word, count in (("loader.py", 2), ("loader.py:other", 1)):
        for program in (ours, theirs):
            os.environ["PATH"], old = python["PATH"], os.environ["PATH"]
            status, said = program(place, "run", "a.onnx", "--onnxrt", "--data-loader-script", word, "--save-input-blob", f"{program.__name__}_blobs_{count}")
            os.environ["PATH"] = old
            assert status == 0, said
        found = [{str(path.relative_to(place / f"{name}_blobs_{count}")): path.read_bytes() for path in (place / f"{name}_blobs_{count}").rglob("*.bin")}
                 for name in ("ours", "theirs")]
        assert len(found[0]) == count and sorted(found[0].values()) == sorted(found[1].values()), (list(found[0]), list(found[1]))
    assert ours(place, "run", "a.onnx", "--onnxrt", "--data-loader-script", "nowhere.py")[0] == 3
    assert ours(place, "run", "a.onnx", "--onnxrt", "--trt-config-script", "loader.py")[0] == 2
    assert ours(place, "run", "a.onnx", "--tf")[0] == 4
