#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone and torch.compile on the same GPU, in turns: 32 models and batches in fp16.

    gpu_compare.py prepare [ROW...]     compiles the PyTorch models side by side, so that a later run finds them in its cache
    gpu_compare.py run [ROW...] --json FILE [--write-docs]

ROW is MODEL:BATCH. An engine is built for one set of shapes. Its figure is the median of the GPU's own clock over single
inferences with CUDA graphs and without transfers; what PyTorch's is stands in gpu_torch.py. Both sides read images as fp16
channels last, as PyTorch wants them, and write fp16. The geometric mean is that of PyTorch's time over Hone's. Behind the timed
runs the engine is held against ONNX Runtime on the processor, in all the ways of `hone check`: `error` is the largest of its
results' errors, on two sets of inputs, and a row that is wrong has no ratio. `below 60 %` is the share of the time, layer by layer, of layers
that take more than 1/0.6 of what the card's measured ceilings allow.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "bench")]

import numpy as np  # noqa: E402

import gpu  # noqa: E402
import inference  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import zoo  # noqa: E402

# PyTorch's name, the zoo's (none: exported by PyTorch, where the zoo's has no open batch), batch.
ROWS = [("resnet50", "resnet50.ts", 1), ("resnet50", "resnet50.ts", 32), ("resnet50", "resnet50.ts", 128),
        ("hf_bert_base", "hf_bert_base.ts", 1), ("hf_bert_base", "hf_bert_base.ts", 32),
        ("vit_b_16", "vit_b_16.dyn", 1), ("vit_b_16", None, 32),
        ("efficientnet_b0", "efficientnet_b0.ts", 1), ("efficientnet_b0", "efficientnet_b0.ts", 32),
        ("yolov8n_like", "yolov8n_like.ts", 1), ("swin_t", "swin_t.ts", 1), ("swin_t", "swin_t.ts", 32),
        ("hf_gpt2", "hf_gpt2.dyn", 1), ("mobilenet_v3_large", "mobilenet_v3_large.ts", 1), ("resnet18", "resnet18.ts", 1),
        ("convnext_tiny", "convnext_tiny.ts", 32)]
ROWS += [(name, name + ".ts", batch) for name in ("mobilenet_v2", "shufflenet_v2_x1_0", "densenet121", "vgg16", "inception_v3", "squeezenet1_1", "alexnet", "hf_distilbert") for batch in (1, 32)]
NAMED = [("segformer", None, 1)]  # a figure of its own
BEGIN, END = "<!-- begin: bench/gpu_compare.py -->", "<!-- end: bench/gpu_compare.py -->"


