# SPDX-License-Identifier: Apache-2.0
"""Refit: other weights in the same engine, plans without weights, and models that are another network."""

import re

import numpy as np
import onnx
import pytest
import tiny
from inference import ONE_RUN, read_raw, reference_session, relative_error
from onnx import numpy_helper

SHAPES = ("--minShapes=x:1x3x16x16", "--optShapes=x:2x3x16x16", "--maxShapes=x:4x3x16x16")
TOLERANCE = 2e-5


@pytest.fixture
def models(folder):
    """model.onnx and other.onnx, the same network with other weights."""
    model = onnx.load(tiny.convolutions(folder / "model.onnx"))
    random = np.random.default_rng(99)
    for weight in model.graph.initializer:
        values = numpy_helper.to_array(weight)
        weight.CopyFrom(numpy_helper.from_array(random.standard_normal(values.shape, np.float32) * np.float32(0.3), weight.name))
    onnx.save(model, folder / "other.onnx")
    return folder


def answer(trtexec, model, *arguments):
    """How far an engine's output is from the model's, and what the run printed."""
    values = np.random.default_rng(5).standard_normal((2, 3, 16, 16), np.float32)
    values.tofile(trtexec.folder / "x.in")
    said = trtexec(*arguments, "--shapes=x:2x3x16x16", "--loadInputs=x:x.in", *ONE_RUN, "--dumpRawBindingsToFile")
    expected = reference_session(trtexec.folder / model).run(["y"], {"x": values})[0]
    return relative_error(read_raw(trtexec.folder, "y"), expected), said


def chosen(text):
    return re.findall(r"chosen: (\S+)", text)


def test_a_plan_takes_other_weights_and_times_nothing(trtexec, models):
    trtexec("--onnx=model.onnx", *SHAPES, "--refit", "--saveEngine=m.plan", "--skipInference")
    wrong, said = answer(trtexec, "other.onnx", "--loadEngine=m.plan")
    assert wrong > 0.1
    tactics = chosen(trtexec("--loadEngine=m.plan", "--skipInference", "--explain"))
    error, said = answer(trtexec, "other.onnx", "--loadEngine=m.plan", "--refit", "--refitFromOnnx=other.onnx", "--explain", "--verbose")
    assert error < TOLERANCE
    assert chosen(said) == tactics and "were timed anew" not in said
    assert re.search(r"Timing cache: \d+ entries, 0 of them new", said)
    assert re.search(r"Engine refitted with the weights of other\.onnx in [0-9.e-]+ sec\.", said)


def test_a_build_that_ran_out_of_time_is_refitted_along_the_same_choices(trtexec, models):
    trtexec("--onnx=model.onnx", *SHAPES, "--refit", "--buildBudget=0", "--saveEngine=m.plan", "--skipInference")
    tactics = chosen(trtexec("--loadEngine=m.plan", "--skipInference", "--explain"))
    error, said = answer(trtexec, "other.onnx", "--loadEngine=m.plan", "--refit", "--refitFromOnnx=other.onnx", "--explain")
    assert error < TOLERANCE and chosen(said) == tactics and "were timed anew" not in said


@pytest.mark.parametrize("flags, others", [(["--stripWeights"], False), (["--stripAllWeights"], True),
                                           (["--weightless", "--refit"], True)])
def test_a_plan_without_weights(trtexec, models, flags, others):
    trtexec("--onnx=model.onnx", *SHAPES, *flags, "--saveEngine=bare.plan", "--skipInference")
    trtexec("--onnx=model.onnx", *SHAPES, "--saveEngine=full.plan", "--skipInference")
    bare, full = ((models / name).read_bytes() for name in ("bare.plan", "full.plan"))
    (bias,) = (numpy_helper.to_array(weight).tobytes() for weight in onnx.load(models / "model.onnx").graph.initializer if weight.name == "b1")
    assert bias in full and bias not in bare
    refused = trtexec.run("--loadEngine=bare.plan", *ONE_RUN)
    assert refused.returncode == 1 and "the plan was written without weights\n  hint: load it with --refit --refitFromOnnx=" in refused.stdout
    error, _ = answer(trtexec, "model.onnx", "--loadEngine=bare.plan", "--refit", "--refitFromOnnx=model.onnx")
    assert error < TOLERANCE
    other = trtexec.run("--loadEngine=bare.plan", "--refit", "--refitFromOnnx=other.onnx", "--shapes=x:2x3x16x16", *ONE_RUN)
    assert (other.returncode == 0) == others
    if not others:
        assert "the model has other weights than the engine" in other.stdout and "[E] Engine refit failed." in other.stdout


