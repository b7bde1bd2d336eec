# SPDX-License-Identifier: Apache-2.0
"""hone run as a comparison of backends. The numbers in the tests' names are rows of docs/companions.md."""

import glob
import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import conftest
import numpy as np
import onnx
import pytest
import tiny
from onnx import TensorProto, helper

# The first sixteen numbers of NumPy's legacy generator with seed 1, which Polygraphy draws, too.
DRAWN = np.random.RandomState(1).random_sample((2, 8)).astype(np.float32)
LIBRARIES = [os.environ.get("HONE_ONNXRUNTIME_LIB", ""), *glob.glob(f"{sys.prefix}/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so*")]
with_onnxruntime = pytest.mark.skipif(not any(map(os.path.exists, LIBRARIES)), reason="there is no libonnxruntime.so")


def scaled(path, factor):
    """m = x * factor, y = relu(m)."""
    return tiny.save(path, [helper.make_node("Mul", ["x", "c"], ["m"], name="mul0"), helper.make_node("Relu", ["m"], ["y"], name="relu0")],
                     {"c": np.array(factor, np.float32)}, [("x", [2, 8])], [("y", [2, 8])], opset=13)


@pytest.fixture
def hone(hone):
    """In a folder with a.onnx, b.onnx, which is a thousandth more, and what a.onnx computes: a.json, every tensor of it: a_all.json."""
    scaled(hone.folder / "a.onnx", 1)
    scaled(hone.folder / "b.onnx", 1.001)
    hone("run", "a.onnx", "--cpu", "--save-outputs", "a.json")
    hone("run", "a.onnx", "--cpu", "--onnx-outputs", "*", "--save-outputs", "a_all.json")
    return hone


def said_by(hone, status, *words):
    """What `hone run` said; it has to exit with the status."""
    done = hone.run("run", *words)
    assert done.returncode == status, f"exit {done.returncode}, not {status}: hone run {' '.join(map(str, words))}\n{done.stdout}"
    return done.stdout


def lines(said, *texts):
    return [line for line in said.splitlines() if all(text in line for text in texts)]


def compared(said):
    """The tensors that were compared, in order."""
    return [line.split("Comparing Output: '")[1].split("'")[0] for line in lines(said, "Comparing Output: ")]


@with_onnxruntime
def test_rows_1_30_every_runner_is_held_against_the_first(hone):
    env = {"HONE_ONNXRUNTIME_LIB": next(filter(os.path.exists, LIBRARIES))}
    said = hone("run", "a.onnx", "--cpu", "--onnxrt", env=env)
    assert "Accuracy Summary | cpu-0 vs. onnxrt-0 | Passed: 1/1 iterations | Pass Rate: 100.00%" in said
    assert lines(said, "[I] PASSED | Command: hone run a.onnx --cpu --onnxrt")
    said = hone("run", "a.onnx", "--ref", "--cpu", "--onnxrt", env=env)
    assert [line.split(" | ")[1] for line in lines(said, "Accuracy Summary")] == ["cpu-0 vs. ref-0", "onnxrt-0 vs. ref-0"]


@with_onnxruntime
def test_row_2_the_flags_of_polygraphys_users(hone):
    tiny.perceptron(hone.folder / "p.onnx")
    sizes = [word for side, size in (("min", 1), ("opt", 4), ("max", 16)) for word in (f"--trt-{side}-shapes", f"x:[{size},4]")]
    said = hone("run", "p.onnx", "--onnxrt", "--trt", "--workspace", "1000000000", "--save-engine=p.plan", "--atol", "1e-2", "--rtol", "1e-2", "--fp16",
                "--verbose", *sizes, "--input-shapes", "x:[4,4]", env={"HONE_ONNXRUNTIME_LIB": next(filter(os.path.exists, LIBRARIES))})
    assert compared(said) == ["y"] and "Passed: 1/1 iterations" in said and "--workspace is accepted and has no effect" in said
    assert "min=(1, 4), opt=(4, 4), max=(16, 4)" in hone("inspect", "model", "p.plan")


