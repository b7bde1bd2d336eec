#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One more token of a language model on a CUDA GPU, 512 in its cache: Hone in fp16 and with int4 weights, and torch.compile in fp16 with
transformers' StaticCache, in turns. All of the step is in it: Hone copies the cache into the one of the next token, torch writes into its own.

    gpu_tokens.py [--batch 1 32] [--level 3] [--rounds 3] [--json out.json]

Figures are those of gpu_compare.py: medians of the GPU's own clock, CUDA graphs, no transfers. `error` is from ONNX Runtime's result in
FP32 for the same file, over the norm of it.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

os.environ |= {"ZOO_PAST": "512", "ZOO_NEW": "1"}  # read by zoo, here and in PyTorch's process
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "bench")]

import gpu  # noqa: E402
import gpu_compare  # noqa: E402
import inference  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import zoo  # noqa: E402

FILES = {"fp16": "llama_160m_f32.ort", "int4": "llama_160m_int4.ort"}


class Engine:
    """An engine for one batch, its cache in fp16."""

    def __init__(self, options, name, batch):
        self.folder = tempfile.TemporaryDirectory()
        self.trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, self.folder.name)
        self.shapes = zoo.shape_text(name, batch)
        inputs = zoo.inputs(name)
        formats = ",".join(("int64" if value.dtype.kind == "i" else "fp16") + ":chw" for value in inputs)
        path = materialise.materialise(name, ROOT / "build/zoo")
        self.trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--fp16", "--profilingVerbosity=detailed", f"--inputIOFormats={formats}",
                     "--outputIOFormats=fp16:chw", f"--builderOptimizationLevel={options.level}", *[f"--{point}Shapes={self.shapes}" for point in ("min", "opt", "max")])
        feeds = {value.name: value.values(batch) for value in inputs}
        session = inference.reference_session(path)
        names = [output.name for output in session.get_outputs()]
        wanted = dict(zip(names, session.run(names, feeds)))
        given = {key: value.astype("float16") if value.dtype.kind == "f" else value for key, value in feeds.items()}
        found = inference.run_plan(self.trtexec, "m.plan", given, names, self.shapes, runs=3)
        self.error = max(float(inference.relative_error(found[key], value)) for key, value in wanted.items())

    def run(self, seconds, *flags):
        return self.trtexec("--loadEngine=m.plan", f"--shapes={self.shapes}", "--useCudaGraph", "--noDataTransfers", "--warmUp=100", f"--duration={seconds}", "--iterations=20", *flags)

    def turn(self):
        return gpu.median_ms(self.run(0.5))

    def profile(self, path):
        path.write_text(self.run(0.2, "--dumpProfile", "--separateProfileRun"))


def measure(batch, options):
    torch = gpu_compare.Torch("llama_160m_token", batch)
    try:
        engines = {kind: Engine(options, name, batch) for kind, name in FILES.items()}
        ready = torch.answer()
        turns = {kind: [] for kind in [*FILES, "torch"]}
        for _ in range(options.rounds):
            for kind, engine in engines.items():
                turns[kind].append(engine.turn())
            turns["torch"].append(torch.turn()["ms"])
        if options.logs:
            for kind, engine in engines.items():
                engine.profile(options.logs / f"token-{kind}-{batch}.log")
    finally:
        torch.stop()
    ms = {kind: statistics.median(values) for kind, values in turns.items()}
    row = {"batch": batch, "ms": ms, "turns": turns, "ratio": {kind: ms["torch"] / ms[kind] for kind in FILES}, "error": {kind: engines[kind].error for kind in FILES}}
    print(f"batch {batch}: " + ", ".join(f"{kind} {ms[kind]:.4f} ms ({row['ratio'][kind]:.2f}, error {row['error'][kind]:.1e})" for kind in FILES) + f", torch {ms['torch']:.4f} ms", flush=True)
    return row, ready


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--logs", type=pathlib.Path, help="folder for profiles")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    report = {"command": machine.command("bench/gpu_tokens.py"), "rows": []}
    for batch in options.batch:
        row, ready = measure(batch, options)
        report["rows"].append(row)
        report |= {"gpu": ready["gpu"], "torch": ready["torch"]}
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
