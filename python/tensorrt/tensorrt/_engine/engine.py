# SPDX-License-Identifier: Apache-2.0
"""ICudaEngine: a plan of Hone's on the device.

A plan is Hone's own file; what TensorRT wants to find again and Hone does not keep (which inputs are shape tensors, the ranges of their
values, flags) lies in it as a note. A refit makes a new plan, so the engine that programs hold is a handle over one that is exchanged.
"""

import json

import hone

from .._base import enums, native, surface
from .._base.checks import instance
from .._base.reports import Managed, relay
from .._base.values import Dims, IHostMemory
from .._plugins import operators as plugin_operators
from . import bindings, trial
from .context import IExecutionContext
from .inspector import EngineInspector

NOTE = "tensorrt"  # the note's name in a plan

DataType, TensorFormat = enums.DataType, enums.TensorFormat
TensorIOMode, TensorLocation = enums.TensorIOMode, enums.TensorLocation
_Strategy, _EngineStat = enums.get("ExecutionContextAllocationStrategy"), enums.get("EngineStat")

_COMPONENTS = {"CHW2": 2, "CHW4": 4, "CHW16": 16, "CHW32": 32, "HWC8": 8, "HWC16": 16, "DHWC8": 8, "CDHW32": 32}


class ISerializationConfig:
    """What of an engine is written."""

    def __init__(self):
        self._mask = 0

    @property
    def flags(self):
        """The flags as a mask."""
        return self._mask

    @flags.setter
    def flags(self, mask):
        self._mask = int(mask)

    def set_flag(self, flag):
        """Sets one; whether there is such a flag."""
        self._mask |= 1 << int(flag)
        return True

    def clear_flag(self, flag):
        """Clears one."""
        self._mask &= ~(1 << int(flag))
        return True

    def get_flag(self, flag):
        """Whether it is set."""
        return bool(self._mask >> int(flag) & 1)


class IRuntimeConfig:
    """How a context is made."""

    def __init__(self):
        self._strategy = None

    def set_execution_context_allocation_strategy(self, strategy):
        """When memory for activations is taken, and by whom."""
        self._strategy = strategy

    def get_execution_context_allocation_strategy(self):
        """What was set; STATIC at first."""
        return self._strategy if self._strategy is not None else _Strategy.STATIC


def _as_dims(shapes):
    return [Dims(shape) for shape in shapes]


