# SPDX-License-Identifier: Apache-2.0
"""What the functions of a quickly deployable plugin are given: descriptions of tensors, sizes, memory.

Sizes are asked when those of the inputs are known, so an expression is a number; a size that an output says has the most that it may be.
"""

import builtins
import itertools
import operator

import numpy as np

from .._base import enums, native
from .._base.values import nptype
from .classes import SizeTensor

_DataType, _Format = enums.DataType, enums.TensorFormat
_WORDS = {"FP32": "FLOAT", "FP16": "HALF"}  # where a combination's word is not the type's name


def _number(value):
    return value.constant_value() if isinstance(value, SymInt32) else operator.index(value)


class SymInt32:
    """An integer of sizes."""

    def __init__(self, value=0):
        self._value = _number(value)

    @property
    def is_constant(self):
        return True

    def constant_value(self):
        return self._value

    def _of(self, function, other):
        return ShapeExpr(function(self._value, _number(other)))

    def __add__(self, other):
        return self._of(operator.add, other)

    def __sub__(self, other):
        return self._of(operator.sub, other)

    def __mul__(self, other):
        return self._of(operator.mul, other)

    def __floordiv__(self, other):
        return self._of(operator.floordiv, other)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return self._of(lambda a, b: int(a == b), other)

    def __lt__(self, other):
        return self._of(lambda a, b: int(a < b), other)

    def __hash__(self):
        return hash(self._value)

    def __bool__(self):
        return bool(self._value)

    def __index__(self):
        return self._value

    def __repr__(self):
        return f"{type(self).__name__}({self._value})"


class SymInt8(SymInt32):
    """One of eight bits."""


class SymInt16(SymInt32):
    """One of sixteen."""


class ShapeExpr(SymInt32):
    """A size."""

    is_fake = is_size_tensor = False


class SizeTensorShapeExpr(ShapeExpr):
    """A size that an output says."""

    is_size_tensor, is_constant = True, False

    def __init__(self, desc):
        super().__init__(desc.upper_bound)
        self.desc = desc


class SymExprs(list):
    """Several of them."""

    def __init__(self, length=0):
        super().__init__(ShapeExpr(0) for _ in range(length))

    @classmethod
    def from_tuple(cls, expressions):
        made = cls(0)
        made.extend(each if isinstance(each, SymInt32) else ShapeExpr(each) for each in expressions)
        return made

    def __setitem__(self, index, value):
        super().__setitem__(index, value if isinstance(value, SymInt32) else ShapeExpr(value))


class SymIntExprs(SymExprs):
    """The same."""


class ShapeExprs(SymExprs):
    """The sizes of a tensor."""

    def numel(self):
        return ShapeExpr(int(np.prod([_number(each) for each in self], dtype=np.int64)))


class Shape(list):
    """Sizes as numbers."""

    is_dynamic = False

    def __init__(self, sizes=()):
        super().__init__(int(size) for size in sizes)

    opt = min = max = property(tuple)

    def numel(self):
        return int(np.prod(self, dtype=np.int64))


class TensorDesc:
    """What a tensor is: `shape_expr`, `dtype`, and where it is known `shape`, `format`, `scale`."""

    is_size_tensor = False

    def __init__(self, shape_expr=None, dtype=None, format=_Format.LINEAR, scale=1.0):
        self.shape_expr = ShapeExprs.from_tuple(shape_expr or ())
        self.dtype, self.format, self.scale = dtype, format, scale
        self._aliased = None

    @property
    def ndim(self):
        return len(self.shape_expr)

    @property
    def shape(self):
        return Shape(map(_number, self.shape_expr))

    has_shape = has_shape_expr = True
    is_dynamic = False

    def numel(self):
        return self.shape.numel()

    def like(self):
        """One of the same sizes and type."""
        return TensorDesc(self.shape_expr, self.dtype, self.format, self.scale)

    def aliased(self):
        """The same, in this tensor's memory."""
        made = self.like()
        made._aliased = self
        return made

    def get_aliased(self):
        return self._aliased

    @property
    def is_aliased(self):
        return self._aliased is not None


