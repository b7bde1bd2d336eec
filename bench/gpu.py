#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of the zoo on a CUDA GPU: is the answer right, how long does it take, where does the time go.

Every model is built, run on two sets of drawn values against ONNX Runtime on the processor, again and again in all the ways of
`hone check`, and timed with CUDA graphs and without transfers; behind that it is run once more. A figure is the median of the
GPU's own clock over one second. Checks alone may run side by side.

    gpu.py --models resnet18.ts hf_bert_base.ts --precisions fp32 fp16 --batches 1 32 --json out.json
    gpu.py --models all --precisions fp32 fp16 bf16 --check-only --jobs 12 --level 1 --json out.json
    gpu.py --models resnet18.ts --precisions fp16 --check-only --builds 3
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import onnx  # noqa: E402

import inference  # noqa: E402
import materialise  # noqa: E402
from liven import DETECTION, liven  # noqa: E402
import zoo  # noqa: E402

# bf16 rounds eight times as coarsely as f16 does, and so do the errors of whole models turn out.
TOLERANCES = {"fp32": 1e-3, "tf32": 5e-3, "fp16": 5e-3, "bf16": 4e-2}
# Where rounding weights and inputs alone, with exact arithmetic behind it, moves an answer by more: detection models, which
# sort and select. An engine rounds each result too.
OF_ROUNDING = 2
ROUNDED = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
QUANTISED = ("int8", "fp8")
FLAGS = {"fp32": ["--noTF32"], "tf32": [], "fp16": ["--fp16"], "bf16": ["--bf16"], **{mode: ["--fp16", f"--{mode}"] for mode in QUANTISED}}


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


def quantise(hone, model, samples, folder, mode, *flags):
    """The model that `hone quantize` writes, calibrated on sets of arrays by the input's name."""
    data, target = folder / "samples", folder / f"{mode}.onnx"
    data.mkdir(exist_ok=True)
    for number, arrays in enumerate(samples):
        np.savez(data / f"{number}.npz", **arrays)
    command = [hone, "quantize", model, "-o", target, f"--data={data}", f"--mode={mode}", *flags]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=560, check=False)
    if done.returncode != 0:
        raise RuntimeError(" | ".join(line.strip() for line in done.stderr.splitlines() if line.strip()))
    return target


def median_ms(log):
    return float(re.search(r"GPU Compute Time: .*?median = ([\d.]+) ms", log)[1])


def tell(rows, row, path):
    """Adds a row to those that `path` has, where there is one, and prints it: what there is should outlast the next one's failure."""
    rows.append(row)
    print(json.dumps(row), flush=True)
    if path:
        path.write_text(json.dumps(rows, indent=1) + "\n")


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
        if source != "?":  # views
            counts[source] = counts.get(source, 0) + 1
    return counts


def detection_error(found, expected):
    """Of the scores, best first; rounding may bring a box above a threshold or below it."""
    scores = next(name for name, values in expected.items() if values.ndim == 1 and values.dtype.kind == "f")
    own, other = np.sort(found[scores])[::-1], np.sort(expected[scores])[::-1]
    count = min(len(own), len(other))
    if max(len(own), len(other)) - count > 0.1 * max(len(other), 10):
        return float("inf")
    return inference.relative_error(own[:count], other[:count])


class Hone:
    """The program of that name; its standard output, whatever its exit status."""

    def __init__(self, trtexec):
        self.trtexec, self.folder = trtexec, trtexec.folder

    def answer(self, tool, *arguments):
        command = [str(self.trtexec.program.parent / "hone"), tool, *map(str, arguments), f"--device={self.trtexec.device}"]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", timeout=560, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            raise RuntimeError(f"hone {tool} ended with {done.returncode}: " + done.stderr[-600:])
        return done.stdout


def rounded(values, dtype):
    return values.astype(dtype).astype(values.dtype) if values.dtype == np.float32 else values


def answers(session, feeds):
    outputs = [output.name for output in session.get_outputs()]
    return [dict(zip(outputs, session.run(outputs, feed))) for feed in feeds]


class Model:
    """A model of the zoo at a batch: two sets of inputs, and what ONNX Runtime makes of them."""

    def __init__(self, name, batch, folder):
        self.name, self.batch, self.shapes = name, batch, zoo.shape_text(name, batch)
        self.path = materialise.materialise(name, folder)
        self.feeds = [{value.name: value.values(batch, draw) for value in zoo.inputs(name)} for draw in (0, 1)]
        if name in DETECTION:
            model = onnx.load(self.path)
            liven(model, self.feeds[0], DETECTION[name])
            onnx.save(model, self.path)
        self.dynamic, self.rounding = zoo.has_dynamic_batch(name), {}
        self.expected = answers(inference.reference_session(self.path), self.feeds)

    def profile(self):
        """Flags of the shapes to build for: this batch, and the next where the batch is open, so that shapes can change."""
        if not self.shapes:
            return []
        largest = zoo.shape_text(self.name, self.batch + 1) if self.dynamic else self.shapes
        return [f"--minShapes={self.shapes}", f"--optShapes={self.shapes}", f"--maxShapes={largest}"]

    def tolerance(self, precision):
        """What an engine of that type may be off, and what rounding weights and inputs to it costs by itself; measured once."""
        if precision not in ROUNDED or self.name not in DETECTION:
            return TOLERANCES[precision], None
        if precision not in self.rounding:
            model, dtype = onnx.load(self.path), ROUNDED[precision]
            for tensor in model.graph.initializer:
                if tensor.data_type == onnx.TensorProto.FLOAT:
                    tensor.CopyFrom(onnx.numpy_helper.from_array(rounded(onnx.numpy_helper.to_array(tensor), dtype), tensor.name))
            feeds = [{name: rounded(values, dtype) for name, values in feed.items()} for feed in self.feeds]
            found = answers(inference.session_of(model.SerializeToString()), feeds)
            self.rounding[precision] = max(self.error(outputs, draw) for draw, outputs in enumerate(found))
        return max(TOLERANCES[precision], OF_ROUNDING * self.rounding[precision]), self.rounding[precision]

    def error(self, found, draw=0):
        if self.name in DETECTION:
            return detection_error({name: found[name] for name in self.expected[draw]}, self.expected[draw])
        return max(inference.relative_error(found[output], want) for output, want in self.expected[draw].items())


