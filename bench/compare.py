#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hone, ONNX Runtime and OpenVINO, and PyTorch's inductor where it is asked for (--engines), side by side on the models of the zoo:
equal threads, f32 or with matmuls of bf16.

Every engine holds the model in a process of its own, bound to the same cores, and they take turns in short bursts, so
that whatever the machine does meanwhile happens to all of them. The processes that are not measured are stopped
(SIGSTOP): no engine's idle threads spin at another's cost. A figure is the median over the bursts' medians; a ratio is
the median over the rounds of (better peer / Hone), above 1 where Hone is faster.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

import documents  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import quantized  # noqa: E402
import zoo  # noqa: E402

MODELS = ["resnet18.ts", "resnet50.ts", "mobilenet_v2.ts", "mobilenet_v3_large.ts", "efficientnet_b0.ts",
          "densenet121.ts", "vgg16.ts", "unet.ts", "yolov8n_like.ts", "vit_b_16.dyn", "swin_t.ts", "convnext_tiny.ts",
          "hf_bert_base.ts", "hf_gpt2.dyn", "hf_whisper_encoder.ts", "lstm_tagger.ts"]
PEERS = ["onnxruntime", "openvino", "inductor"]
ENGINES = ["hone", "onnxruntime", "openvino"]
PARTIAL = ["inductor"]  # what it cannot read is measured without it
QUANTIZED = ["resnet50.ts", "mobilenet_v2.ts", "mobilenet_v3_large.ts", "efficientnet_b0.ts", "yolov8n_like.ts", "hf_bert_base.ts",
             "hf_distilbert.ts", "vit_b_16.dyn"]
