# SPDX-License-Identifier: Apache-2.0
"""ONNX files as messages of protobuf's wire format: read as far as a network's structure goes, and written.

Weights stay the bytes that they are; attributes are decoded when somebody asks. So a model of gigabytes costs what its nodes cost, and
the module needs neither the package onnx nor its limit of 2 GiB.
"""

import os
import struct

import numpy as np

# onnx.TensorProto.DataType
FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64 = range(1, 14)
BFLOAT16, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, UINT4, INT4, FLOAT4E2M1, FLOAT8E8M0 = range(16, 25)

_NUMPY = {FLOAT: "float32", UINT8: "uint8", INT8: "int8", UINT16: "uint16", INT16: "int16", INT32: "int32", INT64: "int64", BOOL: "bool",
          FLOAT16: "float16", DOUBLE: "float64", UINT32: "uint32", UINT64: "uint64"}
_NUMBERS = {np.dtype(name): number for number, name in _NUMPY.items()}
_FOREIGN = {"bfloat16": BFLOAT16, "float8_e4m3fn": FLOAT8E4M3FN, "int4": INT4, "float4_e2m1fn": FLOAT4E2M1, "float8_e8m0fnu": FLOAT8E8M0}


class Malformed(ValueError):
    """The bytes are no ONNX model."""


# ---- the wire format ----

def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("the file ends within a number")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise Malformed("a number has more than 64 bits")


def message(value):
    """The bytes of a field. Of a number, which damaged files have there, bytes() would make as many zeros."""
    if isinstance(value, int):
        raise Malformed("a field has another kind than ONNX says")
    return value


def fields(data):
    """(number, value) of each field: an integer, or the bytes as a view."""
    at, end = 0, len(message(data))
    try:
        while at < end:
            tag, at = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == 2:
                size, at = _varint(data, at)
                if size > end - at:
                    raise Malformed("a field is longer than the file")
                yield number, data[at:at + size]
                at += size
            elif wire == 0:
                value, at = _varint(data, at)
                yield number, value
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
                if size > end - at:
                    raise Malformed("a field is longer than the file")
                yield number, data[at:at + size]
                at += size
            else:
                raise Malformed(f"a field has the wire type {wire}")
    except IndexError:
        raise Malformed("the file ends within a field") from None


def _bytes_of_varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number, value):
    return _bytes_of_varint(number << 3) + _bytes_of_varint(int(value))


def chunk(number, data):
    """A field of bytes, a text or a message."""
    data = data.encode() if isinstance(data, str) else data
    return b"".join((_bytes_of_varint(number << 3 | 2), _bytes_of_varint(len(data)), data))


def real(number, value):
    return _bytes_of_varint(number << 3 | 5) + struct.pack("<f", value)


def text(data):
    return bytes(message(data)).decode("utf-8", "replace")


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def _numbers(value):
    """The integers of a repeated field, packed or one by one."""
    if isinstance(value, int):
        return [signed(value)]
    at, found = 0, []
    while at < len(value):
        number, at = _varint(value, at)
        found.append(signed(number))
    return found


# ---- tensors ----

def element_of(dtype):
    """ONNX's number of a numpy type; None where it has none."""
    dtype = np.dtype(dtype)
    return _NUMBERS.get(dtype, _FOREIGN.get(dtype.name))


def numpy_of(element):
    """numpy's type, ml_dtypes' where it is installed; None without."""
    if element in _NUMPY:
        return np.dtype(_NUMPY[element])
    try:
        import ml_dtypes
    except ImportError:
        return None
    name = next((name for name, number in _FOREIGN.items() if number == element), None)
    return None if name is None else np.dtype(getattr(ml_dtypes, name))


def tensor(name, array, element=None, shape=None):
    """A TensorProto of an array."""
    array = np.asarray(array)
    element = element_of(array.dtype) if element is None else element
    shape = array.shape if shape is None else shape
    if element in (INT4, UINT4, FLOAT4E2M1):
        flat = array.reshape(-1).view(np.uint8) & 15
        flat = np.append(flat, np.zeros(len(flat) % 2, np.uint8))
        array = flat[0::2] | flat[1::2] << 4
    head = b"".join(integer(1, size) for size in shape) + integer(2, element) + chunk(8, name)
    return head + chunk(9, np.ascontiguousarray(array).tobytes())


