# SPDX-License-Identifier: Apache-2.0
"""Several ranks of one network: started as torchrun starts them, and as what they should compute - all ranks in one process, by ONNX's
reference implementation, with the collectives between its threads."""

import os
import pathlib
import signal
import subprocess
import threading
import time

import numpy as np
import onnx
from conftest import BIN
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class Launch:
    """Starts ranks of a program in one folder. Arguments may hold {rank}, or be functions of the rank."""

    def __init__(self, folder, program="hone", ranks=2, timeout=20, within=120):
        self.folder, self.program, self.ranks, self.timeout, self.within = pathlib.Path(folder), program, ranks, timeout, within

    def start(self, rank, *arguments, env=None):
        words = [argument(rank) if callable(argument) else str(argument).replace("{rank}", str(rank)) for argument in arguments]
        command = [BIN / self.program, *words] if isinstance(self.program, str) else [*self.program, *words]
        told = {"RANK": str(rank), "WORLD_SIZE": str(self.ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(self.ranks),
                "HONE_MEETING": str(self.folder / "meeting"), "HONE_RANK_TIMEOUT": str(self.timeout), "HONE_THREADS": "1"}
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                encoding="utf-8", errors="replace", env={**os.environ, **told, **(env or {})})

    def finish(self, processes):
        """(exit status, what was printed) of each. A rank that hangs fails the test."""
        ends = time.monotonic() + self.within
        return [(process.wait(max(ends - time.monotonic(), 0.1)), text) for process, text in
                [(process, process.communicate(timeout=max(ends - time.monotonic(), 0.1))[0]) for process in processes]]

    def run(self, *arguments, env=None):
        return self.finish([self.start(rank, *arguments, env=env(rank) if env else None) for rank in range(self.ranks)])

    def __call__(self, *arguments, env=None):
        """What each rank printed; all must succeed."""
        done = self.run(*arguments, env=env)
        for rank, (status, text) in enumerate(done):
            assert status == 0, f"rank {rank}: exit {status}\n{text[-2000:]}"
        return [text for _, text in done]


def outputs(folder, name, ranks=2):
    """{tensor: array} of each rank that wrote into the folder."""
    return [{path.stem: np.load(path) for path in (pathlib.Path(folder) / f"{name}.rank{rank}").glob("*.npy")} for rank in range(ranks)]


class Together:
    """What ranks as threads tell each other."""

    def __init__(self, ranks):
        self.barrier, self.slots, self.local, self.ranks = threading.Barrier(ranks, timeout=60), [None] * ranks, threading.local(), ranks

    def exchange(self, mine):
        self.barrier.wait()
        self.slots[self.local.rank] = mine
        self.barrier.wait()
        return list(self.slots)


REDUCE = {"sum": np.add.reduce, "prod": np.multiply.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce,
          "avg": lambda parts: np.add.reduce(parts) / len(parts)}


def collective(parts, rank, operation, reduce="sum", root=0, axis=0):
    """The result of one rank, of all ranks' operands."""
    blocks = lambda whole: np.split(whole, len(parts), axis)[rank]  # noqa: E731
    total = lambda: REDUCE[reduce](np.stack(parts)).astype(parts[0].dtype)  # noqa: E731
    on_root = lambda result: result if rank == root else np.zeros_like(result)  # noqa: E731
    return {"all_reduce": total, "all_gather": lambda: np.concatenate(parts, axis), "reduce_scatter": lambda: blocks(total()),
            "all_to_all": lambda: np.concatenate([np.split(part, len(parts), axis)[rank] for part in parts], axis),
            "broadcast": lambda: parts[root], "reduce": lambda: on_root(total()),
            "gather": lambda: on_root(np.concatenate(parts, axis)), "scatter": lambda: blocks(parts[root])}[operation]()


def evaluators(together):
    """Operators of ONNX's reference implementation that wait for the other threads."""

    class DistCollective(OpRun):
        op_domain = ""

        def _run(self, x, collective_operation=None, reduce_op=None, root=None, group_size=None, groups=None):
            return (collective(together.exchange(x), together.local.rank, collective_operation, reduce_op or "sum", root or 0),)

    class AllReduce(OpRun):
        op_domain = "com.microsoft"

        def _run(self, *xs):
            return tuple(collective(together.exchange(x), together.local.rank, "all_reduce") for x in xs)

    class AllGather(OpRun):
        op_domain = "com.microsoft"

        def _run(self, x, axis=None, group_size=None):
            return (collective(together.exchange(x), together.local.rank, "all_gather", axis=axis or 0),)

    class AllToAll(OpRun):
        op_domain = "com.microsoft"

        def _run(self, x, group_size=None):
            return (collective(together.exchange(x), together.local.rank, "all_to_all"),)

    return [DistCollective, AllReduce, AllGather, AllToAll]


def reference(models, feeds):
    """The outputs of each rank, by name: models and feeds by rank, evaluated together."""
    together, results, failures = Together(len(models)), [None] * len(models), []

    def run(rank):
        together.local.rank = rank
        try:
            evaluator = ReferenceEvaluator(models[rank], new_ops=evaluators(together))
            results[rank] = dict(zip(evaluator.output_names, evaluator.run(None, feeds[rank]), strict=True))
        except Exception as error:  # noqa: BLE001: told by the thread that waits
            failures.append(error)
            together.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def save(path, nodes, inputs, results, dtype=TensorProto.FLOAT, opset=17):
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "together", [helper.make_tensor_value_info(name, dtype, dims) for name, dims in inputs],
                              [helper.make_tensor_value_info(name, dtype, None) for name in results])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, path)
    return model


