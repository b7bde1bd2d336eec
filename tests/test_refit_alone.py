# SPDX-License-Identifier: Apache-2.0
"""Refit of a plan alone: the network that a plan keeps, weights by name, plans without weights; held against fresh builds."""

import sys

import numpy as np
import onnx
import pytest
import tiny
from conftest import PACKAGE
from inference import reference_session, relative_error
from onnx import helper, numpy_helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

FAST = ["--builderOptimizationLevel=0"]
IMAGES = [{"x": ([1, 3, 16, 16], [2, 3, 16, 16], [4, 3, 16, 16])}]
ROWS = [{"x": ([1, 4], [2, 4], [8, 4])}]


def normalised(path):
    """A convolution whose batch normalisation folds into it, and one of 64 channels for Winograd's transform."""
    random = np.random.default_rng(21)
    weights = {"w": random.standard_normal((64, 3, 3, 3), np.float32) * np.float32(0.2), "b": random.standard_normal(64, np.float32),
               "scale": random.uniform(0.5, 1.5, 64).astype(np.float32), "shift": random.standard_normal(64, np.float32),
               "mean": random.standard_normal(64, np.float32), "var": random.uniform(0.5, 1.5, 64).astype(np.float32),
               "v": random.standard_normal((64, 64, 3, 3), np.float32) * np.float32(0.05)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], name="normalise"),
             helper.make_node("Relu", ["n"], ["r"], name="act"),
             helper.make_node("Conv", ["r", "v"], ["y"], name="second", pads=[1, 1, 1, 1])]
    return tiny.save(path, nodes, weights, inputs=[("x", ["n", 3, 16, 16])])


def quantised(path):
    """A matrix product of integers: weights in 8 bits, a scale for each column."""
    random = np.random.default_rng(22)
    weights = {"w": random.integers(-100, 100, (4, 8), np.int8), "s": random.uniform(0.01, 0.1, 8).astype(np.float32),
               "z": np.zeros(8, np.int8), "xs": np.float32(0.05), "xz": np.int8(3), "b": random.standard_normal(8, np.float32)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"], name="quantise"),
             helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"], name="back"),
             helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"], name="weights", axis=1),
             helper.make_node("MatMul", ["d", "wd"], ["m"], name="multiply"), helper.make_node("Add", ["m", "b"], ["y"], name="add")]
    return tiny.save(path, nodes, weights)


def branches(path):
    """Weights inside the bodies of an If, one of which the graph around it uses, too."""
    random = np.random.default_rng(23)
    weight, inner = random.standard_normal((4, 4), np.float32), random.standard_normal((4, 4), np.float32)
    out = helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)
    body = [helper.make_graph([helper.make_node("MatMul", ["h", name], ["r"], name=f"in_{name}")], "body", [], [out], tensors)
            for name, tensors in (("w", []), ("v", [numpy_helper.from_array(inner, "v")]))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
             helper.make_node("ReduceSum", ["h"], ["t"], name="total", keepdims=0), helper.make_node("Greater", ["t", "zero"], ["c"], name="positive"),
             helper.make_node("If", ["c"], ["y"], name="choose", then_branch=body[0], else_branch=body[1])]
    return tiny.save(path, nodes, {"w": weight, "zero": np.float32(0)})


