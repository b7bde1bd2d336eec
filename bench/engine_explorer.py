#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the last open engine explorer (TREx 0.2.1) makes of the files that `hone process` writes, and `hone report` of its test inputs.

    engine_explorer.py TREX_FOLDER [MODEL.onnx...] [--flags shapes=x:1x3x224x224 ...] [--json FILE]

TREX_FOLDER is tools/experimental/trt-engine-explorer of NVIDIA's TensorRT repository before 11.1; it is not part of this one. Its own
requirements have to be installed in this Python: pandas 2.2.1, NumPy before 2, onnx, graphviz, tabulate,
plotly, ipywidgets. For each model: the plan loads, its layers, weights and times are those of the JSON, every linter runs, the graph is made, and the metadata are read. Of the two engines in
its tests, `hone report` aligns the layers as TREx does.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent
HONE = ROOT / "build/release/bin/hone"


def examine(trex, stem):
    """Figures of one engine; what must hold is asserted."""
    from trex.graphing import layer_type_formatter, to_dot
    from trex.lint import ConvLinter, QDQLinter, ReformatLinter, SliceLinter
    graph, profile = (json.loads(pathlib.Path(stem + ending).read_text()) for ending in (".graph.json", ".profile.json"))
    plan = trex.EnginePlan(stem + ".graph.json", stem + ".profile.json", stem + ".profile.metadata.json", stem + ".build.metadata.json")
    layers = [each for each in graph["Layers"] if each["LayerType"] not in ("NoOp", "Constant")]
    views = {each["Name"] for each in graph["Layers"] if each["LayerType"] == "NoOp"}
    times = {row["name"]: row["averageMs"] for row in profile[1:] if row["name"] not in views}
    assert len(plan.df) == len(plan.layers) == len(layers), (len(plan.df), len(layers))
    assert list(plan.df["Name"]) == [each["Name"] for each in layers]
    assert abs(plan.total_runtime - sum(times.values())) <= 1e-3 * plan.total_runtime
    assert plan.performance_summary and plan.builder_cfg and plan.device_properties
    lints = {linter.__name__: len(linter(plan).lint()) for linter in (ConvLinter, ReformatLinter, SliceLinter, QDQLinter)}
    dot = str(to_dot(plan, layer_type_formatter))
    missing = [name for name in plan.df["Name"] if name.split("+")[0].strip() not in dot]
    assert not missing, missing
    return {"layers": len(plan.df), "ms": plan.total_runtime, "weight bytes": int(plan.total_weights_size), "hazards": lints,
            "edges": dot.count("->"), "device": plan.device_properties.get("Selected Device", "")}


def align(trex, inputs):
    """The rows of the comparison of the two engines that TREx's tests compare: Hone's are TREx's."""
    sys.modules.setdefault("dtale", mock.MagicMock())  # the server of its notebooks
    from trex.compare_engines import match_layers
    stems = [str(inputs / name) for name in ("mobilenet.qat.onnx.engine", "mobilenet_v2_residuals.qat.onnx.engine")]
    told = subprocess.run([HONE, "report", *(stem + ".graph.json" for stem in stems), "--json"], check=True, capture_output=True, text=True).stdout
    report = json.loads(told)
    rows = {tuple(side[0] if side else None for side in pair) for pair in report["comparisons"][0]["pairs"]}
    plans = [trex.EnginePlan(stem + ".graph.json", stem + ".profile.json") for stem in stems]
    theirs = set(match_layers(*plans, exact_matching=True))
    assert rows == theirs, rows ^ theirs
    for engine, plan in zip(report["engines"], plans, strict=True):
        assert abs(sum(layer["average"] for layer in engine["layers"]) - plan.total_runtime) <= 1e-6 * plan.total_runtime
    return {"rows": len(rows), "layers": [len(engine["layers"]) for engine in report["engines"]],
            "queries": [len(engine["latencies"]) for engine in report["engines"]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trex")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--flags", nargs="*", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    sys.path.insert(0, options.trex)
    warnings.simplefilter("ignore")
    import trex
    results = {"inputs of its tests": align(trex, pathlib.Path(options.trex) / "tests/inputs")}
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            subprocess.run([HONE, "process", model, folder, "-q", "duration=1", *options.flags], check=True)
            results[pathlib.Path(model).name] = examine(trex, str(pathlib.Path(folder) / pathlib.Path(model).name) + ".engine")
    for name, figures in results.items():
        print(name, figures)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
