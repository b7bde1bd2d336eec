# SPDX-License-Identifier: Apache-2.0
"""Models that ONNX Runtime's own quantiser writes - pairs of QuantizeLinear and DequantizeLinear, quantised operators, matmuls
quantised as they run - build, run and agree with ONNX Runtime's CPU provider.

A value half-way between two quantised steps may fall to either side, and each such step shows in what follows: ONNX Runtime
differs from itself by 1e-2 (ResNet-18) to 2e-1 (DeiT) between a model as it is written and as it rewrites it. So the measure
is what the quantisation itself costs: the distance from ONNX Runtime's result is at most 2e-2 of its norm, or two thirds of
the distance between that and what the model gave before it was quantised; and Hone's result is as near to the latter.

Layer by layer it is sharper: each quantised tensor, made of ONNX Runtime's own quantised tensors before it, differs from ONNX Runtime's
in one of a thousand elements at most, and in none by more than one step.
"""

import pathlib
import tempfile

import conftest
import numpy as np
import onnx
import pytest
import quantized
import zoo as models
from inference import relative_error, run_plan
from quantized_layers import difference, layer_by_layer, session_of

pytest.importorskip("onnxruntime.quantization")

pytestmark = pytest.mark.slow

NAMES = ["resnet18.ts", "mobilenet_v2.ts", "timm_deit_tiny_patch16_224.ts", "byte_gpt"]
KINDS = ["qdq", "qoperator", "dynamic"]

class Model:
    """A model of the zoo in floats, prepared for the quantiser, and what it gives."""

    def __init__(self, name, folder):
        path = conftest.unpacked(name, folder)
        self.name, self.prepared = name, quantized.prepare(path, folder / "prepared.onnx")
        self.feeds = {value.name: value.values(1) for value in models.inputs(name)}
        self.exact = session_of(path, True).run(None, self.feeds)


@pytest.fixture(scope="module", params=NAMES)
def model(request):
    """Once for all kinds."""
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as folder:
        yield Model(request.param, pathlib.Path(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_onnxruntime(model, kind, trtexec, folder):
    name, feeds, path = model.name, model.feeds, quantized.quantize(model.name, model.prepared, kind, folder / "quantized.onnx")
    operators = {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}
    assert operators & {"QuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"}, "nothing was quantised"
    shapes = models.shape_text(name)
    # Ranges that a run measures turn the last bits of floats into steps: floats are to be as exact as ONNX Runtime's.
    trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--builderOptimizationLevel=1", "--avgTiming=1", "--noTF32",
            *([f"--shapes={shapes}"] if shapes else []))
    outputs = [output.name for output in session_of(path, True).get_outputs()]
    found = run_plan(trtexec, "m.plan", feeds, outputs, shapes)
    for output, expected, before in zip(outputs, session_of(path, False).run(outputs, feeds), model.exact):
        error, own, theirs = relative_error(found[output], expected), relative_error(found[output], before), relative_error(expected, before)
        print(f"{name} {kind} {output}: {error:.2e} from ONNX Runtime; from the model in floats {own:.2e}, ONNX Runtime {theirs:.2e}")
        assert np.isfinite(expected).all() and error <= max(2e-2, theirs * 2 / 3), f"output {output}: {error:.2e}"
        assert own <= 1.1 * theirs + 1e-3, f"output {output}: {own:.2e}, ONNX Runtime {theirs:.2e}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_agrees_with_onnxruntime(model, kind, trtexec, folder):
    layers = layer_by_layer(quantized.quantize(model.name, model.prepared, kind, folder / "quantized.onnx"), model.feeds)
    shapes = models.shape_text(model.name)
    trtexec(f"--onnx={layers.path}", "--saveEngine=m.plan", "--skipInference", "--builderOptimizationLevel=1", "--avgTiming=1",
            *([f"--shapes={shapes}"] if shapes else []))
    found = run_plan(trtexec, "m.plan", layers.feeds(model.feeds), layers.outputs(), shapes)
    assert layers.values
    for i, expected in enumerate(layers.values):
        count, steps = difference(found[f"made{i}"], expected)
        assert steps <= 1, f"tensor {layers.names[i]}: {steps} steps"
        assert count <= (0 if expected.dtype == np.float32 else max(1, expected.size / 1000)), f"tensor {layers.names[i]}: {count} of {expected.size} elements"
