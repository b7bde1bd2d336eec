# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: configurations, profiles, calibrators, timing caches, progress, tactics that a program chooses."""

import struct

import numpy as np
import pytest
from trt_networks import Log, build, infer, trt

RANDOM = np.random.default_rng(5)
WEIGHTS = (RANDOM.standard_normal((8, 4, 3, 3)) * 0.2).astype(np.float32)


def convolution(log, dynamic=False, flags=0):
    """(builder, network) of y = relu(conv(x)); x is [1 or n, 4, 16, 16]."""
    builder = trt.Builder(log)
    network = builder.create_network(flags)
    x = network.add_input("x", trt.float32, (-1 if dynamic else 1, 4, 16, 16))
    layer = network.add_convolution_nd(x, 8, (3, 3), WEIGHTS, np.zeros(8, np.float32))
    layer.name, layer.get_output(0).name = "conv", "c"
    y = network.add_activation(layer.get_output(0), trt.ActivationType.RELU).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return builder, network


def config_of(builder, *flags):
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    for flag in flags:
        config.set_flag(flag)
    return config


def images(count=1):
    return RANDOM.standard_normal((count, 4, 16, 16)).astype(np.float32)


def test_a_configuration_keeps_what_is_set():
    config = trt.Builder(Log()).create_builder_config()
    assert config.flags == 1 << int(trt.BuilderFlag.TF32) and config.get_flag(trt.BuilderFlag.TF32)
    config.set_flag(trt.BuilderFlag.FP16)
    config.clear_flag(trt.BuilderFlag.TF32)
    assert config.flags == 1 and not config.get_flag(trt.BuilderFlag.STRIP_PLAN)
    config.set_flag(trt.BuilderFlag.WEIGHTLESS)
    assert config.get_flag(trt.BuilderFlag.STRIP_PLAN)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.DLA_LOCAL_DRAM) == 1 << 30 and config.get_tactic_sources() == 24
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 12345)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 12345
    assert config.set_tactic_sources(0) and config.get_tactic_sources() == 0
    assert config.get_preview_feature(trt.PreviewFeature.PROFILE_SHARING_0806)
    config.set_preview_feature(trt.PreviewFeature.PROFILE_SHARING_0806, False)
    assert not config.get_preview_feature(trt.PreviewFeature.PROFILE_SHARING_0806)
    assert config.builder_optimization_level == 3 and config.max_num_tactics == -1 and config.DLA_core == -1
    assert config.int8_calibrator is None and config.algorithm_selector is None and config.progress_monitor is None
    config.reset()
    assert config.flags == 1 << int(trt.BuilderFlag.TF32) and config.num_optimization_profiles == 0


def test_profiles_are_checked():
    log = Log()
    builder, network = convolution(log, dynamic=True)
    profile = builder.create_optimization_profile()
    assert profile and profile.get_shape("x") == []
    for scales in ((1.0, 0.6), ("1", "2")):
        with pytest.raises(TypeError, match="whole numbers"):
            profile.set_shape_input("x", scales, scales, scales)
    with pytest.raises(RuntimeError, match="do not ascend"):
        profile.set_shape("x", (2, 4, 16, 16), (1, 4, 16, 16), (4, 4, 16, 16))
    config = config_of(builder)
    assert builder.build_serialized_network(network, config) is None and "no profile" in log.errors()[-1]
    assert config.add_optimization_profile(profile) == 0 and config.add_optimization_profile("none") == -1
    assert builder.build_serialized_network(network, config) is None and "lacks the shapes of the input x" in log.errors()[-1]
    profile.set_shape("x", (1, 4, 8, 16), (2, 4, 8, 16), (4, 4, 8, 16))
    assert builder.build_serialized_network(network, config) is None and "does not fit" in log.errors()[-1]
    profile.set_shape("x", (1, 4, 16, 16), (2, 4, 16, 16), (4, 4, 16, 16))
    assert [tuple(shape)[0] for shape in profile.get_shape("x")] == [1, 2, 4]
    data = builder.build_serialized_network(network, config)
    assert infer(data, {"x": images(3)})["y"].shape == (3, 8, 14, 14)


