#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that hands Hone its tensors' memory and its stream, beside trtexec on the same plan.

Asks of the C interface: that an inference is enqueued without a wait (behind a pause of the GPU that is longer than the call) and
without a copy (by PyTorch's profiler), that it can be captured into PyTorch's CUDA graph, that the results are the same to the bit
each time, and how long one takes by the card's clock. A figure is the median over inferences that follow a pause, as trtexec's is.

    gpu_shared.py --models hf_bert_base.ts resnet50.ts --json out.json
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

import gpu  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
import zoo  # noqa: E402

DEVICE_MEMORY = 2
PAUSE_CYCLES = 3_000_000


class Library:
    """Functions of hone.h, which raise what hone_last_error() says."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(str(path))
        for name in ("hone_last_error", "hone_version"):
            getattr(self.functions, name).restype = ctypes.c_char_p

    def __getattr__(self, name):
        function = getattr(self.functions, "hone_" + name)

        def checked(*arguments):
            if function(*arguments) != 0:
                raise RuntimeError(self.functions.hone_last_error().decode())
        return checked

    def create(self, name, *arguments):
        handle = ctypes.c_void_p()
        getattr(self, name)(*arguments, ctypes.byref(handle))
        return handle


class Network:
    """A plan on the card, which reads and writes tensors of PyTorch."""

    def __init__(self, library, plan, feeds):
        self.library = library
        device = library.create("device_create", b"cuda:0", None)
        engine = library.create("engine_create", library.create("plan_create_from_file", str(plan).encode()), device, None)
        self.device, self.context = device, library.create("context_create", engine, 0)
        self.inputs = {name: torch.from_numpy(values).cuda() for name, values in feeds.items()}
        for name, values in self.inputs.items():
            sizes = (ctypes.c_int64 * values.dim())(*values.shape)
            library.context_set_shape(self.context, name.encode(), sizes, values.dim())
            self.bind(name, values)

    def bind(self, name, tensor):
        self.library.context_bind(self.context, name.encode(), ctypes.c_void_p(tensor.data_ptr()), DEVICE_MEMORY)

    def allocate(self, name):
        bytes_ = ctypes.c_int64()
        self.library.context_bytes(self.context, name.encode(), ctypes.byref(bytes_))
        tensor = torch.full((bytes_.value,), 0x7F, dtype=torch.uint8, device="cuda")
        self.bind(name, tensor)
        return tensor

    def stream(self, native):
        return self.library.create("stream_create_from_native", self.device, ctypes.c_void_p(native.cuda_stream))

    def enqueue(self, stream):
        self.library.context_enqueue(self.context, stream)


def median_ms(once, seconds):
    times, begin = [], time.time()
    while time.time() - begin < seconds or len(times) < 20:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(PAUSE_CYCLES)
        start.record()
        once()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def copies(once):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        once()
        torch.cuda.synchronize()
    return [event.name for event in profile.events() if "memcpy" in event.name.lower() or "memset" in event.name.lower()]


def answers(outputs, once):
    for values in outputs.values():
        values.fill_(0x7F)
    once()
    torch.cuda.synchronize()
    return {name: values.clone() for name, values in outputs.items()}


def same(one, other):
    return all(bool(torch.equal(one[name], other[name])) for name in one)


def measured(library, trtexec, name, options):
    feeds = {value.name: value.values(1, 0) for value in zoo.inputs(name)}
    shapes = zoo.shape_text(name, 1)
    path = materialise.materialise(name, trtexec.folder)
    outputs = [value.name for value in onnx.load(path, load_external_data=False).graph.output]
    profile = [f"--{which}Shapes={shapes}" for which in ("min", "opt", "max")] if shapes else []
    trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--fp16", f"--builderOptimizationLevel={options.level}", *profile)
    row = {"model": name, "trtexec_ms": [], "stream_ms": [], "graph_ms": []}

    network = Network(library, trtexec.folder / "m.plan", feeds)
    results = {output: network.allocate(output) for output in outputs}
    library.context_run(network.context)
    first = {output: values.clone() for output, values in results.items()}
    torch_stream = torch.cuda.Stream()
    with torch.cuda.stream(torch_stream):
        stream = network.stream(torch_stream)

        def enqueue():
            network.enqueue(stream)

        row["enqueued_equals_run"] = same(answers(results, enqueue), first)
        torch.cuda._sleep(100 * PAUSE_CYCLES)
        begin = time.time()
        enqueue()
        row["enqueue_us"], row["pause_was_over"] = (time.time() - begin) * 1e6, torch_stream.query()
        torch.cuda.synchronize()
        row["copies"] = copies(enqueue)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch_stream):
            enqueue()
        row["captured_equals_run"] = all(same(answers(results, graph.replay), first) for _ in range(20))
        row["copies_in_graph"] = copies(graph.replay)
        for _ in range(options.rounds):
            row["stream_ms"].append(median_ms(enqueue, options.seconds))
            row["graph_ms"].append(median_ms(graph.replay, options.seconds))
            log = trtexec("--loadEngine=m.plan", *([f"--shapes={shapes}"] if shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100", f"--duration={options.seconds}")
            row["trtexec_ms"].append(gpu.median_ms(log))
    for key in ("trtexec_ms", "stream_ms", "graph_ms"):
        row[key] = statistics.median(row[key])
    row["graph_to_trtexec"] = row["graph_ms"] / row["trtexec_ms"]
    row["right"] = row["enqueued_equals_run"] and row["captured_equals_run"] and not row["pause_was_over"] and not row["copies"] and not row["copies_in_graph"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/lib/libhone.so")
    parser.add_argument("--models", nargs="+", default=["hf_bert_base.ts"])
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one measurement")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    library, rows = Library(options.library.resolve()), []
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", "cuda:0", folder)
            try:
                rows.append(measured(library, trtexec, name, options))
            except (RuntimeError, subprocess.SubprocessError) as error:
                rows.append({"model": name, "failure": str(error)[-1500:]})
        print(rows[-1], flush=True)
    if options.json:
        card = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        options.json.write_text(json.dumps({"machine": card, "command": machine.command("bench/gpu_shared.py"), "rows": rows}, indent=1) + "\n")
    return 0 if all(row.get("right") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
