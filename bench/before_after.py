#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two versions of Hone in turns on one device: is the new one slower, and does it choose the same tactics from the same times?

The old program tunes each model and leaves its timing cache; the new one builds from that cache, whose keys are brought to its own
versions of the kernels first, so that times measured once serve both. Then both engines run in turns, in short bursts. A ratio
is the median over the rounds of (old / new), above 1 where the new one is faster.

    before_after.py OLD/trtexec build/release/bin/trtexec --rounds 7
    before_after.py OLD/trtexec build/release/bin/trtexec --models resnet50.ts --flags=--bf16
    before_after.py OLD/trtexec build/release/bin/trtexec --models swin_t.ts:32 --level 3 --flags=--fp16 --both=--device=cuda:0 --run=--useCudaGraph --run=--noDataTransfers
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

import materialise  # noqa: E402
import zoo  # noqa: E402
from compare import MODELS  # noqa: E402

VERSIONS = re.compile(r' \| ([^|"]*)","ms"')
# What tactics were called in f0eed88 and are called now: parameters that have one value left have no name.
WORDS = {"prefetch=1, ": "", ", prefetch=1)": ")", "prefetch=1,": "", ",prefetch=1)": ")", "cublaslt.product(": "cublaslt.matmul("}


def trtexec(program, folder, *arguments):
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program} failed: {done.stdout[-800:]}")
    return done.stdout


def versions_of(program, folder, flags):
    """What the keys of a program's timing cache end in."""
    trtexec(program, folder, f"--onnx={materialise.materialise('lstm_tagger.ts', folder / 'zoo')}", f"--shapes={zoo.shape_text('lstm_tagger.ts', 1)}",
            "--skipInference", "--timingCacheFile=versions.cache", *flags)
    text = (folder / "versions.cache").read_text()
    (folder / "versions.cache").unlink()
    return VERSIONS.search(text)[1]


def file_of(model, folder):
    return pathlib.Path(model).absolute() if model.endswith(".onnx") else materialise.materialise(model.partition(":")[0], folder / "zoo")


def shapes_of(model):
    if model.endswith(".onnx"):
        return []
    name, _, batch = model.partition(":")
    shapes = zoo.shape_text(name, int(batch or 1))
    return [f"--shapes={shapes}"] if shapes else []


def build(program, folder, model, side, options):
    """The tactic of each layer, as tuned."""
    trtexec(program, folder, f"--onnx={file_of(model, folder)}", f"--saveEngine={side}.plan", "--skipInference", f"--builderOptimizationLevel={options.level}",
            "--profilingVerbosity=detailed", f"--exportLayerInfo={side}.json", f"--timingCacheFile={side}.cache", *options.both, *options.flags, *shapes_of(model))
    return [layer["TacticName"] for layer in json.loads((folder / f"{side}.json").read_text())["Layers"] if "TacticName" in layer]


def median_ms(program, folder, model, side, options):
    log = trtexec(program, folder, f"--loadEngine={side}.plan", "--warmUp=100", "--duration=0.6", "--iterations=5", *options.both, *options.run, *shapes_of(model))
    return float(re.search(r"Compute Time: .*?median = ([\d.]+) ms", log)[1])


def renamed(text):
    """In the words of the new program."""
    for old, new in WORDS.items():
        text = text.replace(old, new)
    return text


def keys(path):
    return set(re.findall(r'"key":"(.*?)","ms"', path.read_text()))


def compare(model, programs, versions, folder, options):
    layers = {"old": build(programs["old"], folder, model, "old", options)}
    layers["old"] = [renamed(tactic) for tactic in layers["old"]]
    (folder / "new.cache").write_text(renamed((folder / "old.cache").read_text()).replace(f' | {versions["old"]}","ms"', f' | {versions["new"]}","ms"'))
    known = keys(folder / "new.cache")
    layers["new"] = build(programs["new"], folder, model, "new", options)
    fresh = len(keys(folder / "new.cache") - known)
    ms = {"old": [], "new": []}
    for turn in range(options.rounds):
        for side in ("old", "new") if turn % 2 == 0 else ("new", "old"):
            ms[side].append(median_ms(programs[side], folder, model, side, options))
    for path in folder.glob("*.cache"):
        path.unlink()
    ratio = statistics.median(old / new for old, new in zip(ms["old"], ms["new"]))
    others = sum(old != new for old, new in zip(layers["old"], layers["new"])) if len(layers["old"]) == len(layers["new"]) else len(layers["new"])
    same = f"OTHER TACTICS in {others} of" if others else "same tactics in"
    print(f"{model}: {statistics.median(ms['old']):.3f} and {statistics.median(ms['new']):.3f} ms, old / new {ratio:.3f}, {same} {len(layers['new'])} layers, "
          f"{fresh} of {len(known) + fresh} times that only the new one has", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--models", nargs="+", default=MODELS, help="NAME or NAME:BATCH of the zoo, or a file of fixed shapes")
    parser.add_argument("--level", type=int, default=1, help="--builderOptimizationLevel")
    parser.add_argument("--flags", action="append", default=[], help="of the builds: --flags=--bf16")
    parser.add_argument("--run", action="append", default=[], help="of the inferences: --run=--useCudaGraph")
    parser.add_argument("--both", action="append", default=[], help="of both: --both=--device=cuda:0")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    programs = {"old": str(pathlib.Path(options.old).absolute()), "new": str(pathlib.Path(options.new).absolute())}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        versions = {side: versions_of(program, folder, options.both) for side, program in programs.items()}
        ratios = [compare(model, programs, versions, folder, options) for model in options.models]
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
