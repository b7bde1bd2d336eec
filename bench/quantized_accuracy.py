#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are quantised models right? Those that ONNX Runtime's quantisers make of models of the zoo, two ways:

Layer by layer, each quantised tensor made of ONNX Runtime's own quantised tensors before it: the share of the elements that differ,
in the worst tensor, and by how many steps.

As a whole: the distance from what the model gives in floats, over all inputs, as a share of its norm, beside the distance of ONNX
Runtime's result, as it rewrites the model (as a user has it) and as the model is written.
"""

import argparse
import json
import os
import pathlib
import sys
import traceback

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python"))]

import compare  # noqa: E402
import hone  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import quantized  # noqa: E402
import zoo  # noqa: E402
from quantized_layers import difference, layer_by_layer, session_of  # noqa: E402

MODELS = [*compare.QUANTIZED, "byte_gpt", "digits_cnn"]
MOST_SHARE, MOST_STEPS, MOST_RATIO = 1e-3, 1, 1.05


def engine_of(path, name, level):
    shapes = zoo.shape_text(name)
    return hone.build(str(path), [f"--builderOptimizationLevel={level}", "--avgTiming=1", *([f"--shapes={shapes}"] if shapes else [])]).engine()


def inputs_of(name, count):
    """Real ones of the models that are trained, random ones of the others."""
    if name == "digits_cnn":
        with np.load(materialise.ZOO / "digits.npz") as data:
            return [{zoo.inputs(name)[0].name: image[None]} for image in data["test_images"][:count]]
    if name == "byte_gpt":
        with np.load(materialise.ZOO / "bytes.npz") as data:
            return [{zoo.inputs(name)[0].name: window[None, :zoo.SEQUENCE].astype(np.int64)} for window in data["windows"][:count]]
    return [{value.name: value.values(draw=draw) for value in zoo.inputs(name)} for draw in range(count)]


def measure_layers(path, name, feeds, level):
    """The worst tensors by share and by steps, and how many break the rule."""
    layers = layer_by_layer(path, feeds)
    try:
        context = engine_of(layers.path, name, level).context()
    finally:
        layers.path.unlink()
    found = context.run(layers.feeds(feeds))
    rows = []
    for number, (tensor, expected) in enumerate(zip(layers.names, layers.values)):
        count, steps = difference(found[f"made{number}"], expected)
        is_float = expected.dtype == np.float32
        rows.append({"tensor": tensor, "elements": expected.size, "different": count, "share": count / expected.size, "steps": steps,
                     "wrong": count > 0 if is_float else steps > MOST_STEPS or count > max(1, expected.size * MOST_SHARE)})
    worst = max(rows, key=lambda row: (row["different"] > 1) * row["share"])
    return {"tensors": len(rows), "wrong": [row for row in rows if row["wrong"]], "share": worst["share"] if worst["different"] > 1 else 0.0,
            "worst_tensor": worst["tensor"], "steps": max(row["steps"] for row in rows)}


def distance(found, expected):
    """Of lists of outputs, as a share of the norm of what is expected."""
    total = lambda arrays: float(sum(np.sum(np.square(array, dtype=np.float64)) for array in arrays)) ** 0.5
    return total([a.astype(np.float64) - b for a, b in zip(found, expected)]) / max(total(expected), 1e-30)


def measure_network(path, floats, name, draws, level):
    exact, rewritten, written = session_of(floats, True), session_of(path, True), session_of(path, False)
    context = engine_of(path, name, level).context()
    outputs = [output.name for output in exact.get_outputs()]
    results = {key: [] for key in ("exact", "hone", "rewritten", "written")}
    for feeds in draws:
        results["exact"] += exact.run(outputs, feeds)
        results["rewritten"] += rewritten.run(outputs, feeds)
        results["written"] += written.run(outputs, feeds)
        found = context.run(feeds)
        results["hone"] += [np.array(found[output]) for output in outputs]
    return {key: distance(results[key], results["exact"]) for key in ("hone", "rewritten", "written")}


def measure(name, kind, options):
    path = quantized.quantized(name, kind, ROOT / "build/zoo")
    draws = inputs_of(name, options.inputs)
    row = {"model": name, "kind": kind, **measure_layers(path, name, draws[0], options.level)}
    row["errors"] = measure_network(path, materialise.materialise(name, ROOT / "build/zoo"), name, draws, options.level)
    row["ratio"] = row["errors"]["hone"] / max(row["errors"]["rewritten"], 1e-12)
    return row


def text_of(row):
    if "failure" in row:
        return f"{row['model']:22} {row['kind']:20} failed: {row['failure'].splitlines()[-1]}"
    errors = row["errors"]
    return (f"{row['model']:22} {row['kind']:20} {row['tensors']:5} {row['share']:9.1e} {row['steps']:5.4g} {len(row['wrong']):5}   "
            f"{errors['hone']:9.3e} {errors['rewritten']:9.3e} {errors['written']:9.3e} {row['ratio']:6.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=quantized.KINDS)
    parser.add_argument("--inputs", type=int, default=4, help="sets of inputs for the whole network")
    parser.add_argument("--level", type=int, default=1, help="builder's optimisation level")
    parser.add_argument("--json", type=pathlib.Path, help="where the rows are added, those of the same model and kind replaced")
    options = parser.parse_args()
    known = json.loads(options.json.read_text())["rows"] if options.json and options.json.exists() else []
    rows = {(row["model"], row["kind"]): row for row in known}
    print(f"{'model':22} {'kind':20} {'tensors':>7} {'share':>7} {'steps':>5} {'wrong':>5}   {'hone':>9} {'rewritten':>9} {'written':>9} {'ratio':>6}")
    for name in options.models:
        for kind in options.kinds:
            try:
                row = measure(name, kind, options)
            except Exception:  # noqa: BLE001: the other rows are wanted
                row = {"model": name, "kind": kind, "failure": traceback.format_exc()}
            rows[name, kind] = row
            print(text_of(row), flush=True)
            if options.json:
                options.json.write_text(json.dumps({"machine": machine.describe(ROOT), "rows": list(rows.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