class Tensor:
    """A TensorProto as it stands in the file."""

    __slots__ = ("raw", "name", "element", "shape")

    def __init__(self, raw, name=None):
        self.raw, self.name, self.element, self.shape = raw, "", 0, ()
        for number, value in fields(raw):
            if number == 1:
                self.shape += tuple(_numbers(value))
            elif number == 2:
                self.element = value
            elif number == 8:
                self.name = text(value)
        if name is not None:
            self.name = name

    def bytes(self, name=None):
        """The message, under another name if wanted; the last name that stands there counts."""
        return bytes(self.raw) + chunk(8, self.name if name is None else name)

    def array(self, folder=None):
        """A copy of the numbers; None for texts and for types that numpy lacks."""
        kind = numpy_of(self.element)
        if kind is None:
            return None
        typed, raw, external = [], None, {}
        for number, value in fields(self.raw):
            if number == 9:
                raw = value
            elif number in (4, 10):
                typed += np.frombuffer(value, "<f4" if number == 4 else "<f8").tolist()
            elif number in (5, 7, 11):
                typed += _numbers(value)
            elif number == 13:
                entry = {at: text(part) for at, part in fields(value)}
                external[entry.get(1, "")] = entry.get(2, "")
        if external:
            raw = self._external(external, folder)
        if raw is not None:
            return self._of_bytes(np.frombuffer(raw, np.uint8), kind)
        if self.element in (FLOAT16, BFLOAT16):
            return np.array(typed, np.uint16).view(kind).reshape(self.shape)
        if self.element in (INT4, UINT4, FLOAT4E2M1):
            return self._of_bytes(np.array(typed, np.uint8), kind)
        if self.element in (FLOAT8E4M3FN, FLOAT8E8M0):
            return np.array(typed, np.uint8).view(kind).reshape(self.shape)
        return np.array(typed, kind).reshape(self.shape)

    def _external(self, entries, folder):
        with open(os.path.join(folder or ".", entries.get("location", "")), "rb") as file:
            file.seek(int(entries.get("offset", 0)))
            return file.read(int(entries["length"]) if "length" in entries else -1)

    def _of_bytes(self, raw, kind):
        if self.element in (INT4, UINT4, FLOAT4E2M1):
            both = np.stack([raw & 15, raw >> 4], 1).reshape(-1)[:int(np.prod(self.shape))]
            both = (both.astype(np.int8) - 16 * (both > 7)).astype(np.int8) if self.element == INT4 else both
            return both.view(kind).reshape(self.shape)
        return raw.view(kind).reshape(self.shape).copy()


# ---- attributes ----

def attribute(name, value):
    """An AttributeProto of a number, a text, a list of them, an array (a tensor), or a Graph."""
    if isinstance(value, Graph):
        body = chunk(6, value.bytes()) + integer(20, 5)
    elif isinstance(value, np.ndarray):
        body = chunk(5, tensor("", value)) + integer(20, 4)
    elif isinstance(value, str):
        body = chunk(4, value) + integer(20, 3)
    elif isinstance(value, (float, np.floating)):
        body = real(2, value) + integer(20, 1)
    elif isinstance(value, (int, np.integer)):
        body = integer(3, value) + integer(20, 2)
    elif value and isinstance(value[0], str):
        body = b"".join(chunk(9, each) for each in value) + integer(20, 8)
    elif any(isinstance(each, (float, np.floating)) for each in value):
        body = b"".join(real(7, each) for each in value) + integer(20, 6)
    else:
        body = b"".join(integer(8, each) for each in value) + integer(20, 7)
    return chunk(1, name) + body


def attribute_value(raw):
    """What attribute() was given; a Tensor for tensors, a view of the bytes for graphs."""
    found, kind = {}, None
    for number, value in fields(raw):
        if number in (7, 8, 9):
            found.setdefault(number, []).append(value)
        elif number == 20:
            kind = value
        else:
            found[number] = value
    if kind is None or kind == 0:  # files of the first version say no kind
        kind = {2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 6, 8: 7, 9: 8}.get(next((number for number in found if number > 1), 0))
    if kind == 1:
        return struct.unpack("<f", found.get(2, b"\0\0\0\0"))[0]
    if kind == 2:
        return signed(found.get(3, 0))
    if kind == 3:
        return text(found.get(4, b""))
    if kind == 4:
        return Tensor(found.get(5, b""))
    if kind == 5:
        return found.get(6, b"")
    if kind == 6:
        return [number for each in found.get(7, []) for number in np.frombuffer(each, "<f4").tolist()]
    if kind == 7:
        return [number for each in found.get(8, []) for number in _numbers(each)]
    if kind == 8:
        return [text(each) for each in found.get(9, [])]
    return None


