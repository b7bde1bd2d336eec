# SPDX-License-Identifier: Apache-2.0
"""The plain-word tools: what they print, what they leave, and what they say when something is wrong."""

import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import time
from xml.etree import ElementTree

import conftest
import numpy as np
import pytest
import tiny
from inference import check_plan, differences, reference_session
from onnx import helper


@pytest.fixture
def hone(hone):
    tiny.perceptron(hone.folder / "model.onnx")
    return hone


@pytest.fixture
def plan(hone):
    hone("build", "model.onnx", "--min", "x:1x4", "--opt", "x:2x4", "--max", "x:8x4")
    return hone.folder / "model.plan"


def json_of(hone, *arguments):
    """What a tool printed to stdout alone; warnings go to stderr."""
    return json.loads(subprocess.run([conftest.BIN / "hone", *arguments], cwd=hone.folder, capture_output=True, text=True, check=True).stdout)


def test_build_writes_a_plan_and_a_cache_beside_the_model(hone):
    said = hone("build", "model.onnx", "--min=x:1x4", "--opt", "x:2x4", "--max", "x:8x4")
    assert "model.onnx -> model.plan" in said and "x from 1x4 to 8x4, fastest at 2x4" in said
    assert "\033" not in said and len(said.splitlines()) < 24, "plain text that fits a screen"
    assert (hone.folder / "model.plan").stat().st_size and (hone.folder / "hone.cache").stat().st_size
    summary = json_of(hone, "build", "model.onnx", "-o", "other.plan", "--opt", "x:2x4", "--json")
    assert summary["file"] == "other.plan" and summary["profiles"][0]["layers"] >= 1
    assert summary["inputs"] == [{"name": "x", "type": summary["inputs"][0]["type"]}]
    assert summary["bytes"] == (hone.folder / "other.plan").stat().st_size


def test_check_runs_an_engine_in_all_ways_and_writes_what_came_first(hone, plan):
    sets = [{"x": np.random.default_rng(seed).standard_normal((3, 4), np.float32)} for seed in (1, 2)]
    report, found = check_plan(hone, plan, sets, "x:3x4", inferences=20)
    assert report["same"] and differences(report) == ""
    counts = {entry["name"]: entry["inferences"] for entry in report["situations"]}
    assert counts["again and again"] == counts["on memory that holds NaNs"] == 20 and min(counts.values()) >= 2
    assert {"with other bindings each time", "layer by layer", "in two contexts at once", "between other shapes"} < counts.keys()
    session = reference_session(hone.folder / "model.onnx")
    for feeds, outputs in zip(sets, found):
        np.testing.assert_allclose(outputs["y"], session.run(["y"], feeds)[0], rtol=1e-5, atol=1e-6)
    said = hone("check", "model.onnx", "-s", "x:2x4", "-n", "4")
    assert "again and again" in said and "all the same" in said and "differ" not in said
    wrong = hone.run("check", plan, "-n", "one")
    assert wrong.returncode == 1 and "-n takes a count" in wrong.stdout and "for example -n 100" in wrong.stdout


