# SPDX-License-Identifier: Apache-2.0
"""Hone from Python: a binding over the C interface (include/hone/hone.h) alone.

    plan = hone.build("model.onnx", profiles=[{"x": ([1, 4], [8, 4], [16, 4])}], progress=True)
    plan.save("model.plan")
    with plan.engine().context() as context:
        y = context.run({"x": values})["y"]                  # numpy's arrays, torch's tensors and others', where they lie
        y = (await context.run_async({"x": values}))["y"]    # while the loop does other things

Arguments come in one order: what is built, flags, device, log, threshold of the log; all others by name. Objects hold memory of the
library until they are closed, by hand (close()), at the end of a with block, or by Python.
"""

from .arrays import DTYPES, Tensor, empty
from .base import INFO, VERBOSE, WARNING, Cancelled, Error, version
from .building import Candidate, Layer, Model, Network, Plan, PlanInfo, TimingCache, Weight, build, load
from .devices import Ceilings, Device, DeviceInfo, Event, Stream
from .diagnosis import DiagnosedNode, Diagnosis, Diagnostic, Problem, diagnose
from .operators import Operator, open_operators, operator
from .progress import Progress, ProgressBar
from .running import Context, Engine, Enqueued

__version__ = version()


def __getattr__(name: str):
    """ONNX Runtime's names (hone.onnxruntime), so that `import hone as ort` moves a script; hone.compare, hone.graph and hone.torch."""
    import importlib

    if name in ("compare", "graph", "onnxruntime", "torch"):
        return importlib.import_module(f"{__name__}.{name}")
    if not name.startswith("__"):
        module = importlib.import_module(f"{__name__}.onnxruntime")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["DTYPES", "INFO", "VERBOSE", "WARNING", "Cancelled", "Candidate", "Ceilings", "Context", "Device", "DeviceInfo", "DiagnosedNode",
           "Diagnosis", "Diagnostic", "Engine", "Enqueued", "Error", "Event", "Layer", "Model", "Network", "Operator", "Plan", "PlanInfo",
           "Problem", "Progress", "ProgressBar", "Stream", "Tensor", "TimingCache", "Weight", "build", "diagnose", "empty", "load",
           "open_operators", "operator", "version"]
