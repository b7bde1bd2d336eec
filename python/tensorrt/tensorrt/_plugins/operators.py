# SPDX-License-Identifier: Apache-2.0
"""Plugins of a program's own, in Python, as operators of Hone.

Each plugin at work (its creator, its parameters, the types of its inputs) is an operator with a name of its own. Its sizes are asked in
texts over those of its inputs, so that they hold for every shape; where it wants numbers, when they are known. enqueue() gets addresses of
the device's memory, and on a GPU the stream. A plan keeps in its note what it takes to make the plugins again, from their creators, where
it is loaded.
"""

import hashlib

import hone
import numpy as np
from hone import _hone

from .._base import enums, native
from .._base.values import Dims
from .classes import DimsExprs, DynamicPluginTensorDesc, IExprBuilder, IPluginV3, PluginTensorDesc
from .registry import IPluginCreatorV3One, IPluginCreatorV3Quick, PluginField, PluginFieldCollection, get_plugin_registry

DOMAIN = "hone.plugins"
_Part, _Phase, _FieldType = enums.get("PluginCapabilityType"), enums.get("TensorRTPhase"), enums.ALL["PluginFieldType"]
_registered = {}  # {name of the operator: _Operator}


class Refused(Exception):
    """Why a plugin cannot be used."""


def _descs(types, shapes, dynamic=False):
    descs = [PluginTensorDesc(Dims(shape), dtype) for dtype, shape in zip(types, shapes)]
    return [DynamicPluginTensorDesc(desc, desc.dims, desc.dims, desc.dims) for desc in descs] if dynamic else descs


class _Second:
    """A plugin of the second interface."""

    version = 2

    def __init__(self, plugin):
        self.plugin = plugin
        self.key = plugin.plugin_type, plugin.plugin_version, plugin.plugin_namespace
        self.outputs = plugin.num_outputs

    def types(self, inputs):
        return [self.plugin.get_output_datatype(at, inputs) for at in range(self.outputs)]

    def shapes(self, inputs):
        return [self.plugin.get_output_dimensions(at, inputs, IExprBuilder()) for at in range(self.outputs)]

    def fits(self, *arguments):
        return self.plugin.supports_format_combination(*arguments)

    def configure(self, *descs):
        self.plugin.configure_plugin(*descs)
        self.plugin.initialize()

    def workspace(self, *descs):
        return self.plugin.get_workspace_size(*descs)

    def enqueue(self, *arguments):
        return self.plugin.enqueue(*arguments)

    def saved(self):
        return [["", "CHAR", bytes(self.plugin.serialize()).hex()]]


class _Third:
    """A plugin of the third interface."""

    version = 3

    def __init__(self, plugin):
        self.plugin = plugin
        core, self.build, self.runtime = (plugin.get_capability_interface(part) for part in (_Part.CORE, _Part.BUILD, _Part.RUNTIME))
        self.key = core.plugin_name, core.plugin_version, core.plugin_namespace
        self.outputs = self.build.num_outputs

    def types(self, inputs):
        return list(self.build.get_output_data_types(inputs))

    def shapes(self, inputs):
        return list(self.build.get_output_shapes(inputs, [], IExprBuilder()))

    def fits(self, *arguments):
        return self.build.supports_format_combination(*arguments)

    def configure(self, *descs):
        self.build.configure_plugin(*descs)

    def workspace(self, *descs):
        return self.build.get_workspace_size(*descs)

    def enqueue(self, *arguments):
        self.runtime.on_shape_change(*arguments[:2])
        return self.runtime.enqueue(*arguments)

    def saved(self):
        return [_field_text(field) for field in self.runtime.get_fields_to_serialize() or ()]


def _field_text(field):
    data = field.data
    return [field.name, field.type.name, (data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()).hex()]