def test_rows_5_8_36_a_difference_names_output_error_and_layer(hone):
    said = said_by(hone, 1, "b.onnx", "--cpu", "--load-outputs", "a.json")
    assert "Minimum Required Tolerance: elemwise error | [abs=0.00087816] OR [rel=0.0010001]" in said
    assert "FAILED | Output: 'y' | Difference exceeds tolerance (rel=1e-05, abs=1e-05)" in said
    assert "FAILED | simple | Mismatched outputs: ['y']" in said and "Passed: 0/1 iterations | Pass Rate: 0.00%" in said
    (violations,) = lines(said, "Violations | 15 of 16 elements")
    assert "first at (0, 0): 0.41743904 against 0.41702199 | worst at (1, 5): 0.8789956 against 0.87811744" in violations
    said = said_by(hone, 1, "b.onnx", "--cpu", "--load-outputs", "a_all.json", "--onnx-outputs", "*", "--rtol", "1e-5")
    assert compared(said) == ["m", "y"] and lines(said, "First divergence: m (Mul mul0)")


def test_rows_6_7_some_tensors(hone):
    tiny.convolutions(hone.folder / "c.onnx")
    run = ("c.onnx", "--cpu", "--ref", "--atol", "1e-4")
    assert compared(said_by(hone, 0, *run, "--onnx-outputs", "c*")) == ["c0", "c1"]
    assert sorted(compared(said_by(hone, 0, *run, "--onnx-outputs-by-type", "Conv", "MatMul"))) == ["c0", "c1", "y"]
    rest = compared(said_by(hone, 0, *run, "--onnx-outputs", "*", "--onnx-exclude-outputs", "c1"))
    assert sorted(rest) == ["c0", "f", "g", "p", "r0", "s", "y"]
    assert "did you mean Conv?" in said_by(hone, 2, *run, "--onnx-outputs-by-type", "Cnv")


@pytest.mark.parametrize("stat, flags, needed", [
    ("mean", ["--atol", "1e-3"], "mean error | [abs=0.00037696] OR [rel=0.001]"),
    ("max", ["--rtol", "2e-3"], "max error | [abs=0.00087816] OR [rel=0.0010001]"),
    ("median", ["--rtol", "2e-3"], "median error | [abs=0.00037119] OR [rel=0.001]"),
    ("quantile", ["--error-quantile", "0.5", "--rtol", "2e-3"], "quantile error | [abs=0.00037119] OR [rel=0.001] (quantile=0.5)")])
def test_row_9_statistics_of_the_error(hone, stat, flags, needed):
    run = ("b.onnx", "--cpu", "--load-outputs", "a.json", "--check-error-stat", stat)
    said = said_by(hone, 0, *run, *flags)
    assert "Minimum Required Tolerance: " + needed in said and "Pass Rate: 100.00%" in said
    said_by(hone, 1, *run, "--atol", "1e-4", "--rtol", "1e-4")


def test_rows_10_12_tolerances_by_output_and_fail_fast(hone):
    run = ("b.onnx", "--cpu", "--onnx-outputs", "*", "--load-outputs", "a_all.json")
    said = said_by(hone, 1, *run, "--rtol", "1e-2", "m:1e-6", "--atol", "1e-9")
    assert "Mismatched outputs: ['m']" in said and lines(said, "PASSED | Output: 'y'", "(rel=0.01, abs=1e-09)")
    assert "Mismatched outputs: ['y']" in said_by(hone, 1, *run, "--atol", "m:1e-2", "y:1e-6")
    said_by(hone, 0, *run, "--atol=1e-2")
    assert compared(said_by(hone, 1, *run, "--fail-fast")) == ["m"]
    assert "--rtol takes numbers, not 'much'" in said_by(hone, 2, *run, "--rtol", "much")


def test_rows_11_17_metrics(hone):
    run = ("b.onnx", "--cpu", "--load-outputs", "a.json", "--compare")
    said = said_by(hone, 1, *run, "simple", "cosine_similarity", "psnr", "snr", "l2", "--rtol", "1e-2")
    for text in ("PSNR: 65.703 dB", "SNR: 60.008 dB", "L2 Norm: 0.0018234", "PASSED | Cosine Similarity | All outputs matched",
                 "PASSED | PSNR | All", "PASSED | SNR | All", "PASSED | simple | All", "FAILED | L2 Norm | Mismatched outputs: ['y']"):
        assert text in said
    said_by(hone, 0, *run, "l2", "--l2-threshold", "0.01")
    said = said_by(hone, 0, *run, "indices", "--postprocess", "top-3")
    assert "'y' (dtype=int64, shape=(2, 3))" in said and "PASSED | Difference is within index tolerance (0)" in said
    assert "did you mean psnr?" in said_by(hone, 2, *run, "psmr")
    straight = np.arange(16, dtype=np.float32).reshape(2, 8)
    np.savez(hone.folder / "straight.npz", x=straight)
    np.savez(hone.folder / "swapped.npz", x=straight.reshape(2, 4, 2)[:, :, ::-1].reshape(2, 8))
    hone("run", "a.onnx", "--cpu", "--load-inputs", "straight.npz", "--save-outputs", "straight.json")
    places = ("a.onnx", "--cpu", "--load-inputs", "swapped.npz", "--load-outputs", "straight.json", "--compare", "indices", "--postprocess", "top-8")
    said_by(hone, 0, *places, "--index-tolerance", "1")
    said_by(hone, 1, *places, "--index-tolerance", "0")


