# SPDX-License-Identifier: Apache-2.0
"""Hone from Python: a binding over the C interface (include/hone/hone.h) alone, with numpy arrays for tensors.

    plan = hone.build("model.onnx", ["--minShapes=x:1x4", "--optShapes=x:8x4", "--maxShapes=x:16x4"])
    plan.save("model.plan")
    context = plan.engine().context()
    y = context.run({"x": values})["y"]

The library is build/release/lib/libhone.so, or what HONE_LIBRARY names.
"""

import ctypes
import os
import pathlib

import numpy as np

MAX_RANK = 32
DTYPES = [np.dtype(name) if name else None for name in
          ("float32", "float16", None, "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
           "uint64", "bool", None)]  # in the order of hone_dtype; numpy has no bfloat16 and no string of C's kind


class Error(Exception):
    """What hone_last_error() says."""


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("is_input", ctypes.c_int), ("rank", ctypes.c_int),
                ("dims", ctypes.c_int64 * MAX_RANK)]


LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class Log(ctypes.Structure):
    _fields_ = [("write", LOG_FUNCTION), ("user", ctypes.c_void_p), ("threshold", ctypes.c_int)]


VERBOSE = 4
LAYER_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double)
HANDLE, TEXT, SIZES = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64)
OUT = ctypes.POINTER(HANDLE)

# name: argument types of every function that returns a status
STATUS_FUNCTIONS = {
    "device_open": [TEXT, OUT],
    "options_create": [ctypes.POINTER(TEXT), ctypes.c_size_t, OUT],
    "model_import": [TEXT, ctypes.POINTER(Log), OUT],
    "build": [HANDLE, HANDLE, HANDLE, ctypes.POINTER(Log), OUT],
    "plan_load": [TEXT, OUT],
    "plan_save": [HANDLE, TEXT],
    "plan_json": [HANDLE, ctypes.POINTER(TEXT)],
    "engine_create": [HANDLE, HANDLE, OUT],
    "engine_tensor": [HANDLE, ctypes.c_size_t, ctypes.POINTER(TensorInfo)],
    "context_create": [HANDLE, ctypes.c_int, OUT],
    "context_set_shape": [HANDLE, TEXT, SIZES, ctypes.c_int],
    "context_shape": [HANDLE, TEXT, SIZES, ctypes.POINTER(ctypes.c_int)],
    "context_bytes": [HANDLE, TEXT, SIZES],
    "context_bind": [HANDLE, TEXT, HANDLE],
    "context_run": [HANDLE],
    "context_profile": [HANDLE, LAYER_FUNCTION, HANDLE],
}


def load_library():
    default = pathlib.Path(__file__).resolve().parent.parent / "build/release/lib/libhone.so"
    library = ctypes.CDLL(os.environ.get("HONE_LIBRARY", str(default)))
    library.hone_version.restype = library.hone_last_error.restype = TEXT
    for name, arguments in STATUS_FUNCTIONS.items():
        getattr(library, f"hone_{name}").argtypes = arguments
    for name in ("device", "options", "model", "plan", "engine", "context"):
        destroy = getattr(library, f"hone_{name}_destroy")
        destroy.argtypes, destroy.restype = [HANDLE], None
    library.hone_engine_tensors.argtypes, library.hone_engine_tensors.restype = [HANDLE], ctypes.c_size_t
    return library


LIBRARY = load_library()


def call(name, *arguments):
    if getattr(LIBRARY, f"hone_{name}")(*arguments) != 0:
        raise Error(LIBRARY.hone_last_error().decode())


