#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of the module `tensorrt` on a GPU, over torch's tensors and stream, beside trtexec on the same plan.

The engine is built by python/tensorrt from ONNX in FP16, run on drawn values against trtexec's results, captured in torch's CUDA graph, and
timed by the card's clock, each inference behind a pause of the card as trtexec's are.

    tensorrt_gpu.py --models hf_bert_base.ts resnet50.ts --json out.json
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench"), str(ROOT / "tests")]

import gpu  # noqa: E402
import gpu_shared  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import zoo  # noqa: E402


def built(trt, path, feeds, level):
    """The plan's bytes."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(path)):
        raise RuntimeError("; ".join(str(parser.get_error(at)) for at in range(parser.num_errors)))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.FP16)
    config.builder_optimization_level = level
    profile = builder.create_optimization_profile()
    for name, values in feeds.items():
        profile.set_shape(name, values.shape, values.shape, values.shape)
    config.add_optimization_profile(profile)
    return bytes(builder.build_serialized_network(network, config))


class Running:
    """The engine over torch's tensors."""

    def __init__(self, trt, plan, feeds):
        self.engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(plan)
        self.context = self.engine.create_execution_context()
        self.inputs = {name: torch.from_numpy(values).cuda() for name, values in feeds.items()}
        for name, values in self.inputs.items():
            assert self.context.set_input_shape(name, values.shape)
            self.context.set_tensor_address(name, values.data_ptr())
        self.outputs = {}
        for name in self.engine:
            if self.engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT:
                kind = torch.from_numpy(np.empty(0, trt.nptype(self.engine.get_tensor_dtype(name)))).dtype
                self.outputs[name] = torch.zeros(tuple(self.context.get_tensor_shape(name)), dtype=kind, device="cuda")
                self.context.set_tensor_address(name, self.outputs[name].data_ptr())

    def enqueue(self):
        assert self.context.execute_async_v3(torch.cuda.current_stream().cuda_stream)


def host_us(once):
    """Time of the call on the host, behind a pause of the card."""
    times = []
    for _ in range(200):
        torch.cuda._sleep(gpu_shared.PAUSE_CYCLES)
        begin = time.perf_counter()
        once()
        times.append((time.perf_counter() - begin) * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def measured(trt, trtexec, name, options):
    feeds, shapes = {value.name: value.values(1, 0) for value in zoo.inputs(name)}, zoo.shape_text(name, 1)
    path = materialise.materialise(name, trtexec.folder)
    begin = time.time()
    plan = built(trt, path, feeds, options.level)
    row = {"model": name, "build_s": round(time.time() - begin, 1), "trtexec_ms": [], "stream_ms": [], "graph_ms": []}
    (trtexec.folder / "m.plan").write_bytes(plan)
    running = Running(trt, plan, feeds)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        running.enqueue()
        stream.synchronize()
        first = {output: values.clone() for output, values in running.outputs.items()}
        row["enqueued_equals_first"] = gpu_shared.same(gpu_shared.answers(running.outputs, running.enqueue), first)
        row["call_us"] = host_us(running.enqueue)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            running.enqueue()
        row["captured_equals_first"] = all(gpu_shared.same(gpu_shared.answers(running.outputs, graph.replay), first) for _ in range(20))
        for _ in range(options.rounds):
            row["stream_ms"].append(gpu_shared.median_ms(running.enqueue, options.seconds))
            row["graph_ms"].append(gpu_shared.median_ms(graph.replay, options.seconds))
            log = trtexec("--loadEngine=m.plan", *([f"--shapes={shapes}"] if shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100",
                          f"--duration={options.seconds}")
            row["trtexec_ms"].append(gpu.median_ms(log))
    for key in ("trtexec_ms", "stream_ms", "graph_ms"):
        row[key] = statistics.median(row[key])
    row["graph_to_trtexec"] = row["graph_ms"] / row["trtexec_ms"]
    row["finite"] = all(bool(torch.isfinite(values).all()) for values in first.values() if values.is_floating_point())
    row["right"] = row["enqueued_equals_first"] and row["captured_equals_first"] and row["finite"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--models", nargs="+", default=["hf_bert_base.ts"])
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one measurement")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.setdefault("HONE_TENSORRT_DEVICE", "cuda:0")
    sys.path[:0] = [str(options.build.resolve() / "python"), str(options.build.resolve() / "tensorrt")]
    import tensorrt as trt

    rows = []
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            trtexec = gpu.Trtexec(options.build.resolve() / "bin/trtexec", "cuda:0", folder)
            rows.append(measured(trt, trtexec, name, options))
        print(rows[-1], flush=True)
    if options.json:
        card = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        options.json.write_text(json.dumps({"machine": card, "command": machine.command("bench/tensorrt_gpu.py"), "rows": rows}, indent=1) + "\n")
    return 0 if all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
