# SPDX-License-Identifier: Apache-2.0
"""Polygraphy, unmodified, on python/tensorrt by way of `hone trt-env`: plans that other programs read, tactics and times that are replayed,
options, scripts that it writes, and larger networks. test_trt_polygraphy.py has its commands one by one."""

import os
import subprocess
import sys

import materialise
import pytest
from conftest import BIN, PACKAGE

pytest.importorskip("polygraphy")
if not (PACKAGE / "hone").exists():
    pytest.skip("this build has no Python binding (sanitizers)", allow_module_level=True)

POLYGRAPHY = os.path.join(os.path.dirname(sys.executable), "polygraphy")
FAST = "--builder-optimization-level=0"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return str(materialise.materialise("digits_cnn", tmp_path_factory.mktemp("digits")))


def run(folder, *arguments, fails=False):
    """What it printed; it must have succeeded, or failed where that is expected."""
    done = subprocess.run([BIN / "hone", "trt-env", "--", POLYGRAPHY, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=1800, check=False,
                          env={**os.environ, "PATH": f"{os.path.dirname(POLYGRAPHY)}:{os.environ['PATH']}", "HONE_TENSORRT_DEVICE": "cpu"})
    assert (done.returncode != 0) == fails, done.stdout[-6000:]
    return done.stdout


def test_plans_are_saved_loaded_and_inspected(folder, digits):
    run(folder, "convert", digits, "-o", "d.engine", "--fp16", FAST)
    assert (folder / "d.engine").read_bytes().startswith(b"HONEPLAN")
    run(folder, "run", "d.engine", "--model-type", "engine", "--trt")
    said = run(folder, "inspect", "model", "d.engine", "--model-type", "engine", "--show", "layers")
    assert "1 Engine Input(s)" in said and "{logits [dtype=float32, shape=(1, 10)" in said and "format" in said
    said = subprocess.run([BIN / "trtexec", "--loadEngine=d.engine", "--iterations=2", "--warmUp=0", "--duration=0"], cwd=folder,
                          stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    assert "&&&& PASSED" in said
    (folder / "foreign.engine").write_bytes(b"ftrt" + bytes(200))
    said = run(folder, "run", "foreign.engine", "--model-type", "engine", "--trt", fails=True)
    assert "begins as plans of NVIDIA's TensorRT do" in said


def test_tactics_and_times_are_recorded_and_replayed(folder, digits):
    run(folder, "run", digits, "--trt", "--save-tactics", "replay.json", "--save-timing-cache", "t.cache")
    run(folder, "run", digits, "--trt", "--load-tactics", "replay.json", "--load-timing-cache", "t.cache")
    assert "Algorithm: (Implementation:" in run(folder, "inspect", "tactics", "replay.json")
    before = (folder / "t.cache").read_bytes()
    run(folder, "run", digits, "--trt", "--load-timing-cache", "t.cache", "--save-timing-cache", "t.cache")
    assert len((folder / "t.cache").read_bytes()) >= len(before)


def test_debug_tools_run_to_their_end(folder, digits):
    assert "Passed: 2/2" in run(folder, "debug", "build", digits, "--until", "2", FAST, "--check", "true")
    run(folder, "debug", "precision", digits, "--fp16", "-p", "float32", FAST, "--check", "false")
    run(folder, "debug", "reduce", digits, "-o", "small.onnx", "--mode=bisect", "--check", "polygraphy", "run", "polygraphy_debug.onnx",
        "--trt", FAST)


def test_options_that_steer_builds_and_contexts(folder, digits):
    run(folder, "run", digits, "--trt", "--strongly-typed", "--onnxrt", "--atol", "1e-4", "--rtol", "1e-4", FAST)
    run(folder, "run", digits, "--trt", "--strongly-typed", "--weight-streaming", "--weight-streaming-budget", "10%", FAST)
    run(folder, "run", digits, "--trt", "--refittable", "--version-compatible", "--bf16", "--sparse-weights", "--tactic-sources",
        "--optimization-profile", "0", "--allocation-strategy", "runtime", FAST)
    run(folder, "run", digits, "--trt", "--allocation-strategy", "profile", "--pool-limit", "workspace:100M", "--fp16",
        "--precision-constraints", "obey", "--layer-precisions", "/c1/Conv:float16", FAST)
    said = run(folder, "run", digits, "--trt", "--mark-debug", "/Relu_output_0", "image", FAST)
    assert "/Relu_output_0 [dtype=float32" in said and "image [dtype=float32" in said


def test_scripts_that_polygraphy_writes_run(folder, digits):
    run(folder, "template", "trt-network", digits, "-o", "network.py")
    run(folder, "run", "network.py", "--model-type", "trt-network-script", "--trt", FAST)
    run(folder, "run", digits, "--trt", FAST, "--gen-script", "script.py")
    done = subprocess.run([BIN / "hone", "trt-env", "--", sys.executable, "script.py"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("model, tolerance", [("resnet18.dyn", "1e-4"), ("mobilenet_v3_large.ts", "1e-4"), ("hf_distilbert.ts", "1e-4")])
def test_models_of_the_zoo_agree_with_onnx_runtime(folder, model, tolerance):
    path = materialise.materialise(model, folder)
    run(folder, "run", path, "--trt", "--onnxrt", "--atol", tolerance, "--rtol", tolerance, "--builder-optimization-level=1")