def check(trtexec, model, precision, options):
    """Builds m.plan and holds its answers against the reference, however it is run."""
    start = time.time()
    log = trtexec(f"--onnx={model.path}", "--saveEngine=m.plan", "--skipInference", "--profilingVerbosity=detailed", f"--builderOptimizationLevel={options.level}", *FLAGS[precision], *model.profile(),
                  *([f"--timingCacheFile={options.cache}"] if options.cache else []), "--verbose")
    (trtexec.folder / f"{model.name}.{precision}.b{model.batch}.build.log").write_text(log)
    result = {"model": model.name, "precision": precision, "batch": model.batch, "build_s": round(time.time() - start, 1), "host": left_to_host(log)}
    copies = re.search(r"(\d+) of \d+ layers run on the host; an inference copies (\d+) bytes there and (\d+) bytes back", log)
    result["host_layers"], result["to_host"], result["from_host"] = map(int, copies.groups()) if copies else (0, 0, 0)
    report, found = inference.check_plan(Hone(trtexec), "m.plan", model.feeds, model.shapes, options.inferences)
    result["error"] = max(model.error(outputs, draw) for draw, outputs in enumerate(found))
    result["inferences"] = sum(entry["inferences"] for entry in report["situations"])
    result["differences"] = inference.differences(report)
    result["tolerance"], result["rounding"] = model.tolerance(precision)
    result["right"] = bool(result["error"] <= result["tolerance"]) and not result["differences"]
    return result


def timed(trtexec, model, options):
    log = trtexec("--loadEngine=m.plan", *([f"--shapes={model.shapes}"] if model.shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100", "--duration=1", "--iterations=20",
                  "--dumpProfile", "--separateProfileRun", "--exportProfile=profile.json", "--exportLayerInfo=layers.json")
    # Once more, behind the timed runs, as the last of many.
    found = inference.run_plan(trtexec, "m.plan", model.feeds[0], list(model.expected[0]), model.shapes, runs=20)
    return {"ms": median_ms(log), "error_after": model.error(found), "slowest": slowest_layers(trtexec.folder, options.slowest), "sources": sources_of(trtexec.folder)}


def describe(result):
    head = f"{result['model']} {result['precision']} b{result['batch']}: "
    if "failure" in result:
        return head + "FAILED " + result["failure"]
    time_text = f"{result['ms']:.4f} ms, " if "ms" in result else ""
    host = f", {result['host_layers']} layers on the host, {result['to_host']} bytes there, {result['from_host']} back: {result['host']}" if result["host_layers"] else ""
    differences = f", {result['differences']}" if result["differences"] else f", {result['inferences']} inferences alike"
    return f"{head}{time_text}error {result['error']:.1e}{'' if result['right'] else ' WRONG'}{differences}, built in {result['build_s']} s{host}"


def run(name, batch, options):
    """The results of one model in every precision; prints each."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        trtexec = Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
        model = Model(name, batch, pathlib.Path(folder) / "zoo")
        for precision in options.precisions:
            for _ in range(options.builds):
                try:
                    result = check(trtexec, model, precision, options)
                    if not options.check_only:
                        result |= timed(trtexec, model, options)
                        result["right"] &= bool(result["error_after"] <= result["tolerance"])
                except (RuntimeError, subprocess.TimeoutExpired, TypeError, KeyError, ValueError, AssertionError, OSError) as error:
                    result = {"model": name, "precision": precision, "batch": batch, "failure": str(error)[:1000]}
                results.append(result)
                print(describe(result), flush=True)
        for log in trtexec.folder.glob("*.build.log"):
            if options.logs:
                (options.logs / log.name).write_text(log.read_text()[-2_000_000:])
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--models", nargs="+", default=["resnet18.ts", "hf_bert_base.ts"])
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=[kind for kind in FLAGS if kind not in QUANTISED])
    parser.add_argument("--batches", nargs="+", type=int, default=[1])
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--cache", default="", help="timing cache to use and extend")
    parser.add_argument("--builds", type=int, default=1, help="engines of each model; give no --cache to have them built cold")
    parser.add_argument("--inferences", type=int, default=100, help="of each of the ways of hone check")
    parser.add_argument("--slowest", type=int, default=8)
    parser.add_argument("--check-only", action="store_true", help="no times")
    parser.add_argument("--jobs", type=int, default=1, help="models at a time; only with --check-only")
    parser.add_argument("--logs", type=pathlib.Path, help="folder for the logs of the builds")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.jobs > 1 and not options.check_only:
        parser.error("--jobs needs --check-only: times of models that run side by side say nothing")
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
    models = materialise.names() if options.models == ["all"] else options.models
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for batch in options.batches:
            for done in pool.map(lambda name: run(name, batch, options), models):
                results += done
                if options.json:
                    options.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [result for result in results if not result.get("right")]
    print(f"{len(results) - len(wrong)} of {len(results)} right" + "".join(f"; {result['model']} {result['precision']}" for result in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
