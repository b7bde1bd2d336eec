# SPDX-License-Identifier: Apache-2.0
"""Two cards: are collectives through NCCL right, what do two ranks gain over one card and over PyTorch's tensor parallelism, does a model that
one card's free memory refuses run on two, how do faults end. Skips where there are not two GPUs.

Steps, all of them where none is named; each prints its seconds, and --json is written behind each of them:
    smoke     every collective in three types against its meaning, with NCCL's own warnings
    rows      two contexts, whose number of rows changes
    512       8 layers of 4096/11008, 512 tokens, fp16
    4096      the same, 4096 tokens
    70b       2 layers of 8192/28672, one token
    memory    the plans of 512: bytes on a card of the whole and of a rank, and both with less free memory than the whole needs
    faults    a rank that is missing, killed, stopped, or has another plan
"""

import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import ranks
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
HONE = ROOT / "build/release/bin/hone"
SHAPES = {"512": (512, 8, 4096, 11008), "4096": (4096, 8, 4096, 11008), "70b": (1, 2, 8192, 28672)}  # tokens, layers, width, hidden
SMALL = {"512": (8, 2, 64, 176), "4096": (16, 2, 64, 176), "70b": (1, 1, 128, 448)}
HEAD = 128


# ---- The model ----

def layers(path, tokens, count, width, hidden):
    """Blocks of attention and a gated perceptron, in fp16. Weights are one block of random numbers over and over, from another place for
    each, in a file beside the model."""
    head = min(HEAD, width // 4)
    draw = np.random.default_rng(0)
    block = (draw.standard_normal(4194301, np.float32) * np.float32(width ** -0.5)).astype(np.float16)
    weights, nodes, at = [], [], 0
    blobs = open(path.parent / "weights.bin", "wb")  # noqa: SIM115: closed below

    def weight(name, *dims):
        nonlocal at
        elements = dims[0] * dims[1]
        np.resize(np.roll(block, 7919 * len(weights)), elements).tofile(blobs)
        tensor = TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT16, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", at), ("length", 2 * elements)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        at += 2 * elements
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    x = "x"
    for layer in map(str, range(count)):
        n = add("LayerNormalization", [x, "gain"], "n" + layer, axis=-1)
        q, k, v = (add("Transpose", [add("Reshape", [add("MatMul", [n, weight(f"w{part}{layer}", width, width)], f"{part}{layer}"), "heads"],
                                         f"{part}h{layer}")], f"{part}t{layer}", perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]) for part in "qkv")
        scores = add("Softmax", [add("Mul", [add("MatMul", [q, k], "s" + layer), "scale"], "c" + layer)], "p" + layer, axis=-1)
        mixed = add("Reshape", [add("Transpose", [add("MatMul", [scores, v], "m" + layer)], "b" + layer, perm=[0, 2, 1, 3]), "flat"], "f" + layer)
        x = add("Add", [x, add("MatMul", [mixed, weight("wo" + layer, width, width)], "o" + layer)], "r" + layer)
        n = add("LayerNormalization", [x, "gain"], "l" + layer, axis=-1)
        gate = add("MatMul", [n, weight("wg" + layer, width, hidden)], "g" + layer)
        up = add("MatMul", [n, weight("wu" + layer, width, hidden)], "u" + layer)
        silu = add("Mul", [gate, add("Sigmoid", [gate], "i" + layer)], "a" + layer)
        x = add("Add", [x, add("MatMul", [add("Mul", [silu, up], "h" + layer), weight("wd" + layer, hidden, width)], "d" + layer)], "y" + layer)
    blobs.close()
    small = {"heads": np.array([0, 0, width // head, head]), "flat": np.array([0, 0, width]), "scale": np.float16(head ** -0.5),
             "gain": np.ones(width, np.float16)}
    weights += [numpy_helper.from_array(np.asarray(values), name) for name, values in small.items()]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, tokens, width]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString())


# ---- Programs ----

def libraries():
    """Where NVIDIA's libraries are: what HONE_CUDA_PATH names, and those of this Python's packages."""
    named = [folder for folder in os.environ.get("HONE_CUDA_PATH", "").split(":") if folder]
    return named + [str(folder) for site in map(pathlib.Path, sys.path) for folder in sorted(site.glob("nvidia/*/lib")) if str(folder) not in named]


