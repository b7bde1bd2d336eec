#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the companions take, beside Polygraphy where it is installed in this Python.

    companions.py [--repeats 9] [--only start] [--json FILE] [--table]

Rows of docs/companions.md: 115 start-up, 116 folding a chain of 3,000 nodes, 117 making 2,000 layers in Python, 80 the memory that cutting a
model of 3.2 GB takes, 82 an iteration of debug reduce in this process, and 118: the same answers with no Python on the PATH. The median of so
many runs each, the two programs in turns; nothing else should run beside it.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
HONE = ROOT / "build/release/bin/hone"
POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"
NO_PYTHON = {"PATH": "/nonexistent", "HOME": os.environ.get("HOME", "/")}

# What is measured: name, row, Hone's words, Polygraphy's words or None, the target in milliseconds or None.
CASES = [
    ("start: --help", 115, ["--help"], ["--help"], 20),
    ("start: inspect model", 115, ["inspect", "model", "a.onnx"], ["inspect", "model", "a.onnx"], 20),
    ("start: inspect data", 115, ["inspect", "data", "in.json"], ["inspect", "data", "in.json"], 20),
    ("start: data merge", 115, ["data", "merge", "in.json", "-o", "m.json"], ["data", "merge", "in.json", "-o", "m.json"], 20),
    ("start: check lint", 115, ["check", "lint", "a.onnx"], ["check", "lint", "a.onnx"], 20),
    ("start: surgeon extract", 115, ["surgeon", "extract", "a.onnx", "--outputs", "m:auto", "-o", "e.onnx"],
     ["surgeon", "extract", "a.onnx", "--outputs", "m:auto", "-o", "e.onnx"], 20),
    ("start: template", 115, ["template", "onnx-gs", "a.onnx", "-o", "t.py"], ["template", "onnx-gs", "a.onnx", "-o", "t.py"], 20),
    ("surgery: fold 3,000 nodes", 116, ["surgeon", "sanitize", "chain.onnx", "--fold-constants", "-o", "f.onnx"],
     ["surgeon", "sanitize", "chain.onnx", "--fold-constants", "-o", "f.onnx"], 200),
    ("surgery: lint 3,000 nodes", 116, ["check", "lint", "chain.onnx"], ["check", "lint", "chain.onnx"], None),
    ("run: compare two runners", 1, ["run", "a.onnx", "--cpu", "--ref"], ["run", "a.onnx", "--onnxrt", "--onnxrt"], None),
    ("debug reduce with a command", 81, ["debug", "reduce", "a.onnx", "-o", "r.onnx", "--mode=linear", "--fail-regex", "Op: Mul", "--check", str(HONE), "inspect", "model",
                                         "polygraphy_debug.onnx", "--show", "layers"],
     ["debug", "reduce", "a.onnx", "-o", "r.onnx", "--mode=linear", "--fail-regex", "Op: Mul", "--check", sys.executable, "-c", POLYGRAPHY, "inspect", "model",
      "polygraphy_debug.onnx", "--show", "layers"], None),
]
# Row 118: commands that must work, and come to this status, where there is no Python.
ALONE = [(1, ["run", "a.onnx", "--cpu", "--ref"], 0), (41, ["inspect", "model", "a.onnx"], 0), (51, ["check", "lint", "a.onnx"], 0),
         (54, ["surgeon", "extract", "a.onnx", "--outputs", "m:auto", "-o", "e.onnx"], 0), (56, ["surgeon", "sanitize", "a.onnx", "--fold-constants", "-o", "f.onnx"], 0),
         (81, ["debug", "reduce", "a.onnx", "-o", "r.onnx", "--fail-regex", "Op: Mul", "--check", "hone", "inspect", "model", "polygraphy_debug.onnx", "--show", "layers"], 0),
         (104, ["quantize", "deep.onnx", "-o", "q.onnx", "--data=calib.npz"], 0)]


