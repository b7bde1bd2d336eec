#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of square matrices on a CUDA GPU, in fp16 and in 8-bit codes: Hone's kernels, cuBLASLt as the tuner times both, and PyTorch's.

A model of two products is built with --fp16 (and as Q/DQ nodes write it with --int8) at a level that times every offer; a figure is the
fastest tactic of each source, ms, results in fp16. PyTorch multiplies matrices of the same sizes: `@` in fp16, _int_mm of codes.

    gpu_products.py 2048 4096 8192 --json out.json
"""

import argparse
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench")]

import gpu  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper  # noqa: E402
from onnx.numpy_helper import from_array  # noqa: E402

TACTIC = re.compile(r"Tactic Name: (\w+)\.(\w+)(\([^)]*\))?.* Time: ([\d.]+)")
TIMED = re.compile(r"Timing Runner: (.*) \(")


def model(size, coded, path):
    """x W W, with x and the first product rounded to codes and W whole steps where `coded`."""
    random = np.random.default_rng(1)
    steps = random.integers(-127, 128, (size, size), dtype=np.int8)
    if coded:
        weights = [from_array(steps, "codes"), from_array(np.full(size, 0.002, np.float32), "scales"), from_array(np.zeros(size, np.int8), "zeros"),
                   from_array(np.float32(0.01), "s"), from_array(np.float32(0.5), "t"), from_array(np.int8(0), "z")]
        nodes = [helper.make_node("DequantizeLinear", ["codes", "scales", "zeros"], ["w"], axis=1),
                 helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
                 helper.make_node("MatMul", ["d", "w"], ["a"]),
                 helper.make_node("QuantizeLinear", ["a", "t", "z"], ["p"]), helper.make_node("DequantizeLinear", ["p", "t", "z"], ["b"]),
                 helper.make_node("MatMul", ["b", "w"], ["y"])]
    else:
        noise = 1e-5 * random.standard_normal((size, size))
        weights = [from_array((steps * 2e-4 + noise).astype(np.float32), "w")]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["y"])]
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size, size]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "products", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def fastest(log):
    """{family: (ms, its parameters)} of the last layer that multiplies, whose result is in floats."""
    layers, current = {}, None
    for line in log.splitlines():
        if found := TIMED.search(line):
            current = found[1]
        elif found := TACTIC.search(line):
            source, name, parameters, ms = found.groups()
            family = name if source == "cuda" else source
            best = layers.setdefault(current, {})
            best[family] = min(best.get(family, (float("inf"), "")), (float(ms), parameters or ""))
    return [best for best in layers.values() if "implicit_gemm" in best][-1]


def torch_ms(size, coded):
    try:
        import torch
    except ImportError:
        return None
    if coded:
        a = torch.randint(-127, 127, (size, size), dtype=torch.int8, device="cuda")
        b = torch.randint(-127, 127, (size, size), dtype=torch.int8, device="cuda").t().contiguous().t()
        multiply = torch._int_mm
    else:
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.half) for _ in range(2))
        multiply = torch.matmul
    for _ in range(10):
        multiply(a, b)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(50):
        multiply(a, b)
    end.record()
    torch.cuda.synchronize()
    return round(begin.elapsed_time(end) / 50, 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="+", type=int)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for size in options.sizes:
        for coded in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
                path = model(size, coded, pathlib.Path(folder) / "products.onnx")
                log = trtexec(f"--onnx={path}", "--fp16", *(["--int8"] if coded else []), "--verbose", "--skipInference", "--builderOptimizationLevel=5", "--saveEngine=p.plan")
            row = {"size": size, "type": "int8" if coded else "fp16", "torch": torch_ms(size, coded)}
            for family, (ms, parameters) in fastest(log).items():
                row[family] = ms
                row[f"tflops_{family}"] = round(2e-9 * size**3 / ms)
                row[f"tactic_{family}"] = parameters
            gpu.tell(rows, row, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
