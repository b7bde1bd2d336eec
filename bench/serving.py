#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What serving through Triton costs, on this machine: perf_analyzer over gRPC beside `hone bench` of the same plan.

    serving.py overhead    [--models digits_cnn ...] [--device cpu/1]   p50 at concurrency 1, batch 1, less the p50 of `hone bench`: at most 150 us
    serving.py instances   [--models resnet18.ts]     two instances of half the cores beside one of all, in turns
    serving.py profiles    [--models resnet18.ts]     requests of one row and of eight in turns, from two profiles, beside each kind alone
    serving.py gpu         [--models resnet18.ts]     KIND_GPU, tensors in the host's and in CUDA shared memory: equal to `hone run --device=0` bit for bit

`./dev test` has to have installed the server (build/.triton). `gpu` needs the package cuda-bindings, which torch brings.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import served  # noqa: E402
from conftest import Program, unpacked  # noqa: E402
from served import Server, analyze, infer, place, run  # noqa: E402


def plan_of(folder, model, *flags):
    """(a plan of the model for one to eight rows, its only input's name and sizes)."""
    import onnx

    path = unpacked(model, folder)
    value = onnx.load(path, load_external_data=False).graph.input[0]
    dims = [size.dim_value for size in value.type.tensor_type.shape.dim]
    words = [f"--{word}Shapes={value.name}:" + "x".join(map(str, [rows, *dims[1:]])) for word, rows in (("min", 1), ("opt", 8), ("max", 8))]
    plan = folder / f"{model}.plan"
    Program(folder)(f"--onnx={path}", f"--saveEngine={plan}", "--skipInference", f"--timingCacheFile={folder}/hone.cache",
                    *(words if dims[0] == 0 else []), *flags)
    return plan, value.name, dims[1:]


def timed(server, model, clients, seconds=4):
    """What perf_analyzer says of requests of one row: times in us, inferences a second."""
    return analyze(server, model, "-b", 1, "--concurrency-range", clients, "--measurement-interval", seconds * 1000, "--stability-percentage", 50)


def overhead(folder, model, device):
    """One request at a time."""
    plan, name, dims = plan_of(folder, model)
    asked = f'backend: "hone" parameters {{ key: "device" value {{ string_value: "{device}" }} }}' if device else ""
    place(folder / "models", f"{model.split('.')[0]}.hone", plan, asked)
    shape = f"{name}:1x{'x'.join(map(str, dims))}"
    with Server(folder / "models") as server:
        server.client()
        found = []
        for _ in range(3):
            alone = json.loads(Program(folder, "hone").answer("bench", plan, "--json", "-t", 3, "-s", shape))["latencyMs"]["median"] * 1e3
            row = timed(server, f"{model.split('.')[0]}.hone", 1)
            found.append((row["p50 latency"] - alone, alone, row))
    extra, alone, row = sorted(found, key=lambda each: each[0])[1]
    every = ", ".join(f"{each[0]:.0f}" for each in found)
    parts = ", ".join(f"{part.lower()} {row[f'Server {part}']:.0f}" for part in ("Queue", "Compute Input", "Compute Infer", "Compute Output"))
    print(f"{model}{f' on {device}' if device else ''}: p50 {row['p50 latency']:.0f} us, p99 {row['p99 latency']:.0f} us, on average {parts}; "
          f"hone bench {alone:.0f} us; overhead {extra:.0f} us (the middle of {every})")


def instances(folder, model):
    plan, *_ = plan_of(folder, model)
    for count in (1, 2):
        place(folder / "models", f"by{count}", plan, f'backend: "hone" max_batch_size: 1 instance_group {{ count: {count} kind: KIND_CPU }}')
    rates = {1: [], 2: []}
    with Server(folder / "models", "--model-control-mode=explicit") as server:
        client = server.client()
        for _ in range(3):
            for count, rate in rates.items():
                before = server.threads()
                client.load_model(f"by{count}")
                rate.append(timed(server, f"by{count}", 4)["Inferences/Second"])
                grown = server.threads() - before
                client.unload_model(f"by{count}")
    one, two = (statistics.median(rate) for rate in rates.values())
    print(f"{model}: one instance {one:.1f}/s, two {two:.1f}/s, ratio {two / one:.2f}; {grown} more threads with two, "
          f"{len(os.sched_getaffinity(0))} cores")


