# SPDX-License-Identifier: Apache-2.0
"""Builder: from a network and a configuration to a plan.

A network is lowered to one ONNX model, a configuration to flags; Hone builds the plan of both. Neither is changed by that, so that a
network may be built again and with other configurations.
"""

import json
import pathlib
import tempfile

import hone

from .._base import enums, native
from .._base.reports import Managed, Told, called, relay
from .._base.values import IHostMemory
from .._engine import shape_values, trial
from .._engine.engine import NOTE, ICudaEngine
from .._engine.runtime import Runtime, _announce
from .._lowering.to_onnx import CannotLower, network_model
from .._network.network import INetworkDefinition
from .._plugins import operators as plugin_operators, registry as plugin_registry
from . import algorithms, build_flags, calibration, decided
from .config import IBuilderConfig
from .profiles import IOptimizationProfile
from .progress import Told as ToldProgress
from .timing_cache import ITimingCache


class Refused(Exception):
    """Why there is no plan."""


def _dynamic(shape):
    return -1 in tuple(shape)


class Builder(Managed):
    """Builds engines."""

    def __init__(self, logger):
        if not callable(getattr(logger, "log", None)):
            raise TypeError("Builder(logger): the logger is a tensorrt.ILogger")
        self._logger = logger
        self.max_threads = 1
        self.gpu_allocator = None
        self.max_batch_size, self.max_workspace_size = 1, 0
        self.fp16_mode = self.int8_mode = False
        _announce(self)

    @property
    def logger(self):
        """The program's."""
        return self._logger

    # ---- what there is ----

    @property
    def platform_has_fast_fp16(self):
        """The flag is taken."""
        return True

    platform_has_fast_int8 = platform_has_fast_fp16
    platform_has_tf32 = platform_has_fast_fp16

    @property
    def num_DLA_cores(self):  # noqa: N802: the interface's name
        """None."""
        return 0

    @property
    def max_DLA_batch_size(self):  # noqa: N802: the interface's name
        """There is no DLA."""
        return 1

    def get_plugin_registry(self):
        """The one of the process."""
        return plugin_registry.get_plugin_registry()

    # ---- making ----

    def create_network(self, flags=0):
        """An empty network."""
        return INetworkDefinition(self, int(flags))

    def create_builder_config(self):
        """How to build, to be filled in."""
        return IBuilderConfig(self._logger)

    def create_optimization_profile(self):
        """Ranges of shapes, to be filled in."""
        return IOptimizationProfile()

    def reset(self):
        """Nothing is kept between builds."""

    def is_network_supported(self, network, config):
        """Whether there is a kernel for each layer; the log says which has none."""
        try:
            self._model(network)
        except (Refused, hone.Error) as error:
            return self._failed(native.text_of(error), False)
        return True

    def build_serialized_network(self, network, config):
        """The plan's bytes; None where there is none, with the reason in the log."""
        plan = self._plan(network, config)
        return None if plan is None else IHostMemory(plan.bytes())

    def build_serialized_network_to_stream(self, network, config, writer):
        """Writes the plan's bytes to the program's IStreamWriter."""
        plan = self._plan(network, config)
        if plan is None:
            return False
        data = plan.bytes()
        done = 0
        while done < len(data):
            taken = called(writer.write, data[done:])
            if not taken or int(taken) < 0:
                return self._failed(f"the writer took {done} of the plan's {len(data)} bytes", False)
            done += int(taken)
        return True

    def build_engine_with_config(self, network, config):
        """The engine itself."""
        data = self.build_serialized_network(network, config)
        return None if data is None else Runtime(self._logger).deserialize_cuda_engine(data)

    build_engine = build_engine_with_config

    # ---- how ----

    def _plan(self, network, config):
        try:
            return _Build(self, network, config).plan()
        except (Refused, hone.Error) as error:
            return self._failed(native.text_of(error), code="INVALID_CONFIG" if isinstance(error, Refused) else "UNSPECIFIED_ERROR")

    def _model(self, network):
        """(what network_model() gives, Hone's model)."""
        if network.num_outputs == 0:
            raise Refused("the network has no outputs; mark one (INetworkDefinition.mark_output())")
        try:
            lowered = network_model(network, asserted=True)
        except CannotLower as error:
            raise Refused(str(error)) from None
        receive, threshold = relay(self._logger)
        if lowered.path is not None:
            return lowered, hone.Model.load(lowered.path, receive, threshold)
        return lowered, hone.Model.parse(lowered.data, lowered.folder, receive, threshold)