def test_run_reads_and_writes_numpy_files(hone, plan):
    values = np.random.default_rng(2).standard_normal((3, 4), np.float32)
    expected = reference_session(hone.folder / "model.onnx").run(["y"], {"x": values})[0]
    np.save(hone.folder / "in.npy", values)
    np.savez(hone.folder / "in.npz", other=np.zeros(2), x=values)
    np.savez_compressed(hone.folder / "packed.npz", other=np.zeros(2), x=values)
    for name in ("in.npy", "in.npz", "packed.npz"):
        hone("run", plan, "-i", f"x:{name}", "-s", "x:3x4", "-o", "out")
        np.testing.assert_allclose(np.load(hone.folder / "out/y.npy"), expected, rtol=1e-5, atol=1e-6)
    said = hone("run", plan, "-i", "x:in.npy", "-s", "x:3x4", "-n", "2")
    first = [float(word) for word in re.search(r"values +(.*)", said)[1].split()]
    assert first == pytest.approx(expected.ravel()[:2].tolist(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("change, message", [
    (lambda a: a.astype(np.float64), "the array holds f64, the tensor f32"),
    (lambda a: a[:2], "the array has the shape 2x4, the tensor 3x4"),
    (lambda a: np.asfortranarray(a), "stored column by column"),
    (lambda a: a.astype(">f4"), "arrays of type >f4 cannot be bound")])
def test_arrays_that_do_not_fit_are_refused(change, message, hone, plan):
    np.save(hone.folder / "in.npy", change(np.ones((3, 4), np.float32)))
    done = hone.run("run", plan, "-i", "x:in.npy", "-s", "x:3x4")
    assert done.returncode == 1 and message in done.stdout, done.stdout
    done = conftest.Program(hone.folder).run(f"--loadEngine={plan}", "--loadInputs=x:in.npy", "--shapes=x:3x4")
    assert done.returncode == 1 and message in done.stdout


def test_damaged_numpy_files_are_refused(hone, plan):
    np.save(hone.folder / "in.npy", np.ones((3, 4), np.float32))
    np.savez(hone.folder / "in.npz", x=np.ones((3, 4), np.float32))
    np.savez_compressed(hone.folder / "packed.npz", x=np.ones((3, 4), np.float32))
    for name in ("in.npy", "in.npz", "packed.npz"):
        whole = (hone.folder / name).read_bytes()
        for length in (0, 1, 5, 9, 40, len(whole) // 2, len(whole) - 1):
            (hone.folder / f"cut_{name}").write_bytes(whole[:length])
            done = hone.run("run", plan, "-i", f"x:cut_{name}", "-s", "x:3x4")
            assert done.returncode == 1 and "internal error" not in done.stdout, (name, length, done.stdout)


def test_bench_tells_latency_throughput_and_what_bounds_them(hone, plan):
    said = hone("bench", plan, "-t", "0", "-n", "20")
    for label in ("latency", "throughput", "bound by", "machine"):
        assert re.search(rf"^  {label} ", said, re.MULTILINE), said
    result = json_of(hone, "bench", plan, "-t", "0", "-n", "20", "--json")
    latency = result["latencyMs"]
    assert result["queries"] >= 1 and latency["min"] <= latency["median"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert isinstance(result["steady"], bool) and "before" in result["machine"]


def test_bench_compares_engines_in_turns(hone, plan):
    copy = hone.folder / "copy.plan"
    copy.write_bytes(plan.read_bytes())
    words = ["bench", "--compare", "model.plan", "copy.plan", "model.onnx", "-t", "0.05", "--rounds", "5"]
    result = json_of(hone, *words, "--json", "--plot", "c.svg")
    assert result["rounds"] == 5 and [each["file"] for each in result["engines"]] == ["model.plan", "copy.plan", "model.onnx"]
    reference = result["engines"][0]["roundsMs"]
    for pair, engine in zip(result["pairs"], result["engines"][1:], strict=True):
        assert engine["medianMs"] == statistics.median(engine["roundsMs"]) > 0 and len(engine["roundsMs"]) == 5
        ratios = [math.log(a / b) for a, b in zip(engine["roundsMs"], reference, strict=True)]
        assert pair["ratio"] == pytest.approx(math.exp(statistics.mean(ratios)))
        assert pair["low"] <= pair["ratio"] <= pair["high"] and pair["file"] == engine["file"]
        assert pair["verdict"] == ("faster" if pair["high"] < 1 else "slower" if pair["low"] > 1 else "cannot be told apart")
    picture = ElementTree.fromstring((hone.folder / "c.svg").read_text())
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 3
    assert re.search(r"copy.plan (is (faster|slower) than|and .* cannot be told apart).* times its latency, [\d.]+ to [\d.]+ with 95 %", hone(*words))


def test_bench_sweeps_over_thread_counts(hone, plan):
    rows = json_of(hone, "bench", plan, "-t", "0", "-n", "20", "--threadSweep", "--json")
    counts = [row["threads"] for row in rows]
    assert counts[0] == 1 and counts == sorted(set(counts)) and rows[0]["speedUp"] == 1
    for row in rows:
        assert row["speedUp"] == pytest.approx(rows[0]["latencyMs"]["median"] / row["latencyMs"]["median"])
    said = hone("bench", plan, "-t", "0", "-n", "20", "--threadSweep")
    assert len(re.findall(r"^ +\d+ +[\d.]+ +[\d.]+ +\d+ % +[\d.]+ +[\d.]+ %$", said, re.MULTILINE)) == len(counts), said


@pytest.mark.parametrize("own", [None, "77"])
def test_idle_threads_spin_briefly_unless_told_otherwise(own, hone, plan):
    environment = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    if own:
        environment["GOMP_SPINCOUNT"] = own
    with subprocess.Popen([conftest.BIN / "hone", "bench", plan, "-t", "300"], cwd=hone.folder, env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline, seen = time.monotonic() + 300, b""
        while b"GOMP_SPINCOUNT=" not in seen and time.monotonic() < deadline:
            seen = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes()
        process.kill()
    assert f"GOMP_SPINCOUNT={own or 1000}".encode() in seen.split(b"\0")


def test_bench_kernels_climbs_from_the_reference_to_the_ceiling(hone, plan):
    keys = hone("cache", "list", "--keys", "hone.cache").splitlines()
    assert len(keys) == len(set(keys)) and any("Linear" in key for key in keys)
    problem = next(key for key in keys if "Linear" in key)
    said = hone("bench", "kernels", problem, "--repeats", "2")
    assert problem in said and re.search(r"% +reference$", said, re.MULTILINE) and re.search(r"100 % +ceiling$", said, re.MULTILINE)
    entry = next(line for line in (hone.folder / "hone.cache").read_text().splitlines() if "Linear" in line)
    (hone.folder / "problems.txt").write_text(f"{problem}\n{entry}\n")
    ladders = json_of(hone, "bench", "kernels", "problems.txt", "--repeats", "2", "--json")
    assert [ladder["problem"] for ladder in ladders] == [problem], "a cache's line and its key are the same problem"
    ladder = ladders[0]
    assert ladder["flops"] == 2 * 2 * 4 * 8 and ladder["ladder"][0]["tactic"] == "reference" and ladder["ladder"][-1]["tactic"] == "ceiling"
    assert all(row["ms"] > 0 for row in ladder["ladder"])
    for wrong in ("nonsense", problem[: len(problem) // 2], problem.replace("Linear", "Lineal")):
        done = hone.run("bench", "kernels", wrong)
        assert done.returncode == 1 and done.stdout.startswith("hone bench kernels: "), done.stdout


def test_inspect_shows_layers_and_why(hone, plan):
    said = hone("inspect", plan, "--layers", "--why", "dense")
    assert "dense + act" in said and "chosen: " in said
    summary = json.loads(hone("inspect", plan, "--layers", "--json"))
    assert [layer["nodes"] for layer in summary["layers"]] == [["dense", "act"]]


def test_changes_between_two_plans_are_listed(hone, plan):
    hone("build", "model.onnx", "-o", "one.plan", "--tacticSources=-ONEDNN")
    hone("build", "model.onnx", "-o", "other.plan", "--tacticSources=-JIT_CONVOLUTIONS")
    found = json.loads(hone("inspect", "changes", "other.plan", "--from", "one.plan", "--json"))
    (change,) = found["changes"]
    assert change["layer"] == "dense + act" and change["old"]["tactic"] != change["new"]["tactic"] and found["layers"] == 1
    assert "changed" in hone("inspect", "changes", "other.plan", "--from", "one.plan")
    assert json.loads(hone("inspect", "changes", plan, "--from", plan, "--json"))["changes"] == []
    assert "takes two plans" in hone.run("inspect", "changes", plan).stdout


def test_capability_says_which_nodes_have_kernels_and_why_others_have_none(hone):
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="dense"), helper.make_node("Relu", ["h"], ["r"], name="act"),
             helper.make_node("Add", ["b", "b"], ["twice"], name="constant"), helper.make_node("Add", ["r", "twice"], ["s"], name="sum"),
             helper.make_node("Bernoulli", ["s"], ["t"], name="turn"),
             helper.make_node("Flatten", ["t"], ["y"], name="flat")]
    weights = {"w": np.ones((4, 8), np.float32), "b": np.ones(8, np.float32)}
    tiny.save(hone.folder / "model.onnx", nodes, weights, inputs=[("x", [2, 4])])
    report = json.loads(hone("inspect", "capability", "model.onnx", "--json"))
    states = {node["name"]: node["state"] for node in report["nodes"]}
    assert states["dense"] == "tuned" and states["constant"] == "folded" and states["turn"] == "reference"
    (turn,) = [node for node in report["nodes"] if node["name"] == "turn"]
    assert turn["sources"] == ["reference"] and turn["reasons"]
    (dense,) = [node for node in report["nodes"] if node["name"] == "dense"]
    assert "cpu" in dense["sources"] and dense["layers"] and not dense["reasons"]
    summary = report["summary"]
    assert summary["nodes"] == len(nodes) == sum(summary[state] for state in ("tuned", "reference", "view", "folded"))
    assert report["operators"]["Add"]["nodes"] == 2
    said = hone("inspect", "capability", "model.onnx")
    assert "turn" in said and len(said.splitlines()) < 40 and "dense" not in said
    assert "dense" in hone("inspect", "capability", "model.onnx", "--verbose")


def test_the_operators_that_models_may_use_are_listed(hone):
    rows = json.loads(hone("inspect", "operators", "--json"))
    opsets = {(row["domain"], row["operator"]): row["opsets"] for row in rows}
    assert opsets["ai.onnx", "Conv"] == "1+" and ("ai.onnx.ml", "ZipMap") in opsets and ("com.microsoft", "FusedConv") in opsets
    assert "ZipMap" in hone("inspect", "operators")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_caches_are_listed_merged_and_pruned(hone, plan):
    tiny.convolutions(hone.folder / "conv.onnx")
    hone("build", "conv.onnx", "--opt", "x:1x3x16x16", "--cache", "second.cache", "--effort", "1")

    def entries(name):
        return json.loads(hone("cache", "list", name, "--json"))[0]["entries"]

    first, second = entries("hone.cache"), entries("second.cache")
    assert first >= 1 and second >= 1
    hone("cache", "merge", "all.cache", "hone.cache", "second.cache")
    assert entries("all.cache") == first + second
    with open(hone.folder / "all.cache", "a") as file:
        file.write("{half a line\n")
    assert json.loads(hone("cache", "list", "all.cache", "--json"))[0]["damagedLines"] == 1
    assert "1 damaged lines dropped" in hone("cache", "prune", "all.cache")
    assert entries("all.cache") == first + second
    hone("cache", "prune", "all.cache", "--keep", "no such processor")
    assert entries("all.cache") == 0
    assert hone.run("cache", "list", "nowhere.cache").returncode == 1


def test_doctor_tells_the_limits(hone):
    text, rows = hone("doctor", "--limits"), json.loads(hone("doctor", "--limits", "--json"))
    assert {"nesting", "nodes", "rank", "name"} <= {row["name"] for row in rows}
    for row in rows:
        assert row["name"] in text and str(row["value"]) in text


def test_doctor_speaks_plainly_and_json(hone):
    assert "backend cpu" in hone("doctor")
    found = json.loads(hone("doctor", "--json"))
    assert (pathlib.Path(found["tritonBackends"]) / "hone" / "libtriton_hone.so").exists()
    assert any(backend["name"] == "cpu" and backend["usable"] for backend in found["backends"])


MISTAKES = {
    "unknown tool": (["bild"], "did you mean build?"),
    "unknown flag": (["bench", "model.onnx", "--stream", "2"], "did you mean --streams?"),
    "value missing": (["build", "model.onnx", "-o"], "-o needs a value"),
    "no file": (["run"], "hone run needs PLAN | MODEL.onnx"),
    "plan to build": (["build", "model.plan"], "is no ONNX model by its name"),
    "model to inspect": (["inspect", "model.onnx"], "hone build model.onnx"),
    "two files": (["bench", "a.plan", "b.plan"], "one file is taken"),
    "nothing to compare with": (["bench", "--compare", "a.plan"], "--compare needs two engines"),
    "no number of rounds": (["bench", "--compare", "a.plan", "b.plan", "--rounds", "1"], "--rounds=1 is no number"),
    "missing model": (["build", "nowhere.onnx"], "nowhere.onnx"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_answered_with_what_to_do(name, hone):
    arguments, message = MISTAKES[name]
    done = hone.run(*arguments)
    assert done.returncode == 1 and message in done.stdout, done.stdout


def test_errors_are_json_where_json_is_asked_for(hone):
    done = subprocess.run([conftest.BIN / "hone", "bench", "nowhere.plan", "--json"], cwd=hone.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "nowhere.plan" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("arguments, error, hint", [
    (["bench", "model.plan", "-s", "x:99x4"], "lies outside profile 0", "choose a shape in the range"),
    (["bench", "model.plan", "--avgRuns=0"], "--avgRuns must be at least 1", "the default is 10"),
    (["build", "model.onnx", "--markDebug=hh"], "the network has no tensor called hh", "the nearest name is h"),
])
def test_json_errors_carry_the_hint_apart(hone, plan, arguments, error, hint):
    done = subprocess.run([conftest.BIN / "hone", *arguments, "--json"], cwd=hone.folder, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    assert error in said["error"] and hint in said["hint"] and "hint" not in said["error"]


def test_warnings_of_the_engine_come_in_plain_words(hone):
    said = hone("build", "model.onnx", "--builderOptimizationLevel=0")
    assert "warning: Dynamic dimensions required for input: x" in said and "[HONE]" not in said
    again = hone("build", "model.onnx", "--builderOptimizationLevel=0", "--inputIOFormats=fp32:hwc")
    assert "warning: x has rank 2: it stays linear" in again and "[HONE]" not in again


@pytest.mark.parametrize("tool", ["build", "run", "bench", "inspect", "cache"])
def test_every_tool_has_help(tool, hone):
    assert hone(tool, "--help").startswith(f"usage: hone {tool}")
