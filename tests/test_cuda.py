# SPDX-License-Identifier: Apache-2.0
"""The CUDA backend where there is no card: every kernel for the zoo's models compiles, and asking for a card says why not."""

import re
import subprocess

import conftest
import materialise
import pytest

COMPILER = conftest.UNIT / "hone_cuda_sources"
ARCHITECTURES = "sm_80,sm_90,sm_100"

needs_cuda = pytest.mark.skipif(not COMPILER.exists(), reason="this build has no CUDA backend")


def compile_sources(*arguments):
    done = subprocess.run([COMPILER, *arguments], capture_output=True, text=True, timeout=7000, check=False)
    if "NVRTC was not found" in done.stderr:
        pytest.skip(done.stderr.strip())
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-4000:]
    counts = re.findall(r" (\d+) regions, (\d+) taken, (\d+) kernels", done.stdout)
    assert counts and all(int(compiled) >= int(taken) > 0 for _, taken, compiled in counts)


@needs_cuda
def test_kernels_of_a_model_compile(zoo):
    compile_sources("--all", ARCHITECTURES, zoo("byte_gpt"))


@needs_cuda
@pytest.mark.slow
def test_kernels_of_the_zoo_compile(zoo):
    """Of each family what it thinks best; in one process, which compiles what models share once."""
    compile_sources(ARCHITECTURES, *map(zoo, materialise.names()))


@needs_cuda
@pytest.mark.long
@pytest.mark.parametrize("name", materialise.names())
def test_every_kernel_of_the_zoo_compiles(name, zoo):
    compile_sources("--all", ARCHITECTURES, zoo(name))


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
