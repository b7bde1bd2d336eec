# SPDX-License-Identifier: Apache-2.0
"""ONNX's own node cases through the engine: what one case is, how it runs, what must come out.

    python tests/conformance/suite.py [--sources=reference|tuned] [--device=cuda:0] [--jobs=2] [PATTERN...]   # lists failures by operator

A case is built at level 0 from the bytes of its model, by the very calls that any program makes, and its results are
compared by the rules and tolerances that the suite itself states. It runs several times, with other values in between, and on
memory that is filled with NaNs before each inference. Processes die of nothing here: each case runs in a worker, and a worker
that goes down names the case it held.
"""

import argparse
import collections
import fnmatch
import functools
import importlib
import json
import multiprocessing
import os
import pathlib
import sys
import warnings

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGAIN = 2  # inferences behind the one on other values: on a GPU the first of them replays a graph
FLAGS = {"tuned": [], "reference": ["--tacticSources=-JIT_CONVOLUTIONS,-CUDNN"]}


@functools.cache
def hone():
    """The package of the build under test: HONE_PACKAGE, else that of the release build."""
    os.environ["HONE_POISON"] = "1"
    sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))
    return importlib.import_module("hone")


@functools.cache
def cases(kind="node"):
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                 # the suite divides by zero on purpose
        return {case.name: case for case in load_model_tests(kind=kind)}


def data_sets(case):
    """[(inputs, outputs)] as Python values: arrays, lists for sequences, None for absent optionals."""
    if case.data_sets is not None:
        return [tuple([as_value(value) for value in side] for side in pair) for pair in case.data_sets]
    directories = sorted(pathlib.Path(case.model_dir).glob("test_data_set*"))
    return [tuple(stored_values(directory, case_model(case).graph, side) for side in ("input", "output")) for directory in directories]


def as_value(value):
    """Some cases hold their tensors as messages."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return value


def stored_values(directory, graph, side):
    values = []
    for index, info in enumerate(getattr(graph, side)):
        path = directory / f"{side}_{index}.pb"
        if not path.exists():
            break
        data, kind = path.read_bytes(), info.type.WhichOneof("value")
        if kind == "sequence_type":
            values.append(onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
        elif kind == "optional_type":
            values.append(onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data)))
        else:
            values.append(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    return values


def case_model(case):
    return case.model if case.model is not None else onnx.load(str(pathlib.Path(case.model_dir) / "model.onnx"))


def run_case(case, sources="tuned", device="cpu"):
    """What ran; raises where the case does not pass."""
    backend = importlib.import_module(f"{hone().__name__}.backend")
    model = case_model(case)
    exact = [] if device == "cpu" else ["--noTF32"]
    representation = backend.HoneRep(model, device, [backend.LEVEL, *exact, *FLAGS[sources]])
    for inputs, expected in data_sets(case):
        for inference in range(1 + AGAIN):
            if inference == 1:
                run_on_other_values(representation, inputs)
            results = representation.run(inputs)
            for info, own, reference in zip(model.graph.output, results, expected):
                check(f"{info.name} of inference {inference}", own, reference, case)
    return representation


def run_on_other_values(representation, inputs):
    """The first operand's values change places; whatever comes out may not show in the next inference."""
    first = inputs[0] if inputs else None
    if not isinstance(first, np.ndarray) or first.size < 2 or first.dtype.kind != "f":
        return
    try:
        representation.run([np.roll(first.reshape(-1), 1).reshape(first.shape), *inputs[1:]])
    except hone().Error:
        pass  # not every order of values is valid


def check(name, actual, expected, case):
    if isinstance(expected, (list, tuple)):
        assert isinstance(actual, list) and len(actual) == len(expected), f"{name}: {actual!r} is not a sequence of {len(expected)}"
        for index, (own, wanted) in enumerate(zip(actual, expected)):
            check(f"{name}[{index}]", own, wanted, case)
        return
    if expected is None:
        assert actual is None, f"{name}: an absent value was expected"
        return
    expected = np.asarray(expected)
    assert isinstance(actual, np.ndarray), f"{name}: {actual!r} is no tensor"
    assert actual.shape == expected.shape, f"{name}: shape {actual.shape}, expected {expected.shape}"
    if expected.dtype.kind in "OUS":
        decode = lambda value: value.decode() if isinstance(value, bytes) else str(value)
        assert [decode(v) for v in actual.flat] == [decode(v) for v in expected.flat], f"{name}: {actual!r}, expected {expected!r}"
        return
    assert actual.dtype == expected.dtype, f"{name}: type {actual.dtype}, expected {expected.dtype}"
    rtol = max(case.rtol, 2 ** -6) if expected.dtype.name == "bfloat16" else case.rtol   # as the suite's own runner
    widened = np.float64 if expected.dtype.kind in "fV" or expected.dtype.itemsize < 2 and expected.dtype.kind not in "iub" else None
    if widened:
        actual, expected = actual.astype(widened), expected.astype(widened)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=case.atol, err_msg=name)


