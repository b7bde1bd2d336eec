# SPDX-License-Identifier: Apache-2.0
"""Classical models (ai.onnx.ml) against ONNX Runtime, which decides where the standard is silent, and what else exporters write."""

import sys

import numpy as np
import onnxruntime
import pytest
from conftest import PACKAGE
from onnx import TensorProto, helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")


def vector_machine(classes, probabilities, seed):
    """Random support vectors: no training, so votes and probabilities disagree often."""
    random = np.random.default_rng(seed)
    per_class = random.integers(2, 6, classes)
    vectors, pairs = int(per_class.sum()), classes * (classes - 1) // 2
    attributes = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0], "classlabels_ints": list(range(10, 10 + classes)),
                  "vectors_per_class": per_class.tolist(), "support_vectors": random.standard_normal(vectors * 4).tolist(),
                  "coefficients": random.standard_normal(vectors * (classes - 1)).tolist(), "rho": random.standard_normal(pairs).tolist()}
    if probabilities:
        attributes |= {"prob_a": (-random.random(pairs)).tolist(), "prob_b": random.standard_normal(pairs).tolist()}
    node = helper.make_node("SVMClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "svm", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]),
                               helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", None])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_vector_machines_vote_and_score_as_onnx_runtime_does(classes, probabilities):
    for seed in range(4):
        model = vector_machine(classes, probabilities, seed)
        x = np.random.default_rng(seed + 100).standard_normal((40, 4), np.float32)
        label, scores = onnxruntime.InferenceSession(model).run(["label", "scores"], {"x": x})
        own = hone.Model.parse(model).build(["--builderOptimizationLevel=0", "--shapes=x:40x4"]).engine().context().run({"x": x})
        np.testing.assert_array_equal(own["label"], label, err_msg=f"seed {seed}")
        np.testing.assert_allclose(own["scores"], scores, rtol=1e-4, atol=2e-5, err_msg=f"seed {seed}")


def test_spectra_take_signals_without_parts():
    """As torch.stft is exported: [batch, samples], where the standard has [batch, samples, 1]."""
    constants = [helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [], [number]))
                 for name, number in (("step", 4), ("length", 16))]
    nodes = [*constants, helper.make_node("STFT", ["x", "step", "", "length"], ["y"])]
    graph = helper.make_graph(nodes, "stft", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    x = np.random.default_rng(1).standard_normal((2, 64), np.float32)
    own = hone.Model.parse(model).build(["--builderOptimizationLevel=0"]).engine().context().run({"x": x})["y"]
    frames = np.lib.stride_tricks.sliding_window_view(x, 16, axis=1)[:, ::4]
    expected = np.fft.rfft(frames)
    np.testing.assert_allclose(own[..., 0] + 1j * own[..., 1], expected, rtol=1e-4, atol=1e-4)


def test_texts_keep_their_sizes_when_shapes_come_again():
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)
    graph = helper.make_graph([node], "texts", [helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])],
                              [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    flags = ["--minShapes=x:1", "--optShapes=x:3", "--maxShapes=x:9", "--builderOptimizationLevel=0"]
    context = hone.Model.parse(model).build(flags).engine().context()
    for count in (3, 7, 3, 1, 7):
        assert context.run({"x": np.arange(count)})["y"].tolist() == [str(i) for i in range(count)]


def test_long_chains_of_slices_of_results_that_the_data_size():
    """What detection models do level by level: the size of each step is an expression of all sizes before it, and soon too long."""
    nodes = [helper.make_node("NonZero", ["x"], ["found"]), helper.make_node("Squeeze", ["found", "axis"], ["v0"])]
    for i in range(40):
        nodes += [helper.make_node("Shape", [f"v{i}"], [f"n{i}"]), helper.make_node("Div", [f"n{i}", "two"], [f"h{i}"]),
                  helper.make_node("Slice", [f"v{i}", f"h{i}", f"n{i}", "axis"], [f"s{i}"]),
                  helper.make_node("Concat", [f"s{i}", f"v{i}"], [f"c{i}"], axis=0),
                  helper.make_node("Slice", [f"c{i}", "axis", f"n{i}", "axis"], [f"v{i + 1}"])]
    nodes.append(helper.make_node("Identity", ["v40"], ["y"]))
    weights = [helper.make_tensor("axis", TensorProto.INT64, [1], [0]), helper.make_tensor("two", TensorProto.INT64, [1], [2])]
    graph = helper.make_graph(nodes, "levels", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [50])],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, None)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    context = hone.Model.parse(model).build(["--builderOptimizationLevel=0"]).engine().context()
    for seed in range(3):
        x = (np.random.default_rng(seed).random(50) < 0.6).astype(np.float32)
        expected = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
        np.testing.assert_array_equal(context.run({"x": x})["y"], expected)


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
def test_products_keep_double_precision(operator):
    random = np.random.default_rng(3)
    w, b, x = random.standard_normal((7, 5)), random.standard_normal(5), random.standard_normal((3, 7))
    weights = [helper.make_tensor("w", TensorProto.DOUBLE, [7, 5], w.ravel()), helper.make_tensor("b", TensorProto.DOUBLE, [5], b)]
    nodes = ([helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5)] if operator == "Gemm" else
             [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])])
    graph = helper.make_graph(nodes, "product", [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [3, 7])],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [3, 5])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    own = hone.Model.parse(model).build(["--builderOptimizationLevel=0"]).engine().context().run({"x": x})["y"]
    np.testing.assert_allclose(own, (0.5 if operator == "Gemm" else 1) * (x @ w) + b, rtol=1e-14, atol=1e-14)


def scatter_by_unknown_positions():
    """The positions' length is the data's: a Reshape to a shape that is an input."""
    return ([helper.make_node("Reshape", ["flat", "shape"], ["positions"]), helper.make_node("ScatterND", ["x", "positions", "u"], ["y"])],
            {"x": np.zeros((4, 5), np.float32), "flat": np.array([0, 1, 2, 3]), "shape": np.array([2, 2]), "u": np.array([7, 8], np.float32)})


def slice_by_lists_of_unknown_length():
    nodes = [helper.make_node("NonZero", ["which"], ["found"]), helper.make_node("Squeeze", ["found", "first"], ["axes"]),
             helper.make_node("Gather", ["starts", "axes"], ["s"]), helper.make_node("Gather", ["ends", "axes"], ["e"]),
             helper.make_node("Slice", ["x", "s", "e", "axes"], ["y"])]
    return nodes, {"x": np.arange(24, dtype=np.float32).reshape(4, 6), "which": np.array([0, 1]), "first": np.array([0]),
                   "starts": np.array([1, 2]), "ends": np.array([3, 5])}


@pytest.mark.parametrize("make", [scatter_by_unknown_positions, slice_by_lists_of_unknown_length])
def test_operands_of_unknown_length(make):
    nodes, feeds = make()
    graph = helper.make_graph(nodes, "open", [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                                              for name, v in feeds.items()], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    expected = onnxruntime.InferenceSession(model).run(None, feeds)[0]
    own = hone.Model.parse(model).build(["--builderOptimizationLevel=0"]).engine().context().run(feeds)["y"]
    np.testing.assert_array_equal(own, expected)
