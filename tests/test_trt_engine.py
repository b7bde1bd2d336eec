# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: runtimes, engines, contexts, inspectors; what programs derive from; what wrong use is answered with."""

import ctypes
import json

import numpy as np
import pytest
from trt_networks import Allocator, Log, build, trt

RANDOM = np.random.default_rng(11)


def network_of(log, *, profiles=((1, 2, 4),), flags=(), debug=False, verbosity=None):
    """The plan of y = relu(x + 1) over x[-1, 3], with a profile for each (min, opt, max) of rows."""
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (-1, 3))
    one = network.add_constant((1, 3), np.ones(3, np.float32)).get_output(0)
    total = network.add_elementwise(x, one, trt.ElementWiseOperation.SUM)
    total.name, total.get_output(0).name = "total", "sum"
    relu = network.add_activation(total.get_output(0), trt.ActivationType.RELU)
    relu.get_output(0).name = "y"
    network.mark_output(relu.get_output(0))
    if debug:
        network.mark_debug(x)
        network.mark_debug(total.get_output(0))
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    if verbosity is not None:
        config.profiling_verbosity = verbosity
    for flag in flags:
        config.set_flag(flag)
    for rows in profiles:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", *[(count, 3) for count in rows])
        assert config.add_optimization_profile(profile) >= 0
    return build(network, config, log)


def engine_of(log=None, **how):
    log = log or Log()
    return trt.Runtime(log).deserialize_cuda_engine(network_of(log, **how))


def rows(count):
    return RANDOM.standard_normal((count, 3)).astype(np.float32)


def test_an_engine_says_what_it_is():
    engine = engine_of(profiles=((1, 2, 4), (5, 6, 8)), verbosity=trt.ProfilingVerbosity.DETAILED)
    assert list(engine) == ["x", "y"] and engine.num_io_tensors == 2 and engine[1] == "y" and engine.num_optimization_profiles == 2
    assert engine.get_tensor_mode("x") == trt.TensorIOMode.INPUT and engine.get_tensor_dtype("y") == trt.float32
    assert engine.get_tensor_shape("x") == (-1, 3) and engine.get_tensor_location("x") == trt.TensorLocation.DEVICE
    assert [tuple(shape) for shape in engine.get_tensor_profile_shape("x", 1)] == [(5, 3), (6, 3), (8, 3)]
    assert engine.get_tensor_format("x", 0) == trt.TensorFormat.LINEAR and engine.get_tensor_vectorized_dim("x") == -1
    assert engine.num_layers % 2 == 0 and engine.num_layers >= 2 and engine.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    assert not engine.refittable and engine.device_memory_size_v2 >= engine.get_device_memory_size_for_profile_v2(0) >= 0
    assert engine.streamable_weights_size == 0 and engine.get_aliased_input_tensor("y") is None
    with pytest.raises(IndexError):
        engine[2]


def test_plans_come_from_bytes_and_readers_and_go_out_again():
    log = Log()
    data = network_of(log)
    runtime = trt.Runtime(log)
    engine = runtime.deserialize_cuda_engine(memoryview(data))
    assert bytes(engine.serialize()) == bytes(data)

    class Reader(trt.IStreamReader):
        def __init__(self):
            trt.IStreamReader.__init__(self)
            self.at = 0

        def read(self, size):
            part = bytes(data[self.at:self.at + min(size, 1000)])
            self.at += len(part)
            return part

    class Second(trt.IStreamReaderV2):
        def __init__(self):
            super().__init__()
            self.at = 0

        def read(self, size, stream):
            part = bytes(data[self.at:self.at + size])
            self.at += len(part)
            return part

        def seek(self, offset, where):
            return True

    assert bytes(runtime.deserialize_cuda_engine(Reader()).serialize()) == bytes(data)
    assert bytes(runtime.deserialize_cuda_engine(Second()).serialize()) == bytes(data)
    assert not log.errors()


