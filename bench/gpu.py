#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of the zoo on a CUDA GPU: is the answer right, how long does it take, where does the time go.

Every model is built, run on two sets of drawn values against ONNX Runtime on the processor, again and again in all the ways of
`hone check`, and timed with CUDA graphs and without transfers; behind that it is run once more. A figure is the median of the
GPU's own clock over one second. Checks alone may run side by side.

In int8 and fp8 a model is what `hone quantize --method=minmax` makes of it, calibrated on the same values, and built with --fp16.
There a value next to the middle of a step falls to either side by an engine's last digit, and some layers on all codes have parted.
How far is measured: ONNX Runtime runs the file as it is and with all its floats moved within fp16's rounding, a few times over.
`rounding` is how far moving took it; `from_peer`, the engine from the file as it is, may be twice that. `peer_error` is the farthest of these from
the model in floats, what few bits cost. An error of the engine's own has nothing to do with the peer's and stands at right angles to it: `error` may
be 1.05 times both together (twice, of models that sort and select), and fp16's tolerance besides.

    gpu.py --models resnet18.ts hf_bert_base.ts --precisions fp32 fp16 --batches 1 32 --json out.json
    gpu.py --models all --precisions fp32 fp16 bf16 --check-only --jobs 12 --level 1 --json out.json
    gpu.py --models all --precisions int8 fp8 --check-only --jobs 14 --level 1 --json out.json
    gpu.py --models resnet18.ts --precisions fp16 --check-only --builds 3
"""

import argparse
import concurrent.futures
import json
import math
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
# How many times as far as ONNX Runtime an engine may be from the model in floats, when both run it in few bits; and how often that
# one's floats are moved to learn how far it may be.
OF_CODES, MOVES = 1.05, 4
QUANTISED = ("int8", "fp8")
FLAGS = {"fp32": ["--noTF32"], "tf32": [], "fp16": ["--fp16"], "bf16": ["--bf16"], **{mode: ["--fp16", f"--{mode}"] for mode in QUANTISED}}
# What `hone quantize` says of models that have no weights to turn into codes, or not in floats.
NOTHING = re.compile("is quantised already|has no convolution or matmul that can be quantised")


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


def far_from_ceiling(log):
    """Of a profile: the share of the time, in percent, that layers take which are below 60 % of a ceiling."""
    return float(re.search(r"([\d.]+) % of their time is in layers below", log)[1])


def precision_used(log):
    """How many layers compute in each type, in the builder's words."""
    return next((line.split("Precision used: ")[1] for line in log.splitlines() if "Precision used: " in line), "")


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


def moved(values, random):
    """Each float by as much as fp16 may round it. What fp16 holds stays: exponents, numbers that regions are told apart by."""
    if values.dtype != np.float32:
        return values
    with np.errstate(over="ignore"):  # masks
        others = values * (1 + (random.random(values.shape, np.float32) - np.float32(0.5)) * np.float32(np.finfo(np.float16).eps))
        return np.where(rounded(values, np.float16) == values, values, others)


def worst(distances):
    """One that is no number is farther than all."""
    return float(np.max(list(distances)))


def answers(session, feeds):
    outputs = [output.name for output in session.get_outputs()]
    return [dict(zip(outputs, session.run(outputs, feed))) for feed in feeds]


