#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of the zoo on a CUDA card: is the answer right, how long does it take, where does the time go.

Every model is built, run once on drawn values against ONNX Runtime on the processor, and timed with CUDA graphs and without
transfers. A figure is the median of the card's own clock over one second.

    gpu.py --models resnet18.ts hf_bert_base.ts --precisions fp32 fp16 --batches 1 32 --json out.json
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import inference  # noqa: E402
import materialise  # noqa: E402
import zoo  # noqa: E402

TOLERANCES = {"fp32": 1e-3, "tf32": 5e-3, "fp16": 2e-2, "bf16": 5e-2}
FLAGS = {"fp32": ["--noTF32"], "tf32": [], "fp16": ["--fp16"], "bf16": ["--bf16"]}


class Trtexec:
    def __init__(self, program, device, folder):
        self.program, self.device, self.folder = program, device, pathlib.Path(folder)

    def __call__(self, *arguments, env=None):
        command = [str(self.program), f"--device={self.device}", *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=560, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if "[E]" in line or "hint" in line or "while" in line]
            raise RuntimeError(" | ".join(lines[-4:]) or done.stdout[-600:])
        return done.stdout


def median_ms(log):
    return float(re.search(r"GPU Compute Time: .*?median = ([\d.]+) ms", log)[1])


def slowest_layers(folder, count):
    """The layers that take most of the time, as [name, ms, share in percent]."""
    entries = [entry for entry in json.loads((folder / "profile.json").read_text()) if "name" in entry]
    entries.sort(key=lambda entry: -entry["averageMs"])
    return [[entry["name"][:90], round(entry["averageMs"], 4), round(entry.get("percentage", 0), 1)] for entry in entries[:count]]


def left_to_host(log):
    """Layers that the reference runs, with what the sources said."""
    result = {}
    for name in re.findall(r"Layer\(reference\.\w+\): (.*?), ", log):
        at = log.find("Computing costs for " + name)
        lines = log[at:at + 6000].split("\n")[1:]
        result[name[:90]] = [line.split("[HONE] ")[-1][:160] for line in lines[:30] if "Skipping" in line or "rejected" in line or "Time: " not in line and "Tactic Name" in line][:6]
    return result


def sources_of(folder):
    """How many layers each source runs."""
    counts = {}
    for layer in json.loads((folder / "layers.json").read_text())["Layers"]:
        tactic = layer.get("TacticName", layer.get("TacticValue", "?")) if isinstance(layer, dict) else "?"
        source = str(tactic).split(".")[0]
        counts[source] = counts.get(source, 0) + 1
    return counts


def run(trtexec, name, path, precision, batch, options):
    shapes = zoo.shape_text(name, batch)
    profile = [f"--{point}Shapes={shapes}" for point in ("min", "opt", "max")] if shapes else []
    start = time.time()
    log = trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--profilingVerbosity=detailed", f"--builderOptimizationLevel={options.level}", *FLAGS[precision], *profile,
                  *([f"--timingCacheFile={options.cache}"] if options.cache else []), "--verbose")
    (trtexec.folder / f"{name}.{precision}.b{batch}.build.log").write_text(log)
    result = {"model": name, "precision": precision, "batch": batch, "build_s": round(time.time() - start, 1), "host": left_to_host(log)}
    session = inference.reference_session(path)
    outputs = [output.name for output in session.get_outputs()]
    feeds = {value.name: value.values(batch) for value in zoo.inputs(name)}
    found = inference.run_plan(trtexec, "m.plan", feeds, outputs, shapes)
    expected = session.run(outputs, feeds)
    result["error"] = max(inference.relative_error(found[output], want) for output, want in zip(outputs, expected))
    result["right"] = bool(result["error"] <= TOLERANCES[precision])
    log = trtexec("--loadEngine=m.plan", *([f"--shapes={shapes}"] if shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100", "--duration=1", "--iterations=20",
                  "--dumpProfile", "--separateProfileRun", "--exportProfile=profile.json", "--exportLayerInfo=layers.json")
    result["ms"] = median_ms(log)
    result["slowest"] = slowest_layers(trtexec.folder, options.slowest)
    result["sources"] = sources_of(trtexec.folder)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--models", nargs="+", default=["resnet18.ts", "hf_bert_base.ts"])
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=list(FLAGS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1])
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--cache", default="", help="timing cache to use and extend")
    parser.add_argument("--slowest", type=int, default=8)
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no further model is begun")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results, start = [], time.time()
    with tempfile.TemporaryDirectory() as folder:
        trtexec = Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
        for name in options.models:
            if time.time() - start > options.budget:
                print(f"{name}: left out, no time", flush=True)
                continue
            path = materialise.materialise(name, pathlib.Path(folder) / "zoo")
            for precision in options.precisions:
                for batch in options.batches:
                    try:
                        result = run(trtexec, name, path, precision, batch, options)
                        print(f"{name} {precision} b{batch}: {result['ms']:.4f} ms, error {result['error']:.1e} {'' if result['right'] else 'WRONG'}, built in {result['build_s']} s, "
                              f"{result['sources']}{' HOST ' + str(result['host']) if result['host'] else ''}", flush=True)
                    except (RuntimeError, subprocess.TimeoutExpired, TypeError, KeyError, ValueError, AssertionError) as error:
                        result = {"model": name, "precision": precision, "batch": batch, "failure": str(error)[:1000]}
                        print(f"{name} {precision} b{batch}: FAILED {error}", flush=True)
                    results.append(result)
                    if options.json:
                        options.json.write_text(json.dumps(results, indent=1) + "\n")
            os.unlink(path)
        for log in pathlib.Path(folder).glob("*.build.log"):
            if os.environ.get("OUT"):
                (pathlib.Path(os.environ["OUT"]) / log.name).write_text(log.read_text()[-2_000_000:])
    return 0 if all(result.get("right") for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