def test_formats_shapes_and_debug_tensors_come_back_with_the_weights(trtexec, models):
    build = ("--inputIOFormats=fp32:hwc", "--outputIOFormats=fp16:chw", "--markDebug=g", "--noTF32", "--tacticSources=-ONEDNN")
    trtexec("--onnx=model.onnx", *SHAPES, *build, "--stripAllWeights", "--saveEngine=bare.plan", "--skipInference")
    said = trtexec("--loadEngine=bare.plan", "--refit", "--refitFromOnnx=other.onnx", "--shapes=x:4x3x16x16", *ONE_RUN,
                   "--saveDebugTensors=g:g.raw", "--dumpRawBindingsToFile", "--dumpOptimizationProfile", "--explain")
    assert (models / "y.output.4.10.Half.raw").stat().st_size == 80 and (models / "g.raw").stat().st_size == 4 * 4 * 16 * 16 * 16
    assert "Model input x (profile 0): min=1x3x16x16, opt=2x3x16x16, max=4x3x16x16" in said and "chosen: onednn" not in said


def test_a_build_that_strips_runs_with_the_models_weights(trtexec, models):
    error, said = answer(trtexec, "model.onnx", "--onnx=model.onnx", "--stripWeights", "--saveEngine=bare.plan")
    assert error < TOLERANCE and "The plan in bare.plan has no weights" in said


def test_another_network_is_refused_with_the_first_difference(trtexec, models):
    trtexec("--onnx=model.onnx", *SHAPES, "--refit", "--saveEngine=m.plan", "--skipInference", "--builderOptimizationLevel=0")
    model = onnx.load(models / "model.onnx")
    (gate,) = (node for node in model.graph.node if node.name == "gate")
    gate.op_type = "Tanh"
    onnx.save(model, models / "tanh.onnx")
    done = trtexec.run("--loadEngine=m.plan", "--refit", "--refitFromOnnx=tanh.onnx", *ONE_RUN)
    assert done.returncode == 1 and "[E] Engine refit failed." in done.stdout
    assert re.search(r"another network than the engine's: at gate the engine has Sigmoid\(.*the model Tanh\(", done.stdout), done.stdout[-1500:]
    trtexec("--onnx=model.onnx", *SHAPES, "--saveEngine=fixed.plan", "--skipInference", "--builderOptimizationLevel=0")
    done = trtexec.run("--loadEngine=fixed.plan", "--refit", "--refitFromOnnx=other.onnx", *ONE_RUN)
    assert done.returncode == 1 and "built with fixed weights" in done.stdout


def test_lists_and_times(trtexec, models):
    said = trtexec("--onnx=model.onnx", *SHAPES, "--refit", "--dumpRefit", "--timeRefit", "--skipInference")
    listed = re.findall(r"^\[.*\[I\] (\S+) (Kernel|Bias|Scale|Shift|Constant)$", said, re.MULTILINE) or re.findall(
        r"^\[I\] (\S+) (Kernel|Bias|Scale|Shift|Constant)$", said, re.MULTILINE)
    assert listed == [("conv0", "Kernel"), ("conv1", "Kernel"), ("conv1", "Bias"), ("classify", "Kernel")]
    assert float(re.search(r"Engine refitted in (\S+) ms\.", said)[1]) > 0
    said = trtexec("--onnx=model.onnx", *SHAPES, "--dumpRefit", "--skipInference", "--builderOptimizationLevel=0")
    assert "--dumpRefit has no effect without --refit" in said and "conv0 Kernel" not in said
