# SPDX-License-Identifier: Apache-2.0
"""Runs a model through trtexec and through ONNX Runtime on the same values, and compares."""

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
    match = re.fullmatch(rf"{re.escape(safe(name))}\.{role}\.((?:\d+\.)*)(\w+)\.raw", path.name)
    shape = tuple(int(size) for size in match[1].split(".") if size)
    return np.fromfile(path, WORDS[match[2]]).reshape(shape)


def run_plan(trtexec, plan, feeds, outputs, shapes="", env=None):
    """The outputs, by name, of one inference of the plan file on `feeds`."""
    for path in trtexec.folder.glob("*.raw"):
        path.unlink()
    for name, values in feeds.items():
        np.ascontiguousarray(values).tofile(trtexec.folder / f"{safe(name)}.in")
    trtexec(f"--loadEngine={plan}", *([f"--shapes={shapes}"] if shapes else []), *ONE_RUN, "--dumpRawBindingsToFile",
            "--loadInputs=" + ",".join(f"{name}:{safe(name)}.in" for name in feeds), env=env)
    return {name: read_raw(trtexec.folder, name) for name in outputs}


def reference_session(path):
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def reference_session_of(data):
    """The same for a model in memory."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def relative_error(found, expected):
    """Norm of the difference over the norm of what was expected."""
    assert found.shape == expected.shape
    difference = found.astype(np.float64) - expected.astype(np.float64)
    return float(np.linalg.norm(difference) / max(np.linalg.norm(expected.astype(np.float64)), 1e-30))
