#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unpack models of tests/zoo, drawing the weights that were stripped from them.

A stripped tensor is drawn from a generator seeded with its own name, scaled to the mean and deviation and cut to the
range that the model's metadata recorded. The values depend on nothing else, so every machine gets the same bytes.

    materialise.py OUTPUT_DIR NAME...     NAME as in tests/zoo/NAME.onnx.xz; --all for every one, --list to see them
"""

import json
import lzma
import os
import pathlib
import sys
import tempfile
import zlib

ZOO = pathlib.Path(__file__).resolve().parent.parent / "tests" / "zoo"
METADATA_KEY = "stripped_weights"
STRIPPED = "weights stripped"


def names():
    return sorted(path.name.removesuffix(".onnx.xz") for path in ZOO.glob("*.onnx.xz"))


def draw(name, shape, dtype, mean, deviation, low, high):
    """The weight tensor called `name`."""
    import numpy as np

    if mean == 0 and deviation == 0 and len(shape) > 1:  # a head initialised with zeros would hide every error before it
        deviation, low, high = 0.02, -0.1, 0.1
    random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    normal = random.standard_normal(tuple(shape), dtype=np.float32)
    return np.clip(normal * np.float32(deviation) + np.float32(mean), low, high).astype(dtype)


def fill(graph, statistics):
    import onnx

    for tensor in graph.initializer:
        if tensor.doc_string != STRIPPED:
            continue
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        tensor.raw_data = draw(tensor.name, tensor.dims, dtype, *statistics[tensor.name]).tobytes()
        tensor.ClearField("doc_string")
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.HasField("g"):
            fill(attribute.g, statistics)


def restore(packed):
    """The bytes of the whole model."""
    import onnx

    model = onnx.load_from_string(packed)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    statistics = metadata.pop(METADATA_KEY, None)
    if statistics is None:
        return packed
    fill(model.graph, json.loads(statistics))
    del model.metadata_props[:]
    onnx.helper.set_model_props(model, metadata)
    return model.SerializeToString()


def materialise(name, directory):
    """The path of the model, which is written only if it is not there yet."""
    source, target = ZOO / f"{name}.onnx.xz", pathlib.Path(directory) / f"{name}.onnx"
    if not source.exists():
        raise SystemExit(f"materialise: there is no model {name!r}; --list names them")
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:  # several tests may want it at once
        file.write(restore(lzma.decompress(source.read_bytes())))
    os.replace(file.name, target)
    return target


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(names()))
        return
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    directory, *wanted = arguments
    for name in names() if wanted == ["--all"] else wanted:
        print(materialise(name, directory))


if __name__ == "__main__":
    main(sys.argv[1:])
