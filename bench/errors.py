#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far is f32 from ONNX Runtime's on every model of the zoo, with --noTF32 and without? On a processor with AMX the former takes three parts of
bf16 a number, the latter two.

Each model has a process and a share of the cores of its own, as many side by side as there are. Kernels are timed in company: good enough to be
chosen, no figures. An error is the norm of the difference over the norm, the largest over a model's outputs of floats. Language models in ONNX
Runtime's own form are held against exact arithmetic (exact.py), and ONNX Runtime beside Hone. Detection models, whose boxes the smallest
difference may reorder, are tests/test_zoo.py's.

    errors.py --json FILE
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import queue
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python"))]

import exact  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import zoo  # noqa: E402
from inference import reference_session, relative_error  # noqa: E402
from liven import DETECTION  # noqa: E402

MODES = {"default": [], "noTF32": ["--noTF32"]}
LIMITS = {"default": 2e-5, "noTF32": 5e-6}
EXACT = {"llama_160m_f32.ort", "llama_160m_int4.ort"}


def inference(path, name, flags, feeds):
    """({output: values}, {operands of tiles: layers})"""
    import hone

    shapes = zoo.shape_text(name)
    plan = hone.build(path, [*flags, *([f"--shapes={shapes}"] if shapes else [])])
    tiles = {}
    for layer in plan.layers():
        operands = json.loads(layer.parameters or "{}").get("operands")
        if isinstance(operands, str):
            tiles[operands] = tiles.get(operands, 0) + 1
    context = plan.engine().context()
    for tensor, values in feeds.items():
        context.set_input(tensor, values)
    context.allocate_outputs()
    context.run_bound()
    return {output: context.value(output) if output in context.engine.by_value else context.bound[output] for output in context.engine.outputs}, tiles


def largest_error(found, expected):
    return max(relative_error(found[output], values) for output, values in expected.items() if values.dtype.kind == "f")


def errors_of(name, level):
    """{mode: {"error", "tiles"}}, and of a model that exact arithmetic is known of {"onnxruntime": {"error", "tiles"}}"""
    path = materialise.materialise(name, ROOT / "build/zoo")
    feeds = {value.name: value.values() for value in zoo.inputs(name)}
    session = reference_session(path)
    outputs = [output.name for output in session.get_outputs()]
    expected = dict(zip(outputs, session.run(outputs, feeds)))
    del session
    rows = {}
    if name in EXACT:
        found, expected = expected, exact.outputs(path, feeds)
        rows["onnxruntime"] = {"error": largest_error(found, expected), "tiles": {}}
    for mode, flags in MODES.items():
        found, tiles = inference(path, name, [*flags, f"--builderOptimizationLevel={level}", "--avgTiming=1"], feeds)
        rows[mode] = {"error": largest_error(found, expected), "tiles": tiles}
    return rows


def child(name, level):
    """What errors_of gives, on a share of the cores, in a process that may end."""
    cores = shares.get()
    try:
        command = ["taskset", "-c", ",".join(map(str, cores)), sys.executable, __file__, "--one", name, "--level", str(level)]
        done = subprocess.run(command, env={**os.environ, "HONE_THREADS": str(len(cores))}, capture_output=True, text=True, check=False)
    finally:
        shares.put(cores)
    if done.returncode:
        return {"failed": "\n".join(done.stderr.splitlines()[-3:])}
    return json.loads(done.stdout.splitlines()[-1])


def line(name, row):
    if "failed" in row:
        return f"{name:28}{row['failed']}"
    cells = [f"{mode} {found['error']:.2e}{'' if found['error'] <= LIMITS.get(mode, found['error']) else ' ABOVE'} {found['tiles'] or ''}" for mode, found in row.items()]
    return f"{name:28}" + "   ".join(cells)


def summary(rows):
    measured = {name: row for name, row in rows.items() if "failed" not in row}
    for mode, limit in LIMITS.items():
        largest = max(measured, key=lambda name: measured[name][mode]["error"], default=None)
        if largest:
            above = sum(row[mode]["error"] > limit for row in measured.values())
            yield f"{mode}: {len(measured)} models, largest {measured[largest][mode]['error']:.2e} ({largest}), {above} above {limit:.0e}"
    yield f"{len(rows) - len(measured)} failed"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), help="comma-separated names of the zoo; default: all but those of detection")
    parser.add_argument("--level", type=int, default=1, help="--builderOptimizationLevel")
    parser.add_argument("--threads", type=int, default=2, help="of each model")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/bench/errors.json")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.models = options.models or [name for name in materialise.names() if name not in DETECTION]
    return options


def main():
    options = arguments()
    if options.one:
        return print(json.dumps(errors_of(options.one, options.level)))
    report = {"machine": machine.describe(ROOT), "level": options.level, "limits": LIMITS, "rows": {}}
    print(machine.sentence(report["machine"]), flush=True)
    cores = sorted(os.sched_getaffinity(0))
    size = min(options.threads, len(cores))
    for start in range(0, len(cores) - size + 1, size):
        shares.put(cores[start:start + size])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    largest_first = sorted(options.models, key=zoo.weight_bytes, reverse=True)
    with concurrent.futures.ThreadPoolExecutor(shares.qsize()) as pool:
        jobs = {pool.submit(child, name, options.level): name for name in largest_first}
        for job in concurrent.futures.as_completed(jobs):
            name = jobs[job]
            report["rows"][name] = job.result()
            print(line(name, report["rows"][name]), flush=True)
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(summary(report["rows"])))
    return 1 if any("failed" in row for row in report["rows"].values()) else 0


shares = queue.Queue()

if __name__ == "__main__":
    sys.exit(main())
