#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is --best as fast as the fastest of the types that it may use? Builds each model in FP32, in BF16, in INT8 and with --best, all from
one timing cache, and runs the engines in turns, in short bursts. A ratio is the median over the rounds of (the type's time / that of --best); that
of the fastest type is the row's.

    best.py [build/release/bin/trtexec] --rounds 7 --json FILE
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

import numpy as np  # noqa: E402

import machine  # noqa: E402
import materialise  # noqa: E402
import quantized  # noqa: E402
import zoo  # noqa: E402
from before_after import shapes_of, trtexec  # noqa: E402
from compare import MODELS  # noqa: E402

TYPES = {"fp32": (), "bf16": ("--fp16", "--bf16"), "int8": ("--int8", "--calib=model.cache"), "best": ("--best", "--calib=model.cache")}


def calibrate(program, folder, path, name):
    """Scales from a few random inputs; false where nothing can be quantised."""
    np.savez(folder / "data.npz", **{key: np.concatenate([draw[key] for draw in quantized.draws(name)]) for key in quantized.draws(name)[0]})
    (folder / "model.cache").unlink(missing_ok=True)
    trtexec(program, folder, f"--onnx={path}", "--int8", "--calibData=data.npz", "--calib=model.cache", "--builderOptimizationLevel=0",
            "--skipInference", *shapes_of(name))
    return (folder / "model.cache").exists()


def median_ms(program, folder, name, kind):
    log = trtexec(program, folder, f"--loadEngine={kind}.plan", "--warmUp=100", "--duration=0.6", "--iterations=5", *shapes_of(name))
    return float(re.search(r"Compute Time: .*?median = ([\d.]+) ms", log)[1])


def compare(program, folder, name, options):
    path = materialise.materialise(name, folder / "zoo")
    types = dict(TYPES) if calibrate(program, folder, path, name) else {"fp32": (), "bf16": TYPES["bf16"], "best": ("--best",)}
    taken = {}
    for kind, flags in types.items():
        log = trtexec(program, folder, f"--onnx={path}", *flags, f"--saveEngine={kind}.plan", "--skipInference", "--timingCacheFile=t.cache",
                      f"--builderOptimizationLevel={options.level}", *shapes_of(name))
        taken.update(re.findall(r"(Best): (\S+) is taken", log))
    ms = {kind: [] for kind in types}
    for turn in range(options.rounds):
        for kind in list(types)[::1 if turn % 2 == 0 else -1]:
            ms[kind].append(median_ms(program, folder, name, kind))
    (folder / "t.cache").unlink()
    medians = {kind: statistics.median(times) for kind, times in ms.items()}
    fastest = min((kind for kind in types if kind != "best"), key=medians.get)
    row = {"model": name, "ms": medians, "taken": taken.get("Best", ""), "fastest": fastest,
           "ratio": statistics.median(single / best for single, best in zip(ms[fastest], ms["best"]))}
    print(f"{name}: " + ", ".join(f"{kind} {value:.3f}" for kind, value in medians.items()) +
          f" ms; {row['taken']} was taken, {fastest} / best {row['ratio']:.3f}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/bin/trtexec"))
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--level", type=int, default=3, help="--builderOptimizationLevel")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = [compare(str(pathlib.Path(options.program).absolute()), pathlib.Path(name), model, options) for model in options.models]
    ratios = [row["ratio"] for row in rows]
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, least {min(ratios):.3f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine.describe(ROOT), "level": options.level, "rounds": options.rounds, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
