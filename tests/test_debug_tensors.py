# SPDX-License-Identifier: Apache-2.0
"""Debug tensors: what they hold against ONNX Runtime, the files that they are written to, and names that are not there."""

import json

import numpy as np
import onnx
import pytest
import tiny
from inference import ONE_RUN, relative_error, session_of

SHAPES = ("--minShapes=x:1x3x16x16", "--optShapes=x:2x3x16x16", "--maxShapes=x:4x3x16x16")
INNER = ("c0", "r0", "s", "g", "p", "f")
TOLERANCE = 2e-5


@pytest.fixture
def model(folder):
    return tiny.convolutions(folder / "model.onnx")


def truth(path, values, names):
    """What ONNX Runtime computes for tensors of the model's middle."""
    model = onnx.load(path)
    for name in names:
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    return dict(zip(names, session_of(model.SerializeToString()).run(list(names), {"x": values})))


def images(count):
    return np.random.default_rng(count).standard_normal((count, 3, 16, 16), np.float32)


def test_marked_tensors_hold_what_the_model_says_at_every_shape(trtexec, model):
    trtexec("--onnx=model.onnx", f"--markDebug={','.join(INNER)}", *SHAPES, "--saveEngine=m.plan", "--skipInference")
    for count in (1, 4):
        images(count).tofile(trtexec.folder / "x.in")
        trtexec("--loadEngine=m.plan", f"--shapes=x:{count}x3x16x16", "--loadInputs=x:x.in", *ONE_RUN, "--saveAllDebugTensors=numpy")
        for name, expected in truth(model, images(count), INNER).items():
            assert relative_error(np.load(trtexec.folder / f"{name}.npy"), expected) < TOLERANCE, (name, count)


def test_they_outlive_later_layers_and_change_no_output(trtexec, model):
    images(1).tofile(trtexec.folder / "x.in")
    run = ("--loadInputs=x:x.in", "--shapes=x:1x3x16x16", *ONE_RUN, "--exportOutput=o.json")
    trtexec("--onnx=model.onnx", *run)
    plain = json.loads((trtexec.folder / "o.json").read_text())[0]["values"]
    trtexec("--onnx=model.onnx", *run, "--markDebug=c0,s", "--saveDebugTensors=c0:first.raw,s:sum.raw")
    marked = json.loads((trtexec.folder / "o.json").read_text())[0]["values"]
    assert marked == pytest.approx(plain, rel=1e-4, abs=1e-5)
    expected = truth(model, images(1), ("c0", "s"))
    for name, file in (("c0", "first.raw"), ("s", "sum.raw")):
        found = np.fromfile(trtexec.folder / file, np.float32).reshape(expected[name].shape)
        assert relative_error(found, expected[name]) < TOLERANCE


def test_they_are_kept_when_tactics_are_chosen_anew_for_another_machine(trtexec, model):
    trtexec("--onnx=model.onnx", "--markDebug=c0,p", *SHAPES, "--versionCompatible", "--saveEngine=m.plan", "--skipInference")
    images(3).tofile(trtexec.folder / "x.in")
    said = trtexec("--loadEngine=m.plan", "--shapes=x:3x3x16x16", "--loadInputs=x:x.in", *ONE_RUN, "--saveAllDebugTensors=numpy",
                   env={"HONE_CPU_ISA": "scalar"})
    assert "its tactics are chosen anew" in said and "Output binding for c0" not in said
    for name, expected in truth(model, images(3), ("c0", "p")).items():
        assert relative_error(np.load(trtexec.folder / f"{name}.npy"), expected) < TOLERANCE, name


