# SPDX-License-Identifier: Apache-2.0
"""One engine with one model in a process of its own, told by lines on stdin what to do.

    worker.py ENGINE NAME MODEL.onnx THREADS BATCH PRECISION  first prints {"ready": …}, then for each line
        run SECONDS MINIMUM   -> {"ms": [...]}     single inferences, one after the other, first ones dropped
        save FILE.npz         -> {"saved": FILE}   the outputs of one inference
"""

import json
import os
import pathlib
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python"))]

import zoo  # noqa: E402

WARM_UP = 2  # inferences at the start of each burst; the other engines have had the caches since


def aligned(values):
    """A copy that begins at a multiple of 64 bytes."""
    memory = np.empty(values.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start:start + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


class OnnxRuntime:
    def __init__(self, path, feeds, threads, batch, precision):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        for name, size in (("batch", batch), ("seq", zoo.SEQUENCE)):
            options.add_free_dimension_override_by_name(name, size)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.binding = session.io_binding()
        for name, values in feeds.items():
            self.binding.bind_cpu_input(name, values)
        for output in session.get_outputs():
            self.binding.bind_output(output.name)
        self.session = session
        self.outputs = [output.name for output in session.get_outputs()]

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        return dict(zip(self.outputs, self.binding.copy_outputs_to_cpu()))


class OpenVino:
    def __init__(self, path, feeds, threads, batch, precision):
        import openvino

        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: values.shape for name, values in feeds.items()})
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads,
                                                     "PERFORMANCE_HINT": "LATENCY"})
        self.request = compiled.create_infer_request()
        for name, values in feeds.items():
            self.request.set_tensor(name, openvino.Tensor(values))
        self.outputs = [output.get_any_name() for output in compiled.outputs]

    def run(self):
        self.request.infer()

    def results(self):
        return {name: self.request.get_tensor(name).data.copy() for name in self.outputs}


class Hone:
    def __init__(self, path, feeds, threads, batch, precision):
        os.environ["HONE_THREADS"] = str(threads)
        import hone

        cache = ROOT / "build" / "bench" / f"timing-{threads}.cache"
        cache.parent.mkdir(parents=True, exist_ok=True)
        name = path.name.removesuffix(".onnx")
        shapes = zoo.shape_text(name, batch)
        flags = [f"--timingCacheFile={cache}", *([f"--shapes={shapes}"] if shapes else []), *(["--bf16"] if precision == "bf16" else [])]
        self.context = hone.build(path, flags).engine().context()
        for name, values in feeds.items():
            self.context.set_input(name, values)
        self.context.allocate_outputs()

    def run(self):
        self.context.run_bound()

    def results(self):
        return {name: self.context.bound[name] for name in self.context.engine.outputs}


ENGINES = {"hone": Hone, "onnxruntime": OnnxRuntime, "openvino": OpenVino}


def burst(engine, seconds, minimum):
    for _ in range(WARM_UP):
        engine.run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < minimum or time.perf_counter() < end:
        start = time.perf_counter()
        engine.run()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def main(engine_name, name, path, threads, batch, precision):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not reach the parent as an answer

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    feeds = {value.name: aligned(value.values(int(batch))) for value in zoo.inputs(name)}
    start = time.perf_counter()
    engine = ENGINES[engine_name](pathlib.Path(path), feeds, int(threads), int(batch), precision)
    engine.run()
    answer({"ready": time.perf_counter() - start})
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            answer({"ms": burst(engine, float(arguments[0]), int(arguments[1]))})
        elif command == "save":
            engine.run()
            np.savez(arguments[0], **{f"{index}": array for index, array in enumerate(engine.results().values())})
            answer({"saved": arguments[0]})


if __name__ == "__main__":
    main(*sys.argv[1:])
