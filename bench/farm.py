#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether an engine of a cache that many tasks measured is as fast as one that was tuned in place: both built of each model, run in turns.

    bench/farm.py MODEL.onnx... [--rounds 5] [--keys 4]
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin/hone"


def hone(*words):
    """What it printed."""
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, encoding="utf-8", check=True).stdout


def farmed(model, folder, size):
    """A plan of a cache that is merged of one part for every so many keys."""
    keys = hone("problems", model).splitlines()
    (folder / "parts").mkdir()
    for at in range(0, len(keys), size):
        (folder / "keys").write_text("\n".join(keys[at:at + size]))
        hone("tune", folder / "keys", f"--timingCacheFile={folder}/parts/{at}.jsonl")
    hone("cache", "merge", folder / "merged", folder / "parts")
    before = (folder / "merged").read_bytes()
    hone("build", model, "-o", folder / "farmed.plan", "--cache", folder / "merged", "--errorOnTimingCacheMiss")
    assert (folder / "merged").read_bytes() == before, "the build timed something"
    return folder / "farmed.plan"


def latency(plan):
    """The median of one query at a time, in ms."""
    return json.loads(hone("bench", plan, "-t", "1", "--json"))["latencyMs"]["median"]


def main():
    """A line for each model, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keys", type=int, default=4, help="of a task")
    arguments = parser.parse_args()
    ratios = []
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            hone("build", model, "-o", folder / "own.plan", "--cache", folder / "own")
            plans = folder / "own.plan", farmed(model, folder, arguments.keys)
            times = []
            for turn in range(arguments.rounds):
                found = {plan: latency(plan) for plan in (plans[::-1] if turn % 2 else plans)}
                times.append([found[plan] for plan in plans])
            own, farm = (statistics.median(each) for each in zip(*times))
            ratios.append(farm / own)
            print(f"{pathlib.Path(model).name}: tuned in place {own:.3f} ms, of the farm's cache {farm:.3f} ms: {farm / own:.3f} times", flush=True)
    print(f"geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.3f}")


if __name__ == "__main__":
    main()
