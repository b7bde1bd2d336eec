# SPDX-License-Identifier: Apache-2.0
"""ILayer, and the record behind it.

A network is a list of records. A layer object is a view of one: an ILayer from the network, the concrete class from add_*. Programs
assign `layer.__class__` and list dir(layer) minus ILayer's names, so all that is private stands on ILayer and the classes hold none.
"""

import operator
import weakref

from .._base import enums
from .._base.values import Dims, DimsHW, Permutation, sizes_of, weights_of

LayerType, DataType = enums.ALL["LayerType"], enums.ALL["DataType"]

# How layers without a name are called, where it is not the kind's name with capitals.
_WORDS = {"LRN": "LRN", "ELEMENTWISE": "ElementWise", "TOPK": "TopK", "MATRIX_MULTIPLY": "Matrix Multiply", "RAGGED_SOFTMAX": "Ragged SoftMax",
          "PARAMETRIC_RELU": "Parametric ReLU", "NMS": "NMS", "MOE": "MoE", "KV_CACHE_UPDATE": "KVCacheUpdate", "RNN_V2": "RNNv2",
          "CONDITIONAL_INPUT": "Input", "CONDITIONAL_OUTPUT": "Output"}


def word_of(kind):
    """The kind as it stands in the name of a layer that has none."""
    return _WORDS.get(kind) or "".join(part.capitalize() for part in kind.split("_"))


class Record:
    """A layer: its kind, tensors, parameters, and the ONNX node it was read from, if any."""

    __slots__ = ("network", "kind", "name", "inputs", "outputs", "params", "weights", "node", "operands", "read", "metadata", "precision",
                 "types", "typed", "owner", "views", "edited", "default_name", "failure", "__weakref__")

    def __init__(self, network, kind, name, inputs, params=None):
        self.network, self.kind, self.name, self.inputs, self.outputs = network, kind, name, list(inputs), []
        self.params = params or {}
        self.weights = {}  # {role: Weights}
        self.node = None  # of the file it was read from
        self.operands = None  # for its inputs: ITensor of a tensor, text of a weight, None for what is left out
        self.read = None  # makes the parameters of the node, when somebody asks
        self.metadata, self.precision, self.types = "", None, {}
        self.typed, self.failure = False, None
        self.owner = None  # the loop, conditional or attention that it bounds
        self.views = weakref.WeakValueDictionary()
        self.edited = False
        self.default_name = True

    def view(self, cls):
        """The layer object of this class, the same one as long as somebody holds it."""
        layer = self.views.get(cls)
        if layer is None or type(layer) is not cls:
            layer = object.__new__(cls)
            layer._record = self
            self.views[cls] = layer
        return layer

    def known(self):
        """The parameters, those of a node read now."""
        if self.read is not None:
            read, self.read = self.read, None
            params, weights = read()
            self.params = {**params, **self.params}
            self.weights = {**weights, **self.weights}
        return self.params

    def change(self, name, value):
        """Another value for a parameter."""
        if self.known().get(name) == value and not isinstance(value, _WEIGHTS):
            return
        self.params[name] = value
        self.edited = True
        self.network._changed(self)


_WEIGHTS = type(weights_of(None))


