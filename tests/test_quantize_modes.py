# SPDX-License-Identifier: Apache-2.0
"""hone quantize: FP16, BF16 and fp8, balancing before quantisation, biases, and samples in any amount."""

import json
import re
import subprocess
import sys

import numpy as np
import onnx
import onnx.reference
import pytest
import tiny
from conftest import BIN
from onnx import TensorProto, helper, numpy_helper
from test_quantize import error, run

RANDOM = np.random.default_rng(17)


@pytest.fixture
def network(folder):
    tiny.convolutions(folder / "m.onnx")
    model = onnx.load(folder / "m.onnx")
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10]))
    onnx.save(model, folder / "m.onnx")
    np.savez_compressed(folder / "data.npz", x=RANDOM.standard_normal((8, 3, 16, 16), np.float32))
    return folder / "m.onnx"


def answer(hone, *flags):
    return json.loads(hone.answer("quantize", *flags, "--json"))


def checked(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def types_of(values):
    return {value.name: value.type.tensor_type.elem_type for value in values}


def test_a_model_in_fp16(hone, network):
    told = answer(hone, "m.onnx", "-o", "h.onnx", "--mode", "fp16")
    model = checked(network.parent / "h.onnx")
    assert told["left"] == [] and told["casts"] == 0 and told["nodes"] == len(model.graph.node)
    assert types_of([*model.graph.input, *model.graph.output]) == {"x": TensorProto.FLOAT16, "y": TensorProto.FLOAT16}
    assert all(tensor.data_type == TensorProto.FLOAT16 for tensor in model.graph.initializer)
    x = np.load(network.parent / "data.npz")["x"][:1]
    exact, found = run(network, x=x), run(network.parent / "h.onnx", x=x.astype(np.float16))
    assert found.dtype == np.float16 and 0 < error(found.astype(np.float32), exact) < 3e-3
    np.save(network.parent / "x.npy", x.astype(np.float16))
    hone("check", "h.onnx", "-s", "x:1x3x16x16", "-i", "x:x.npy", "-o", "out", "-n", "2")
    assert error(np.load(network.parent / "out" / "first.y.npy").astype(np.float32), exact) < 3e-3


@pytest.mark.parametrize("mode, kind, opset", [("fp16", TensorProto.FLOAT16, 17), ("bf16", TensorProto.BFLOAT16, 22)])
def test_inputs_and_outputs_keep_their_types(hone, network, mode, kind, opset):
    told = answer(hone, "m.onnx", "-o", "h.onnx", "--mode", mode, "--keep-io-types", "--data=data.npz", "--verify")
    model = checked(network.parent / "h.onnx")
    assert types_of([*model.graph.input, *model.graph.output]) == {"x": TensorProto.FLOAT, "y": TensorProto.FLOAT}
    assert told["casts"] == 2 and {tensor.data_type for tensor in model.graph.initializer} == {kind}
    assert model.opset_import[0].version == opset
    assert len(told["verified"]) == 3 and all(0.999 < row["cosine_similarity"] < 1 for row in told["verified"])
    if mode == "fp16":
        x = np.load(network.parent / "data.npz")["x"][:2]
        assert error(run(network.parent / "h.onnx", x=x), run(network, x=x)) < 3e-3


def large_values(folder):
    """Products that leave FP16's range inside, a constant beyond it, one that is 0 there, and a body that reads a tensor."""
    body = helper.make_graph([helper.make_node("Add", ["d", "d"], ["twice"])], "then", [], [helper.make_tensor_value_info("twice", TensorProto.FLOAT, None)])
    other = helper.make_graph([helper.make_node("Identity", ["d"], ["once"])], "else", [], [helper.make_tensor_value_info("once", TensorProto.FLOAT, None)])
    weights = {"w": RANDOM.standard_normal((4, 8), np.float32), "k": np.float32(300), "far": np.float32(1e5), "tiny": np.float32(1e-12), "yes": np.array(True)}
    return tiny.save(folder / "l.onnx", [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Mul", ["a", "k"], ["b"], name="stretch"),
        helper.make_node("Mul", ["b", "b"], ["c"], name="square"),
        helper.make_node("Div", ["c", "far"], ["d"], name="shrink"),
        helper.make_node("If", ["yes"], ["e"], name="choose", then_branch=body, else_branch=other),
        helper.make_node("Add", ["e", "tiny"], ["f"], name="guard"),
        helper.make_node("Relu", ["f"], ["y"], name="act")], weights, outputs=[("y", ["n", 8])])


def test_what_leaves_the_range_of_fp16_stays_and_is_named(hone, folder):
    large_values(folder)
    x = RANDOM.standard_normal((6, 4)).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    constants = {row["node"]: row["reason"] for row in answer(hone, "l.onnx", "-o", "c.onnx", "--mode=fp16")["left"]}
    assert set(constants) == {"shrink", "choose", "guard"}
    assert "constant far holds 100000" in constants["shrink"] and "constant tiny is 1e-12" in constants["guard"]
    seen = {row["node"]: row["reason"] for row in answer(hone, "l.onnx", "-o", "h.onnx", "--mode=fp16", "--data=data.npz")["left"]}
    assert set(seen) == {"square", "shrink", "choose", "guard"} and "tensor c reaches" in seen["square"]
    assert "square (Mul) stays in FP32: tensor c reaches" in hone("quantize", "l.onnx", "-o", "h.onnx", "--mode=fp16", "--data=data.npz")
    checked(folder / "h.onnx")
    exact = run(folder / "l.onnx", x=x[:2])
    assert error(run(folder / "h.onnx", x=x[:2].astype(np.float16)).astype(np.float32), exact) < 5e-3
    kept = answer(hone, "l.onnx", "-o", "k.onnx", "--mode=fp16", "--exclude-nodes", "product", "--exclude-ops", "Relu", "Div")["left"]
    assert {row["node"] for row in kept if "asked to stay" in row["reason"]} == {"product", "act", "shrink"}
    checked(folder / "k.onnx")


@pytest.mark.parametrize("flags, pairs", [((), 3), (("--weights-only",), 0)])
def test_a_model_in_fp8(hone, network, flags, pairs):
    told = answer(hone, "m.onnx", "-o", "q.onnx", "--mode", "fp8", *(flags or ("--calib-data", "data.npz")))
    model = checked(network.parent / "q.onnx")
    assert model.opset_import[0].version >= 19 and told["pairs"] == pairs and told["weights"] == 3
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    assert tensors["w1_quantized"].data_type == TensorProto.FLOAT8E4M3FN and tensors["w1_scale"].dims == [16]
    by_output = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type in ("Conv", "MatMul"):
            assert by_output[node.input[1]].op_type == "DequantizeLinear"
            assert (by_output.get(node.input[0], node).op_type == "DequantizeLinear") == (pairs > 0)
    x = np.load(network.parent / "data.npz")["x"][:1]
    found = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    assert 0 < error(found, run(network, x=x)) < 0.1
    assert error(run(network.parent / "q.onnx", x=x), found) < 1e-2
    np.save(network.parent / "x.npy", x)
    hone("check", "q.onnx", "-s", "x:1x3x16x16", "-i", "x:x.npy", "-o", "out", "-n", "2")
    assert error(np.load(network.parent / "out" / "first.y.npy"), found) < 1e-2
    weights = numpy_helper.to_array(next(t for t in onnx.load(network).graph.initializer if t.name == "w1"))
    np.testing.assert_allclose(numpy_helper.to_array(tensors["w1_scale"]), np.abs(weights).reshape(16, -1).max(1) / 448, rtol=1e-6)


def test_weights_alone_in_int8(hone, network):
    told = answer(hone, "m.onnx", "-o", "q.onnx", "--weights-only")
    model = checked(network.parent / "q.onnx")
    assert told["weights"] == 3 and not any(node.op_type == "QuantizeLinear" for node in model.graph.node)
    x = np.load(network.parent / "data.npz")["x"][:1]
    assert 0 < error(run(network.parent / "q.onnx", x=x), run(network, x=x)) < 0.02


@pytest.mark.parametrize("flags", [("--calib-data=data.npz",), ("--mode=int4", "--block=4"), ("--mode=fp8", "--weights-only")])
def test_weights_that_are_reshaped_and_transposed(hone, trtexec, folder, flags):
    """As mnist of ONNX's model zoo has them: initialisers among the inputs, weights through Reshape."""
    weights = {"p": RANDOM.standard_normal((2, 4, 6)).astype(np.float32), "shape": np.array([8, 6]), "v": RANDOM.standard_normal((5, 6)).astype(np.float32)}
    tiny.save(folder / "z.onnx", [helper.make_node("Reshape", ["p", "shape"], ["w"], name="flat"), helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
                                  helper.make_node("Transpose", ["v"], ["vt"], name="turn", perm=[1, 0]), helper.make_node("MatMul", ["h", "vt"], ["y"], name="second")],
              weights, inputs=[("x", ["n", 8]), ("p", [2, 4, 6])], outputs=[("y", ["n", 5])], opset=13)
    x = RANDOM.standard_normal((8, 8)).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    told = answer(hone, "z.onnx", "-o", "q.onnx", *flags)
    model = checked(folder / "q.onnx")
    assert told["nodes"] == 2 and told["left"] == []
    assert not {"Reshape", "Transpose"} & {node.op_type for node in model.graph.node} and not {"p", "v"} & {tensor.name for tensor in model.graph.initializer}
    exact = run(folder / "z.onnx", x=x[:2])
    assert 0 < error(run(folder / "q.onnx", x=x[:2]), exact) < 0.3
    if flags == ("--calib-data=data.npz",):
        hone("quantize", "z.onnx", "-o", "q.onnx", *flags, "--write-cache=c.cache")
        said = trtexec("--onnx=z.onnx", "--int8", "--calib=c.cache", "--shapes=x:2x8", "--builderOptimizationLevel=0", "--skipInference")
        assert "2 of 2 convolutions and matmuls are quantised" in said


def badly_scaled(folder):
    """conv-relu-depthwise-relu-conv and conv-batch normalisation-relu-conv, whose channels differ by up to 1,000 times."""
    spread = np.float32(10) ** RANDOM.uniform(-1.5, 1.5, 8).astype(np.float32)
    weights = {name: RANDOM.standard_normal(shape, np.float32) * np.float32(0.4)
               for name, shape in {"w0": (8, 3, 3, 3), "w1": (8, 1, 3, 3), "w2": (8, 8, 1, 1), "w3": (4, 8, 3, 3)}.items()}
    weights["b0"], weights["b1"] = (RANDOM.standard_normal(8, np.float32) for _ in range(2))
    weights["w0"] *= spread[:, None, None, None]
    weights["b0"] *= spread
    weights["w1"] /= spread[:, None, None, None]
    weights |= {"gamma": spread, "beta": RANDOM.standard_normal(8, np.float32) * spread, "mean": np.zeros(8, np.float32), "var": np.ones(8, np.float32)}
    weights["w3"] /= spread[None, :, None, None]
    return tiny.save(folder / "s.onnx", [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], name="conv0", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], name="conv1", group=8), helper.make_node("LeakyRelu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="conv2"),
        helper.make_node("BatchNormalization", ["c2", "gamma", "beta", "mean", "var"], ["n2"]), helper.make_node("Relu", ["n2"], ["r2"]),
        helper.make_node("Conv", ["r2", "w3"], ["y"], name="conv3")], weights, inputs=[("x", [1, 3, 12, 12])], outputs=[("y", [1, 4, 8, 8])])


