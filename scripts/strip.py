#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Take the weights out of an ONNX model and pack the rest into tests/zoo: the inverse of materialise.py.

Float tensors of at least 1024 elements lose their values; mean, deviation and range of each are kept in the model's metadata.

    strip.py MODEL.onnx...     writes tests/zoo/MODEL.onnx.xz
"""

import json
import lzma
import pathlib
import sys

import numpy as np
import onnx

from materialise import METADATA_KEY, STRIPPED, ZOO

SMALLEST = 1024
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE}


def strip(graph, statistics):
    for tensor in graph.initializer:
        if tensor.data_type not in FLOATS or np.prod(tensor.dims) < SMALLEST:
            continue
        values = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        statistics[tensor.name] = [float(value) for value in (values.mean(), values.std(), values.min(), values.max())]
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.ClearField("double_data")
        tensor.ClearField("int32_data")
        tensor.doc_string = STRIPPED
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.HasField("g"):
            strip(attribute.g, statistics)


def pack(path):
    model = onnx.load(path)
    statistics = {}
    strip(model.graph, statistics)
    for node in model.graph.node:
        node.ClearField("doc_string")  # where in the exporter's Python it came from
    onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(statistics)})
    target = ZOO / f"{path.name}.xz"
    target.write_bytes(lzma.compress(model.SerializeToString(), preset=9))
    return target


def main(arguments):
    if not arguments:
        raise SystemExit(__doc__)
    for path in map(pathlib.Path, arguments):
        print(pack(path))


if __name__ == "__main__":
    main(sys.argv[1:])