def test_rows_13_27_iterations(hone):
    hone("run", "a.onnx", "--cpu", "--iterations", "3", "--save-inputs", "ind", "--save-outputs", "outd")
    for kept in ("ind", "outd"):
        assert sorted(path.name for path in (hone.folder / kept).iterdir()) == [f"000000000{i}.json" for i in range(3)]
    said = said_by(hone, 0, "b.onnx", "--cpu", "--load-inputs", "ind", "--load-outputs", "outd", "--check-average", "--check-error-stat", "mean",
                   "--rtol", "2e-3")
    assert "Passed: 1/1 outputs" in said and "over 3 iterations" in said
    run = ("a.onnx", "--cpu", "--iterations", "2", "--load-outputs", "outd")
    assert lines(said_by(hone, 1, *run), "has 3 iterations", "has 2")
    said_by(hone, 0, *run, "--allow-prefix")


def test_rows_14_15_infinities_and_nans(hone):
    for name, op in (("log", "Log"), ("div", "Reciprocal")):
        tiny.save(hone.folder / f"{name}.onnx", [helper.make_node(op, ["x"], ["y"])], {}, [("x", [4])], [("y", [4])], opset=13)
    zero, negative = ("--val-range", "[0,0]"), ("--val-range", "[-2,-1]")
    said = said_by(hone, 1, "div.onnx", "--cpu", "--validate", *zero)
    assert "Inf Detected" in said and "Errors detected in output: y" in said
    assert "NaN Detected" in said_by(hone, 1, "log.onnx", "--cpu", "--validate", *negative)
    said = said_by(hone, 1, "div.onnx", "--cpu", "--ref", *zero)
    assert lines(said, "Violations | 4 of 4 elements", "first at (0,): inf against inf")
    said_by(hone, 0, "div.onnx", "--cpu", "--ref", *zero, "--infinities-compare-equal")
    said = said_by(hone, 1, "log.onnx", "--cpu", "--ref", *negative, "--infinities-compare-equal")
    assert lines(said, "Violations | 4 of 4 elements", "first at (0,): nan against nan")


def test_row_16_other_shapes(hone):
    np.savez(hone.folder / "flat.npz", y=DRAWN.ravel())
    run = ("a.onnx", "--cpu", "--load-outputs", "flat.npz")
    assert lines(said_by(hone, 1, *run), "FAILED", "(2, 8)", "(16,)")
    said_by(hone, 0, *run, "--no-shape-check")


def test_rows_18_19_21_files_are_polygraphys(hone):
    polygraphy = pytest.importorskip("polygraphy.comparator")
    from polygraphy.json import load_json, save_json

    hone("run", "a.onnx", "--cpu", "--save-inputs", "in.json", "--save-outputs", "out.json")
    (feed,) = load_json(str(hone.folder / "in.json"))
    np.testing.assert_array_equal(feed["x"], DRAWN)
    results = polygraphy.RunResults.load(str(hone.folder / "out.json"))
    assert [(name, len(iterations)) for name, iterations in results.items()] == [("cpu-0", 1)]
    np.testing.assert_array_equal(results["cpu-0"][0]["y"], DRAWN)
    feed = {"x": np.arange(-8, 8, dtype=np.float32).reshape(2, 8)}
    save_json([feed], str(hone.folder / "theirs.json"))
    theirs = polygraphy.RunResults()
    theirs.add([{"y": np.maximum(feed["x"], 0)}], runner_name="golden")
    theirs.save(str(hone.folder / "golden.json"))
    said = said_by(hone, 0, "a.onnx", "--cpu", "--load-inputs", "theirs.json", "--load-outputs", "golden.json")
    assert "cpu-0 vs. golden" in said and "Bit for bit the same" in said
    results["cpu-0"][0]["y"] = DRAWN + np.float32(0.25)
    results.save(str(hone.folder / "altered.json"))
    said = said_by(hone, 1, "a.onnx", "--cpu", "--load-inputs", "in.json", "--load-outputs", "altered.json")
    assert "Minimum Required Tolerance: elemwise error | [abs=0.25]" in said and "Mismatched outputs: ['y']" in said