# ---- nodes, graphs, models ----

class Node:
    """A NodeProto whose names can be changed; attributes are messages until somebody asks."""

    __slots__ = ("op", "domain", "name", "inputs", "outputs", "raw_attributes", "rest")

    def __init__(self, op, inputs=(), outputs=(), name="", domain="", **attributes):
        self.op, self.domain, self.name = op, domain, name
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.raw_attributes = [attribute(key, value) for key, value in attributes.items() if value is not None]
        self.rest = b""

    @classmethod
    def read(cls, raw):
        node = cls("")
        for number, value in fields(raw):
            if number == 1:
                node.inputs.append(text(value))
            elif number == 2:
                node.outputs.append(text(value))
            elif number == 3:
                node.name = text(value)
            elif number == 4:
                node.op = text(value)
            elif number == 5:
                node.raw_attributes.append(value)
            elif number == 7:
                node.domain = text(value)
            elif number != 6:  # documentation is not kept
                node.rest += chunk(number, value) if not isinstance(value, int) else integer(number, value)
        if node.domain == "ai.onnx":
            node.domain = ""
        return node

    def attributes(self):
        """{name: value}."""
        return {text(next((value for number, value in fields(raw) if number == 1), b"")): attribute_value(raw) for raw in self.raw_attributes}

    def bodies(self):
        """The graphs among the attributes, read."""
        return [Graph.read(value) for raw in self.raw_attributes for number, value in fields(raw) if number == 6]

    def outer_names(self):
        """What the bodies read of the graph around the node."""
        return [name for body in self.bodies() for name in body.free_names()]

    def renamed(self, names):
        """A copy whose inputs, those of its bodies too, have other names."""
        other = Node(self.op, [names.get(each, each) for each in self.inputs], self.outputs, self.name, self.domain)
        other.rest = self.rest
        for raw in self.raw_attributes:
            if any(number in (6, 11) for number, _ in fields(raw)):
                raw = b"".join(chunk(number, Graph.read(value).renamed(names).bytes()) if number in (6, 11)
                               else integer(number, value) if isinstance(value, int)
                               else (real(number, struct.unpack("<f", value)[0]) if number in (2, 7) else chunk(number, value))
                               for number, value in fields(raw))
            other.raw_attributes.append(raw)
        return other

    def bytes(self):
        parts = [chunk(1, each) for each in self.inputs] + [chunk(2, each) for each in self.outputs]
        parts += [chunk(3, self.name)] * bool(self.name) + [chunk(4, self.op)]
        parts += [chunk(5, each) for each in self.raw_attributes]
        parts += [chunk(7, self.domain)] * bool(self.domain)
        return b"".join(parts) + self.rest


class Info:
    """A ValueInfoProto: name, element type, sizes (numbers, texts for symbols, None for unknown ones), or no type."""

    __slots__ = ("name", "element", "shape", "raw")

    def __init__(self, name, element=None, shape=None, raw=None):
        self.name, self.element, self.shape, self.raw = name, element, shape, raw

    @classmethod
    def read(cls, raw):
        info = cls("", raw=raw)
        for number, value in fields(raw):
            if number == 1:
                info.name = text(value)
            elif number == 2:
                for kind, of in fields(value):
                    if kind == 1:
                        info._read_tensor(of)
        return info

    def _read_tensor(self, raw):
        self.element = 0
        for number, value in fields(raw):
            if number == 1:
                self.element = value
            elif number == 2:
                self.shape = [_dim(dim) for at, dim in fields(value) if at == 1]

    def bytes(self):
        if self.element is None:
            return bytes(self.raw) if self.raw is not None else chunk(1, self.name)
        body = integer(1, self.element)
        if self.shape is not None:
            body += chunk(2, b"".join(chunk(1, b"" if dim is None else chunk(2, dim) if isinstance(dim, str) else integer(1, dim))
                                      for dim in self.shape))
        return chunk(1, self.name) + chunk(2, chunk(1, body))


def _dim(raw):
    for number, value in fields(raw):
        if number == 1:
            return signed(value) if signed(value) >= 0 else None
        if number == 2:
            return text(value) or None
    return None