def profiles(folder, model):
    plan, name, dims = plan_of(folder, model)
    onnx = unpacked(model, folder)
    place(folder / "models", "switched", onnx, 'backend: "hone" max_batch_size: 8')  # a profile of one row, another of up to eight
    feeds = {rows: {name: np.random.default_rng(rows).standard_normal((rows, *dims), np.float32)} for rows in (1, 8)}
    with Server(folder / "models") as server:
        client = server.client()

        def median(rows_of, count=60):
            times = {1: [], 8: []}
            for i in range(count):
                rows, begin = rows_of(i), time.perf_counter()
                infer(client, "switched", feeds[rows])
                times[rows].append((time.perf_counter() - begin) * 1e3)
            return {rows: statistics.median(values) for rows, values in times.items() if values}

        median(lambda i: (1, 8)[i % 2], 10)
        alone, turns = median(lambda i: 1) | median(lambda i: 8), median(lambda i: (1, 8)[i % 2], 120)
    print(f"{model}: one row {alone[1]:.1f} ms alone, {turns[1]:.1f} in turns; eight rows {alone[8]:.1f} and {turns[8]:.1f}")


def gpu(folder, model):
    import tritonclient.grpc as grpc
    from tritonclient.utils import cuda_shared_memory

    plan, name, dims = plan_of(folder, model, "--device=0", "--fp16")
    place(folder / "models", "card", plan, 'backend: "hone" instance_group { kind: KIND_GPU gpus: 0 }')
    x = np.random.default_rng(5).standard_normal((8, *dims), np.float32)
    expected = run(folder, plan, {name: x}, "--device=0")
    with Server(folder / "models") as server:
        client = server.client()
        sizes = {name: x.nbytes, **{output: array.nbytes for output, array in expected.items()}}
        regions = {tensor: cuda_shared_memory.create_shared_memory_region(tensor, size, 0) for tensor, size in sizes.items()}
        cuda_shared_memory.set_shared_memory_region(regions[name], [x])
        for tensor, region in regions.items():
            client.register_cuda_shared_memory(tensor, cuda_shared_memory.get_raw_handle(region), 0, sizes[tensor])
        given, wanted = grpc.InferInput(name, list(x.shape), "FP32"), [grpc.InferRequestedOutput(output) for output in expected]
        given.set_shared_memory(name, x.nbytes)
        answers = {"host's memory to host's memory": infer(client, "card", {name: x}, list(expected))}
        result = client.infer("card", [given])
        answers["CUDA shared memory to host's memory"] = {output: result.as_numpy(output) for output in expected}
        for output in wanted:
            output.set_shared_memory(output.name(), sizes[output.name()])
        client.infer("card", [given], outputs=wanted)
        answers["CUDA shared memory to CUDA shared memory"] = {
            output: cuda_shared_memory.get_contents_as_numpy(regions[output], array.dtype, array.shape) for output, array in expected.items()}
        for way, found in answers.items():
            for output, array in expected.items():
                assert np.array_equal(found[output], array), f"{output} differs from hone run, {way}"
            print(f"{model}, {way}: equal to hone run --device=0")
        client.unregister_cuda_shared_memory()
        for region in regions.values():
            cuda_shared_memory.destroy_shared_memory_region(region)
        assert server.alive()


def main():
    actions = {"overhead": overhead, "instances": instances, "profiles": profiles, "gpu": gpu}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=actions)
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--device", help="of overhead: that of the instance, rather than what the backend takes")
    given = parser.parse_args()
    if served.MISSING:
        sys.exit(served.MISSING)
    for model in given.models or ["digits_cnn" if given.action == "overhead" else "resnet18.ts"]:
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
            (Path(name) / "models").mkdir()
            actions[given.action](Path(name), model, *([given.device] if given.action == "overhead" else []))


if __name__ == "__main__":
    main()
