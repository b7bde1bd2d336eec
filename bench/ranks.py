#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks divided over ranks: how near they come to the whole ones, how large a rank's plan is, how faults end, and on two cards what
they gain.

    bench/ranks.py models [NAME...]      models of the zoo: error of each rank against the whole, its plan's bytes; two processes on the CPU
    bench/ranks.py faults [--runs 100]   ranks that are missing, killed, stopped, with another plan or other shapes: how many end in a sentence
    bench/ranks.py cards [STEP...]       what two cards gain: ranks_cards.py
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]

import ranks  # noqa: E402
import ranks_cards  # noqa: E402
from onnx import TensorProto  # noqa: E402

HONE = ROOT / "build/release/bin/hone"
MODELS = ["hf_bert_base.ts", "hf_gpt2.dyn", "vit_b_16.dyn", "llama_160m_past.ts"]
SIZES = {"batch": 1, "seq": 16, "past": 16, "total": 32}


def hone(folder, *words):
    done = subprocess.run([HONE, *map(str, words)], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        sys.exit(f"hone {' '.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def sizes_of(path):
    """{input: (type, sizes)} of a model's file."""
    model = onnx.load(path, load_external_data=False)
    return {value.name: (value.type.tensor_type.elem_type, [SIZES.get(dim.dim_param, dim.dim_value or 1) for dim in value.type.tensor_type.shape.dim])
            for value in model.graph.input}


def share(array, sizes, rank):
    """What a rank has of an array: all of it, or a block along the axis that is smaller."""
    for axis, (whole, mine) in enumerate(zip(array.shape, sizes, strict=True)):
        if whole != mine:
            return np.split(array, whole // mine, axis)[rank]
    return array


def values_of(kind, name, sizes):
    draw = np.random.default_rng(len(name))
    if kind == TensorProto.FLOAT:
        return draw.standard_normal(sizes, np.float32)
    return np.ones(sizes, np.int64) if "mask" in name else draw.integers(0, 16, sizes)


def error_of(mine, whole, rank):
    """Relative, of what a rank has of an output."""
    whole = share(whole, mine.shape, rank)
    return float(np.linalg.norm(mine - whole) / np.linalg.norm(whole))


def models(arguments):
    """A line for each model; exit status 1 where a rank is off by more than 1e-5."""
    worst = 0
    for name in arguments.names or MODELS:
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as place:
            folder = pathlib.Path(place)
            subprocess.run([sys.executable, ROOT / "scripts/materialise.py", ROOT / "build/zoo", name], check=True, stdout=subprocess.DEVNULL)
            (folder / "model.onnx").symlink_to(ROOT / f"build/zoo/{name}.onnx")
            report = json.loads(hone(folder, "shard", "model.onnx", "--tp=2", "-o", "ranks", "--json"))
            whole_sizes, rank_sizes = sizes_of(folder / "model.onnx"), [sizes_of(folder / f"ranks/model.onnx.rank{rank}") for rank in range(2)]
            feeds = {input_: values_of(kind, input_, sizes) for input_, (kind, sizes) in whole_sizes.items()}
            for input_, array in feeds.items():
                np.save(folder / f"{input_}.npy", array)
                for rank in range(2):
                    np.save(folder / f"{input_}.{rank}.npy", share(array, rank_sizes[rank][input_][1], rank))

            def shapes(known):
                texts = [f"{input_}:{'x'.join(map(str, sizes))}" for input_, (_, sizes) in known.items()]
                return [f"--{end}Shapes={','.join(texts)}" for end in ("min", "opt", "max")]

            dynamic = any(dim.dim_param for value in onnx.load(folder / "model.onnx", load_external_data=False).graph.input
                          for dim in value.type.tensor_type.shape.dim)
            flags = ["--builderOptimizationLevel=0"]
            hone(folder, "build", "model.onnx", "-o", "whole.plan", *flags, *(shapes(whole_sizes) if dynamic else []))
            launch = ranks.Launch(folder, timeout=300)
            launch("build", "ranks/model.onnx", "-o", "model.plan", *flags, *(shapes(rank_sizes[0]) if dynamic else []))
            hone(folder, "run", "whole.plan", "-o", "whole", "-i", ",".join(f"{input_}:{input_}.npy" for input_ in feeds))
            launch("run", "model.plan", "-o", "out", "-i", ",".join(f"{input_}:{input_}.{{rank}}.npy" for input_ in feeds))
            errors = [error_of(array, np.load(folder / f"whole/{tensor}.npy"), rank) for rank, mine in enumerate(ranks.outputs(folder, "out"))
                      for tensor, array in mine.items()]
            sizes = [(folder / f"model.plan.rank{rank}").stat().st_size for rank in range(2)]
            whole = (folder / "whole.plan").stat().st_size
            worst = max(worst, *errors)
            print(f"{name}: error {max(errors):.2g} over {len(errors)} outputs, plan {max(sizes) / whole:.3f} of {whole / 1e6:.0f} MB, "
                  f"{report['pairs']} pairs, {report['alone']} alone, {report['tables']} tables, {len(report['whole'])} whole", flush=True)
            for row in report["whole"]:
                print(f"  whole: {row['node']} ({row['elements']} elements): {row['reason']}")
    return 0 if worst <= 1e-5 else 1


def faults(arguments):
    """So many of each kind; exit status 1 where one did not end in a sentence."""
    seed = arguments.seed or random.randrange(1 << 31)
    generator, told, kinds = random.Random(seed), 0, list(ranks.SENTENCES)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as place:
        plans = ranks.plans_for_faults(pathlib.Path(place))
        for run in range(arguments.runs):
            kind = kinds[run % len(kinds)]
            done = ranks.fault(plans, kind, generator)
            good = all(ranks.is_told(kind, status, text) for status, text in done)
            told += good
            if not good:
                print(f"run {run}, {kind}: {done}", flush=True)
    print(f"seed {seed}: {told} of {arguments.runs} faults ended in a sentence on every rank that was left")
    return 0 if told == arguments.runs else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("models")
    command.add_argument("names", nargs="*")
    command.set_defaults(run=models)
    command = commands.add_parser("faults")
    command.add_argument("--runs", type=int, default=100)
    command.add_argument("--seed", type=int)
    command.set_defaults(run=faults)
    ranks_cards.add(commands.add_parser("cards", description=ranks_cards.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter))
    arguments = parser.parse_args()
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
