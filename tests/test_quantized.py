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
import onnxruntime
import pytest
import quantized
import zoo as models
from inference import relative_error, run_plan

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


def session_of(path, rewritten):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not rewritten:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_onnxruntime(model, kind, trtexec, folder):
    name, feeds, path = model.name, model.feeds, quantized.quantize(model.name, model.prepared, kind, folder / "quantized.onnx")
    operators = {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}
    assert operators & {"QuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"}, "nothing was quantised"
    shapes = models.shape_text(name)
    trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--builderOptimizationLevel=1", "--avgTiming=1",
            *([f"--shapes={shapes}"] if shapes else []))
    outputs = [output.name for output in session_of(path, True).get_outputs()]
    found = run_plan(trtexec, "m.plan", feeds, outputs, shapes)
    for output, expected, before in zip(outputs, session_of(path, False).run(outputs, feeds), model.exact):
        error, own, theirs = relative_error(found[output], expected), relative_error(found[output], before), relative_error(expected, before)
        print(f"{name} {kind} {output}: {error:.2e} from ONNX Runtime; from the model in floats {own:.2e}, ONNX Runtime {theirs:.2e}")
        assert np.isfinite(expected).all() and error <= max(2e-2, theirs * 2 / 3), f"output {output}: {error:.2e}"
        assert own <= 1.1 * theirs + 1e-3, f"output {output}: {own:.2e}, ONNX Runtime {theirs:.2e}"


QUANTIZERS = {"QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul", "QLinearSigmoid",
              "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearConcat", "QLinearSoftmax", "QGemm"}


def quantized_tensors(graph):
    """What nodes make of activations: bytes, and the scales and zero points that are found as the model runs."""
    return [output for node in graph.node if node.op_type in QUANTIZERS for output in node.output if output]


def typed(name, array):
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def layer_by_layer(path, feeds):
    """The model with every quantised tensor as an input for its readers and as an output of its maker; what ONNX Runtime gives for
    them where it runs the model as it is written (its quantised Softmax, for one, looks exponentials up in a coarser table); both by
    number."""
    model = onnx.load(path)
    names = quantized_tensors(model.graph)
    kept = list(model.graph.output)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in {output.name for output in kept})
    exposed = path.with_name("exposed.onnx")
    onnx.save(model, exposed)
    values = dict(zip(names, session_of(exposed, False).run(names, feeds)))
    number = {name: i for i, name in enumerate(names)}
    for node in model.graph.node:
        node.input[:] = [f"fed{number[name]}" if name in number else name for name in node.input]
        node.output[:] = [f"made{number[name]}" if name in number else name for name in node.output]
    del model.graph.output[:], model.graph.value_info[:]
    model.graph.input.extend(typed(f"fed{number[name]}", value) for name, value in values.items())
    model.graph.output.extend(typed(f"made{number[name]}", value) for name, value in values.items())
    layers = path.with_name("layers.onnx")
    onnx.save(model, layers)
    return layers, [values[name] for name in names]


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_agrees_with_onnxruntime(model, kind, trtexec, folder):
    path, values = layer_by_layer(quantized.quantize(model.name, model.prepared, kind, folder / "quantized.onnx"), model.feeds)
    shapes = models.shape_text(model.name)
    trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--builderOptimizationLevel=1", "--avgTiming=1",
            *([f"--shapes={shapes}"] if shapes else []))
    feeds = model.feeds | {f"fed{i}": value for i, value in enumerate(values)}
    found = run_plan(trtexec, "m.plan", feeds, [f"made{i}" for i in range(len(values))], shapes)
    assert values
    for i, expected in enumerate(values):
        if expected.dtype == np.float32:
            np.testing.assert_allclose(found[f"made{i}"], expected, rtol=1e-5)
            continue
        steps = np.abs(found[f"made{i}"].astype(int) - expected.astype(int))
        assert steps.max() <= 1, f"tensor {i}: {steps.max()} steps"
        assert (steps > 0).sum() <= max(1, steps.size / 1000), f"tensor {i}: {(steps > 0).sum()} of {steps.size} elements"
