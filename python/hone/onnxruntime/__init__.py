# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's interface over Hone: a script moves by its import line.

    import hone.onnxruntime as ort                 # instead of: import onnxruntime as ort
    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": values})

The names are in `hone` as well (`import hone as ort`). What is the same and what is not: docs/onnxruntime.md.
"""

from ..base import version as _hone_version
from . import errors
from .binding import IOBinding
from .memory import (
    OrtAllocatorType,
    OrtArenaCfg,
    OrtMemoryInfo,
    OrtMemType,
    copy_tensors,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    cuda_version,
    has_collective_ops,
    package_name,
    preload_dlls,
    print_debug_info,
    set_global_thread_pool_sizes,
)
from .model_info import ModelMetadata, NodeArg
from .opening import get_all_providers, get_available_providers, has_gpu
from .options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .session import InferenceSession, set_default_logger_severity
from .values import OrtDevice, OrtValue

version = __version__ = "1.31.1"  # of ONNX Runtime, whose interface this is

globals().update({name: getattr(errors, name) for name in errors.NAMES})

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
           "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtMemType", "OrtMemoryInfo", "OrtValue", "RunOptions", "SessionOptions",
           "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2", "cuda_version", "disable_telemetry_events",
           "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info", "get_device", "get_version_string",
           "has_collective_ops", "package_name", "preload_dlls", "print_debug_info", "set_default_logger_severity",
           "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed", *errors.NAMES]


def get_device() -> str:
    """ "GPU" where there is one, else "CPU"."""
    return "GPU" if has_gpu() else "CPU"


def get_version_string() -> str:
    """Of ONNX Runtime, whose interface this is."""
    return __version__


def get_build_info() -> str:
    """What is behind the interface."""
    return f"Hone {_hone_version()}"


def set_default_logger_verbosity(level: int) -> None:
    """Accepted."""


def set_seed(seed: int) -> None:
    """Accepted: a random operator's seed is its attribute, or is drawn when an engine is built."""


def enable_telemetry_events() -> None:
    """Accepted: Hone tells nobody anything."""


def disable_telemetry_events() -> None:
    """Accepted: Hone tells nobody anything."""