class ILayer:
    """A layer of a network."""

    __slots__ = ("_record", "__weakref__")

    def __init__(self):
        raise TypeError("layers are made by the network's add_ methods")

    def __eq__(self, other):
        return isinstance(other, ILayer) and self._record is other._record

    def __hash__(self):
        return hash(id(self._record))

    @property
    def name(self):
        return self._record.name

    @name.setter
    def name(self, name):
        if not isinstance(name, str):
            raise TypeError(f"a layer's name is a text, not {type(name).__name__}")
        self._record.network._rename_layer(self._record, name)

    @property
    def metadata(self):
        return self._record.metadata

    @metadata.setter
    def metadata(self, text):
        self._record.metadata = str(text)

    @property
    def type(self):
        return getattr(LayerType, self._record.kind)

    @property
    def num_inputs(self):
        return len(self._record.inputs)

    @property
    def num_outputs(self):
        return len(self._record.outputs)

    @property
    def num_ranks(self):
        return 1

    @num_ranks.setter
    def num_ranks(self, count):
        if int(count) != 1:
            self._record.network._failed(f"{self.name}: engines of Hone run on one device, num_ranks stays 1")

    def get_input(self, index):
        inputs = self._record.inputs
        return inputs[index] if 0 <= index < len(inputs) else None

    def get_output(self, index):
        outputs = self._record.outputs
        return outputs[index] if 0 <= index < len(outputs) else None

    def set_input(self, index, tensor):
        self._record.network._set_input(self._record, index, tensor)

    def _read(self, first, *tensors):
        """Further tensors as inputs from a place on."""
        for at, tensor in enumerate(tensors, first):
            self._record.network._set_input(self._record, at, tensor)

    def _hold(self, role, value):
        """Weights of a role."""
        self._record.known()
        self._record.weights[role] = weights_of(value)
        self._record.edited = True
        self._record.network._changed(self._record)

    def _held(self, role):
        self._record.known()
        held = self._record.weights.get(role)
        return weights_of(None) if held is None else held.numpy()

    @property
    def precision(self):
        return self._record.precision or DataType.FLOAT

    @precision.setter
    def precision(self, dtype):
        _of_type(DataType, dtype, "precision")
        if self._record.network._strongly_typed:
            return self._record.network._failed(f"{self.name}: the network is strongly typed, the precision of a layer cannot be set")
        self._record.precision = dtype

    @property
    def precision_is_set(self):
        return self._record.precision is not None

    def reset_precision(self):
        self._record.precision = None

    def set_output_type(self, index, dtype):
        _of_type(DataType, dtype, "set_output_type")
        self._record.network._set_output_type(self._record, index, dtype)

    def get_output_type(self, index):
        output = self.get_output(index)
        if index in self._record.types:
            return self._record.types[index]
        return DataType.FLOAT if output is None else output.dtype

    def output_type_is_set(self, index):
        return index in self._record.types

    def reset_output_type(self, index):
        if self._record.types.pop(index, None) is not None:
            self._record.network._changed(self._record)


def _of_type(cls, value, what):
    if not isinstance(value, cls):
        raise TypeError(f"{what}: {value!r} is no tensorrt.{cls.__name__}")
    return value


# ---- parameters, by what they hold ----

def parameter(name, convert, show=lambda value: value, default=None):
    """A property over the record's parameter of that name."""

    def get(self):
        return show(self._record.known().get(name, default))

    def set_(self, value):
        self._record.change(name, convert(value))

    return property(get, set_)


def dims(name, cls=Dims):
    """Sizes."""
    return parameter(name, lambda value: tuple(sizes_of(value, name)), lambda value: cls(value if value is not None else ()))


def hw(name):
    """Two sizes, as 8.x says them."""
    return dims(name, DimsHW)


def enum(name, enum_name, default=None):
    """A member of an enum."""
    cls = enums.get(enum_name)
    member = getattr(cls, default, None) if cls is not None and default else None
    return parameter(name, lambda value: _of_type(cls, value, name), default=member)


def number(name, default=0):
    """An integer."""
    return parameter(name, operator.index, default=default)


def real(name, default=0.0):
    return parameter(name, float, default=default)


def flag(name, default=False):
    return parameter(name, bool, default=default)


def permutation(name):
    return parameter(name, lambda value: tuple(Permutation(value)), lambda value: Permutation(value if value is not None else ()))


def words(name, default=""):
    return parameter(name, str, default=default)


def weights(name, role):
    """Weights of a role."""

    return property(lambda self: self._held(role), lambda self, value: self._hold(role, value))


def maybe_numbers(name):
    """A list of reals, or none."""
    return parameter(name, lambda value: None if value is None else [float(each) for each in value],
                     lambda value: [] if value is None else list(value))