def test_equalisation_changes_ranges_and_nothing_else(hone, folder):
    badly_scaled(folder)
    x = RANDOM.standard_normal((8, 3, 12, 12)).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    told = answer(hone, "s.onnx", "-o", "e.onnx", "--data=data.npz", "--equalize")
    answer(hone, "s.onnx", "-o", "q.onnx", "--data=data.npz")
    assert told["prepared"] == ["equalised: 3 tensors have other ranges of channels"]
    exact = run(folder / "s.onnx", x=x[:1])
    assert error(run(folder / "e.onnx", x=x[:1]), exact) < 0.5 * error(run(folder / "q.onnx", x=x[:1]), exact)
    # Left in floating point, the equalised model is the original to the bit: its factors are powers of two.
    answer(hone, "s.onnx", "-o", "f.onnx", "--data=data.npz", "--equalize", "--budget=0")
    written = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "f.onnx").graph.initializer}
    original = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(folder / "s.onnx").graph.initializer}
    assert not np.array_equal(written["w1"], original["w1"]) and not np.array_equal(written["gamma"], original["gamma"])
    assert error(run(folder / "f.onnx", x=x[:1]), exact) < 1e-6


def block_with_outliers(folder):
    """LayerNorm - two matmuls - gated product - matmul, with a few channels of large activations."""
    scale = np.ones(32, np.float32)
    scale[[3, 17]] = 60
    weights = {"scale": scale, "shift": RANDOM.standard_normal(32, np.float32) * np.float32(0.1)}
    weights |= {name: RANDOM.standard_normal(shape, np.float32) * np.float32(0.2)
                for name, shape in {"w0": (32, 48), "w1": (32, 48), "w2": (48, 32), "b0": (48,)}.items()}
    for name in ("w0", "w1"):
        weights[name][[3, 17]] /= 20
    return tiny.save(folder / "t.onnx", [
        helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["l"], name="norm"),
        helper.make_node("MatMul", ["l", "w0"], ["a"], name="first"), helper.make_node("Add", ["a", "b0"], ["a0"]),
        helper.make_node("Relu", ["a0"], ["a1"]), helper.make_node("MatMul", ["a1", "w2"], ["c"], name="third"),
        helper.make_node("MatMul", ["l", "w1"], ["b"], name="second"),
        helper.make_node("MatMul", ["b", "w2x"], ["d"], name="fourth"), helper.make_node("Add", ["c", "d"], ["y"])],
        weights | {"w2x": RANDOM.standard_normal((48, 32), np.float32) * np.float32(0.2)}, inputs=[("x", ["n", 6, 32])], outputs=[("y", ["n", 6, 32])])