def other_weights(path, seed=99):
    """{name: values} of the same types, and a model that has them."""
    model, random, weights = onnx.load(path), np.random.default_rng(seed), {}
    graphs = [model.graph] + [a.g for node in model.graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    for tensor in (tensor for graph in graphs for tensor in graph.initializer):
        present = numpy_helper.to_array(tensor)
        if present.size == 1 or tensor.name == "z":
            continue
        if present.dtype == np.int8:
            values = random.integers(-100, 100, present.shape, np.int8)
        else:
            values = (present * random.uniform(0.5, 1.5, present.shape)).astype(np.float32)  # variances and scales stay positive
        weights[tensor.name] = values
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(model, path.parent / "other.onnx")
    return weights, path.parent / "other.onnx"


MODELS = {"convolutions": (tiny.convolutions, IMAGES, 2e-5), "normalised": (normalised, IMAGES, 2e-5), "quantised": (quantised, ROWS, 2e-5),
          "branches": (branches, ROWS, 2e-5)}


def run(plan, values):
    return plan.engine().context().run({"x": values})["y"]


@pytest.fixture(params=MODELS)
def case(request, folder):
    make, profiles, tolerance = MODELS[request.param]
    path = make(folder / "model.onnx")
    shape = profiles[0]["x"][1]
    return path, profiles, np.random.default_rng(5).standard_normal(shape, np.float32), tolerance


@pytest.mark.parametrize("flags", [["--refit"], ["--refit", "--stripWeights"]], ids=["refit", "stripped"])
def test_a_plan_takes_weights_by_name_as_from_a_model(case, folder, flags):
    path, profiles, values, tolerance = case
    weights, other = other_weights(path)
    built = hone.build(path, [*FAST, *flags], profiles=profiles)
    built.save(folder / "m.plan")
    plan = hone.load(folder / "m.plan")
    if "--stripWeights" in flags:
        network = plan.network()
        missing = {name for name, weight in network.weight_details().items() if weight.missing}
        assert set(weights) <= missing
        with pytest.raises(hone.Error, match="weights are missing"):
            plan.refit(network)
        with pytest.raises(hone.Error, match="is missing"):
            network.weight(sorted(missing)[0])
        with hone.Model.load(path) as model:  # the rest stays what it was
            weights = {name: model.weight(name) for name in missing} | weights
    refitted = plan.refit(weights)
    expected = reference_session(other).run(["y"], {"x": values})[0]
    assert relative_error(run(refitted, values), expected) < tolerance
    from_model, fresh = plan.refit(other), hone.build(other, [*FAST, *flags], profiles=profiles)
    assert run(refitted, values).tobytes() == run(from_model, values).tobytes() == run(fresh, values).tobytes()
    assert refitted.layers() == from_model.layers()
    refitted.save(folder / "again.plan")
    if "--stripWeights" not in flags:
        before = reference_session(path).run(["y"], {"x": values})[0]
        model = hone.Model.load(path)
        again = hone.load(folder / "again.plan").refit({name: model.weight(name) for name in weights})
        assert relative_error(run(again, values), before) < tolerance
        assert relative_error(run(plan, values), before) < tolerance  # the plan that was refitted stays


def test_weights_that_are_not_given_stay(folder):
    path = tiny.convolutions(folder / "model.onnx")
    plan = hone.build(path, [*FAST, "--refit"], profiles=IMAGES)
    network = plan.network()
    details = network.weight_details()
    assert {name: (weight.node, weight.role, weight.shape) for name, weight in details.items()} == {
        "w0": ("conv0", "Kernel", (16, 3, 3, 3)), "w1": ("conv1", "Kernel", (16, 16, 3, 3)), "b1": ("conv1", "Bias", (16,)),
        "w2": ("classify", "Kernel", (16, 10))}
    assert not any(weight.missing or weight.refusal for weight in details.values())
    model = onnx.load(path)
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == "b1")
    np.testing.assert_array_equal(network.weight("b1"), numpy_helper.to_array(tensor))
    bias = np.arange(16, dtype=np.float32)
    tensor.CopyFrom(numpy_helper.from_array(bias, "b1"))
    onnx.save(model, folder / "other.onnx")
    values = np.random.default_rng(5).standard_normal((2, 3, 16, 16), np.float32)
    expected = reference_session(folder / "other.onnx").run(["y"], {"x": values})[0]
    assert relative_error(run(plan.refit({"b1": bias}), values), expected) < 2e-5


def test_its_own_weights_give_a_stripped_plan_back(folder):
    path = tiny.convolutions(folder / "model.onnx")
    hone.build(path, [*FAST, "--stripWeights"], profiles=IMAGES).save(folder / "bare.plan")
    plan = hone.load(folder / "bare.plan")
    assert not plan.info().has_weights
    with hone.Model.load(path) as model:
        own = {name: model.weight(name) for name in model.weights()}
    values = np.random.default_rng(5).standard_normal((2, 3, 16, 16), np.float32)
    expected = reference_session(path).run(["y"], {"x": values})[0]
    assert relative_error(run(plan.refit(own), values), expected) < 2e-5
    with pytest.raises(hone.Error, match="other weights than the engine"):
        plan.refit(own | {"b1": np.zeros(16, np.float32)})