class _Operator:
    """A plugin at work."""

    def __init__(self, plugin, types, sizes=None):
        self.wrapped = (_Third if isinstance(plugin, IPluginV3) else _Second)(plugin)
        self.types = list(types)
        self.results = self.wrapped.types(self.types)
        if len(self.results) != self.wrapped.outputs:
            raise Refused(f"{self.wrapped.key[0]} gives {len(self.results)} types for {self.wrapped.outputs} outputs")
        self.saved = self.wrapped.saved()
        self.sizes = sizes  # a text for each output; None: it wants numbers
        told = repr((self.wrapped.key, [str(each) for each in self.types], self.saved, *filter(None, [sizes])))
        self.name = f"{self.wrapped.key[0]}_{hashlib.sha256(told.encode()).hexdigest()[:16]}"
        self._configured = None

    def register(self):
        masks = [1 << native.number_of(each) for each in self.types]
        results = [native.number_of(each) for each in self.results]
        _hone.register_operator(DOMAIN, self.name, 1, 0, len(masks), len(masks), masks, results, self.sizes or [], self._run,
                                None if self.sizes else self._sizes, self._workspace, not native.on_host())
        _registered[self.name] = self

    def note(self):
        """What it takes to make it again."""
        return {"operator": self.name, "creator": list(self.wrapped.key), "version": self.wrapped.version, "fields": self.saved,
                "types": [each.name for each in self.types], "sizes": self.sizes}

    def _sizes(self, inputs, _outputs, _attributes):
        shapes = self.wrapped.shapes([DimsExprs(list(operand[2])) for operand in inputs])
        return [[size.get_constant_value() for size in shape] for shape in shapes]

    def _configured_for(self, inputs, outputs):
        """The types and sizes of both sides; the plugin has heard of them."""
        sides = [(self.types, [operand[2] for operand in inputs]), (self.results, [operand[2] for operand in outputs])]
        shapes = [shape for _, each in sides for shape in each]
        if shapes != self._configured:
            self.wrapped.configure(*[_descs(*side, True) for side in sides])
            self._configured = shapes
        return sides

    def _workspace(self, inputs, outputs, _attributes):
        sides = self._configured_for(inputs, outputs)
        return max(0, int(self.wrapped.workspace(*[_descs(*side, self.wrapped.version == 3) for side in sides])))

    def _run(self, inputs, outputs, _attributes, workspace, stream):
        descs = [_descs(*side) for side in self._configured_for(inputs, outputs)]
        answer = self.wrapped.enqueue(*descs, [operand[0] for operand in inputs], [operand[0] for operand in outputs], workspace, stream)
        if answer not in (None, 0, True):
            raise RuntimeError(f"the plugin {self.wrapped.key[0]} returned {answer}")


def _texts_of(plugin, types, ranks):
    """Sizes of the outputs for inputs of so many dimensions; None for a plugin that wants to know numbers."""
    wrapped = (_Third if isinstance(plugin, IPluginV3) else _Second)(plugin)
    wrapped.types(list(types))
    try:
        sizes = wrapped.shapes([DimsExprs([f"x{at}[{axis}]" for axis in range(rank)]) for at, rank in enumerate(ranks)])
        return [", ".join(size.text() for size in shape) for shape in sizes]
    except Exception:  # what it fails at with numbers too, it says then
        return None


def _checked(made):
    """Linear tensors are what it is given: whether it takes them."""
    count = len(made.types) + len(made.results)
    descs = _descs([*made.types, *made.results], [()] * count, dynamic=made.wrapped.version == 3)
    for at in range(count):
        if not made.wrapped.fits(at, descs, len(made.types)):
            raise Refused(f"the plugin {made.wrapped.key[0]} does not take linear tensors of the types {', '.join(map(str, made.types))}")


def operator_of(plugin, types, shapes=None):
    """(name of the operator, how many outputs) for inputs of these types and sizes, -1 for those that may change; Refused says what stands
    in the way."""
    try:
        made = _registered_of(plugin, types, shapes and _texts_of(plugin, types, list(map(len, shapes))))
    except Refused:
        raise
    except Exception as error:  # the program's own code
        raise Refused(f"the plugin {type(plugin).__name__} failed: {type(error).__name__}: {error}") from error
    if not made.sizes and not native.on_host() and any(-1 in shape for shape in shapes or ()):
        raise Refused(f"the plugin {made.wrapped.key[0]} wants to know sizes as numbers, which change; on a GPU it has to say them by its "
                      "IExprBuilder")
    return made.name, made.wrapped.outputs