class ICudaEngine(Managed):
    """An engine: ready to make contexts of."""

    def __init__(self, plan, runtime, logger):
        self._runtime, self._logger = runtime, logger  # what it was made of lives as long
        self._generation = 0
        self._notes = json.loads(plan.note(NOTE) or "{}")
        plugin_operators.bring(self._notes.get("plugins", ()))
        self._aliased = self._notes.get("aliased", {})
        self._load(plan)
        self._shape_values = self._notes.get("shape_inputs", {})
        self._streaming_budget = self._streamable()
        self._refit_weights = {}  # {name: array} of a plan without weights, until all are there

    def _load(self, plan):
        """Takes a plan's place under the contexts that there are."""
        receive, threshold = relay(self._logger)
        self._plan, self._info = plan, plan.info()
        self._engine = hone.Engine(plan, native.device(), receive, threshold) if self._info.has_weights else None
        self._generation += 1
        tensors = sorted(plan.handle.tensors(), key=lambda tensor: not tensor[2])  # inputs first
        told = self._notes.get("assertions", {})
        self._assertions = {name: told.get(name, "") for name, *_ in tensors if name.startswith(trial.PREFIX)}  # outputs that nobody sees
        self._sides = {name: (native.dtype_of(dtype), tuple(shape), is_input) for name, dtype, is_input, shape, *_ in tensors
                       if name not in self._assertions}
        self._numbers = {name: dtype for name, dtype, *_ in tensors}  # hone_dtype
        self._unbound = {name for name, _, _, _, by_value, *_ in tensors if by_value}  # the data decide their sizes
        self._names = list(self._sides)
        self._memories = {}  # {profile: bytes}, those that were asked for
        self._ranges = [plan.ranges(profile) for profile in range(self._info.profiles)]
        self._dynamic = [name for name, (_, shape, is_input) in self._sides.items() if is_input and -1 in shape]  # Hone asks for their sizes
        if len(self._ranges) == 1:
            self._narrow(self._ranges[0])

    def _narrow(self, ranges):
        """What the only profile leaves no choice is fixed, as in TensorRT's engines, and what follows from it for outputs."""
        for name in self._dynamic:
            dtype, shape, _ = self._sides[name]
            least, _, most = ranges.get(name, (shape, shape, shape))
            self._sides[name] = dtype, tuple(low if size == -1 and low == high else size for size, low, high in zip(shape, least, most)), True
        inputs, outputs = ([name for name, side in self._sides.items() if side[2] == is_input and -1 in side[1]] for is_input in (True, False))
        if inputs or not outputs or not self._dynamic or self._engine is None:
            return
        with hone.Context(self._engine) as context:
            for name in self._dynamic:
                context.set_shape(name, self._sides[name][1])
            for name in [name for name in outputs if name not in self._unbound]:
                self._sides[name] = self._sides[name][0], tuple(context.shape(name)), False

    # ---- inputs and outputs ----

    @property
    def num_io_tensors(self):
        """How many inputs and outputs there are."""
        return len(self._names)

    def get_tensor_name(self, index):
        """The name of an input or output, inputs first."""
        if not 0 <= index < len(self._names):
            return self._failed(f"there are {len(self._names)} inputs and outputs, asked was for number {index}")
        return self._names[index]

    def __getitem__(self, index):
        if isinstance(index, str) and surface.MAJOR == "8":
            return self._binding_index(index)
        if not -len(self._names) <= index < len(self._names):
            raise IndexError(f"engine[{index}]: it has {len(self._names)} inputs and outputs")
        return self._names[index]

    def __iter__(self):
        return iter(list(self._names))

    def _known(self, name):
        if name in self._sides:
            return True
        return self._failed(f"the engine has no input or output {name!r}; there are {', '.join(self._names)}", False)

    def get_tensor_mode(self, name):
        """INPUT or OUTPUT; NONE where there is no such tensor."""
        if not self._known(name):
            return TensorIOMode.NONE
        return TensorIOMode.INPUT if self._sides[name][2] else TensorIOMode.OUTPUT

    def get_tensor_shape(self, name):
        """Its sizes; -1 where they are dynamic."""
        if not self._known(name):
            return Dims(())
        shape, source = self._sides[name][1], self._notes.get("shaped_by", {}).get(name)
        values = self._shape_values.get(source, ())
        if len(values) == 1 and len(values[0][0]) == len(shape):  # what the only profile leaves no choice
            shape = [least if size == -1 and least == most > 0 else size for size, least, most in zip(shape, values[0][0], values[0][2])]
        return Dims(shape)

    def get_tensor_dtype(self, name):
        """Its elements' type."""
        return self._sides[name][0] if self._known(name) else DataType.FLOAT

    def get_tensor_location(self, name):
        """HOST for shape tensors, else DEVICE, whatever the device is: programs go on copying."""
        return TensorLocation.HOST if self.is_shape_inference_io(name) else TensorLocation.DEVICE

    def is_shape_inference_io(self, name):
        """Whether its contents decide shapes, so that they are read from the host."""
        return self._known(name) and (name in self._shape_values or name in self._notes.get("shape_outputs", ()))

    def _range(self, name, profile):
        """(smallest, likeliest, largest shape) of an input in a profile."""
        return self._ranges[profile].get(name, (self._sides[name][1],) * 3)

    def _profile_known(self, profile):
        if 0 <= profile < len(self._ranges):
            return True
        return self._failed(f"the engine has {len(self._ranges)} profiles, there is no number {profile}", False)

    def get_tensor_profile_shape(self, name, profile_index):
        """[smallest, likeliest, largest shape] of an input in a profile."""
        if not self._known(name) or not self._profile_known(profile_index):
            return []
        if not self._sides[name][2]:
            return self._failed(f"{name} is an output; profiles have shapes of inputs", [])
        return _as_dims(self._range(name, profile_index))

    def get_tensor_profile_values(self, name, profile_index):
        """[smallest, likeliest, largest values] of a shape input in a profile."""
        if not self._known(name) or not self._profile_known(profile_index) or name not in self._shape_values:
            return []
        values = self._shape_values[name]
        return [list(each) for each in values[profile_index]] if profile_index < len(values) else []

    # ---- how tensors lie ----

    def get_tensor_format(self, name, profile_index=0):
        """How its elements lie."""
        return TensorFormat(self._notes.get("formats", {}).get(name, 0)) if self._known(name) else TensorFormat.LINEAR

    def get_tensor_format_desc(self, name, profile_index=0):
        """The same in words."""
        if not self._known(name):
            return ""
        dtype, of = self.get_tensor_dtype(name), self.get_tensor_format(name)
        where = "row major linear" if of == TensorFormat.LINEAR else f"{of.name} vectorized"
        return f"{where} {dtype.name} format ({of})"

    def get_tensor_vectorized_dim(self, name, profile_index=0):
        """The dimension whose elements lie together; -1: none."""
        of = self.get_tensor_format(name)
        return 1 if of.name in _COMPONENTS or of.name in ("HWC", "DHWC") else -1

    def get_tensor_components_per_element(self, name, profile_index=0):
        """How many lie together; 1 where none do."""
        return _COMPONENTS.get(self.get_tensor_format(name).name, 1)

    def get_tensor_bytes_per_component(self, name, profile_index=0):
        """Bytes of one of them; 0 where there is no such tensor."""
        return self.get_tensor_dtype(name).itemsize if self._known(name) else 0

    # ---- what it is ----

    @property
    def name(self):
        """The network's."""
        return self._notes.get("name") or self._info.model

    @property
    def refittable(self):
        """Whether it takes other weights."""
        return self._info.refittable

    @property
    def num_layers(self):
        """Those of all profiles."""
        return len(self._layers(0)) * len(self._ranges)

    def _layers(self, profile):
        """The names of a profile's layers."""
        return [self._plan.handle.layer(profile, index)[0] for index in range(self._plan.handle.layers(profile))]

    @property
    def num_optimization_profiles(self):
        """How many there are."""
        return len(self._ranges)

    @property
    def profiling_verbosity(self):
        """What it tells of its layers; of a plan that trtexec made, by what it tells."""
        if "profiling_verbosity" in self._notes:
            return enums.ProfilingVerbosity(self._notes["profiling_verbosity"])
        layers = json.loads(self._plan.layers_json(0)).get("Layers", [])
        detailed = bool(layers) and isinstance(layers[0], dict)
        return enums.ProfilingVerbosity.DETAILED if detailed else enums.ProfilingVerbosity.LAYER_NAMES_ONLY

    @property
    def engine_capability(self):
        """STANDARD, unless the build asked for another."""
        return enums.ALL["EngineCapability"](self._notes.get("engine_capability", 0))

    @property
    def hardware_compatibility_level(self):
        """As the build was told."""
        return enums.ALL["HardwareCompatibilityLevel"](self._notes.get("hardware_compatibility_level", 0))

    @property
    def tactic_sources(self):
        """As the build was told."""
        return self._notes.get("tactic_sources", 0)

    @property
    def num_aux_streams(self):
        """None: an inference's steps run one behind the other."""
        return 0

    @property
    def has_implicit_batch_dimension(self):
        """Never."""
        return False

    def get_aliased_input_tensor(self, name):
        """The input whose memory the output may share: a cache that is updated; None."""
        return self._aliased.get(name)

    def is_debug_tensor(self, name):
        """Whether it can be observed in each run."""
        return name in self._notes.get("debug", ())

    # ---- memory ----

    def _memory(self, profile):
        """What a profile's plan says, or where kernels need more at its largest shapes, what a context says."""
        if self._engine is None:
            return 0
        if profile not in self._memories:
            needed = self._engine.memory_bytes(profile)
            try:
                with hone.Context(self._engine, profile) as context:
                    for name, (_, _, most) in self._ranges[profile].items():
                        context.set_shape(name, most)
                    needed = max(needed, context.memory_bytes())
            except hone.Error:  # where the data decide sizes, only runs tell
                pass
            self._memories[profile] = needed
        return self._memories[profile]

    def _most_memory(self):
        return max((self._memory(profile) for profile in range(len(self._ranges))), default=0)

    device_memory_size_v2 = property(_most_memory, doc="Bytes that a context needs, whatever the profile.")
    device_memory_size = property(_most_memory, doc="The same.")

    def get_device_memory_size_for_profile_v2(self, profile_index):
        """Bytes that a context needs at a profile's largest shapes."""
        return self._memory(profile_index) if self._profile_known(profile_index) else 0

    def get_device_memory_size_for_profile(self, profile_index):
        """The same."""
        return self._memory(profile_index) if self._profile_known(profile_index) else 0

    def _streamable(self):
        return max(1, self._info.weight_bytes) if self._notes.get("weight_streaming") else 0

    @property
    def streamable_weights_size(self):
        """Bytes of weights, where the build allowed them to be streamed; all stay where they are used."""
        return self._streamable()

    @property
    def weight_streaming_budget_v2(self):
        """Kept and given back: no weights are streamed."""
        return self._streaming_budget

    @weight_streaming_budget_v2.setter
    def weight_streaming_budget_v2(self, budget):
        if not 0 <= budget <= self._streamable():
            self._failed(f"a budget of {budget} bytes for weights; it is between 0 and {self._streamable()}")
            return
        self._streaming_budget = budget

    weight_streaming_budget = weight_streaming_budget_v2

    @property
    def minimum_weight_streaming_budget(self):
        """Nothing is needed at least."""
        return 0

    def get_weight_streaming_automatic_budget(self):
        """All of them: nothing is gained by streaming."""
        return self._streamable()

    @property
    def weight_streaming_scratch_memory_size(self):
        """None."""
        return 0

    def get_engine_stat(self, stat):
        """Bytes of weights: all, or those that the plan's file lacks."""
        stripped = bool(self._notes.get("stripped"))
        return self._info.weight_bytes if stat == _EngineStat.TOTAL_WEIGHTS_SIZE or stripped else 0

    # ---- making ----

    def create_execution_context(self, strategy=None, runtime_config=None):
        """A context, or None. `strategy` may also be an IRuntimeConfig."""
        instance(runtime_config, IRuntimeConfig, "runtime_config", none=True)
        config = runtime_config if runtime_config is not None else strategy if isinstance(strategy, IRuntimeConfig) else None
        if config is not None:
            strategy = config.get_execution_context_allocation_strategy()
        if strategy is not None and _Strategy is not None:
            instance(strategy, _Strategy, "create_execution_context")
        if self._engine is None:
            return self._failed("the engine's plan has no weights; refit it first (trt.Refitter)", code="INVALID_STATE")
        try:
            return IExecutionContext(self, strategy, config)
        except hone.Error as error:
            return self._failed(native.text_of(error), code="FAILED_INITIALIZATION")

    def create_execution_context_without_device_memory(self):
        """A context that waits for set_device_memory()."""
        return self.create_execution_context(_Strategy.USER_MANAGED if _Strategy is not None else "USER_MANAGED")

    def create_runtime_config(self):
        """How a context is made, to be filled in."""
        return IRuntimeConfig()

    def create_engine_inspector(self):
        """Tells of the layers."""
        return EngineInspector(self)

    def create_serialization_config(self):
        """What is to be written, to be filled in."""
        return ISerializationConfig()

    def serialize(self):
        """The plan's bytes."""
        try:
            return IHostMemory(self._plan.bytes())
        except hone.Error as error:
            return self._failed(native.text_of(error))

    def serialize_with_config(self, config):
        """The same: a plan keeps or leaves its weights as the build was told."""
        instance(config, ISerializationConfig, "serialize_with_config")
        flags = enums.get("SerializationFlag")
        if config.get_flag(flags.EXCLUDE_WEIGHTS) and not self._notes.get("stripped"):
            self._warned("SerializationFlag.EXCLUDE_WEIGHTS: the plan was built with its weights and keeps them "
                         "(BuilderFlag.STRIP_PLAN builds one without)")
        return self.serialize()


if surface.MAJOR == "8":
    bindings.attach_to_engine(ICudaEngine)
    bindings.attach_to_context(IExecutionContext)
