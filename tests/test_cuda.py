# SPDX-License-Identifier: Apache-2.0
"""The CUDA backend where there is no card: every kernel for the zoo's models compiles, and asking for a card says why not."""

import subprocess

import conftest
import materialise
import pytest

COMPILER = conftest.UNIT / "hone_cuda_sources"
ALL = "sm_80,sm_90,sm_100"
SMALL = {"byte_gpt"}
COMMON = {"mobilenet_v3_large.ts": "sm_80", "resnet18.ts": "sm_90", "hf_distilbert.ts": "sm_100"}  # one each: all take a quarter of an hour

needs_cuda = pytest.mark.skipif(not COMPILER.exists(), reason="this build has no CUDA backend")


def names():
    """Every model; those that are neither small nor common take an hour together: -m long."""

    def marks(name):
        return () if name in SMALL else pytest.mark.slow if name in COMMON else pytest.mark.long

    return [pytest.param(name, marks=marks(name)) for name in materialise.names()]


@needs_cuda
@pytest.mark.parametrize("name", names())
def test_kernels_of_the_zoo_compile(name, zoo):
    done = subprocess.run([COMPILER, COMMON.get(name, ALL), zoo(name)], capture_output=True, text=True, timeout=1800, check=False)
    if "NVRTC was not found" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr[-4000:]
    print(done.stdout)


@needs_cuda
def test_a_card_that_is_not_there_is_named(trtexec):
    done = trtexec.run("--device=cuda:99", "--onnx=none.onnx")
    assert done.returncode != 0
    assert "Cannot find device ID cuda:99" in done.stdout and "hint" in done.stdout


def test_doctor_says_what_there_is(folder):
    text = conftest.Program(folder, "hone")("doctor")
    assert "backend cpu" in text
    if COMPILER.exists():
        assert "backend cuda" in text