def test_what_is_no_plan_is_refused_with_a_reason():
    log = Log()
    runtime = trt.Runtime(log)
    assert runtime.deserialize_cuda_engine(b"ftrt" + bytes(100)) is None
    assert "NVIDIA" in log.errors()[-1]
    assert runtime.deserialize_cuda_engine(b"") is None and "no plan" in log.errors()[-1]
    data = bytearray(network_of(log))
    data[len(data) // 2] ^= 1
    assert runtime.deserialize_cuda_engine(data) is None and len(log.errors()) == 3

    class Broken(trt.IStreamReader):
        def read(self, size):
            raise ValueError("no more")

    assert runtime.deserialize_cuda_engine(Broken()) is None and len(log.errors()) == 4
    with pytest.raises(TypeError):
        trt.Runtime(None)


def test_a_context_runs_at_the_shapes_of_its_profile():
    log = Log()
    engine = engine_of(log, profiles=((1, 2, 4), (5, 6, 8)))
    context = engine.create_execution_context()
    assert context.engine is engine and context.active_optimization_profile == 0
    assert context.get_tensor_shape("x") == (-1, 3) and context.get_tensor_shape("y") == (-1, 3)
    assert context.infer_shapes() == ["x"] and not context.all_binding_shapes_specified
    x, y = rows(4), np.zeros((4, 3), np.float32)
    assert context.set_input_shape("x", [4, 3]) and context.get_tensor_shape("y") == (4, 3) and context.infer_shapes() == []
    assert context.get_tensor_strides("y") == (3, 1) and context.get_max_output_size("y") == 48
    assert context.set_tensor_address("x", x.ctypes.data) and context.get_tensor_address("x") == x.ctypes.data
    context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_allclose(y, np.maximum(x + 1, 0), rtol=1e-6)
    assert context.set_optimization_profile_async(1, 0) and context.get_tensor_shape("x") == (-1, 3)
    x, y = rows(7), np.zeros((7, 3), np.float32)
    assert context.set_input_shape("x", (7, 3)) and context.execute_v2([x.ctypes.data, ctypes.c_void_p(y.ctypes.data).value])
    np.testing.assert_allclose(y, np.maximum(x + 1, 0), rtol=1e-6)
    assert not log.errors()


def test_wrong_use_of_a_context_is_false_with_a_reason():
    log = Log()
    engine = engine_of(log)
    context = engine.create_execution_context()
    wrong = [
        (lambda: context.set_input_shape("x", (9, 3)), "outside"),
        (lambda: context.set_input_shape("x", (2, 4)), "does not fit"),
        (lambda: context.set_input_shape("x", (2,)), "2 dimensions"),
        (lambda: context.set_input_shape("y", (2, 3)), "is an output"),
        (lambda: context.set_input_shape("z", (2, 3)), "no input or output 'z'"),
        (lambda: context.set_tensor_address("z", 64), "no input or output 'z'"),
        (lambda: context.set_output_allocator("x", Allocator()), "only outputs"),
        (lambda: context.set_optimization_profile_async(3, 0), "no number 3"),
        (lambda: context.execute_async_v3(0), "shape of x"),
        (lambda: context.execute_v2([1]), "1 addresses for 2"),
        (lambda: context.set_tensor_debug_state("y", True), "no debug tensor"),
    ]
    for call, text in wrong:
        assert call() is False
        assert text in log.errors()[-1], (text, log.errors()[-1])
    context.set_input_shape("x", (2, 3))
    assert context.execute_async_v3(0) is False and "the input x has no address" in log.errors()[-1]
    x = rows(2)
    context.set_tensor_address("x", x.ctypes.data)
    assert context.execute_async_v3(0) is False and "neither an address nor an allocator" in log.errors()[-1]
    for call in (lambda: context.set_input_shape("x", 3), lambda: context.set_tensor_address("x", "here"),
                 lambda: context.execute_async_v3("stream")):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert engine.get_tensor_profile_shape("y", 0) == [] and engine.get_tensor_mode("z") == trt.TensorIOMode.NONE
    assert engine.get_tensor_name(7) is None


def test_a_runtime_and_a_builder_that_are_gone_leave_their_engine():
    engine = engine_of()
    context = engine.create_execution_context()
    del engine
    x, y = rows(1), np.zeros((1, 3), np.float32)
    context.set_input_shape("x", (1, 3))
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_allclose(y, np.maximum(x + 1, 0), rtol=1e-6)


def test_allocators_give_outputs_memory_and_hear_their_shapes():
    log = Log()
    engine = engine_of(log)
    context, allocator = engine.create_execution_context(), Allocator()
    assert context.set_output_allocator("y", allocator) and context.get_output_allocator("y") is allocator
    for count in (1, 4):
        x = rows(count)
        context.set_input_shape("x", x.shape)
        context.set_tensor_address("x", x.ctypes.data)
        assert context.execute_async_v3(1) and allocator.shapes["y"] == (count, 3)
        np.testing.assert_allclose(allocator.memory["y"][:count * 12].view(np.float32).reshape(count, 3), np.maximum(x + 1, 0), rtol=1e-6)

    class Plain(trt.IOutputAllocator):
        def reallocate_output(self, name, memory, size, alignment):
            self.asked = (name, memory, size, alignment)
            return 0

    plain = Plain()
    context.set_output_allocator("y", plain)
    assert context.execute_async_v3(1) is False and "gave no memory" in log.errors()[-1] and plain.asked[0] == "y" and plain.asked[2] == 48

    class Raises(trt.IOutputAllocator):
        def reallocate_output_async(self, *arguments):
            raise RuntimeError("none left")

    context.set_output_allocator("y", Raises())
    assert context.execute_async_v3(1) is False and "gave no memory" in log.errors()[-1]


def test_sizes_that_the_data_decide_and_empty_tensors_reach_allocators():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (4,))
    found = network.add_non_zero(x).get_output(0)
    found.name = "found"
    network.mark_output(found)
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, log=log))
    context, allocator = engine.create_execution_context(), Allocator()
    context.set_output_allocator("found", allocator)
    assert context.get_tensor_shape("found") == (1, -1) and context.get_max_output_size("found") == -1
    for values in ([1, 0, 0, 1], [0, 0, 0, 0]):
        array = np.array(values, np.float32)
        context.set_tensor_address("x", array.ctypes.data)
        assert context.execute_async_v3(1)
        expected = np.nonzero(array)[0]
        assert allocator.shapes["found"] == (1, len(expected))
        kind = np.dtype(trt.nptype(engine.get_tensor_dtype("found")))
        assert (allocator.memory["found"][:len(expected) * kind.itemsize].view(kind) == expected).all()


