# SPDX-License-Identifier: Apache-2.0
"""Gives a network of random weights layers that pass their input on: as drawn, an image fades within a few of them, every place
looks alike, and no detection stands out from another."""

import numpy as np
import onnx
from inference import session_of
from onnx import numpy_helper


# Models whose outputs are boxes, labels and scores, as many as the data say; and the spread of the classes' and of the boxes'
# results that makes some certain and most small.
DETECTION = {"ssdlite320.ts": {"classification_head": 4, "regression_head": 0.5},
             "fasterrcnn_mobilenet.ts": {"cls_score": 3, "bbox_pred": 0.5}}


def liven(model, feeds, spreads):
    """Scales the weights of each Conv and Gemm, first to last, so that its results on `feeds` have the standard deviation that
    `spreads` holds for a part of the weights' name, else 1. In place."""
    weights = {value.name: value for value in model.graph.initializer}
    layers = {node.input[1]: node.output[0] for node in reversed(model.graph.node) if node.op_type in ("Conv", "Gemm")}
    session = session_of_results(model, weights, layers)
    fed = dict(feeds)
    for name in reversed(layers):
        (results,) = session.run([layers[name]], fed)
        wanted = next((spread for part, spread in spreads.items() if part in name), 1.0)
        fed[name] = numpy_helper.to_array(weights[name]) * np.float32(wanted / results.std())
        weights[name].CopyFrom(numpy_helper.from_array(fed[name], name))


def session_of_results(model, weights, layers):
    """Runs the model as far as its last layer, with weights that may be fed and any layer's results."""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    last = max(i for i, node in enumerate(part.graph.node) if node.output[0] in layers.values())
    del part.graph.node[last + 1:], part.graph.output[:]
    part.graph.output.extend(tensor(result) for result in layers.values())
    part.graph.input.extend(tensor(name, weights[name].dims) for name in layers)
    return session_of(part.SerializeToString())


def tensor(name, shape=None):
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