def test_networks_without_outputs_are_refused_and_others_are_built_again():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    network.add_input("x", trt.float32, (2,))
    assert builder.build_serialized_network(network, config_of(builder)) is None and "no outputs" in log.errors()[-1]
    assert not builder.is_network_supported(network, config_of(builder))
    builder, network = convolution(log)
    x = images()
    first = infer(build(network, config_of(builder)), {"x": x})
    network.mark_output(network.get_layer(0).get_output(0))
    again = infer(build(network, config_of(builder, trt.BuilderFlag.FP16)), {"x": x})
    assert set(first) == {"y"} and set(again) == {"y", "c"} and builder.is_network_supported(network, config_of(builder))
    np.testing.assert_allclose(again["y"], np.maximum(again["c"], 0), atol=1e-2)
    np.testing.assert_allclose(first["y"], again["y"], atol=2e-2)


def test_plans_are_written_to_a_stream_of_the_program():
    log = Log()
    builder, network = convolution(log)

    class Writer(trt.IStreamWriter):
        def __init__(self):
            trt.IStreamWriter.__init__(self)
            self.data = b""

        def write(self, data):
            self.data += bytes(data[:1000])
            return min(len(data), 1000)

    class Full(trt.IStreamWriter):
        def write(self, data):
            return 0

    writer = Writer()
    assert builder.build_serialized_network_to_stream(network, config_of(builder), writer) and writer.data.startswith(b"HONEPLAN")
    assert infer(writer.data, {"x": images()})["y"].any()
    assert not builder.build_serialized_network_to_stream(network, config_of(builder), Full()) and "the writer took 0" in log.errors()[-1]
    assert isinstance(builder.build_engine_with_config(network, config_of(builder)), trt.ICudaEngine)


class Calibrator(trt.IInt8MinMaxCalibrator):
    """Gives so many samples."""

    def __init__(self, count, cache=None):
        super().__init__()
        self.left = [images() for _ in range(count)]
        self.given, self.cache, self.written, self.calls = [], cache, None, 0

    def get_batch_size(self):
        return 1

    def get_batch(self, names):
        self.calls += 1
        assert names == ["x"]
        if not self.left:
            return None
        self.given.append(self.left.pop())
        return [self.given[-1].ctypes.data]

    def read_calibration_cache(self):
        return self.cache

    def write_calibration_cache(self, cache):
        self.written = cache.tobytes()


def scales(text):
    return {name: struct.unpack(">f", bytes.fromhex(digits))[0]
            for name, _, digits in (line.rpartition(": ") for line in text.decode().splitlines()[1:])}


def test_a_calibrator_gives_samples_once_and_its_cache_serves_again():
    log = Log()
    builder, network = convolution(log)
    config, calibrator = config_of(builder, trt.BuilderFlag.INT8), Calibrator(3)
    config.int8_calibrator = calibrator
    assert config.int8_calibrator is calibrator
    first = build(network, config)
    assert calibrator.calls == 4 and calibrator.written.startswith(b"TRT-101601-MinMaxCalibration\n")
    largest = max(np.abs(sample).max() for sample in calibrator.given)
    np.testing.assert_allclose(scales(calibrator.written)["x"], largest / 127, rtol=1e-6)
    again = Calibrator(0, calibrator.written)
    config.int8_calibrator = again
    second = build(network, config)
    assert again.calls == 0 and again.written is None
    x = images()
    exact = infer(build(network, config_of(builder)), {"x": x})["y"]
    for data in (first, second):
        found = infer(data, {"x": x})["y"]
        assert 0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()


def test_calibrators_that_fail_fail_the_build(capfd):
    log = Log()
    builder, network = convolution(log)
    config = config_of(builder, trt.BuilderFlag.INT8)
    config.int8_calibrator = Calibrator(0)
    assert builder.build_serialized_network(network, config) is None and "neither samples nor a cache" in log.errors()[-1]

    class Raises(Calibrator):
        def get_batch(self, names):
            raise RuntimeError("the samples are gone")

    config.int8_calibrator = Raises(1)
    assert builder.build_serialized_network(network, config) is None and "neither samples nor a cache" in log.errors()[-1]
    assert "the samples are gone" in capfd.readouterr().err

    class Short(Calibrator):
        def get_batch(self, names):
            return [1, 2]

    config.int8_calibrator = Short(1)
    assert builder.build_serialized_network(network, config) is None and "2 addresses for the 1 inputs" in log.errors()[-1]


