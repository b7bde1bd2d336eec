# SPDX-License-Identifier: Apache-2.0
"""What flags do in a run, by tests/cli/flag_runs.txt; what they do before anything runs is tested beside src/options."""

import json
import re
import tempfile
import pathlib

import conftest
import numpy as np
import pytest
import tiny

ROWS = [line.split(" => ", 1) for line in (conftest.ROOT / "tests/cli/flag_runs.txt").read_text().splitlines() if not line.startswith("#")]
SHORT = {"--iterations": "3", "--warmUp": "0", "--duration": "0"}


@pytest.fixture(scope="module")
def runs():
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as name:
        trtexec = conftest.Program(name)
        tiny.perceptron(trtexec.folder / "model.onnx")
        build = ("--onnx=model.onnx", "--skipInference")
        trtexec(*build, "--saveEngine=model.plan", "--minShapes=x:1x4", "--optShapes=x:1x4", "--maxShapes=x:4x4")
        trtexec(*build, "--saveEngine=two.plan", "--profile=0", "--minShapes=x:1x4", "--optShapes=x:2x4", "--maxShapes=x:2x4",
                "--profile=1", "--minShapes=x:3x4", "--optShapes=x:3x4", "--maxShapes=x:6x4")
        (trtexec.folder / "calib.cache").write_text("TRT-8601-EntropyCalibration2\nx: 3c010a14\nz: 3f800000\n")
        (trtexec.folder / "types.txt").write_text("# types\ndense:fp32\n")
        np.savez(trtexec.folder / "data.npz", x=np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
        np.ones((1, 4), np.float32).tofile(trtexec.folder / "ones.raw")
        answer = np.maximum(np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8).sum(0) + 1, 0)
        answer.tofile(trtexec.folder / "good.raw")
        (answer + np.float32(1)).tofile(trtexec.folder / "bad.raw")
        yield trtexec


def test_inputs_and_outputs_in_int8_and_fp8_are_codes_times_a_scale(runs):
    """The network between them computes in f32, so numpy says what must come out."""
    trtexec, shapes = runs, ("--shapes=x:4x4", "--iterations=1", "--warmUp=0", "--duration=0", "--builderOptimizationLevel=0")
    (trtexec.folder / "io.cache").write_text("TRT-8601-EntropyCalibration2\nx: 3c010204\ny: 3ca14285\n")
    scale_x, scale_y = np.frombuffer(bytes.fromhex("0402013c8542a13c"), "<f4")
    codes = np.arange(-8, 8, dtype=np.int8).reshape(4, 4) * 15
    codes.tofile(trtexec.folder / "codes.raw")
    trtexec("--onnx=model.onnx", "--calib=io.cache", "--inputIOFormats=int8:chw", "--outputIOFormats=int8:chw",
            "--loadInputs=x:codes.raw", "--dumpRawBindingsToFile", *shapes)
    weights = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    exact = np.maximum(codes.astype(np.float32) * scale_x @ weights + 1, 0)
    found = np.fromfile(trtexec.folder / "y.output.4.8.Int8.raw", np.int8).reshape(4, 8)
    assert np.abs(found - np.clip(exact / scale_y, -128, 127)).max() <= 0.5 + 1e-4
    # 0x38 is 1, 0xb8 is -1, 0x7e is 448: codes of float8, their scale 127/448 of that in the cache.
    np.array([0x38, 0xB8, 0x7E, 0] * 4, np.uint8).tofile(trtexec.folder / "codes.raw")
    trtexec("--onnx=model.onnx", "--fp8", "--calib=io.cache", "--inputIOFormats=fp8:chw", "--loadInputs=x:codes.raw",
            "--exportOutput=fp8.json", *shapes)
    row = np.array([1, -1, 448, 0], np.float32) * scale_x * 127 / 448
    values = json.loads((trtexec.folder / "fp8.json").read_text())[0]["values"]
    np.testing.assert_allclose(np.reshape(values, (4, 8))[0], np.maximum(row @ weights + 1, 0), rtol=1e-4, atol=1e-5)


def exit_status(expected, said):
    """ "exit 1", or "exit 1 if PATTERN" where a run judges times: then what it says decides."""
    parts = expected.split("; ")
    when = [part.removeprefix("exit 1 if ") for part in parts if part.startswith("exit 1 if ")]
    return int("exit 1" in parts or any(re.search(pattern, said) for pattern in when))


@pytest.mark.parametrize("arguments, expected", ROWS, ids=[row[0].replace("--", "").replace("/", "_") for row in ROWS])
def test_flag(arguments, expected, runs):
    arguments = arguments.split(" ")
    given = {argument.partition("=")[0] for argument in arguments}
    limits = [f"{flag}={value}" for flag, value in SHORT.items() if flag not in given]
    files = {part.removeprefix("file ") for part in expected.split("; ") if part.startswith("file ")}
    for name in files:
        pathlib.Path(runs.folder / name).unlink(missing_ok=True)
    done = runs.run(*arguments, *([] if given & {"--help", "-h", "--helpBuildRoute"} else limits))
    tail = "\n".join(done.stdout.splitlines()[-30:])
    assert done.returncode == exit_status(expected, done.stdout), tail
    assert all((runs.folder / name).stat().st_size for name in files), tail
    for part in expected.split("; "):
        if not part.startswith(("file ", "exit ")):
            assert re.search(part, done.stdout, re.MULTILINE), f"not seen: {part}\n{tail}"