class SizeTensorDesc(TensorDesc):
    """An output without dimensions that says a size."""

    is_size_tensor = True

    def __init__(self, opt, upper_bound):
        super().__init__((), _DataType.INT32)
        self.opt, self.upper_bound, self.index = opt, upper_bound, None

    def expr(self):
        return SizeTensorShapeExpr(self)


class Tensor:
    """Memory of a tensor. numpy.asarray(), on a GPU torch.as_tensor() and whatever else knows its protocol, use it where it lies."""

    def __init__(self, address, dtype, shape, decided=False, aliased=None):
        self.data_ptr, self.dtype, self.shape = int(address), dtype, Shape(shape)
        self.format, self.scale, self.is_data_dependent = _Format.LINEAR, 1.0, decided
        self._aliased = aliased

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def strides(self):
        return tuple(int(np.prod(self.shape[at + 1:], dtype=np.int64)) for at in range(len(self.shape)))

    def numel(self):
        return self.shape.numel()

    def _interface(self, of_the_host):
        if native.on_host() != of_the_host:
            raise AttributeError("the tensor lies in the other memory")
        return {"shape": tuple(self.shape), "typestr": np.dtype(nptype(self.dtype)).str, "data": (self.data_ptr or 64, False), "version": 3}

    @property
    def __array_interface__(self):
        return self._interface(True)

    @property
    def __cuda_array_interface__(self):
        return self._interface(False)

    @property
    def is_aliased(self):
        return self._aliased is not None

    def get_aliased(self):
        return self._aliased

    def aliased(self, shape=None):
        """The same memory, of other sizes."""
        return Tensor(self.data_ptr, self.dtype, self.shape if shape is None else shape, False, self)


class AutoTuneCombination:
    """Types and layouts that a plugin takes: of inputs and outputs in order, alternatives behind "|", "*" for layouts of any."""

    def __init__(self, io_types=None, layouts="LINEAR"):
        self._types, self._tactics = {}, []
        for at, words in enumerate(io_types.split(",") if io_types else ()):
            self._types[at] = {word.strip() for word in words.split("|")}
        self._layouts = {"*": layouts}

    def pos(self, pos, io_types, layouts="LINEAR"):
        """Those at these places."""
        for at in (pos if not isinstance(pos, int) else [pos]):
            self._types[at] = {word.strip() for word in io_types.split("|")}
            self._layouts[at] = layouts

    def tactics(self, tactics):
        """Numbers of ways to compute, of which one is handed to the function."""
        self._tactics = [int(each) for each in tactics]

    def takes(self, types):
        """Whether it has these types, all linear."""
        for at, dtype in enumerate(types):
            words = {_WORDS.get(word, word) for word in self._types.get(at, {"*"})}
            if "*" not in words and dtype.name not in words:
                return False
        return all("LINEAR" in layouts or "*" in layouts.split("|") for layouts in self._layouts.values())


def _both(function, first, second):
    return ShapeExpr(function(_number(first), _number(second)))


def cdiv(first, second):
    """A quotient, rounded up."""
    return _both(lambda a, b: -(-a // b), first, second)


def max(first, second):
    """The larger one."""
    return _both(builtins.max, first, second)


def min(first, second):
    """The smaller one."""
    return _both(builtins.min, first, second)


def size_tensor(opt, upper_bound):
    """An output that says a size, at most `upper_bound`."""
    return SizeTensorDesc(opt, upper_bound)


def from_shape_expr(shape_expr, dtype):
    """A tensor of these sizes."""
    return TensorDesc(shape_expr, dtype)


def dimensions(descs):
    """Sizes as plugins of the third interface say them, of outputs."""
    for at, desc in enumerate(descs):
        if desc.is_size_tensor:
            desc.index = at
    return [[SizeTensor(size.desc.index, _number(size)) if size.is_size_tensor else _number(size) for size in
             (each if isinstance(each, ShapeExpr) else ShapeExpr(each) for each in desc.shape_expr)] for desc in descs]


def described(types, shapes):
    """Descriptions of inputs."""
    return [TensorDesc(shape, dtype) for dtype, shape in itertools.zip_longest(types, shapes, fillvalue=())]

