#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators that move data on a CUDA GPU, beside a copy of as many bytes.

Each case is a network of four operators of one kind, each with an input of its own, in fp16 and f32, as ONNX lays tensors out and with
channels innermost. A figure is the median of the GPU's own clock with CUDA graphs and without transfers, over four. PyTorch copies
tensors of half the bytes that the operator reads and writes, four of them in a CUDA graph. The ratio is what is asked for: 0.6.

    gpu_movement.py --json out.json [--megabytes 8 64] [--jobs 4] [CASE...]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench")]

import gpu  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import helper  # noqa: E402
from onnx.numpy_helper import from_array  # noqa: E402

COUNT = 4
CHANNELS = 64
TYPES = {"fp16": (np.float16, "hwc8"), "fp32": (np.float32, "hwc")}


def resize(mode, factor, coordinates="half_pixel"):
    def make(x, y, _):
        made = helper.make_node("Resize", [x, "", "factor"], [y], mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor")
        return [made], {"factor": np.array([1, 1, factor, factor], np.float32)}, factor
    return make


def node(op, **attributes):
    return lambda x, y, _: ([helper.make_node(op, [x], [y], **attributes)], {}, 1)


def shuffle(x, y, h):
    """ShuffleNet's: two groups of channels in turns."""
    return [helper.make_node("Reshape", [x, "groups"], [f"{y}_a"]), helper.make_node("Transpose", [f"{y}_a"], [f"{y}_b"], perm=[0, 2, 1, 3, 4]),
            helper.make_node("Reshape", [f"{y}_b", "whole"], [y])], {"groups": np.array([1, 2, CHANNELS // 2, h, h]), "whole": np.array([1, CHANNELS, h, h])}, 1


def grid(x, y, h):
    """Places as an image that is turned a little reads them."""
    at = (np.arange(h, dtype=np.float32) + 0.5) * 2 / h - 1
    turned = np.stack(np.broadcast_arrays(at[None, :] * 0.95 - at[:, None] * 0.3, at[:, None] * 0.95 + at[None, :] * 0.3), -1)[None]
    return [helper.make_node("GridSample", [x, "grid"], [y], mode="linear")], {"grid": turned.astype(np.float32)}, 1


CASES = {
    "Resize linear x2": resize("linear", 2), "Resize linear x4": resize("linear", 4), "Resize nearest x2": resize("nearest", 2, "asymmetric"),
    "Resize linear x0.5": resize("linear", 0.5), "GridSample": grid,
    "MaxPool 3x3 / 2": node("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), "MaxPool 2x2 / 2": node("MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool 3x3": node("AveragePool", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]), "GlobalAveragePool": node("GlobalAveragePool"),
    "DepthToSpace": node("DepthToSpace", blocksize=2), "SpaceToDepth": node("SpaceToDepth", blocksize=2), "channel shuffle": shuffle,
    "Transpose to channels last": node("Transpose", perm=[0, 2, 3, 1]), "Transpose of images": node("Transpose", perm=[0, 1, 3, 2]),
}
LINEAR_ONLY = {"Transpose to channels last", "Transpose of images"}


def model(make, h, dtype, path):
    """The network; bytes that one operator reads and writes."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes, constants = [], {}
    for i in range(COUNT):
        more, shared, _ = make(f"x{i}", f"y{i}", h)
        nodes += more
        constants |= {name: value.astype(dtype) if name == "grid" else value for name, value in shared.items()}
    inputs = [helper.make_tensor_value_info(f"x{i}", kind, [1, CHANNELS, h, h]) for i in range(COUNT)]
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(COUNT)]
    graph = helper.make_graph(nodes, "movement", inputs, outputs, [from_array(value, name) for name, value in constants.items()])
    whole = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    onnx.save(whole, path)
    results = [dim.dim_value for dim in whole.graph.output[0].type.tensor_type.shape.dim]
    return (CHANNELS * h * h + int(np.prod(results))) * np.dtype(dtype).itemsize


def copy_ms(bytes_moved):
    """PyTorch's copy that reads and writes as many bytes altogether; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    pairs = [[torch.empty(bytes_moved // 2, dtype=torch.uint8, device="cuda") for _ in range(2)] for _ in range(COUNT)]
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for to, source in pairs:
            to.copy_(source)
    times = []
    for _ in range(60):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[10:]) / COUNT


@dataclasses.dataclass
class Row:
    """One operator in one type and layout, and where its engine lies."""
    name: str
    kind: str
    layout: str
    megabytes: int
    folder: pathlib.Path
    side: int = 0
    moved: int = 0

    def build(self, options):
        self.folder.mkdir(parents=True)
        dtype, inner = TYPES[self.kind]
        *_, growth = CASES[self.name]("x", "y", 2)
        self.side = int((self.megabytes * 2**20 / (CHANNELS * np.dtype(dtype).itemsize * max(growth, 1) ** 2)) ** 0.5) // 8 * 8
        self.moved = model(CASES[self.name], self.side, dtype, self.folder / "movement.onnx")
        formats = f"{self.kind}:{inner if self.layout == 'hwc' else 'chw'}"
        precision = ["--fp16"] if self.kind == "fp16" else []
        trtexec(options, self.folder)("--onnx=movement.onnx", *precision, f"--inputIOFormats={formats}", f"--outputIOFormats={formats}", "--skipInference", "--saveEngine=plan",
                                      "--exportLayerInfo=layers.json", "--profilingVerbosity=detailed")

    def measure(self, options):
        log = trtexec(options, self.folder)("--loadEngine=plan", "--useCudaGraph", "--noDataTransfers", "--warmUp=50", "--duration=0.3", "--iterations=20")
        ms, copied = gpu.median_ms(log) / COUNT, copy_ms(self.moved)
        layers = json.loads((self.folder / "layers.json").read_text())["Layers"]
        return {"case": self.name, "type": self.kind, "layout": self.layout, "shape": [1, CHANNELS, self.side, self.side], "megabytes_moved": round(self.moved / 1e6, 1), "ms": ms,
                "copy_ms": copied, "of_copy": copied and round(copied / ms, 3), "tb_per_s": round(self.moved / ms * 1e-9, 2), "kernels": sorted({layer.get("TacticName", "") for layer in layers})}


def trtexec(options, folder):
    return gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--megabytes", type=int, nargs="+", default=[8, 64], help="of the larger of what is read and what is written")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", type=int, default=1, help="engines that are built side by side")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows, told = [], []
        for name in options.cases or CASES:
            for kind in TYPES:
                for layout in ["chw"] if name in LINEAR_ONLY else ["chw", "hwc"]:
                    rows += [Row(name, kind, layout, megabytes, pathlib.Path(folder) / name.replace("/", "by") / f"{kind}.{layout}.{megabytes}") for megabytes in options.megabytes]
        list(pool.map(lambda row: row.build(options), rows))
        for row in rows:
            gpu.tell(told, row.measure(options), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
