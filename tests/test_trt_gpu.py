# SPDX-License-Identifier: Apache-2.0
"""The module `tensorrt` beside torch on a GPU: its tensors' memory, its streams and its CUDA graphs, calibrators and refits from memory of
the device. Without both: skipped; test_trt_detectors.py has programs that run without a GPU too."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
import tiny
from conftest import PACKAGE, ROOT, materialise

try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    pytest.skip("needs torch and a GPU that it sees", allow_module_level=True)
os.environ.setdefault("HONE_TENSORRT_DEVICE", "cuda:0")
networks = pytest.importorskip("trt_networks")
trt = networks.trt

WEIGHTS = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
DTYPES = {"FLOAT": "float32", "HALF": "float16", "INT32": "int32", "INT64": "int64", "BOOL": "bool"}


def parsed(path, log, flags=0):
    builder = trt.Builder(log)
    network = builder.create_network(flags)
    parser = trt.OnnxParser(network, log)
    assert parser.parse_from_file(str(path)), [parser.get_error(at).desc() for at in range(parser.num_errors)]
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    config.clear_flag(trt.BuilderFlag.TF32)
    return builder, network, config


def perceptron(folder, *flags):
    """An engine of relu(x W + b), 1 to 8 rows."""
    log = networks.Log()
    builder, network, config = parsed(tiny.perceptron(folder / "model.onnx"), log)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (8, 4))
    config.add_optimization_profile(profile)
    for flag in flags:
        config.set_flag(flag)
    return trt.Runtime(log).deserialize_cuda_engine(networks.build(network, config, log)), log


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    return perceptron(tmp_path_factory.mktemp("perceptron"))[0]


def rows(count):
    return torch.linspace(-1, 1, count * 4, device="cuda").reshape(count, 4)


def is_right(found, values, weights=WEIGHTS):
    np.testing.assert_allclose(found.cpu().numpy(), np.maximum(values.cpu().numpy() @ weights + 1, 0), rtol=1e-4, atol=1e-4)


def bound(engine, count, offset=0):
    """A context over tensors of torch that begin so many elements behind an aligned address: (context, x, y)."""
    x, y = (torch.zeros(offset + values.numel(), device="cuda")[offset:].view(values.shape).copy_(values) for values in (rows(count), torch.zeros(count, 8)))
    context = engine.create_execution_context()
    assert context.set_input_shape("x", x.shape) and tuple(context.get_tensor_shape("y")) == (count, 8)
    assert context.set_tensor_address("x", x.data_ptr()) and context.set_tensor_address("y", y.data_ptr())
    return context, x, y


def test_tensors_of_torch_are_read_and_written_in_its_stream(engine):
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            context, x, y = bound(engine, 3)
            for factor in (1.0, 3.0, -0.5):
                x.mul_(factor)
                assert context.execute_async_v3(stream.cuda_stream)
                doubled = y * 2
            stream.synchronize()
            is_right(doubled / 2, x)


def test_an_inference_is_enqueued_without_a_wait(engine):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        context, x, y = bound(engine, 2)
        for _ in range(2):
            assert context.execute_async_v3(stream.cuda_stream)
        stream.synchronize()
        torch.cuda._sleep(2_000_000_000)  # more than a second of the card's clock
        assert context.execute_async_v3(stream.cuda_stream)
        assert not stream.query()
        stream.synchronize()
        is_right(y, x)


def test_execute_v2_waits(engine):
    context, x, y = bound(engine, 5)
    torch.cuda.synchronize()
    assert context.execute_v2([x.data_ptr(), y.data_ptr()])
    is_right(y, x)


@pytest.mark.parametrize("offset", [0, 1, 7])
def test_an_inference_is_captured_in_a_cuda_graph(engine, offset):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        context, x, y = bound(engine, 4, offset)
        assert context.execute_async_v3(stream.cuda_stream)  # kernels and memory are made ready
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
            tripled = y * 3
        for factor in (0.5, -2.0, 1.0):
            x.mul_(factor)
            y.zero_()
            graph.replay()
            stream.synchronize()
            is_right(tripled / 3, x)


def test_results_are_the_same_in_all_contexts_and_shapes(engine):
    first = {}
    for _ in range(2):
        for count in (1, 8, 2, 5):
            context, x, y = bound(engine, count)
            assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
            torch.cuda.synchronize()
            is_right(y, x)
            assert torch.equal(first.setdefault(count, y), y)


class TorchAllocator(trt.IOutputAllocator):
    """Outputs in torch's memory."""

    def __init__(self):
        trt.IOutputAllocator.__init__(self)
        self.memory, self.shapes = {}, {}

    def reallocate_output_async(self, name, memory, size, alignment, stream):
        self.memory[name] = torch.empty(size, dtype=torch.uint8, device="cuda")
        return self.memory[name].data_ptr()

    def notify_shape(self, name, shape):
        self.shapes[name] = tuple(shape)


