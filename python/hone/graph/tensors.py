# SPDX-License-Identifier: Apache-2.0
"""Tensors of a graph: variables, which a run computes, and constants, whose values are read when somebody asks for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..values import from_value
from .base import GraphError, Links, assign
from .types import bytes_of, dtype_of, name_of, number_of


class Tensor:
    """What variables and constants have in common. Tensors are equal when they have one name; a graph holds no two of one name."""

    DYNAMIC = -1

    def __init__(self):
        raise NotImplementedError("a tensor is a Variable or a Constant")

    @property
    def inputs(self) -> Links:
        """The nodes that make it: one, or none."""
        return self._inputs

    @inputs.setter
    def inputs(self, nodes: Sequence) -> None:
        assign(self._inputs, nodes)

    @property
    def outputs(self) -> Links:
        """The nodes that read it."""
        return self._outputs

    @outputs.setter
    def outputs(self, nodes: Sequence) -> None:
        assign(self._outputs, nodes)

    def is_empty(self) -> bool:
        """Whether it stands for an input or output that is left out."""
        return self.name == ""

    def i(self, tensor_idx: int = 0, producer_idx: int = 0) -> Tensor:
        """An input of a node that makes it."""
        return self.inputs[producer_idx].inputs[tensor_idx]

    def o(self, consumer_idx: int = 0, tensor_idx: int = 0) -> Tensor:
        """An output of a node that reads it."""
        return self.outputs[consumer_idx].outputs[tensor_idx]

    def to_constant(self, values: Any, data_location: int | None = None, export_dtype: Any = None) -> Constant:
        """Becomes a constant where it stands: whoever reads it sees that."""
        values = _checked(values)
        for name in ("dtype", "shape", "type", "_told"):
            self.__dict__.pop(name, None)
        self.__class__ = Constant
        self._values, self.data_location, self._export_dtype = values, data_location, export_dtype
        return self

    def to_variable(self, dtype: Any = None, shape: Sequence | None = None) -> Variable:
        """Becomes a variable where it stands; what is not given of type and shape stays."""
        was = self.export_dtype if isinstance(self, Constant) else self.dtype
        shape = self.shape if shape is None else shape
        for name in ("_values", "_export_dtype", "data_location", "_told"):
            self.__dict__.pop(name, None)
        self.__class__ = Variable
        self.dtype, self.shape, self.type = was if dtype is None else dtype, shape, "tensor_type"
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Tensor) and self.name == other.name)

    __hash__ = None  # names change

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self.name}): (shape={self.shape}, dtype={self.dtype})"

    __repr__ = __str__


class Variable(Tensor):
    """A tensor that only a run knows. Of `shape` an entry is a number, a name, -1 or None; without one the rank is unknown."""

    def __init__(self, name: str, dtype: Any = None, shape: Sequence | None = None, type: str = "tensor_type"):
        self.name, self.dtype, self.shape, self.type = name, dtype, shape, type
        self._inputs, self._outputs = Links(self, "_outputs"), Links(self, "_inputs")

    @staticmethod
    def empty() -> Variable:
        """Stands for an input or output that is left out."""
        return Variable("")

    def copy(self) -> Variable:
        """The same without its nodes."""
        made = Variable(self.name, self.dtype, self.shape, self.type)
        if "_told" in self.__dict__:
            made._told = self._told
        return made


class LazyValues:
    """Elements that are read when somebody asks for them: of an onnx.TensorProto, or of a weight where it lies in a model."""

    def __init__(self, tensor: Any):
        self.tensor = tensor
        self._place(*_place_of_proto(tensor))

    @classmethod
    def _at(cls, owner: Any, told: tuple) -> LazyValues:
        made = cls.__new__(cls)
        made._place(owner, told)
        return made

    def _place(self, owner: Any, told: tuple) -> None:
        self._owner, self._told = owner, told  # a graph of the library, and the tensor as it tells of it
        self.shape, self._number = told[2], told[1]
        self.dtype = dtype_of(told[1])
        self.nbytes = bytes_of(told[1], math.prod(told[2]))

    def load(self) -> np.ndarray:
        """The elements, as an array of their own."""
        if isinstance(self.dtype, int):
            raise GraphError(f"numpy has no type {name_of(self.dtype)}\n  hint: install ml_dtypes; what is not read is written as it is")
        return from_value(self._owner.elements(*self._told[3], False))

    def __str__(self) -> str:
        return f"{type(self).__name__} (shape={self.shape}, dtype={self.dtype})"

    __repr__ = __str__


class SparseValues(LazyValues):
    """The same of a weight that lists its elements which are not zero; load() gives all."""

    def load(self) -> np.ndarray:
        return from_value(self._owner.elements(*self._told[3], True))


def _place_of_proto(tensor: Any) -> tuple:
    """A graph of the library that holds the message, and how it tells of it."""
    from .. import _hone

    holder = _hone.Graph.make(1)
    message = tensor.SerializeToString()
    holder.write({"words": {}, "ir_version": 10, "opsets": [], "parameters": [], "inputs": [], "outputs": [], "values": [], "sparse": [],
                  "weights": [("", 0, None, message, None, None)], "nodes": [], "functions": []})
    return holder, holder.read()["weights"][0]


def _checked(values: Any) -> Any:
    if not isinstance(values, (np.ndarray, LazyValues)):
        raise GraphError(f"a constant's values are an array of numpy or LazyValues, not {type(values).__name__}: {values!r}"
                         "\n  hint: np.array(values, dtype)")
    return values


class Constant(Tensor):
    """A tensor whose values the model holds. `export_dtype`: what it is written as."""

    def __init__(self, name: str, values: Any, data_location: int | None = None, export_dtype: Any = None):
        self._values = values if isinstance(values, np.ndarray) else _checked(values)
        self.name, self.data_location, self._export_dtype = name, data_location, export_dtype
        self._inputs, self._outputs = Links(self, "_outputs"), Links(self, "_inputs")

    @property
    def values(self) -> np.ndarray:
        """An array that belongs to the constant: writing into it changes the model."""
        if isinstance(self._values, LazyValues):
            self._values = self._values.load()
        return self._values

    @values.setter
    def values(self, values: Any) -> None:
        self._values = _checked(values)

    @property
    def shape(self) -> Any:
        """Its sizes."""
        return self._values.shape

    @property
    def dtype(self) -> Any:
        """The type of its elements, as numpy's where it has one."""
        return self._values.dtype

    @property
    def export_dtype(self) -> Any:
        """The type that it is written as."""
        return self.dtype if self._export_dtype is None else self._export_dtype

    @export_dtype.setter
    def export_dtype(self, dtype: Any) -> None:
        number_of(dtype)
        self._export_dtype = dtype

    def copy(self) -> Constant:
        """The same without its nodes; the values are shared."""
        return Constant(self.name, self._values, self.data_location, self._export_dtype)

    def __repr__(self) -> str:
        return f"{self}\n{self._values}"
