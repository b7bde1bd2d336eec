# SPDX-License-Identifier: Apache-2.0
"""Commands about files that runs leave, conversions, partitions, patterns, templates, and the name polygraphy. Numbers in the tests' names are rows
of docs/companions.md."""

import glob
import json
import os
import shutil
import subprocess
import sys

import conftest
import numpy as np
import onnx
import pytest
import tiny
from onnx import TensorProto, helper, numpy_helper
from test_compare import LIBRARIES, scaled, with_onnxruntime

POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"


@pytest.fixture
def hone(hone):
    """In a folder with a.onnx and b.onnx, which is a thousandth more."""
    scaled(hone.folder / "a.onnx", 1)
    scaled(hone.folder / "b.onnx", 1.001)
    return hone


def said_by(program, status, *words, **options):
    """What it said; it has to exit with the status."""
    done = program.run(*words, **options)
    assert done.returncode == status, f"exit {done.returncode}, not {status}: {program.name} {' '.join(map(str, words))}\n{done.stdout}"
    return done.stdout


def their(folder, *words):
    """Polygraphy itself: exit status and output."""
    done = subprocess.run([sys.executable, "-c", POLYGRAPHY, *map(str, words)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          timeout=600, check=False)
    return done.returncode, done.stdout


# Files of inputs, outputs and comparisons


def test_data_to_input_merge_and_concat(hone):
    polygraphy = pytest.importorskip("polygraphy.comparator")
    from polygraphy.json import load_json

    hone("run", "a.onnx", "--cpu", "--save-inputs", "in.json", "--save-outputs", "out.json")
    for command in ("to-input", "merge"):
        said_by(hone, 0, "data", command, "in.json", "out.json", "-o", "merged.json")
        (feed,) = load_json(str(hone.folder / "merged.json"))
        assert sorted(feed) == ["x", "y"]
        np.testing.assert_array_equal(feed["x"], np.random.RandomState(1).random_sample((2, 8)).astype(np.float32))
    status, said = their(hone.folder, "data", "merge", "in.json", "out.json", "-o", "theirs.json")
    assert status == 0, said
    (theirs,) = load_json(str(hone.folder / "theirs.json"))
    for name, values in theirs.items():
        np.testing.assert_array_equal(values, feed[name])
    said_by(hone, 0, "data", "concat", "in.json", "in.json", "-o", "two.json")
    assert len(load_json(str(hone.folder / "two.json"))) == 2
    said_by(hone, 0, "run", "a.onnx", "--cpu", "--ref", "--load-inputs", "two.json")
    said_by(hone, 0, "data", "concat", "out.json", "out.json", "-o", "outs.json")
    assert [len(iterations) for _, iterations in polygraphy.RunResults.load(str(hone.folder / "outs.json")).items()] == [2]
    assert "are not of one kind" in said_by(hone, 2, "data", "concat", "in.json", "out.json", "-o", "no.json")
    assert "is overwritten" in said_by(hone, 0, "data", "merge", "in.json", "in.json", "-o", "again.json")
    assert not (hone.folder / "no.json").exists()


def test_row_44_inspect_data(hone):
    hone("run", "a.onnx", "--cpu", "--iterations", "2", "--save-inputs", "in.json", "--save-outputs", "out.json")
    said = said_by(hone, 0, "inspect", "data", "out.json", "--show-values", "--histogram", "--all")
    assert "==== Run Results (1 runners) ====" in said and "---- cpu-0 (2 iterations) ----" in said and "-- Iteration: 1" in said
    assert "y [dtype=float32, shape=(2, 8)] | Stats: mean=0.37695, std-dev=0.25631" in said and "max=0.87812 at (1, 5)" in said
    assert "---- Histogram ----" in said and said.count("| ####") >= 4 and "[0.41702199 " in said
    found = json.loads(hone.answer("inspect", "data", "in.json", "--json", "-"))
    (first,) = found["iterations"]
    assert first[0]["name"] == "x" and first[0]["shape"] == [2, 8] and first[0]["max"] == pytest.approx(0.878117442)
    np.savez(hone.folder / "x.npz", x=np.arange(6, dtype=np.int64).reshape(2, 3))
    np.save(hone.folder / "w.npy", np.ones((3, 200), np.float32))
    assert "x [dtype=int64, shape=(2, 3)] | Stats: mean=2.5" in said_by(hone, 0, "inspect", "data", "x.npz")
    assert "w [dtype=float32, shape=(3, 200)]" in said_by(hone, 0, "inspect", "data", "w.npy") and "..." not in said_by(hone, 0, "inspect", "data", "w.npy", "-s", "-n", "-1")


def test_row_44_the_statistics_are_polygraphys(hone):
    pytest.importorskip("polygraphy")
    hone("run", "b.onnx", "--cpu", "--save-outputs", "out.json", "--save-inputs", "in.json")
    for file in ("out.json", "in.json"):
        status, theirs = their(hone.folder, "inspect", "data", file, "--histogram")
        assert status == 0
        ours = said_by(hone, 0, "inspect", "data", file, "--histogram")
        lines = [[line.strip() for line in said.splitlines() if " | Stats: " in line or "| ##" in line] for said in (ours, theirs)]
        assert len(lines[0]) >= 5 and [line.rstrip() for line in lines[0]] == [line.rstrip() for line in lines[1]]


def test_row_37_accuracy_is_judged_anew(hone):
    hone("run", "a.onnx", "--cpu", "--save-outputs", "a.json")
    metrics = ("--compare", "simple", "l2", "psnr", "snr", "cosine_similarity")
    said_by(hone, 1, "run", "b.onnx", "--cpu", "--load-outputs", "a.json", "--save-accuracy-results", "acc.json", *metrics)
    judge = ("check", "accuracy", "acc.json", "--compare")
    said_by(hone, 1, *judge, "simple")
    assert "Pass Rate: 100.00%" in said_by(hone, 0, *judge, "simple", "--rtol", "1e-2")
    # Both tolerances count element by element: 9e-4 would do absolutely, 1.01e-3 relatively; of each a little less lets some fail.
    for flags, status in ((["--atol", "8.8e-4"], 0), (["--atol", "8.7e-4"], 1), (["--rtol", "1.001e-3"], 0), (["--rtol", "9.99e-4"], 1),
                          (["--atol", "y:8.8e-4"], 0), (["--atol", "z:1"], 1), (["--check-error-stat", "mean", "--atol", "3.8e-4"], 0),
                          (["--check-error-stat", "mean", "--atol", "3.7e-4"], 1), (["--check-error-stat", "median", "--atol", "3.72e-4"], 0),
                          (["--check-average", "--check-error-stat", "max", "--rtol", "2e-3"], 0)):
        said_by(hone, status, *judge, "simple", *flags)
    for metric, good, bad in (("l2", "0.002", "0.001"), ("psnr", "60", "70"), ("snr", "60", "61"), ("cosine_similarity", "0.9", "1.1")):
        flag = f"--{metric.replace('_', '-')}-threshold"
        said_by(hone, 0, *judge, metric, flag, good)
        said_by(hone, 1, *judge, metric, flag, bad)
    said_by(hone, 1, "check", "accuracy", "acc.json", "--rtol", "1e-2")  # l2 was kept, too, and still fails
    said_by(hone, 0, "check", "accuracy", "acc.json", "--rtol", "1e-2", "--l2-threshold", "1", "--save-accuracy-results", "good.json")
    said_by(hone, 0, "check", "accuracy", "good.json")
    assert "has no mean of single elements" in said_by(hone, 2, *judge, "simple", "--check-average")
    assert "holds nothing of the metrics" in said_by(hone, 2, *judge, "indices")
    said = said_by(hone, 0, "inspect", "data", "acc.json")
    assert "==== Accuracy Results (5 comparison(s)) ====" in said and "max_absdiff=0.00087816" in said


@with_onnxruntime
def test_row_37_accuracy_files_fit_both_programs(hone):
    pytest.importorskip("polygraphy")
    env = {"HONE_ONNXRUNTIME_LIB": next(filter(os.path.exists, LIBRARIES))}
    said_by(hone, 0, "run", "a.onnx", "--onnxrt", "--save-outputs", "a.json", env=env)
    metrics = ("--compare", "simple", "l2", "psnr", "cosine_similarity", "indices")
    assert their(hone.folder, "run", "b.onnx", "--onnxrt", "--load-outputs", "a.json", "--save-accuracy-results", "theirs.json", *metrics)[0] == 1
    said_by(hone, 1, "run", "b.onnx", "--onnxrt", "--load-outputs", "a.json", "--save-accuracy-results", "ours.json", *metrics, env=env)
    for flags in (["--check-error-stat", "max", "--rtol", "1e-2"], ["--check-error-stat", "max", "--rtol", "1e-4"], ["--check-error-stat", "mean", "--atol", "3.8e-4"],
                  ["--compare", "l2", "--l2-threshold", "0.1"], ["--compare", "l2"], ["--compare", "psnr", "--psnr-threshold", "66"], ["--compare", "cosine_similarity"]):
        compare = [] if "--compare" in flags else ["--compare", "simple"]
        for file in ("ours.json", "theirs.json"):
            status, theirs = their(hone.folder, "check", "accuracy", file, *compare, *flags)
            assert "Traceback" not in theirs, theirs
            said_by(hone, status, "check", "accuracy", file, *compare, *flags)
    # Element by element Polygraphy refuses its own file; what the largest errors decide is decided, what they do not is refused here, too.
    said_by(hone, 0, "check", "accuracy", "theirs.json", "--compare", "simple", "--rtol", "1e-2")
    assert "element by element" in said_by(hone, 2, "check", "accuracy", "theirs.json", "--compare", "simple", "--rtol", "1e-4")


def test_numbers_that_are_none_are_kept_as_python_reads_them(hone):
    hone("run", "a.onnx", "--cpu", "--save-outputs", "a.json")
    said_by(hone, 0, "run", "a.onnx", "--cpu", "--load-outputs", "a.json", "--compare", "psnr", "simple", "--save-accuracy-results", "same.json")
    kept = json.loads((hone.folder / "same.json").read_text())
    assert kept["lst"][0]["lst"][0][1][0]["y"]["psnr"] == float("inf")
    said_by(hone, 0, "check", "accuracy", "same.json")


# Runs


def test_row_26_results_alone_compare_nothing_unless_there_are_two(hone):
    hone("run", "a.onnx", "--cpu", "--save-outputs", "one.json")
    assert "is the only run" in said_by(hone, 2, "run", "a.onnx", "--load-outputs", "one.json")
    said_by(hone, 0, "run", "a.onnx", "--load-outputs", "one.json", "--validate")
    shutil.copy(hone.folder / "one.json", hone.folder / "two.json")
    assert "Bit for bit the same" in said_by(hone, 0, "run", "a.onnx", "--load-outputs", "one.json", "two.json")


def test_row_4_scripts_have_tolerances_by_output(hone):
    """What exit status the script gives follows from the tolerance of the one output that differs."""
    pytest.importorskip("onnxruntime")
    run = ("run", "a.onnx", "--cpu", "--onnxrt", "--onnx-outputs", "m", "y", "--gen-script", "run.py")
    for tolerances, status in ((["--atol", "1", "y:-1", "--rtol", "1", "y:-1"], 1), (["--atol=-1", "--rtol", "y:1", "m:1"], 0)):
        said_by(hone, 0, *run, *tolerances)
        done = subprocess.run([sys.executable, "run.py"], cwd=hone.folder, env={**os.environ, "PYTHONPATH": str(conftest.PACKAGE)}, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        assert done.returncode == status and "Output: 'm'" in done.stdout, done.stdout


def test_row_4_a_program_in_cpp_compiles_and_runs(hone):
    compiler = shutil.which("g++") or shutil.which("c++")
    libraries = sorted(glob.glob(str(conftest.BIN.parent / "lib/libhone.so*")))
    if not compiler or not libraries:
        pytest.skip("there is no C++ compiler, or no libhone.so in the build")
    said_by(hone, 0, "run", "a.onnx", "--cpu", "--cpu", "--atol", "1e-6", "y:1e-5", "--gen-script", "run.cpp")
    done = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "run.cpp", f"-I{conftest.ROOT}/include", libraries[0], f"-Wl,-rpath,{conftest.BIN.parent}/lib", "-o",
                           "run"], cwd=hone.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    done = subprocess.run(["./run"], cwd=hone.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0 and "PASSED | Output: 'y' | elemwise error" in done.stdout, done.stdout


def test_save_external_data_takes_its_file_as_a_word(hone):
    tiny.save(hone.folder / "w.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], {"w": np.arange(4096, dtype=np.float32)}, [("x", [4096])], [("y", [4096])])
    for words in (["--save-external-data", "weights.bin", "w.onnx"], ["w.onnx", "--save-external-data", "weights.bin"], ["w.onnx", "--save-external-data=weights.bin"]):
        said_by(hone, 0, "surgeon", "copy", *words, "-o", "c.onnx")
        assert (hone.folder / "weights.bin").stat().st_size == 4 * 4096 and (hone.folder / "c.onnx").stat().st_size < 1000
        (hone.folder / "weights.bin").unlink()
    said_by(hone, 0, "surgeon", "copy", "--save-external-data", "w.onnx", "-o", "c.onnx")
    assert (hone.folder / "c.onnx.data").stat().st_size == 4 * 4096


# Conversions


def test_row_39_convert(hone):
    tiny.perceptron(hone.folder / "p.onnx")
    said_by(hone, 0, "convert", "p.onnx", "-o", "p.plan", "--cpu", "--fp16", "--trt-min-shapes", "x:[1,4]", "--trt-opt-shapes", "x:[4,4]", "--trt-max-shapes", "x:[16,4]")
    assert "min=(1, 4), opt=(4, 4), max=(16, 4)" in said_by(hone, 0, "inspect", "model", "p.plan")
    said_by(hone, 0, "run", "p.plan", "--cpu", "--ref", "--input-shapes", "x:[16,4]", "--atol", "1e-2")
    said_by(hone, 0, "convert", "p.onnx", "-o", "engine", "--cpu", "--convert-to", "trt")
    said_by(hone, 0, "inspect", "model", "engine")
    said_by(hone, 0, "convert", "p.onnx", "-o", "marked.onnx", "--onnx-outputs", "h", "y")
    assert [output.name for output in onnx.load(hone.folder / "marked.onnx").graph.output] == ["h", "y"]
    said_by(hone, 0, "convert", "p.onnx", "-o", "half.onnx", "--fp-to-fp16")
    half = onnx.load(hone.folder / "half.onnx")
    assert {weight.data_type for weight in half.graph.initializer} == {TensorProto.FLOAT16}
    said_by(hone, 0, "run", "half.onnx", "--cpu", "--ref", "--atol", "1e-2")
    said_by(hone, 0, "convert", "p.onnx", "-o", "half.plan", "--cpu", "--fp-to-fp16")
    assert not [path.name for path in hone.folder.iterdir() if ".fp16." in path.name]
    for words, status, text in ((("p.onnx", "-o", "p.xyz"), 2, "does not say by its name"), (("p.onnx",), 2, "no file to write"),
                                (("p.onnx", "-o", "p.onnx"), 2, "would overwrite"), (("nothing.onnx", "-o", "p.plan"), 3, "there is no file"),
                                (("p.plan", "-o", "q.onnx"), 3, "plans cannot be converted"), (("p.onnx", "-o", "q.plan", "--convert-to", "tf"), 2, "there is no such form")):
        assert text in said_by(hone, status, "convert", *words), words
    assert not any((hone.folder / name).exists() for name in ("p.xyz", "q.onnx", "q.plan"))


def test_row_39_files_of_frameworks_need_python(hone):
    """Without Python, or without the package in it, a sentence says so; what the package answers is the answer."""
    (hone.folder / "net.keras").write_bytes(b"PK")
    (hone.folder / "saved").mkdir()
    for name in ("net.keras", "saved"):
        assert "there is no python3" in said_by(hone, 4, "convert", name, "-o", "n.onnx", env={"PATH": str(hone.folder)})
    bin_folder, site = hone.folder / "bin", hone.folder / "site/hone"
    bin_folder.mkdir()
    site.mkdir(parents=True)
    (bin_folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (bin_folder / "python3").chmod(0o755)
    env = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": ""}
    assert "lacks the package hone" in said_by(hone, 4, "convert", "net.keras", "-o", "n.onnx", env=env)
    (site / "__init__.py").touch()
    (site / "convert.py").write_text("import shutil, sys\nif 'bad' in sys.argv[1]: sys.exit(4)\nassert sys.argv[2] == '-o'\nshutil.copy('a.onnx', sys.argv[3])\n")
    env["PYTHONPATH"] = str(site.parent)
    said_by(hone, 0, "convert", "net.keras", "-o", "n.onnx", env=env)
    onnx.load(hone.folder / "n.onnx")
    said_by(hone, 0, "convert", "net.keras", "-o", "n.plan", "--cpu", env=env)
    said_by(hone, 0, "inspect", "model", "n.plan")
    (hone.folder / "bad.h5").touch()
    said_by(hone, 4, "convert", "bad.h5", "-o", "bad.plan", env=env)
    assert not [path for path in hone.folder.iterdir() if path.name.startswith(("bad.plan", "n.plan.", "n.onnx."))]


def test_row_40_a_plan_of_a_timing_cache_times_nothing(hone):
    tiny.convolutions(hone.folder / "c.onnx")
    build = ("convert", "c.onnx", "--cpu", "--input-shapes", "x:[1,3,16,16]")
    said_by(hone, 0, *build, "-o", "1.plan", "--save-timing-cache", "t.c")
    assert said_by(hone, 1, *build, "-o", "no.plan", "--error-on-timing-cache-miss")
    for name in ("2.plan", "3.plan"):
        said_by(hone, 0, *build, "-o", name, "--load-timing-cache", "t.c", "--error-on-timing-cache-miss")
    assert (hone.folder / "2.plan").read_bytes() == (hone.folder / "3.plan").read_bytes() and not (hone.folder / "no.plan").exists()


def test_models_in_fp16_wherever_one_is_read(hone):
    tiny.perceptron(hone.folder / "p.onnx")
    run = ("run", "p.onnx", "--cpu", "--ref", "--atol", "1e-2", "--fp-to-fp16")
    said_by(hone, 0, *run, "--save-onnx", "half.onnx", "--save-external-data", "half.bin", "--external-data-size-threshold", "16")
    assert {weight.data_type for weight in onnx.load(hone.folder / "half.onnx").graph.initializer} == {TensorProto.FLOAT16} and (hone.folder / "half.bin").exists()
    said_by(hone, 0, "surgeon", "sanitize", "p.onnx", "--fp-to-fp16", "-o", "half2.onnx")
    assert {weight.data_type for weight in onnx.load(hone.folder / "half2.onnx").graph.initializer} == {TensorProto.FLOAT16}
    said_by(hone, 0, "convert", "p.onnx", "-o", "other.onnx", "--save-external-data", "other.bin", "--external-data-size-threshold", "16")
    assert (hone.folder / "other.bin").stat().st_size >= 128
    (hone.folder / "there").mkdir()
    said_by(hone, 0, "convert", "other.onnx", "-o", "there/moved.onnx")
    said_by(hone, 0, "run", "there/moved.onnx", "--cpu", "--ref", "--atol", "1e-4")


def test_row_35_errors_over_the_size_of_what_is_expected(hone):
    hone("run", "a.onnx", "--cpu", "--save-outputs", "a.json")
    said_by(hone, 1, "run", "b.onnx", "--cpu", "--load-outputs", "a.json", "--save-error-metrics-plot", "plots")
    text = (hone.folder / "plots/y_0_errors.svg").read_text()
    assert text.startswith("<svg") and text.count("<circle") == 32 and "relative error" in text


def test_templates_have_what_flags_say(hone):
    text = hone.answer("template", "trt-config", "--fp16", "--builder-optimization-level", "1", "--trt-min-shapes", "x:[1,4]", "--trt-opt-shapes", "x:[2,4]", "--trt-max-shapes",
                       "x:[8,4]", "-o", "-")
    for line in ("config.set_flag(trt.BuilderFlag.FP16)", "config.builder_optimization_level = 1", 'profile.set_shape("x", (1, 4,), (2, 4,), (8, 4,))'):
        assert line in text
    compile(text, "template", "exec")


# What can be run


def fake(path, declared=True):
    """Identity, Identity, Fake, Identity."""
    names = ["x", "a", "b", "c", "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]], name=f"n{i}") for i, op in enumerate(("Identity", "Identity", "Fake", "Identity"))]
    tiny.save(path, nodes, inputs=[("x", [2, 3])], outputs=[("y", [2, 3])], opset=13)
    if declared:
        model = onnx.load(path)
        model.graph.value_info.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "abc")
        onnx.save(model, path)
    return path


@pytest.mark.parametrize("declared", [True, False])
def test_rows_46_47_partitions(hone, declared):
    fake(hone.folder / "model.onnx", declared)
    said = said_by(hone, 1, "inspect", "capability", "model.onnx", "--backend", "own-cpu", "--with-partitioning", "-o", "dumps")
    (header,) = [line for line in said.splitlines() if line.startswith("Operator")]
    assert [cell.strip() for cell in header.split("|")] == ["Operator", "Count", "Reason", "Nodes"] and "===== Summary =====" in said
    (row,) = [line for line in said.splitlines() if line.startswith("Fake")]
    cells = [cell.strip() for cell in row.split(" | ")]
    assert cells[:2] == ["Fake", "1"] and cells[-1] == "[[2, 3]]"
    assert sorted(path.name for path in (hone.folder / "dumps").iterdir()) == ["results.txt", "supported_subgraph-nodes-0-1.onnx", "supported_subgraph-nodes-3-3.onnx",
                                                                              "unsupported_subgraph-nodes-2-2.onnx"]
    assert (hone.folder / "dumps/results.txt").read_text() in said
    for path in (hone.folder / "dumps").glob("*.onnx"):
        onnx.load(path)
    said_by(hone, 0, "run", "dumps/supported_subgraph-nodes-0-1.onnx", "--cpu", "--ref")
    if declared:
        said_by(hone, 0, "run", "dumps/supported_subgraph-nodes-3-3.onnx", "--cpu", "--ref")
    answer = json.loads(hone.answer("inspect", "capability", "model.onnx", "--json"))
    assert not answer["supported"] and answer["refused"][0]["operator"] == "Fake"


def test_row_47_a_model_that_is_taken_whole_is_one_part(hone):
    tiny.convolutions(hone.folder / "c.onnx")
    said = said_by(hone, 0, "inspect", "capability", "c.onnx", "--with-partitioning")
    assert "All nodes of the model are supported." in said
    (part,) = (hone.folder / "polygraphy_capability_dumps").glob("*.onnx")
    assert part.name == "supported_subgraph-nodes-0-7.onnx"
    said_by(hone, 0, "run", part, "--cpu", "--ref", "--atol", "1e-4")
    assert "with kernels to choose from" in said_by(hone, 0, "inspect", "capability", "c.onnx", "--backend", "own-cpu")
    assert "there is no backend" in said_by(hone, 4, "inspect", "capability", "c.onnx", "--backend", "own-nothing")


def test_row_48_functions_inside(hone):
    """Two operators that nobody has, one of them two functions deep; each with the way to it."""
    inner = helper.make_function("local", "Inner", ["i"], ["o"], [helper.make_node("Fake_2", ["i"], ["o"], name="inner_fake")], [helper.make_opsetid("", 13)])
    outer = helper.make_function("local", "Outer", ["i"], ["o"], [helper.make_node("Fake_1", ["i"], ["t"], name="outer_fake"),
                                                               helper.make_node("Inner", ["t"], ["o"], name="call_inner", domain="local")],
                                 [helper.make_opsetid("", 13), helper.make_opsetid("local", 1)])
    graph = helper.make_graph([helper.make_node("Outer", ["x"], ["y"], name="call_outer", domain="local")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, functions=[outer, inner], opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("local", 1)], ir_version=8),
              hone.folder / "nested.onnx")
    said = said_by(hone, 1, "inspect", "capability", "nested.onnx")
    (header,) = [line for line in said.splitlines() if line.startswith("Stack trace")]
    assert [cell.strip() for cell in header.split("|")] == ["Stack trace", "Operator", "Node", "Reason"]
    rows = [[cell.strip() for cell in line.split("|")[:3]] for line in said.splitlines() if "| Fake_" in line]
    assert rows == [["call_outer", "Fake_1", "call_outer/outer_fake"], ["call_outer", "Fake_2", "call_outer/call_inner/inner_fake"]], said


def test_row_49_the_reason_says_what_would_do(hone):
    tiny.save(hone.folder / "r.onnx", [helper.make_node("Resize", ["x", "", "s"], ["y"], name="resize", mode="cubicc")], {"s": np.array([1, 1, 2, 2], np.float32)},
              [("x", [1, 1, 4, 4])], [("y", [1, 1, 8, 8])], opset=13)
    said = said_by(hone, 1, "inspect", "capability", "r.onnx")
    assert "cubicc" in said and "mode" in said and "linear" in said


# Operators of one's own


def test_templates_run_as_they_are(hone):
    tiny.perceptron(hone.folder / "p.onnx")
    said_by(hone, 0, "template", "onnx-gs", "p.onnx", "-o", "edit.py")
    pytest.importorskip("onnx_graphsurgeon")
    done = subprocess.run([sys.executable, "edit.py"], cwd=hone.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert [node.op_type for node in onnx.load(hone.folder / "p_updated.onnx").graph.node] == ["Gemm", "Relu"]
    assert "import tensorrt as trt" in hone.answer("template", "trt-network", "-o", "-")


def test_templates_of_engines_run_as_they_are(hone):
    if not (conftest.BIN.parent / "tensorrt/cudart/libcudart.so").exists():
        pytest.skip("the Python module tensorrt is not built")
    for kind, words, plan, model in (("trt-network", (), "one.plan", None), ("trt-network", ("a.onnx",), "two.plan", "a.onnx"), ("trt-config", ("b.onnx",), "three.plan", "b.onnx")):
        said_by(hone, 0, "template", kind, *words, "-o", "make.py")
        said_by(hone, 0, "trt-env", "--", sys.executable, "make.py", plan)
        said_by(hone, 0, "run", plan, "--cpu", "--validate")
    said_by(hone, 0, "template", "trt-network", "a.onnx", "--output", "modifyNetwork.py")
    said_by(hone, 0, "convert", "modifyNetwork.py", "--output", "./model.plan", "--model-type=trt-network-script",
            env={"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})
    said_by(hone, 0, "run", "model.plan", "--cpu", "--validate")


# The name polygraphy


def mnist(path):
    """The classifier of the cookbook: two convolutions, two matmuls, ArgMax; input tensor-0 of ['B',1,28,28]."""
    random = np.random.default_rng(3)
    weights = {name: random.standard_normal(shape, np.float32) * np.float32(0.1)
               for name, shape in {"w1": (32, 1, 5, 5), "b1": (32,), "w2": (64, 32, 5, 5), "b2": (64,), "w3": (64 * 7 * 7, 1024), "b3": (1024,), "w4": (1024, 10), "b4": (10,)}.items()}
    weights["shape"] = np.array([-1, 64 * 7 * 7], np.int64)
    steps = [("Conv", ["w1", "b1"], {"pads": [2, 2, 2, 2]}), ("Relu", [], {}), ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
             ("Conv", ["w2", "b2"], {"pads": [2, 2, 2, 2]}), ("Relu", [], {}), ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
             ("Transpose", [], {"perm": [0, 2, 3, 1]}), ("Reshape", ["shape"], {}), ("MatMul", ["w3"], {}), ("Add", ["b3"], {}), ("Relu", [], {}), ("MatMul", ["w4"], {}),
             ("Add", ["b4"], {}), ("Softmax", [], {"axis": 1}), ("ArgMax", [], {"axis": 1, "keepdims": 0})]
    nodes = [helper.make_node(op, [f"tensor-{i}", *more], [f"tensor-{i + 1}"], name=f"{op}-{i}", **attributes) for i, (op, more, attributes) in enumerate(steps)]
    return tiny.save(path, nodes, weights, [("tensor-0", ["B", 1, 28, 28])], [("tensor-15", ["B"], TensorProto.INT64)], opset=13)


SHAPES = ["--trt-min-shapes", "tensor-0:[1,1,28,28]", "--trt-opt-shapes", "tensor-0:[4,1,28,28]", "--trt-max-shapes", "tensor-0:[16,1,28,28]", "--input-shapes",
          "tensor-0:[4,1,28,28]"]


@pytest.fixture
def polygraphy(folder):
    mnist(folder / "model.onnx")
    return conftest.Program(folder, "polygraphy")


@with_onnxruntime
def test_row_119_the_cookbooks_lines_run_word_by_word(polygraphy):
    """The command lines of the tutorial that users type, in order."""
    env = {"HONE_ONNXRUNTIME_LIB": next(filter(os.path.exists, LIBRARIES))}
    both = ["run", "model.onnx", "--onnxrt", "--trt", "--workspace", "1000000000"]
    said = said_by(polygraphy, 0, *both, "--save-engine=model-FP16.plan", "--atol", "1e-3", "--rtol", "1e-3", "--fp16", "--verbose", *SHAPES, env=env)
    assert "Comparing Output: 'tensor-15'" in said and "Passed: 1/1 iterations" in said
    said = said_by(polygraphy, 0, *both, "--save-engine=model-FP32-MarkAll.plan", "--atol", "1e-3", "--rtol", "1e-3", "--verbose", "--onnx-outputs", "mark", "all",
                   "--trt-outputs", "mark", "all", *SHAPES, env=env)
    assert said.count("Comparing Output: ") == 15 and "FAILED" not in said
    said_by(polygraphy, 0, *both, "--save-engine=model-FP32.plan", "--atol", "1e-3", "--rtol", "1e-3", "--verbose", "--gen-script=./polygraphyRun.py", *SHAPES, env=env)
    assert (polygraphy.folder / "polygraphyRun.py").exists()
    said = said_by(polygraphy, 0, "inspect", "model", "model.onnx", "--mode=full")
    assert "Node 0    | Conv-0 [Op: Conv]" in said and "---- Attributes ----" in said
    said_by(polygraphy, 0, "run", "model.onnx", "--trt", "--workspace", "1000000000", "--save-engine=./model.plan", "--save-tactics=./model.tactic",
            "--save-inputs=./model-input.txt", "--save-outputs=./model-output.txt", "--silent", *SHAPES)
    assert "Layer(s) Per Profile" in said_by(polygraphy, 0, "inspect", "model", "model.plan", "--mode=full")
    assert "Layer: " in said_by(polygraphy, 0, "inspect", "tactics", "model.tactic")
    assert "tensor-0 [dtype=float32, shape=(4, 1, 28, 28)] | Stats: " in said_by(polygraphy, 0, "inspect", "data", "model-input.txt")
    assert "tensor-15 [dtype=int64, shape=(4,)]" in said_by(polygraphy, 0, "inspect", "data", "model-output.txt")
    said_by(polygraphy, 0, "inspect", "capability", "model.onnx")
    convert = ["convert", "model.onnx", "--workspace", "1000000000", "--output"]
    said_by(polygraphy, 0, *convert, "./model-FP16.plan", "--fp16", "--verbose", *SHAPES)
    said_by(polygraphy, 0, *convert, "./model-FP32-MarkAll.plan", "--verbose", "--trt-outputs", "mark", "all", *SHAPES)
    said_by(polygraphy, 0, *convert, "./model-FP32-tactic01.plan", "--quiet", "--silent", "--save-tactics", "./model-FP32.tacitc", *SHAPES)
    said_by(polygraphy, 0, *convert, "./model-FP32-tactic02.plan", "--quiet", "--silent", "--load-tactics", "./model-FP32.tacitc", *SHAPES)
    said_by(polygraphy, 0, "surgeon", "sanitize", "model.onnx", "--fold-constant", "-o", "model-foldConstant.onnx")
    assert "does not fail" in said_by(polygraphy, 2, "debug", "reduce", "model.onnx", "--output=./reduced.onnx", "--check", "polygraphy", "convert", "model.onnx",
                                      "-output=./model2.plan")


def test_row_119_the_name_and_its_commands(polygraphy):
    said = said_by(polygraphy, 0, "--help")
    for command in ("run", "convert", "inspect", "check", "surgeon", "template", "debug", "data", "plugin"):
        assert f"\n  {command} " in said
        assert "usage: hone" in said_by(polygraphy, 0, command, "--help")
    assert "trtexec" not in said and "Version: hone " in said_by(polygraphy, 0, "--version")
    assert "no runner is selected" in said_by(polygraphy, 2, "run", "model.onnx")
    assert "there is no command called bench" in said_by(polygraphy, 2, "bench", "model.onnx")
    assert "did you mean surgeon?" in said_by(polygraphy, 2, "surgeo")
    for command in ("inspect", "surgeon", "debug", "data", "plugin", "template", "check"):
        said_by(polygraphy, 2 if command not in ("inspect", "check") else 1, command)


def test_row_120_what_others_dropped_stays(polygraphy):
    hone = conftest.Program(polygraphy.folder, "hone")
    said_by(hone, 0, "run", "model.onnx", "--cpu", "--onnx-outputs", "mark", "all", "--workspace", "1G", "--save-tactics", "t.json", "--save-inputs", "in.json",
            "--input-shapes", "tensor-0:[1,1,28,28]")
    said_by(hone, 0, "data", "to-input", "in.json", "-o", "again.json")
    said_by(hone, 0, "inspect", "tactics", "t.json")
    assert "--mode is the old spelling" in said_by(hone, 0, "inspect", "model", "model.onnx", "--mode=full")
    np.savez(polygraphy.folder / "images.npz", **{"tensor-0": np.random.default_rng(8).random((2, 1, 28, 28), np.float32)})
    said_by(hone, 0, "quantize", "model.onnx", "-o", "q.onnx", "--data=images.npz", "--write-cache=c.cache")
    assert (polygraphy.folder / "c.cache").read_text().startswith("TRT-")
    trtexec = conftest.Program(polygraphy.folder)
    trtexec("--onnx=model.onnx", "--int8", "--calib=c.cache", "--device=cpu", "--saveEngine=q.plan", "--skipInference", "--shapes=tensor-0:2x1x28x28")
    said_by(hone, 0, "debug", "precision", "model.onnx", "--cpu", "--fp16", "--input-shapes", "tensor-0:[1,1,28,28]", "--check", "true")
    said_by(hone, 0, "process", "model.onnx", "out", "shapes=tensor-0:1x1x28x28", "device=cpu")
    assert conftest.Program(polygraphy.folder, "trex").run("summary", "out").returncode in (0, 1)


def test_row_118_nothing_needs_python(hone):
    """No program is on the PATH, and the library of Python is none of hone's."""
    env = {"PATH": "/nowhere", "PYTHONHOME": "/nowhere"}
    tiny.convolutions(hone.folder / "c.onnx")
    np.savez(hone.folder / "c.npz", x=np.random.default_rng(2).random((4, 3, 16, 16), np.float32))
    linked = subprocess.run(["ldd", conftest.BIN / "hone"], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in linked and "python" not in linked
    for words in (["run", "a.onnx", "--cpu", "--ref"], ["inspect", "model", "a.onnx", "--show", "layers"], ["check", "lint", "a.onnx"],
                  ["surgeon", "extract", "a.onnx", "--inputs", "x:auto:auto", "--outputs", "m:auto", "-o", "e.onnx"],
                  ["surgeon", "sanitize", "a.onnx", "--fold-constants", "-o", "f.onnx"],
                  ["debug", "reduce", "a.onnx", "-o", "r.onnx", "--mode=linear", "--fail-regex", "Op: Mul", "--check", "hone", "inspect", "model", "polygraphy_debug.onnx", "--show",
                   "layers"],
                  ["convert", "c.onnx", "--cpu", "-o", "c.plan"], ["report", "c.plan", "-o", "c.html"], ["quantize", "c.onnx", "-o", "q.onnx", "--data=c.npz"]):
        said_by(hone, 0, *words, env=env)
    assert [node.op_type for node in onnx.load(hone.folder / "r.onnx").graph.node] == ["Mul"] and "<html" in (hone.folder / "c.html").read_text()


def test_inspect_model_shows_a_page_an_engine_and_values(hone):
    said = said_by(hone, 0, "inspect", "model", "a.onnx", "--visual", "--save-visual", "a.html")
    assert "a.html: 2 nodes" in said and "==== ONNX Model ====" in said and "mul0" in (hone.folder / "a.html").read_text()
    said_by(hone, 0, "inspect", "model", "a.onnx", "--visual")
    assert (hone.folder / "view.html").read_text() == (hone.folder / "a.html").read_text()
    said = said_by(hone, 0, "inspect", "model", "a.onnx", "--convert-to", "trt", "--show", "layers")
    assert "==== Hone Engine ====" in said and "Tactic: " in said
    assert "--convert-to knows no 'tf'" in said_by(hone, 2, "inspect", "model", "a.onnx", "--convert-to", "tf")
    said_by(hone, 0, "run", "a.onnx", "--cpu", "--save-engine", "a.plan", "--save-outputs", "out.json")
    assert "    y: float32 (2, 8), mean=" in said_by(hone, 0, "inspect", "model", "a.plan", "--show", "layers", "--combine-tensor-info", "out.json")
    assert "out.npz" in said_by(hone, 3, "inspect", "model", "a.plan", "--show", "layers", "--combine-tensor-info", "out.npz")
