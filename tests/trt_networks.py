# SPDX-License-Identifier: Apache-2.0
"""The module `tensorrt` of this build, for tests: networks made by hand, built with the fastest settings, run on numpy's arrays."""

import sys

import numpy as np
import pytest
from conftest import PACKAGE

sys.path[:0] = [str(PACKAGE), str(PACKAGE.parent / "tensorrt")]
trt = pytest.importorskip("tensorrt", reason="this build has no Python binding (sanitizers)")


class Log(trt.ILogger):
    """Keeps what is said."""

    def __init__(self):
        trt.ILogger.__init__(self)
        self.lines = []

    def log(self, severity, msg):
        self.lines.append((severity, msg))

    def errors(self):
        return [text for severity, text in self.lines if severity <= trt.ILogger.ERROR]


class Allocator(trt.IOutputAllocator):
    """Memory for outputs of any size."""

    def __init__(self):
        trt.IOutputAllocator.__init__(self)
        self.memory, self.shapes = {}, {}

    def reallocate_output_async(self, name, memory, size, alignment, stream):
        self.memory[name] = np.empty(size + 64, np.uint8)
        return self.memory[name].ctypes.data

    def notify_shape(self, name, shape):
        self.shapes[name] = tuple(shape)


TYPES = {np.dtype(kind): getattr(trt, name) for kind, name in (("f4", "float32"), ("f2", "float16"), ("i4", "int32"), ("i8", "int64"),
                                                              ("i1", "int8"), ("u1", "uint8"), ("?", "bool"))
         if hasattr(trt, name)}


def infer(data, inputs):
    """{name: array} of the outputs of a plan."""
    runtime = trt.Runtime(Log())
    engine = runtime.deserialize_cuda_engine(data)
    context, allocator, kept = engine.create_execution_context(), Allocator(), []
    for name in engine:
        if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
            kept.append(np.require(inputs[name], requirements="C"))
            assert context.set_input_shape(name, kept[-1].shape)
            context.set_tensor_address(name, kept[-1].ctypes.data)
        else:
            context.set_output_allocator(name, allocator)
    assert context.execute_async_v3(1)
    found = {}
    for name, shape in allocator.shapes.items():
        dtype = np.dtype(trt.nptype(engine.get_tensor_dtype(name)))
        count = int(np.prod(shape)) * dtype.itemsize
        found[name] = allocator.memory[name][:count].view(dtype).reshape(shape).copy()
    return found


def build(network, config=None, log=None):
    """The plan's bytes."""
    builder = network.builder
    if config is None:
        config = builder.create_builder_config()
        config.builder_optimization_level = 0
    data = builder.build_serialized_network(network, config)
    assert data is not None, [text for text in (log.errors() if log else [])]
    return data


def run(make, *arrays, flags=0, dynamic=False):
    """What the layers that `make(network, *inputs)` adds give for the arrays: one array, or a list where it gives several tensors. The
    sizes that the network says must be those of the results. `dynamic`: the inputs' sizes are not said."""
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network(flags)
    shapes = [[-1] * array.ndim if dynamic else array.shape for array in arrays]
    inputs = [network.add_input(f"x{at}", TYPES[array.dtype], shape) for at, (array, shape) in enumerate(zip(arrays, shapes))]
    made = make(network, *inputs)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    for tensor in outputs:
        network.mark_output(tensor)
    said = [(tensor.name, tuple(tensor.shape), tensor.dtype) for tensor in outputs]
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    if dynamic:
        profile = builder.create_optimization_profile()
        for tensor, array in zip(inputs, arrays):
            profile.set_shape(tensor.name, array.shape, array.shape, array.shape)
        config.add_optimization_profile(profile)
    found = infer(build(network, config, log), {f"x{at}": array for at, array in enumerate(arrays)})
    for name, shape, dtype in said:
        assert len(shape) == found[name].ndim, (name, shape, found[name].shape)
        assert all(size in (-1, real) for size, real in zip(shape, found[name].shape)), (name, shape, found[name].shape)
        assert found[name].dtype == trt.nptype(dtype), (name, dtype)
    assert not log.errors()
    results = [found[name] for name, *_ in said]
    return results if isinstance(made, (list, tuple)) else results[0]