def test_outputs_whose_sizes_the_data_decide_lie_in_torchs_memory():
    log = networks.Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (4, 6))
    network.mark_output(network.add_non_zero(x).get_output(0))
    network.get_output(0).name = "where"
    engine = trt.Runtime(log).deserialize_cuda_engine(networks.build(network, None, log))
    context, allocator = engine.create_execution_context(), TorchAllocator()
    context.set_output_allocator("where", allocator)
    for seed in range(3):
        values = torch.from_numpy((np.random.default_rng(seed).random((4, 6)) > 0.6).astype(np.float32)).cuda()
        context.set_tensor_address("x", values.data_ptr())
        assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream), log.errors()
        expected = np.stack(np.nonzero(values.cpu().numpy()))
        assert allocator.shapes["where"] == expected.shape
        kind = getattr(torch, DTYPES[engine.get_tensor_dtype("where").name])
        found = allocator.memory["where"].cpu().view(kind)[:expected.size].reshape(expected.shape)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_shape_tensors_are_read_from_the_host():
    log = networks.Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x, sizes = network.add_input("x", trt.float32, (2, 6)), network.add_input("sizes", trt.int64, (2,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, sizes)
    network.mark_output(shuffle.get_output(0))
    network.get_output(0).name = "y"
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape_input("sizes", (1, 1), (3, 4), (12, 12))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(log).deserialize_cuda_engine(networks.build(network, config, log))
    context, wanted = engine.create_execution_context(), np.array([4, 3], np.int64)
    values = torch.arange(12.0, device="cuda").reshape(2, 6)
    allocator = TorchAllocator()
    context.set_output_allocator("y", allocator)
    context.set_tensor_address("x", values.data_ptr())
    context.set_tensor_address("sizes", wanted.ctypes.data)
    assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream), log.errors()
    torch.cuda.synchronize()
    assert allocator.shapes["y"] == (4, 3)
    y = allocator.memory["y"].view(torch.float32)[:12]
    assert torch.equal(y, values.flatten())


class Samples(trt.IInt8EntropyCalibrator2):
    """Batches on the device."""

    def __init__(self):
        trt.IInt8EntropyCalibrator2.__init__(self)
        self.batches, self.cache, self.kept = [rows(2), rows(2) * 0.5], b"", None

    def get_batch_size(self):
        return 2

    def get_batch(self, names):
        if not self.batches:
            return None
        self.kept = self.batches.pop()
        return [self.kept.data_ptr()]

    def read_calibration_cache(self):
        return None

    def write_calibration_cache(self, cache):
        self.cache = bytes(cache)


def test_calibrators_hand_over_memory_of_the_device(folder):
    log, samples = networks.Log(), Samples()
    builder, network, config = parsed(tiny.perceptron(folder / "model.onnx"), log)
    for profiles in (config.add_optimization_profile, config.set_calibration_profile):
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (2, 4), (2, 4), (2, 4))
        profiles(profile)
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = samples
    engine = trt.Runtime(log).deserialize_cuda_engine(networks.build(network, config, log))
    assert b"x: 3" in samples.cache
    context, x, y = bound(engine, 2)
    assert context.execute_v2([x.data_ptr(), y.data_ptr()])
    np.testing.assert_allclose(y.cpu().numpy(), np.maximum(x.cpu().numpy() @ WEIGHTS + 1, 0), rtol=0, atol=0.1)


def test_weights_are_exchanged_from_memory_of_the_device(folder):
    engine, log = perceptron(folder, trt.BuilderFlag.REFIT)
    context, x, y = bound(engine, 3)
    stream = torch.cuda.current_stream().cuda_stream
    assert context.execute_async_v3(stream)
    is_right(y, x)
    fresh = torch.full((4, 8), 0.25, device="cuda")
    refitter = trt.Refitter(engine, log)
    assert refitter.set_named_weights("w", trt.Weights(trt.float32, fresh.data_ptr(), 32), trt.TensorLocation.DEVICE)
    assert refitter.refit_cuda_engine(), log.errors()
    assert context.execute_async_v3(stream)
    is_right(y, x, fresh.cpu().numpy())


