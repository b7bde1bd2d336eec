# SPDX-License-Identifier: Apache-2.0
"""IOBinding: inputs and outputs that stay where a program has put them, on the processor or on a GPU, for several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import DTYPES, KINDS, NAMES, Memory, Tensor, empty, memory_of
from ..running import Context
from .values import OrtValue, check_device, content_of, device_named, kind_of

if TYPE_CHECKING:
    from .session import InferenceSession


class IOBinding:
    """Made by InferenceSession.io_binding(), run by run_with_iobinding()."""

    def __init__(self, session: InferenceSession):
        self._session = session
        self._inputs: dict[str, tuple[Any, Memory | None]] = {}
        self._outputs: dict[str, tuple[Any, Memory | None] | str] = {}  # memory, or the device that it is to be made on
        self._results: list[OrtValue] = []

    def _known(self, name, among):
        if all(each.name != name for each in among):
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")

    @staticmethod
    def _at(device_type, device_id, element_type, shape, address):
        kind = KINDS["host" if check_device(device_type, device_id) == "cpu" else "device"]
        return Memory(address or 64, kind, kind_of(element_type), tuple(shape), None)

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """An array; it is read when the session runs."""
        self._known(name, self._session.get_inputs())
        self._inputs[name] = (arr_on_cpu, None)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Memory by its address."""
        self._known(name, self._session.get_inputs())
        self._inputs[name] = (None, self._at(device_type, device_id, element_type, shape, buffer_ptr))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue."""
        self._known(name, self._session.get_inputs())
        self._inputs[name] = (content_of(ortvalue), None)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Memory by its address; without one, each run makes it on the device that is named."""
        if buffer_ptr is None:
            self._outputs[name] = check_device(device_type, device_id)
        else:
            if element_type is None or shape is None:
                raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
            self._outputs[name] = (None, self._at(device_type, device_id, element_type, shape, buffer_ptr))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """An OrtValue, which is written."""
        self._outputs[name] = (content_of(ortvalue), None)

    def clear_binding_inputs(self) -> None:
        """Nothing is bound to inputs any more."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Nothing is bound to outputs any more."""
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing waits: a run does."""

    def synchronize_outputs(self) -> None:
        """Nothing waits: a run has."""

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order in which they were bound."""
        return self._results

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The same as arrays."""
        return [value.numpy() for value in self._results]

    # What the session asks.

    def _shapes(self):
        return {name: memory.shape if memory else tuple(np.shape(content)) for name, (content, memory) in self._inputs.items()}

    def _feed(self, context: Context) -> None:
        for name, (content, memory) in self._inputs.items():
            if memory is None:
                self._session._check_feed(name, content)
                context.set_input(name, content)
            else:
                self._session._check_type(name, memory.type)
                context.set_shape(name, memory.shape) if -1 in context.engine.inputs[name][1] else None
                context._bind(name, memory)

    def _place(self, context: Context) -> dict[str, Any]:
        """Binds the outputs; what the results are to be made of."""
        placed: dict[str, Any] = {}
        for name, (dtype, _) in context.engine.outputs.items():
            if name in context.engine.by_value:
                continue
            kind, shape = context.engine.types[name], context.shape(name)
            wanted = self._outputs.get(name, "cpu")
            if isinstance(wanted, str):
                on_host = wanted == "cpu" and dtype is not None
                content = empty(shape, dtype) if on_host else Tensor(context.engine.device if wanted == "cpu" else device_named(wanted),
                                                                     shape, NAMES[kind])
                memory = memory_of(content)
            else:
                content, memory = wanted if wanted[1] else (wanted[0], memory_of(wanted[0]))
                if memory is None or memory.type != kind or (-1 not in shape and memory.shape != tuple(shape)):
                    given = "memory with gaps" if memory is None else f"{NAMES[memory.type]} {list(memory.shape)}"
                    raise RuntimeError(f"Error in execution: the output {name} is {NAMES[kind]} {list(shape)}, what is bound to it is {given}")
                content = _array_at(memory) if content is None else content
            placed[name] = content
            context._bind(name, memory._replace(owner=content))
        return placed

    def _take(self, context: Context, placed: dict[str, Any]) -> None:
        self._results = []
        for name in self._outputs:
            content = context.value(name) if name in context.engine.by_value else placed[name]
            memory = memory_of(content) if not isinstance(content, (list, dict)) and content is not None else None
            on_gpu = memory is not None and memory.kind == KINDS["device"]
            self._results.append(OrtValue(content, f"cuda:{context.engine.device.ordinal}" if on_gpu else "cpu"))


class _Outside:
    """Memory of the caller's, as numpy or a reader of CUDA's memory sees it."""

    def __init__(self, memory: Memory):
        dtype = DTYPES[memory.type] or np.dtype(np.uint16)
        described = {"version": 3, "shape": memory.shape, "typestr": dtype.str if dtype.kind != "V" else f"|V{dtype.itemsize}",
                     "data": (memory.address, False), "strides": None}
        setattr(self, "__cuda_array_interface__" if memory.kind == KINDS["device"] else "__array_interface__", described)
        self.shape, self.dtype = memory.shape, dtype


def _array_at(memory):
    outside = _Outside(memory)
    return outside if memory.kind == KINDS["device"] else np.asarray(outside).view(outside.dtype)