def create(name, *arguments):
    handle = HANDLE()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def empty(shape, dtype):
    """An array that begins at a multiple of 64 bytes."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    memory = np.empty(count * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + count * dtype.itemsize].view(dtype).reshape(shape)


def version():
    return LIBRARY.hone_version().decode()


def encode(path):
    return os.fsencode(path)


class Object:
    """Something the library made, destroyed with this."""

    def __init__(self, kind, handle, keeps=None):
        self.kind, self.handle, self.keeps = kind, handle, keeps

    def __del__(self):
        getattr(LIBRARY, f"hone_{self.kind}_destroy")(self.handle)


class Plan(Object):
    def __init__(self, handle):
        super().__init__("plan", handle)

    def save(self, path):
        call("plan_save", self.handle, encode(path))

    def json(self):
        text = TEXT()
        call("plan_json", self.handle, ctypes.byref(text))
        return text.value.decode()

    def engine(self, device="cpu"):
        opened = open_device(device)
        return Engine(create("engine_create", self.handle, opened.handle))


class Engine(Object):
    def __init__(self, handle):
        super().__init__("engine", handle)
        self.inputs, self.outputs = {}, {}
        for index in range(LIBRARY.hone_engine_tensors(handle)):
            info = TensorInfo()
            call("engine_tensor", handle, index, ctypes.byref(info))
            side = self.inputs if info.is_input else self.outputs
            side[info.name.decode()] = (DTYPES[info.dtype], tuple(info.dims[: info.rank]))

    def context(self, profile=0):
        return Context(self, create("context_create", self.handle, profile))


class Context(Object):
    """One inference at a time."""

    def __init__(self, engine, handle):
        super().__init__("context", handle, keeps=engine)
        self.engine, self.bound = engine, {}

    def set_input(self, name, values):
        """Binds the array itself, without a copy where its type and layout already fit."""
        dtype, sizes = self.engine.inputs[name]
        values = np.ascontiguousarray(values, dtype)
        if -1 in sizes:
            call("context_set_shape", self.handle, name.encode(), (ctypes.c_int64 * values.ndim)(*values.shape), values.ndim)
        elif values.shape != sizes:
            raise Error(f"input {name} has shape {values.shape}, the engine wants {sizes}")
        self.bind(name, values)

    def shape(self, name):
        dims, rank = (ctypes.c_int64 * MAX_RANK)(), ctypes.c_int()
        call("context_shape", self.handle, name.encode(), dims, ctypes.byref(rank))
        return tuple(dims[: rank.value])

    def bind(self, name, array):
        call("context_bind", self.handle, name.encode(), array.ctypes.data)
        self.bound[name] = array  # the library keeps only the address

    def allocate_outputs(self):
        for name, (dtype, _) in self.engine.outputs.items():
            self.bind(name, empty(self.shape(name), dtype))

    def run_bound(self):
        """Runs on what is bound: nothing else happens, so this is what to time."""
        call("context_run", self.handle)

    def run(self, feeds):
        """The outputs by name, in arrays of their own."""
        for name, values in feeds.items():
            self.set_input(name, values)
        self.allocate_outputs()
        self.run_bound()
        return {name: self.bound[name] for name in self.engine.outputs}

    def profile(self):
        """[(layer, ms)] of one inference on what is bound."""
        layers = []
        collect = LAYER_FUNCTION(lambda _, layer, ms: layers.append((layer.decode(), ms)))
        call("context_profile", self.handle, collect, None)
        return layers


def open_device(name):
    return Object("device", create("device_open", name.encode()))


def build(path, arguments=(), log=None, device="cpu"):
    """The plan of an ONNX file. `arguments` are trtexec's build flags; `log(severity, text)` receives the log."""
    flags = [str(argument).encode() for argument in arguments]
    receive = LOG_FUNCTION((lambda _, severity, text: log(severity, text.decode(errors="replace"))) if log else 0)
    lines = Log(receive, None, VERBOSE)
    options = Object("options", create("options_create", (TEXT * len(flags))(*flags), len(flags)))
    model = Object("model", create("model_import", encode(path), lines))
    opened = open_device(device)
    return Plan(create("build", model.handle, opened.handle, options.handle, lines))


def load(path):
    return Plan(create("plan_load", encode(path)))