# --isa, as each engine's environment says it. ONNX Runtime has no such variable and takes what the processor has.
CAPS = {"avx512": {"HONE_CPU_ISA": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"},
        "avx2": {"HONE_CPU_ISA": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2_VNNI"}}
UNCAPPED = ["onnxruntime"]
# Against ONNX Runtime on the same file, norm of the difference over the norm: where values are quantised, each that falls to
# another side of a step shows in what follows.
TOLERANCES = {"f32": 1e-4, "bf16": 5e-2, **{kind: 0.3 for kind in quantized.KINDS}}


class Worker:
    """An engine in its own process; stopped unless it is asked for something."""

    def __init__(self, engine, name, path, threads, batch, options, cores):
        precision = options.precision if options.precision == "bf16" else "f32"
        command = [sys.executable, ROOT / "bench/worker.py", engine.removesuffix("_f32"), name, path, str(threads), str(batch), precision, options.hint]
        self.engine = engine
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(["taskset", "-c", ",".join(map(str, cores)), *command], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.ready_s = self.answer()["ready"]
        self.stop()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise RuntimeError(f"{self.engine} failed: " + "\n".join(self.errors.read().splitlines()[-6:]))
        return json.loads(line)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def ask(self, command):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.answer()
        self.stop()
        return answer

    def close(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()


def relative_error(found, expected):
    total = lambda arrays: math.sqrt(sum(float(np.sum(np.square(array, dtype=np.float64))) for array in arrays))
    return total([a - b for a, b in zip(found, expected)]) / max(total(expected), 1e-30)


def outputs(worker, folder):
    path = folder / f"{worker.engine}.npz"
    worker.ask(f"save {path}")
    with np.load(path) as arrays:
        return [arrays[key] for key in arrays]


def spread(values):
    """Distance between the quartiles over the median: what repeating the measurement moves."""
    if len(values) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / middle


def measure(name, engines, threads, batch, cores, options):
    """{engine: {"ms", "spread", "bursts", "ready_s"}, "errors": {…}} of one model."""
    floats = materialise.materialise(name, ROOT / "build/zoo")
    path = quantized.quantized(name, options.precision, ROOT / "build/zoo") if options.precision in quantized.KINDS else floats
    with contextlib.ExitStack() as stack:
        workers = {}
        for engine in engines:
            try:
                workers[engine] = Worker(engine, name, floats if engine == "hone_f32" else path, threads, batch, options, cores)
            except RuntimeError as error:
                if engine not in PARTIAL:
                    raise
                print(f"{name:24}without {engine}: {str(error).splitlines()[-1]}")
                continue
            stack.callback(workers[engine].close)
        engines = list(workers)
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        expected = outputs(workers["onnxruntime"], folder) if "onnxruntime" in workers else None
        errors = {engine: relative_error(outputs(worker, folder), expected)
                  for engine, worker in workers.items() if expected is not None and engine not in ("onnxruntime", "hone_f32", "weights")}
        bursts = {engine: [] for engine in engines}
        for turn in range(options.rounds):
            first = turn % len(engines)
            for engine in engines[first:] + engines[:first]:
                times = workers[engine].ask(f"run {options.burst} 3")["ms"]
                bursts[engine].append(statistics.median(times))
        return {"errors": errors, **{engine: {"ms": statistics.median(values), "best_ms": min(values),
                                              "spread": spread(values), "bursts": values,
                                              "ready_s": workers[engine].ready_s}
                                     for engine, values in bursts.items()}}


def add_ratio(result):
    """The better peer, and how much faster than it Hone is, round by round."""
    if "hone" in result and "weights" in result:
        result["times_weights"] = statistics.median(own / read for read, own in zip(result["weights"]["bursts"], result["hone"]["bursts"]))
    peers = [peer for peer in PEERS if peer in result]
    if "hone" not in result or not peers:
        return
    better = min(peers, key=lambda peer: result[peer]["ms"])
    result["better"] = better
    if "hone_f32" in result:
        result["gain"] = statistics.median(wide / own for wide, own in zip(result["hone_f32"]["bursts"], result["hone"]["bursts"]))
    result["ratio"] = statistics.median(peer / own for peer, own in zip(result[better]["bursts"], result["hone"]["bursts"]))


def row(name, result, engines, tolerance):
    times = "".join(f"{result[engine]['ms']:12.3f} ±{100 * result[engine]['spread']:4.1f}%" if engine in result else f"{'-':>19}" for engine in engines)
    ratio = f"{result['ratio']:9.2f} {result['better']}" if "ratio" in result else ""
    wrong = "".join(f"  {engine} differs by {error:.1e}" for engine, error in result["errors"].items() if not error <= tolerance)
    gain = f"  {result['gain']:.2f} times Hone in f32" if "gain" in result else ""
    reading = f"  {result['times_weights']:.2f} times reading its weights" if "times_weights" in result else ""
    return f"{name:24}{times}{ratio}{gain}{reading}{wrong}"


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def compare(threads, batch, options, keep):
    """{"threads", "batch", "models": {name: result}, "geomean", "failed": {name: why}}; `keep` is called after each model."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    print(f"\n{threads} thread{'s' if threads > 1 else ''}, ms per inference, batch {batch}, {options.precision}, {options.hint}")
    if options.isa:
        free = [engine for engine in UNCAPPED if engine in options.engines]
        print(f"instructions up to {options.isa}" + (f", but for {', '.join(free)}, which cannot be told" if free else ""))
    print(f"{'':24}" + "".join(f"{engine:>19}" for engine in options.engines) + "    ratio to the better peer")
    results, failed = {}, {}
    summary = {"threads": threads, "batch": batch, "precision": options.precision, "hint": options.hint, "isa": options.isa, "models": results, "failed": failed}
    for name in options.models:
        if batch > 1 and not zoo.has_dynamic_batch(name):
            print(f"{name:24}its batch is fixed")
            continue
        try:
            results[name] = measure(name, options.engines, threads, batch, cores, options)
        except RuntimeError as error:
            failed[name] = str(error)
            print(f"{name:24}{error}")
            continue
        add_ratio(results[name])
        print(row(name, results[name], options.engines, TOLERANCES[options.precision]), flush=True)
        keep(summary)
    ratios = [result["ratio"] for result in results.values() if "ratio" in result]
    if ratios:
        summary.update(geomean=geometric_mean(ratios), lowest=min(ratios))
        print(f"{'geometric mean':24}{summary['geomean']:.3f} over {len(ratios)} models, lowest {summary['lowest']:.2f}")
    return summary


def arguments():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    split = lambda text: text.split(",")
    counts = lambda text: [int(count) for count in split(text)]
    parser.add_argument("--models", type=split, help="comma-separated names of the zoo; default: 16 of them, or 8 that are quantised")
    parser.add_argument("--engines", type=split, help="which of " + ",".join(["hone", *PEERS]) + ", and hone_f32 beside quantised models; "
                             "default: all but inductor, which needs `pip install torch onnx2torch`")
    parser.add_argument("--threads", type=counts, default=[len(os.sched_getaffinity(0))], help="comma-separated counts; default: all cores")
    parser.add_argument("--batch", type=counts, default=[1], help="comma-separated sizes; models whose batch is fixed are left out above 1")
    parser.add_argument("--precision", choices=TOLERANCES, default="f32",
                        help="bf16: where Hone and OpenVINO may use it (ONNX Runtime has no such kernels and stays at f32); "
                             "others: what ONNX Runtime's quantiser makes of the models")
    parser.add_argument("--isa", choices=CAPS, help="highest instruction set for engines that can be told: avx512 has VNNI, but no matrix tiles (AMX)")
    parser.add_argument("--hint", choices=["latency", "throughput"], default="latency",
                        help="throughput: as many streams as threads (OpenVINO: as many as its hint of that name takes)")
    parser.add_argument("--token", type=int, metavar="PAST",
                        help="of language models with a cache: one token with so many in the cache, beside what reading the weights takes")
    parser.add_argument("--rounds", type=int, default=15, help="bursts of each engine")
    parser.add_argument("--burst", type=float, default=0.25, help="seconds of each burst")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/bench/compare.json", help="where the figures go")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/measurements.md too")
    options = parser.parse_args()
    if options.token is not None:
        os.environ.update(ZOO_PAST=str(options.token), ZOO_NEW="1")  # read by the workers
    os.environ.update(CAPS.get(options.isa, {}))  # read by the workers
    is_quantized = options.precision in quantized.KINDS
    options.models = options.models or (QUANTIZED if is_quantized else MODELS)
    options.engines = options.engines or ([*ENGINES, "hone_f32"] if is_quantized else ENGINES)
    if options.token is not None:
        options.engines = [*options.engines, "weights"]
    return options


def main():
    options = arguments()
    report = {"machine": machine.describe(ROOT), "command": machine.command("./dev bench")}
    print(machine.sentence(report["machine"]))
    runs = []
    options.json.parent.mkdir(parents=True, exist_ok=True)

    def keep(unfinished=None):
        report["runs"] = runs + ([unfinished] if unfinished else [])
        report["machine"]["load_after"] = os.getloadavg()[0]
        options.json.write_text(json.dumps(report, indent=1) + "\n")

    for threads, batch in [(threads, batch) for batch in options.batch for threads in options.threads]:
        runs.append(compare(threads, batch, options, keep))
        keep()
    print(f"\nfigures: {options.json}")
    if options.write_docs:
        documents.write_measurements(ROOT / "docs/measurements.md", report)
    return 1 if any(run["failed"] for run in report["runs"]) else 0


if __name__ == "__main__":
    sys.exit(main())