def test_rows_20_22_raw_npy_and_npz(hone):
    hone("run", "a.onnx", "--cpu", "--val-range", "[0,1]", "x:[5,6]", "--save-inputs", "x.npz", "--save-outputs", "y.npz")
    drawn = np.load(hone.folder / "x.npz")["x"]
    assert drawn.shape == (2, 8) and drawn.min() >= 5 and drawn.max() <= 6
    np.testing.assert_array_equal(np.load(hone.folder / "y.npz")["y"], drawn)
    drawn.tofile(hone.folder / "x.raw")
    np.save(hone.folder / "x.npy", drawn)
    for given in ("x.npz", "x.npy", "x:x.npy", "x:x.raw"):
        assert "Bit for bit the same" in said_by(hone, 0, "a.onnx", "--cpu", "--load-inputs", given, "--load-outputs", "y.npz")
    (hone.folder / "short.raw").write_bytes(drawn.tobytes()[:-4])
    assert "short.raw has 60 bytes, which is no float32 (2, 8)" in said_by(hone, 2, "a.onnx", "--cpu", "--load-inputs", "x:short.raw")


def test_row_23_integers_are_drawn_from_what_they_index(hone):
    table = {"table": np.arange(200, dtype=np.float32).reshape(100, 2)}
    tiny.save(hone.folder / "e.onnx", [helper.make_node("Gather", ["table", "ids"], ["y"])], table, [("ids", [64], TensorProto.INT64)], [("y", [64, 2])])
    said = said_by(hone, 0, "e.onnx", "--cpu", "--ref", "--save-inputs", "ids.npz")
    assert lines(said, "Input tensor: ids | Integers are drawn from", "to 99")
    ids = np.load(hone.folder / "ids.npz")["ids"]
    assert ids.dtype == np.int64 and ids.max() <= 99 and ids.max() - ids.min() > 50


def test_rows_24_25_shapes(hone):
    tiny.perceptron(hone.folder / "p.onnx")
    said = said_by(hone, 0, "p.onnx", "--cpu", "--ref")
    assert lines(said, "[W] Input tensor: x | Will generate data of shape: (1, 4)")
    said = said_by(hone, 0, "p.onnx", "--cpu", "--ref", "--input-shapes", "x:[3,4]")
    assert "x [dtype=float32, shape=(3, 4)]" in said and "[W]" not in said
    assert "did you mean x?" in said_by(hone, 2, "p.onnx", "--cpu", "--input-shapes", "X:[3,4]")


def test_rows_26_28_29_what_a_script_can_tell_apart(hone):
    for flags in (["--rtol", "1e-3"], ["--atol", "1e-3"], ["--iterations", "2", "--seed", "3"], ["--compare", "l2"]):
        assert "no runner is selected" in said_by(hone, 2, "a.onnx", *flags)
    said = said_by(hone, 2, "a.onnx", "--cpu", "--atoll", "1e-3")
    assert "there is no flag --atoll" in said and "did you mean --atol?" in said
    assert "there is no file nofile.onnx" in said_by(hone, 3, "nofile.onnx", "--cpu")
    assert "there is no file no.json" in said_by(hone, 3, "a.onnx", "--cpu", "--load-outputs", "no.json")
    said = said_by(hone, 4, "a.onnx", "--onnxrt", "--onnxrt-lib", "nothing.so")
    assert "searched: nothing.so" in said and "pip install onnxruntime" in said


