# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: what the parser makes of models, what networks say of themselves, and layers added to a parsed network."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from trt_networks import Log, build, infer, trt

RANDOM = np.random.default_rng(11)
VERSION = {"ir_version": 8}


def reals(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def model_of(nodes, inputs, outputs, weights=None, opset=13, types=()):
    """A model; inputs are {name: sizes}, of float unless `types` says."""
    infos = [helper.make_tensor_value_info(name, dict(types).get(name, TensorProto.FLOAT), sizes) for name, sizes in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_empty_tensor_value_info(name) for name in outputs],
                              [onnx.numpy_helper.from_array(array, name) for name, array in (weights or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **VERSION)


def perceptron(opset=13):
    return model_of([helper.make_node("Conv", ["x", "w"], ["a"], "conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"], "relu"),
                     helper.make_node("Add", ["b", "bias"], ["c"]), helper.make_node("Reshape", ["c", "shape"], ["y"], "flat")],
                    {"x": [1, 2, 4, 4]}, ["y"], {"w": reals(3, 2, 3, 3), "bias": reals(3, 1, 1), "shape": np.array([0, -1])}, opset)


def parsed(model, flags=0):
    log = Log()
    network = trt.Builder(log).create_network(flags)
    parser = trt.OnnxParser(network, log)
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return network, parser, parser.parse(data), log


def expected(model, inputs):
    names = [each.name for each in model.graph.output]
    return dict(zip(names, onnxruntime.InferenceSession(model.SerializeToString()).run(names, inputs)))


def agree(network, model, inputs, log, tolerance=1e-4):
    found = infer(build(network, log=log), inputs)
    for name, array in expected(model, inputs).items():
        np.testing.assert_allclose(found[name], array, rtol=tolerance, atol=tolerance)


def test_a_model_becomes_layers():
    model = perceptron()
    network, parser, done, log = parsed(model)
    assert done and parser.num_errors == 0
    assert [(layer.name, layer.type.name) for layer in network] == [
        ("conv", "CONVOLUTION"), ("relu", "ACTIVATION"), ("bias", "CONSTANT"), ("node_of_c", "ELEMENTWISE"), ("flat", "SHUFFLE")]
    assert [network.get_layer(at).get_output(0).name for at in range(5)] == ["a", "b", "bias", "c", "y"]
    assert network[0].metadata == "[ONNX Layer: conv]" and network[-1].name == "flat"
    assert tuple(network.get_output(0).shape) == (1, 48) and network.get_output(0).dtype == trt.float32
    assert network.get_layer(5) is None and network.get_input(1) is None
    with pytest.raises(IndexError):
        network[5]
    agree(network, model, {"x": reals(1, 2, 4, 4)}, log)


def test_tensors_are_the_same_objects_and_layers_take_another_class():
    network, *_ = parsed(perceptron())
    conv, relu = network.get_layer(0), network.get_layer(1)
    assert conv.get_output(0) is relu.get_input(0) is list(network)[1].get_input(0)
    assert len({conv.get_output(0), relu.get_input(0)}) == 1
    shown = set(dir(conv))
    conv.__class__ = trt.IConvolutionLayer
    assert not [name for name in set(dir(conv)) - shown if name.startswith("_")]
    assert tuple(conv.kernel_size_nd) == (3, 3) and conv.num_output_maps == 3 and tuple(conv.padding_nd) == (1, 1)
    assert conv.kernel.size == 54 and conv.type == trt.LayerType.CONVOLUTION
    relu.__class__ = trt.IActivationLayer
    assert relu.type == trt.ActivationType.RELU and network.get_layer(1).type == trt.LayerType.ACTIVATION


@pytest.mark.parametrize("opset", [9, 13, 17])
def test_layers_are_added_to_a_model_of_another_opset(opset):
    model, x = perceptron(opset), reals(1, 2, 4, 4)
    network, _, done, log = parsed(model)
    assert done
    output = network.get_output(0)
    reduced = network.add_reduce(output, trt.ReduceOperation.SUM, 2, True)
    shape = network.add_shape(output).get_output(0)
    again = network.add_shuffle(reduced.get_output(0))
    again.reshape_dims = (1, 1, 1)
    assert tuple(again.get_output(0).shape) == (1, 1, 1) and tuple(shape.shape) == (2,)
    again.get_output(0).name = "total"
    network.mark_output(again.get_output(0))
    found, reference = infer(build(network, log=log), {"x": x}), expected(model, {"x": x})["y"]
    np.testing.assert_allclose(found["y"], reference, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["total"].ravel(), [reference.sum()], rtol=1e-3)


def test_outputs_move_names_change_and_shapes_of_inputs_are_set():
    model, x = perceptron(), reals(2, 2, 4, 4)
    network, _, _, log = parsed(model)
    middle = network.get_layer(1).get_output(0)
    network.unmark_output(network.get_output(0))
    network.mark_output(middle)
    middle.name = "middle"
    network.get_input(0).shape = (2, 2, 4, 4)
    assert tuple(middle.shape) == (2, 3, 4, 4) and middle.is_network_output and network.num_outputs == 1
    found = infer(build(network, log=log), {"x": x})
    assert list(found) == ["middle"] and found["middle"].shape == (2, 3, 4, 4) and (found["middle"] >= 0).all()
    network.get_layer(0).get_output(0).name = "middle"
    assert network.get_layer(0).get_output(0).name == "a" and "middle" in log.errors()[-1]


def test_inputs_and_outputs_of_another_type():
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [4]}, ["y"])
    network, _, _, log = parsed(model)
    network.get_input(0).dtype, network.get_output(0).dtype = trt.float16, trt.float16
    x = reals(4).astype(np.float16)
    found = infer(build(network, log=log), {"x": x})["y"]
    assert found.dtype == np.float16 and (found == np.maximum(x, 0)).all()


