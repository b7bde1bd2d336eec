# SPDX-License-Identifier: Apache-2.0
"""TensorRT's own plugins by name: creators, and what each is in ONNX's operators.

`e` is who writes nodes: e.input(i), e.out(i), e.node(op, inputs, output, **attributes), e.constant(values), e.ints(values). Detections are
lowered to NonMaxSuppression, whose choice becomes a mask over all (class, box) pairs; the best of them by TopK are the outputs, so that
all sizes are known before the run.
"""

import numpy as np

from .registry import IPluginCreator, PluginField, PluginFieldCollection, _FieldType

_NONE = np.float32(-3e38)  # less than any score


class _Plugin:
    """What a creator makes: a name and parameters."""

    plugin_namespace, tensorrt_version = "", 8601

    def __init__(self, creator, name, parameters):
        self.plugin_type, self.plugin_version, self.name = creator.name, creator.plugin_version, name
        self._creator, self._parameters = creator, parameters
        self.num_outputs = creator.outputs

    def clone(self):
        """Another one with the same parameters."""
        return _Plugin(self._creator, self.name, dict(self._parameters))

    def initialize(self):
        """Nothing is to be done."""
        return 0

    terminate = destroy = lambda self: None
    supports_format = lambda self, dtype, format: True  # noqa: E731


class _BuiltIn(IPluginCreator):
    """A creator of one of them. `fields`: {name: default}; `lower(e, parameters)` writes the nodes."""

    def __init__(self, name, version, outputs, fields, lower):
        super().__init__()
        self.name, self.plugin_version, self.outputs = name, version, outputs
        self.defaults, self.lower = fields, lower
        kinds = {float: _FieldType.FLOAT32, int: _FieldType.INT32, list: _FieldType.FLOAT32}
        self.field_names = PluginFieldCollection([PluginField(field, np.array([]), kinds[type(value)]) for field, value in fields.items()])

    def create_plugin(self, name, field_collection, phase=None):
        """The plugin with these parameters, or None where there is one that it does not have."""
        given = {}
        for field in field_collection or ():
            if field.name not in self.defaults and field.name != "plugin_version":
                continue
            values = np.asarray(field.data).reshape(-1)
            given[field.name] = values.tolist() if len(values) > 1 else values.tolist()[0] if len(values) else None
        return self.of(name, given)

    def of(self, name, given):
        """The same of {field: value}."""
        return _Plugin(self, name, {**self.defaults, **{field: value for field, value in given.items() if value is not None}})

    def deserialize_plugin(self, name, serialized_plugin):
        """Plans of Hone's hold no plugins."""
        return None


# ---- detections ----

def _slice(e, x, axis, start, end):
    return e.node("Slice", [x, e.ints([start]), e.ints([end]), e.ints([axis])])


def _sizes(e, x, *axes):
    """Vectors of one number each: sizes of x."""
    shape = e.node("Shape", [x])
    return [_slice(e, shape, 0, axis, axis + 1) for axis in axes]


def _join(e, *parts):
    return e.node("Concat", list(parts), axis=0)


def _corners(e, boxes, center_size):
    if not center_size:
        return boxes
    middle, half = _slice(e, boxes, -1, 0, 2), e.node("Mul", [_slice(e, boxes, -1, 2, 4), e.constant(np.float32(0.5))])
    return e.node("Concat", [e.node("Sub", [middle, half]), e.node("Add", [middle, half])], axis=-1)


def _decoded(e, boxes, anchors, center_size):
    """Corrections and anchors as boxes of the same coding."""
    if not center_size:
        return e.node("Add", [boxes, anchors])
    where, size = (_slice(e, anchors, -1, *ends) for ends in ((0, 2), (2, 4)))
    moved = e.node("Add", [e.node("Mul", [_slice(e, boxes, -1, 0, 2), size]), where])
    return e.node("Concat", [moved, e.node("Mul", [e.node("Exp", [_slice(e, boxes, -1, 2, 4)]), size])], axis=-1)


def _without_background(e, scores, background):
    """scores[n, classes, boxes] without one class."""
    if background < 0:
        return scores
    count = e.node("Squeeze", [_sizes(e, scores, 1)[0], e.ints([0])])
    classes = e.node("Range", [e.constant(np.int64(0)), count, e.constant(np.int64(1))])
    hidden = e.node("Unsqueeze", [e.node("Equal", [classes, e.constant(np.int64(background))]), e.ints([0, 2])])
    return e.node("Where", [hidden, e.constant(_NONE), scores])