FORMS = [("all_reduce", {"reduce_op": reduce}) for reduce in REDUCE] + [
    ("all_gather", {}), ("reduce_scatter", {}), ("all_to_all", {}), ("broadcast", {"root": 1}), ("reduce", {"root": 1}), ("gather", {"root": 0}),
    ("scatter", {"root": 1})]


def every_form(inside=False):
    """DistCollective in all its forms, and com.microsoft's three, on one input [4,2,3]: nodes, inputs, results. Inside: between other
    operators, so that operands are no inputs and outputs of the network."""
    nodes = [helper.make_node("DistCollective", ["x"], [f"{form}{i}"], collective_operation=form, group_size=2, groups=[0, 1], **attributes)
             for i, (form, attributes) in enumerate(FORMS)]
    nodes += [helper.make_node("AllGather", ["x"], [f"axis{axis}"], domain="com.microsoft", group_size=2, axis=axis) for axis in range(3)]
    nodes += [helper.make_node("AllReduce", ["x"], ["all"], domain="com.microsoft"),
              helper.make_node("AllToAll", ["x"], ["exchanged"], domain="com.microsoft", group_size=2)]
    results = [node.output[0] for node in nodes]
    if inside:
        for node in nodes:
            node.input[0], node.output[0] = "twice", f"inner_{node.output[0]}"
        nodes = [helper.make_node("Add", ["x", "x"], ["twice"]), *nodes, *(helper.make_node("Add", [f"inner_{name}"] * 2, [name]) for name in results)]
    return nodes, [("x", [4, 2, 3])], results


# ---- What goes wrong ----

def plans_for_faults(folder):
    """Plans of two ranks of a model with an open size, and of another model. Collectives stand between other operators: on cards kernels reach
    across there, which end by themselves only with their inference."""
    for name, scale in (("model", 1), ("other", 3)):
        nodes = [helper.make_node("Add", ["x", "x"], ["twice"]),
                 helper.make_node("DistCollective", ["twice"], ["h0"], collective_operation="all_reduce", reduce_op="sum", group_size=2)]
        nodes += [helper.make_node("DistCollective", [f"h{i}"], [f"h{i + 1}"], collective_operation="all_reduce", reduce_op="max", group_size=2)
                  for i in range(scale)]
        nodes.append(helper.make_node("Add", [f"h{scale}", f"h{scale}"], ["y"]))
        save(folder / f"{name}.onnx", nodes, [("x", ["n", 4])], ["y"])
        Launch(folder, "trtexec")(f"--onnx={name}.onnx", f"--saveEngine={name}.plan", "--minShapes=x:1x4", "--optShapes=x:2x4", "--maxShapes=x:8x4",
                                  "--skipInference")
    return folder


def another_version(plans):
    """A copy of the program that takes itself for a later version."""
    home = plans / "later"
    if not home.exists():
        (home / "bin").mkdir(parents=True)
        (home / "lib").symlink_to(BIN.parent / "lib")
        version = subprocess.run([BIN / "hone", "--version"], capture_output=True, encoding="utf-8", check=True).stdout.split()[1]
        text, later = version.encode() + b"\0", version[:-1].encode() + b"9\0"
        program = (BIN / "hone").read_bytes()
        assert program.count(b"\0" + text) == 1, f"{version} is not found once in the program"
        (home / "bin/hone").write_bytes(program.replace(b"\0" + text, b"\0" + later))
        (home / "bin/hone").chmod(0o755)
    return [home / "bin/hone"]


def fault(plans, kind, generator, timeout=2, after=(0.05, 1.0)):
    """Two ranks, one of which is missing, killed or stopped so many seconds after the start, or runs another plan, other shapes or
    another version: (exit status, text) of those that are there."""
    launch = Launch(plans, timeout=timeout)
    run = ["run", "model.plan", "-s", "x:2x4"]
    bad = generator.randrange(2)
    if kind == "missing":
        return launch.finish([launch.start(1 - bad, *run)])
    if kind in ("killed", "stopped"):
        processes = [launch.start(rank, "bench", "model.plan", "-s", "x:2x4", "-t", "60") for rank in range(2)]
        time.sleep(generator.uniform(*after))
        processes[bad].send_signal(signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
        done = launch.finish([processes[1 - bad]])
        processes[bad].kill()
        processes[bad].communicate()
        return done
    if kind == "version":
        other = Launch(plans, another_version(plans), timeout=timeout)
        return launch.finish([(other if rank == bad else launch).start(rank, *run) for rank in range(2)])
    other = {"plan": ["run", "other.plan", "-s", "x:2x4"], "shapes": ["run", "model.plan", "-s", "x:3x4"]}[kind]
    return launch.finish([launch.start(rank, *(other if rank == bad else run)) for rank in range(2)])


SENTENCES = {"missing": ["has not come within"], "killed": ["lost the others", "has not come", "cannot reach", "for an inference to end"],
             "stopped": ["has not answered within", "has not come", "cannot reach", "for an inference to end", "lost the others in NCCL"],
             "plan": ["have different plans"], "shapes": ["have different shapes: rank 0 has"],
             "version": ["rank 0 is Hone", "rank 1 is Hone"]}


def is_told(kind, status, text):
    """Whether a rank ended with a sentence that says what the other one did."""
    return status == 1 and any(sentence in text for sentence in SENTENCES[kind]) and "hint" in text