def models(folder):
    import tiny
    from onnx import helper

    tiny.save(folder / "a.onnx", [helper.make_node("Mul", ["x", "c"], ["m"], name="mul0"), helper.make_node("Relu", ["m"], ["y"], name="relu0")],
              {"c": np.array(1, np.float32)}, [("x", [2, 8])], [("y", [2, 8])], opset=13)
    names = ["x", *(f"t{i}" for i in range(2999)), "y"]
    tiny.save(folder / "chain.onnx", [helper.make_node("Relu", [names[i]], [names[i + 1]], name=f"n{i}") for i in range(3000)], inputs=[("x", [1, 4])], outputs=[("y", [1, 4])],
              opset=13)
    np.savez(folder / "calib.npz", x=np.random.default_rng(2).standard_normal((8, 512), np.float32))
    nodes = [helper.make_node(("Neg", "Abs")[i % 2], [f"t{i}" if i else "x"], [f"t{i + 1}"], name=f"n{i}") for i in range(60)]
    nodes.append(helper.make_node("MatMul", ["t60", "w"], ["y"], name="hot"))
    tiny.save(folder / "deep.onnx", nodes, {"w": np.random.default_rng(1).standard_normal((512, 512), np.float32)}, [("x", [8, 512])], [("y", [8, 512])], opset=13)


def once(command, folder, env=None):
    """Seconds, exit status, output."""
    for left in ("polygraphy_debug.onnx", "polygraphy_debug_replay.json"):
        (folder / left).unlink(missing_ok=True)
    start = time.perf_counter()
    done = subprocess.run(list(map(str, command)), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          errors="replace", check=False)
    return time.perf_counter() - start, done.returncode, done.stdout


def polygraphy_is_there():
    return subprocess.run([sys.executable, "-c", "import polygraphy, onnx, onnx_graphsurgeon, onnxruntime"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def measure(case, folder, repeats, with_polygraphy):
    name, row, ours, theirs, target = case
    times = {"hone": [], "polygraphy": []}
    for _ in range(repeats):
        for program, words in (("hone", [HONE, *ours]), ("polygraphy", [sys.executable, "-c", POLYGRAPHY, *theirs] if theirs and with_polygraphy else None)):
            if words is None:
                continue
            seconds, status, said = once(words, folder)
            if status != 0:
                sys.exit(f"exit {status}: {' '.join(map(str, words))}\n{said}")
            times[program].append(1000 * seconds)
    medians = {program: statistics.median(values) for program, values in times.items() if values}
    return {"name": name, "row": row, "target_ms": target, **{f"{program}_ms": round(value, 2) for program, value in medians.items()}}


def reduction(folder, repeats):
    """Milliseconds of an iteration in this process, the comparison itself left out."""
    each = []
    for _ in range(repeats):
        _, status, said = once([HONE, "debug", "reduce", "deep.onnx", "-o", "r.onnx", "--val-range", "[-1,1]", "--check-run", "--cpu --ref --atol 0 --rtol 0", "--json", "t.json"], folder)
        if status != 0:
            sys.exit(said)
        each.append(json.loads((folder / "t.json").read_text())["timing"])
    return {"name": "debug reduce: an iteration but the comparison", "row": 82, "target_ms": 5, "hone_ms": round(statistics.median(t["otherMsEach"] for t in each), 2),
            "comparison_ms": round(statistics.median(t["checkMsEach"] for t in each), 2), "iterations": each[0]["iterations"]}


LAYERS = """
import sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
import {module} as gs
start = time.perf_counter()
graph = gs.Graph(inputs=[gs.Variable("x", np.float32, (1,))])
out = graph.inputs[0]
for _ in range(2000):
    out = graph.layer(op="Add", inputs=[out, np.ones(1, np.float32)], outputs=["o"])[0]
print(1000 * (time.perf_counter() - start))
"""


def layers(folder, repeats, with_polygraphy):
    """Milliseconds of 2,000 calls of layer(), imports left out."""
    times = {"hone": [], "polygraphy": []}
    for _ in range(repeats):
        for program, module in (("hone", "hone.graph"), ("polygraphy", "onnx_graphsurgeon" if with_polygraphy else None)):
            if module is None:
                continue
            _, status, said = once([sys.executable, "-c", LAYERS.format(module=module), ROOT / "build/release/python"], folder)
            if status != 0:
                sys.exit(said)
            times[program].append(float(said.split()[-1]))
    return {"name": "graph API in Python: 2,000 layers (GraphSurgeon)", "row": 117, "target_ms": 100,
            **{f"{program}_ms": round(statistics.median(values), 2) for program, values in times.items() if values}}


def extraction(folder, with_polygraphy):
    """Peak memory in MiB of cutting one of two weights of 1.6 GB out of a file with holes."""
    import onnx
    from onnx import TensorProto, helper

    size = 400_000_000
    with open(folder / "big.data", "wb") as file:
        file.truncate(8 * size)
    weights = []
    for at, name in enumerate(("w0", "w1")):
        weights.append(TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[size], data_location=TensorProto.EXTERNAL))
        for key, value in (("location", "big.data"), ("offset", 4 * at * size), ("length", 4 * size)):
            weights[-1].external_data.add(key=key, value=str(value))
    nodes = [helper.make_node("Add", ["x", "w0"], ["m"]), helper.make_node("Add", ["m", "w1"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [size]) for name in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "big", ends[:1], ends[1:], weights), ir_version=10), folder / "big.onnx")
    row = {"name": "surgeon extract from 3.2 GB: peak memory", "row": 80, "target_mib": 200}
    words = ["surgeon", "extract", "big.onnx", "--inputs", "m:auto:auto", "-o"]
    for program, command in (("hone", [HONE, *words, "near.onnx"]),
                             ("polygraphy", [sys.executable, "-c", POLYGRAPHY, *words, "far.onnx", "--save-external-data", "far.data"] if with_polygraphy else None)):
        if command is not None:
            peak = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            _, status, said = once([sys.executable, "-S", "-c", peak, *command], folder)
            row[f"{program}_mib"] = round(int(said.split()[-1]) / 1024, 1) if status == 0 else None
        for left in ("near.onnx", "near.onnx.data", "far.onnx", "far.data"):
            (folder / left).unlink(missing_ok=True)
    return row


