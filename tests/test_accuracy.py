# SPDX-License-Identifier: Apache-2.0
"""hone accuracy: where error enters a network in few bits, what it comes to, and how few layers have to stay in FP32."""

import json
import xml.etree.ElementTree

import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from conftest import unpacked
from onnx import helper

RANDOM = np.random.default_rng(17)
LAYERS = 6
UNTIMED = "--builderOptimizationLevel=0"
SPOILT = 3


@pytest.fixture
def network(folder):
    """A chain of convolutions. One of them reads a tensor with a channel that is thirty times as large as the others, and that
    nothing depends on much: no scale serves all its channels."""
    weights, nodes, value = {}, [], "x"
    for i in range(LAYERS):
        kernel = RANDOM.standard_normal((8, 8, 3, 3), np.float32) * np.float32(0.16)
        if i == SPOILT - 1:
            kernel[0] *= 30
        if i == SPOILT:
            kernel[:, 0] /= 30
        weights[f"w{i}"] = kernel
        nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("LeakyRelu", [f"c{i}"], [f"r{i}" if i + 1 < LAYERS else "y"], name=f"relu{i}", alpha=0.5))
        value = f"r{i}"
    tiny.save(folder / "m.onnx", nodes, weights, inputs=[("x", ["n", 8, 12, 12])], outputs=[("y", ["n", 8, 12, 12])])
    np.savez(folder / "data.npz", x=RANDOM.standard_normal((6, 8, 12, 12), np.float32))
    return folder


def examined(hone, *arguments, status=0):
    done = hone.run("accuracy", "m.onnx", "--json", UNTIMED, *arguments)
    assert done.returncode == status, done.stdout[-3000:]
    return json.loads(hone.answer("accuracy", "m.onnx", "--json", UNTIMED, *arguments))


