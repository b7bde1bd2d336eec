# SPDX-License-Identifier: Apache-2.0
"""Runtime: makes engines of plans, which come as bytes or from a reader of the program's."""

import struct
import sys

import hone

from .._base import native, surface
from .._base.checks import instance
from .._base.reports import Managed, called
from .._plugins import registry as plugin_registry
from .engine import ICudaEngine
from .listeners import IGpuAllocator

MAGIC = b"HONEPLAN"
HEADER = 48  # bytes that say how long a plan is
_FOREIGN = (b"ftrt", b"ptrt")  # how plans of NVIDIA's begin


class IStreamReader:
    """Gives a plan piece by piece; to be derived from: read(size) -> bytes."""

    def __init__(self):
        pass


class IStreamReaderV2:
    """Gives a plan piece by piece; to be derived from: read(num_bytes, stream) -> bytes, seek(offset, where) -> bool."""

    def __init__(self):
        pass


class IStreamWriter:
    """Takes a plan piece by piece; to be derived from: write(data) -> bytes taken."""

    def __init__(self):
        pass


def _read(reader, size, by_version_2):
    """So many bytes of a reader, fewer at its end; None where it fails."""
    parts, left = [], size
    while left > 0:
        part = called(reader.read, left, 0) if by_version_2 else called(reader.read, left)
        if part is None:
            return None
        part = bytes(part)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _read_plan(reader, by_version_2):
    head = _read(reader, HEADER, by_version_2)
    if head is None or len(head) < HEADER or not head.startswith(MAGIC):
        return head
    total, = struct.unpack_from("<Q", head, 32)
    rest = _read(reader, total - HEADER, by_version_2)
    return None if rest is None else head + rest


class Runtime(Managed):
    """Makes engines of plans."""

    def __init__(self, logger):
        if not callable(getattr(logger, "log", None)):
            raise TypeError("Runtime(logger): the logger is a tensorrt.ILogger")
        self._logger = logger
        self.engine_host_code_allowed = False  # plans hold no code: kept for the program
        self.max_threads = 1
        self.DLA_core = -1
        self._allocator = None
        self.temporary_directory = None
        self.tempfile_control_flags = 3
        _announce(self)

    @property
    def logger(self):
        """The program's."""
        return self._logger

    @property
    def num_DLA_cores(self):
        """None."""
        return 0

    def deserialize_cuda_engine(self, serialized_engine=None, *, stream_reader=None, stream_reader_v2=None, reader=None):
        """The engine of a plan, of bytes or of a reader; None where it is no plan of Hone's."""
        source = next((each for each in (serialized_engine, stream_reader, stream_reader_v2, reader) if each is not None), None)
        if source is None:
            raise TypeError("deserialize_cuda_engine(serialized_engine): a buffer or a reader")
        if isinstance(source, (IStreamReader, IStreamReaderV2)):
            data = _read_plan(source, isinstance(source, IStreamReaderV2) and not isinstance(source, IStreamReader))
            if data is None:
                return self._failed("the reader gave no plan")
        else:
            data = bytes(memoryview(source).cast("B")) if not isinstance(source, bytes) else source
        if not data.startswith(MAGIC):
            whose = ("it begins as plans of NVIDIA's TensorRT do, which hold code for its GPUs"
                     if data[:4] in _FOREIGN or data[4:8] in _FOREIGN else f"it begins with {data[:8]!r}")
            return self._failed(f"this is no plan of Hone's: {whose}. Build the engine anew from the model, with this module or with "
                                "trtexec --saveEngine")
        try:
            return ICudaEngine(hone.Plan.parse(data), self, self._logger)
        except hone.Error as error:
            return self._failed(native.text_of(error), code="FAILED_INITIALIZATION")

    @property
    def gpu_allocator(self):
        """Gives contexts memory for activations; the very object that was set, or None."""
        return self._allocator

    @gpu_allocator.setter
    def gpu_allocator(self, allocator):
        self._allocator = instance(allocator, IGpuAllocator, "gpu_allocator", none=True)

    def load_runtime(self, path):
        """This runtime: plans of all versions are read by the library that there is."""
        return self

    def get_plugin_registry(self):
        """The one of the process."""
        return plugin_registry.get_plugin_registry()


def _announce(told, said=[]):  # noqa: B006: once in a process
    """The first line that a logger hears: what this module is."""
    if said:
        return
    said.append(True)
    info = native.device().info
    told._said(f"Hone {hone.version()} as TensorRT {surface.VERSION}, on {info.name} ({info.kind})")
    if native.shim_advice():
        print(f"tensorrt (Hone): {native.shim_advice()}", file=sys.stderr)  # not for programs that read what loggers write
