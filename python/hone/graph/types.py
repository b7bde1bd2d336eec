# SPDX-License-Identifier: Apache-2.0
"""ONNX's element types and numpy's, and elements as files hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import DTYPES, NAMES
from .base import GraphError

STRING = 8
_WORDS = (None, "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "str", "bool", "float16", "float64", "uint32", "uint64",
          "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "uint4", "int4",
          "float4_e2m1fn", "float8_e8m0fnu", "uint2", "int2")  # by ONNX's numbers
_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}


def _numpy_types() -> list:
    """By ONNX's numbers; None where numpy (with ml_dtypes, where it is installed) has none."""
    types: list = []
    for word in _WORDS:
        if word is None:
            types.append(None)
        elif word == "str":
            types.append(np.dtype(object))
        elif word in NAMES:
            types.append(DTYPES[NAMES.index(word)])
        else:
            types.append(np.dtype(word))
    return types


_TYPES = _numpy_types()
_NUMBERS = {dtype: number for number, dtype in enumerate(_TYPES) if dtype is not None}


def dtype_of(number: int) -> Any:
    """numpy's type; ONNX's number where numpy has none; None for 0."""
    if not 0 <= number < len(_TYPES):
        return number
    return None if number == 0 else number if _TYPES[number] is None else _TYPES[number]


def number_of(dtype: Any) -> int:
    """ONNX's number of a type that is numpy's, a name, a number, or None: 0."""
    if dtype is None:
        return 0
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        return int(dtype)
    if isinstance(dtype, str) and dtype in _WORDS:
        return _WORDS.index(dtype)
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise GraphError(f"{dtype!r} is no type of a tensor\n  hint: give numpy's, as np.float32, or ONNX's number") from None
    if found.kind in "OSU":
        return STRING
    if found not in _NUMBERS:
        raise GraphError(f"ONNX has no elements of the type {found}\n  hint: convert the array")
    return _NUMBERS[found]


def name_of(number: int) -> str:
    """"bfloat16"; of a number that is not known "type 77"."""
    return _WORDS[number] or "undefined" if 0 <= number < len(_WORDS) else f"type {number}"


def bytes_of(number: int, count: int) -> int:
    """How much `count` elements take in a file; 0 for texts."""
    word = name_of(number)
    if word in _BITS:
        return (count * _BITS[word] + 7) // 8
    return 0 if number == STRING or dtype_of(number) is None else count * (2 if word == "bfloat16" else _size(number))


def _size(number: int) -> int:
    found = dtype_of(number)
    return 1 if isinstance(found, int) else found.itemsize


def packed(array: np.ndarray, number: int) -> np.ndarray:
    """The elements one behind the other as files hold them; memory of the array itself where it lies so already."""
    array = np.require(array, requirements="C")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    bits = _BITS.get(name_of(number))
    if bits is None:
        return array
    each, mask = 8 // bits, (1 << bits) - 1
    flat = array.reshape(-1).view(np.uint8) & mask
    padded = np.zeros((flat.size + each - 1) // each * each, np.uint8)
    padded[:flat.size] = flat
    rows = padded.reshape(-1, each)
    return np.bitwise_or.reduce([rows[:, at] << np.uint8(at * bits) for at in range(each)], axis=0).astype(np.uint8)
