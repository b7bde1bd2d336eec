# SPDX-License-Identifier: Apache-2.0
"""Sizes that the data decide, as detection models have them: what is found, ranked, filtered and possibly nothing, on inputs that
change from run to run, through saved plans, held against ONNX Runtime."""

import json
import sys

import numpy as np
import pytest
from conftest import PACKAGE
from inference import session_of
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
BOXES = 40


def number(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "sizes", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def found():
    """The places themselves are the result."""
    return model_of([node("NonZero", "x", "places")], [value("x", FLOAT, 6, 7)], [value("places", INT64, 2, None)])


def ranked():
    """The best three of those above 0, if there are as many."""
    nodes = [node("Greater", "x zero", "above"), node("NonZero", "above", "places"), node("Transpose", "places", "rows", perm=[1, 0]),
             node("GatherND", "x rows", "kept"), node("Shape", "kept", "count"), node("Concat", "count three", "both", axis=0),
             node("ReduceMin", "both", "k", keepdims=1), node("TopK", "kept k", "best at"),
             node("Shape", "best", "shape"), node("ConstantOfShape", "shape", "label", value=number("", [7]))]
    return model_of(nodes, [value("x", FLOAT, 300)], [value("best", FLOAT, None), value("at", INT64, None), value("label", INT64, None)],
                    [number("zero", 0, np.float32), number("three", [3])])


def suppressed():
    """Boxes above 0, of which those are kept that overlap no better one, as exporters write it: nothing where there is no box."""
    several = [node("ReduceMax", "boxes", "far", keepdims=0), node("Add", "boxes far", "moved"), node("Unsqueeze", "moved first", "b"),
               node("Unsqueeze", "scores both", "s"), node("NonMaxSuppression", "b s most limit", "selected"),
               node("Gather", "selected two", "column", axis=1), node("Squeeze", "column second", "kept")]
    none = helper.make_graph([helper.make_node("Constant", [], ["nothing"], value=number("", np.zeros(0)))], "none", [], [value("nothing", INT64, 0)])
    some = helper.make_graph(several, "some", [], [value("kept", INT64, None)])
    nodes = [node("Greater", "x zero", "above"), node("NonZero", "above", "places"), node("Transpose", "places", "rows", perm=[1, 0]),
             node("GatherND", "x rows", "scores"), node("GatherND", "every rows", "boxes"), node("Shape", "boxes", "shape"),
             node("ReduceProd", "shape", "count", keepdims=0), node("Equal", "count none", "empty"),
             helper.make_node("If", ["empty"], ["at"], name="if", then_branch=none, else_branch=some),
             node("Gather", "boxes at", "result", axis=0)]
    constants = [number("zero", 0, np.float32), number("none", 0), number("first", [0]), number("both", [0, 1]), number("most", [2**63 - 1]),
                 number("limit", [0.4], np.float32), number("two", [2]), number("second", [1])]
    return model_of(nodes, [value("x", FLOAT, BOXES), value("every", FLOAT, BOXES, 4)], [value("result", FLOAT, None, 4), value("at", INT64, None)], constants)


def feeds_of(model, seed, shift):
    random = np.random.default_rng(seed)
    feeds = {}
    for tensor in model.graph.input:
        shape = [dim.dim_value for dim in tensor.type.tensor_type.shape.dim]
        feeds[tensor.name] = random.standard_normal(shape).astype(np.float32)
    feeds["x"] = np.maximum(feeds["x"] + np.float32(shift), 0)
    if "every" in feeds:
        corner = random.uniform(0, 3, (BOXES, 2))
        feeds["every"] = np.concatenate([corner, corner + random.uniform(0.5, 2, (BOXES, 2))], axis=1).astype(np.float32)
    return feeds


@pytest.fixture(scope="module", params=["cpu", "cuda:0"])
def device(request):
    try:
        return hone.Device(request.param)
    except hone.Error as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("make", [found, ranked, suppressed], ids=lambda make: make.__name__)
def test_sizes_follow_the_data_from_run_to_run(folder, device, make, level):
    """Some, none, all, some others: each run of one context on the plan's own memory, which held something else before."""
    model = make()
    plan = hone.Model.parse(model.SerializeToString()).build([f"--builderOptimizationLevel={level}"], device=device)
    plan.save(folder / "sizes.plan")
    context = hone.load(folder / "sizes.plan").engine(device).context()
    session = session_of(model.SerializeToString())
    for seed, shift in enumerate([0, -100, 100, -0.5, 0, -100, 0.5]):
        feeds = feeds_of(model, seed, shift)
        names = [output.name for output in model.graph.output]
        for name, expected in zip(names, session.run(names, feeds)):
            result = context.run(feeds)[name]
            assert result.shape == expected.shape, (name, shift)
            np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=f"{name} at {shift}")


def test_no_condition_is_left_around_a_suppression(folder):
    plan = hone.Model.parse(suppressed().SerializeToString()).build(["--builderOptimizationLevel=0"])
    kinds = [step["kind"] for step in json.loads(plan.json())["profiles"][0]["steps"]]
    assert not any("If" in kind for kind in kinds), kinds


def test_a_grid_of_floats_is_as_large_as_the_shapes_say():
    """Sizes that reach Range through Casts, as detectors have them, are known before an inference; fractions stay what data decide."""
    nodes = [node("Shape", "x", "shape"), node("Gather", "shape last", "width"), node("Cast", "width", "limit", to=FLOAT),
             node("Range", "zero limit one", "grid"), node("Add", "grid half", "y"), node("Range", "half limit one", "z")]
    model = model_of(nodes, [value("x", FLOAT, 2, "w")], [value("y", FLOAT, None), value("z", FLOAT, None)],
                     [number("last", 1), *(number(name, given, np.float32) for name, given in (("zero", 0), ("one", 1), ("half", 0.5)))])
    flags = ["--builderOptimizationLevel=0", "--minShapes=x:2x1", "--optShapes=x:2x7", "--maxShapes=x:2x9"]
    context = hone.Model.parse(model.SerializeToString()).build(flags).engine().context()
    context.set_shape("x", (2, 5))
    assert context.shape("y") == (5,)
    for width in (1, 4, 9):
        x = np.zeros((2, width), np.float32)
        y, z = context.run({"x": x}).values()
        np.testing.assert_array_equal(y, np.arange(width) + np.float32(0.5))
        np.testing.assert_array_equal(z, np.arange(0.5, width, dtype=np.float32))
