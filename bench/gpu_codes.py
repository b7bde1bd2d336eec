#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks in 8-bit codes on a CUDA GPU beside the same in fp16: times in turns.

Each model of the zoo is quantised by `hone quantize --method=minmax` on random values, to whole numbers (int8) or E4M3 (fp8), and built as
it is with --fp16 and quantised with --fp16 and --int8 or --fp8. A figure is the median of three turns of the GPU's own clock with CUDA graphs and without transfers. Behind the last
turn the layers' times are written beside the logs, where --logs says so.

    gpu_codes.py resnet50.ts:1 resnet50.ts:128 --level 3 --json out.json
    gpu_codes.py hf_bert_base.ts:32 --kinds fp8
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "bench")]

import gpu  # noqa: E402
import materialise  # noqa: E402
import numpy as np  # noqa: E402
import zoo  # noqa: E402


def draw(value, random):
    if value.vocabulary:
        return random.integers(0, value.vocabulary, value.shape(), value.dtype)
    return random.standard_normal(value.shape(), np.float32).astype(value.dtype)


def compare(spec, options, folder):
    name, batch = spec.rsplit(":", 1)
    model = materialise.materialise(name, folder)
    random = np.random.default_rng(5)
    samples = {value.name: draw(value, random) for value in zoo.inputs(name)}
    files = {"fp16": model} | {mode: gpu.quantise(options.bin / "hone", model, [samples], folder, mode, "--method=minmax") for mode in options.kinds}
    trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
    shapes = zoo.shape_text(name, int(batch))
    row = {"model": name, "batch": int(batch), "build_s": {}}
    for kind, file in files.items():
        start = time.time()
        log = trtexec(f"--onnx={file}", *gpu.FLAGS[kind], *[f"--{which}Shapes={shapes}" for which in ("min", "opt", "max")], f"--saveEngine={kind}.plan", "--skipInference", f"--builderOptimizationLevel={options.level}", "--verbose",
                      "--profilingVerbosity=detailed")
        row["build_s"][kind] = round(time.time() - start, 1)
        if options.logs:
            (options.logs / f"{spec}.{kind}.build.log").write_text(log)
    times = {kind: [] for kind in files}
    for turn in range(options.rounds):
        for kind, found in times.items():
            named = options.logs / f"{spec}.{kind}" if options.logs else None
            last = ["--dumpProfile", "--separateProfileRun", f"--exportProfile={named}.profile.json", f"--exportLayerInfo={named}.layers.json"] if named and turn + 1 == options.rounds else []
            found.append(gpu.median_ms(trtexec(f"--loadEngine={kind}.plan", f"--shapes={shapes}", "--useCudaGraph", "--noDataTransfers", "--warmUp=100", "--duration=1", "--iterations=20", *last)))
    row |= {kind: statistics.median(found) for kind, found in times.items()}
    return row | {"times_as_fast": {mode: round(row["fp16"] / row[mode], 3) for mode in options.kinds}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="NAME:BATCH, a model of the zoo")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--kinds", nargs="+", choices=gpu.QUANTISED, default=["int8"])
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--logs", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for spec in options.models:
        with tempfile.TemporaryDirectory() as folder:
            gpu.tell(rows, compare(spec, options, pathlib.Path(folder)), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
