# SPDX-License-Identifier: Apache-2.0
"""Values of the library from Python's and back: arrays (of text as well), lists for sequences, dictionaries for maps."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from .arrays import DTYPES, MAP, OPTIONAL, SEQUENCE, STRING, type_of
from .base import _hone


def _list_value(items, dtype):
    return to_value(np.array(list(items), object if dtype == STRING else DTYPES[dtype]).reshape(-1))


def to_value(content: Any, kind: int | None = None, element: int | None = None, key: int | None = None) -> Any:
    """A value of the library; None and others for optionals (`kind`). `element` and `key`: the types in a map."""
    if kind == OPTIONAL:
        return _hone.Value.optional(None if content is None else to_value(content, None, element, key))
    if isinstance(content, (list, tuple)):
        return _hone.Value.sequence([to_value(item, None, element, key) for item in content])
    if isinstance(content, dict):
        return _hone.Value.map(_list_value(content.keys(), key), _list_value(content.values(), element))
    array = np.asarray(content)
    if array.dtype.kind in "OUS":
        return _hone.Value.strings(list(array.shape), [text if isinstance(text, bytes) else str(text).encode() for text in array.flat])
    array = np.require(array, requirements="C")
    return _hone.Value.tensor(type_of(array.dtype), list(array.shape), array.ctypes.data)


def from_value(value: Any) -> Any:
    """A copy of a value of the library."""
    dtype, sizes = value.describe()
    if dtype == MAP:
        keys, values = (from_value(value.item(index)).tolist() for index in range(2))
        return dict(zip(keys, values))
    if dtype in (SEQUENCE, OPTIONAL):
        items = [from_value(value.item(index)) for index in range(sizes[0])]
        return items if dtype == SEQUENCE else items[0] if items else None
    count = math.prod(sizes)
    if dtype == STRING:
        return np.array([value.string(index).decode(errors="replace") for index in range(count)], object).reshape(sizes)
    array = np.empty(sizes, DTYPES[dtype])
    if count:
        ctypes.memmove(array.ctypes.data, value.address(), array.nbytes)
    return array