class _Build:
    """One build: a network and a configuration at this moment."""

    def __init__(self, builder, network, config):
        self.builder, self.network, self.config = builder, network, config
        self.logger = builder._logger
        self.inputs = [network.get_input(index) for index in range(network.num_inputs)]
        self.outputs = [network.get_output(index) for index in range(network.num_outputs)]
        self.strongly_typed = network._strongly_typed

    def plan(self):
        """The plan; None where the program cancelled it."""
        self.lowered, self.model = self.builder._model(self.network)
        values = shape_values.fixed(self._shape_values())
        if values and self.lowered.path is None:
            receive, threshold = relay(self.logger)
            data = shape_values.with_constants(self.lowered.data, self.inputs, values)
            self.model = hone.Model.parse(data, self.lowered.folder, receive, threshold)
        if self.strongly_typed and build_flags.precisions(self.config):
            self.builder._warned("the network is strongly typed: " + ", ".join(build_flags.precisions(self.config)) + " change nothing")
        flags = build_flags.flags_of(self.config, self.strongly_typed)
        assertions = decided.assertions(self.network)
        layouts, formats = build_flags.layout_flags(self.inputs, self.outputs, len(assertions))
        flags += layouts + ["--markUnfusedTensorsAsDebugTensors"] * self.network._unfused_debug
        profiles = self._profiles()
        with tempfile.TemporaryDirectory(prefix="hone-tensorrt-") as folder:
            flags += self._int8_flags(flags, pathlib.Path(folder))
            return self._built(flags, profiles, formats)

    def _built(self, flags, profiles, formats):
        debug = [self.lowered.tensors.get(name, name) for name in self.network._debug_names() if name not in self.model.inputs]
        note = build_flags.note_of(self.network, self.config, formats, self._shape_values(), self._shape_outputs(),
                                    self.network._debug_names())
        note.update(decided.note(self.network, self.inputs, self.outputs))
        if self.network._unfused_debug:
            note["unfused"] = True
        plugins = plugin_operators.notes_of(self.lowered.data) if self.lowered.data else []
        if plugins:
            note["plugins"] = plugins
        if self.config._has("REFIT") or self.config._has("STRIP_PLAN"):
            note["weights"] = [[layer, role, name] for (layer, role), name in self.lowered.weights.items()]
        if self.config._cache is None and not self.config._has("DISABLE_TIMING_CACHE"):
            self.config._cache = ITimingCache(b"", self.logger)
        monitor = self.config._monitor
        told = None if monitor is None else ToldProgress(monitor)
        receive, threshold = relay(self.logger)

        def build(cache):
            return self.model.build(flags, native.device(), receive, threshold, profiles=profiles, layer_types=self._layer_types(),
                                    timing_cache=cache, progress=told, debug=debug, notes={NOTE: json.dumps(note)})

        cache = None if self.config._cache is None or self.config._has("DISABLE_TIMING_CACHE") else self.config._cache._cache
        if self.config._selector is not None:
            flags = [flag for flag in flags if flag != "--noBuilderCache"]  # times are how a choice is made
            plan = algorithms.select(self.config._selector, build, cache, self.builder)
        else:
            plan = build(cache)
        if told is not None and told.cancelled:
            raise Refused("the progress monitor ended the build")
        if note.get("checked_by_shapes") and not any(_dynamic(tensor.shape) for tensor in self.inputs) and not self._shape_values():
            self._check(plan)
        return plan

    def _check(self, plan):
        """Assertions whose conditions are known before anything runs."""
        engine = ICudaEngine(plan, None, self.logger)
        _, holds = trial.run(engine, 0, {tensor.name: tuple(tensor.shape) for tensor in self.inputs}, {})
        trial.check(engine, {name: held for name, held in holds.items() if name in engine._notes["checked_by_shapes"]})

    # ---- shapes ----

    def _profiles(self):
        """The shapes of dynamic inputs, profile by profile, in Hone's words."""
        dynamic = [tensor for tensor in self.inputs if _dynamic(tensor.shape)]
        values = [tensor for tensor in self.inputs if tensor.is_shape_tensor]
        if not self.config._profiles:
            if dynamic:
                raise Refused(f"the input {dynamic[0].name} has dynamic sizes {tuple(dynamic[0].shape)}, but the configuration has no profile "
                              "(IBuilderConfig.add_optimization_profile())")
            return []
        return [{name: shape for name, shape in (self._range(number, profile, tensor, values) for tensor in self.inputs) if shape}
                for number, profile in enumerate(self.config._profiles)] if dynamic else [{}] * len(self.config._profiles)

    def _range(self, number, profile, tensor, values):
        given, known = profile._shapes.get(tensor.name), tuple(tensor.shape)
        if given is None:
            if _dynamic(known):
                if tensor in values and tensor.name in profile._values and len(known) == 1:
                    return tensor.name, ((len(profile._values[tensor.name][0]),),) * 3
                raise Refused(f"profile {number} lacks the shapes of the input {tensor.name}, which is {known}")
            return tensor.name, None
        for shape in given:
            if len(shape) != len(known) or any(size != fixed for size, fixed in zip(shape, known) if fixed != -1):
                raise Refused(f"profile {number} gives the input {tensor.name} the shape {shape}, which does not fit {known}")
        return tensor.name, given if _dynamic(known) else None

    def _shape_values(self):
        """{shape input: [(smallest, likeliest, largest values) of each profile]}."""
        return {tensor.name: [profile._values.get(tensor.name, ((), (), ())) for profile in self.config._profiles]
                for tensor in self.inputs if tensor.is_shape_tensor}

    def _shape_outputs(self):
        return [tensor.name for tensor in self.outputs if tensor in self.network._shape_outputs]

    # ---- types ----

    def _layer_types(self):
        """{node: type} of the layers whose type the program has set, where it is to be obeyed or preferred."""
        if self.strongly_typed or not (self.config._has("OBEY_PRECISION_CONSTRAINTS") or self.config._has("PREFER_PRECISION_CONSTRAINTS")):
            return {}
        words = {"FLOAT": "fp32", "HALF": "fp16", "BF16": "bf16", "INT8": "int8"}
        types = {}
        for index in range(self.network.num_layers):
            layer = self.network.get_layer(index)
            if layer.precision_is_set and layer.precision.name in words:
                types.update({node + "*" * node.endswith("/"): words[layer.precision.name]
                              for node in self.lowered.nodes.get(layer.name, ())})
        return types

    def _int8_flags(self, flags, folder):
        """--calib with the scales of the calibrator and of the network's dynamic ranges; takes --int8 away where there are none."""
        if "--int8" not in flags:
            return []
        layers = [self.network.get_layer(index) for index in range(self.network.num_layers)]
        kinds = {layer.type.name for layer in layers}
        if kinds & {"QUANTIZE", "DEQUANTIZE"}:
            return []
        tensors = {id(tensor): tensor for layer in layers for tensor in (layer.get_output(at) for at in range(layer.num_outputs)) if tensor}
        ranges = {self.lowered.tensors.get(tensor.name, tensor.name): max(abs(end) for end in tensor.dynamic_range)
                  for tensor in [*self.inputs, *tensors.values()] if tensor.dynamic_range}
        text = None
        if self.config._calibrator is not None:
            text = self._calibrated([tensor for layer in layers if layer.type.name != "CONSTANT"
                                     for tensor in (layer.get_output(at) for at in range(layer.num_outputs)) if tensor])
        if text is None and not ranges:
            self.builder._warned("BuilderFlag.INT8 is set, but the network has neither Q/DQ layers nor a calibrator nor dynamic ranges: "
                                 "it is built without INT8")
            flags.remove("--int8")
            return []
        path = folder / "calibration.cache"
        path.write_bytes(calibration.with_ranges(text, ranges) if ranges else text)
        return [f"--calib={path}"]

    def _observed_model(self, tensors):
        """Hone's model with these tensors as outputs; of a network whose bodies hold some of them, with its own outputs alone."""
        try:
            lowered = network_model(self.network, tensors)
        except CannotLower as error:
            self.builder._warned(f"INT8 calibration sees inputs and outputs alone: {error}")
            return self.model
        receive, _ = relay(self.logger)
        return hone.Model.parse(lowered.data, lowered.folder, receive, 2)

    def _calibrated(self, tensors):
        profile = self.config._calibration_profile or (self.config._profiles[0] if self.config._profiles else None)
        shapes = {}
        for tensor in self.inputs:
            known = tuple(tensor.shape)
            if _dynamic(known) and (profile is None or tensor.name not in profile._shapes):
                raise Refused(f"calibration needs the shapes of the input {tensor.name} (IBuilderConfig.set_calibration_profile())")
            shapes[tensor.name] = profile._shapes[tensor.name][1] if _dynamic(known) else known
        model = self._observed_model([tensor for tensor in tensors if tensor.dtype == enums.DataType.FLOAT])
        try:
            return calibration.cache_of(self.config._calibrator, model, self.lowered.tensors, shapes,
                                         [tensor.name for tensor in self.inputs], self.logger)
        except calibration.CalibrationFailed as error:
            raise Refused(f"INT8 calibration: {error}") from None