def test_unfused_tensors_are_those_between_layers(trtexec, model):
    images(2).tofile(trtexec.folder / "x.in")
    trtexec("--onnx=model.onnx", "--shapes=x:2x3x16x16", "--loadInputs=x:x.in", *ONE_RUN, "--markUnfusedTensorsAsDebugTensors",
            "--saveAllDebugTensors=summary,numpy")
    names = [tensor["name"] for tensor in json.loads((trtexec.folder / "tensor_summary.json").read_text())["tensors"]]
    assert "r0" in names and "c0" not in names, "the convolution and its activation are one layer"
    shared = [name for name in names if name in INNER]
    for name, expected in truth(model, images(2), shared).items():
        assert relative_error(np.load(trtexec.folder / f"{name}.npy"), expected) < TOLERANCE, name


def test_every_form_of_file(trtexec, model):
    images(1).tofile(trtexec.folder / "x.in")
    said = trtexec("--onnx=model.onnx", "--shapes=x:1x3x16x16", "--loadInputs=x:x.in", *ONE_RUN, "--markDebug=x,p,y",
                   "--saveAllDebugTensors=summary,numpy,string,raw")
    expected = {"x": images(1), **truth(model, images(1), ("p",))}
    expected["y"] = session_of(model.read_bytes()).run(["y"], {"x": images(1)})[0]
    tensors = json.loads((trtexec.folder / "tensor_summary.json").read_text())["tensors"]
    assert {tensor["name"] for tensor in tensors} == set(expected)
    for tensor in tensors:
        values = expected[tensor["name"]]
        assert tensor["shape"] == list(values.shape) and tensor["count"] == values.size and tensor["type"] == "Float"
        assert [tensor[key] for key in ("min", "max", "mean", "std")] == pytest.approx(
            [values.min(), values.max(), values.mean(), values.std()], rel=1e-3, abs=1e-5)
        raw = np.fromfile(trtexec.folder / f"{tensor['name']}.raw", np.float32)
        text = np.loadtxt(trtexec.folder / f"{tensor['name']}.str", ndmin=2)
        np.testing.assert_array_equal(raw, np.load(trtexec.folder / f"{tensor['name']}.npy").ravel())
        np.testing.assert_allclose(text.ravel(), raw, rtol=1e-5)
        assert text.shape[1] == values.shape[-1], "a line per row"
    assert "Saved debug tensor p to p.npy" in said


def test_half_precision_at_the_edge_and_types_without_numpy(trtexec, folder):
    nodes = [onnx.helper.make_node("Cast", ["x"], ["b"], to=onnx.TensorProto.BFLOAT16),
             onnx.helper.make_node("Cast", ["b"], ["y"], to=onnx.TensorProto.FLOAT)]
    tiny.save(folder / "cast.onnx", nodes, outputs=[("y", ["n", 4])])
    trtexec("--onnx=cast.onnx", "--shapes=x:2x4", *ONE_RUN, "--markDebug=b", "--saveAllDebugTensors=numpy,raw", "--dumpRawBindingsToFile")
    stored = np.load(folder / "b_to_float.npy")
    assert stored.dtype == np.float32 and (folder / "b.raw").stat().st_size == 2 * stored.size
    np.testing.assert_array_equal(stored, np.fromfile(folder / "y.output.2.4.Float.raw", np.float32).reshape(2, 4))


@pytest.mark.parametrize("arguments, message", [
    (("--markDebug=c9",), r"--markDebug: the network has no tensor called c9\n  hint: the nearest name is c"),
    (("--markDebug=w0",), "w0 is a constant of the model, so it cannot be a debug tensor"),
    (("--markDebug=c1", "--saveDebugTensors=c0:c0.raw"), "--saveDebugTensors: c0 is no debug tensor of the engine\n  hint: the nearest name is c1"),
    (("--saveDebugTensors=c0:c0.raw",), "hint: build the engine with --markDebug=c0"),
])
def test_names_that_are_not_there_are_refused_with_the_nearest(trtexec, model, arguments, message):
    done = trtexec.run("--onnx=model.onnx", "--builderOptimizationLevel=0", *ONE_RUN, *arguments)
    assert done.returncode == 1 and message.replace(r"\n", "\n") in done.stdout, done.stdout[-2000:]
