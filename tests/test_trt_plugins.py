# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: TensorRT's own plugins, as nodes of ONNX models and as layers, against numpy; the registry of creators."""

import numpy as np
import onnx.reference
import pytest
from onnx import helper
from trt_networks import Log, build, infer, trt

RANDOM = np.random.default_rng(3)


def overlap(a, b):
    """Intersection over union of boxes in corners."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


def suppressed(boxes, scores, keep, iou, threshold, agnostic=False, background=-1):
    """[(score, class, box)] of one image: boxes[n, 4] or [n, classes, 4], scores[n, classes]."""
    candidates = sorted(((scores[at, kind], kind, boxes[at] if boxes.ndim == 2 else boxes[at, kind]) for at, kind in np.ndindex(scores.shape)
                         if scores[at, kind] >= threshold and kind != background), key=lambda each: -each[0])
    chosen = []
    for score, kind, box in candidates:
        if all(overlap(box, other) <= iou for _, other_kind, other in chosen if agnostic or other_kind == kind):
            chosen.append((score, kind, box))
    return chosen[:keep]


def boxes_and_scores(images, count, kinds, per_class=False):
    where = RANDOM.uniform(0, 0.7, (images, count, *([kinds] if per_class else []), 2))
    size = RANDOM.uniform(0.1, 0.3, where.shape)
    return np.concatenate([where, where + size], -1).astype(np.float32), RANDOM.uniform(0, 1, (images, count, kinds)).astype(np.float32)


def model(op, shapes, outputs, types=None, domain="TRT", **attributes):
    types = types or [1] * len(shapes)
    inputs = [helper.make_tensor_value_info(f"x{at}", kind, shape) for at, (shape, kind) in enumerate(zip(shapes, types))]
    node = helper.make_node(op, [each.name for each in inputs], [name for name, _ in outputs], name="plugin", domain=domain, **attributes)
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    imports = [helper.make_opsetid("", 13)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(helper.make_graph([node], "g", inputs, made), opset_imports=imports, ir_version=8).SerializeToString()


def parsed(data, *arrays):
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    parser = trt.OnnxParser(network, log)
    assert parser.parse(data), log.errors()
    assert network.get_layer(network.num_layers - 1).type == trt.LayerType.PLUGIN_V2 or network.num_layers == 1
    return infer(build(network, log=log), {f"x{at}": array for at, array in enumerate(arrays)})


DETECTIONS = [("num", 6), ("boxes", 1), ("scores", 1), ("classes", 6)]


def compare(found, expected, keep, empty=0):
    """Outputs of a detection against a list for each image."""
    for image, chosen in enumerate(expected):
        count = len(chosen)
        assert found["num"][image, 0] == count and found["boxes"].shape[1:] == (keep, 4)
        np.testing.assert_allclose(found["scores"][image, :count], [score for score, _, _ in chosen], rtol=1e-5)
        np.testing.assert_array_equal(found["classes"][image, :count], [kind for _, kind, _ in chosen])
        np.testing.assert_allclose(found["boxes"][image, :count], [box for _, _, box in chosen], rtol=1e-5, atol=1e-6)
        assert not found["scores"][image, count:].any() and (found["classes"][image, count:] == empty).all()


@pytest.mark.parametrize("domain", ["TRT", ""])
@pytest.mark.parametrize("agnostic, background", [(0, -1), (1, -1), (0, 1)])
def test_efficient_nms_of_shared_boxes(domain, agnostic, background):
    boxes, scores = boxes_and_scores(2, 40, 3)
    data = model("EfficientNMS_TRT", [boxes.shape, scores.shape], DETECTIONS, domain=domain, max_output_boxes=25, score_threshold=0.3,
                 iou_threshold=0.4, background_class=background, class_agnostic=agnostic, box_coding=0, score_activation=0, plugin_version="1")
    expected = [suppressed(boxes[at], scores[at], 25, 0.4, 0.3, agnostic, background) for at in range(2)]
    compare(parsed(data, boxes, scores), expected, 25)


def test_efficient_nms_of_centres_activations_and_boxes_of_each_class():
    boxes, scores = boxes_and_scores(1, 30, 2)
    centres = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)
    raw = np.log(scores / (1 - scores)).astype(np.float32)
    attributes = {"max_output_boxes": 100, "score_threshold": 0.2, "iou_threshold": 0.5, "background_class": -1}
    data = model("EfficientNMS_TRT", [boxes.shape, scores.shape], DETECTIONS, box_coding=1, score_activation=1, **attributes)
    compare(parsed(data, centres, raw), [suppressed(boxes[0], scores[0], 100, 0.5, 0.2)], 100)
    boxes, scores = boxes_and_scores(2, 20, 3, per_class=True)
    data = model("EfficientNMS_TRT", [boxes.shape, scores.shape], DETECTIONS, **attributes)
    compare(parsed(data, boxes, scores), [suppressed(boxes[at], scores[at], 100, 0.5, 0.2) for at in range(2)], 100)


def test_efficient_nms_decodes_with_anchors():
    boxes, scores = boxes_and_scores(1, 25, 2)
    centres = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)
    anchors = np.concatenate([RANDOM.uniform(0, 1, (1, 25, 2)), RANDOM.uniform(0.1, 0.3, (1, 25, 2))], -1).astype(np.float32)
    raw = np.concatenate([(centres[..., :2] - anchors[..., :2]) / anchors[..., 2:], np.log(centres[..., 2:] / anchors[..., 2:])], -1)
    data = model("EfficientNMS_TRT", [boxes.shape, scores.shape, anchors.shape], DETECTIONS, box_coding=1, max_output_boxes=60,
                 score_threshold=0.1, iou_threshold=0.5, background_class=-1)
    compare(parsed(data, raw.astype(np.float32), scores, anchors), [suppressed(boxes[0], scores[0], 60, 0.5, 0.1)], 60)


def test_batched_nms_has_classes_as_floats_and_minus_one_behind_them():
    boxes, scores = boxes_and_scores(2, 30, 3)
    data = model("BatchedNMSDynamic_TRT", [(2, 30, 1, 4), scores.shape], [("num", 6), ("boxes", 1), ("scores", 1), ("classes", 1)], topK=30,
                 keepTopK=20, numClasses=3, scoreThreshold=0.4, iouThreshold=0.5, isNormalized=1, clipBoxes=1, backgroundLabelId=-1,
                 shareLocation=1)
    found = parsed(data, boxes[:, :, None], scores)
    assert found["classes"].dtype == np.float32
    compare(found, [suppressed(boxes[at], scores[at], 20, 0.5, 0.4) for at in range(2)], 20, empty=-1)


def test_aligned_regions_normalised_instances_and_scattered_updates():
    x, rois, which = RANDOM.standard_normal((2, 3, 8, 8)).astype(np.float32), np.array([[0, 0, 4, 4], [2, 2, 7, 7]], np.float32), np.array([1, 0], np.int32)
    attributes = {"output_height": 2, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 1.0}
    data = model("ROIAlign_TRT", [x.shape, rois.shape, which.shape], [("y", 1)], [1, 1, 6], mode=1, coordinate_transformation_mode=1, **attributes)
    onnx_model = helper.make_model(helper.make_graph(
        [helper.make_node("RoiAlign", ["x", "r", "w"], ["y"], mode="avg", coordinate_transformation_mode="half_pixel", **attributes)], "g",
        [helper.make_tensor_value_info("x", 1, x.shape), helper.make_tensor_value_info("r", 1, rois.shape),
         helper.make_tensor_value_info("w", 7, which.shape)], [helper.make_tensor_value_info("y", 1, None)]),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    expected = onnx.reference.ReferenceEvaluator(onnx_model).run(None, {"x": x, "r": rois, "w": which.astype(np.int64)})[0]
    np.testing.assert_allclose(parsed(data, x, rois, which)["y"], expected, rtol=1e-4, atol=1e-5)
    scale, bias = RANDOM.standard_normal(3).astype(np.float32), RANDOM.standard_normal(3).astype(np.float32)
    data = model("InstanceNormalization_TRT", [x.shape], [("y", 1)], epsilon=1e-3, scales=scale.tolist(), bias=bias.tolist(), relu=1, alpha=0.1)
    y = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-3) * scale[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(parsed(data, x)["y"], np.where(y > 0, y, 0.1 * y), rtol=1e-3, atol=1e-4)
    table, places, updates = np.zeros((4, 2), np.float32), np.array([[2], [0]], np.int32), np.array([[1, 2], [3, 4]], np.float32)
    data = model("ScatterND", [table.shape, places.shape, updates.shape], [("y", 1)], [1, 6, 1])
    assert parsed(data, table, places, updates)["y"].tolist() == [[3, 4], [0, 0], [1, 2], [0, 0]]


def test_creators_make_plugins_for_layers():
    log = Log()
    assert trt.init_libnvinfer_plugins(log, "") and trt.init_libnvinfer_plugins(log, namespace="")
    registry = trt.get_plugin_registry()
    assert {"EfficientNMS_TRT", "ROIAlign_TRT"} <= {creator.name for creator in registry.plugin_creator_list}
    creator = registry.get_plugin_creator("EfficientNMS_TRT", "1", "")
    assert creator.name == "EfficientNMS_TRT" and "iou_threshold" in [field.name for field in creator.field_names]
    boxes, scores = boxes_and_scores(1, 20, 2)
    fields = [trt.PluginField("max_output_boxes", np.array([15], np.int32), trt.PluginFieldType.INT32),
              trt.PluginField("iou_threshold", np.array([0.5], np.float32), trt.PluginFieldType.FLOAT32),
              trt.PluginField("score_threshold", np.array([0.2], np.float32), trt.PluginFieldType.FLOAT32)]
    plugin = creator.create_plugin("nms", trt.PluginFieldCollection(fields))
    builder = trt.Builder(log)
    network = builder.create_network()
    inputs = [network.add_input(f"x{at}", trt.float32, array.shape) for at, array in enumerate((boxes, scores))]
    layer = network.add_plugin_v2(inputs, plugin)
    assert layer.type == trt.LayerType.PLUGIN_V2 and layer.plugin is plugin and layer.num_outputs == 4
    for at, (name, _) in enumerate(DETECTIONS):
        layer.get_output(at).name = name
        network.mark_output(layer.get_output(at))
    assert tuple(layer.get_output(1).shape) == (1, 15, 4) and layer.get_output(3).dtype == trt.int32
    found = infer(build(network, log=log), {"x0": boxes, "x1": scores})
    compare(found, [suppressed(boxes[0], scores[0], 15, 0.5, 0.2)], 15)


def test_the_registry_keeps_creators_and_resources():
    class Creator(trt.IPluginCreator):
        def __init__(self):
            trt.IPluginCreator.__init__(self)
            self.name, self.plugin_version, self.plugin_namespace = "Mine", "2", "acme"
            self.field_names = trt.PluginFieldCollection([trt.PluginField("size", np.array([], np.int32), trt.PluginFieldType.INT32)])

    registry, creator = trt.get_plugin_registry(), Creator()
    assert registry.register_creator(creator, "acme") and not registry.register_creator(creator, "acme")
    assert registry.get_creator("Mine", "2", "acme") is creator and registry.get_plugin_creator("Mine", "1", "acme") is None
    assert creator in registry.all_creators and registry.deregister_creator(creator) and not registry.deregister_creator(creator)
    assert registry.load_library("/nowhere/lib.so") is None

    class Resource(trt.IPluginResource):
        def __init__(self):
            trt.IPluginResource.__init__(self)
            self.released = False

        def clone(self):
            return self

        def release(self):
            self.released = True

    resource = Resource()
    assert registry.acquire_plugin_resource("key", resource) is resource and registry.acquire_plugin_resource("key", resource) is resource
    assert registry.release_plugin_resource("key") and not resource.released and registry.release_plugin_resource("key") and resource.released
    assert not registry.release_plugin_resource("key")


def test_fields_read_back_by_type():
    assert trt.PluginField("a", np.array([1, 2], np.int32), trt.PluginFieldType.INT32).data.tolist() == [1, 2]
    text = trt.PluginField("t", b"abc", trt.PluginFieldType.CHAR)
    assert text.data == b"abc" and text.size == 3
    assert trt.PluginField("empty").size == 0
    assert len(trt.PluginFieldCollection([text])) == 1


def power_plugin(seen):
    """(creator class) of y = x ** exponent and the number of elements of x, by numpy on the addresses that enqueue() gets."""
    import ctypes

    class Power(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
        def __init__(self, exponent):
            trt.IPluginV3.__init__(self)
            trt.IPluginV3OneCore.__init__(self)
            trt.IPluginV3OneBuild.__init__(self)
            trt.IPluginV3OneRuntime.__init__(self)
            self.plugin_name, self.plugin_version, self.plugin_namespace, self.num_outputs = "Power", "1", "", 2
            self.exponent = exponent

        def get_capability_interface(self, type):
            return self

        def get_output_data_types(self, input_types):
            return [input_types[0], trt.int32]

        def get_output_shapes(self, inputs, shape_inputs, expr_builder):
            count = trt.DimsExprs(1)
            count[0] = expr_builder.operation(trt.DimensionOperation.PROD, inputs[0][0], expr_builder.constant(1))
            return [inputs[0], count]

        def supports_format_combination(self, pos, in_out, num_inputs):
            return in_out[pos].desc.format == trt.TensorFormat.LINEAR and (pos == 2 or in_out[pos].desc.type == trt.float32)

        def configure_plugin(self, inputs, outputs):
            seen.append(("configure", tuple(inputs[0].desc.dims)))

        def get_fields_to_serialize(self):
            return trt.PluginFieldCollection([trt.PluginField("exponent", np.array([self.exponent], np.float32), trt.PluginFieldType.FLOAT32)])

        def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
            count = int(np.prod(tuple(input_desc[0].dims)))
            x = np.frombuffer((ctypes.c_float * count).from_address(inputs[0]), np.float32)
            y = np.frombuffer((ctypes.c_float * count).from_address(outputs[0]), np.float32)
            y[...] = x ** self.exponent
            rows = output_desc[1].dims[0]
            np.frombuffer((ctypes.c_int32 * rows).from_address(outputs[1]), np.int32)[...] = count
            return 0

        def clone(self):
            return Power(self.exponent)

    class Creator(trt.IPluginCreatorV3One):
        def __init__(self):
            trt.IPluginCreatorV3One.__init__(self)
            self.name, self.plugin_version, self.plugin_namespace = "Power", "1", ""
            self.field_names = trt.PluginFieldCollection([trt.PluginField("exponent", np.array([]), trt.PluginFieldType.FLOAT32)])

        def create_plugin(self, name, fc, phase):
            seen.append(("create", phase))
            return Power(float(fc[0].data[0]))

    return Creator, Power


def test_plugins_of_the_third_interface_run_and_are_made_again_from_the_plan():
    seen, log, x = [], Log(), RANDOM.uniform(1, 2, (3, 4)).astype(np.float32)
    make, plugin = power_plugin(seen)
    registry, creator = trt.get_plugin_registry(), make()
    assert registry.register_creator(creator, "")
    try:
        builder = trt.Builder(log)
        network = builder.create_network()
        layer = network.add_plugin_v3([network.add_input("x0", trt.float32, (3, 4))], [], plugin(3.0))
        assert layer.type == trt.LayerType.PLUGIN_V3 and tuple(layer.get_output(0).shape) == (3, 4) and layer.get_output(1).dtype == trt.int32
        for at, name in enumerate(("y", "count")):
            layer.get_output(at).name = name
            network.mark_output(layer.get_output(at))
        data = build(network, log=log)
        found = infer(data, {"x0": x})
        np.testing.assert_allclose(found["y"], x ** 3, rtol=1e-5)
        assert found["count"].tolist() == [12, 12, 12] and ("configure", (3, 4)) in seen
        from tensorrt._plugins import operators as plugin_operators

        plugin_operators.forget()
        np.testing.assert_allclose(infer(data, {"x0": x})["y"], x ** 3, rtol=1e-5)
        assert ("create", trt.TensorRTPhase.RUNTIME) in seen
        found = parsed(model("Power", [x.shape], [("y", 1), ("count", 6)], domain="acme", exponent=2.0), x)
        np.testing.assert_allclose(found["y"], x ** 2, rtol=1e-5)
    finally:
        registry.deregister_creator(creator)
    plugin_operators.forget()
    assert trt.Runtime(log).deserialize_cuda_engine(data) is None and "there is no creator" in log.errors()[-1]


def test_plugins_of_the_second_interface_run():
    import ctypes

    class Negate(trt.IPluginV2DynamicExt):
        def __init__(self):
            trt.IPluginV2DynamicExt.__init__(self)
            self.plugin_type, self.plugin_version, self.plugin_namespace, self.num_outputs = "Negate", "1", "", 1

        def get_output_datatype(self, index, input_types):
            return input_types[0]

        def get_output_dimensions(self, output_index, inputs, expr_builder):
            return trt.DimsExprs([inputs[0][1], inputs[0][0]])

        def supports_format_combination(self, pos, in_out, num_inputs):
            return in_out[pos].format == trt.TensorFormat.LINEAR

        def serialize(self):
            return b"nothing"

        def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
            rows, columns = tuple(input_desc[0].dims)
            x = np.frombuffer((ctypes.c_float * (rows * columns)).from_address(inputs[0]), np.float32).reshape(rows, columns)
            y = np.frombuffer((ctypes.c_float * (rows * columns)).from_address(outputs[0]), np.float32).reshape(columns, rows)
            y[...] = -x.T
            return 0

        def clone(self):
            return self

    log, x = Log(), RANDOM.standard_normal((2, 5)).astype(np.float32)
    builder = trt.Builder(log)
    network = builder.create_network()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (-1, 5))], Negate())
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("x", (1, 5), (2, 5), (4, 5))
    config.add_optimization_profile(profile)
    data = build(network, config, log)
    for rows in (x, np.ones((4, 5), np.float32)):
        np.testing.assert_array_equal(infer(data, {"x": rows})["y"], -rows.T)


def plugin_of_sizes(name, sizes):
    """A plugin that fills its output with its workspace's first number, of the sizes that a function makes of the input's."""
    import ctypes

    class Sized(trt.IPluginV2DynamicExt):
        def __init__(self):
            trt.IPluginV2DynamicExt.__init__(self)
            self.plugin_type, self.plugin_version, self.plugin_namespace, self.num_outputs = name, "1", "", 1

        def get_output_datatype(self, index, input_types):
            return input_types[0]

        def get_output_dimensions(self, output_index, inputs, expr_builder):
            return trt.DimsExprs(sizes(inputs[0], expr_builder))

        def supports_format_combination(self, pos, in_out, num_inputs):
            return True

        def get_workspace_size(self, inputs, outputs):
            return 4 * inputs[0].dims[0]

        def serialize(self):
            return b""

        def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
            work = np.frombuffer((ctypes.c_float * input_desc[0].dims[0]).from_address(workspace), np.float32)
            work[...] = input_desc[0].dims[0]
            count = int(np.prod(tuple(output_desc[0].dims)))
            np.frombuffer((ctypes.c_float * count).from_address(outputs[0]), np.float32)[...] = work[-1]

        def clone(self):
            return self

    return Sized()


OPERATIONS = {"SUM": lambda a, b: a + b, "PROD": lambda a, b: a * b, "MAX": max, "MIN": min, "SUB": lambda a, b: a - b,
              "EQUAL": lambda a, b: int(a == b), "LESS": lambda a, b: int(a < b), "FLOOR_DIV": lambda a, b: a // b,
              "CEIL_DIV": lambda a, b: -(-a // b)}


def dynamic_plan(builder, network, layers, *shapes):
    """A plan whose input x has these least, best and most sizes; outputs y, z of the layers."""
    for name, layer in zip("yz", layers):
        layer.get_output(0).name = name
        network.mark_output(layer.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.builder_optimization_level = 0
    profile.set_shape("x", *shapes)
    config.add_optimization_profile(profile)
    return build(network, config)


def test_sizes_that_plugins_say_hold_for_every_shape_without_asking_again():
    asked = []

    def sizes(x, builder):
        asked.append([size.is_constant() for size in (x[0], x[1])])
        made = [builder.operation(getattr(trt.DimensionOperation, name), x[0], x[1]) for name in OPERATIONS]
        return [builder.operation(trt.DimensionOperation.SUM, size, builder.constant(4)) for size in made]

    builder = trt.Builder(Log())
    network = builder.create_network()
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (-1, -1))], plugin_of_sizes("Sizes", lambda x, b: sizes(x, b)[:7]))
    more = network.add_plugin_v2([network.get_input(0)], plugin_of_sizes("MoreSizes", lambda x, b: sizes(x, b)[7:]))
    data = dynamic_plan(builder, network, (layer, more), (1, 1), (2, 2), (4, 4))
    count = len(asked)
    for rows, columns in ((1, 1), (2, 3), (4, 2), (3, 3), (1, 4)):
        found = infer(data, {"x": np.zeros((rows, columns), np.float32)})
        expected = [operation(rows, columns) + 4 for operation in OPERATIONS.values()]
        assert found["y"].shape == tuple(expected[:7]) and found["z"].shape == tuple(expected[7:])
        assert (found["y"] == rows).all() and (found["z"] == rows).all()
    assert len(asked) == count and [False, False] in asked


def test_plugins_that_want_sizes_as_numbers_are_asked_when_they_are_known():
    builder = trt.Builder(Log())
    network = builder.create_network()
    plugin = plugin_of_sizes("Numbers", lambda x, builder: [x[0].get_constant_value() ** 2])
    layer = network.add_plugin_v2([network.add_input("x", trt.float32, (-1, 2))], plugin)
    data = dynamic_plan(builder, network, [layer], (1, 2), (2, 2), (4, 2))
    for rows in (1, 4, 3):
        assert infer(data, {"x": np.zeros((rows, 2), np.float32)})["y"].tolist() == [rows] * rows ** 2


def test_plugins_that_raise_are_refused_with_their_words():
    class Broken(trt.IPluginV2DynamicExt):
        num_outputs, plugin_type, plugin_version = 1, "Broken", "1"

        def get_output_datatype(self, index, input_types):
            raise RuntimeError("no idea")

    log = Log()
    network = trt.Builder(log).create_network()
    assert network.add_plugin_v2([network.add_input("x", trt.float32, (2,))], Broken()) is None
    assert "the plugin Broken failed: RuntimeError: no idea" in log.errors()[-1]


def places_plugin(by_columns):
    """Where a matrix is not 0, in (count, 2) or (2, count), and how many that are."""
    import ctypes

    class Places(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
        def __init__(self):
            trt.IPluginV3.__init__(self)
            trt.IPluginV3OneCore.__init__(self)
            trt.IPluginV3OneBuild.__init__(self)
            trt.IPluginV3OneRuntime.__init__(self)
            self.plugin_name, self.plugin_version, self.plugin_namespace, self.num_outputs = f"Places{int(by_columns)}", "1", "", 2

        def get_capability_interface(self, type):
            return self

        def get_output_data_types(self, types):
            return [trt.int32, trt.int64]

        def get_output_shapes(self, inputs, shape_inputs, expr_builder):
            most = expr_builder.operation(trt.DimensionOperation.PROD, inputs[0][0], inputs[0][1])
            half = expr_builder.operation(trt.DimensionOperation.FLOOR_DIV, most, expr_builder.constant(2))
            count = expr_builder.declare_size_tensor(1, half, most)
            assert count.is_size_tensor() and not count.is_constant()
            shape = trt.DimsExprs(2)
            shape[1 if by_columns else 0], shape[0 if by_columns else 1] = count, expr_builder.constant(2)
            return [shape, trt.DimsExprs(0)]

        def supports_format_combination(self, pos, in_out, num_inputs):
            return in_out[pos].desc.format == trt.TensorFormat.LINEAR

        def get_fields_to_serialize(self):
            return trt.PluginFieldCollection([])

        def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
            rows, columns = tuple(input_desc[0].dims)
            x = np.frombuffer((ctypes.c_float * (rows * columns)).from_address(inputs[0]), np.float32).reshape(rows, columns)
            found = np.stack(np.nonzero(x)).astype(np.int32)
            found = np.ascontiguousarray(found if by_columns else found.T)
            ctypes.memmove(outputs[0], found.ctypes.data, found.nbytes)
            ctypes.memmove(outputs[1], np.array(found.size // 2, np.int64).ctypes.data, 8)
            return 0

        def clone(self):
            return Places()

    return Places()


@pytest.mark.parametrize("by_columns", (False, True))
def test_plugins_whose_data_decide_sizes(by_columns):
    log = Log()
    network = trt.Builder(log).create_network()
    layer = network.add_plugin_v3([network.add_input("x", trt.float32, (3, 4))], [], places_plugin(by_columns))
    assert len(layer.get_output(0).shape) == 2 and tuple(layer.get_output(1).shape) == ()
    for at, name in enumerate(("where", "count")):
        layer.get_output(at).name = name
        network.mark_output(layer.get_output(at))
    doubled = network.add_elementwise(layer.get_output(0), layer.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    doubled.name = "doubled"
    network.mark_output(doubled)
    data = build(network, log=log)
    for share in (0.5, 0.0, 1.0, 0.2):
        x = (RANDOM.random((3, 4)) < share).astype(np.float32)
        expected = np.stack(np.nonzero(x))
        found = infer(data, {"x": x})
        np.testing.assert_array_equal(found["where"], expected if by_columns else expected.T)
        np.testing.assert_array_equal(found["doubled"], 2 * (expected if by_columns else expected.T))
        assert found["count"] == expected.shape[1]


def quick():
    """The module, with the plugins of these tests registered once."""
    import tensorrt.plugin as trtp

    if hasattr(quick, "done"):
        return trtp
    quick.done = True

    @trtp.register("tests::shifted")
    def describe(inp0: trtp.TensorDesc, by: float, pads: np.ndarray, name: str) -> trtp.TensorDesc:
        out = inp0.like()
        for at in range(pads.size):
            out.shape_expr[out.ndim - 1 - at] += int(pads[at])
        return out

    @trtp.autotune("tests::shifted")
    def tune(inp0, outputs):
        combination = trtp.AutoTuneCombination()
        combination.pos([0, 1], "FP32|FP16")
        combination.tactics([7, 8])
        return [combination]

    @trtp.impl("tests::shifted")
    def compute(inp0, by: float, pads, name, outputs, stream, tactic):
        assert tactic == 7 and name == "text" and outputs[0].ndim == inp0.ndim
        y = np.asarray(outputs[0])
        y[...] = by
        y[tuple(slice(0, size) for size in inp0.shape)] += np.asarray(inp0)

    @trtp.register("tests::add_")
    def describe_add(inp0: trtp.TensorDesc, delta: int) -> trtp.TensorDesc:
        return inp0.aliased()

    @trtp.impl("tests::add_")
    def compute_add(inp0, delta, outputs, stream):
        np.asarray(inp0)[...] += delta

    @trtp.register("tests::places")
    def describe_places(inp0: trtp.TensorDesc):
        most = inp0.shape_expr[0] * inp0.shape_expr[1]
        count = trtp.size_tensor(most // 2, most)
        count.dtype = trt.int64
        return trtp.from_shape_expr((count.expr(), 2), dtype=trt.int32), count

    @trtp.impl("tests::places")
    def compute_places(inp0, outputs, stream):
        found = np.argwhere(np.asarray(inp0)).astype(np.int32)
        np.asarray(outputs[0].aliased(found.shape))[...] = found
        np.asarray(outputs[1])[...] = len(found)

    return trtp


def test_quickly_deployable_plugins_compute_and_are_made_again():
    trtp, log, x = quick(), Log(), RANDOM.standard_normal((2, 3, 4)).astype(np.float32)
    network = trt.Builder(log).create_network()
    layer = network.add_plugin(trtp.op.tests.shifted(network.add_input("x", trt.float32, (2, 3, 4)), by=0.5, pads=np.array([2, 1]), name="text"))
    y = layer.get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert layer.type == trt.LayerType.PLUGIN_V3 and tuple(y.shape) == (2, 4, 6) and y.dtype == trt.float32
    data = build(network, log=log)
    expected = np.full((2, 4, 6), 0.5, np.float32)
    expected[:, :3, :4] += x
    np.testing.assert_allclose(infer(data, {"x": x})["y"], expected)
    from tensorrt._plugins import operators as plugin_operators

    plugin_operators.forget()
    np.testing.assert_allclose(infer(data, {"x": x})["y"], expected)
    assert network.add_plugin(trtp.op.tests.shifted(network.add_input("n", trt.int32, (2,)), 0.5, np.array([1]), "text")) is None
    assert "does not take" in log.errors()[-1]
    with pytest.raises(ValueError, match="registered already"):
        trtp.register("tests::add_")(lambda x: x)
    with pytest.raises(AttributeError, match="has not been registered"):
        trtp.op.tests.nothing
    with pytest.raises(TypeError):
        network.add_plugin(3)


def test_quickly_deployable_plugins_in_an_inputs_memory_leave_it_to_others():
    trtp, x = quick(), RANDOM.standard_normal((3, 4)).astype(np.float32)
    network = trt.Builder(Log()).create_network()
    given = network.add_input("x", trt.float32, (3, 4))
    first = network.add_plugin(trtp.op.tests.add_(given, delta=2)).get_output(0)
    second = network.add_plugin(trtp.op.tests.add_(first, delta=4)).get_output(0)
    total = network.add_elementwise(network.add_elementwise(given, first, trt.ElementWiseOperation.SUM).get_output(0), second,
                                    trt.ElementWiseOperation.SUM).get_output(0)
    total.name = "y"
    network.mark_output(total)
    np.testing.assert_allclose(infer(build(network), {"x": x})["y"], 3 * x + 8, rtol=1e-5)


def test_quickly_deployable_plugins_whose_data_decide_sizes():
    trtp = quick()
    network = trt.Builder(Log()).create_network()
    layer = network.add_plugin(trtp.op.tests.places(network.add_input("x", trt.float32, (3, 4))))
    for at, name in enumerate(("where", "count")):
        layer.get_output(at).name = name
        network.mark_output(layer.get_output(at))
    data = build(network)
    for share in (0.5, 0.0, 1.0):
        x = (RANDOM.random((3, 4)) < share).astype(np.float32)
        found = infer(data, {"x": x})
        np.testing.assert_array_equal(found["where"], np.argwhere(x))
        assert found["count"] == len(np.argwhere(x))