def test_the_range_that_loses_least_ignores_an_outlier():
    class Entropy(Calibrator, trt.IInt8EntropyCalibrator2):
        def get_algorithm(self):
            return trt.CalibrationAlgoType.ENTROPY_CALIBRATION_2

        def get_batch(self, names):
            given = super().get_batch(names)
            if len(self.given) == 1:
                self.given[0].flat[0] = 100
            return given

    builder, network = convolution(Log())
    config, calibrator = config_of(builder, trt.BuilderFlag.INT8), Entropy(8)
    config.int8_calibrator = calibrator
    build(network, config)
    assert calibrator.written.startswith(b"TRT-101601-EntropyCalibration2\n") and scales(calibrator.written)["x"] < 15 / 127


def test_dynamic_ranges_stand_for_a_calibrator_and_int8_without_either_is_left_out():
    log = Log()
    builder, network = convolution(log)
    x = images()
    plain = infer(build(network, config_of(builder, trt.BuilderFlag.INT8)), {"x": x})["y"]
    assert any("built without INT8" in text for _, text in log.lines)
    for tensor, most in ((network.get_input(0), 4.0), (network.get_layer(0).get_output(0), 6.0), (network.get_output(0), 6.0)):
        tensor.set_dynamic_range(-most, most)
    found = infer(build(network, config_of(builder, trt.BuilderFlag.INT8)), {"x": x})["y"]
    assert 0 < np.abs(found - plain).max() < 0.05 * np.abs(plain).max()


def test_timing_caches_are_empty_merged_and_used_again():
    log = Log()
    builder, network = convolution(log)
    config = builder.create_builder_config()
    config.builder_optimization_level = 2
    cache = config.create_timing_cache(b"")
    empty = cache.serialize()
    assert config.set_timing_cache(cache, ignore_mismatch=False) and config.get_timing_cache() is cache
    first = build(network, config)
    with cache.serialize() as full:
        assert full.nbytes > empty.nbytes and len(cache.queryKeys()) > 0
    other = config.create_timing_cache(full)
    assert other.combine(cache, ignore_mismatch=True) and len(other.serialize()) == len(full)
    assert cache.combine("none", False) is False and cache.combine(cache, False) is False
    config.set_timing_cache(other, ignore_mismatch=False)
    config.set_flag(trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS)
    assert bytes(build(network, config)) == bytes(first)
    key = cache.queryKeys()[0]
    assert trt.TimingCacheKey.parse(str(key)) == key and str(key).startswith("0x") and len(str(key)) == 34
    assert cache.update(key, trt.TimingCacheValue(7, 0.5)) and cache.query(key).tacticHash == 7
    assert cache.reset() and len(cache.serialize()) == len(empty)
    with pytest.raises(TypeError):
        config.create_timing_cache(None)


class Monitor(trt.IProgressMonitor):
    """Keeps what it hears; ends the build behind so many steps."""

    def __init__(self, most=None):
        trt.IProgressMonitor.__init__(self)
        self.events, self.most, self.steps = [], most, 0

    def phase_start(self, phase_name, parent_phase, num_steps):
        self.events.append(("start", phase_name, parent_phase, num_steps))

    def step_complete(self, phase_name, step):
        self.events.append(("step", phase_name, step))
        self.steps += 1
        return self.most is None or self.steps < self.most

    def phase_finish(self, phase_name):
        self.events.append(("finish", phase_name))


def test_progress_is_nested_and_counts_all_steps():
    builder, network = convolution(Log())
    config, monitor = config_of(builder), Monitor()
    config.progress_monitor = monitor
    build(network, config)
    open_, steps = [], {}
    for event in monitor.events:
        if event[0] == "start":
            assert event[2] == (open_[-1] if open_ else None) and event[3] > 0 and event[1] not in open_
            open_.append(event[1])
            steps[event[1]] = [event[3], 0]
        elif event[0] == "step":
            assert event[1] == open_[-1] and event[2] == steps[event[1]][1]
            steps[event[1]][1] += 1
        else:
            name = open_.pop()
            assert event[1] == name and steps[name][0] == steps[name][1]
    assert not open_ and steps


