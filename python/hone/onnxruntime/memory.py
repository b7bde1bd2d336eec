# SPDX-License-Identifier: Apache-2.0
"""Names of ONNX Runtime's about memory, libraries and threads that scripts call before they open a session.

An engine lays its memory out before it runs, loads what it needs itself and has the threads of its session: these are accepted, and say
what is true.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from ..base import version as hone_version
from . import errors
from .values import OrtValue

package_name = "hone"
cuda_version = ""  # Hone loads the CUDA that it finds


class OrtAllocatorType(Enum):
    """Accepted."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(Enum):
    """Accepted."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtMemoryInfo:
    """Which memory is meant."""

    def __init__(self, name: str, kind: OrtAllocatorType, number: int, use: OrtMemType):
        self.name, self.allocator_type, self.device_id, self.mem_type = name, kind, number, use


class OrtArenaCfg:
    """Accepted: there are no arenas that grow."""

    def __init__(self, *settings: Any, **named: Any):
        self.settings = settings or named


def create_and_register_allocator(info: OrtMemoryInfo, settings: OrtArenaCfg | None = None) -> None:
    """Accepted: contexts of an engine have their own memory, laid out before they run."""


def create_and_register_allocator_v2(provider: str, info: OrtMemoryInfo, options: dict[str, str], settings: OrtArenaCfg | None = None) -> None:
    """Accepted, as create_and_register_allocator()."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Accepted: Hone looks for CUDA's libraries, also in PyPI's packages, when a GPU is first asked for."""


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """Accepted: a session has its own threads (intra_op_num_threads)."""


def has_collective_ops() -> bool:
    """False: an engine is on one device."""
    return False


def copy_tensors(sources: Sequence[OrtValue], destinations: Sequence[OrtValue], stream: Any = None) -> None:
    """The contents of each source to the destination at its place."""
    if len(sources) != len(destinations):
        raise errors.InvalidArgument.of("copy_tensors() takes as many destinations as sources")
    for source, destination in zip(sources, destinations):
        destination.update_inplace(np.asarray(source.numpy()))


def print_debug_info() -> None:
    """What a report of a fault needs."""
    print(f"Hone {hone_version()}, Python {sys.version.split()[0]}, numpy {np.__version__}, {platform.platform()}")
