#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of one row in as many streams as each engine thinks best: `hone bench --throughput` beside OpenVINO under its THROUGHPUT hint, in turns.

    bench/throughput.py [MODEL...] [--rounds 5] [--seconds 3] [--output throughput.json] [-- FLAGS OF THE SEARCH]

A MODEL is a file that ends in .onnx, or a name of the zoo (`scripts/materialise.py --list`; these need the package onnx). Both engines have the
processors of this process, and compute in FP32. The search builds for each division of the cores and twice for the winner's:
`-- --buildBudget=30` ends each build's tuning after 30 seconds. Exit status 1 where the aims are missed: 1.2 times OpenVINO (geometric mean), p99 at most
three times p50, no more threads than cores.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import numpy as np
import openvino

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/release/bin"
MODELS = ["resnet50.ts", "mobilenet_v3_large.ts", "efficientnet_b0.ts", "hf_bert_base.ts", "yolov8n_like.ts"]
OPEN_SIZE = 128  # of what is open and not the batch: words
AIM, TAIL = 1.2, 3


def file_of(model):
    if model.endswith(".onnx"):
        return pathlib.Path(model)
    sys.path.insert(0, str(ROOT / "scripts"))
    import materialise

    return materialise.materialise(model, ROOT / "build/zoo")


def percentiles(latencies):
    return {"p50_ms": float(np.percentile(latencies, 50)), "p99_ms": float(np.percentile(latencies, 99))}


class OpenVino:
    """As many requests as the compiled model asks for, each begun again when it has ended."""

    def __init__(self, path):
        model = openvino.Core().read_model(path)
        shapes = {}
        for value in model.inputs:
            sizes = [size.get_length() if size.is_static else (1 if axis == 0 else OPEN_SIZE) for axis, size in enumerate(value.partial_shape)]
            shapes[value.get_any_name()] = sizes
        model.reshape(shapes)
        self.opened = {value.get_any_name(): shapes[value.get_any_name()] for value in openvino.Core().read_model(path).inputs
                       if value.partial_shape.is_dynamic}
        self.compiled = openvino.Core().compile_model(model, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"})
        self.streams = self.compiled.get_property("NUM_STREAMS")
        self.queue = openvino.AsyncInferQueue(self.compiled, self.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        random = np.random.default_rng(1)
        for request in self.queue:
            for value in model.inputs:
                integers = value.element_type.is_integral()
                array = random.integers(0, 2, value.shape) if integers else random.standard_normal(value.shape)
                request.set_tensor(value, openvino.Tensor(np.ascontiguousarray(array.astype(value.element_type.to_dtype()))))
        self.done = []
        self.queue.set_callback(lambda request, begun: self.done.append((begun, time.perf_counter())))

    def run(self, seconds):
        """(requests a second, latencies in ms); what is under way at the end counts for neither."""
        for lasting in (0.1 * seconds, seconds):  # the first warms up
            self.done.clear()
            begin = time.perf_counter()
            last = begin + lasting
            while time.perf_counter() < last:
                self.queue.get_idle_request_id()  # waits until one is free: that is not the engine's time
                self.queue.start_async(userdata=time.perf_counter())
            end = time.perf_counter()
            self.queue.wait_all()
        ended = [(begun, at) for begun, at in self.done if at <= end]
        return len(ended) / (end - begin), [(at - begun) * 1e3 for begun, at in ended]


class Hone:
    """What the search left in a plan, run by trtexec, which follows it."""

    def __init__(self, path, opened, folder, flags):
        self.folder = folder
        shapes = ",".join(f"{name}:{'x'.join(map(str, sizes))}" for name, sizes in opened.items())
        words = [PROGRAMS / "hone", "bench", path, "--throughput", "--json", "-o", folder / "plan", *flags, *([f"--shapes={shapes}"] if shapes else [])]
        done = subprocess.run(list(map(str, words)), capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        self.search = json.loads(done.stdout)

    def run(self, seconds):
        times = self.folder / "times.json"
        words = [PROGRAMS / "trtexec", f"--loadEngine={self.folder}/plan", f"--duration={seconds}", "--warmUp=300", f"--exportTimes={times}"]
        done = subprocess.run(list(map(str, words)), capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        rows = json.loads(times.read_text(encoding="utf-8"))
        lasted = max(row["endD2hMs"] for row in rows) - min(row["startH2dMs"] for row in rows)
        return len(rows) / lasted * 1e3, [row["latencyMs"] for row in rows]


def measure(model, options):
    """The row of a model."""
    path = file_of(model)
    with tempfile.TemporaryDirectory() as folder:
        openvino_engine = OpenVino(path)
        hone = Hone(path, openvino_engine.opened, pathlib.Path(folder), options.flags)
        rates, latencies = {"hone": [], "openvino": []}, {"hone": [], "openvino": []}
        for turn in range(options.rounds):
            for name in ("hone", "openvino") if turn % 2 == 0 else ("openvino", "hone"):
                rate, times = {"hone": hone, "openvino": openvino_engine}[name].run(options.seconds)
                rates[name].append(rate)
                latencies[name] += times
    chosen = hone.search["chosen"]
    ratio = statistics.median(ours / theirs for ours, theirs in zip(rates["hone"], rates["openvino"]))
    row = {"model": model, "ratio": ratio, "openvino_streams": openvino_engine.streams, "search": hone.search}
    for name, values in rates.items():
        row[name] = {"requests_per_second": statistics.median(values), "rounds": values, **percentiles(latencies[name])}
    ours = row["hone"]
    print(f"{model}: {ours['requests_per_second']:.1f} requests a second in {chosen['streams']} streams of {chosen['workers']}, p50 "
          f"{ours['p50_ms']:.2f} ms, p99 {ours['p99_ms']:.2f}; OpenVINO {row['openvino']['requests_per_second']:.1f} in {row['openvino_streams']}, "
          f"p50 {row['openvino']['p50_ms']:.2f} ms, p99 {row['openvino']['p99_ms']:.2f}: {ratio:.2f} times", flush=True)
    return row


def main():
    """A line for each model, the means, and all of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("throughput.json"))
    words, flags = sys.argv[1:], []
    if "--" in words:
        words, flags = words[:words.index("--")], words[words.index("--") + 1:]
    options = parser.parse_args(words)
    options.flags = flags
    rows = []
    result = {"machine": machine.describe(ROOT), "rows": rows}
    for model in options.models:
        rows.append(measure(model, options))
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")  # what there is, should the next one fail
    result["geometric_mean"] = math.exp(statistics.mean(math.log(row["ratio"]) for row in rows))
    result["worst_tail"] = max(row["hone"]["p99_ms"] / row["hone"]["p50_ms"] for row in rows)
    threads = all(row["search"]["chosen"]["streams"] * row["search"]["chosen"]["workers"] <= result["machine"]["cores"] for row in rows)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"geometric mean {result['geometric_mean']:.3f} (aim {AIM}), p99 over p50 at most {result['worst_tail']:.2f} (aim {TAIL})")
    return 0 if result["geometric_mean"] >= AIM and result["worst_tail"] <= TAIL and threads else 1


if __name__ == "__main__":
    sys.exit(main())
