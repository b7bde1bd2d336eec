# SPDX-License-Identifier: Apache-2.0
"""hone quantize and trtexec --int8: what is written and read, and what it costs in accuracy."""

import json
import re
import struct

import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(13)


@pytest.fixture
def network(folder):
    """A small network with everything that quantisation treats in its own way, and samples for it."""
    model = onnx.load(tiny.convolutions(folder / "m.onnx"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 10]))
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "data.npz", x=RANDOM.standard_normal((24, 3, 16, 16), np.float32))
    return folder / "m.onnx"


def run(path, **feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def error(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


def test_a_standard_model_is_written(hone, network):
    said = hone("quantize", "m.onnx", "-o", "q.onnx", "--calib-data", "data.npz")
    model = onnx.load(network.parent / "q.onnx")
    onnx.checker.check_model(model, full_check=True)
    by_output = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.op_type in ("Conv", "MatMul"):
            assert [by_output[name].op_type for name in node.input[:2]] == ["DequantizeLinear"] * 2
    initializers = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert initializers["w1_quantized"].dtype == np.int8 and initializers["w1_scale"].shape == (16,)
    assert "w1" not in initializers and "b1" in initializers
    x = np.load(network.parent / "data.npz")["x"][:2]
    assert error(run(network.parent / "q.onnx", x=x), run(network, x=x)) < 0.02
    assert "3 of 3 convolutions and matmuls" in said and "24 samples of data.npz, entropy" in said


def test_hone_and_onnxruntime_run_it_alike(hone, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz")
    x = np.load(network.parent / "data.npz")["x"][:1]
    np.save(network.parent / "x.npy", x)
    hone("check", "q.onnx", "-s", "x:1x3x16x16", "-i", "x:x.npy", "-o", "out", "-n", "2")
    assert error(np.load(network.parent / "out" / "first.y.npy"), run(network.parent / "q.onnx", x=x)) < 1e-2


def test_conversions_that_stay_layers_are_told_with_their_reason(hone, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz")
    told = json.loads(hone.answer("inspect", "q.onnx", "--quantisation", "--json"))
    assert told["conversions"] > len(told["alone"])
    by_tensor = {row["tensor"]: (row["operator"], row["reason"]) for row in told["alone"]}
    assert by_tensor["x"] == ("QuantizeLinear", "the network is given floats")
    assert "no tensor is quantised" in hone("inspect", "m.onnx", "--quantisation")
    assert "is no ONNX model" in hone.run("inspect", "m.plan", "--quantisation").stdout


def test_methods_clip_more_or_less(hone, network):
    data = RANDOM.standard_normal((8, 3, 16, 16)).astype(np.float32)
    data[0, 0, 0, 0] = 40
    np.savez(network.parent / "outlier.npz", x=data)

    def scale(method):
        answer = json.loads(hone.answer("quantize", "m.onnx", "-o", "q.onnx", "--data=outlier.npz", f"--calib-method={method}", "--json"))
        return {row["tensor"]: row for row in answer["tensors"]}["x"]["scale"] * 127

    assert scale("minmax") == pytest.approx(40, rel=1e-6)
    assert scale("percentile=99.9") <= scale("minmax")
    assert scale("entropy") < 10 and scale("mse") <= scale("minmax")


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_every_batch_counts(hone, network, order):
    np.savez(network.parent / "three.npz", x=np.stack([np.full((3, 16, 16), value, np.float32) for value in order]))
    answer = json.loads(hone.answer("quantize", "m.onnx", "-o", "q.onnx", "--data=three.npz", "--method=minmax", "--json"))
    assert {row["tensor"]: row["max"] for row in answer["tensors"]}["x"] == 3


def test_the_cache_goes_to_trtexec_and_back(hone, trtexec, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--write-cache", "c.cache")
    lines = (network.parent / "c.cache").read_text().splitlines()
    assert re.fullmatch(r"TRT-\d+-EntropyCalibration2", lines[0])
    scales = {name: struct.unpack(">f", bytes.fromhex(bits))[0] for name, bits in (line.rsplit(": ", 1) for line in lines[1:])}
    written = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(network.parent / "q.onnx").graph.initializer}
    assert all(written[f"{name}_scale"] == np.float32(scale) for name, scale in scales.items())
    said = trtexec("--onnx=m.onnx", "--int8", "--calib=c.cache", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", "--saveEngine=a.plan", "--skipInference")
    assert "random" not in said and "3 of 3 convolutions and matmuls are quantised" in said
    hone("quantize", "m.onnx", "-o", "again.onnx", "--calib-cache=c.cache")
    again = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(network.parent / "again.onnx").graph.initializer}
    assert written.keys() == again.keys() and all(np.array_equal(written[name], again[name]) for name in written)


def test_a_plan_of_a_cache_is_the_quantised_model(hone, trtexec, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--write-cache=c.cache")
    np.save(network.parent / "x.npy", np.load(network.parent / "data.npz")["x"][:1])
    for name, flags in (("m", ("--int8", "--calib=c.cache")), ("q", ())):
        trtexec(f"--onnx={name}.onnx", *flags, "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", f"--saveEngine={name}.plan", "--skipInference")
        hone("check", f"{name}.plan", "-i", "x:x.npy", "-o", name, "-n", "2")
    assert np.array_equal(*(np.load(network.parent / name / "first.y.npy") for name in "mq"))


def test_trtexec_calibrates_and_writes_the_cache(trtexec, network):
    said = trtexec("--onnx=m.onnx", "--int8", "--calibData=data.npz", "--calib=new.cache", "--shapes=x:1x3x16x16",
                   "--builderOptimizationLevel=0", "--skipInference")
    assert "on 24 samples by entropy" in said and (network.parent / "new.cache").exists()


def test_without_data_the_ranges_are_random_and_it_says_so(trtexec, network):
    done = trtexec.run("--onnx=m.onnx", "--int8", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", "--skipInference")
    assert done.returncode == 0 and "ranges are random" in done.stdout
    tiny.save(trtexec.folder / "static.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": np.ones((4, 4), np.float32)}, inputs=[("x", [2, 4])])
    done = trtexec.run("--onnx=static.onnx", "--int8", "--builderOptimizationLevel=0", "--skipInference")
    assert done.returncode == 0 and "ranges are random" in done.stdout


def test_codes_with_zero_points_are_finer(hone, network):
    errors = [json.loads(hone.answer("accuracy", "m.onnx", "--int8", "--data=data.npz", "--calibMethod=minmax", "--builderOptimizationLevel=0", "--json", *more))["error"]
              for more in ((), ("--calibAsymmetric",))]
    assert 0 < errors[1] < errors[0]


def test_calibration_that_is_not_used_is_told(trtexec, hone, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz")
    said = trtexec("--onnx=q.onnx", "--int8", "--calibData=data.npz", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", "--skipInference")
    assert "--calibData is not used: the network has quantised tensors of its own" in said
    said = trtexec("--onnx=q.onnx", "--int8", "--calibData=data.npz", "--calib=none.cache", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", "--skipInference")
    assert "--calibData is not used" in said


def test_nodes_and_operators_are_chosen(hone, network):
    def left(*flags):
        return {row["node"] for row in json.loads(hone.answer("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--json", *flags))["left"]}

    assert left() == set()
    assert left("--exclude-nodes=conv0") == {"conv0"}
    assert left("--exclude-nodes=conv") == set()
    assert left("--include-ops=Conv") == {"classify"}
    assert left("--include-nodes=conv.*") == {"classify"}
    assert left("--exclude-ops=Conv") == {"conv0", "conv1"}


def test_layer_precisions_keep_layers(trtexec, hone, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--write-cache=c.cache")
    said = trtexec("--onnx=m.onnx", "--int8", "--calib=c.cache", "--precisionConstraints=obey", "--layerPrecisions=conv1:fp32",
                   "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", "--skipInference")
    assert "2 of 3 convolutions and matmuls are quantised" in said and "conv1 stays in floating point" in said


def test_a_type_that_no_flag_allows_is_told_with_its_tensor(trtexec, network):
    flags = ("--onnx=m.onnx", "--layerPrecisions=conv*:int8", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0", "--skipInference")
    refused = trtexec.run(*flags, "--precisionConstraints=obey")
    assert refused.returncode != 0 and re.search(r"asks for int8 in layer conv0 \(tensor \S+\), but --int8 is not given", refused.stdout)
    assert "it stays in another type" in trtexec(*flags, "--precisionConstraints=prefer")


def test_the_written_model_is_verified_worst_layer_first(hone, network):
    flags = ("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--verify")
    rows = json.loads(hone.answer(*flags, "--compare", "cosine_similarity", "--json"))["verified"]
    assert len(rows) == 3 and [row["cosine_similarity"] for row in rows] == sorted(row["cosine_similarity"] for row in rows)
    assert all(0.99 < row["cosine_similarity"] < 1 and 0 < row["relative_error"] < 0.1 and row["max_error"] > 0 for row in rows)
    hone(*flags, "--threshold=0.9")
    refused = hone.run(*flags, "--threshold=0.9999999")
    assert refused.returncode == 1 and f"the tensor {rows[0]['tensor']} is worse than the threshold" in refused.stdout
    assert hone.run(*flags, "--compare=relative_error", "--threshold=0.5").returncode == 0
    assert len(json.loads(hone.answer(*flags, "--mode=int4", "--block=16", "--json"))["verified"]) == 1


def test_the_budget_keeps_the_layers_that_cost_most(hone, trtexec, network):
    flags = ("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz", "--json")
    full = json.loads(hone.answer(*flags, "--sensitivity=node"))
    ranked = [row["error"] for row in full["sensitivity"]]
    assert ranked == sorted(ranked, reverse=True) and {row["node"] for row in full["sensitivity"]} == {"conv0", "conv1", "classify"}
    assert not any(row["kept"] for row in full["sensitivity"])
    half = json.loads(hone.answer(*flags, f"--budget={full['error'] / 2}", "--keep-list=keep.txt", "--write-cache=c.cache"))
    kept = [row["node"] for row in half["sensitivity"] if row["kept"]]
    assert half["error"] <= full["error"] / 2 and 0 < len(kept) and kept == [row["node"] for row in half["sensitivity"]][:len(kept)]
    assert {row["node"] for row in half["left"]} == set(kept)
    none = json.loads(hone.answer(*flags, "--budget=0"))
    assert none["nodes"] == 0 and none["error"] == 0
    said = trtexec("--onnx=m.onnx", "--int8", "--calib=c.cache", "--precisionFile=keep.txt", "--shapes=x:1x3x16x16",
                   "--builderOptimizationLevel=0", "--skipInference")
    assert all(f"{node} stays in floating point" in said for node in kept)


@pytest.mark.parametrize("flags, complaint", [
    (("--calib-cache=c.cache", "--verify"), "--verify run the network on samples"),
    (("--data=data.npz", "--sensitivity=layer"), "--sensitivity takes node, not 'layer'"),
    (("--data=data.npz", "--budget=-1"), "--budget takes a number of 0 or more, not '-1'"),
    (("--data=data.npz", "--mode=int4", "--budget=1"), "are for --mode int8"),
    (("--data=data.npz", "--verify", "--compare=psnr"), "--compare takes cosine_similarity"),
    (("--data=data.npz", "--keep-list=k"), "--keep-list is what --budget leaves out"),
])
def test_what_cannot_be_analysed(hone, network, flags, complaint):
    done = hone.run("quantize", "m.onnx", "-o", "q.onnx", *flags)
    assert done.returncode != 0 and complaint in done.stdout and not (network.parent / "q.onnx").exists()


def test_a_precision_file_with_a_wrong_line(trtexec, network):
    (network.parent / "p.txt").write_text("# types\nconv0:fp32\nconv1\n")
    done = trtexec.run("--onnx=m.onnx", "--precisionFile=p.txt")
    assert done.returncode != 0 and "p.txt line 3 is no layer with a type: conv1" in done.stdout


def test_external_weights_come_into_the_file(hone, network):
    onnx.save(onnx.load(network), network.parent / "e.onnx", save_as_external_data=True, all_tensors_to_one_file=True, location="e.data", size_threshold=16)
    (network.parent / "elsewhere").mkdir()
    hone("quantize", "e.onnx", "-o", "elsewhere/q.onnx", "--data=data.npz")
    x = np.load(network.parent / "data.npz")["x"][:1]
    assert error(run(network.parent / "elsewhere" / "q.onnx", x=x), run(network, x=x)) < 0.02


def test_old_models_are_brought_to_opset_13(hone, folder):
    weights = {"w": RANDOM.standard_normal((4, 5)).astype(np.float32)}
    tiny.save(folder / "old.onnx", [helper.make_node("Unsqueeze", ["x"], ["u"], axes=[0]), helper.make_node("MatMul", ["u", "w"], ["h"]),
                                    helper.make_node("Softmax", ["h"], ["s"], axis=2), helper.make_node("ReduceSum", ["s"], ["y"], axes=[0], keepdims=0)],
              weights, outputs=[("y", ["n", 5])], opset=11, ir_version=6)
    np.savez(folder / "data.npz", x=RANDOM.standard_normal((8, 4)).astype(np.float32))
    hone("quantize", "old.onnx", "-o", "new.onnx", "--data=data.npz")
    model = onnx.load(folder / "new.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 13
    x = np.load(folder / "data.npz")["x"][:1]
    assert error(run(folder / "new.onnx", x=x), run(folder / "old.onnx", x=x)) < 0.02


@pytest.mark.parametrize("flags", [(), ("--awq", "clip", "--data=data.npz"), ("--awq=off",), ("--gptq", "--data=data.npz"), ("--gptq", "--awq=off", "--asymmetric", "--data=data.npz")])
def test_weights_of_four_bits(hone, folder, flags):
    weights = {"w": RANDOM.standard_normal((300, 64)).astype(np.float32), "v": RANDOM.standard_normal((10, 64)).astype(np.float32)}
    tiny.save(folder / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
                                  helper.make_node("Gemm", ["r", "v"], ["y"], transB=1)], weights, inputs=[("x", ["n", 300])], outputs=[("y", ["n", 10])])
    np.savez(folder / "data.npz", x=RANDOM.standard_normal((8, 300)).astype(np.float32))
    hone("quantize", "m.onnx", "-o", "q.onnx", "--mode", "int4", "--block", "128", *flags)
    model = onnx.load(folder / "q.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 21
    blocks = [{attribute.name: attribute.i for attribute in node.attribute} for node in model.graph.node if node.op_type == "DequantizeLinear"]
    assert blocks == [{"axis": 0, "block_size": 128}, {"axis": 1, "block_size": 128}]
    types = {tensor.name: (tensor.data_type, list(tensor.dims)) for tensor in model.graph.initializer}
    assert types["w_quantized"] == (onnx.TensorProto.UINT4 if "--asymmetric" in flags else onnx.TensorProto.INT4, [300, 64]) and types["w_scale"][1] == [3, 64] and types["v_scale"][1] == [10, 1]
    x = np.load(folder / "data.npz")["x"][:1]
    exact, rounded = run(folder / "m.onnx", x=x), run(folder / "q.onnx", x=x)
    assert error(rounded, exact) < 0.3
    np.save(folder / "x.npy", x)
    hone("check", "q.onnx", "-s", "x:1x300", "-i", "x:x.npy", "-o", "out", "-n", "2")
    assert error(np.load(folder / "out" / "first.y.npy"), rounded) < 1e-5


@pytest.mark.parametrize("flags, message", [
    ((), "nothing says what values the tensors have"),
    (("--data=none.npz",), "no such file or folder"),
    (("--data=wrong.npz",), "has no array called x"),
    (("--data=nan.npz",), "reading what tensor x holds"),
    (("--data=data.npz", "--method=best"), "--method takes a method of calibration, not 'best'"),
    (("--data=data.npz", "--include-ops=Convo"), "did you mean Conv?"),
    (("--data=data.npz", "--exclude-nodes=("), "takes a regular expression"),
    (("--data=data.npz", "--exclude-nodes=.*"), "no convolution or matmul that can be quantised"),
    (("--calib-cache=none.cache",), "none.cache"),
    (("--calib-cache=other.cache",), "none of its 1 tensors is in the network"),
    (("--calib-cache=zero.cache",), "the scale of tensor x is 0"),
])
def test_what_is_wrong_is_named_and_nothing_is_written(hone, network, flags, message):
    at = network.parent
    np.savez(at / "wrong.npz", z=np.zeros((2, 3, 16, 16), np.float32))
    np.savez(at / "nan.npz", x=np.full((2, 3, 16, 16), np.nan, np.float32))
    (at / "other.cache").write_text("TRT-8601-EntropyCalibration2\nnobody: 3c010a14\n")
    (at / "zero.cache").write_text("TRT-8601-EntropyCalibration2\nx: 00000000\n")
    done = hone.run("quantize", "m.onnx", "-o", "q.onnx", *flags)
    assert done.returncode == 1 and message in done.stdout, done.stdout
    assert not (at / "q.onnx").exists()


def test_a_missing_cache_is_an_error_for_trtexec(trtexec, network):
    done = trtexec.run("--onnx=m.onnx", "--int8", "--calib=none.cache", "--shapes=x:1x3x16x16", "--skipInference")
    assert done.returncode != 0 and "none.cache" in done.stdout


def test_a_quantised_model_is_not_quantised_again(hone, network):
    hone("quantize", "m.onnx", "-o", "q.onnx", "--data=data.npz")
    done = hone.run("quantize", "q.onnx", "-o", "twice.onnx", "--data=data.npz")
    assert done.returncode == 1 and "quantised already" in done.stdout