def exact(folder, x, name="m.onnx"):
    return onnxruntime.InferenceSession(folder / name, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def test_the_layer_that_reads_what_no_scale_fits_is_the_worst(hone, network):
    found = examined(hone, "--int8", "--data=data.npz", "--calibMethod=minmax")
    # What enters is seen where the tensor is rounded: in the layer that writes the bytes, or, where these reach further, that reads them.
    assert {f"conv{SPOILT - 1}", f"conv{SPOILT}"} & set(found["layers"][0]["nodes"])
    good = [layer["enters"] for layer in found["layers"] if not {f"conv{SPOILT - 1}", f"conv{SPOILT}"} & set(layer["nodes"])]
    assert len(good) >= LAYERS - 2 and found["layers"][0]["enters"] > 4 * max(good)
    assert found["most_waiting"] <= 2


def test_the_error_is_that_of_the_engine(hone, network, trtexec):
    found = examined(hone, "--int8", "--data=data.npz")
    x = np.load(network / "data.npz")["x"]
    difference = size = 0
    for i in range(len(x)):
        x[i:i + 1].tofile(network / "x.bin")
        trtexec("--onnx=m.onnx", "--int8", "--calibData=data.npz", UNTIMED, "--shapes=x:1x8x12x12", "--loadInputs=x:x.bin", "--iterations=1", "--warmUp=0", "--duration=0",
                "--exportOutput=y.json")
        y = np.array(json.loads((network / "y.json").read_text())[0]["values"], np.float32).reshape(1, 8, 12, 12)
        expected = exact(network, x[i:i + 1])
        difference, size = difference + np.sum((y - expected) ** 2.0), size + np.sum(expected ** 2.0)
    assert found["error"] == pytest.approx(np.sqrt(difference / size), rel=1e-3)
    last = max(found["layers"], key=lambda layer: layer["tensor"] == "y")
    assert last["relative_error"] == pytest.approx(found["error"], rel=1e-6)


def test_the_list_within_a_budget_serves_the_builder(hone, network, trtexec):
    plain = examined(hone, "--int8", "--data=data.npz", "--calibMethod=minmax")
    budget = plain["error"] / 2
    found = examined(hone, "--int8", "--data=data.npz", "--calibMethod=minmax", f"--budget={budget}", "--keep-list=keep.txt")
    kept = found["kept"]
    assert kept["error"] <= budget and f"conv{SPOILT}" in kept["kept"] and len(kept["kept"]) <= 2
    assert (network / "keep.txt").read_text().splitlines()[1:] == [f"{node}:fp32" for node in kept["kept"]]
    again = examined(hone, "--int8", "--data=data.npz", "--calibMethod=minmax", "--precisionFile=keep.txt")
    assert again["error"] == pytest.approx(kept["error"], rel=1e-6)
    nothing = examined(hone, "--int8", "--data=data.npz", "--calibMethod=minmax", f"--budget={plain['error'] * 1.01}")
    assert nothing["kept"]["kept"] == []


def test_no_error_at_all_keeps_every_convolution(hone, network):
    kept = examined(hone, "--int8", "--data=data.npz", "--budget=0")["kept"]
    assert kept["error"] == 0 and {f"conv{i}" for i in range(LAYERS)} <= set(kept["kept"])


def test_ranges_are_held_against_the_type(hone, network):
    found = {layer["tensor"]: layer for layer in examined(hone, "--int8", "--data=data.npz", "--calibMethod=percentile=99")["layers"]}
    spoilt = found[f"r{SPOILT - 1}"]
    x = np.load(network / "data.npz")["x"]
    whole = onnx.load(network / "m.onnx")
    whole.graph.output.append(helper.make_tensor_value_info(f"r{SPOILT - 1}", onnx.TensorProto.FLOAT, None))
    onnx.save(whole, network / "all.onnx")
    values = np.concatenate([onnxruntime.InferenceSession(network / "all.onnx", providers=["CPUExecutionProvider"]).run([f"r{SPOILT - 1}"], {"x": x[i:i + 1]})[0]
                             for i in range(len(x))])
    assert spoilt["min"] == pytest.approx(values.min(), rel=1e-4) and spoilt["max"] == pytest.approx(values.max(), rel=1e-4)
    if spoilt["type"] == "i8":
        assert spoilt["beyond"] == pytest.approx(np.mean((values > spoilt["type_max"]) | (values < spoilt["type_min"])), abs=1e-4)
        assert 0 < spoilt["beyond"] < 0.02


def test_random_values_do_where_there_are_no_data(hone, network):
    said = hone("accuracy", "m.onnx", UNTIMED, "--bf16")
    assert "random values: give samples with --data" in said and "conv0" in said


def test_a_quantised_model_is_held_against_the_one_it_was_made_of(hone, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz")
    done = hone.run("accuracy", "q.onnx", "--data=data.npz")
    assert done.returncode != 0 and "--reference" in done.stdout
    found = json.loads(hone("accuracy", "q.onnx", "--reference=m.onnx", "--data=data.npz", "--json", UNTIMED))
    direct = examined(hone, "--int8", "--data=data.npz")
    assert found["error"] == pytest.approx(direct["error"], rel=1e-3)
    assert {layer["tensor"] for layer in found["layers"]} == {layer["tensor"] for layer in direct["layers"]}


def test_the_plot_names_every_layer(hone, network):
    hone("accuracy", "m.onnx", UNTIMED, "--int8", "--data=data.npz", "--plot=a.svg")
    text = (network / "a.svg").read_text()
    drawing = xml.etree.ElementTree.fromstring(text)
    titles = [title.text for title in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert all(any(f"conv{i}" in title for title in titles) for i in range(LAYERS))
    assert any("0 nodes in FP32" in title for title in titles) and any(title.startswith("FP32: ") for title in titles)
    assert text.replace("http://www.w3.org/2000/svg", "").count("http") == 0


@pytest.mark.parametrize("arguments, word", [(("--budget=-1",), "--budget takes a number"), (("--keep-list=k.txt",), "--budget=0.01"),
                                             (("--data=none.npz",), "none.npz"), (("--reference=none.onnx",), "none.onnx")])
def test_what_cannot_be_done_is_said(hone, network, arguments, word):
    done = hone.run("accuracy", "m.onnx", *arguments)
    assert done.returncode != 0 and word in done.stdout


def test_a_folded_normalisation_is_no_error(hone, folder):
    """What the convolution itself would have given is computed nowhere: its name must not stand for the sum behind it."""
    weights = {"w": RANDOM.standard_normal((4, 3, 3, 3), np.float32), "s": np.full(4, 3, np.float32), "b": np.full(4, 5, np.float32), "m": np.zeros(4, np.float32),
               "v": np.ones(4, np.float32), "w2": RANDOM.standard_normal((4, 4, 1, 1), np.float32)}
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"), helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["n"], name="norm"),
             helper.make_node("Sin", ["n"], ["t"], name="sin"), helper.make_node("Conv", ["t", "w2"], ["y"], name="last")]
    tiny.save(folder / "m.onnx", nodes, weights, inputs=[("x", [1, 3, 8, 8])], outputs=[("y", [1, 4, 6, 6])])
    found = examined(hone, "--layerPrecisions=*:fp32", "--precisionConstraints=obey")
    assert max(layer["enters"] for layer in found["layers"]) < 1e-5


@pytest.mark.parametrize("name", ["resnet18.dyn", "mobilenet_v3_large.dyn", "timm_mobilevit_s.ts"])
def test_in_fp32_no_layer_of_a_real_network_differs(hone, folder, name):
    """Every layer is held against the tensor that it is: one that bore another's name would stand out."""
    path = unpacked(name, folder)
    found = json.loads(hone.answer("accuracy", path, "--json", UNTIMED, "--layerPrecisions=*:fp32", "--precisionConstraints=obey"))
    assert len(found["layers"]) > 15
    assert max(layer["enters"] for layer in found["layers"]) < 1e-4, max(found["layers"], key=lambda layer: layer["enters"])
