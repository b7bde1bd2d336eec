# SPDX-License-Identifier: Apache-2.0
"""Quickly deployable plugins: what `register`, `impl` and `autotune` collect becomes a plugin of the third interface.

An output that lies in an input's memory gets a copy of it first, and the function is given that one in the input's place: so nothing else
that reads the input sees what the plugin does to it.
"""

import inspect
import typing

import numpy as np

from .._base import enums, native
from . import quick_tensors
from .classes import DimsExprs, IPluginV3, IPluginV3OneBuild, IPluginV3OneCore, IPluginV3OneRuntime
from .registry import IPluginCreatorV3Quick, PluginField, PluginFieldCollection, get_plugin_registry

_FieldType = enums.ALL["PluginFieldType"]
_RANKS = "hone.ranks"  # a field beside the plugin's own


class _Definition:
    """A plugin as its functions say it."""

    def __init__(self, name):
        self.namespace, _, self.name = name.partition("::")
        if not self.namespace or not self.name:
            raise ValueError(f"{name!r}: a plugin's name is namespace::name")
        self.describe = self.compute = self.tune = self.ahead = None

    def set_describe(self, function):
        """The function that describes outputs; its parameters are the inputs, then the attributes."""
        try:
            hints = typing.get_type_hints(function)
        except Exception:  # annotations that cannot be looked up
            hints = dict(getattr(function, "__annotations__", {}))
        parameters = list(inspect.signature(function).parameters)
        self.describe, self.kinds = function, {name: hints.get(name) for name in parameters}
        self.inputs = [name for name in parameters if hints.get(name) is quick_tensors.TensorDesc]
        self.attributes = [name for name in parameters if name not in self.inputs]
        if not self.inputs:
            raise ValueError(f"{self.namespace}::{self.name}: no parameter is annotated as tensorrt.plugin.TensorDesc")

    def outputs(self, descs, attributes):
        """Descriptions of the outputs."""
        made = self.describe(*descs, **attributes)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def __call__(self, *arguments, **named):
        """A call, for INetworkDefinition.add_plugin()."""
        given = inspect.signature(self.describe).bind(*arguments, **named)
        given.apply_defaults()
        tensors = [given.arguments[name] for name in self.inputs]
        attributes = {name: given.arguments[name] for name in self.attributes}
        return Call(tensors, QuickPlugin(self, attributes, [len(tensor.shape) for tensor in tensors]))


class Call:
    """Tensors and the plugin that reads them."""

    def __init__(self, tensors, plugin):
        self.tensors, self.plugin = tensors, plugin


_definitions = {}


def _of(name):
    if name not in _definitions:
        raise ValueError(f"{name} has not been registered (tensorrt.plugin.register)")
    return _definitions[name]


def register(plugin_id, lazy_register=False):
    """Decorates the function that describes outputs by inputs and attributes."""
    def decorate(function):
        if plugin_id in _definitions:
            raise ValueError(f"{plugin_id} is registered already")
        made = _Definition(plugin_id)
        made.set_describe(function)
        _definitions[plugin_id] = made
        get_plugin_registry().register_creator(_Creator(made), made.namespace)
        return made

    return decorate


def _taking(member):
    def of(plugin_id):
        def decorate(function):
            setattr(_of(plugin_id), member, function)
            return function

        return decorate

    return of


impl, autotune, aot_impl = _taking("compute"), _taking("tune"), _taking("ahead")
impl.__doc__ = "Decorates the function that computes: inputs, attributes, outputs, stream and, where it takes one, tactic."
autotune.__doc__ = "Decorates the function that lists types and layouts."
aot_impl.__doc__ = "Kept: kernels that are compiled ahead are not used."


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        try:
            return _of(f"{self._name}::{name}")
        except ValueError as error:
            raise AttributeError(str(error)) from None


class _Op:
    def __getattr__(self, name):
        if name.startswith("__") or not any(each.startswith(f"{name}::") for each in _definitions):
            raise AttributeError(f"no plugin is registered in the namespace {name}")
        return _Namespace(name)


op = _Op()


def _field(name, value):
    if isinstance(value, (str, bytes)):
        return PluginField(name, value, _FieldType.CHAR)
    array = np.atleast_1d(np.asarray(value))
    kind = {"f": ("FLOAT64", np.float64), "b": ("INT64", np.int64), "i": ("INT64", np.int64), "u": ("INT64", np.int64)}[array.dtype.kind]
    return PluginField(name, array.astype(kind[1]), getattr(_FieldType, kind[0]))