def test_rows_31_32_layers_of_the_engine_without_unfusing(hone):
    tiny.convolutions(hone.folder / "c.onnx")
    untimed = ("--builder-optimization-level", "0")  # two builds are one plan
    hone("convert", "c.onnx", "--cpu", *untimed, "-o", "c.plan")
    layers = len(json.loads(hone.answer("inspect", "model", "c.plan", "--show", "layers", "--json"))["layers"])
    for flags in ([], ["--isolate"]):
        run = ("run", "c.onnx", "--cpu", *untimed, "--tap", "*", *flags, "--atol", "1e-4")
        said = hone(*run)
        assert " layers, of which 4 tensors are compared; the plan is the same as without --tap" in said
        assert lines(said, "| g ", "conv1", "PASSED") and "PASSED | 4 of 4 tensors within tolerance" in said
        found = json.loads(hone.answer(*run, "--json", "-"))
        assert found["passed"] and found["layers"] == layers and [row["tensor"] for row in found["taps"]] == ["r0", "g", "p", "y"]
        assert all(row["maxAbs"] < 1e-4 for row in found["taps"]) and all(("aloneMaxAbs" in row) == bool(flags) for row in found["taps"])
    said = said_by(hone, 1, "c.onnx", "--cpu", "--tap", "*", "--atol", "1e-12", "--rtol", "1e-12")
    assert lines(said, "First divergence: r0", "conv0")
    assert "the engine has no such tensor" in said_by(hone, 2, "c.onnx", "--cpu", "--tap", "c0")


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--isolate",)], ids=["in the run", "isolated"])
def test_rows_31_32_exact_values_are_streamed(hone, zoo, flags):
    """Comparing every tensor of a transformer between its plan and exact values takes the model, two tensors and 50 MB."""
    model, shapes = zoo("hf_bert_base.ts"), ("input_ids:[1,128]", "attention_mask:[1,128]")
    (hone.folder / "bert.onnx").symlink_to(model)
    hone("convert", "bert.onnx", "-o", "bert.plan", "--builder-optimization-level", "0", "--trt-min-shapes", *shapes, "--trt-opt-shapes", *shapes,
         "--trt-max-shapes", *shapes)
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); " \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", script, conftest.BIN / "hone", "run", "bert.plan", "--cpu", "--input-shapes", *shapes, "--tap", "*", *flags,
                           "--atol", "1e-3"], cwd=hone.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=900)
    said = done.stderr
    assert done.returncode == 0, said[-2000:]
    assert int(said.split(" exact tensors were waiting")[0].split("at most ")[-1]) <= 2 and " tensors within tolerance" in said
    largest = 128 * 3072 * 4  # of those that are compared: what the gelus read and write
    print(f"peak {int(done.stdout) / 1024:.0f} MiB, model {os.path.getsize(model) / 2**20:.0f} MiB")
    assert int(done.stdout) * 1024 < os.path.getsize(model) + 2 * largest + 50_000_000


def test_rows_33_34_verdicts_as_json_and_the_same_twice(hone):
    run = ("run", "b.onnx", "--cpu", "--load-outputs", "a.json", "--json", "-")
    text = hone.answer(*run)
    (pair,) = json.loads(text)["pairs"]
    (output,) = pair["iterations"][0]["outputs"]
    assert not json.loads(text)["passed"] and output["name"] == "y" and output["maxAbs"] == pytest.approx(8.7816e-4, rel=1e-4)
    assert hone.answer(*run) == text
    same = [said_by(hone, 1, "b.onnx", "--cpu", "--load-outputs", "a.json", "--save-outputs", "b.json") + (hone.folder / "b.json").read_text()
            for _ in range(2)]
    assert same[0] == same[1]


def test_rows_35_38_heat_maps_and_times(hone):
    tiny.convolutions(hone.folder / "c.onnx")
    said = said_by(hone, 0, "c.onnx", "--cpu", "--ref", "--onnx-outputs", "c0", "--atol", "1e-4", "--save-heatmaps", "hm", "--warm-up", "1",
                   "--iterations", "2", "--time")
    pictures = sorted((hone.folder / "hm").iterdir())
    assert (hone.folder / "hm/c0_0_absolute.svg") in pictures
    assert all(ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg" for path in pictures)
    assert all(lines(said, runner, "Latency over 2 iterations: mean", "median", "p90", "p95", "p99") for runner in ("cpu-0", "ref-0"))


def test_row_3_marked_outputs_are_saved_with_the_model(hone):
    said_by(hone, 0, "a.onnx", "--cpu", "--onnx-outputs", "mark", "all", "--save-onnx", "marked.onnx", "--save-engine", "marked.plan")
    assert [output.name for output in onnx.load(hone.folder / "marked.onnx").graph.output] == ["m", "y"]
    assert compared(said_by(hone, 0, "marked.plan", "--cpu", "--load-outputs", "a_all.json")) == ["m", "y"]
    assert "is a plan: its outputs cannot be changed" in said_by(hone, 2, "marked.plan", "--cpu", "--onnx-outputs", "m")


def test_help_shows_both_kinds_of_run(hone):
    said = hone("run", "--help")
    assert "-o <folder>" in said and "--onnxrt " in said and "--check-error-stat <[name:]stat...>" in said