def test_debug_listeners_see_inputs_and_tensors_of_the_middle():
    engine = engine_of(debug=True)
    context = engine.create_execution_context()
    seen = {}

    class Listener(trt.IDebugListener):
        def process_debug_tensor(self, addr, location, type, shape, name, stream):
            count = int(np.prod(tuple(shape)))
            seen[name] = np.frombuffer((ctypes.c_float * count).from_address(addr), np.float32).reshape(tuple(shape)).copy()
            assert type == trt.float32 and isinstance(location, trt.TensorLocation)

    listener = Listener()
    assert context.set_debug_listener(listener) and context.get_debug_listener() is listener
    assert context.set_all_tensors_debug_state(True) and context.get_debug_state("sum") and engine.is_debug_tensor("x")
    x, y = rows(2), np.zeros((2, 3), np.float32)
    context.set_input_shape("x", x.shape)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    assert set(seen) == {"x", "sum"} and (seen["x"] == x).all()
    np.testing.assert_allclose(seen["sum"], x + 1, rtol=1e-6)
    seen.clear()
    assert context.set_tensor_debug_state("x", False) and context.execute_v2([x.ctypes.data, y.ctypes.data]) and set(seen) == {"sum"}


def test_profilers_hear_of_layers_at_once_or_when_asked(capsys):
    engine = engine_of()
    context = engine.create_execution_context()
    heard = []

    class Heard(trt.IProfiler):
        def report_layer_time(self, layer, ms):
            heard.append((layer, ms))

    x, y = rows(2), np.zeros((2, 3), np.float32)
    context.set_input_shape("x", x.shape)
    context.profiler = Heard()
    assert context.execute_v2([x.ctypes.data, y.ctypes.data]) and heard and all(ms >= 0 for _, ms in heard)
    count = len(heard)
    context.enqueue_emits_profile = False
    assert context.execute_v2([x.ctypes.data, y.ctypes.data]) and len(heard) == count
    assert context.report_to_profiler() and len(heard) == 2 * count
    context.profiler, context.enqueue_emits_profile = trt.Profiler(), True
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    assert capsys.readouterr().out.rstrip().endswith("ms")