def _chosen(e, boxes, scores, per_class, iou, threshold, agnostic):
    """(boxes, whose they are: one set for all classes or one for each; scores that NonMaxSuppression left, [n, classes * boxes])."""
    n, classes, count = _sizes(e, scores, 0, 1, 2)
    pairs = e.node("Mul", [classes, count])
    limits = [e.ints([per_class]), e.constant(np.array([iou], np.float32)),
              e.constant(np.nextafter(np.array([threshold], np.float32), np.float32(-1)))]  # what reaches it passes
    if per_class_boxes(boxes) or agnostic:
        if per_class_boxes(boxes):
            flat = e.node("Transpose", [boxes.name], perm=[0, 2, 1, 3])
        else:
            flat = e.node("Expand", [e.node("Unsqueeze", [boxes.name, e.ints([1])]), _join(e, n, classes, count, e.ints([4]))])
        sets = n if agnostic else e.node("Mul", [n, classes])
        size = pairs if agnostic else count
        to_boxes, to_scores = _join(e, sets, size, e.ints([4])), _join(e, sets, e.ints([1]), size)
        found = e.node("NonMaxSuppression", [e.node("Reshape", [flat, to_boxes]), e.node("Reshape", [scores, to_scores]), *limits])
        places = e.node("Add", [e.node("Mul", [_slice(e, found, 1, 0, 1), size]), _slice(e, found, 1, 2, 3)])
    else:
        found = e.node("NonMaxSuppression", [boxes.name, scores, *limits])
        rows = e.node("Add", [e.node("Mul", [_slice(e, found, 1, 0, 1), classes]), _slice(e, found, 1, 1, 2)])
        places = e.node("Add", [e.node("Mul", [rows, count]), _slice(e, found, 1, 2, 3)])
    everything = e.node("Reshape", [scores, e.ints([-1])])
    none = e.node("Expand", [e.constant(_NONE), e.node("Shape", [everything])])
    kept = e.node("ScatterND", [none, places, e.node("GatherND", [everything, places])])
    return e.node("Reshape", [kept, _join(e, n, pairs)]), count, pairs


class _Boxes:
    """Boxes in corners: [n, boxes, 4], or [n, boxes, classes, 4]."""

    def __init__(self, name, rank):
        self.name, self.rank = name, rank


def per_class_boxes(boxes):
    """Whether each class has its own."""
    return boxes.rank == 4


def _padded(e, x, k, most, rank, value):
    """Along axis 1 up to `most`."""
    missing = e.node("Sub", [e.ints([most]), k])
    zeros = [e.ints([0])] * rank
    return e.node("Pad", [x, _join(e, *zeros, e.ints([0]), missing, *zeros[2:]), value])


def _detections(e, boxes, scores, keep, how, empty_class, classes_as_floats, clip=False):
    """The outputs: how many, boxes, scores, classes of the best `keep`."""
    left, count, pairs = _chosen(e, boxes, scores, **how)
    k = e.node("Min", [e.ints([keep]), pairs])
    best, at = e.fresh(), e.fresh()
    e.node("TopK", [left, k], [best, at], axis=1)
    valid = e.node("Greater", [best, e.constant(np.float32(-1e38))])
    e.node("ReduceSum", [e.node("Cast", [valid], to=6), e.ints([1])], e.out(0), keepdims=1)
    if per_class_boxes(boxes):
        flat = e.node("Reshape", [e.node("Transpose", [boxes.name], perm=[0, 2, 1, 3]), _join(e, *_sizes(e, boxes.name, 0), pairs, e.ints([4]))])
        which = at
    else:
        flat, which = boxes.name, e.node("Mod", [at, count])
    which = e.node("Expand", [e.node("Unsqueeze", [which, e.ints([2])]), _join(e, e.ints([1]), e.ints([1]), e.ints([4]))])
    taken = e.node("GatherElements", [flat, which], axis=1)
    if clip:
        taken = e.node("Clip", [taken, e.constant(np.float32(0)), e.constant(np.float32(1))])
    zero = e.constant(np.float32(0))
    taken = e.node("Where", [e.node("Unsqueeze", [valid, e.ints([2])]), taken, zero])
    e.node("Identity", [_padded(e, taken, k, keep, 3, zero)], e.out(1))
    e.node("Identity", [_padded(e, e.node("Where", [valid, best, zero]), k, keep, 2, zero)], e.out(2))
    classes = e.node("Cast", [e.node("Div", [at, count])], to=6)
    blank = e.constant(np.int32(empty_class))
    classes = _padded(e, e.node("Where", [valid, classes, blank]), k, keep, 2, blank)
    e.node("Cast" if classes_as_floats else "Identity", [classes], e.out(3), **({"to": 1} if classes_as_floats else {}))


