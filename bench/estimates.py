#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a build that times nothing loses: for each kind of layer how often its choice is the fastest, and how much slower it is.

Every layer's offers are timed in several builds with caches of their own, on one thread; an offer's time is the least of its times, because
a neighbour of the machine can only add to it. A build without a budget then says in which order a program prefers them: `before` and `after`
may be two programs. Chosen is the first of that order, whatever it costs to bring its operands into its layout.
"""

import argparse
import collections
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

import materialise  # noqa: E402

MODELS = "resnet18.ts,mobilenet_v3_large.ts,convnext_tiny.ts,swin_t.ts,hf_bert_base.ts"
FLAGS = {"f32": [], "bf16": ["--bf16"]}


def manifest(program, model, flags, folder):
    """What a plan says of itself."""
    plan = pathlib.Path(folder) / "estimates.plan"
    command = [program, f"--onnx={model}", "--builderOptimizationLevel=5", "--skipInference", f"--saveEngine={plan}", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "HONE_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}")
    with plan.open("rb") as file:
        size = struct.unpack("<16xQ24x", file.read(48))[0]
        result = json.loads(file.read(size))
    plan.unlink()
    return result


def kind_of(step):
    """The kind of layer that a step is, with convolutions of one channel apart."""
    details = step["details"]
    if step["kind"] == "Convolution" and details.get("Groups", 1) > 1 and details["Groups"] == details.get("OutMaps"):
        return "Convolution, depthwise"
    return step["kind"]


def offers_of(plan):
    """For each layer its kind and its offers with their times, in the program's order."""
    kinds = {step["name"]: kind_of(step) for profile in plan["profiles"] for step in profile["steps"]}
    return {record["layer"]: (kinds[record["layer"]], {offer["tactic"]: offer["ms"] for offer in record["candidates"] if offer["ms"] >= 0})
            for record in plan["log"] if record["layer"] in kinds}


def times_of(options, model, name, precision, folder):
    """The least time of each offer of each layer."""
    least = collections.defaultdict(dict)
    for turn in range(1, options.rounds + 1):
        cache = options.folder / f"{name}.{precision}.{turn}.cache"
        flags = [*FLAGS[precision], f"--timingCacheFile={cache}", "--avgTiming=3"]
        for layer, (_, offers) in offers_of(manifest(options.after, model, flags, folder)).items():
            for tactic, ms in offers.items():
                least[layer][tactic] = min(ms, least[layer].get(tactic, ms))
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS.split(","))
    parser.add_argument("--precisions", type=lambda text: text.split(","), default=list(FLAGS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", default=ROOT / "build/release/bin/trtexec", help="a trtexec, of an older build for instance")
    parser.add_argument("--after", default=ROOT / "build/release/bin/trtexec")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/estimates", help="of the timing caches, which are used again")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    losses = collections.defaultdict(list)  # by precision and kind: slower than the fastest by, before and after
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        for name in options.models:
            model = materialise.materialise(name, ROOT / "build/zoo")
            for precision in options.precisions:
                least = times_of(options, model, name, precision, folder)
                untimed = [*FLAGS[precision], "--noBuilderCache", "--buildBudget=0"]
                before, after = (offers_of(manifest(program, model, untimed, folder)) for program in (options.before, options.after))
                for layer, times in least.items():
                    if len(times) < 2 or min(times.values()) <= 0:
                        continue
                    first = [next(tactic for tactic in each[layer][1] if tactic in times) for each in (before, after)]
                    losses[precision, after[layer][0]].append([times[tactic] / min(times.values()) for tactic in first])
    print("| precision, layer | layers | fastest chosen, before | after | slower than the fastest, before | after |\n|---|---:|---:|---:|---:|---:|")
    for (precision, kind), rows in sorted(losses.items()):
        hits = [sum(loss[i] < 1.02 for loss in rows) / len(rows) for i in (0, 1)]
        means = [math.exp(sum(math.log(loss[i]) for loss in rows) / len(rows)) for i in (0, 1)]
        print(f"| {precision}, {kind} | {len(rows)} | {hits[0]:.0%} | {hits[1]:.0%} | {means[0]:.3f} | {means[1]:.3f} |")


if __name__ == "__main__":
    main()