def _value(data, kind):
    """An attribute of what a field holds, by its annotation."""
    if kind in (str, bytes):
        data = data if isinstance(data, bytes) else np.asarray(data).tobytes()
        return data.decode() if kind is str else data
    array = np.asarray(data)
    if kind in (int, float, bool):
        return kind(array.reshape(-1)[0])
    element = (typing.get_args(typing.get_args(kind)[1]) or (None,))[0] if len(typing.get_args(kind)) > 1 else None
    return array.astype(element) if isinstance(element, type) else array


class _Creator(IPluginCreatorV3Quick):
    def __init__(self, definition):
        super().__init__()
        self.definition, self.name, self.plugin_namespace = definition, definition.name, definition.namespace
        self.field_names = PluginFieldCollection([PluginField(name, None, _FieldType.UNKNOWN) for name in definition.attributes])

    def create_plugin(self, name, namespace, fc, phase, qpcr=None):
        """The plugin of its fields."""
        held = {field.name: field.data for field in fc}
        ranks = [int(each) for each in held.pop(_RANKS, [4] * len(self.definition.inputs))]
        kinds = self.definition.kinds
        return QuickPlugin(self.definition, {name: _value(data, kinds.get(name)) for name, data in held.items()}, ranks)


class QuickPlugin(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    """One at work."""

    def __init__(self, definition, attributes, ranks):
        self.definition, self.attributes, self.ranks = definition, attributes, ranks
        self.plugin_name, self.plugin_version, self.plugin_namespace = definition.name, "1", definition.namespace
        self._types = [enums.DataType.FLOAT] * len(ranks)

    def get_capability_interface(self, type):
        """It is all of them."""
        return self

    def _described(self, shapes):
        return self.definition.outputs(quick_tensors.described(self._types, shapes), self.attributes)

    @property
    def num_outputs(self):
        """As the function says it of inputs of these ranks."""
        return len(self._described([[2] * rank for rank in self.ranks]))

    def get_output_data_types(self, types):
        """The same of types."""
        self._types = list(types)
        return [desc.dtype for desc in self._described([[2] * rank for rank in self.ranks])]

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        """And of sizes."""
        return [DimsExprs(sizes) for sizes in quick_tensors.dimensions(self._described([[size.get_constant_value() for size in each] for each in inputs]))]

    def _combinations(self, types):
        if self.definition.tune is None:
            return [quick_tensors.AutoTuneCombination()]
        descs = self._described([[2] * rank for rank in self.ranks])
        inputs = quick_tensors.described(self._types, [[2] * rank for rank in self.ranks])
        return [each for each in _with(self.definition.tune, inputs, self.attributes, outputs=tuple(descs)) if each.takes(types)]

    def supports_format_combination(self, pos, in_out, num_inputs):
        """Linear tensors of the types that a combination has."""
        return bool(self._combinations([desc.desc.type for desc in in_out]))

    def get_fields_to_serialize(self):
        """The attributes."""
        fields = [_field(name, value) for name, value in self.attributes.items()]
        return PluginFieldCollection([*fields, PluginField(_RANKS, np.array(self.ranks, np.int32), _FieldType.INT32)])

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        """Calls the function."""
        if self.definition.compute is None:
            raise NotImplementedError(f"{self.plugin_namespace}::{self.plugin_name} has no function that computes (tensorrt.plugin.impl)")
        read = [quick_tensors.Tensor(address, desc.type, desc.dims) for address, desc in zip(inputs, input_desc)]
        descs = quick_tensors.described([desc.type for desc in input_desc], [tuple(desc.dims) for desc in input_desc])
        made = self.definition.outputs(descs, self.attributes)
        written = []
        for at, (address, desc) in enumerate(zip(outputs, output_desc)):
            decided = any(getattr(size, "is_size_tensor", False) for size in made[at].shape_expr)
            tensor = quick_tensors.Tensor(address, desc.type, desc.dims, decided)
            source = made[at].get_aliased()
            if source is not None:
                place = next(number for number, each in enumerate(descs) if each is source)
                native.copy(address, inputs[place], native.bytes_of(desc.type, tuple(desc.dims)), stream)
                read[place] = tensor
            written.append(tensor)
        chosen = self._combinations([desc.type for desc in [*input_desc, *output_desc]])
        tactic = (chosen[0]._tactics if chosen else [])[:1]
        _with(self.definition.compute, read, self.attributes, outputs=tuple(written), stream=stream, tactic=tactic[0] if tactic else 0)
        return 0

    def clone(self):
        """Another one."""
        return QuickPlugin(self.definition, self.attributes, self.ranks)


def _with(function, tensors, attributes, **more):
    """A call with those of the arguments that the function has."""
    known = inspect.signature(function).parameters
    return function(*tensors, **{name: value for name, value in {**attributes, **more}.items() if name in known})