def answers_of_changed(path, feeds, change, **session):
    """What ONNX Runtime makes of the model when its floats and its inputs are changed."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(onnx.numpy_helper.from_array(change(onnx.numpy_helper.to_array(tensor)), tensor.name))
    return answers(inference.session_of(model.SerializeToString(), **session), [{name: change(values) for name, values in feed.items()} for feed in feeds])


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
        self.dynamic, self.rounding, self.coded = zoo.has_dynamic_batch(name), {}, {}
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
            found = answers_of_changed(self.path, self.feeds, lambda values: rounded(values, ROUNDED[precision]))
            self.rounding[precision] = self.farthest(found, self.expected)
        return max(TOLERANCES[precision], OF_ROUNDING * self.rounding[precision]), self.rounding[precision]

    def distance(self, found, expected):
        if self.name in DETECTION:
            return detection_error({name: found[name] for name in expected}, expected)
        return worst(inference.relative_error(found[output], want) for output, want in expected.items())

    def error(self, found, draw=0):
        return self.distance(found, self.expected[draw])

    def farthest(self, found, expected):
        """Of the sets of values."""
        return worst(map(self.distance, found, expected))

    def codes(self, mode, trtexec):
        if mode not in self.coded:
            self.coded[mode] = Codes(self, mode, trtexec)
        return self.coded[mode]


class Codes:
    """A model in few bits, or as it is where none of its weights can become codes, and what ONNX Runtime makes of it as it is written:
    its rewriting refuses E4M3."""

    def __init__(self, model, mode, trtexec):
        self.model, start = model, time.time()
        try:
            self.path = quantise(trtexec.program.parent / "hone", model.path, model.feeds, trtexec.folder, mode, "--method=minmax")
        except RuntimeError as error:
            if not NOTHING.search(str(error)):
                raise
            self.path = model.path
        self.told = {"quantised": self.path != model.path, "quantise_s": round(time.time() - start, 1), "peer_error": 0.0, "rounding": 0.0}
        self.expected = model.expected
        if self.told["quantised"]:
            self.expected = answers(inference.session_of(str(self.path), rewritten=False), model.feeds)
            others = [self.moved(np.random.default_rng(number)) for number in range(MOVES)]
            self.told["peer_error"] = worst(model.farthest(found, model.expected) for found in [self.expected, *others])
            self.told["rounding"] = worst(model.farthest(found, self.expected) for found in others)

    def moved(self, random):
        return answers_of_changed(self.path, self.model.feeds, lambda values: moved(values, random), rewritten=False)

    def judged(self, found):
        """What is known of the file, and where between the model in floats and ONNX Runtime's answers an engine's are and may be."""
        fp16, factor = self.model.tolerance("fp16")[0], OF_ROUNDING if self.model.name in DETECTION else OF_CODES
        apart = self.model.farthest(found, self.expected)
        return self.told | {"tolerance": math.hypot(factor * math.hypot(self.told["peer_error"], apart), fp16), "from_peer": apart,
                            "from_peer_tolerance": max(fp16, OF_ROUNDING * self.told["rounding"])}


def within(result, value, limit):
    return bool(result[value] <= result[limit])


def check(trtexec, model, precision, options):
    """Builds m.plan and holds its answers against the reference, however it is run."""
    codes = model.codes(precision, trtexec) if precision in QUANTISED else None
    start = time.time()
    log = trtexec(f"--onnx={codes.path if codes else model.path}", "--saveEngine=m.plan", "--skipInference", "--profilingVerbosity=detailed", f"--builderOptimizationLevel={options.level}", *FLAGS[precision], *model.profile(),
                  *([f"--timingCacheFile={options.cache}"] if options.cache else []), "--verbose")
    (trtexec.folder / f"{model.name}.{precision}.b{model.batch}.build.log").write_text(log)
    result = {"model": model.name, "precision": precision, "batch": model.batch, "build_s": round(time.time() - start, 1), "layers": precision_used(log), "host": left_to_host(log)}
    copies = re.search(r"(\d+) of \d+ layers run on the host; an inference copies (\d+) bytes there and (\d+) bytes back", log)
    result["host_layers"], result["to_host"], result["from_host"] = map(int, copies.groups()) if copies else (0, 0, 0)
    report, found = inference.check_plan(Hone(trtexec), "m.plan", model.feeds, model.shapes, options.inferences)
    result["error"] = model.farthest(found, model.expected)
    result["inferences"] = sum(entry["inferences"] for entry in report["situations"])
    result["differences"] = inference.differences(report)
    if codes:
        result |= codes.judged(found)
    else:
        result["tolerance"], result["rounding"] = model.tolerance(precision)
    result["right"] = within(result, "error", "tolerance") and (not codes or within(result, "from_peer", "from_peer_tolerance")) and not result["differences"]
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
    peer = f" (ONNX Runtime's {result['peer_error']:.1e}, apart {result['from_peer']:.1e}{'' if result['quantised'] else ', nothing to quantise'})" if "from_peer" in result else ""
    differences = f", {result['differences']}" if result["differences"] else f", {result['inferences']} inferences alike"
    return f"{head}{time_text}error {result['error']:.1e}{peer}{'' if result['right'] else ' WRONG'}{differences}, built in {result['build_s']} s{host}"


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
                        result["right"] &= within(result, "error_after", "tolerance")
                except Exception as error:  # noqa: BLE001: the other rows are wanted, whatever a library raises
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
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=list(FLAGS))
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