def test_a_type_that_tensorrt_lacks_is_shown_as_the_nearest():
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], {"x": [3]}, ["y"], types={"x": TensorProto.DOUBLE})
    network, _, done, log = parsed(model)
    assert done and network.get_input(0).dtype == trt.float32
    x = reals(3)
    np.testing.assert_array_equal(infer(build(network, log=log), {"x": x})["y"], -x)


def test_bodies_read_the_graph_around_them():
    inner = helper.make_graph([helper.make_node("Add", ["a", "w"], ["t"])], "then", [], [helper.make_empty_tensor_value_info("t")])
    other = helper.make_graph([helper.make_node("Sub", ["a", "w"], ["e"])], "else", [], [helper.make_empty_tensor_value_info("e")])
    model = model_of([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other)],
                     {"x": [3], "c": []}, ["y"], {"w": reals(3)}, types={"c": TensorProto.BOOL})
    network, _, done, log = parsed(model)
    assert done
    network.get_layer(0).get_output(0).name = "renamed"
    agree(network, model, {"x": reals(3), "c": np.array(True)}, log)


# ---- refusals ----

def test_each_refused_node_has_an_error():
    model = model_of([helper.make_node("Rellu", ["x"], ["a"], "first"), helper.make_node("Relu", ["x"], ["b"], "fine"),
                      helper.make_node("Transpose", ["x"], ["c"], "wrong", perm=[0, 0]), helper.make_node("Add", ["a", "b"], ["y"], "behind")],
                     {"x": [2, 3]}, ["y"])
    network, parser, done, log = parsed(model)
    assert not done and parser.num_errors == 2 and network.num_layers == 0
    unknown, wrong = parser.get_error(0), parser.get_error(1)
    assert (unknown.node(), unknown.node_name(), unknown.node_operator()) == (0, "first", "Rellu")
    assert unknown.code() == trt.ErrorCode.INVALID_NODE and unknown.func() == "checkFallbackPluginImporter"
    assert str(unknown) == ('In node 0 with name: first and operator: Rellu (checkFallbackPluginImporter): INVALID_NODE: '
                            'creator && "Plugin not found, are the plugin name, version, and namespace correct?"')
    assert wrong.node() == 2 and "perm" in wrong.desc() and "%i" % wrong.code() == "6"
    assert len(log.errors()) == 2
    parser.clear_errors()
    assert parser.num_errors == 0
    assert not parser.supports_model_v2(model.SerializeToString())
    assert parser.num_subgraphs == 2
    assert [parser.get_subgraph_nodes(at) for at in range(2)] == [[1], [3]] and parser.is_subgraph_supported(0)


def test_a_model_that_is_read_is_one_group():
    data = perceptron().SerializeToString()
    _, parser, _, _ = parsed(data)
    assert parser.supports_model(data) == (True, [([0, 1, 2, 3], True)])