def figures(row):
    """What Hone took, what Polygraphy took, what is asked."""
    if "hone_mib" in row:
        return [f"{row[key]:.0f} MiB" if row.get(key) else "-" for key in ("hone_mib", "polygraphy_mib", "target_mib")]
    return [f"{row['hone_ms']:.1f} ms", f"{row['polygraphy_ms']:.0f} ms" if "polygraphy_ms" in row else "-", f"{row['target_ms']} ms" if row["target_ms"] else "-"]


def is_late(row):
    return row["hone_mib"] > row["target_mib"] if "hone_mib" in row else row["target_ms"] and row["hone_ms"] > row["target_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    parser.add_argument("--json", help="write the numbers there")
    parser.add_argument("--table", action="store_true", help="print them as docs/measurements.md has them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models(folder)
        once([HONE, "run", "a.onnx", "--cpu", "--save-inputs", "in.json", "--save-outputs", "out.json"], folder)
        with_polygraphy = polygraphy_is_there()
        rows = [measure(case, folder, options.repeats, with_polygraphy) for case in CASES if case[0].startswith(options.only)]
        if "graph API".startswith(options.only[:9]):
            rows.append(layers(folder, options.repeats, with_polygraphy))
        if "surgeon extract".startswith(options.only[:15]):
            rows.append(extraction(folder, with_polygraphy))
        if "debug reduce".startswith(options.only[:12]):
            rows.append(reduction(folder, options.repeats))
        alone = [{"row": row, "passed": once([HONE, *words], folder, NO_PYTHON)[1] == status} for row, words, status in ALONE]
    if options.table:
        print("| row | | Hone | Polygraphy | asked |\n|---:|---|---:|---:|---:|")
    else:
        print(f"{'row':>4} {'':<50} {'Hone':>10} {'Polygraphy':>12} {'asked':>10}")
    for row in rows:
        ours, theirs, asked = figures(row)
        print(f"| {row['row']} | {row['name']} | {ours} | {theirs} | {asked} |" if options.table else f"{row['row']:>4} {row['name']:<50} {ours:>10} {theirs:>12} {asked:>10}")
    print("118 without Python:", ", ".join(f"row {each['row']} {'passes' if each['passed'] else 'FAILS'}" for each in alone))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows, "alone": alone}, indent=2) + "\n")
    late = [row["name"] for row in rows if is_late(row)]
    if late:
        print("over the target:", ", ".join(late))
    return 1 if late or not all(each["passed"] for each in alone) else 0


if __name__ == "__main__":
    sys.exit(main())
