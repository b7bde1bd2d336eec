# SPDX-License-Identifier: Apache-2.0
"""Bindings, as 8.x has them: inputs and outputs by number, each profile with numbers of its own (profile * count + index).

Members of ICudaEngine and IExecutionContext of the 8.6 surface alone; calls become those of tensors by name.
"""

from .._base import enums
from .._base.values import Dims

_Mode = enums.TensorIOMode


# ---- of engines ----

def _name(self, binding):
    """The tensor behind a binding's number or name; None with the reason in the log."""
    if isinstance(binding, str):
        name = binding.partition(" [profile ")[0]
        return name if self._known(name) else None
    if not 0 <= binding < num_bindings(self):
        return self._failed(f"there are {num_bindings(self)} bindings, there is no number {binding}")
    return self._names[binding % len(self._names)]


def num_bindings(self):
    """Inputs and outputs of all profiles."""
    return len(self._names) * len(self._ranges)


def get_binding_name(self, index):
    """The tensor's name; those of later profiles say so."""
    name = _name(self, index)
    profile = index // len(self._names) if name is not None else 0
    return name if profile == 0 else f"{name} [profile {profile}]"


def get_binding_index(self, name):
    """The number; -1 where there is no such tensor."""
    base, _, profile = name.partition(" [profile ")
    if base not in self._names:
        return -1
    return self._names.index(base) + len(self._names) * (int(profile.rstrip("]")) if profile else 0)


def _of_tensor(member, missing):
    def ask(self, binding):
        name = _name(self, binding)
        return missing if name is None else member(self, name)

    return ask


def binding_is_input(self, binding):
    """Whether it is an input."""
    name = _name(self, binding)
    return name is not None and self._sides[name][2]


def get_profile_shape(self, profile_index, binding):
    """[smallest, likeliest, largest shape]; the arguments come in either order."""
    if isinstance(profile_index, str):
        profile_index, binding = binding, profile_index
    name = _name(self, binding)
    return [] if name is None else [Dims(shape) for shape in self._range(name, profile_index)] if self._sides[name][2] else []


def get_profile_shape_input(self, profile_index, binding):
    """[smallest, likeliest, largest values] of a shape tensor."""
    name = _name(self, binding)
    values = self._shape_values.get(name, ())
    return [list(each) for each in values[profile_index]] if profile_index < len(values) else []


def attach_to_engine(cls):
    """Gives ICudaEngine these members."""
    for function in (get_binding_name, get_binding_index, binding_is_input, get_profile_shape, get_profile_shape_input):
        setattr(cls, function.__name__, function)
    for name, member, missing in (
            ("get_binding_shape", cls.get_tensor_shape, Dims()), ("get_binding_dtype", cls.get_tensor_dtype, enums.DataType.FLOAT),
            ("get_location", cls.get_tensor_location, enums.TensorLocation.DEVICE),
            ("get_binding_format", cls.get_tensor_format, enums.TensorFormat.LINEAR),
            ("get_binding_format_desc", cls.get_tensor_format_desc, ""), ("get_binding_vectorized_dim", cls.get_tensor_vectorized_dim, -1),
            ("get_binding_components_per_element", cls.get_tensor_components_per_element, -1),
            ("get_binding_bytes_per_component", cls.get_tensor_bytes_per_component, -1),
            ("is_shape_binding", cls.is_shape_inference_io, False), ("is_execution_binding", lambda self, name: True, False)):
        setattr(cls, name, _of_tensor(member, missing))
    cls.num_bindings = property(num_bindings, doc="Inputs and outputs of all profiles.")
    cls.max_batch_size = property(lambda self: 1, doc="Batches are ordinary dimensions.")
    cls.__len__ = num_bindings
    cls._binding_index = get_binding_index


# ---- of contexts ----

def _names_at(self, bindings):
    """[(tensor, address)] of the present profile; None where there are too few."""
    engine = self._engine
    first = self._profile * len(engine._names)
    addresses = [int(address or 0) for address in bindings]
    if len(addresses) < len(engine._names):
        return self._failed(f"{len(addresses)} addresses were given for {len(engine._names)} bindings")
    if len(addresses) >= first + len(engine._names):
        addresses = addresses[first:]
    return list(zip(engine._names, addresses))


def execute_async_v2(self, bindings, stream_handle, input_consumed=None):
    """Runs on addresses by binding, in the stream."""
    pairs = _names_at(self, bindings)
    if pairs is None:
        return False
    self._addresses.update(pairs)
    return self.execute_async_v3(stream_handle)


def execute_async(self, batch_size=1, bindings=(), stream_handle=0, input_consumed=None):
    """The same: batches are ordinary dimensions."""
    return execute_async_v2(self, bindings, stream_handle)


def execute(self, batch_size=1, bindings=()):
    """The same, and waits."""
    return self.execute_v2(bindings)


def set_binding_shape(self, binding, shape):
    """The sizes of an input."""
    name = _name(self._engine, binding)
    return name is not None and self.set_input_shape(name, shape)


def get_binding_shape(self, binding):
    """Its present sizes."""
    name = _name(self._engine, binding)
    return Dims() if name is None else self.get_tensor_shape(name)


def get_strides(self, binding):
    """Elements from one index to the next."""
    name = _name(self._engine, binding)
    return Dims() if name is None else self.get_tensor_strides(name)


def set_shape_input(self, binding, shape):
    """The contents of a shape tensor, which are kept for the context."""
    import numpy as np

    from .._base.values import nptype

    name = _name(self._engine, binding)
    if name is None:
        return False
    self._shape_contents[name] = np.ascontiguousarray(list(shape), nptype(self._engine.get_tensor_dtype(name)))
    return self.set_tensor_address(name, self._shape_contents[name].ctypes.data)


def get_shape(self, binding):
    """The contents of a shape tensor that were set."""
    name = _name(self._engine, binding)
    held = self._shape_contents.get(name)
    return [] if held is None else held.reshape(-1).tolist()


def attach_to_context(cls):
    """Gives IExecutionContext these members; the profile can be written there, too."""
    for function in (execute_async_v2, execute_async, execute, set_binding_shape, get_binding_shape, get_strides, set_shape_input, get_shape):
        setattr(cls, function.__name__, function)
    cls.active_optimization_profile = property(
        lambda self: self._profile, lambda self, index: None if self.set_optimization_profile_async(index, 0) else None,
        doc="The present one; 0 at first.")
