# SPDX-License-Identifier: Apache-2.0
"""The C interface suffices: programs that include hone.h or hone.hpp alone build, save, load, inspect and run models."""

import subprocess

import numpy as np
import onnxruntime
import pytest
import tiny
from conftest import UNIT

PROGRAM = UNIT / "run_model"
PROFILE = ["--minShapes=x:1x4", "--optShapes=x:2x4", "--maxShapes=x:8x4"]


def run_model(folder, *arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def model(folder):
    return tiny.perceptron(folder / "model.onnx")


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_values_are_those_of_onnx_runtime(folder, model, rows):
    done = run_model(folder, model, "m.plan", rows, *PROFILE, "--timingCacheFile=m.cache")
    assert done.returncode == 0, done.stderr
    values = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    (expected,) = onnxruntime.InferenceSession(str(model)).run(None, {"x": values})
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32).reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)
    assert (folder / "m.plan").exists() and (folder / "m.cache").exists()


@pytest.mark.parametrize("rows", [1, 8])
def test_a_program_in_cpp(folder, model, rows):
    done = subprocess.run([UNIT / "use_hpp", model, "m.plan", str(rows)], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    values = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
    (expected,) = onnxruntime.InferenceSession(str(model)).run(None, {"x": values})
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32).reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)
    refused = subprocess.run([UNIT / "use_hpp", model, "m.plan", "9"], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert refused.returncode == 1 and "outside profile" in refused.stderr and "hint:" in refused.stderr


CASES = {
    "outside of the profile": (["model.onnx", "m.plan", 9, *PROFILE], "9"),
    "no model": (["nowhere.onnx", "m.plan", 1], "nowhere.onnx"),
    "unknown flag": (["model.onnx", "m.plan", 1, "--frobnicate"], "--frobnicate"),
    "unwritable plan": (["model.onnx", "no/folder/m.plan", 1], "no/folder"),
}


@pytest.mark.parametrize("case", CASES)
def test_failures_are_statuses_with_a_reason(folder, model, case):
    arguments, reason = CASES[case]
    done = run_model(folder, *arguments)
    assert done.returncode == 1, done.stderr
    assert reason in done.stderr and "internal error" not in done.stderr
