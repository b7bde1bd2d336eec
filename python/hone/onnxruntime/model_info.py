# SPDX-License-Identifier: Apache-2.0
"""What an ONNX file says of itself: names, types and sizes of its inputs and outputs, its producer, its metadata.

ONNX Runtime shows sizes by their names in the file, which an engine does not keep. The few fields that matter are read from the wire
format; weights and nodes are passed over, so that a file of gigabytes costs what its header does.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ELEMENTS = {1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "float16",
            11: "double", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn",
            18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0",
            25: "uint2", 26: "int2"}
NO_VERSION = 2**63 - 1


class Malformed(Exception):
    """The bytes are no ONNX model."""


class NodeArg:
    """An input or an output of a model."""

    def __init__(self, name: str, type: str, shape: list[int | str | None], denotations: list[str | None] | None = None,  # noqa: A002
                 elements: int = 0):
        self.name, self.type, self.shape = name, type, shape
        self._denotations, self._elements = denotations or [None] * len(shape), elements

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __repr__ = __str__


@dataclass
class ModelMetadata:
    """What the file says of its origin."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


@dataclass
class ModelInfo:
    """All of it."""

    meta: ModelMetadata = field(default_factory=ModelMetadata)
    inputs: list[NodeArg] = field(default_factory=list)  # without those that are weights
    outputs: list[NodeArg] = field(default_factory=list)
    overridable: list[NodeArg] = field(default_factory=list)  # weights that are listed among the inputs
    shaped: set[str] = field(default_factory=set)  # inputs and outputs whose shape the file says
    external: set[str] = field(default_factory=set)  # files beside it that hold weights


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: Any) -> Iterator[tuple[int, Any]]:
    """(number, integer or bytes) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise Malformed
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise Malformed
        if at + size > len(data):
            raise Malformed
        yield number, data[at:at + size]
        at += size


def _text(value):
    try:
        return bytes(value).decode()
    except (UnicodeDecodeError, TypeError):
        raise Malformed from None


def _dimension(data):
    """(size or name or None, denotation or None)."""
    size, meaning = None, None
    for number, value in fields(data):
        if number == 1:
            size = value - (1 << 64) if value >> 63 else value
        elif number == 2:
            size = _text(value) or None
        elif number == 3:
            meaning = _text(value)
    return (None if isinstance(size, int) and size < 0 else size), meaning


def _tensor_type(data):
    """(element's number, dimensions, whether there is a shape)."""
    element, dimensions, shaped = 0, [], False
    for number, value in fields(data):
        if number == 1:
            element = value
        elif number == 2:
            shaped = True
            dimensions = [_dimension(each) for where, each in fields(value) if where == 1]
    return element, dimensions, shaped


def _type(data):
    """(text, dimensions, whether there is a shape, element's number)."""
    for number, value in fields(data):
        if number in (1, 8):
            element, dimensions, shaped = _tensor_type(value)
            return f"{'sparse_' if number == 8 else ''}tensor({ELEMENTS.get(element, 'undefined')})", dimensions, shaped, element
        if number == 5:
            parts = dict(fields(value))
            return f"map({ELEMENTS.get(parts.get(1), 'undefined')},{_type(parts.get(2, b''))[0]})", [], True, 0
        if number in (4, 9):
            inside = _type(dict(fields(value)).get(1, b""))[0]
            return f"{'seq' if number == 4 else 'optional'}({inside})", [], True, 0
    return "", [], False, 0


def _value_info(data):
    name, kind = "", ("", [], False, 0)
    for number, value in fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            kind = _type(value)
    text, dimensions, shaped, element = kind
    return NodeArg(name, text, [size for size, _ in dimensions], [meaning for _, meaning in dimensions], element), shaped


def _initializer(data, info):
    """The weight's name; where its bytes lie in another file, that one is noted."""
    name, entries, outside = "", [], False
    for number, value in fields(data):
        if number == 8:
            name = _text(value)
        elif number == 13:
            entries.append({where: _text(text) for where, text in fields(value)})
        elif number == 14:
            outside = value == 1
    if outside:
        info.external.update(entry.get(2, "") for entry in entries if entry.get(1) == "location")
    return name


def _graph(data, info):
    weights, inputs = set(), []
    for number, value in fields(data):
        if number == 2:
            info.meta.graph_name = _text(value)
        elif number == 10:
            info.meta.graph_description = _text(value)
        elif number == 5:
            weights.add(_initializer(value, info))
        elif number == 15:
            weights.add(_initializer(dict(fields(value)).get(1, b""), info))
        elif number in (11, 12):
            argument, shaped = _value_info(value)
            (inputs if number == 11 else info.outputs).append(argument)
            if shaped:
                info.shaped.add(argument.name)
    info.inputs = [each for each in inputs if each.name not in weights]
    info.overridable = [each for each in inputs if each.name in weights]


def read_model_info(data: Any) -> ModelInfo | None:
    """What the bytes of a model say; None where there is no graph in them. Raises Malformed."""
    info, found = ModelInfo(), False
    texts = {2: "producer_name", 4: "domain", 6: "description"}
    for number, value in fields(memoryview(data)):
        if number in texts:
            setattr(info.meta, texts[number], _text(value))
        elif number == 5:
            info.meta.version = value
        elif number == 7:
            found = True
            _graph(value, info)
        elif number == 14:
            entry = {where: _text(text) for where, text in fields(value)}
            info.meta.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")
    return info if found else None


def read_file_info(path: str) -> ModelInfo | None:
    """read_model_info() of a file, which is mapped and not read."""
    with open(path, "rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            return None
        return read_model_info(mapped)  # not closed by hand: where the bytes are malformed, the exception holds parts of it