def _registered_of(plugin, types, sizes):
    made = _Operator(plugin, types, sizes)
    _checked(made)
    if made.name not in _registered:
        made.register()
    return made


def cuts_of(operator, shapes):
    """{output: for each dimension the output that says its size, None for those that are known} where data decide sizes; `shapes` of the
    inputs, of which the ranks count. Refused says why they cannot be."""
    made = _registered[operator]
    try:
        sizes = made.wrapped.shapes([DimsExprs([max(1, size) for size in shape]) for shape in shapes])
    except Exception as error:  # the program's own code
        raise Refused(f"the plugin {made.wrapped.key[0]} failed: {type(error).__name__}: {error}") from error
    found = {}
    for at, shape in enumerate(sizes):
        said = [size.output if size.is_size_tensor() else None for size in shape]
        if any(each is not None for each in said):
            found[at] = said
        for each in said:
            if each is not None and not (0 <= each < len(sizes) and len(sizes[each]) == 0 and made.results[each].name in ("INT32", "INT64")):
                raise Refused(f"the plugin {made.wrapped.key[0]} says a size by output {each}, which is no INT32 or INT64 without dimensions")
    return found


def notes_of(data):
    """What an engine of this model has to know of its plugins."""
    return [made.note() for name, made in _registered.items() if name.encode() in data]


def _fields(saved):
    kinds = {"FLOAT16": np.float16, "FLOAT32": np.float32, "FLOAT64": np.float64, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32,
             "INT64": np.int64}
    made = []
    for name, kind, digits in saved:
        data = bytes.fromhex(digits)
        made.append(PluginField(name, np.frombuffer(data, kinds[kind]) if kind in kinds else data, getattr(_FieldType, kind)))
    return PluginFieldCollection(made)


def bring(note):
    """Makes the plugins that a plan calls, where they are not there; hone.Error says whose creator is missing."""
    for each in note:
        if each["operator"] in _registered:
            continue
        name, version, namespace = each["creator"]
        creator = get_plugin_registry().get_creator(name, version, namespace)
        if creator is None:
            raise hone.Error(f"the engine calls the plugin {name}, version {version}, of which there is no creator\n"
                             "  hint: register it first (get_plugin_registry().register_creator())")
        plugin = (_created(creator, name, _fields(each["fields"]), _Phase.RUNTIME) if each["version"] == 3
                  else creator.deserialize_plugin(name, bytes.fromhex(each["fields"][0][2])))
        try:
            _registered_of(plugin, [getattr(enums.DataType, kind) for kind in each["types"]], each.get("sizes"))
        except Exception as error:  # the program's own code
            raise hone.Error(f"the plugin {name} failed: {type(error).__name__}: {error}") from None


def forget():
    """Takes all operators of plugins away; engines that are there keep theirs."""
    for name in list(_registered):
        _hone.unregister_operator(DOMAIN, name)
        del _registered[name]


def plugin_of(creator, name, attributes):
    """The plugin for a node of a model: its attributes as the fields that the creator has."""
    fields = []
    for field in creator.field_names:
        if field.name not in attributes:
            continue
        value = attributes[field.name]
        if isinstance(value, (bytes, str)):
            fields.append(PluginField(field.name, value, _FieldType.CHAR))
        else:
            values = np.atleast_1d(np.asarray(value))
            real = values.dtype.kind == "f"
            fields.append(PluginField(field.name, values.astype(np.float32 if real else np.int32),
                                      _FieldType.FLOAT32 if real else _FieldType.INT32))
    collection = PluginFieldCollection(fields)
    try:
        return _created(creator, name, collection, _Phase.BUILD)
    except Exception as error:
        raise Refused(f"the creator of {creator.name} failed: {type(error).__name__}: {error}") from error


def _created(creator, name, fields, phase):
    """A plugin, as its creator's interface asks for it."""
    if isinstance(creator, IPluginCreatorV3Quick):
        return creator.create_plugin(name, creator.plugin_namespace, fields, phase)
    if isinstance(creator, IPluginCreatorV3One):
        return creator.create_plugin(name, fields, phase)
    return creator.create_plugin(name, fields)
