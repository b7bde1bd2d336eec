# SPDX-License-Identifier: Apache-2.0
"""SessionOptions and RunOptions with the members of ONNX Runtime's.

What Hone has a meaning for takes effect; what only says how another engine goes about its work is accepted; what would promise
something that does not happen is refused with a sentence. docs/onnxruntime.md has the list.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from enum import Enum
from typing import Any

from .. import operators
from ..base import Error
from ..shaped import with_level
from .errors import Fail


class _Named(Enum):
    def __int__(self) -> int:
        return self.value


class GraphOptimizationLevel(_Named):
    """How much is done for speed: Hone's builder optimisation levels 0, 1, 2 and 3."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Named):
    """Accepted: an engine decides what runs beside what."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Named):
    """Accepted: an engine decides the order."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _member(kind, default, doc):
    """A property that takes values of one kind, as those of compiled classes do."""
    name = None

    class Member:
        __doc__ = doc

        def __set_name__(self, owner, own):
            nonlocal name
            name = own

        def __get__(self, instance, owner=None):
            return self if instance is None else instance._values.get(name, default)

        def __set__(self, instance, value):
            if not isinstance(value, {str: (str, os.PathLike), bool: object}.get(kind, kind)):
                raise TypeError(f"{name} is {kind.__name__}, not {type(value).__name__}")
            value = os.fspath(value) if kind is str else kind(value)
            instance._values[name] = value

    return Member()


class _Strict:
    """Refuses members that the class does not have: a misspelt option would do nothing."""

    def __init__(self):
        object.__setattr__(self, "_values", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)


class SessionOptions(_Strict):
    """How a session is made."""

    intra_op_num_threads = _member(int, 0, "Threads that work on an inference; 0: one for each core. 1: the calling thread alone.")
    inter_op_num_threads = _member(int, 0, "Accepted: an engine has one set of threads.")
    graph_optimization_level = _member(GraphOptimizationLevel, GraphOptimizationLevel.ORT_ENABLE_ALL, "How long a build may look for speed.")
    enable_profiling = _member(bool, False, "Layers are timed in each run, into a file for chrome://tracing.")
    profile_file_prefix = _member(str, "onnxruntime_profile_", "What that file's name begins with.")
    log_severity_level = _member(int, -1, "0 tells everything, 2 warnings, 4 nothing; -1: set_default_logger_severity()'s.")
    log_verbosity_level = _member(int, 0, "Accepted.")
    logid = _member(str, "", "Stands before each line of the log.")
    optimized_model_filepath = _member(str, "", "The model is written there as it is: what is optimised is the engine (save_plan()).")
    execution_mode = _member(ExecutionMode, ExecutionMode.ORT_SEQUENTIAL, "Accepted.")
    execution_order = _member(ExecutionOrder, ExecutionOrder.DEFAULT, "Accepted.")
    enable_cpu_mem_arena = _member(bool, True, "Accepted: an engine's memory is laid out before it runs.")
    enable_mem_pattern = _member(bool, True, "Accepted.")
    enable_mem_reuse = _member(bool, True, "Accepted.")
    use_deterministic_compute = _member(bool, False, "Accepted: an engine gives the same results in each run.")
    use_per_session_threads = _member(bool, True, "Accepted.")

    def __init__(self):
        super().__init__()
        self._entries: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._meanings: dict[str, int] = {}
        self._weights: dict[str, Any] = {}
        self._providers: list[tuple[str, dict[str, str]]] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """An entry by name. Hone's own: "hone.flags" (trtexec's build flags), "hone.cache" (a folder that keeps engines)."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError("add_session_config_entry(key: str, value: str)")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """A size that is a name in the model is this number."""
        self._sizes[name] = int(size)

    def add_free_dimension_override_by_denotation(self, meaning: str, size: int) -> None:
        """Sizes of this denotation are this number."""
        self._meanings[meaning] = int(size)

    def add_initializer(self, name: str, value: Any) -> None:
        """Another content for a weight, an OrtValue."""
        self._weights[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Other contents for weights."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """A provider, used where the session is given none."""
        self._providers.append((name, dict(options)))

    def has_providers(self) -> bool:
        """Whether add_provider() has been called."""
        return bool(self._providers)

    def register_custom_ops_library(self, path: str) -> None:
        """A library of operators for Hone (docs/c-api.md); those for ONNX Runtime are bound to its own binary interface."""
        try:
            operators.open_operators(path)
        except Error as error:
            raise Fail.of(f"Failed to load library {path}: {error}") from None

    def _flags(self) -> list[str]:
        level = {GraphOptimizationLevel.ORT_ENABLE_ALL: 3}.get(self.graph_optimization_level, int(self.graph_optimization_level))
        return with_level(level, shlex.split(self._entries.get("hone.flags", "")))


class RunOptions(_Strict):
    """How an inference is run."""

    log_severity_level = _member(int, -1, "Accepted.")
    log_verbosity_level = _member(int, 0, "Accepted.")
    logid = _member(str, "", "Accepted.")
    only_execute_path_to_fetches = _member(bool, False, "Accepted: an engine computes all outputs.")

    def __init__(self):
        super().__init__()
        self._entries: dict[str, str] = {}
        self._terminate = False
        self._running: set[Any] = set()

    @property
    def terminate(self) -> bool:
        """Set by another thread, it ends the inferences that were given these options."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if value:
            for context in tuple(self._running):
                context.cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Accepted."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]