def test_a_monitor_ends_the_build_also_by_raising(capfd):
    log = Log()
    builder, network = convolution(log)
    config = config_of(builder)
    config.progress_monitor = Monitor(most=2)
    assert builder.build_serialized_network(network, config) is None and "the progress monitor ended" in log.errors()[-1]

    class Raises(Monitor):
        def step_complete(self, phase_name, step):
            raise KeyError("enough")

    config.progress_monitor = Raises()
    assert builder.build_serialized_network(network, config) is None and "enough" in capfd.readouterr().err


def test_a_selector_is_asked_of_each_layer_and_obeyed():
    builder, network = convolution(Log())

    class Records(trt.IAlgorithmSelector):
        def __init__(self, wanted=None):
            trt.IAlgorithmSelector.__init__(self)
            self.wanted, self.choices, self.report = wanted, {}, None

        def select_algorithms(self, context, choices):
            self.choices[context.name] = [choice.algorithm_variant.tactic for choice in choices]
            if self.wanted is None:
                return list(range(len(choices)))
            return [self.choices[context.name].index(self.wanted[context.name])]

        def report_algorithms(self, contexts, choices):
            self.report = {context.name: choice.algorithm_variant.tactic for context, choice in zip(contexts, choices)}
            for context, choice in zip(contexts, choices):
                for at in range(context.num_inputs + context.num_outputs):
                    info = choice.get_algorithm_io_info(at)
                    assert info.dtype == trt.float32 and len(tuple(info.strides)) == len(tuple(context.get_shape(at)[1]))
                assert choice.timing_msec >= 0 and choice.workspace_size == 0

    config, first = builder.create_builder_config(), Records()
    config.builder_optimization_level = 3
    config.algorithm_selector = first
    build(network, config)
    assert first.report and all(first.report[name] in tactics for name, tactics in first.choices.items())
    layer = max(first.choices, key=lambda name: len(first.choices[name]))
    assert len(first.choices[layer]) > 1
    others = {name: next((tactic for tactic in tactics if tactic != first.report[name]), first.report[name]) if name == layer
              else first.report[name] for name, tactics in first.choices.items()}
    second = Records(others)
    config.algorithm_selector = second
    x = images()
    found = infer(build(network, config), {"x": x})["y"]
    assert second.report == others
    np.testing.assert_allclose(found, infer(build(network, config_of(builder)), {"x": x})["y"], atol=1e-4)


def test_strongly_typed_networks_take_no_precision_flags():
    log = Log()
    builder, network = convolution(log, flags=1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    x = images()
    found = infer(build(network, config_of(builder, trt.BuilderFlag.FP16)), {"x": x})["y"]
    assert any("strongly typed" in text for severity, text in log.lines if severity == trt.ILogger.WARNING)
    exact = infer(build(network, config_of(builder)), {"x": x})["y"]
    np.testing.assert_array_equal(found, exact)


def test_loggers_that_raise_change_nothing(capfd):
    class Raises(trt.ILogger):
        def __init__(self):
            trt.ILogger.__init__(self)

        def log(self, severity, msg):
            raise OSError("no paper")

    builder, network = convolution(Raises())
    assert builder.build_serialized_network(network, config_of(builder)) is not None
    assert "no paper" in capfd.readouterr().err


def test_error_recorders_hear_of_errors():
    class Recorder(trt.IErrorRecorder):
        def __init__(self):
            trt.IErrorRecorder.__init__(self)
            self.told = []

        def report_error(self, code, text):
            self.told.append((code, text))
            return True

    builder = trt.Builder(Log())
    builder.error_recorder = recorder = Recorder()
    assert builder.error_recorder is recorder
    assert builder.build_serialized_network(builder.create_network(), builder.create_builder_config()) is None
    assert len(recorder.told) == 1 and isinstance(recorder.told[0][0], trt.ErrorCodeTRT) and "no outputs" in recorder.told[0][1]
