#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many cases of onnx-tensorrt's suite no engine can pass: its Python refuses their inputs before an engine sees them.

    python bench/tensorrt_inputs.py FOLDER      FOLDER is the repository onnx/onnx-tensorrt; needs onnx, not tensorrt

A case is what onnx_backend_test.py includes and does not exclude. Its inputs are refused where their type is missing from the table by
which onnx_tensorrt/tensorrt_engine.py looks up an engine's types, or where they are no tensors.
"""

import collections
import pathlib
import re
import sys

import onnx
from onnx.backend.test.loader import load_model_tests

KINDS = ["node", "pytorch-converted", "pytorch-operator", "simple", "real"]


def taken_types(folder):
    text = (folder / "onnx_tensorrt/tensorrt_engine.py").read_text()
    table = re.findall(r"trt\.DataType\.(\w+)(?:\s*:|\] =)", text[text.index("dtype_map") : text.index("dtype_map[dtype]")])
    if not table:
        sys.exit(f"{folder}/onnx_tensorrt/tensorrt_engine.py has no table of types")
    return {"FLOAT16" if name == "HALF" else name for name in table}


def selected(folder):
    text = (folder / "onnx_backend_test.py").read_text()
    included, excluded = ([re.compile(each) for each in re.findall(rf"^backend_test\.{word}\(r'(.*)'\)", text, re.M)] for word in ("include", "exclude"))
    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            name = case.name + "_cuda"
            if any(each.search(name) for each in included) and not any(each.search(name) for each in excluded):
                yield case


def refused_types(model, taken):
    """What the inputs that a caller gives are, where it is not among `taken`."""
    constant = {each.name for each in model.graph.initializer}
    found = set()
    for given in model.graph.input:
        kind = given.type.WhichOneof("value")
        name = onnx.TensorProto.DataType.Name(given.type.tensor_type.elem_type) if kind == "tensor_type" else kind
        if given.name not in constant and name not in taken:
            found.add(name)
    return found


def model_of(case):
    """None for a real model, which is fetched when it runs; all of these take f32."""
    if case.model_dir is None:
        return case.model
    return onnx.load(pathlib.Path(case.model_dir) / "model.onnx")


def main():
    folder = pathlib.Path(sys.argv[1])
    taken, count, refused = taken_types(folder), 0, collections.Counter()
    for case in selected(folder):
        count += 1
        model = model_of(case)
        types = refused_types(model, taken) if model else set()
        refused.update([" ".join(sorted(types))] if types else [])
    lost = sum(refused.values())
    print(f"{count} cases; no engine can be given the inputs of {lost}, so at most {count - lost} can pass")
    for types, cases in refused.most_common():
        print(f"    {cases}: {types}")


if __name__ == "__main__":
    main()
