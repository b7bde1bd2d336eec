# SPDX-License-Identifier: Apache-2.0
"""Operators of one's own, as functions of numpy's arrays.

    @hone.operator("com.acme", "Scale", attributes={"factor": 1.0})
    def scale(x, factor):
        return x * factor

From then on models are read and plans loaded with it. On a GPU it runs on the host, on copies.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import DTYPES, type_of
from .base import Error, _hone

FOLDABLE, RANDOM, REPLACES = 1, 4, 8


def _array(operand: tuple[int, int, tuple[int, ...]] | None) -> np.ndarray | None:
    """The memory of an operand, not copied: it holds while the function runs."""
    if operand is None:
        return None
    address, number, shape = operand
    dtype = DTYPES[number]
    if dtype is None:
        raise TypeError("numpy has no elements of this type; ml_dtypes has more, where it is installed")
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    return np.frombuffer((ctypes.c_byte * size).from_address(address), dtype).reshape(shape)


def _value(attribute: Any) -> Any:
    return _array(attribute).copy() if isinstance(attribute, tuple) else attribute


class Operator:
    """An operator that is registered until remove() is called; models and engines that are there keep it.

    `function` is given an array for each input (None for one that is left out) and the node's attributes by name, those of `attributes`
    where the node has none; it returns an array, or a tuple of them where there are several outputs.
    `inputs` says how many there are, or the least and the most; `types` which they may have, for each input a type or a set of them, the
    last for all further ones.
    `sizes` is a text for each output ("x0": as the first input; operators.h has the rest), which holds for every shape, or a function of the
    inputs' shapes and the attributes that returns a list of shapes; networks of dynamic shapes then ask it at every inference.
    `output_types` says for each output a type, or which input's it has.
    `foldable`: it may be called for constants when a plan is built; `random`: calls may give different results; `replaces`: it takes the
    place of Hone's own operator of that name.
    """

    def __init__(self, function: Callable[..., Any], domain: str, name: str, *, version: int = 1, inputs: int | tuple[int, int] = 1,
                 types: Sequence[Any] = ("float32",), sizes: str | Sequence[str] | Callable[..., Any] = "x0",
                 output_types: Sequence[Any] = (0,), attributes: Mapping[str, Any] | None = None, foldable: bool = False,
                 random: bool = False, replaces: bool = False):
        self.function, self.domain, self.name, self.version = function, domain, name, version
        self.attributes = dict(attributes or {})
        self._sizes = sizes if callable(sizes) else None
        least, most = (inputs, inputs) if isinstance(inputs, int) else inputs
        texts = [] if callable(sizes) else [sizes] if isinstance(sizes, str) else list(sizes)
        masks = [sum(1 << type_of(each) for each in (entry if isinstance(entry, set | frozenset) else {entry})) for entry in types]
        results = [-1 - each if isinstance(each, int) else type_of(each) for each in output_types]
        if texts and len(texts) != len(results):
            raise Error(f"{domain}::{name} has {len(texts)} sizes but {len(results)} output_types; there is one for each output")
        flags = FOLDABLE * foldable + RANDOM * random + REPLACES * replaces
        _hone.register_operator(domain, name, version, flags, least, most, masks, results, texts, self._run,
                                self._ask if callable(sizes) else None)

    def remove(self) -> None:
        """Models that are read from now on do without it."""
        _hone.unregister_operator(self.domain, self.name)

    def __call__(self, *arguments: Any, **attributes: Any) -> Any:
        return self.function(*arguments, **attributes)

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _given(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.attributes, **{name: _value(attribute) for name, attribute in attributes.items()}}

    def _run(self, inputs: list, outputs: list, attributes: dict) -> None:
        results = self.function(*map(_array, inputs), **self._given(attributes))
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(outputs):
            raise ValueError(f"it returns {len(results)} arrays for {len(outputs)} outputs")
        for number, (operand, result) in enumerate(zip(outputs, results, strict=True)):
            place, found = _array(operand), np.asarray(result)
            if found.shape != place.shape or found.dtype != place.dtype:
                raise ValueError(f"output {number} is {found.dtype} of {found.shape}, planned was {place.dtype} of {place.shape}")
            place[...] = found

    def _ask(self, inputs: list, _outputs: list, attributes: dict) -> list:
        shapes = [None if operand is None else operand[2] for operand in inputs]
        return [[int(size) for size in shape] for shape in self._sizes(shapes, self._given(attributes))]


def operator(domain: str, name: str, **description: Any) -> Callable[[Callable[..., Any]], Operator]:
    """Makes an Operator of the function behind it."""
    return lambda function: Operator(function, domain, name, **description)


def open_operators(path: str) -> None:
    """Opens a library of operators (operators.h, hone_library_operators) and registers them."""
    _hone.open_operators(str(path))
