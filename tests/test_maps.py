# SPDX-License-Identifier: Apache-2.0
"""Maps as values: ZipMap, CastMap and DictVectorizer of ai.onnx.ml for every type of the standard, held against ONNX Runtime
where that takes such maps; maps in sequences and optionals, through saved plans, and what is refused."""

import sys

import numpy as np
import onnxruntime
import pytest
from conftest import PACKAGE
from onnx import TensorProto, helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING


def map_info(name, key, value, shape=()):
    return helper.make_value_info(name, helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, shape)))


def tensor(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs):
    graph = helper.make_graph(nodes if isinstance(nodes, list) else [nodes], "maps", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def ml(op, **attributes):
    return helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)


def run(model, feeds, folder=None):
    plan = hone.Model.parse(model).build(["--builderOptimizationLevel=0"])
    if folder is not None:
        plan.save(folder / "maps.plan")
        plan = hone.load(folder / "maps.plan")
    return plan.engine().context().run(feeds)["y"]


def same(own, expected):
    if isinstance(expected, np.ndarray):
        assert own.shape == expected.shape and own.dtype == expected.dtype
        np.testing.assert_array_equal(own, expected)
    else:
        assert own == expected and type(own) is type(expected)


LABELS = {"integers": {"classlabels_int64s": [10, 3, 7]}, "strings": {"classlabels_strings": ["b", "a", "ü"]},
          "a label twice": {"classlabels_int64s": [10, 3, 3]}}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("shape", [(2, 3), (3,), (0, 3)])
def test_zip_map(folder, labels, shape):
    key = STRING if "classlabels_strings" in LABELS[labels] else INT64
    output = helper.make_value_info("y", helper.make_sequence_type_proto(helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))))
    model = model_of(ml("ZipMap", **LABELS[labels]), [tensor("x", FLOAT, shape)], [output])
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    same(run(model, {"x": x}, folder), onnxruntime.InferenceSession(model).run(None, {"x": x})[0])


NUMBERS = {5: 1.5, 2: -2.25, 0: 3e10}
TEXTS = {5: "12", 2: "-7", 0: " 8"}
CAST = {  # (values, cast_to): the row of the values in the order of the keys
    ("numbers", "TO_FLOAT"): None, ("numbers", "TO_INT64"): None, ("numbers", "TO_STRING"): None,  # as ONNX Runtime
    ("texts", "TO_FLOAT"): np.array([[8, -7, 12]], np.float32), ("texts", "TO_INT64"): np.array([[8, -7, 12]]),
    ("texts", "TO_STRING"): np.array([[" 8", "-7", "12"]], object),
}


@pytest.mark.parametrize("values, target", CAST)
@pytest.mark.parametrize("form", ["DENSE", "SPARSE"])
def test_cast_map(values, target, form):
    kind = {"TO_FLOAT": FLOAT, "TO_INT64": INT64, "TO_STRING": STRING}[target]
    model = model_of(ml("CastMap", cast_to=target, map_form=form, max_map=7),
                     [map_info("x", INT64, FLOAT if values == "numbers" else STRING)], [tensor("y", kind)])
    content = NUMBERS if values == "numbers" else TEXTS
    expected = CAST[values, target]
    if expected is None:
        expected = onnxruntime.InferenceSession(model).run(None, {"x": content})[0]
    elif form == "SPARSE":
        row = [expected.dtype.type(0) if target != "TO_STRING" else "0.f"] * 7
        for place, value in zip(sorted(content), expected[0]):
            row[place] = value
        expected = np.array([row], expected.dtype)
    same(run(model, {"x": content}), expected)


def test_cast_map_leaves_out_keys_beyond_the_row():
    model = model_of(ml("CastMap", map_form="SPARSE", max_map=3), [map_info("x", INT64, FLOAT)], [tensor("y", FLOAT)])
    for content in ({5: 1.0, 1: 2.0}, {7: 1.0}, {}):
        if content:
            same(run(model, {"x": content}), onnxruntime.InferenceSession(model).run(None, {"x": content})[0])
        else:
            same(run(model, {"x": content}), np.zeros((1, 3), np.float32))
    with pytest.raises(hone.Error, match="-5"):
        run(model, {"x": {-5: 1.0}})


@pytest.mark.parametrize("key, value, content", [
    (STRING, FLOAT, {"a": 1.5, "q": 2.0, "c": -1.0}), (STRING, INT64, {"a": 1, "q": 2, "c": -(2**60)}), (STRING, DOUBLE, {"a": 1e-300, "q": 2.0}),
    (INT64, FLOAT, {1: 1.5, 5: 2.0}), (INT64, DOUBLE, {1: 1e-300, 5: 2.0}), (INT64, STRING, {1: "u", 5: "w"})])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_dict_vectorizer(key, value, content, shape):
    vocabulary = {"string_vocabulary": ["c", "x", "a"]} if key == STRING else {"int64_vocabulary": [5, 2, 1]}
    model = model_of(ml("DictVectorizer", **vocabulary), [map_info("x", key, value, shape)], [tensor("y", value)])
    (words,) = vocabulary.values()
    dtype = {FLOAT: np.float32, DOUBLE: np.float64, INT64: np.int64, STRING: object}[value]
    expected = np.array([[content.get(word, "" if value == STRING else 0) for word in words]], dtype)
    if value == FLOAT:
        same(onnxruntime.InferenceSession(model).run(None, {"x": content})[0], expected)
    same(run(model, {"x": content}), expected)