def test_memory_of_the_programs_is_used_and_waited_for():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (8, 64))
    for _ in range(3):
        weights = np.eye(64, dtype=np.float32)
        x = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, network.add_constant((64, 64), weights).get_output(0),
                                        trt.MatrixOperation.NONE).get_output(0)
        x = network.add_softmax(x).get_output(0)
    x.name = "y"
    network.mark_output(x)
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, log=log))
    context = engine.create_execution_context(trt.ExecutionContextAllocationStrategy.USER_MANAGED)
    values, y = RANDOM.standard_normal((8, 64)).astype(np.float32), np.zeros((8, 64), np.float32)
    needed = context.update_device_memory_size_for_shapes()
    assert 0 < needed <= engine.device_memory_size_v2
    assert context.execute_v2([values.ctypes.data, y.ctypes.data]) is False and "set_device_memory" in log.errors()[-1]
    memory = np.empty(needed + 256, np.uint8)
    address = memory.ctypes.data + -memory.ctypes.data % 256
    context.set_device_memory(address, needed)
    assert context.execute_v2([values.ctypes.data, y.ctypes.data])
    managed, again = engine.create_execution_context(), np.zeros_like(y)
    assert managed.execute_v2([values.ctypes.data, again.ctypes.data]) and (y == again).all() and y.any()


def test_inspectors_tell_layers_as_json_and_names():
    detailed = engine_of(verbosity=trt.ProfilingVerbosity.DETAILED).create_engine_inspector()
    layer = json.loads(detailed.get_layer_information(0, trt.LayerInformationFormat.JSON))
    assert {"Name", "LayerType", "Inputs", "Outputs", "TacticValue", "Origin"} <= set(layer)
    assert layer["Inputs"][0]["Format/Datatype"] == "Row major linear FP32 format"
    everything = json.loads(detailed.get_engine_information(trt.LayerInformationFormat.JSON))
    assert everything["Bindings"] == ["x", "y"] and layer in everything["Layers"]
    assert "Name: " in detailed.get_layer_information(0, trt.LayerInformationFormat.ONELINE)
    names = engine_of().create_engine_inspector()
    assert isinstance(json.loads(names.get_layer_information(0, trt.LayerInformationFormat.JSON)), str)
    assert names.get_layer_information(99, trt.LayerInformationFormat.JSON) == ""


def test_layouts_of_inputs_and_outputs_are_the_engine_s():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (1, 3, 4, 5))
    y = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    x.allowed_formats = 1 << int(trt.TensorFormat.HWC)
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, log=log))
    context = engine.create_execution_context()
    assert engine.get_tensor_format("x", 0) == trt.TensorFormat.HWC and engine.get_tensor_format("y") == trt.TensorFormat.LINEAR
    assert engine.get_tensor_shape("x") == (1, 3, 4, 5) and context.get_tensor_strides("x") == (60, 1, 15, 3)
    values, found = RANDOM.standard_normal((1, 4, 5, 3)).astype(np.float32), np.zeros((1, 3, 4, 5), np.float32)
    assert context.execute_v2([values.ctypes.data, found.ctypes.data])
    np.testing.assert_array_equal(found, np.maximum(values, 0).transpose(0, 3, 1, 2))