def test_smoothing_moves_outliers_into_weights(hone, folder):
    block_with_outliers(folder)
    x = RANDOM.standard_normal((16, 6, 32)).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    flags = ("t.onnx", "--data=data.npz", "--method=minmax")
    answer(hone, *flags, "-o", "q.onnx")
    told = answer(hone, *flags, "-o", "s.onnx", "--smooth", "0.5")
    assert re.fullmatch("smoothed: [23] tensors have other ranges of channels", told["prepared"][0])
    exact = run(folder / "t.onnx", x=x[:2])
    assert error(run(folder / "s.onnx", x=x[:2]), exact) < 0.6 * error(run(folder / "q.onnx", x=x[:2]), exact)
    answer(hone, *flags, "-o", "f.onnx", "--smooth=0.5", "--budget=0")
    assert error(run(folder / "f.onnx", x=x[:2]), exact) < 1e-6


def test_awq_scales_the_channels_that_matter(hone, folder):
    block_with_outliers(folder)
    x = RANDOM.standard_normal((16, 6, 32)).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    exact, errors = run(folder / "t.onnx", x=x[:4]), {}
    for how in ("off", "lite", "clip", "full"):
        answer(hone, "t.onnx", "-o", "q.onnx", "--mode=int4", "--block=16", "--awq", how, "--data=data.npz")
        errors[how] = error(run(folder / "q.onnx", x=x[:4]), exact)
    assert errors["lite"] < 0.8 * errors["off"] and errors["full"] < errors["clip"]


