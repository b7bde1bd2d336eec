# SPDX-License-Identifier: Apache-2.0
"""Runs a model through trtexec and through ONNX Runtime on the same values, and compares."""

import json
import re

import numpy as np

WORDS = {"Float": np.float32, "Half": np.float16, "Int8": np.int8, "Int32": np.int32, "Int64": np.int64,
         "UInt8": np.uint8, "Bool": np.bool_}
ONE_RUN = ("--warmUp=0", "--duration=0", "--iterations=1")


def safe(name):
    """A tensor's name as raw files carry it."""
    return re.sub(r"[^A-Za-z0-9._,-]", "_", name)


def read_raw(folder, name, role="output"):
    """The array in NAME.output.1.1000.Float.raw, whose shape and type stand in the file's name."""
    (path,) = folder.glob(f"{safe(name)}.{role}.*.raw")
    match = re.fullmatch(rf"{re.escape(safe(name))}\.{role}\.((?:\d+\.)*)\.?(\w+)\.raw", path.name)
    shape = tuple(int(size) for size in match[1].split(".") if size)
    return np.fromfile(path, WORDS[match[2]]).reshape(shape)


def nats_per_byte(logits, targets):
    logits = logits.astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    chosen = np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return float((np.log(np.exp(logits).sum(-1)) - chosen).mean())


def run_plan(trtexec, plan, feeds, outputs, shapes="", env=None, runs=1):
    """The outputs, by name, of the last of `runs` inferences of the plan file on `feeds`."""
    for path in trtexec.folder.glob("*.raw"):
        path.unlink()
    for name, values in feeds.items():
        np.ascontiguousarray(values).tofile(trtexec.folder / f"{safe(name)}.in")
    trtexec(f"--loadEngine={plan}", *([f"--shapes={shapes}"] if shapes else []), "--warmUp=0", "--duration=0", f"--iterations={runs}", "--dumpRawBindingsToFile",
            "--loadInputs=" + ",".join(f"{name}:{safe(name)}.in" for name in feeds), env=env)
    return {name: read_raw(trtexec.folder, name) for name in outputs}


def check_plan(hone, plan, feeds, shapes="", inferences=100, flags=()):
    """Runs the plan in all the ways that programs do, on two sets of values: (what `hone check` tells, the outputs of the first
    inference on each set). `hone.answer()` runs the program of that name: its standard output, whatever its exit status."""
    lists = []
    for number, values in enumerate(feeds):
        for name, array in values.items():
            np.save(hone.folder / f"{number}.{safe(name)}.npy", np.ascontiguousarray(array))
        lists.append(",".join(f"{name}:{number}.{safe(name)}.npy" for name in values))
    for path in hone.folder.glob("outputs/*.npy"):
        path.unlink()
    text = hone.answer("check", plan, "--json", "-n", inferences, "-o", "outputs", "-i", lists[0], "-j", lists[1], *(["-s", shapes] if shapes else []), *flags)
    report = json.loads(text)
    if "error" in report:
        raise RuntimeError(f"{report['error']} | {report['hint']}")
    return report, [OutputFiles(hone.folder / "outputs", number) for number in ("first", "second")]


class OutputFiles(dict):
    """{name: array} of what `hone check` wrote for one set of inputs."""

    def __init__(self, folder, number):
        super().__init__()
        self.folder, self.number = folder, number

    def __missing__(self, name):
        return np.load(self.folder / f"{self.number}.{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.npy")


def differences(report):
    """What `hone check` found, in words; empty where all was the same."""
    return "; ".join(f"{entry['name']}: {entry['different']} of {entry['inferences']} differ, by {entry['largest']} in {entry['tensor']}"
                     for entry in report["situations"] if entry["different"])


def reference_session(path):
    """ONNX Runtime on the processor, in exact arithmetic: MatMulNBits may round its other operand to 8 bits, which is taken back."""
    import onnx

    if "MatMulNBits" not in {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}:
        return session_of(str(path))
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
        del node.attribute[:]
        node.attribute.extend(kept)
    return session_of(model.SerializeToString())


def session_of(model, rewritten=True):
    """A session of a path or of a model in memory, with the library's rewriting of the graph or as the model is written. Without VNNI
    its sums of 8-bit products saturate at 16 bits unless it is told to be precise. Its idle threads leave the processors to the other tests."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not rewritten:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def relative_error(found, expected):
    """Norm of the difference over the norm of what was expected."""
    assert found.shape == expected.shape
    difference = found.astype(np.float64) - expected.astype(np.float64)
    return float(np.linalg.norm(difference) / max(np.linalg.norm(expected.astype(np.float64)), 1e-30))
