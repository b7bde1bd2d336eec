#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks in 8-bit codes, or with weights of 2:4 structure, on a CUDA GPU beside the same in fp16: times in turns.

Each model is quantised by `hone quantize --method=minmax` on random values, to whole numbers (int8) or E4M3 (fp8), and built as it is with
--fp16 and quantised with --fp16 and --int8 or --fp8; sparse is the model in fp16 with --sparsity=force. A figure is the median of three turns of
the GPU's own clock with CUDA graphs and without transfers. Behind the last turn the layers are timed one by one: what share of the time layers
take that are below 60 % of a ceiling, and, where --logs says so, the times in files. MODEL is NAME:BATCH of the zoo, or torch:NAME:BATCH of gpu_torch.py, which PyTorch exports with random weights.

    gpu_codes.py resnet50.ts:1 resnet50.ts:128 --level 3 --json out.json
    gpu_codes.py hf_bert_base.ts:32 torch:vit_b_16:32 --kinds fp8 sparse
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "bench")]

import gpu  # noqa: E402
import materialise  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import zoo  # noqa: E402


KINDS = (*gpu.QUANTISED, "sparse")
FLAGS = {**gpu.FLAGS, "sparse": ["--fp16", "--sparsity=force"]}


def draw(shape, dtype, vocabulary, random):
    if vocabulary:
        return random.integers(0, vocabulary, shape, dtype)
    return random.standard_normal(shape, np.float32).astype(dtype)


def exported(name, batch, folder):
    """The model's file as PyTorch exports it, and its inputs' names, sizes and types, with the number of tokens where they are such."""
    path = folder / f"{name}.onnx"
    subprocess.run([sys.executable, str(ROOT / "bench/gpu_torch.py"), name, batch, "--export", str(path)], check=True, capture_output=True, timeout=300)
    types = [(value.name, [dim.dim_value for dim in value.type.tensor_type.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
             for value in onnx.load(path, load_external_data=False).graph.input]
    return path, [(name, shape, dtype, 30000 if dtype == np.int64 else 0) for name, shape, dtype in types]


def compare(spec, options, folder):
    name, batch = spec.rsplit(":", 1)
    if name.startswith("torch:"):
        (model, inputs), shapes = exported(name.removeprefix("torch:"), batch, folder), ""
    else:
        model, inputs = materialise.materialise(name, folder), [(value.name, value.shape(), value.dtype, value.vocabulary) for value in zoo.inputs(name)]
        shapes = zoo.shape_text(name, int(batch))
    random = np.random.default_rng(5)
    samples = {name: draw(shape, dtype, vocabulary, random) for name, shape, dtype, vocabulary in inputs}
    files = {"fp16": model} | {kind: gpu.quantise(options.bin / "hone", model, [samples], folder, kind, "--method=minmax") if kind in gpu.QUANTISED else model for kind in options.kinds}
    trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
    row = {"model": name, "batch": int(batch), "build_s": {}}
    for kind, file in files.items():
        start = time.time()
        log = trtexec(f"--onnx={file}", *FLAGS[kind], *[f"--{which}Shapes={shapes}" for which in ("min", "opt", "max") if shapes], f"--saveEngine={kind}.plan", "--skipInference", f"--builderOptimizationLevel={options.level}", "--verbose",
                      "--profilingVerbosity=detailed", *([f"--timingCacheFile={options.cache.resolve()}"] if options.cache else []))
        row["build_s"][kind] = round(time.time() - start, 1)
        if options.logs:
            (options.logs / f"{spec.replace(':', '-')}.{kind}.build.log").write_text(log)
    times = {kind: [] for kind in files}
    row["below_60_percent"] = {}
    for turn in range(options.rounds):
        for kind, found in times.items():
            last = turn + 1 == options.rounds
            profile = ["--dumpProfile", "--separateProfileRun"] if last else []
            if last and options.logs:
                named = options.logs.resolve() / f"{spec.replace(':', '-')}.{kind}"
                profile += [f"--exportProfile={named}.profile.json", f"--exportLayerInfo={named}.layers.json"]
            log = trtexec(f"--loadEngine={kind}.plan", *([f"--shapes={shapes}"] if shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100", "--duration=1", "--iterations=20", *profile)
            found.append(gpu.median_ms(log))
            if last:
                row["below_60_percent"][kind] = gpu.far_from_ceiling(log)
    row |= {kind: statistics.median(found) for kind, found in times.items()}
    return row | {"times_as_fast": {kind: round(row["fp16"] / row[kind], 3) for kind in options.kinds}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="NAME:BATCH of the zoo, torch:NAME:BATCH of PyTorch")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["int8"])
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=pathlib.Path, help="timing cache to use and extend")
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