def test_biases_make_good_what_rounding_shifts(hone, folder):
    """Inputs far from zero: rounded weights shift every result. Of three products one has a bias, one gets one, one is a matmul's sum."""
    weights = {"w0": RANDOM.standard_normal((8, 4, 3, 3), np.float32), "b0": RANDOM.standard_normal(8, np.float32),
               "w1": RANDOM.standard_normal((8, 8, 1, 1), np.float32), "w2": RANDOM.standard_normal((8, 5), np.float32), "b2": np.zeros(5, np.float32)}
    weights["w0"][:, 0, 0, 0] = 20  # coarse steps
    tiny.save(folder / "b.onnx", [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], name="conv0", pads=[1, 1, 1, 1]), helper.make_node("Conv", ["c0", "w1"], ["c1"], name="conv1"),
        helper.make_node("GlobalAveragePool", ["c1"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["m"], name="dense"), helper.make_node("Add", ["m", "b2"], ["y"])],
        weights, inputs=[("x", ["n", 4, 8, 8])], outputs=[("y", ["n", 5])])
    x = (RANDOM.standard_normal((32, 4, 8, 8)) * 0.3 + 2).astype(np.float32)
    np.savez(folder / "data.npz", x=x)
    exact, errors = run(folder / "b.onnx", x=x), []
    for flags in ((), ("--bias-correction",)):
        told = answer(hone, "b.onnx", "-o", "q.onnx", "--data=data.npz", *flags)
        found = run(folder / "q.onnx", x=x)
        errors.append(np.abs((found - exact).mean(0)).max())
    assert told["prepared"] == ["biases corrected: 3 of 3 products"] and errors[1] < 0.3 * errors[0]
    checked(folder / "q.onnx")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_memory_does_not_grow_with_the_samples(hone, folder, save):
    tiny.save(folder / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": RANDOM.standard_normal((4096, 8), np.float32)},
              inputs=[("x", ["n", 4096])], outputs=[("y", ["n", 8])])
    used = []
    for samples in (8, 4096):  # 64 MiB
        save(folder / "data.npz", x=np.tile(RANDOM.standard_normal((8, 4096)).astype(np.float32), (samples // 8, 1)))
        used.append(peak_memory(folder, "quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz"))
    assert used[1] < used[0] + 16 * 1024, used  # KiB


def peak_memory(folder, *arguments):
    """Asked by a process between: a child's peak begins with what its parent has."""
    ask = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    return int(subprocess.run([sys.executable, "-c", ask, BIN / "hone", *arguments], cwd=folder, stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.parametrize("flags, complaint", [
    (("--mode=fp17",), "--mode takes int8, int4, fp8, fp16, bf16, not 'fp17'"),
    (("--mode=fp16", "--equalize"), "--mode fp16 quantises nothing"),
    (("--keep-io-types", "--data=data.npz"), "--keep-io-types is for --mode fp16 and bf16"),
    (("--smooth=2", "--data=data.npz"), "--smooth takes the activations' share"),
    (("--smooth=0.5",), "--smooth looks at activations on samples"),
    (("--bias-correction", "--weights-only", "--data=data.npz"), "--bias-correction is for"),
    (("--awq=lite", "--mode=int4"), "--awq lite is for --mode int4 with samples"),
    (("--awq=best", "--mode=int4"), "--awq takes off, clip, lite, full, not 'best'"),
    (("--equalize", "--data=data.npz", "--write-cache=c"), "a calibration cache is of the model as it stands"),
    (("--mode=fp8", "--asymmetric", "--data=data.npz"), "codes of fp8 are symmetric"),
    (("--mode=fp16", "--exclude-nodes=.*"), "nothing of m.onnx can be computed in fp16"),
])
def test_what_contradicts_is_told(hone, network, flags, complaint):
    done = hone.run("quantize", "m.onnx", "-o", "q.onnx", *flags)
    assert done.returncode == 1 and complaint in done.stdout, done.stdout
    assert not (network.parent / "q.onnx").exists()


@pytest.mark.parametrize("flags", [(), ("--mode=fp16",), ("--smooth=0.5",), ("--mode=fp8",)])
def test_numbers_that_are_none_are_told_with_their_tensor(hone, network, flags):
    np.savez(network.parent / "nan.npz", x=np.full((2, 3, 16, 16), np.nan, np.float32))
    done = hone.run("quantize", "m.onnx", "-o", "q.onnx", "--data=nan.npz", *flags)
    assert done.returncode == 1 and "reading what tensor x holds" in done.stdout and not (network.parent / "q.onnx").exists()


def test_a_name_that_fits_no_node_is_told(hone, network):
    assert "no node's whole name fits" in hone.run("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--exclude-nodes=conv").stdout