class Graph:
    """A GraphProto."""

    def __init__(self, name="network"):
        self.name, self.nodes, self.inputs, self.outputs, self.infos = name, [], [], [], []
        self.tensors = {}  # initialisers
        self.rest = []

    @classmethod
    def read(cls, raw):
        graph = cls("")
        for number, value in fields(raw):
            if number == 1:
                graph.nodes.append(Node.read(value))
            elif number == 2:
                graph.name = text(value)
            elif number == 5:
                tensor_ = Tensor(value)
                graph.tensors[tensor_.name] = tensor_
            elif number == 11:
                graph.inputs.append(Info.read(value))
            elif number == 12:
                graph.outputs.append(Info.read(value))
            elif number == 13:
                graph.infos.append(value)
            elif number in (14, 15):
                graph.rest.append(chunk(number, value))
        return graph

    def free_names(self):
        """What the nodes read that the graph does not make."""
        made = {info.name for info in self.inputs} | set(self.tensors)
        found = {}
        for node in self.nodes:
            found.update(dict.fromkeys(name for name in [*node.inputs, *node.outer_names()] if name and name not in made))
            made.update(node.outputs)
        found.update(dict.fromkeys(info.name for info in self.outputs if info.name not in made))
        return list(found)

    def renamed(self, names):
        """A copy that reads other names of the graph around it."""
        free = set(self.free_names())
        names = {old: new for old, new in names.items() if old in free}
        if not names:
            return self
        other = Graph(self.name)
        other.inputs, other.infos, other.tensors, other.rest = self.inputs, self.infos, self.tensors, self.rest
        other.nodes = [node.renamed(names) for node in self.nodes]
        other.outputs = [Info(names[info.name], info.element, info.shape) if info.name in names else info for info in self.outputs]
        return other

    def bytes(self):
        parts = [chunk(1, node.bytes()) for node in self.nodes] + [chunk(2, self.name)]
        parts += [chunk(5, each.bytes() if isinstance(each, Tensor) else each) for each in self.tensors.values()]
        parts += [chunk(11, each.bytes()) for each in self.inputs] + [chunk(12, each.bytes()) for each in self.outputs]
        parts += [chunk(13, each) for each in self.infos] + self.rest
        return b"".join(parts)


def function(name, domain, inputs, outputs, nodes, opset):
    """A FunctionProto with a version of ONNX's operators of its own."""
    return (chunk(1, name) + b"".join(chunk(4, each) for each in inputs) + b"".join(chunk(5, each) for each in outputs)
            + b"".join(chunk(7, node.bytes()) for node in nodes) + chunk(9, chunk(1, "") + integer(2, opset))
            + b"".join(chunk(9, chunk(1, each) + integer(2, 1)) for each in sorted({node.domain for node in nodes} - {""})) + chunk(10, domain))


class Model:
    """A ModelProto."""

    def __init__(self, graph=None, opset=None):
        self.ir, self.graph, self.opsets, self.functions = 10, graph or Graph(), {"": opset} if opset else {}, []

    @classmethod
    def read(cls, raw):
        """Malformed where it is none."""
        try:
            return cls._read(memoryview(raw) if isinstance(raw, bytes) else memoryview(raw).cast("B"))
        except (TypeError, AttributeError, ValueError, struct.error) as error:
            raise error if isinstance(error, Malformed) else Malformed("a field has another kind than ONNX says") from None

    @classmethod
    def _read(cls, raw):
        model, graph = cls(), None
        for number, value in fields(raw):
            if number == 1:
                model.ir = signed(value)
            elif number == 7:
                graph = value
            elif number == 8:
                entry = dict(fields(value))
                domain = text(entry.get(1, b""))
                model.opsets["" if domain == "ai.onnx" else domain] = signed(entry.get(2, 0))
            elif number == 25:
                model.functions.append(bytes(message(value)))
        if graph is None:
            raise Malformed("there is no graph in it")
        model.graph = Graph.read(graph)
        return model

    def bytes(self):
        parts = [integer(1, max(self.ir, 8)), chunk(2, "hone-tensorrt"), chunk(7, self.graph.bytes())]
        parts += [chunk(8, chunk(1, domain) + integer(2, version)) for domain, version in {**dict.fromkeys((node.domain for node in self.graph.nodes if node.domain), 1),
                                                                                       **self.opsets}.items()]
        return b"".join(parts + [chunk(25, each) for each in self.functions])
