# SPDX-License-Identifier: Apache-2.0
"""INetworkDefinition: inputs, layers, outputs. Layers come from add_* (_network_add*.py) or from a parser; both are records in one list."""

from .._base import enums, surface
from .._base.reports import Told
from .._base.values import IHostMemory, sizes_of, weights_of
from . import tensor_types
from .add import _AddLayers
from .add_more import _AddMoreLayers
from .layers import ILayer, LayerType, Record, word_of
from .loops import _AddFlow
from .tensors import ITensor

DataType = enums.ALL["DataType"]
CreationFlag = enums.ALL["NetworkDefinitionCreationFlag"]


class INetworkDefinition(_AddLayers, _AddMoreLayers, _AddFlow, Told):
    """A network in the making. Building neither consumes nor freezes it."""

    _made = 0

    def __init__(self, builder=None, flags=0, logger=None):
        self._builder, self._bits = builder, int(flags)
        self._logger = logger if logger is not None else builder._logger
        self._strongly_typed = bool(self._bits >> int(CreationFlag.STRONGLY_TYPED) & 1) if hasattr(CreationFlag, "STRONGLY_TYPED") else False
        self.name = f"Unnamed Network {INetworkDefinition._made}"
        INetworkDefinition._made += 1
        self._clear()

    def _clear(self):
        """No layers, no tensors."""
        self._inputs, self._outputs, self._records = [], [], []
        self._tensors = {}  # {name: ITensor}
        self._shape_outputs, self._debug, self._unfused_debug = set(), {}, False
        self._source, self._folder, self._file_weights, self._parsed_model = None, None, {}, None
        self._weight_names, self._refittable = {}, set()
        self._dirty, self._shape_tensors, self._positions = False, None, None
        self._layer_names, self._reading = {}, False
        self._counted = 0  # attentions, which count as layers in the names of those that have none
        self._owners = []  # loops, conditionals and attentions, in order

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    # -- the list of layers --

    @property
    def num_layers(self):
        return len(self._records)

    @property
    def num_inputs(self):
        return len(self._inputs)

    @property
    def num_outputs(self):
        return len(self._outputs)

    def __len__(self):
        return len(self._records)

    def __bool__(self):
        return True

    def __getitem__(self, index):
        if not -len(self._records) <= index < len(self._records):
            raise IndexError(f"there are {len(self._records)} layers, no layer {index}")
        return self._records[index].view(ILayer)

    def __iter__(self):
        return (record.view(ILayer) for record in list(self._records))

    def get_layer(self, index):
        return self._records[index].view(ILayer) if 0 <= index < len(self._records) else None

    def get_input(self, index):
        return self._inputs[index] if 0 <= index < len(self._inputs) else None

    def get_output(self, index):
        return self._outputs[index] if 0 <= index < len(self._outputs) else None

    # -- the network itself --

    @property
    def builder(self):
        return self._builder

    @property
    def flags(self):
        return self._bits

    def get_flag(self, flag):
        return bool(self._bits >> int(flag) & 1)

    @property
    def has_implicit_batch_dimension(self):
        return False

    @property
    def has_explicit_precision(self):
        return False

    def serialize(self):
        """The network as an ONNX file; None where it has no meaning as it stands."""
        from .._lowering.to_onnx import CannotLower

        try:
            return IHostMemory(self._model().data)
        except CannotLower as error:
            return self._failed(str(error))

    def _model(self, wanted=None):
        """The ONNX model and what a build needs to know: to_onnx.LoweredModel."""
        from .._lowering.to_onnx import network_model

        return network_model(self, wanted)

    # -- inputs and outputs --

    def add_input(self, name, dtype, shape):
        if not isinstance(name, str):
            raise TypeError(f"add_input: the name is a text, not {type(name).__name__}")
        if not isinstance(dtype, DataType):
            raise TypeError(f"add_input: {dtype!r} is no tensorrt.DataType")
        sizes = sizes_of(shape, "shape")
        if dtype.name in ("INT4", "FP4"):
            return self._failed(f"add_input: {name} cannot be {dtype.name}; inputs have no type of half a byte")
        if name in self._tensors:
            return self._failed(f"add_input: there is a tensor {name} already")
        if any(size < -1 for size in sizes):
            return self._failed(f"add_input: {name} has the sizes {tuple(sizes)}; -1 is the only negative one, for any size")
        from .._base.elements import element_of_type

        tensor = ITensor(self, None, len(self._inputs), name)
        tensor._element, tensor._sizes, tensor._asked = element_of_type(dtype), sizes, dtype
        self._inputs.append(tensor)
        self._tensors[name] = tensor
        return tensor

    def mark_output(self, tensor):
        self._own(tensor, "mark_output")
        foreign = self._foreign(tensor)
        if foreign:
            self._failed(foreign)
        elif not tensor.is_network_output:
            self._outputs.append(tensor)
            self._shape_tensors = None

    def unmark_output(self, tensor):
        self._own(tensor, "unmark_output")
        self._outputs = [each for each in self._outputs if each is not tensor]
        self._shape_tensors = None

    def mark_output_for_shapes(self, tensor):
        self._own(tensor, "mark_output_for_shapes")
        foreign = self._foreign(tensor)
        if foreign:
            return bool(self._failed(foreign))
        self._shape_outputs.add(tensor)
        self._shape_tensors = None
        if not tensor.is_network_output:
            self._outputs.append(tensor)
        return True

    def unmark_output_for_shapes(self, tensor):
        self._own(tensor, "unmark_output_for_shapes")
        if tensor not in self._shape_outputs:
            return False
        self._shape_outputs.discard(tensor)
        self.unmark_output(tensor)
        return True

    def remove_tensor(self, tensor):
        """A tensor that no layer reads ceases to be an input."""
        self._own(tensor, "remove_tensor")
        if any(tensor in record.inputs for record in self._records):
            return self._failed(f"remove_tensor: layers read {tensor._name}")
        self.unmark_output(tensor)
        self._inputs = [each for each in self._inputs if each is not tensor]
        if tensor._record is None:
            self._tensors.pop(tensor._name, None)

    # -- tensors that listeners see --

    def mark_debug(self, tensor):
        self._own(tensor, "mark_debug")
        self._debug[tensor] = True
        return True

    def unmark_debug(self, tensor):
        self._own(tensor, "unmark_debug")
        self._debug.pop(tensor, None)
        return True

    def is_debug_tensor(self, tensor):
        self._own(tensor, "is_debug_tensor")
        return tensor in self._debug

    def _debug_names(self):
        return [tensor._name for tensor in self._debug]

    def mark_unfused_tensors_as_debug_tensors(self):
        self._unfused_debug = True
        return True

    def unmark_unfused_tensors_as_debug_tensors(self):
        self._unfused_debug = False
        return True

    # -- weights --

    def set_weights_name(self, weights, name):
        held = weights_of(weights)
        self._weight_names[held._address, len(held)] = str(name)
        return True

    def mark_weights_refittable(self, name):
        self._refittable.add(str(name))
        return True

    def unmark_weights_refittable(self, name):
        self._refittable.discard(str(name))
        return True

    def are_weights_marked_refittable(self, name):
        return str(name) in self._refittable

    def _weights_name(self, record, role):
        """How a layer's weights are called in the model."""
        held = record.weights[role]
        named = self._weight_names.get((held._address, len(held))) if len(held) else None
        if record.operands and role in ("KERNEL", "BIAS"):  # of the file it was read from
            at = 1 if role == "KERNEL" else 2
            named = named or (record.operands[at] if at < len(record.operands) and isinstance(record.operands[at], str) else None)
        return named or (f"{record.name} {role}" if role != "CONSTANT" else record.params.get("weight") or f"{record.name} CONSTANT")

    # -- what layers and tensors ask --

    def _own(self, tensor, what):
        if not isinstance(tensor, ITensor):
            raise TypeError(f"{what}: {type(tensor).__name__} is no tensorrt.ITensor")

    def _foreign(self, tensor):
        """Why layers cannot read the tensor; None where they can."""
        if tensor._network is not self:
            return f"{tensor._name} belongs to another network"
        return None if self._tensors.get(tensor._name) is tensor else f"{tensor._name} was removed from the network"

    def _names(self):
        """{ITensor: name}."""
        return {tensor: name for name, tensor in self._tensors.items()}

    def _type_everything(self):
        if self._dirty:
            self._dirty = False
            tensor_types.type_all(self)

    def _typed(self, tensor):
        if tensor._record is not None and not tensor._record.typed:
            self._type_everything()

    def _type_of(self, element):
        return tensor_types.visible(element)

    def _position(self, record):
        if self._positions is None:
            self._positions = {each: at for at, each in enumerate(self._records)}
        return self._positions[record]

    def _changed(self, record):
        """What a layer says has changed: it and all behind it have to be typed anew."""
        self._shape_tensors = None
        if not record.typed:
            return
        waiting, readers = [record], None
        while waiting:
            each = waiting.pop()
            if not each.typed:
                continue
            each.typed = False
            if readers is None:
                readers = {}
                for other in self._records:
                    for tensor in other.inputs:
                        readers.setdefault(tensor, []).append(other)
            for tensor in each.outputs:
                waiting += readers.get(tensor, ())
        self._dirty = True

    def _changed_input(self, tensor):
        self._shape_tensors = None
        for record in self._records:
            if tensor in record.inputs:
                self._changed(record)

    def _rename(self, tensor, name):
        other = self._tensors.get(name)
        if other is tensor:
            return
        if other is not None or name in self._file_weights and not self._reading:
            return self._failed(f"a tensor cannot be called {name}: another one is")
        self._tensors = {(name if each is tensor else key): each for key, each in self._tensors.items()}
        tensor._name = name

    def _rename_layer(self, record, name):
        self._layer_names.pop(record.name, None)
        if name in self._layer_names:
            self._warned(f"there are two layers called {name}")
        record.name, record.default_name = name, False
        self._layer_names[name] = record

    def _retype(self, tensor, dtype):
        """The type that an input or an output has outside."""
        tensor._asked = dtype
        if tensor._record is None and self._source is None:
            from .._base.elements import element_of_type

            tensor._element = element_of_type(dtype)
            self._changed_input(tensor)

    def _set_input(self, record, index, tensor):
        self._own(tensor, "set_input")
        if index < 0:
            raise IndexError(f"set_input: there is no input {index}")
        foreign = self._foreign(tensor)
        if foreign:
            return self._failed(foreign)
        old = record.inputs[index] if index < len(record.inputs) else None
        record.inputs += [None] * (index + 1 - len(record.inputs))
        record.inputs[index] = tensor
        if record.node is not None and old is not None:
            record.operands = [tensor if each is old else each for each in record.operands]
            captured = record.params.get("captured", {})
            captured.update({name: tensor for name, each in captured.items() if each is old})
        elif record.node is not None:
            record.edited = True
        record.known().pop(_REPLACED.get((record.kind, index)), None)
        self._changed(record)
        self._dirty = self._dirty or not record.typed

    def _set_output_type(self, record, index, dtype):
        if self._strongly_typed and record.kind not in ("FILL", "TOPK", "NON_ZERO"):
            return self._failed(f"{record.name}: the network is strongly typed, types of outputs cannot be set")
        record.types[index] = dtype
        self._changed(record)
        if index < len(record.outputs) and record.outputs[index].is_network_output and record.node is not None:
            record.outputs[index]._asked = dtype

    def _add(self, layer_kind, inputs, outputs=1, held=None, cls=None, /, *, weights=None, word=None, **params):
        """A layer, None where it is refused. `word`: what stands in its name, where its kind does not say it."""
        for tensor in inputs:
            if tensor is None:
                return self._failed(f"add_{layer_kind.lower()}: an input is None")
            if not isinstance(tensor, ITensor):
                raise TypeError(f"{type(tensor).__name__} is no tensorrt.ITensor")
            foreign = self._foreign(tensor)
            if foreign:
                return self._failed(foreign)
        if not hasattr(LayerType, layer_kind):
            return self._failed(f"tensorrt {surface.VERSION} has no layers of the kind {layer_kind}")
        record = Record(self, layer_kind, self._fresh_layer_name(f"(Unnamed Layer* {len(self._records) + self._counted}) [{word or word_of(layer_kind)}]"), inputs, params)
        record.weights = weights or held or {}
        for at in range(outputs):
            name = f"{record.name}_output" + (f" ({at})" if at and layer_kind in _NUMBERED else f"_{at}" if at else "")
            record.outputs.append(self._new_tensor(record, at, name))
        self._append(record)
        from .loops import class_of

        return record.view(cls or class_of(layer_kind))

    def _append(self, record):
        self._records.append(record)
        self._layer_names[record.name] = record
        self._dirty, self._positions, self._shape_tensors = True, None, None

    def _fresh_layer_name(self, name):
        fresh, count = name, 0
        while fresh in self._layer_names:
            count += 1
            fresh = f"{name}_{count}"
        return fresh

    def _new_tensor(self, record, at, name):
        fresh, count = name, 0
        while fresh in self._tensors or fresh in self._file_weights and not self._reading:
            count += 1
            fresh = f"{name}_{count}"
        tensor = ITensor(self, record, at, fresh)
        self._tensors[fresh] = tensor
        return tensor


# Kinds whose further outputs have their number in parentheses.
_NUMBERED = ("TOPK", "NMS")

# The parameter whose place an input takes.
_REPLACED = {("SHUFFLE", 1): "reshape_dims", ("SLICE", 1): "start", ("SLICE", 2): "shape", ("SLICE", 3): "stride", ("SLICE", 5): "axes",
             ("RESIZE", 1): "shape", ("FILL", 0): "shape", ("FILL", 1): "alpha", ("FILL", 2): "beta", ("TOPK", 1): "k",
             ("CONVOLUTION", 1): None}