def _efficient_nms(e, p):
    boxes, scores = e.input(0), e.input(1)
    if e.has(2):
        boxes = _decoded(e, boxes, e.input(2), p["box_coding"])
    if p["score_activation"]:
        scores = e.node("Sigmoid", [scores])
    scores = _without_background(e, e.node("Transpose", [scores], perm=[0, 2, 1]), p["background_class"])
    how = {"per_class": p["max_output_boxes"], "iou": p["iou_threshold"], "threshold": p["score_threshold"], "agnostic": p["class_agnostic"]}
    _detections(e, _Boxes(_corners(e, boxes, p["box_coding"]), e.rank(0)), scores, p["max_output_boxes"], how, 0, False)


def _batched_nms(e, p):
    if not p["isNormalized"]:
        e.fail("BatchedNMS of boxes in whole pixels (isNormalized 0) is not there")
    boxes = e.node("Squeeze", [e.input(0), e.ints([2])]) if p["shareLocation"] else e.input(0)
    scores = _without_background(e, e.node("Transpose", [e.input(1)], perm=[0, 2, 1]), p["backgroundLabelId"])
    how = {"per_class": p["topK"], "iou": p["iouThreshold"], "threshold": p["scoreThreshold"], "agnostic": 0}
    _detections(e, _Boxes(boxes, 3 if p["shareLocation"] else 4), scores, p["keepTopK"], how, -1, True, p["clipBoxes"])


# ---- others ----

def _roi_align(e, p):
    e.node("RoiAlign", [e.input(0), e.input(1), e.node("Cast", [e.input(2)], to=7)], e.out(0),
           coordinate_transformation_mode="half_pixel" if p["coordinate_transformation_mode"] else "output_half_pixel",
           mode="avg" if p["mode"] else "max", output_height=p["output_height"], output_width=p["output_width"],
           sampling_ratio=p["sampling_ratio"], spatial_scale=float(p["spatial_scale"]))


def _instance_normalization(e, p):
    scale, bias = (e.input(at) if e.has(at) else e.constant(np.atleast_1d(np.asarray(p[field], np.float32)))
                   for at, field in ((1, "scales"), (2, "bias")))
    leaks = bool(p["relu"])
    y = e.node("InstanceNormalization", [e.input(0), scale, bias], None if leaks else e.out(0), epsilon=float(p["epsilon"]))
    if leaks:
        e.node("LeakyRelu", [y], e.out(0), alpha=float(p["alpha"]))


def _scatter_nd(e, p):
    e.node("ScatterND", [e.input(0), e.node("Cast", [e.input(1)], to=7), e.input(2)], e.out(0))


_EFFICIENT = {"score_threshold": 0.25, "iou_threshold": 0.45, "max_output_boxes": 100, "background_class": -1, "score_activation": 0,
              "class_agnostic": 0, "box_coding": 0}
_BATCHED = {"shareLocation": 1, "backgroundLabelId": -1, "numClasses": 0, "topK": 1000, "keepTopK": 100, "scoreThreshold": 0.0,
            "iouThreshold": 0.5, "isNormalized": 1, "clipBoxes": 1, "scoreBits": 16, "caffeSemantics": 1}
_ALIGN = {"coordinate_transformation_mode": 1, "mode": 1, "output_height": 1, "output_width": 1, "sampling_ratio": 0, "spatial_scale": 1.0}
_INSTANCE = {"epsilon": 1e-5, "scales": [1.0], "bias": [0.0], "relu": 0, "alpha": 0.0}

CREATORS = [
    _BuiltIn("EfficientNMS_TRT", "1", 4, _EFFICIENT, _efficient_nms),
    _BuiltIn("BatchedNMS_TRT", "1", 4, _BATCHED, _batched_nms),
    _BuiltIn("BatchedNMSDynamic_TRT", "1", 4, _BATCHED, _batched_nms),
    _BuiltIn("ROIAlign_TRT", "1", 1, _ALIGN, _roi_align),
    *(_BuiltIn("InstanceNormalization_TRT", version, 1, _INSTANCE, _instance_normalization) for version in ("1", "2", "3")),
    _BuiltIn("ScatterND", "1", 1, {}, _scatter_nd),
]