def test_layers_are_timed_and_debug_tensors_shown(folder):
    log = networks.Log()
    builder, network, config = parsed(tiny.perceptron(folder / "model.onnx"), log)
    hidden, = (layer.get_output(0) for layer in network if layer.get_output(0).name == "h")
    assert network.mark_debug(hidden)
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (8, 4))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(log).deserialize_cuda_engine(networks.build(network, config, log))
    context, x, y = bound(engine, 2)
    times, seen = {}, {}

    class Times(trt.IProfiler):
        def __init__(self):
            trt.IProfiler.__init__(self)

        def report_layer_time(self, layer, ms):
            times[layer] = ms

    class Seen(trt.IDebugListener):
        def __init__(self):
            trt.IDebugListener.__init__(self)

        def process_debug_tensor(self, addr, location, type, shape, name, stream):
            seen[name] = np.empty(tuple(shape), np.float32)
            assert location == trt.TensorLocation.HOST
            ctypes.memmove(seen[name].ctypes.data, addr, seen[name].nbytes)
            return True

    listener = Seen()
    context.set_debug_listener(listener)
    context.set_all_tensors_debug_state(True)
    assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
    np.testing.assert_allclose(seen["h"], x.cpu().numpy() @ WEIGHTS + 1, rtol=1e-4, atol=1e-4)
    context.profiler = Times()
    assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    assert times and all(ms >= 0 for ms in times.values())
    is_right(y, x)


class Memory:
    """FP32 at an address of the device's, for torch.as_tensor()."""

    def __init__(self, address, shape):
        self.__cuda_array_interface__ = {"shape": tuple(shape), "typestr": "<f4", "data": (address, False), "version": 3}


def scaled_rows(input_desc, inputs, outputs, workspace, stream):
    """Outputs every row of x twice, times 2, by torch in the stream that it is given and through the workspace."""
    rows, columns = tuple(input_desc[0].dims)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
        x = torch.as_tensor(Memory(inputs[0], (rows, columns)), device="cuda")
        work = torch.as_tensor(Memory(workspace, (rows, columns)), device="cuda")
        y = torch.as_tensor(Memory(outputs[0], (2 * rows, columns)), device="cuda")
        torch.mul(x, 2, out=work)
        y[:rows].copy_(work)
        y[rows:].copy_(work)


class SecondPlugin(trt.IPluginV2DynamicExt):
    def __init__(self):
        trt.IPluginV2DynamicExt.__init__(self)
        self.plugin_type, self.plugin_version, self.plugin_namespace, self.num_outputs = "RowsTwice", "1", "", 1

    def get_output_datatype(self, index, input_types):
        return input_types[0]

    def get_output_dimensions(self, output_index, inputs, expr_builder):
        return trt.DimsExprs([expr_builder.operation(trt.DimensionOperation.PROD, inputs[0][0], expr_builder.constant(2)), inputs[0][1]])

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].format == trt.TensorFormat.LINEAR and in_out[pos].type == trt.float32

    def get_workspace_size(self, inputs, outputs):
        return 4 * inputs[0].dims[0] * inputs[0].dims[1]

    def serialize(self):
        return b"nothing"

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        scaled_rows(input_desc, inputs, outputs, workspace, stream)

    def clone(self):
        return SecondPlugin()


class SecondCreator(trt.IPluginCreator):
    def __init__(self):
        trt.IPluginCreator.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "RowsTwice", "1", ""
        self.field_names = trt.PluginFieldCollection([])

    def deserialize_plugin(self, name, data):
        return SecondPlugin()


