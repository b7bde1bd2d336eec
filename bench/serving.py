#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What serving through Triton costs, on this machine: perf_analyzer over gRPC beside `hone bench` of the same plan.

    serving.py overhead    [--models digits_cnn ...]   p50 at concurrency 1, batch 1, less the p50 of `hone bench`: at most 150 us
    serving.py instances   [--models resnet18.ts]     two instances of half the cores beside one of all, in turns
    serving.py profiles    [--models resnet18.ts]     requests of one row and of eight in turns, from two profiles, beside each kind alone
    serving.py gpu         [--models resnet18.ts]     KIND_GPU, an input in CUDA shared memory: equal to `hone run --device=0` bit for bit

`./dev test` has to have installed the server (build/.triton). `gpu` needs torch for the memory.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import served  # noqa: E402
from conftest import Program, unpacked  # noqa: E402
from served import Server, infer, place  # noqa: E402


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


def analyze(server, model, clients, seconds=4, rows=1):
    """(p50 in us, p99 in us, inferences a second) as perf_analyzer has them."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        subprocess.run([served.PERF, "-m", model, "-u", server.grpc, "-i", "grpc", "-b", str(rows), "--concurrency-range", str(clients),
                        "--measurement-interval", str(seconds * 1000), "--stability-percentage", "50", "-f", file.name], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "LD_LIBRARY_PATH": str(served.HOME / "lib")})
        with open(file.name, encoding="utf-8") as text:
            (row,) = csv.DictReader(text)
    return float(row["p50 latency"]), float(row["p99 latency"]), float(row["Inferences/Second"])


def overhead(folder, model):
    plan, name, dims = plan_of(folder, model)
    place(folder / "models", f"{model.split('.')[0]}.hone", plan)
    shape = f"{name}:1x{'x'.join(map(str, dims))}"
    with Server(folder / "models") as server:
        server.client()
        found = []
        for _ in range(3):
            alone = json.loads(Program(folder, "hone").answer("bench", plan, "--json", "-t", 3, "-s", shape))["latencyMs"]["median"] * 1e3
            found.append((*analyze(server, f"{model.split('.')[0]}.hone", 1)[:2], alone))
    served_us, p99, alone = sorted(found, key=lambda row: row[0] - row[2])[1]
    every = ", ".join(f"{row[0] - row[2]:.0f}" for row in found)
    print(f"{model}: p50 {served_us:.0f} us, p99 {p99:.0f} us; hone bench {alone:.0f} us; overhead {served_us - alone:.0f} us (the middle of {every})")


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
                rate.append(analyze(server, f"by{count}", 4)[2])
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
    import torch
    import tritonclient.grpc as grpc
    from tritonclient.utils import cuda_shared_memory

    plan, name, dims = plan_of(folder, model, "--device=0", "--fp16")
    place(folder / "models", "card", plan, 'backend: "hone" instance_group { kind: KIND_GPU gpus: 0 }')
    x = np.random.default_rng(5).standard_normal((8, *dims), np.float32)
    np.save(folder / "x.npy", x)
    Program(folder, "hone")("run", plan, "--device=0", "-o", "out", "-s", f"{name}:{'x'.join(map(str, x.shape))}", "-i", f"{name}:x.npy")
    expected = {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}
    with Server(folder / "models") as server:
        client = server.client()
        region = cuda_shared_memory.create_shared_memory_region("x", x.nbytes, 0)
        cuda_shared_memory.set_shared_memory_region(region, [x])
        client.register_cuda_shared_memory("x", cuda_shared_memory.get_raw_handle(region), 0, x.nbytes)
        shared = grpc.InferInput(name, list(x.shape), "FP32")
        shared.set_shared_memory("x", x.nbytes)
        for kind, inputs in (("CUDA shared memory", [shared]), ("the host's memory", None)):
            result = client.infer("card", inputs) if inputs else None
            for output, array in expected.items():
                found = result.as_numpy(output) if result else infer(client, "card", {name: x}, [output])[output]
                assert np.array_equal(found, array), f"{output} differs from hone run, input in {kind}"
            print(f"{model}: an input in {kind}: equal to hone run --device=0, on {torch.cuda.get_device_name(0)}")
        client.unregister_cuda_shared_memory("x")
        cuda_shared_memory.destroy_shared_memory_region(region)
        assert server.alive()


def main():
    actions = {"overhead": overhead, "instances": instances, "profiles": profiles, "gpu": gpu}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=actions)
    parser.add_argument("--models", nargs="+")
    given = parser.parse_args()
    if served.MISSING:
        sys.exit(served.MISSING)
    for model in given.models or ["digits_cnn" if given.action == "overhead" else "resnet18.ts"]:
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
            (Path(name) / "models").mkdir()
            actions[given.action](Path(name), model)


if __name__ == "__main__":
    main()
