#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the companions take, beside Polygraphy where it is installed in this Python.

    companions.py [--repeats 9] [--only start] [--json FILE]

Rows of docs/companions.md: 115 start-up, 116 folding a chain of 3,000 nodes, 82 an iteration of debug reduce in this process, and 118: the same
answers with no Python on the PATH. The median of so many runs each, the two programs in turns; nothing else should run beside it.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    parser.add_argument("--json", help="write the numbers there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models(folder)
        once([HONE, "run", "a.onnx", "--cpu", "--save-inputs", "in.json", "--save-outputs", "out.json"], folder)
        with_polygraphy = polygraphy_is_there()
        rows = [measure(case, folder, options.repeats, with_polygraphy) for case in CASES if case[0].startswith(options.only)]
        if "debug reduce".startswith(options.only[:12]):
            rows.append(reduction(folder, options.repeats))
        alone = [{"row": row, "passed": once([HONE, *words], folder, NO_PYTHON)[1] == status} for row, words, status in ALONE]
    print(f"{'row':>4} {'':<48} {'Hone':>10} {'Polygraphy':>12} {'target':>8}")
    for row in rows:
        there = f"{row['polygraphy_ms']:.0f} ms" if "polygraphy_ms" in row else "-"
        print(f"{row['row']:>4} {row['name']:<48} {row['hone_ms']:>7.1f} ms {there:>12} {row['target_ms'] or '-':>8}")
    print("118 without Python:", ", ".join(f"row {each['row']} {'passes' if each['passed'] else 'FAILS'}" for each in alone))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"rows": rows, "alone": alone}, indent=2) + "\n")
    late = [row["name"] for row in rows if row["target_ms"] and row["hone_ms"] > row["target_ms"]]
    if late:
        print("over the target:", ", ".join(late))
    return 1 if late or not all(each["passed"] for each in alone) else 0


if __name__ == "__main__":
    sys.exit(main())
