#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What few bits cost the two trained models on a CUDA GPU: digits_cnn in images that are right, byte_gpt in nats per byte.

Each is quantised by `hone quantize` on training data (16 windows of byte_gpt) and run on all test data, beside the same in fp32 and fp16.

    gpu_trained.py --json out.json
"""

import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "bench")]

import gpu  # noqa: E402
import materialise  # noqa: E402
import numpy as np  # noqa: E402
from inference import nats_per_byte, run_plan  # noqa: E402

# A type's name in the figures, what is built, and how it is quantised: the layers that cost most can stay in floating point.
KINDS = [("fp32", "fp32", []), ("fp16", "fp16", []), ("int8", "int8", []), ("fp8", "fp8", []), ("fp8, budget 0.06", "fp8", ["--method=minmax", "--sensitivity=node", "--budget=0.06"])]


def digits():
    data = np.load(materialise.ZOO / "digits.npz")
    labels = data["test_labels"]
    return "image", data["train_images"], data["test_images"], lambda logits: float((logits.argmax(-1) == labels).mean())


def byte_gpt():
    windows = np.load(materialise.ZOO / "bytes.npz")["windows"].astype(np.int64)
    return "bytes", windows[:16, :-1], windows[:, :-1], lambda logits: nats_per_byte(logits, windows[:, 1:])


def measure(name, case, kind, options, folder):
    label, kind, flags = kind
    operand, samples, inputs, score = case
    model = materialise.materialise(name, folder)
    if kind in gpu.QUANTISED:
        model = gpu.quantise(options.bin / "hone", model, [{operand: samples}], folder, kind, *flags)
    trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
    shapes = f"{operand}:{'x'.join(map(str, inputs.shape))}"
    log = trtexec(f"--onnx={model}", "--saveEngine=m.plan", "--skipInference", *gpu.FLAGS[kind], *[f"--{which}Shapes={shapes}" for which in ("min", "opt", "max")], f"--builderOptimizationLevel={options.level}", "--verbose")
    return {"model": name, "type": label, "score": score(run_plan(trtexec, "m.plan", {operand: inputs}, ["logits"], shapes)["logits"]), "layers": gpu.precision_used(log)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for name, case in (("digits_cnn", digits()), ("byte_gpt", byte_gpt())):
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                gpu.tell(rows, measure(name, case, kind, options, pathlib.Path(folder)), options.json)


if __name__ == "__main__":
    main()
