#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operator by operator: models of one node, Hone beside ONNX Runtime, in turns on the same cores, results compared.

The engines are the processes of compare.py, given one model after the other. A ratio is the median over the rounds of ONNX Runtime's time
over Hone's. Rows that --json's file already holds and that this call does not measure stay there, so that slices make a whole.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import tempfile
import types

import numpy as np

import compare
import documents
import machine
import operator_models
import operator_rows

ROOT = compare.ROOT
ENGINES = ["hone", "onnxruntime"]
TOLERANCE = 1e-4
BEGIN, END = "<!-- begin: bench/operators.py -->", "<!-- end: bench/operators.py -->"


def difference(found, expected):
    """Of numbers the norm of the difference over the norm, of all else the share that differs; 1 where shapes do."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return 1.0
    if expected.dtype.kind not in "fc":
        return float(np.mean(found != expected)) if expected.size else 0.0
    both = np.isfinite(expected) & np.isfinite(found)
    if np.any(np.isfinite(expected) != np.isfinite(found)):
        return 1.0
    return compare.relative_error([np.where(both, found, 0)], [np.where(both, expected, 0)])


def saved(worker, path):
    worker.ask(f"save {path}")
    with np.load(path, allow_pickle=True) as arrays:
        return [arrays[key] for key in arrays]


def measure(row, workers, folder, options):
    """{"hone_us", "onnxruntime_us", "ratio", "error", "reference": layers on it}, or {"failed": why}"""
    model, feeds = operator_models.model_of(row)
    (folder / "m.onnx").write_bytes(model)
    np.savez(folder / "feeds.npz", **feeds)
    answers = {engine: workers[engine].ask(f"open {folder / 'm.onnx'} {folder / 'feeds.npz'}") for engine in ENGINES}
    if why := [f"{engine}: {answer['error'].strip().splitlines()[0]}" for engine, answer in answers.items() if "error" in answer]:
        return {"failed": "; ".join(why)}
    results = {engine: saved(workers[engine], folder / f"{engine}.npz") for engine in ENGINES}
    error = max((difference(own, other) for own, other in zip(results["hone"], results["onnxruntime"])), default=0.0)
    times = {engine: [] for engine in ENGINES}
    for turn in range(options.rounds):
        for engine in ENGINES[::1 if turn % 2 else -1]:
            times[engine].append(statistics.median(workers[engine].ask(f"run {options.burst} 3")["ms"]))
    return {**{f"{engine}_us": 1e3 * statistics.median(values) for engine, values in times.items()},
            "ratio": statistics.median(other / own for own, other in zip(times["hone"], times["onnxruntime"])),
            "error": error, "reference": [name for name, source in answers["hone"]["layers"] if source == "reference"]}


def line(name, result):
    if "failed" in result:
        return f"{name[:90]:90} {result['failed'][:120]}"
    marks = ("  REFERENCE" if result["reference"] else "") + (f"  differs by {result['error']:.1e}" if not result["error"] <= TOLERANCE else "")
    return f"{name[:90]:90}{result['hone_us']:11.1f}{result['onnxruntime_us']:11.1f}{result['ratio']:8.2f}{marks}"


def summary(rows):
    measured = {name: row for name, row in rows.items() if "ratio" in row}
    if not measured:
        return "nothing was measured"
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in measured.values()))
    slow = sum(row["ratio"] < 0.9 for row in measured.values())
    return (f"{len(measured)} rows, geometric mean of ONNX Runtime over Hone {mean:.2f}; {slow} below 0.9; "
            f"{sum(bool(row['reference']) for row in measured.values())} with a layer on the reference; {len(rows) - len(measured)} that an engine refuses")


def document(report):
    rows = sorted(report["rows"].items(), key=lambda item: item[1].get("ratio", math.inf))
    yield from (BEGIN, f"`./dev bench operators`, {report['machine']['date'][:10]}, {report['threads']} threads. {machine.sentence(report['machine'])}.", "",
                summary(report["rows"]) + ". Below are those under 0.9, those on the reference and those refused; all are in "
                "[operators-bench.json](operators-bench.json).", "", "| row | Hone, us | ONNX Runtime, us | ratio | |", "|---|---:|---:|---:|---|")
    for name, row in rows:
        if "failed" in row:
            yield f"| {name} | – | – | – | {row['failed'][:110].replace('|', ' ')} |"
        elif row["ratio"] < 0.9 or row["reference"] or row["error"] > TOLERANCE:
            notes = (["reference"] if row["reference"] else []) + ([f"differs by {row['error']:.0e}"] if row["error"] > TOLERANCE else [])
            yield f"| {name} | {row['hone_us']:.1f} | {row['onnxruntime_us']:.1f} | {row['ratio']:.2f} | {', '.join(notes)} |"
    yield END


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench operators", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression of rows' titles")
    parser.add_argument("--slice", default="0/1", help="PART/PARTS of the rows: 0/4 is the first quarter")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5, help="bursts of each engine")
    parser.add_argument("--burst", type=float, default=0.03, help="seconds of each burst")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/bench/operators.json")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/measurements.md and the figures beside it")
    parser.add_argument("--list", action="store_true", help="the rows' titles")
    return parser.parse_args()


def chosen(options):
    rows = {operator_models.title(row): row for row in operator_rows.all_rows()}
    picked = [name for name in rows if re.search(options.only, name)]
    part, parts = map(int, options.slice.split("/"))
    return rows, picked[len(picked) * part // parts:len(picked) * (part + 1) // parts]


def main():
    options = arguments()
    rows, picked = chosen(options)
    if options.list:
        return print("\n".join(picked))
    report = {"machine": machine.describe(ROOT), "threads": options.threads, "rows": {}}
    if options.json.exists():
        before = json.loads(options.json.read_text())["rows"]
        report["rows"] = {name: before[name] for name in rows if name in before}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))[:options.threads]
    plain = types.SimpleNamespace(precision="f32", hint="latency")
    start = lambda engine: compare.Worker(engine, "", "-", options.threads, 1, plain, cores)
    workers = {engine: start(engine) for engine in ENGINES}
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':90}{'hone, us':>11}{'ort, us':>11}{'ratio':>8}")
        for name in picked:
            try:
                result = measure(rows[name], workers, pathlib.Path(folder), options)
            except ValueError as error:  # what makes the model refuses it
                result = {"failed": f"no model: {str(error).strip().splitlines()[0]}"}
            except RuntimeError as error:  # an engine that ended
                result = {"failed": str(error).splitlines()[-1]}
                for worker in workers.values():
                    worker.close()
                workers = {engine: start(engine) for engine in ENGINES}
            report["rows"][name] = result
            print(line(name, result), flush=True)
            options.json.write_text(json.dumps(report, indent=1) + "\n")
    for worker in workers.values():
        worker.close()
    print(summary(report["rows"]))
    if options.write_docs:
        (ROOT / "docs/operators-bench.json").write_text(json.dumps(report, indent=1) + "\n")
        documents.replace(ROOT / "docs/measurements.md", BEGIN, END, "\n".join(document(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