class ThirdPlugin(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    def __init__(self):
        for part in (trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
            part.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace, self.num_outputs = "RowsTwiceV3", "1", "", 1

    def get_capability_interface(self, type):
        return self

    def get_output_data_types(self, input_types):
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        return [SecondPlugin().get_output_dimensions(0, inputs, expr_builder)]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].desc.format == trt.TensorFormat.LINEAR and in_out[pos].desc.type == trt.float32

    def get_workspace_size(self, inputs, outputs):
        return 4 * inputs[0].desc.dims[0] * inputs[0].desc.dims[1]

    def get_fields_to_serialize(self):
        return trt.PluginFieldCollection([])

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        scaled_rows(input_desc, inputs, outputs, workspace, stream)

    def clone(self):
        return ThirdPlugin()


class ThirdCreator(trt.IPluginCreatorV3One):
    def __init__(self):
        trt.IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = "RowsTwiceV3", "1", ""
        self.field_names = trt.PluginFieldCollection([])

    def create_plugin(self, name, fc, phase):
        return ThirdPlugin()


@pytest.mark.parametrize("level", (0, 2))
@pytest.mark.parametrize("creator, version", ((SecondCreator, 2), (ThirdCreator, 3)))
def test_plugins_of_programs_run_on_the_devices_memory_in_the_callers_stream(creator, version, level):
    """Between kernels of Hone's, in all shapes of the profile, and again where the plan is loaded."""
    log, made, registry = networks.Log(), creator(), trt.get_plugin_registry()
    registry.register_creator(made, "")
    try:
        builder = trt.Builder(log)
        network = builder.create_network()
        x = network.add_input("x", trt.float32, (-1, 4))
        inner = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
        layer = network.add_plugin_v2([inner], SecondPlugin()) if version == 2 else network.add_plugin_v3([inner], [], ThirdPlugin())
        assert layer is not None, log.errors()
        one = network.add_constant((1, 1), np.ones((1, 1), np.float32)).get_output(0)
        y = network.add_elementwise(layer.get_output(0), one, trt.ElementWiseOperation.SUM).get_output(0)
        y.name = "y"
        network.mark_output(y)
        config, profile = builder.create_builder_config(), builder.create_optimization_profile()
        config.builder_optimization_level = level
        profile.set_shape("x", (1, 4), (2, 4), (8, 4))
        config.add_optimization_profile(profile)
        data = networks.build(network, config, log)
        from tensorrt._plugins import operators

        operators.forget()
        engine = trt.Runtime(log).deserialize_cuda_engine(data)
        assert engine is not None, log.errors()
        context, stream = engine.create_execution_context(), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for count in (2, 8, 2, 3):
                x, y = rows(count), torch.zeros(2 * count, 4, device="cuda")
                assert context.set_input_shape("x", x.shape) and tuple(context.get_tensor_shape("y")) == (2 * count, 4)
                assert context.set_tensor_address("x", x.data_ptr()) and context.set_tensor_address("y", y.data_ptr())
                for factor in (1.0, -2.0, 3.0):
                    x.mul_(factor)
                    assert context.execute_async_v3(stream.cuda_stream), log.errors()
                    expected = x.clamp(min=0).repeat(2, 1) * 2 + 1
                    stream.synchronize()
                    torch.testing.assert_close(y, expected)
            with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
                assert not context.execute_async_v3(torch.cuda.current_stream().cuda_stream)  # what Python code does, no graph repeats
                x.add_(1)
            assert "may not be captured" in log.errors()[-1]
    finally:
        registry.deregister_creator(made)


def test_quickly_deployable_plugins_are_given_tensors_that_torch_reads():
    import tensorrt.plugin as trtp

    @trtp.register("gpu::add_")
    def describe(inp0: trtp.TensorDesc, delta: float) -> trtp.TensorDesc:
        return inp0.aliased()

    @trtp.impl("gpu::add_")
    def compute(inp0, delta: float, outputs, stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.as_tensor(inp0, device="cuda").add_(delta)

    log = networks.Log()
    network = trt.Builder(log).create_network()
    x = network.add_input("x", trt.float32, (3, 4))
    layer = network.add_plugin(trtp.op.gpu.add_(x, delta=2.0))
    assert layer is not None, log.errors()
    total = network.add_elementwise(x, layer.get_output(0), trt.ElementWiseOperation.SUM).get_output(0)
    total.name = "y"
    network.mark_output(total)
    engine = trt.Runtime(log).deserialize_cuda_engine(networks.build(network, None, log))
    context, values, y = engine.create_execution_context(), rows(3), torch.zeros(3, 4, device="cuda")
    context.set_tensor_address("x", values.data_ptr())
    context.set_tensor_address("y", y.data_ptr())
    for _ in range(3):
        assert context.execute_async_v3(torch.cuda.current_stream().cuda_stream), log.errors()
        torch.cuda.synchronize()
        torch.testing.assert_close(y, 2 * values + 2)


def test_wrong_use_is_false_with_a_reason(engine):
    context = engine.create_execution_context()
    assert not context.execute_async_v3(torch.cuda.current_stream().cuda_stream)
    assert not context.set_input_shape("x", (9, 4))
    assert context.set_input_shape("x", (2, 4)) and not context.execute_v2([0, 0])


@pytest.mark.slow
def test_bert_is_as_fast_as_in_trtexec(folder):
    """Prints the figures; that they are close is for who reads them, that the results are right is asserted."""
    materialise.materialise("hf_bert_base.ts", folder)
    said = subprocess.run([sys.executable, ROOT / "bench/tensorrt_gpu.py", "--build", PACKAGE.parent], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=560)
    print(said.stdout)
    assert said.returncode == 0, said.stdout[-3000:]