def test_maps_are_elements_of_sequences_and_optionals():
    kind = helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, []))
    info = lambda name, make: helper.make_value_info(name, make(kind))
    nodes = [helper.make_node("SequenceAt", ["x", "at"], ["m"]), helper.make_node("Optional", ["m"], ["o"]),
             helper.make_node("OptionalGetElement", ["o"], ["n"]), helper.make_node("SequenceConstruct", ["n", "m"], ["y"])]
    model = model_of(nodes, [info("x", helper.make_sequence_type_proto), tensor("at", INT64, [])], [info("y", helper.make_sequence_type_proto)])
    maps = [{"a": 1.0}, {"b": 2.0, "c": 0.5}]
    assert run(model, {"x": maps, "at": np.array(1)}) == [maps[1], maps[1]]
    nodes = [helper.make_node("OptionalHasElement", ["x"], ["y"])]
    model = model_of(nodes, [info("x", helper.make_optional_type_proto)], [tensor("y", TensorProto.BOOL, [])])
    assert run(model, {"x": maps[0]}) and not run(model, {"x": None})


def test_a_classifier_of_scikit_learn_gives_labels_and_maps():
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", classlabels_ints=[0, 1, 2], multi_class=1,
                              coefficients=np.arange(6, dtype=np.float32) / 6, intercepts=[0.1, 0.2, 0.3], post_transform="SOFTMAX"),
             helper.make_node("ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2])]
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, [])))
    model = model_of(nodes, [tensor("x", FLOAT, ["N", 2])], [tensor("label", INT64, ["N"]), helper.make_value_info("y", kind)])
    x = np.array([[1, -1], [0.5, 2], [0, 0]], np.float32)
    label, maps = onnxruntime.InferenceSession(model).run(None, {"x": x})
    results = hone.Model.parse(model).build(["--builderOptimizationLevel=0", "--shapes=x:3x2"]).engine().context().run({"x": x})
    np.testing.assert_array_equal(results["label"], label)
    assert [list(own) for own in results["y"]] == [list(other) for other in maps]
    for own, other in zip(results["y"], maps):
        np.testing.assert_allclose(list(own.values()), list(other.values()), rtol=1e-6)


REFUSED = {
    "other keys": (lambda: model_of(ml("CastMap"), [map_info("x", TensorProto.INT32, FLOAT)], [tensor("y", FLOAT)]), "INT32"),
    "values that are tensors": (lambda: model_of(ml("CastMap"), [map_info("x", INT64, FLOAT, [3])], [tensor("y", FLOAT)]), "single values"),
    "keys of the wrong type": (lambda: model_of(ml("CastMap"), [map_info("x", STRING, FLOAT)], [tensor("y", FLOAT)]), "from integers"),
    "no vocabulary": (lambda: model_of(ml("DictVectorizer"), [map_info("x", INT64, FLOAT)], [tensor("y", FLOAT)]), "int64_vocabulary"),
    "a vocabulary of another type": (lambda: model_of(ml("DictVectorizer", string_vocabulary=["a"]), [map_info("x", INT64, FLOAT)], [tensor("y", FLOAT)]), "vocabulary"),
    "classes that do not fit": (lambda: model_of(ml("ZipMap", classlabels_int64s=[1, 2]), [tensor("x", FLOAT, [2, 3])], [tensor("y", FLOAT)]), "classes"),
    "a map where a tensor belongs": (lambda: model_of(helper.make_node("Exp", ["x"], ["y"], name="wrong"), [map_info("x", INT64, FLOAT)], [tensor("y", FLOAT)]), "wrong"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_with_a_reason(case):
    make, reason = REFUSED[case]
    with pytest.raises(hone.Error) as raised:
        hone.Model.parse(make())
    assert reason in str(raised.value) and "internal" not in str(raised.value)


def test_values_of_another_type_are_refused_when_they_are_given():
    model = model_of(ml("CastMap"), [map_info("x", INT64, FLOAT)], [tensor("y", FLOAT)])
    context = hone.Model.parse(model).build(["--builderOptimizationLevel=0"]).engine().context()
    with pytest.raises((hone.Error, ValueError)):
        context.run({"x": {"one": 1.0}})
    with pytest.raises(hone.Error, match="map<i64,f32"):
        context.run({"x": np.zeros(3, np.float32)})