def torch_process(model, batch, *arguments):
    return subprocess.Popen([sys.executable, str(ROOT / "bench/gpu_torch.py"), model, str(batch), *arguments],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Torch:
    """The other side of a comparison: begins at once, and waits for its turns when it is ready."""

    def __init__(self, model, batch):
        self.process = torch_process(model, batch)

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError("PyTorch failed: " + self.process.stderr.read()[-600:])

    def turn(self):
        self.process.stdin.write("time\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self):
        try:
            self.process.communicate("stop\n", timeout=30)
        except (subprocess.TimeoutExpired, OSError):
            self.process.kill()


def prepare(rows, jobs):
    def one(row):
        begin = time.time()
        process = torch_process(row[0], row[2])
        _, errors = process.communicate("stop\n", timeout=500)
        return f"{row[0]}:{row[2]} compiled in {time.time() - begin:.0f} s" if process.returncode == 0 else f"{row[0]}:{row[2]} FAILED {errors[-600:]}"

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for line in pool.map(one, rows):
            print(line, flush=True)


class Hone:
    """An engine of one row, built before its turns."""

    def __init__(self, trtexec, row, options):
        model, name, batch = row
        self.trtexec, self.shapes = trtexec, zoo.shape_text(name, batch) if name else ""
        path = materialise.materialise(name, trtexec.folder / "zoo") if name else self.exported(model, batch)
        profile = [f"--{point}Shapes={self.shapes}" for point in ("min", "opt", "max")] if self.shapes else []
        images = model not in ("hf_bert_base", "hf_distilbert", "hf_gpt2")
        formats = [*(["--inputIOFormats=fp16:hwc"] if images else []), "--outputIOFormats=fp16:chw"]
        begin = time.time()
        trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--fp16", "--profilingVerbosity=detailed", *formats, f"--builderOptimizationLevel={options.level}", *profile,
                *([f"--timingCacheFile={options.cache}"] if options.cache else []))
        self.build_s = round(time.time() - begin, 1)
        self.feeds, self.expected = reference(path, name, batch)
        os.unlink(path)

    def exported(self, model, batch):
        path = self.trtexec.folder / f"{model}.{batch}.onnx"
        process = torch_process(model, batch, "--export", str(path))
        _, errors = process.communicate(timeout=300)
        if process.returncode != 0:
            raise RuntimeError("PyTorch cannot export: " + errors[-600:])
        return path

    def run(self, seconds, *flags):
        return self.trtexec("--loadEngine=m.plan", *([f"--shapes={self.shapes}"] if self.shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100", f"--duration={seconds}",
                            "--iterations=20", *flags)

    def turn(self, seconds, *flags):
        return gpu.median_ms(self.run(seconds, *flags))

    def check(self):
        """(the largest error, what differs between inferences) behind the timed runs."""
        report, found = inference.check_plan(gpu.Hone(self.trtexec), "m.plan", self.feeds, self.shapes)
        errors = [inference.relative_error(outputs[name], want) for outputs, expected in zip(found, self.expected) for name, want in expected.items()]
        return max(errors), inference.differences(report)


def reference(path, name, batch):
    """Two sets of inputs as the engine takes them, and what ONNX Runtime makes of each."""
    session = inference.reference_session(path)
    if name:
        feeds = [{value.name: value.values(batch, draw) for value in zoo.inputs(name)} for draw in (0, 1)]
    else:
        (image,) = session.get_inputs()
        feeds = [{image.name: np.random.default_rng(draw).standard_normal(image.shape, np.float32)} for draw in (0, 1)]
    images = [{key: values.astype(np.float16) if values.ndim == 4 else values for key, values in each.items()} for each in feeds]
    outputs = [output.name for output in session.get_outputs()]
    exact = [{key: values.astype(feeds[0][key].dtype) for key, values in each.items()} for each in images]
    return images, [dict(zip(outputs, session.run(outputs, each))) for each in exact]


def compare(row, trtexec, options):
    torch = Torch(row[0], row[2])
    try:
        hone = Hone(trtexec, row, options)
        ready = torch.answer()
        own, other = [], []
        for _ in range(options.rounds):
            own.append(hone.turn(0.5, "--exportLayerInfo=layers.json"))
            other.append(torch.turn())
        far = gpu.far_from_ceiling(hone.run(0.2, "--dumpProfile", "--separateProfileRun"))
        error, differences = hone.check()
    finally:
        torch.stop()
    if error > gpu.TOLERANCES["fp16"] or differences:
        raise RuntimeError(f"wrong: error {error:.1e} {differences}")
    best = {key: statistics.median(turn[key] for turn in other) for key in ("ms", "single", "row")}
    return {"model": row[0], "batch": row[2], "hone_ms": statistics.median(own), "torch_ms": best["ms"], "ratio": best["ms"] / statistics.median(own),
            "hone_turns": own, "torch_turns": [turn["ms"] for turn in other], "torch_single_ms": best["single"], "torch_row_ms": best["row"],
            "error": error, "below_60_percent": far, "build_s": hone.build_s, "compile_s": ready["compile_s"], "sources": gpu.sources_of(trtexec.folder)}, ready


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def table(report):
    yield from (BEGIN, f"`{report['command']}` on {report['date']}", "", f"{report['gpu']}. {report['versions']}. torch.compile: reduce-overhead, channels-last. ms per batch, fp16.", "",
                "| model | batch | hone | torch.compile | torch / Hone | error | build, s | % below 60 % |", "|---|---:|---:|---:|---:|---:|---:|---:|")
    rows = [row for row in report["rows"] if "ratio" in row]
    for row in rows:
        yield f"| {row['model']} | {row['batch']} | {row['hone_ms']:.3f} | {row['torch_ms']:.3f} | {row['ratio']:.2f} | {row['error']:.1e} | {row['build_s']:.0f} | {row['below_60_percent']:.0f} |"
    yield f"| **geometric mean** | | | | **{report['geomean']:.2f}** | | | |"
    yield from ("", END)


def write_docs(report):
    path = ROOT / "docs/measurements.md"
    between = re.escape(BEGIN) + ".*?" + re.escape(END)
    path.write_text(re.sub(between, lambda _: "\n".join(table(report)), path.read_text(), flags=re.DOTALL))


def doctor(binaries):
    done = subprocess.run([str(binaries / "hone"), "doctor"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = [line.strip() for line in done.stdout.splitlines()]
    return next((version for line, version in zip(lines, lines[1:]) if line.startswith("backend cuda")), "")


def run(rows, options):
    report = {"command": machine.command("bench/gpu_compare.py"), "date": time.strftime("%Y-%m-%d"), "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
        for row in rows:
            try:
                result, ready = compare(row, trtexec, options)
                report |= {"gpu": ready["gpu"], "versions": f"PyTorch {ready['torch']}; {doctor(options.bin.resolve())}"}
                print(f"{row[0]}:{row[2]}: hone {result['hone_ms']:.4f} ms, torch {result['torch_ms']:.4f} ms, {result['ratio']:.2f}, error {result['error']:.1e}; built in {result['build_s']} s, {result['below_60_percent']} % of its time below 60 % of a ceiling; {result['sources']}", flush=True)
            except (RuntimeError, subprocess.TimeoutExpired, TypeError, KeyError, ValueError, AssertionError, OSError) as error:
                result = {"model": row[0], "batch": row[2], "failure": str(error)[:1000]}
                print(f"{row[0]}:{row[2]}: FAILED {error}", flush=True)
            report["rows"].append(result)
            ratios = [entry["ratio"] for entry in report["rows"] if "ratio" in entry]
            report["geomean"] = geometric_mean(ratios) if ratios else 0
            if options.json:
                options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"geometric mean {report['geomean']:.2f} over {len([r for r in report['rows'] if 'ratio' in r])} of {len(rows)} rows", flush=True)
    if options.write_docs:
        write_docs(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["prepare", "run"])
    parser.add_argument("rows", nargs="*", help="MODEL:BATCH; all 32 where none is named")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--cache", default="", help="timing cache to use and extend")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=5, help="PyTorch models compiled at a time")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_intermixed_args()
    rows = [row for row in ROWS + NAMED if f"{row[0]}:{row[2]}" in options.rows] if options.rows else ROWS
    if options.action == "prepare":
        prepare(rows, options.jobs)
    else:
        run(rows, options)


if __name__ == "__main__":
    main()