@pytest.mark.parametrize("data", [b"", b"\x08", b"no model at all", b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\x02\x08\x01"])
def test_bytes_that_are_no_model(data):
    network, parser, done, log = parsed(data)
    assert not done and parser.num_errors == 1 and log.errors() and network.num_layers == 0


def test_damaged_models_are_refused_or_read_but_never_crash():
    data = perceptron().SerializeToString()
    for _ in range(200):
        damaged = bytearray(data)
        for at in RANDOM.integers(0, len(data), 3):
            damaged[at] = RANDOM.integers(0, 256)
        network, parser, done, _ = parsed(bytes(damaged))
        assert done == (parser.num_errors == 0)
        for layer in network:
            assert all(layer.get_output(at).name is not None for at in range(layer.num_outputs))


def test_a_number_where_a_text_or_message_stands_is_refused():
    huge = b"\xff" * 8 + b"\x7f"  # as many zeros, if it were taken for a length
    texts = {"the graph's name": b"\x10", "an initialiser's name": b"\x2a\x0a\x40", "a node's operator": b"\x0a\x0a\x20"}
    graphs = {what: b"\x3a" + bytes([len(field) + len(huge)]) + field + huge for what, field in texts.items()}
    for what, data in {**graphs, "a function": b"\xc8\x01" + huge, "an opset": b"\x40" + huge, "the graph": b"\x38" + huge}.items():
        network, parser, done, _ = parsed(data)
        assert not done and parser.num_errors == 1, what
        assert "another kind than ONNX says" in parser.get_error(0).desc(), what


def test_a_missing_file_and_a_network_that_is_not_empty():
    network, parser, _, log = parsed(perceptron())
    assert not parser.parse_from_file("/nowhere/model.onnx") and not parser.parse(perceptron().SerializeToString())
    assert "layers already" in parser.get_error(1).desc()
    assert str(parser.get_error(0)).startswith("(deserializeOnnxModel): MODEL_DESERIALIZE_FAILED")


def test_a_strongly_typed_network_keeps_its_types():
    flag = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network, _, _, log = parsed(perceptron(), flag)
    assert network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network.get_layer(0).precision = trt.float16
    assert not network.get_layer(0).precision_is_set and "strongly typed" in log.errors()[-1]


def test_weights_lie_outside_of_the_file(folder):
    model = perceptron()
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    log = Log()
    network = trt.Builder(log).create_network()
    parser = trt.OnnxParser(network, log)
    assert parser.parse_from_file(str(folder / "m.onnx")), log.errors()
    agree(network, perceptron_again(folder), {"x": reals(1, 2, 4, 4)}, log)


def perceptron_again(folder):
    return onnx.load(folder / "m.onnx")


def test_a_parsed_layers_parameters_change_where_they_say_all():
    model, x = perceptron(), reals(1, 2, 4, 4)
    network, _, _, log = parsed(model)
    conv = network.get_layer(0)
    conv.__class__ = trt.IConvolutionLayer
    kernel = conv.kernel.reshape(3, 2, 3, 3)
    conv.padding_nd = (0, 0)
    network.unmark_output(network.get_output(0))
    network.mark_output(conv.get_output(0))
    assert tuple(conv.get_output(0).shape) == (1, 3, 2, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (1, 2))
    np.testing.assert_allclose(infer(build(network, log=log), {"x": x})["a"][0], np.einsum("chwij,kcij->khw", windows, kernel), rtol=1e-4,
                               atol=1e-4)


def test_a_parsed_layer_of_which_they_do_not_is_refused():
    model = model_of([helper.make_node("HardSwish", ["x"], ["y"], "swish")], {"x": [4]}, ["y"], opset=14)
    network, _, _, log = parsed(model)
    layer = network.get_layer(0)
    layer.__class__ = trt.IActivationLayer
    layer.alpha = 2.0
    builder = network.builder
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert any("HardSwish" in text and "cannot be changed" in text for text in log.errors())


def test_parameters_of_parsed_layers_say_what_their_nodes_do():
    def ints(name, *values):
        return onnx.numpy_helper.from_array(np.array(values, np.int64), name)

    nodes = [helper.make_node("Slice", ["x", "from", "to", "axes", "steps"], ["cut"], "cut"),
             helper.make_node("Pad", ["x", "pads"], ["wide"], "wide", mode="reflect"),
             helper.make_node("Resize", ["x", "", "scales"], ["large"], "large", mode="linear", coordinate_transformation_mode="align_corners"),
             helper.make_node("LayerNormalization", ["x", "ones"], ["normal"], "normal", epsilon=1e-3),
             helper.make_node("CumSum", ["x", "axis"], ["sums"], "sums", exclusive=1),
             helper.make_node("GridSample", ["x", "grid"], ["seen"], "seen", mode="linear", padding_mode="border", align_corners=1),
             helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "q", axis=1),
             helper.make_node("Softmax", ["x"], ["soft"], "soft", axis=2), helper.make_node("Tile", ["x", "times"], ["tiled"], "tiled"),
             helper.make_node("Expand", ["one", "sizes"], ["spread"], "spread")]
    held = [ints("from", -3, 0), ints("to", 4, 9), ints("axes", 2, 3), ints("steps", 1, 2), ints("pads", 0, 0, 1, 1, 0, 0, 1, 0), ints("times", 1, 2, 1, 1),
            ints("axis", 3), ints("sizes", 2, 3), onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"),
            onnx.numpy_helper.from_array(np.ones(5, np.float32), "ones"), onnx.numpy_helper.from_array(np.full(3, 0.1, np.float32), "scale"),
            onnx.numpy_helper.from_array(np.zeros(3, np.int8), "zero"), onnx.numpy_helper.from_array(np.zeros((1, 2, 2, 2), np.float32), "grid")]
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 4, 5]), helper.make_tensor_value_info("one", onnx.TensorProto.FLOAT, [2, 1])]
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, held), opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    log = Log()
    network = trt.Builder(log).create_network()
    assert trt.OnnxParser(network, log).parse(model.SerializeToString()), log.errors()
    layers = {}
    for layer in network:
        layer.__class__ = {"SLICE": trt.ISliceLayer, "RESIZE": trt.IResizeLayer, "NORMALIZATION": trt.INormalizationLayer, "SOFTMAX": trt.ISoftMaxLayer,
                           "CUMULATIVE": trt.ICumulativeLayer, "GRID_SAMPLE": trt.IGridSampleLayer, "QUANTIZE": trt.IQuantizeLayer}.get(
                               layer.type.name, trt.ILayer)
        layers[layer.name] = layer
    cut, wide, large, tiled = (layers[name] for name in ("cut", "wide", "large", "tiled"))
    assert (cut.start, cut.shape, cut.stride, cut.mode) == ((0, 0, 1, 0), (1, 3, 3, 3), (1, 1, 1, 2), trt.SampleMode.STRICT_BOUNDS)
    assert (wide.start, wide.shape, wide.mode) == ((0, 0, -1, -1), (1, 3, 6, 6), trt.SampleMode.REFLECT)
    assert large.scales == [1, 1, 2, 2] and large.resize_mode == trt.InterpolationMode.LINEAR
    assert large.coordinate_transformation == trt.ResizeCoordinateTransformation.ALIGN_CORNERS
    assert abs(layers["normal"].epsilon - 1e-3) < 1e-9 and layers["normal"].axes == 1 << 3
    assert layers["sums"].exclusive and not layers["sums"].reverse
    assert layers["seen"].sample_mode == trt.SampleMode.CLAMP and layers["seen"].align_corners
    assert layers["q"].axis == 1 and layers["q"].to_type == trt.int8 and layers["soft"].axes == 1 << 2
    assert tiled.shape == (1, 6, 4, 5) and tiled.mode == trt.SampleMode.WRAP
    assert layers["spread"].stride == (1, 0) and layers["spread"].shape == (2, 3)


def test_a_tensor_that_was_removed_is_read_by_no_layer():
    log = Log()
    network = trt.Builder(log).create_network(0)
    x, gone = network.add_input("x", trt.float32, (2,)), network.add_input("gone", trt.float32, (2,))
    y = network.add_identity(x)
    network.remove_tensor(gone)
    assert network.add_identity(gone) is None and network.add_resize(gone) is None
    y.set_input(0, gone)
    network.mark_output(gone)
    assert y.get_input(0) is x and network.num_outputs == 0 and not network.mark_output_for_shapes(gone)
    assert sum("gone was removed from the network" in text for text in log.errors()) == 5
    network.mark_output(y.get_output(0))
    np.testing.assert_array_equal(infer(build(network, log=log), {"x": np.float32([1, 2])})[y.get_output(0).name], [1, 2])
