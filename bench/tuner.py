#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much luck is in a build: engines of one model from several builds without a timing cache, timed in turns.

An engine's figure is the median over the rounds of its time (the median latency that trtexec prints) over the round's median;
what is reported is the slowest engine's figure over the fastest's, less one. The first build's plan takes part as often again as
there are builds: what these are apart is the machine's noise, the floor under the other figure.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

import machine  # noqa: E402
import materialise  # noqa: E402

TRTEXEC = ROOT / "build/release/bin/trtexec"


def trtexec(*arguments):
    done = subprocess.run([TRTEXEC, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"trtexec {' '.join(map(str, arguments))} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def build(model, plan):
    start = time.monotonic()
    trtexec(f"--onnx={model}", f"--saveEngine={plan}", "--skipInference")
    return time.monotonic() - start


def median_ms(plan, seconds):
    log = trtexec(f"--loadEngine={plan}", f"--duration={seconds}", "--warmUp=100")
    return float(re.search(r"Latency: .*?median = ([\d.]+) ms", log)[1])


def interleaved(plans, options):
    """The times of each plan, a list of rounds each; who begins changes."""
    times = [[] for _ in plans]
    for turn in range(options.rounds):
        for i in range(len(plans)):
            at = (turn + i) % len(plans)
            times[at].append(median_ms(plans[at], options.burst))
    return times


def apart(figures):
    return max(figures) / min(figures) - 1


def measure(name, folder, options):
    model = materialise.materialise(name, ROOT / "build/zoo")
    plans = [folder / f"{i}.plan" for i in range(options.builds)]
    build_s = [build(model, plan) for plan in plans]
    times = interleaved(plans + [plans[0]] * options.builds, options)
    middles = [statistics.median(each) for each in zip(*times)]
    figures = [statistics.median(ms / middle for ms, middle in zip(each, middles)) for each in times]
    medians = [statistics.median(each) for each in times[:options.builds]]
    spread, floor = apart(figures[:options.builds]), apart(figures[options.builds:])
    print(f"{name}: engines {', '.join(f'{ms:.3f}' for ms in medians)} ms, {100 * spread:.1f} % apart; one engine {options.builds} times "
          f"{100 * floor:.1f} %; built in {', '.join(f'{s:.1f}' for s in build_s)} s", flush=True)
    return {"build_s": build_s, "ms": medians, "rounds_ms": times, "apart": spread, "floor": floor}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=["resnet50.ts", "mobilenet_v3_large.ts"])
    parser.add_argument("--builds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--burst", type=float, default=0.4, help="seconds of each turn")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    report = {"machine": machine.describe(ROOT), "command": "bench/tuner.py " + " ".join(sys.argv[1:]), "models": {}}
    print(machine.sentence(report["machine"]))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            report["models"][name] = measure(name, pathlib.Path(folder), options)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
