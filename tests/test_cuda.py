# SPDX-License-Identifier: Apache-2.0
"""The CUDA backend where there is no GPU: every kernel for the zoo's models compiles, and asking for a GPU says why not."""

import os
import re
import subprocess

import conftest
import materialise
import numpy as np
import onnx
import pytest
import tiny
import zoo as models

COMPILER = conftest.UNIT / "hone_cuda_sources"
ARCHITECTURES = "sm_80,sm_90,sm_100"

needs_cuda = pytest.mark.skipif(not COMPILER.exists(), reason="this build has no CUDA backend")


def start(*arguments):
    """With a driver that does nothing where there is none, so that what is compiled is loaded too."""
    folders = [os.environ.get("HONE_CUDA_PATH", ""), str(conftest.UNIT / "stub_driver")]
    environment = {**os.environ, "HONE_CUDA_PATH": ":".join(filter(None, folders))}
    return subprocess.Popen([COMPILER, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def with_shapes(zoo, name):
    return f"{zoo(name)}@{models.shape_text(name)}"


def finish(process):
    output, errors = process.communicate(timeout=7000)
    if "NVRTC was not found" in errors:
        pytest.skip(errors.strip())
    print(output)
    assert process.returncode == 0, errors[-4000:]
    lines = re.findall(r"^(.+) (sm_\d+) (f\d+): \d+ regions, (\d+) taken, (\d+) kernels", output, re.MULTILINE)
    assert lines and all(int(compiled) >= int(taken) for *_, taken, compiled in lines)
    models_taken = {(model, precision) for model, _, precision, taken, _ in lines if int(taken)}
    assert models_taken == {(model, precision) for model, _, precision, *_ in lines}
    assert {architecture for _, architecture, _, taken, _ in lines if int(taken)} == set(ARCHITECTURES.split(","))


@needs_cuda
def test_kernels_of_a_model_compile(zoo):
    finish(start("--all", ARCHITECTURES, zoo("byte_gpt")))


@needs_cuda
@pytest.mark.slow
def test_kernels_of_the_zoo_compile(zoo):
    """Of each family what it thinks best, each region for one architecture (unit tests compile every family for all, and the long
    test below everything). A process compiles one kernel at a time, and once what its models share: two with half of the models
    each, both exports of one network in the same half."""
    networks = sorted({name.split(".")[0] for name in materialise.names()})
    halves = [[with_shapes(zoo, name) for name in materialise.names() if name.split(".")[0] in networks[half::2]] for half in (0, 1)]
    for process in [start("--turns", ARCHITECTURES, *paths) for paths in halves]:
        finish(process)


@needs_cuda
@pytest.mark.long
@pytest.mark.parametrize("name", materialise.names())
def test_every_kernel_of_the_zoo_compiles(name, zoo):
    finish(start("--all", ARCHITECTURES, with_shapes(zoo, name)))


LIBRARIES_HAVE = {"Linear", "MatMul", "Conv", "ConvTranspose"}  # the source of our own kernels is asked alone


def quantised(kind, folder):
    """A small network as ONNX Runtime's quantiser writes it."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    source, target = tiny.convolutions(folder / "floats.onnx"), folder / f"{kind}.onnx"
    if kind == "dynamic":
        quantization.quantize_dynamic(str(source), str(target))
        return target

    class Reader(quantization.CalibrationDataReader):
        feeds = iter([{"x": np.random.default_rng(5).standard_normal((1, 3, 16, 16), np.float32)}])

        def get_next(self):
            return next(self.feeds, None)

    form, types = quantization.QuantFormat, quantization.QuantType
    symmetric = kind == "symmetric"
    quantization.quantize_static(str(source), str(target), Reader(), quant_format=form.QOperator if kind == "operators" else form.QDQ, per_channel=kind != "operators",
                                 activation_type=types.QInt16 if kind == "wide" else types.QInt8 if symmetric else types.QUInt8, weight_type=types.QInt8,
                                 extra_options={"ActivationSymmetric": symmetric})
    return target


def microsoft_forms(folder):
    """Each operator of com.microsoft on quantised tensors, and what stands around it in language models."""
    microsoft = pytest.importorskip("test_microsoft")
    for name, (kind, operands, attributes, outputs) in microsoft.CASES.items():
        if name.startswith(("q_", "dynamic_", "integer_", "n_bits", "group_query")):
            onnx.save(microsoft.model_of(kind, operands, attributes, outputs)[0], folder / f"{name}.onnx")
            yield folder / f"{name}.onnx"


@needs_cuda
def test_no_layer_of_a_quantised_model_is_left_to_the_host(folder):
    paths = [quantised(kind, folder) for kind in ("pairs", "symmetric", "wide", "operators", "dynamic")] + list(microsoft_forms(folder))
    process = start("--offers", "sm_90", *paths)
    output, errors = process.communicate(timeout=600)
    if "NVRTC was not found" in errors:
        pytest.skip(errors.strip())
    assert process.returncode == 0, errors[-4000:]
    lines = re.findall(r"^(.+)\.onnx sm_90 (f\d+): (\d+) regions, \d+ taken, \d+ kernels; not taken: (.*)$", output, re.MULTILINE)
    assert len(lines) == 2 * len(paths)
    left = {(os.path.basename(name), precision): set(text.split()) - LIBRARIES_HAVE for name, precision, _, text in lines}
    assert {key: operators for key, operators in left.items() if operators} == {}


@needs_cuda
def test_a_gpu_that_is_not_there_is_named(trtexec):
    done = trtexec.run("--device=cuda:99", "--onnx=none.onnx")
    assert done.returncode != 0
    assert "Cannot find device ID cuda:99" in done.stdout and "hint" in done.stdout


def test_doctor_says_what_there_is(folder):
    text = conftest.Program(folder, "hone")("doctor")
    assert "backend cpu" in text
    if COMPILER.exists():
        assert "backend cuda" in text