def first_line(error):
    text = " / ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return f"{type(error).__name__}: {text[:300]}"


def with_weights(case):
    """The case with all operands but the first as constants, as models hold weights: many kernels want them so."""
    model = onnx.ModelProto()
    model.CopyFrom(case_model(case))
    for info, value in list(zip(model.graph.input, data_sets(case)[0][0]))[1:]:
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, info.name))
            model.graph.input.remove(info)
    return model


def sources_in(plan):
    """{node: sources with a kernel for it, the reference aside}."""
    offers = {record["layer"]: {candidate["tactic"].split(".")[0] for candidate in record["candidates"] if not candidate["note"].startswith("refused")}
              for record in plan["log"]}
    sources = collections.defaultdict(set)
    for step in plan["profiles"][0]["steps"]:
        for origin in step["origin"]:
            sources[origin] |= offers.get(step["name"], set()) - {"reference"} if step["code"] >= 0 else set()
    return sources


def facts(case, representation):
    """[(operator, element types of its operands, sources with a kernel for it)] of the nodes of a case that passed."""
    graph = case_model(case).graph
    weighted = hone().Model.parse(with_weights(case).SerializeToString()).build(representation.arguments)
    found = [sources_in(json.loads(plan.json())) for plan in (representation.plan, weighted)]
    kinds = {info.name: info.type.tensor_type.elem_type for info in graph.input if info.type.WhichOneof("value") == "tensor_type"}
    rows = []
    for index, node in enumerate(graph.node):
        operands = sorted({kinds[name] for name in node.input if kinds.get(name)})
        name = node.name or f"{node.op_type}_{index}"
        rows.append((node.domain, node.op_type, operands, sorted(found[0][name] | found[1][name])))
    return rows


def worker(kind, sources, device, names, pipe):
    for name in names:
        pipe.send((name, "the process died", []))
        try:
            case = cases(kind)[name]
            ran = run_case(case, sources, device)
            pipe.send((name, None, facts(case, ran) if (sources, device, kind) == ("tuned", "cpu", "node") else []))
        except Exception as error:                      # noqa: BLE001 - whatever it was, it is this case's failure
            pipe.send((name, first_line(error), []))
    pipe.close()


def failures(kind="node", sources="tuned", patterns=(), jobs=2, device="cpu", seen=None):
    """{case: message} of all cases that do not pass, and how many there were. `seen`, if given, takes {case: facts}."""
    names = [name for name in cases(kind) if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    hone()
    fork = multiprocessing.get_context("fork")
    outcome, active = {}, []

    def start(share):
        if share:
            receiver, sender = fork.Pipe(duplex=False)
            process = fork.Process(target=worker, args=(kind, sources, device, share, sender))
            process.start()
            sender.close()
            active.append((process, receiver, share))

    for job in range(jobs):
        start(names[job::jobs])
    while active:
        for entry in list(active):
            process, receiver, share = entry
            try:
                if receiver.poll(0.05):
                    name, message, found = receiver.recv()
                    outcome[name] = message
                    if seen is not None:
                        seen[name] = found
                continue
            except EOFError:
                process.join()
                active.remove(entry)
                start([name for name in share if name not in outcome])
    return {name: message for name, message in outcome.items() if message is not None}, len(names)


def operators(case):
    return "+".join(dict.fromkeys(f"{node.domain}{'.' if node.domain else ''}{node.op_type}" for node in case_model(case).graph.node))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", default="tuned", choices=FLAGS)
    parser.add_argument("--kind", default="node")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    failed, count = failures(arguments.kind, arguments.sources, arguments.patterns, arguments.jobs, arguments.device)
    by_operator = collections.defaultdict(list)
    for name, message in failed.items():
        by_operator[operators(cases(arguments.kind)[name])[:60]].append((name, message))
    for operator, entries in sorted(by_operator.items(), key=lambda item: -len(item[1])):
        print(f"{operator}: {len(entries)}")
        for name, message in sorted(entries):
            print(f"    {name}: {message}")
    print(f"{count - len(failed)} of {count} cases pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
