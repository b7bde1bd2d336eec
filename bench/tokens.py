#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens one after another from language models with a cache, as a program makes them through the Python package: a prompt in one piece,
then a token at a time, the cache that a step gives being what the next is given. One plan for all lengths. ONNX Runtime beside it, a whole
text each in turns; the tokens have to be the same. With --bf16 Hone in bf16 takes turns with them: how many times faster than in f32 is it,
and how many of its tokens are the same?

    tokens.py [--models llama_160m_f32.ort llama_160m_past.ts] [--prompt 128] [--new 128] [--threads 2] [--rounds 3] [--bf16] [--json out.json]
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import resource
import statistics
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python"))]

import hone  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import zoo  # noqa: E402

LONGEST = 511
SIZES = {"batch": 1, "batch_size": 1, "kv_cache_dim": 64}


def sized(sizes, **open_sizes):
    return [open_sizes.get(size, SIZES.get(size, size)) if isinstance(size, str) else size for size in sizes]


def shapes_at(inputs, past, new):
    named = {name: value for names, value in ((("past", "past_sequence_length"), past), (("seq", "sequence_length"), new),
                                               (("total", "total_sequence_length"), past + new)) for name in names}
    return {name: sized(sizes, **named) for name, sizes in inputs.items()}


class OfHone:
    """One plan: a prompt into an empty cache, and a token behind 1 to 511."""

    def __init__(self, path, inputs, threads, flags):
        device = hone.Device(f"cpu/{threads}")
        prompt = {name: tuple(tuple(shapes_at(inputs, 0, new)[name]) for new in (1, 128, LONGEST)) for name in inputs}
        token = {name: tuple(tuple(shapes_at(inputs, past, 1)[name]) for past in (1, 256, LONGEST)) for name in inputs}
        plan = hone.build(path, flags, device, profiles=[prompt, token])
        self.engine = plan.engine(device)
        self.contexts = [self.engine.context(profile) for profile in range(2)]

    def step(self, feeds):
        return self.contexts[0 if feeds["input_ids"].shape[1] > 1 else 1].run(feeds)


class OfOnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]

    def step(self, feeds):
        return dict(zip(self.names, self.session.run(None, feeds)))


def text(engine, inputs, prompt, new):
    """The tokens, the seconds of the prompt, and those of each step behind it."""
    shapes = shapes_at(inputs, 0, len(prompt))
    caches = {name: np.zeros(shape, np.float32) for name, shape in shapes.items() if name.startswith("past")}
    tokens, seconds, given = [], [], np.array([prompt], np.int64)
    for step in range(new + 1):
        past = 0 if step == 0 else len(prompt) + step - 1
        feeds = {"input_ids": given, "attention_mask": np.ones((1, past + given.shape[1]), np.int64), **caches}
        if "position_ids" in inputs:
            feeds["position_ids"] = np.arange(past, past + given.shape[1], dtype=np.int64)[None]
        start = time.perf_counter()
        found = engine.step(feeds)
        seconds.append(time.perf_counter() - start)
        tokens.append(int(found["logits"][0, -1].argmax()))
        given = np.array([tokens[-1:]], np.int64)
        caches = {name: found[name.replace("past_key_values", "present").replace("past.", "present.")] for name in caches}
    return tokens, seconds[0], seconds[1:]


FLAGS = {"hone": ["--noTF32"], "hone_bf16": ["--bf16"]}


def serve(kind, name, path, threads, pipe):
    """In a process of its own, whose workers wait for work in nobody else's time: a text and the memory so far for each prompt."""
    inputs = {value.name: value.dims for value in zoo.inputs(name)}
    engine = OfHone(path, inputs, threads, FLAGS[kind]) if kind in FLAGS else OfOnnxRuntime(path, threads)
    while (asked := pipe.recv()) is not None:
        pipe.send((*text(engine, inputs, *asked), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def measure(name, options):
    path = str(materialise.materialise(name, ROOT / "build/zoo"))
    prompt = np.random.default_rng(5).integers(1, 30000, options.prompt).tolist()
    runs, engines, spawn = {}, {}, multiprocessing.get_context("spawn")
    for kind in ("hone", "onnxruntime", *(["hone_bf16"] if options.bf16 else [])):
        engines[kind], other = spawn.Pipe()
        spawn.Process(target=serve, args=(kind, name, path, options.threads, other), daemon=True).start()
        runs[kind] = []
    for _ in range(options.rounds + 1):  # the first warms up
        for kind, pipe in engines.items():
            time.sleep(0.5)
            pipe.send((prompt, options.new))
            runs[kind].append(pipe.recv())
    for pipe in engines.values():
        pipe.send(None)
    row = {"model": name, "equal": len({tuple(tokens) for kind in ("hone", "onnxruntime") for tokens, *_ in runs[kind]}) == 1}
    for kind, found in runs.items():
        warm = found[1:]
        steps = [seconds for _, _, each, _ in warm for seconds in each]
        row[kind] = {"prompt_ms": statistics.median(first for _, first, *_ in warm) * 1e3, "token_ms": statistics.median(steps) * 1e3,
                     "slowest_ms": statistics.median(max(each) for _, _, each, _ in warm) * 1e3, "grown_mib": warm[-1][3] - found[0][3],
                     "tokens_per_second": statistics.median(len(each) / (first + sum(each)) for _, first, each, _ in warm)}
    row["ratio"] = row["hone"]["tokens_per_second"] / row["onnxruntime"]["tokens_per_second"]
    if options.bf16:
        row["bf16_gain"] = row["hone_bf16"]["tokens_per_second"] / row["hone"]["tokens_per_second"]
        row["bf16_same"] = sum(own == wide for own, wide in zip(runs["hone_bf16"][0][0], runs["hone"][0][0])) / (options.new + 1)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["llama_160m_f32.ort", "llama_160m_past.ts"])
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bf16", action="store_true", help="Hone in bf16 too")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for name in options.models:
        rows.append(row := measure(name, options))
        print(f"{name}: " + ", ".join(f"{kind} {row[kind]['tokens_per_second']:.1f} tokens/s (prompt {row[kind]['prompt_ms']:.1f} ms, token "
                                      f"{row[kind]['token_ms']:.2f}, slowest {row[kind]['slowest_ms']:.2f})" for kind in row if isinstance(row[kind], dict)) +
              f"; {row['ratio']:.2f} times; tokens {'equal' if row['equal'] else 'DIFFER'}; memory grew by {row['hone']['grown_mib']:.0f} MiB" +
              (f"; bf16 {row['bf16_gain']:.2f} times f32, {row['bf16_same']:.0%} of its tokens the same" if options.bf16 else ""), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine.describe(ROOT), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