def reshaping(values, kind=trt.int64):
    """The engine of y = reshape(x[6], size), whose `size` is a shape tensor with (min, opt, max) values."""
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x, size = network.add_input("x", trt.float32, (6,)), network.add_input("size", kind, (2,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, size)
    shuffle.get_output(0).name = "y"
    network.mark_output(shuffle.get_output(0))
    assert size.is_shape_tensor and not x.is_shape_tensor
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape_input("size", *values)
    assert [list(each) for each in profile.get_shape_input("size")] == [list(each) for each in values]
    config.add_optimization_profile(profile)
    return log, trt.Runtime(log).deserialize_cuda_engine(build(network, config, log))


def test_values_of_shape_tensors_decide_sizes_when_it_runs():
    log, engine = reshaping(([1, 1], [2, 3], [6, 6]))
    assert engine.is_shape_inference_io("size") and engine.get_tensor_location("size") == trt.TensorLocation.HOST
    assert engine.get_tensor_profile_values("size", 0) == [[1, 1], [2, 3], [6, 6]] and engine.get_tensor_shape("y") == (-1, -1)
    context, allocator, x = engine.create_execution_context(), Allocator(), rows(2).reshape(6)
    context.set_output_allocator("y", allocator)
    context.set_tensor_address("x", x.ctypes.data)
    assert context.infer_shapes() == ["size"]
    for wanted in ([2, 3], [6, 1]):
        size = np.array(wanted, np.int64)
        context.set_tensor_address("size", size.ctypes.data)
        assert context.infer_shapes() == [] and context.execute_async_v3(1) and allocator.shapes["y"] == tuple(wanted)
        assert (allocator.memory["y"][:24].view(np.float32) == x).all()
    outside = np.array([7, 1], np.int64)
    context.set_tensor_address("size", outside.ctypes.data)
    assert context.execute_async_v3(1) is False and "(7, 1) is outside" in log.errors()[-1]


def test_values_that_the_profile_fixes_are_constants_of_the_engine():
    log, engine = reshaping(([2, 3], [2, 3], [2, 3]), trt.int32)
    assert engine.get_tensor_shape("y") == (2, 3) and list(engine) == ["x", "size", "y"]
    context, x, y, size = engine.create_execution_context(), rows(2).reshape(6), np.zeros((2, 3), np.float32), np.array([2, 3], np.int32)
    assert context.execute_v2([x.ctypes.data, size.ctypes.data, y.ctypes.data]) and (y.reshape(-1) == x).all()
    size[:] = 3, 2
    assert context.execute_v2([x.ctypes.data, size.ctypes.data, y.ctypes.data]) is False and "(3, 2) is outside" in log.errors()[-1]


def test_contexts_take_their_memory_from_the_runtimes_allocator():
    class Memory(trt.IGpuAllocator):
        def __init__(self, gives=True):
            trt.IGpuAllocator.__init__(self)
            self.gives, self.held, self.asked = gives, {}, []

        def allocate(self, size, alignment, flags):
            self.asked.append((size, alignment))
            memory = np.full(size + alignment, 0xAB, np.uint8)
            address = (memory.ctypes.data + alignment - 1) // alignment * alignment
            if self.gives:
                self.held[address] = memory
            return address if self.gives else 0

        def reallocate(self, address, alignment, new_size):
            return 0

        def deallocate(self, memory):
            del self.held[memory]
            return True

    log = Log()
    network = trt.Builder(log).create_network()
    x = network.add_input("x", trt.float32, (1, 4, 16, 16))
    y = x
    for _ in range(3):
        y = network.add_convolution_nd(y, 4, (3, 3), np.full((4, 4, 3, 3), 0.1, np.float32)).get_output(0)
    network.mark_output(y)
    plan = build(network, None, log)
    runtime = trt.Runtime(log)
    with pytest.raises(TypeError):
        runtime.gpu_allocator = "memory"
    runtime.gpu_allocator = memory = Memory()
    engine = runtime.deserialize_cuda_engine(plan)
    context = engine.create_execution_context()
    assert memory.asked == [(engine.device_memory_size_v2, 256)] and len(memory.held) == 1
    values, found = np.ones((1, 4, 16, 16), np.float32), np.zeros((1, 4, 10, 10), np.float32)
    assert context.execute_v2([values.ctypes.data, found.ctypes.data])
    np.testing.assert_allclose(found, 3.6 ** 3, rtol=1e-4)
    held, = memory.held.values()
    assert (held != 0xAB).any()
    del context
    assert not memory.held
    runtime.gpu_allocator = Memory(gives=False)
    assert engine.create_execution_context() is None and "gpu_allocator" in log.errors()[-1]
