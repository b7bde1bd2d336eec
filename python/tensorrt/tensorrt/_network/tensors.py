# SPDX-License-Identifier: Apache-2.0
"""ITensor: a value of a network, with a name that no other has. What type and sizes it has is worked out when somebody asks (tensor_types.py)."""

from .._base import enums
from .._base.values import Dims, sizes_of
from . import shape_tensors

DataType, TensorFormat, TensorLocation = (enums.ALL[name] for name in ("DataType", "TensorFormat", "TensorLocation"))
ANY_FORMAT = (1 << len(TensorFormat.__members__)) - 1

_NARROW = ("FP8", "E8M0")
_OUTSIDE = {"INT4": "INT8", "FP4": "FLOAT"}  # what inputs and outputs have instead of types of half a byte


class ITensor:
    """A value: an input of the network or an output of a layer."""

    # _record: the layer that makes it, None for inputs; _element: ONNX's number of the type it is computed in, _sizes: -1 for dynamic
    # ones; _asked: the type that the program wrote
    __slots__ = ("_network", "_record", "_index", "_name", "_element", "_sizes", "_asked", "_formats", "_location", "_range", "_dims",
                 "_default_name", "__weakref__")

    def __init__(self, network, record, index, name):
        self._network, self._record, self._index, self._name = network, record, index, name
        self._element, self._sizes, self._asked = None, None, None
        self._formats, self._location, self._range, self._dims = ANY_FORMAT, TensorLocation.DEVICE, None, {}
        self._default_name = True

    def __repr__(self):
        return f"<tensorrt.ITensor {self._name}>"

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        if not isinstance(name, str):
            raise TypeError(f"a tensor's name is a text, not {type(name).__name__}")
        self._default_name = False
        self._network._rename(self, name)

    @property
    def shape(self):
        self._network._typed(self)
        return Dims(self._sizes or ())

    @shape.setter
    def shape(self, shape):
        sizes = sizes_of(shape, "shape")
        if self._record is not None:
            return self._network._failed(f"the sizes of {self._name} follow from its layer; only those of inputs can be set")
        self._sizes = sizes
        self._network._changed_input(self)

    @property
    def dtype(self):
        if self._asked is not None:
            return self._asked
        self._network._typed(self)
        dtype = self._network._type_of(self._element)
        if dtype.name in _OUTSIDE and (self._record is None or self.is_network_output):
            return getattr(DataType, _OUTSIDE[dtype.name])
        if dtype.name in _NARROW and self.is_network_output and not self._network._strongly_typed:
            return DataType.FLOAT  # what nobody asked to be given narrow
        return dtype

    @dtype.setter
    def dtype(self, dtype):
        if not isinstance(dtype, DataType):
            raise TypeError(f"dtype: {dtype!r} is no tensorrt.DataType")
        if dtype.name in _OUTSIDE:
            return self._network._failed(f"{self._name}: inputs and outputs have no type of half a byte; ask for {_OUTSIDE[dtype.name]}")
        if self._network._strongly_typed and self._record is not None:
            return self._network._failed(f"{self._name}: the network is strongly typed, the types of its tensors follow from its inputs")
        self._network._retype(self, dtype)

    @property
    def allowed_formats(self):
        return self._formats

    @allowed_formats.setter
    def allowed_formats(self, formats):
        self._formats = int(formats)

    @property
    def location(self):
        return self._location

    @location.setter
    def location(self, location):
        if not isinstance(location, TensorLocation):
            raise TypeError(f"location: {location!r} is no tensorrt.TensorLocation")
        self._location = location

    @property
    def is_network_input(self):
        return self._record is None

    @property
    def is_network_output(self):
        return any(tensor is self for tensor in self._network._outputs)

    @property
    def is_shape_tensor(self):
        return self in shape_tensors.of(self._network)[0]

    @property
    def is_execution_tensor(self):
        return self not in shape_tensors.of(self._network)[1]

    @property
    def _marked_for_shapes(self):
        return self in self._network._shape_outputs

    @property
    def dynamic_range(self):
        return self._range

    @dynamic_range.setter
    def dynamic_range(self, ends):
        self.set_dynamic_range(*ends)

    def set_dynamic_range(self, min, max):
        """The interval that INT8 stands for, symmetric."""
        self._range = (-float(max), float(max)) if float(min) != -float(max) else (float(min), float(max))
        return True

    def reset_dynamic_range(self):
        self._range = None

    @property
    def broadcast_across_batch(self):
        return False

    @broadcast_across_batch.setter
    def broadcast_across_batch(self, value):
        pass

    def set_dimension_name(self, index, name):
        self._dims[int(index)] = str(name)
        self._network._changed_input(self) if self._record is None else None

    def get_dimension_name(self, index):
        return self._dims.get(int(index))
