# SPDX-License-Identifier: Apache-2.0
"""One engine with one model in a process of its own, told by lines on stdin what to do.

    worker.py ENGINE NAME MODEL.onnx THREADS BATCH PRECISION HINT  first prints {"ready": …}, then for each line
        run SECONDS MINIMUM   -> {"ms": [...]}     single inferences, one after the other, first ones dropped; under the hint
                                                   throughput one number, the time of a burst over its inferences
        save FILE.npz         -> {"saved": FILE}   the outputs of one inference
        open MODEL.onnx FEEDS.npz -> {"layers": [[name, source], ...]}, which Hone alone knows, or {"error": why}: another model
                                                   of fixed sizes. MODEL.onnx above may be "-", to begin without one
"""

import ctypes
import json
import mmap
import os
import pathlib
import sys
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python"))]

import zoo  # noqa: E402
from inductor import Inductor  # noqa: E402

HUGE_PAGE = 2 << 20
WARM_UP = 2  # inferences at the start of each burst; the other engines have had the caches since


def aligned(values):
    """A copy that begins at a multiple of 64 bytes."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start:start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


class OnnxRuntime:
    """In streams: one session with a thread for each, as its users run it."""

    def __init__(self, name, path, feeds, threads, batch, precision, streams):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, threads // streams)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        for name, size in (("batch", batch), ("seq", zoo.SEQUENCE)):
            options.add_free_dimension_override_by_name(name, size)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.session, self.outputs = session, [output.name for output in session.get_outputs()]
        self.bindings = [self.bound(feeds) for _ in range(streams)]
        self.runs = [lambda binding=binding: session.run_with_iobinding(binding) for binding in self.bindings]

    def bound(self, feeds):
        binding = self.session.io_binding()
        for name, values in feeds.items():
            binding.bind_cpu_input(name, values)
        for output in self.outputs:
            binding.bind_output(output)
        return binding

    def results(self):
        return dict(zip(self.outputs, self.bindings[0].copy_outputs_to_cpu()))


class OpenVino:
    """In streams: under its own hint, which decides how many."""

    def __init__(self, name, path, feeds, threads, batch, precision, streams):
        import openvino

        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: values.shape for name, values in feeds.items()})
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads,
                                                     "PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT"})
        count = 1 if streams == 1 else compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
        self.requests = [compiled.create_infer_request() for _ in range(count)]
        for request in self.requests:
            for name, values in feeds.items():
                request.set_tensor(name, openvino.Tensor(values))
        self.outputs = [output.get_any_name() for output in compiled.outputs]
        self.runs = [request.infer for request in self.requests]

    def results(self):
        return {name: self.requests[0].get_tensor(name).data.copy() for name in self.outputs}


class Hone:
    """In streams: as trtexec does under --infStreams, contexts of one engine for teams of their share of the cores."""

    def __init__(self, name, path, feeds, threads, batch, precision, streams):
        team = max(1, threads // streams)
        os.environ["HONE_THREADS"] = str(team)
        import hone

        cache = ROOT / "build" / "bench" / f"timing-{team}{os.environ.get('HONE_CPU_ISA', '')}.cache"
        cache.parent.mkdir(parents=True, exist_ok=True)
        shapes = zoo.shape_text(name, batch) if name else ""
        flags = [f"--timingCacheFile={cache}", *([f"--shapes={shapes}"] if shapes else []), *(["--bf16"] if precision == "bf16" else [])]
        plan = hone.build(path, flags)
        self.layers = [[layer.name, layer.source] for layer in plan.layers() if not layer.is_view]
        engine = plan.engine()
        self.contexts = [engine.context() for _ in range(streams)]
        for context in self.contexts:
            for tensor, values in feeds.items():
                context.set_input(tensor, values)
            context.allocate_outputs()
        self.runs = [context.run_bound for context in self.contexts]

    def results(self):
        context = self.contexts[0]
        return {name: context.value(name) if name in context.engine.by_value else context.bound[name] for name in context.engine.outputs}


class Weights:
    """No engine: what a model whose weights are read once for an inference waits for. Each thread looks through its part of as many
    bytes for one that is not there, as fast as memory gives them, in pages as large as Hone asks for."""

    passes = 8  # of a run: waking a thread counts for little

    def __init__(self, name, path, feeds, threads, batch, precision, streams):
        self.find = ctypes.CDLL(None).memchr
        self.find.argtypes, self.find.restype = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t], ctypes.c_void_p
        size = zoo.weight_bytes(name)
        self.memory = mmap.mmap(-1, size + HUGE_PAGE)
        self.memory.madvise(mmap.MADV_HUGEPAGE)
        values = np.frombuffer(self.memory, np.uint8)
        values[:] = 0
        first, self.part = values.ctypes.data, size // threads
        self.barriers = [threading.Barrier(threads) for _ in range(2)]
        self.starts = [first + part * self.part for part in range(threads)]
        for start in self.starts[1:]:
            threading.Thread(target=self.follow, args=[start], daemon=True).start()
        self.runs = [self.run]

    def read(self, start):
        self.barriers[0].wait()
        for _ in range(self.passes):
            self.find(start, 1, self.part)
        self.barriers[1].wait()

    def follow(self, start):
        while True:
            self.read(start)

    def run(self):
        self.read(self.starts[0])


ENGINES = {"hone": Hone, "onnxruntime": OnnxRuntime, "openvino": OpenVino, "inductor": Inductor, "weights": Weights}


def burst(run, seconds, minimum):
    for _ in range(WARM_UP):
        run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < minimum or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def burst_of_streams(runs, seconds, minimum):
    """Milliseconds of the burst for each inference, all streams together."""
    for run in runs:
        run()
    counts, start = [0] * len(runs), time.perf_counter()

    def loop(stream):
        while counts[stream] < minimum or time.perf_counter() < start + seconds:
            runs[stream]()
            counts[stream] += 1

    threads = [threading.Thread(target=loop, args=[stream]) for stream in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [1e3 * (time.perf_counter() - start) / sum(counts)]


def feeds_of(path):
    with np.load(path, allow_pickle=True) as arrays:
        return {name: arrays[name] if arrays[name].dtype == object else aligned(arrays[name]) for name in arrays}


def main(engine_name, name, path, threads, batch, precision, hint):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not reach the parent as an answer

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    def opened(path, name, feeds):
        engine = ENGINES[engine_name](name, pathlib.Path(path), feeds, int(threads), int(batch), precision, streams)
        engine.runs[0]()
        return engine

    start = time.perf_counter()
    streams = int(threads) if hint == "throughput" else 1
    engine = None
    if path != "-":
        engine = opened(path, name, {value.name: aligned(value.values(int(batch))) for value in zoo.inputs(name)})
    answer({"ready": time.perf_counter() - start})
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            seconds, minimum = float(arguments[0]), int(arguments[1])
            times = burst(engine.runs[0], seconds, minimum) if hint == "latency" else burst_of_streams(engine.runs, seconds, minimum)
            answer({"ms": [time_of_run / getattr(engine, "passes", 1) for time_of_run in times]})
        elif command == "save":
            engine.runs[0]()
            np.savez(arguments[0], **{f"{index}": array for index, array in enumerate(engine.results().values())})
            answer({"saved": arguments[0]})
        elif command == "open":
            engine = None  # its memory first
            try:
                engine = opened(arguments[0], "", feeds_of(arguments[1]))
                answer({"layers": getattr(engine, "layers", [])})
            except Exception as error:  # the engines' own kinds
                answer({"error": str(error)})


if __name__ == "__main__":
    main(*sys.argv[1:])
