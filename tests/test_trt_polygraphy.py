# SPDX-License-Identifier: Apache-2.0
"""Polygraphy, unmodified, on python/tensorrt: its commands on a small network of the zoo, compared with ONNX Runtime by Polygraphy itself."""

import os
import pathlib
import re
import subprocess
import sys

import materialise
import pytest
from conftest import PACKAGE

pytest.importorskip("trt_networks")
TOOL = pathlib.Path(sys.executable).parent / "polygraphy"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return materialise.materialise("digits_cnn", tmp_path_factory.mktemp("zoo"))


def polygraphy(folder, *arguments):
    """What it printed; it must succeed."""
    variables = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PACKAGE.parent / 'tensorrt'}", "HONE_TENSORRT_DEVICE": "cpu",
                 "LD_LIBRARY_PATH": str(PACKAGE.parent / "tensorrt" / "cudart"), "POLYGRAPHY_AUTOINSTALL_DEPS": "0"}
    done = subprocess.run([TOOL, *map(str, arguments)], cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_run_agrees_with_onnx_runtime(folder, model):
    said = polygraphy(folder, "run", model, "--trt", "--onnxrt", "--atol", "1e-4", "--rtol", "1e-4")
    assert "All outputs matched" in said and "Passed: 1/1 iterations" in said


def test_run_with_all_tensors_as_outputs(folder, model):
    said = polygraphy(folder, "run", model, "--trt", "--onnxrt", "--trt-outputs", "mark", "all", "--onnx-outputs", "mark", "all", "--atol", "1e-4",
                      "--rtol", "1e-4")
    outputs, = re.findall(r"All outputs matched \| Outputs: \[(.*)\]", said)
    assert len(outputs.split(", ")) == 14


def test_run_in_fp16_saves_an_engine_that_runs_and_is_inspected(folder, model):
    polygraphy(folder, "run", model, "--trt", "--fp16", "--onnxrt", "--atol", "5e-2", "--rtol", "5e-2", "--save-engine", "e.plan")
    assert "PASSED" in polygraphy(folder, "run", "e.plan", "--model-type", "engine", "--trt")
    said = polygraphy(folder, "inspect", "model", "e.plan", "--show", "layers")
    assert "image [dtype=float32, shape=(1, 1, 8, 8)]" in said and "logits" in said


def test_run_in_int8_writes_a_calibration_cache_and_reads_it(folder, model):
    arguments = "run", model, "--trt", "--int8", "--calibration-cache", "c.cache", "--onnxrt", "--atol", "2", "--rtol", "2"
    polygraphy(folder, *arguments)
    cache = (folder / "c.cache").read_bytes()
    assert cache.startswith(b"TRT-") and b"image: " in cache
    polygraphy(folder, *arguments)
    assert (folder / "c.cache").read_bytes() == cache


def test_inspect_shows_layers_and_attributes(folder, model):
    said = polygraphy(folder, "inspect", "model", model, "--display-as", "trt", "--show", "layers", "attrs", "weights")
    assert "/c1/Conv.kernel_size_nd = (3, 3)" in said and "[Op: LayerType.CONVOLUTION]" in said
    assert "/ReduceMean.op = ReduceOperation.AVG" in said and "f.weight [Op: LayerType.CONSTANT]" in said
    assert "._" not in said


def test_convert_and_capability(folder, model):
    polygraphy(folder, "convert", model, "--convert-to", "trt", "-o", "c.plan")
    assert (folder / "c.plan").stat().st_size > 100000
    assert "fully supported" in polygraphy(folder, "inspect", "capability", model)


def test_debug_precision_and_reduce(folder, model):
    assert "Iteration 2" in polygraphy(folder, "debug", "precision", model, "--mode", "bisect", "--fp16", "--check", "true")
    polygraphy(folder, "debug", "reduce", model, "-o", "reduced.onnx", "--mode", "bisect", "--check", "false")
    assert (folder / "reduced.onnx").exists()


def test_debug_build(folder, model):
    polygraphy(folder, "debug", "build", model, "--until", "2", "--save-tactics", "replay.json", "--artifacts", "replay.json", "--check", "true")
    assert len(list((folder / "polygraphy_artifacts" / "good").glob("*.json"))) == 2


def test_row_40_a_timing_cache_is_built_from(folder, model):
    build = "convert", model, "--convert-to", "trt"
    polygraphy(folder, *build, "-o", "1.plan", "--save-timing-cache", "t.cache")
    for name in ("2.plan", "3.plan"):
        polygraphy(folder, *build, "-o", name, "--load-timing-cache", "t.cache", "--error-on-timing-cache-miss")
    assert (folder / "2.plan").read_bytes() == (folder / "3.plan").read_bytes()