def test_what_cannot_be_exchanged_says_why(folder):
    weights = {"w": np.ones((4, 8), np.float32), "shape": np.array([-1, 2, 4], np.int64), "sizes": np.array([1, 2, 1], np.float32)}
    nodes = [helper.make_node("Gemm", ["x", "w"], ["h"], name="dense"), helper.make_node("Reshape", ["h", "shape"], ["r"], name="fold"),
             helper.make_node("Resize", ["r", "", "sizes"], ["y"], name="grow", mode="nearest")]
    path = tiny.save(folder / "model.onnx", nodes, weights)
    plan = hone.build(path, [*FAST, "--refit"], profiles=ROWS)
    network = plan.network()
    details = network.weight_details()
    assert details["w"].refusal is None and "sizes, indices and conditions" in details["shape"].refusal
    with pytest.raises(hone.Error, match="shape cannot be exchanged: it is a part of the network"):
        network.set_weight("shape", np.array([-1, 4, 2], np.int64))
    with pytest.raises(hone.Error, match="the network would have other sizes"):
        network.set_weight("sizes", np.array([1, 3, 1], np.float32))
    network.set_weight("w", np.full((4, 8), 2, np.float32))
    with pytest.raises(hone.Error, match="no weight called v\n  hint: the nearest is w"):
        network.set_weight("v", np.ones(3, np.float32))
    with pytest.raises(hone.Error, match="has the shape"):
        network.set_weight("w", np.ones((8, 4), np.float32))
    np.testing.assert_array_equal(run(plan.refit(network), np.ones((2, 4), np.float32)), np.full((2, 4, 4), 8))
    with pytest.raises(hone.Error, match="built with fixed weights"):
        hone.build(path, FAST, profiles=ROWS).network()


def test_two_weights_of_one_name_and_weights_that_the_import_computed_with(folder):
    out = helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)
    bodies = [helper.make_graph([helper.make_node("Add", ["x", "twin"], ["r"])], "body", [], [out],
                                [numpy_helper.from_array(np.full(4, value, np.float32), "twin")]) for value in (1, 2)]
    nodes = [helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0), helper.make_node("Greater", ["t", "zero"], ["c"]),
             helper.make_node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1])]
    path = tiny.save(folder / "model.onnx", nodes, {"zero": np.float32(0)})
    network = hone.build(path, [*FAST, "--refit"], profiles=ROWS).network()
    assert "several tensors have its name" in network.weight_details()["twin"].refusal
    with pytest.raises(hone.Error, match="twin cannot be exchanged: several tensors"):
        network.set_weight("twin", np.zeros(4, np.float32))
    random = np.random.default_rng(3)
    packed = {"w": random.integers(0, 255, (8, 1, 16), np.uint8), "s": random.uniform(0.1, 1, 8).astype(np.float32)}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], name="few", domain="com.microsoft", K=32, N=8, bits=4, block_size=32)
    graph = helper.make_graph([node], "few", [helper.make_tensor_value_info("x", 1, [2, 32])], [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(values, name) for name, values in packed.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8),
              folder / "few.onnx")
    plan = hone.build(folder / "few.onnx", [*FAST, "--refit"])
    assert "w" not in plan.network().weights()
    with pytest.raises(hone.Error, match="the weight w is not in the network by itself: the import has computed with it"):
        plan.network().set_weight("w", packed["w"])
    hone.build(folder / "few.onnx", [*FAST, "--stripAllWeights"]).save(folder / "bare.plan")
    with pytest.raises(hone.Error, match="the import computed with one of them"):
        hone.load(folder / "bare.plan").network()
    values = random.standard_normal((2, 32), np.float32)
    assert run(hone.load(folder / "bare.plan").refit(folder / "few.onnx"), values).tobytes() == run(plan, values).tobytes()