class Bench:
    """What the steps share: a folder, the environment of all programs, and what was found."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.results = arguments, folder, {}
        self.shapes = SMALL if arguments.small else SHAPES
        self.one = [] if arguments.small else ["--device=cuda:0"]
        self.environment = {"NCCL_NVLS_ENABLE": "0", "NCCL_DEBUG": os.environ.get("NCCL_DEBUG", "WARN"), "HONE_CUDA_PATH": ":".join(libraries()),
                            "HONE_THREADS": "1" if arguments.small else "8"}
        self.flags = ["--fp16", f"--buildBudget={arguments.budget}"]

    def hone(self, *words, place=None):
        done = subprocess.run([HONE, *map(str, words)], cwd=place or self.folder, capture_output=True, encoding="utf-8", check=False,
                              env={**os.environ, **self.environment}, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"hone {' '.join(map(str, words))}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def launch(self, *words, program="hone", place=None):
        return ranks.Launch(place or self.folder, program, timeout=60, within=300)(*words, env=lambda rank: self.environment)

    def program(self, *words, place=None):
        """bench/ranks_program.py as two ranks."""
        return self.launch("cpu" if self.arguments.small else "cuda:{rank}", *words, program=[sys.executable, ROOT / "bench/ranks_program.py"], place=place)

    def plans(self, name):
        """The folder of a shape's plans, made where they are not there yet."""
        folder = self.folder / name
        if (folder / "model.plan.rank1").exists():
            return folder
        folder.mkdir(exist_ok=True)
        clock = time.monotonic()
        layers(folder / "model.onnx", *self.shapes[name])
        self.hone("shard", "model.onnx", "--tp=2", "-o", "ranks", place=folder)
        print(f"  made and divided: {time.monotonic() - clock:.0f} s", flush=True)
        self.hone("build", "model.onnx", "-o", "whole.plan", *self.flags, *self.one, place=folder)
        print(f"  whole built: {time.monotonic() - clock:.0f} s", flush=True)
        self.launch("build", "ranks/model.onnx", "-o", "model.plan", *self.flags, place=folder)
        print(f"  ranks built: {time.monotonic() - clock:.0f} s", flush=True)
        for big in (folder / "weights.bin", *(folder / "ranks").iterdir()):
            big.unlink()
        return folder


# ---- Steps ----

