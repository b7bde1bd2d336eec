#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the last open engine explorer (TREx 0.2.1) makes of the files that `hone process` writes.

    engine_explorer.py TREX_FOLDER MODEL.onnx... [--flags shapes=x:1x3x224x224 ...] [--json FILE]

TREX_FOLDER is tools/experimental/trt-engine-explorer of NVIDIA's TensorRT repository before 11.1; it is not part of this one. Its own
requirements have to be installed in this Python: pandas 2.2.1, NumPy before 2, onnx, graphviz, tabulate. For each model: the plan loads,
its layers, weights and times are those of the JSON, every linter runs, the graph is made, and the metadata are read.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trex")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--flags", nargs="*", default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    sys.path.insert(0, options.trex)
    warnings.simplefilter("ignore")
    import trex
    results = {}
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
