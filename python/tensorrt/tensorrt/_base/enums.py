# SPDX-License-Identifier: Apache-2.0
"""The enums, made of the tables in surface.py.

A member is an object of its class and no number: it is true even at 0, and prints as Class.NAME in f-strings too, which Python's own
enums do not do. Members of the ordered ones also compare and combine with numbers. `__entries` is how a client recognises an enum.
"""

import operator

from . import surface


class _EnumType(type):
    """The class of enum classes: what is asked of the class itself."""

    @property
    def __members__(cls):
        return dict(cls._table)

    def __setattr__(cls, name, value):
        if name in cls.__dict__.get("_table", {}):
            raise AttributeError(f"{cls.__name__}.{name} is a member of an enum and cannot be changed")
        super().__setattr__(name, value)

    def __delattr__(cls, name):
        if name in cls.__dict__.get("_table", {}):
            raise AttributeError(f"{cls.__name__}.{name} is a member of an enum and cannot be changed")
        super().__delattr__(name)


class Enum(metaclass=_EnumType):
    """A member: a name and a number."""

    _table = {}

    def __new__(cls, value=0):
        if isinstance(value, cls):
            return value
        number = operator.index(value)
        for member in cls._table.values():
            if member._number == number:
                return member
        raise ValueError(f"{number} is no {cls.__name__}; there are {', '.join(cls._table)}")

    @property
    def name(self):
        return self._name

    @property
    def value(self):
        return self._number

    def __int__(self):
        return self._number

    __index__ = __int__

    def __hash__(self):
        return self._number

    def __eq__(self, other):
        return type(self) is type(other) and self._number == other._number

    def __str__(self):
        return f"{type(self).__name__}.{self._name}"

    def __repr__(self):
        return f"<{type(self).__name__}.{self._name}: {self._number}>"

    def __reduce__(self):
        return _member, (type(self).__name__, self._number)

    def __setattr__(self, name, value):
        raise AttributeError(f"{self} is a member of an enum and cannot be changed")

    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self


def _number(value):
    """The number behind an operand, None where there is none."""
    if isinstance(value, (Enum, int)):
        return int(value)
    return operator.index(value) if hasattr(value, "__index__") else None


def _operation(name, swapped=False):
    function = getattr(operator, name)

    def apply(self, other):
        number = _number(other)
        if number is None:
            return NotImplemented
        return function(number, self._number) if swapped else function(self._number, number)

    return apply


class OrderedEnum(Enum):
    """A member that also compares and combines with numbers."""

    __hash__ = Enum.__hash__
    __eq__, __ne__ = _operation("eq"), _operation("ne")
    __lt__, __le__, __gt__, __ge__ = _operation("lt"), _operation("le"), _operation("gt"), _operation("ge")
    __and__, __or__, __xor__ = _operation("and_"), _operation("or_"), _operation("xor")
    __rand__, __ror__, __rxor__ = _operation("and_", True), _operation("or_", True), _operation("xor", True)

    def __invert__(self):
        return ~self._number


def _make(name):
    """The class of one enum."""
    base = OrderedEnum if name in surface.ORDERED.split() else Enum
    cls = _EnumType(name, (base,), {"__module__": "tensorrt.tensorrt", "_table": {}})
    table = {}
    for word, number in surface.members(name):
        member = object.__new__(cls)
        object.__setattr__(member, "_name", word)
        object.__setattr__(member, "_number", number)
        table[word] = member
        setattr(cls, word, member)
    setattr(cls, "__entries", {word: (member, None) for word, member in table.items()})
    type.__setattr__(cls, "_table", table)
    return cls


ALL = {name: _make(name) for name in surface.enums()}


def _member(name, number):
    """What a pickled member comes back as."""
    return ALL[name](number)


def get(name):
    """An enum by name; where this release has none, one of 10.16's for the module's own use."""
    return ALL.get(name)


globals().update(ALL)

# What the parser answers prints as the bare name.
ErrorCode = ALL["ErrorCode"]
type.__setattr__(ErrorCode, "__str__", lambda self: self._name)

_BITS = {"FLOAT": 32, "HALF": 16, "INT8": 8, "INT32": 32, "BOOL": 8, "UINT8": 8, "FP8": 8, "BF16": 16, "INT64": 64, "INT4": 4, "FP4": 4,
         "E8M0": 8}


def itemsize(dtype):
    """Bytes of an element, 0.5 for types of four bits."""
    bits = _BITS[dtype.name]
    return bits // 8 if bits >= 8 else bits / 8


DataType = ALL["DataType"]
type.__setattr__(DataType, "itemsize", property(itemsize))
