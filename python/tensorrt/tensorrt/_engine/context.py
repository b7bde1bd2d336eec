# SPDX-License-Identifier: Apache-2.0
"""IExecutionContext: one inference at a time.

Shapes, addresses and allocators are kept here and given to Hone's context where they changed, so that an engine can be refitted and a
profile exchanged below them. Shapes are given together before they are needed: inputs of one symbol may change one by one.
On a processor an inference is over when execute_async_v3() returns; on a GPU it is enqueued in the program's stream.
"""

import ctypes
import math
import weakref

import hone
from hone.arrays import NAMES, Tensor

from .._base import native
from .._base.checks import instance
from .._base.reports import Managed
from .._base.values import Dims
from . import trial
from .listeners import IDebugListener, IOutputAllocator, IProfiler, activations, allocate, report_debug_tensors, report_layers
from .shape_values import complaint

_NOTHING = 64  # an address for tensors without elements: nothing is read or written there


def _sizes(shape):
    """A shape of any kind as a tuple; TypeError for what is none."""
    return tuple(int(size) for size in shape)


class IExecutionContext(Managed):
    """Runs an engine."""

    def __init__(self, engine, strategy=None, config=None):
        self._engine, self._logger, self._config = engine, engine._logger, config
        self.name = ""
        self._user_memory = getattr(strategy, "name", strategy) == "USER_MANAGED"
        self._memory = (0, 0)
        self._profile, self._generation = 0, -1
        self._shapes, self._addresses, self._allocators, self._placed, self._staged = {}, {}, {}, {}, {}
        self._staging = {}
        self._shape_contents = {}  # of 8.x's set_shape_input()
        self._trials, self._conditions = trial.Trials(), {}
        self._debug_listener, self._debug_off, self._debug_on = None, set(), False
        self._unfused_debug = False
        self._profiler, self._layer_times = None, []
        self.enqueue_emits_profile = True
        self.debug_sync, self.nvtx_verbosity = False, engine.profiling_verbosity
        self.persistent_cache_limit, self.temporary_allocator = 0, None
        self._consumed_event = 0
        self._renew()
        allocator = engine._runtime.gpu_allocator if engine._runtime is not None else None
        if allocator is not None and not self._user_memory:
            self._ask(allocator)

    def _ask(self, allocator):
        """Memory for activations from the runtime's allocator, for as long as the context lives."""
        size = self._engine._most_memory()
        if not size:
            return
        address, back = activations(allocator, size)
        if not address:
            raise hone.Error(f"the gpu_allocator gave no memory of {size} bytes at a multiple of 256")
        self._use_memory(address, size)
        weakref.finalize(self, back)

    # ---- what lies below ----

    def _renew(self):
        """Hone's context, made anew where the engine has been refitted."""
        if self._generation == self._engine._generation:
            return
        self._inner = hone.Context(self._engine._engine, self._profile)
        self._handle = self._inner.handle
        self._generation = self._engine._generation
        self._given = {}  # {name: address} that Hone's context has
        self._shapes_given = False
        if self._memory[0]:
            self._handle.set_memory(*self._memory)

    def _input_shape(self, name):
        """What was set, or the engine's, with -1 where it is dynamic."""
        return self._shapes.get(name, self._engine._sides[name][1])

    def _inputs(self):
        return [name for name, side in self._engine._sides.items() if side[2]]

    def _outputs(self):
        return [name for name, side in self._engine._sides.items() if not side[2]]

    def _missing(self):
        """Inputs whose sizes are not known yet."""
        return [name for name in self._inputs() if -1 in self._input_shape(name)]

    def _give_shapes(self):
        """The shapes of all dynamic inputs to Hone's context; hone.Error where they do not fit each other."""
        self._renew()
        if self._shapes_given:
            return
        try:
            for name in self._engine._dynamic:
                self._handle.set_shape(name, list(self._input_shape(name)))
        except hone.Error:  # sizes of one symbol change together: begin without any
            self._handle.set_profile(self._profile)
            for name in self._engine._dynamic:
                self._handle.set_shape(name, list(self._input_shape(name)))
        self._shapes_given = True

    @property
    def engine(self):
        """The engine that it was made of."""
        return self._engine

    # ---- shapes ----

    def set_input_shape(self, name, shape):
        """The sizes of an input; False outside of the profile."""
        sizes = _sizes(shape)
        if not self._engine._known(name):
            return False
        _, known, is_input = self._engine._sides[name]
        if not is_input:
            return self._failed(f"{name} is an output: its shape follows from the inputs'", False)
        if len(sizes) != len(known):
            return self._failed(f"the input {name} has {len(known)} dimensions, {sizes} has {len(sizes)}", False)
        if any(size != fixed for size, fixed in zip(sizes, known) if fixed != -1):
            return self._failed(f"the input {name} is {known}, {sizes} does not fit", False)
        least, _, most = self._engine._range(name, self._profile)
        if -1 in known and any(not low <= size <= high for low, size, high in zip(least, sizes, most)):
            return self._failed(f"the input {name} goes from {tuple(least)} to {tuple(most)} in profile {self._profile}, {sizes} is outside",
                                False)
        if self._shapes.get(name) != sizes:
            self._shapes[name] = sizes
            self._shapes_given = False
        return True

    def get_tensor_shape(self, name):
        """Its present sizes; -1 where they are not known or the data decide."""
        if not self._engine._known(name):
            return Dims((-1,))
        if self._engine._sides[name][2]:
            return Dims(self._input_shape(name))
        return Dims(self._output_shape(name))

    def _output_shape(self, name):
        """The engine's shape with -1 in it, as long as it is not known."""
        engine_shape = self._engine._sides[name][1]
        if -1 not in engine_shape or self._missing():
            return engine_shape
        if name in self._engine._unbound:
            return self._tried_shape(name, engine_shape)
        try:
            self._give_shapes()
            return tuple(self._handle.shape(name))
        except hone.Error:
            return engine_shape

    def _tried_shape(self, name, engine_shape):
        """What shape tensors decide; where data do, only runs tell."""
        if name not in self._engine._notes.get("decided_by_shapes", ()):
            return engine_shape
        try:
            result = self._trials.result(self)
        except hone.Error:
            return engine_shape
        return engine_shape if result is None else result[0].get(name, engine_shape)

    def get_tensor_strides(self, name):
        """Elements from one index to the next, by dimension; -1 while unknown."""
        shape, of = tuple(self.get_tensor_shape(name)), self._engine.get_tensor_format(name).name
        axes = list(range(len(shape)))  # as they follow each other in memory
        if of in ("HWC", "DHWC") and len(shape) >= len(of):
            axes.append(axes.pop(-len(of)))
        strides, step = [0] * len(shape), 1
        for axis in reversed(axes):
            strides[axis] = step
            step = -1 if -1 in (step, shape[axis]) else step * shape[axis]
        return Dims(strides)

    def infer_shapes(self):
        """The inputs whose shape or, of shape tensors, contents are missing; RuntimeError where those that are there contradict each other."""
        values = [name for name in self._inputs() if self._engine.is_shape_inference_io(name) and not self._addresses.get(name)]
        missing = self._missing()
        missing += [name for name in values if name not in missing]
        if not missing:
            try:
                self._give_shapes()
                if self._engine._notes.get("checked_by_shapes"):
                    result = self._trials.result(self)
                    if result is not None:
                        trial.check(self._engine, result[1])
            except hone.Error as error:
                self._failed(native.text_of(error))
                raise RuntimeError(f"infer_shapes: {native.text_of(error)}") from None
        return missing

    @property
    def all_binding_shapes_specified(self):
        """Whether the shapes of all inputs are known."""
        return not self._missing()

    @property
    def all_shape_inputs_specified(self):
        """Whether the contents of all shape tensors are there."""
        return all(self._addresses.get(name) for name in self._inputs() if self._engine.is_shape_inference_io(name))

    # ---- memory ----

    def set_tensor_address(self, name, memory):
        """Where an input or output lies: an address, or what int() makes one of."""
        address = int(memory)
        if not self._engine._known(name):
            return False
        self._addresses[name] = address
        return True

    def get_tensor_address(self, name):
        """What was set; 0: nothing."""
        return self._addresses.get(name, 0) if self._engine._known(name) else 0

    def set_output_allocator(self, name, output_allocator):
        """Memory for an output comes from the program in each run; None: from its address."""
        if not self._engine._known(name):
            return False
        if self._engine._sides[name][2]:
            return self._failed(f"{name} is an input; only outputs have allocators", False)
        if output_allocator is None:
            self._allocators.pop(name, None)
        else:
            self._allocators[name] = instance(output_allocator, IOutputAllocator, "set_output_allocator")
        return True

    def get_output_allocator(self, name):
        """The very object that was set, or None."""
        return self._allocators.get(name) if self._engine._known(name) else None

    def get_max_output_size(self, name):
        """Bytes of an output at the present shapes; -1 where only the data tell."""
        shape = self.get_tensor_shape(name)
        return -1 if -1 in tuple(shape) else native.bytes_of(self._engine.get_tensor_dtype(name), shape)

    def set_device_memory(self, memory, size):
        """Memory for activations of the program's, 256-byte aligned."""
        self._use_memory(int(memory), int(size))

    def _use_memory(self, memory, size):
        self._memory = (memory, size)
        try:
            self._renew()
            if self._memory[0]:
                self._handle.set_memory(*self._memory)
        except hone.Error as error:
            self._failed(native.text_of(error))

    def _set_device_memory(self, memory):
        self._use_memory(int(memory), self._engine._most_memory())

    device_memory = property(None, _set_device_memory, doc="The same, as large as the engine says.")

    def update_device_memory_size_for_shapes(self):
        """Bytes that activations need at the present shapes; 0 where a shape is missing."""
        try:
            self._give_shapes()
            return self._handle.memory_bytes()
        except hone.Error as error:
            return self._failed(f"shapes are missing: {', '.join(self._missing()) or native.text_of(error)}", 0)

    # ---- profiles ----

    @property
    def active_optimization_profile(self):
        """The present one; 0 at first."""
        return self._profile

    def set_optimization_profile_async(self, profile_index, stream_handle):
        """Another profile: shapes are to be set again, addresses stay."""
        int(stream_handle)
        if not self._engine._profile_known(profile_index):
            return False
        try:
            self._renew()
            self._handle.set_profile(profile_index)
        except hone.Error as error:
            return self._failed(native.text_of(error), False)
        self._profile = profile_index
        self._shapes.clear()
        self._shapes_given = False
        return True

    # ---- running ----

    def execute_async_v3(self, stream_handle):
        """Runs on what is set, in the stream; False with the reason in the log where it cannot."""
        stream = int(stream_handle)
        try:
            return self._ready() and self._placed_all(stream) and self._run(stream)
        except hone.Error as error:
            return self._failed(native.text_of(error), False, "FAILED_EXECUTION")

    def execute_v2(self, bindings):
        """Runs on addresses in the engine's order and waits."""
        addresses = [int(address) for address in bindings]
        count = len(self._engine._names)
        if len(addresses) not in (count, count * len(self._engine._ranges)):  # 8.x has bindings for each profile
            return self._failed(f"execute_v2() was given {len(addresses)} addresses for {count} inputs and outputs", False)
        self._addresses.update(zip(self._engine._names, addresses[self._profile * count:] if len(addresses) > count else addresses))
        done = self.execute_async_v3(0)
        if done and not native.on_host():
            native.stream(0).synchronize()
        return done

    def _ready(self):
        """Inputs are there: shapes, addresses, contents."""
        if self._engine._engine is None:
            return self._failed("the engine has no weights yet", False, "INVALID_STATE")
        missing = self._missing()
        if missing:
            return self._failed(f"the shape of {', '.join(missing)} has not been set (set_input_shape())", False, "INVALID_STATE")
        self._give_shapes()
        for name in self._inputs():
            address = self._addresses.get(name, 0)
            if not address:
                if math.prod(self._input_shape(name)) != 0:
                    return self._failed(f"the input {name} has no address (set_tensor_address())", False, "INVALID_STATE")
                address = _NOTHING
            if name in self._engine._shape_values and self._out_of_profile(name, address):
                return False
            if not native.on_host() and self._engine.is_shape_inference_io(name):
                value = native.tensor_value(self._engine._numbers[name], self._input_shape(name), address)
                self._handle.set_value(name, value)
            else:
                self._bind(name, address)
        if self._user_memory and not self._memory[0] and self._handle.memory_bytes() > 0:
            return self._failed("the context has no memory for activations (set_device_memory())", False, "INVALID_STATE")
        return True

    def _out_of_profile(self, name, address):
        """Whether a shape tensor holds what the profile does not serve; the log says so."""
        values = self._engine._shape_values[name]
        if self._profile >= len(values):
            return False
        wrong = complaint(name, self._engine._sides[name][0], self._input_shape(name), address, values[self._profile])
        return wrong is not None and not self._failed(wrong, False)

    def _bind(self, name, address):
        if self._given.get(name) != address:
            self._handle.bind(name, address, native.HOST if native.on_host() else native.DEVICE)
            self._given[name] = address

    def _placed_all(self, stream):
        """Outputs have memory: their addresses, or what their allocators give."""
        self._staged.clear()
        for name in self._outputs():
            allocator, address = self._allocators.get(name), self._addresses.get(name, 0)
            if allocator is None and not address:
                return self._failed(f"the output {name} has neither an address nor an allocator", False, "INVALID_STATE")
            if name in self._engine._unbound:  # asked for memory when its size is known
                self._handle.set_output_function(name, self._placing(name, stream))
                continue
            if allocator is not None:
                shape = tuple(self._handle.shape(name))
                address = allocate(self, name, shape, stream)
                if not address:
                    return self._failed(f"the allocator of the output {name} gave no memory", False, "FAILED_ALLOCATION")
            elif not native.on_host() and self._engine.is_shape_inference_io(name):
                address = self._stage(name, address, True)
            elif address == self._addresses.get(self._engine._aliased.get(name)):
                address = self._stage(name, address, False)
            self._bind(name, address)
        for name in self._engine._assertions:
            shape, held = tuple(self._handle.shape(name)), self._conditions.get(name)
            if held is None or held.shape != shape:
                self._conditions[name] = held = Tensor(native.device(), shape, "bool")
            self._bind(name, held.address)
        return True

    def _stage(self, name, address, to_host):
        """Memory for an output that is brought to its place behind the run: a shape tensor that is read from the host, or what has an
        input's memory."""
        staged = self._staging.get(name)
        shape = tuple(self._handle.shape(name))
        if staged is None or staged.shape != shape:
            staged = self._staging[name] = Tensor(native.device(), shape, NAMES[self._engine._numbers[name]])
        self._staged[name] = staged, address, to_host
        return staged.address

    def _bring(self, stream):
        """What was staged to where the program wants it; shape tensors before the call returns."""
        for staged, address, _ in self._staged.values():
            if native.on_host():
                ctypes.memmove(address, staged.address, staged.nbytes)
            else:
                native.stream(stream).handle.copy(address, staged.address, staged.nbytes)
        if not native.on_host() and any(to_host for *_, to_host in self._staged.values()):
            native.stream(stream).synchronize()

    def _placing(self, name, stream):
        """A function that gives an output memory when the data have decided its size. Hone's context keeps it, so it may not keep this one."""
        weakly = weakref.ref(self)

        def place(shape, _):
            context = weakly()
            if context is None:
                return 0
            return allocate(context, name, tuple(shape), stream) if name in context._allocators else context._addresses.get(name, 0)

        return place

    def _run(self, stream):
        debug = self._debug_on and self._debug_listener is not None
        if self._profiler is not None:
            if not native.on_host():
                native.stream(stream).synchronize()  # the inputs are there: layers are timed in a stream of their own
            self._layer_times = self._handle.profile()
            if self.enqueue_emits_profile:
                self.report_to_profiler()
        elif native.on_host():
            self._handle.run()
        else:
            self._handle.enqueue(native.stream(stream).handle)
            if debug or self._engine._unbound:
                self._handle.wait()  # allocators hear of sizes that the data decide before the call returns
        self._bring(stream)
        if debug:
            report_debug_tensors(self, stream)
        return self._asserted()

    def _asserted(self):
        """Whether the network's assertions hold; on a GPU that is not asked behind each run, which goes on."""
        if native.on_host():
            trial.check(self._engine, {name: bool(tensor.numpy().all()) for name, tensor in self._conditions.items()})
        return True

    # ---- listeners ----

    @property
    def profiler(self):
        """Hears how long each layer took."""
        return self._profiler

    @profiler.setter
    def profiler(self, profiler):
        self._profiler = instance(profiler, IProfiler, "profiler", none=True)

    def report_to_profiler(self):
        """Tells the profiler of the last run; False where there is none."""
        if self._profiler is None or not self._layer_times:
            return False
        report_layers(self._profiler, self._layer_times)
        return True

    def set_debug_listener(self, listener):
        """Hears what debug tensors hold after each run."""
        self._debug_listener = instance(listener, IDebugListener, "set_debug_listener", none=True)
        return True

    def get_debug_listener(self):
        """What was set."""
        return self._debug_listener

    def set_all_tensors_debug_state(self, flag):
        """Whether debug tensors are reported."""
        self._debug_on, self._debug_off = bool(flag), set()
        return True

    def set_tensor_debug_state(self, name, flag):
        """The same of one."""
        if not self._engine.is_debug_tensor(name):
            return self._failed(f"{name} is no debug tensor; there are {', '.join(self._engine._notes.get('debug', ())) or 'none'}", False)
        if not self._debug_on:
            self._debug_on, self._debug_off = True, set(self._engine._notes.get("debug", ()))
        (self._debug_off.discard if flag else self._debug_off.add)(name)
        return True

    def get_debug_state(self, name):
        """Whether it is reported."""
        return self._debug_on and name not in self._debug_off and self._engine.is_debug_tensor(name)

    @property
    def unfused_tensors_debug_state(self):
        """Whether tensors that survive fusion are reported, in engines built so."""
        return self._unfused_debug

    @unfused_tensors_debug_state.setter
    def unfused_tensors_debug_state(self, flag):
        self._unfused_debug = bool(flag)

    # ---- kept for the program ----

    def set_input_consumed_event(self, event):
        """Inputs may change when execute_async_v3() has returned on a processor; kept."""
        self._consumed_event = int(event)
        return True

    def get_input_consumed_event(self):
        """What was set; 0 at first."""
        return self._consumed_event

    def set_aux_streams(self, aux_streams):
        """None are used."""

    def get_runtime_config(self):
        """What it was made with."""
        return self._config

    def set_communicator(self, communicator):
        """There is one device."""
        return False