def smoke(bench):
    """Operands outside of the activations' memory and inside, where ranks reach across, three inferences each."""
    print("  NCCL:", *[found for folder in libraries() for found in pathlib.Path(folder).glob("libnccl.so*")] or ["in no package; the linker's folders"])
    worst, count = {}, 0
    for dtype, inside in ((dtype, inside) for dtype in ("float32", "float16", "int64") for inside in (False, True)):
        nodes, inputs, results = ranks.every_form(inside)
        model = ranks.save(bench.folder / "model.onnx", nodes, inputs, results, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
        values = [np.random.default_rng(rank).integers(1, 5 if inside else 6, (4, 2, 3)).astype(dtype) for rank in range(2)]
        for rank, value in enumerate(values):
            np.save(bench.folder / f"x{rank}.npy", value)
        bench.program("run", "model.onnx", "x{rank}.npy", "out.rank{rank}")
        count += len(results)
        for mine, expected in zip(ranks.outputs(bench.folder, "out"), ranks.reference([model, model], [{"x": x} for x in values]), strict=True):
            for result in results:
                error = float(np.abs(mine[result].astype(np.float64) - expected[result].astype(np.float64)).max())
                worst[dtype] = max(worst.get(dtype, 0), error)
                if error > 1e-2:
                    print(f"  WRONG: {result} of {dtype}: {mine[result].ravel()} instead of {expected[result].ravel()}")
    return {"error": worst, "collectives": count}


def rows(bench):
    """Two contexts whose sizes change, through the Python package: a sum, then both ranks' results together."""
    folder = bench.folder / "rows"
    folder.mkdir()
    nodes = [helper.make_node("Add", ["x", "x"], ["a"]),
             helper.make_node("DistCollective", ["a"], ["s"], collective_operation="all_reduce", reduce_op="sum", group_size=2),
             helper.make_node("Add", ["s", "s"], ["t"]),
             helper.make_node("DistCollective", ["t"], ["g"], collective_operation="all_gather", group_size=2),
             helper.make_node("Neg", ["g"], ["n"]), helper.make_node("Neg", ["n"], ["y"])]
    ranks.save(folder / "model.onnx", nodes, [("x", ["n", 64])], ["y"])
    told = bench.program("rows", "model.onnx", "{rank}", place=folder)
    worst = [float(text.split("worst")[-1]) for text in told]
    if max(worst) > 0:
        print(f"  WRONG: off by {worst}")
    return {"error": max(worst)}


def speed(bench, name):
    folder, (tokens, count, width, hidden) = bench.plans(name), bench.shapes[name]
    np.save(folder / "x.npy", np.random.default_rng(1).standard_normal((1, tokens, width), np.float32).astype(np.float16))
    bench.hone("run", "whole.plan", *bench.one, "-i", "x:x.npy", "-o", "whole", place=folder)
    bench.program("run", "model.plan.rank{rank}", "x.npy", "out.rank{rank}", place=folder)
    whole = next(np.load(path) for path in (folder / "whole").glob("*.npy")).astype(np.float64)
    errors = [float(np.linalg.norm(array - whole) / np.linalg.norm(whole)) for mine in ranks.outputs(folder, "out") for array in mine.values()]
    flags, rows = ["-t", str(bench.arguments.seconds), "--json", "--noDataTransfers"], []
    for _ in range(bench.arguments.rounds):
        one = json.loads(bench.hone("bench", "whole.plan", *bench.one, *flags, place=folder))
        told = bench.launch("bench", "model.plan", *flags, place=folder)[0]
        two = json.loads(told[told.index("{"):])
        rows.append([one["latencyMs"]["median"], two["latencyMs"]["median"], 1e3 / one["queriesPerSecond"], 1e3 / two["queriesPerSecond"]])
    one, two, one_rate, two_rate = (statistics.median(column) for column in zip(*rows, strict=True))
    found = {"error": max(errors), "one_ms": one, "two_ms": two, "gain": one / two, "one_ms_in_a_row": one_rate, "two_ms_in_a_row": two_rate,
             "plan": (folder / "model.plan.rank0").stat().st_size / (folder / "whole.plan").stat().st_size, **profile(bench, folder)}
    if not bench.arguments.small:
        found |= torch_parallel(tokens, count, width, hidden)
        found |= {"over_torch": found["torch_two_ms"] / two, "over_torch_in_a_row": found["torch_two_ms_in_a_row"] / two_rate}
    return found


def profile(bench, folder):
    """What collectives take of a run, layer by layer, and what it takes to enqueue one."""
    told = bench.launch("--loadEngine=model.plan", "--dumpProfile", "--separateProfileRun", "--duration=1", "--noDataTransfers", "--useCudaGraph",
                        "--exportProfile=profile.{rank}.json", program="trtexec", place=folder)[0]
    kernels = json.loads(bench.hone("inspect", "model.plan.rank0", "--layers", "--json", place=folder))["layers"]
    names = {layer["name"] for layer in kernels if layer["kernel"].startswith(("nccl", "gloo"))}
    rows = [row for row in json.loads((folder / "profile.0.json").read_text()) if "name" in row]
    together = [row for row in rows if row["name"] in names]
    enqueue = re.search(r"Enqueue Time:.*?median = ([\d.]+) ms", told)
    return {"layers": len(kernels), "collectives": len(names), "collectives_ms": sum(row["averageMs"] for row in together),
            "layers_ms": sum(row["averageMs"] for row in rows), "enqueue_ms": float(enqueue[1]) if enqueue else None}


def torch_parallel(tokens, count, width, hidden):
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", ROOT / "bench/ranks_torch.py",
                           *map(str, (tokens, count, width, hidden, HEAD))], capture_output=True, encoding="utf-8", check=False, timeout=180,
                          env={**os.environ, "NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"})
    if done.returncode != 0:
        raise RuntimeError(f"ranks_torch.py\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def used(card):
    told = subprocess.run(["nvidia-smi", f"--id={card}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True,
                          encoding="utf-8", check=True).stdout
    return int(told) << 20


def memory_of(start, cards=(0,)):
    """Most bytes that started processes take on each card."""
    before = [used(card) for card in cards]
    processes, most = start(), [0] * len(cards)
    while any(process.poll() is None for process in processes):
        most = [max(value, used(card) - base) for value, card, base in zip(most, cards, before, strict=True)]
        time.sleep(0.1)
    texts = [process.communicate()[0] for process in processes]
    return max(most), [process.returncode for process in processes], texts


def memory(bench):
    """On each card: of a process alone, of two ranks; then both with less free memory than the whole takes."""
    folder = bench.plans("512")
    tiny = bench.folder / "tiny"
    tiny.mkdir()
    together = [helper.make_node("DistCollective", ["x"], ["y"], collective_operation="all_reduce", reduce_op="sum", group_size=2)]
    ranks.save(tiny / "model.onnx", together, [("x", [4])], ["y"])
    ranks.save(tiny / "whole.onnx", [helper.make_node("Neg", ["x"], ["y"])], [("x", [4])], ["y"])
    bench.hone("build", "whole.onnx", "-o", "whole.plan", *bench.one, place=tiny)
    bench.launch("build", "model.onnx", "-o", "model.plan", place=tiny)
    environment = {**os.environ, **bench.environment}

    def whole(place):
        return lambda: [subprocess.Popen([HONE, "bench", "whole.plan", "-t", "1", *bench.one], cwd=place, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, encoding="utf-8", env=environment)]

    def divided(place):
        return lambda: [ranks.Launch(place, timeout=60).start(rank, "bench", "model.plan", "-t", "1", env=bench.environment) for rank in range(2)]

    bytes_ = {key: memory_of(start(place), cards)[0] for key, start, place, cards in (
        ("whole", whole, folder, [0]), ("rank", divided, folder, [0, 1]), ("empty", whole, tiny, [0]), ("empty_rank", divided, tiny, [0, 1]))}
    left = (bytes_["whole"] + bytes_["rank"]) // 2
    ballast = subprocess.Popen([sys.executable, "-c", f"""
import torch
held = []
for card in range(2):
    torch.ones(1, device=f"cuda:{{card}}")
    held.append(torch.empty(torch.cuda.mem_get_info(card)[0] - {left}, dtype=torch.uint8, device=f"cuda:{{card}}"))
print("ready", [torch.cuda.mem_get_info(card)[0] for card in range(2)], flush=True)
input()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        print("  free bytes on the cards:", ballast.stdout.readline().strip())
        _, alone, texts = memory_of(whole(folder))
        _, both, rank_texts = memory_of(divided(folder), [0, 1])
    finally:
        ballast.communicate("\n")
    if any(both):
        print("  " + "\n".join(rank_texts)[-2000:])
    return {"bytes": bytes_, "rank_of_whole": bytes_["rank"] / bytes_["whole"],
            "rank_of_whole_net": (bytes_["rank"] - bytes_["empty_rank"]) / (bytes_["whole"] - bytes_["empty"]), "free_bytes": left,
            "whole_exits": alone[0], "whole_says": texts[0][-400:], "ranks_exit": both}


START, WITHIN = (1, 4), (8, 12)  # seconds after the start: while ranks get ready, and between inferences and in them


def faults(bench):
    place, generator, found = bench.folder / "faults", random.Random(bench.arguments.seed), {}
    place.mkdir()
    old = dict(os.environ)
    os.environ.update(bench.environment)  # of what the fixtures start
    try:
        plans = ranks.plans_for_faults(place)
        for kind, after in (("missing", 0), ("killed", START), ("killed", WITHIN), ("stopped", WITHIN), ("plan", 0)):
            clock, name = time.monotonic(), f"{kind} within inferences" if after == WITHIN else kind
            done = ranks.fault(plans, kind, generator, timeout=6, after=after)
            found[name] = all(ranks.is_told(kind, status, text) for status, text in done)
            print(f"  {name}: {'told' if found[name] else 'NOT TOLD'} after {time.monotonic() - clock:.0f} s: "
                  f"{[(status, text.strip()[-300:]) for status, text in done]}", flush=True)
    finally:
        os.environ.clear()
        os.environ.update(old)
    return found


STEPS = {"smoke": smoke, "rows": rows, "512": lambda bench: speed(bench, "512"), "memory": memory, "faults": faults,
         "4096": lambda bench: speed(bench, "4096"), "70b": lambda bench: speed(bench, "70b")}


def add(parser):
    parser.add_argument("steps", nargs="*", help=", ".join(STEPS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--budget", type=float, default=20, help="seconds of timing in each build")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="small sizes on whatever there is, without PyTorch: does this script work?")
    parser.set_defaults(run=run)


def run(arguments):
    """Exit status 1 where a step broke off."""
    for card in range(0 if arguments.small else 2):
        if subprocess.run([HONE, "problems", "--describe", f"--device=cuda:{card}"], capture_output=True, check=False).returncode != 0:
            print(f"skipped: there is no device cuda:{card}")
            return 0
    unknown = set(arguments.steps) - set(STEPS)
    if unknown:
        sys.exit(f"no step {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    failed = False
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as place:
        bench = Bench(arguments, pathlib.Path(place))
        for name in arguments.steps or STEPS:
            if arguments.small and name == "memory":
                continue
            print(f"{name}:", flush=True)
            clock = time.monotonic()
            try:
                bench.results[name] = STEPS[name](bench)
            except Exception as error:  # noqa: BLE001: the other steps are worth their time
                bench.results[name], failed = {"failed": str(error)[-4000:]}, True
            print(f"{name}: {json.dumps(bench.results[name])} ({time.monotonic() - clock:.0f} s)", flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(bench.results, indent=1) + "\n")
    return 1 if failed else 0
