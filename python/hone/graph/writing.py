# SPDX-License-Identifier: Apache-2.0
"""From a graph to a model: plain tuples of all of it, which the library turns into a file's messages at once. What has not changed since it
was read is given by where it lies."""

from __future__ import annotations

import os
import typing
from typing import Any

import numpy as np

from .. import _hone
from .base import GraphError
from .cleaning import captured, constants
from .functions import Function
from .graphs import Graph
from .nodes import Node
from .reading import FLOAT, FLOATS, GRAPH, GRAPHS, INT, INTS, REFERENCES, TENSOR, TENSORS, TEXT, TEXTS, Opaque
from .tensors import Constant, LazyValues, SparseValues, Tensor, Variable
from .types import STRING, number_of, packed

NEWEST_TYPES = {23: 11, 24: 11, 25: 13, 26: 13}  # element types that need a newer version of the format than 10


def export_onnx(graph: Graph, do_type_check: bool = True, **kwargs: Any) -> Any:
    """An onnx.ModelProto of the graph; `kwargs` set fields of it: producer_name, doc_string, ... An Error is raised for inputs and outputs
    without a type, unless `do_type_check` is off, and for two tensors of one name."""
    import onnx

    model = onnx.ModelProto()
    model.ParseFromString(export_bytes(graph, do_type_check))
    for name, value in kwargs.items():
        field = getattr(model, name)
        if hasattr(field, "extend"):
            del field[:]
            field.extend(value)
        else:
            setattr(model, name, value)
    return model


def export_bytes(graph: Graph, do_type_check: bool = True) -> bytes:
    """The model as the bytes of a file. For this the onnx package is not needed."""
    return to_library(graph, do_type_check).bytes()


def save(graph: Graph, path: str | os.PathLike, external_data: str | bool | None = None, threshold: int = 1024,
         do_type_check: bool = True) -> None:
    """Writes a file. `external_data`: weights of at least `threshold` bytes go into this file beside it, or with True into one that is named
    after it. Weights that lie in other files are referred to, or copied where the model goes into another folder."""
    data_file = "" if external_data is True else external_data or None
    to_library(graph, do_type_check).save(os.fspath(path), data_file, threshold)


def to_library(graph: Graph, do_type_check: bool = False, with_functions: bool = True) -> Any:
    """The graph as the library's."""
    if do_type_check:
        lacking = [tensor.name for tensor in [*graph.inputs, *graph.outputs] if isinstance(tensor, Variable) and not _has_type(tensor)]
        if lacking:
            raise GraphError(f"inputs and outputs need a type: {', '.join(lacking)} has none\n  hint: tensor.dtype = np.float32")
    graph._share_functions()
    writer = _Writer()
    return writer.graph(graph, {}, [writer.graph(function, {}, []) for function in graph.functions] if with_functions else [])


def _has_type(tensor: Variable) -> bool:
    return tensor.dtype is not None or "_told" in tensor.__dict__ and tensor._told[3] is None and tensor._told[0][3][1] > 0 and tensor._told[0][1] == 0


class _Writer:
    """Holds the memory that tuples point to until the library has it."""

    def __init__(self) -> None:
        self.memory: list = []

    def graph(self, graph: Graph, around: dict[int, Tensor], functions: list) -> Any:
        """`around`: the constants, by identity, that graphs around a body hold."""
        if graph._origin is not None:
            handle = graph._origin.like()
        else:
            handle = _hone.Graph.function(graph.domain, graph.name) if isinstance(graph, Function) else _hone.Graph.make(1)
        own = {id(each): each for each in constants(graph) if id(each) not in around}
        own.update((id(each), each) for each in graph._loose)
        imported = {id(each) for each in own.values()}
        for body in graph.subgraphs():  # weights of this graph that bodies alone read
            for tensor in captured(body).values():
                if isinstance(tensor, Constant) and id(tensor) not in around and id(tensor) not in imported and _lies_in(tensor, graph):
                    own[id(tensor)] = tensor
        inner = {**around, **own}
        nodes = [self._node(node, inner) for node in graph._nodes]
        weights = [each for each in own.values() if not isinstance(each._values, SparseValues)]
        sparse = [each for each in own.values() if isinstance(each._values, SparseValues)]
        handle.write({
            "words": self._words(graph), "ir_version": self._ir_version(graph, weights), "opsets": self._opsets(graph),
            "parameters": self._parameters(graph) if isinstance(graph, Function) else [],
            "inputs": [self._variable(each) for each in self._inputs(graph, own)],
            "outputs": [self._variable(each) for each in graph.outputs],
            "values": self._values(graph), "weights": [self._weight(each) for each in _in_order(graph._order["weights"], weights)],
            "sparse": [self._weight(each) for each in sparse], "nodes": nodes, "functions": functions})
        self._check_names(graph, own)
        return handle

    def _inputs(self, graph: Graph, own: dict[int, Tensor]) -> list[Tensor]:
        """Older models list weights among the inputs, too: where they stood, unless the inputs are in another order now."""
        given = [each for each in graph._given if id(each) in own]
        together = _in_order(graph._order["inputs"], [*graph.inputs, *given])
        kept = [each for each in together if all(each is not weight for weight in given)]
        return together if given and all(map(lambda a, b: a is b, kept, graph.inputs)) else [*graph.inputs, *given]

    def _words(self, graph: Graph) -> dict[str, str]:
        words = {"name": graph.name, "doc_string": graph.doc_string}
        if isinstance(graph, Function):
            words.update(domain=graph.domain, overload=graph.overload)
        else:
            words.update(producer_name=graph.producer_name, producer_version=graph.producer_version)
        return words

    def _ir_version(self, graph: Graph, weights: list[Constant]) -> int:
        if graph.ir_version is not None:
            return graph.ir_version
        return max([10, *(NEWEST_TYPES.get(number_of(each.export_dtype), 0) for each in weights)])

    def _opsets(self, graph: Graph) -> list[tuple[str, int]]:
        opsets = {each.domain: each.version for each in graph.import_domains or ()}
        default = "ai.onnx" if "ai.onnx" in opsets else ""
        if default in opsets or not opsets or any(not node.domain for node in graph._nodes):  # some models have ONNX's other domains alone
            opsets[default] = graph.opset
        for function in graph.functions:
            opsets.setdefault(function.domain, 1)
        return list(opsets.items())

    def _variable(self, tensor: Tensor) -> tuple:
        if isinstance(tensor, Constant):
            return (tensor.name, number_of(tensor.export_dtype), list(tensor.shape), None, None, None)
        told = tensor.__dict__.get("_told")
        if told is None:
            return (tensor.name, number_of(tensor.dtype), _sizes(tensor.shape), None, None, None)
        (_, _, _, place, _), owner, sizes, dtype = told
        same_sizes = sizes is None if tensor.shape is None else sizes is not None and list(tensor.shape) == sizes
        if same_sizes and (tensor.dtype is dtype or number_of(tensor.dtype) == number_of(dtype)):
            return (tensor.name, 0, None, place if place[1] else None, owner, None)
        return (tensor.name, number_of(tensor.dtype), _sizes(tensor.shape), place if place[1] else None, owner, None)

    def _values(self, graph: Graph) -> list[tuple]:
        """What is said of results of nodes that are no outputs of the graph."""
        outputs = {id(each) for each in graph.outputs}
        found = [each for node in graph._nodes for each in node._outputs
                 if each.name and id(each) not in outputs and isinstance(each, Variable) and (each.dtype is not None or "_told" in each.__dict__)]
        kept = [(name, 0, None, place, graph._origin, None) for name, _, _, place, _ in graph._extra]
        order = graph._order["values"]
        return sorted([*map(self._variable, found), *kept], key=lambda each: order.get(each[0], len(order)))

    def _weight(self, tensor: Constant, name: str | None = None) -> tuple:
        name, values = tensor.name if name is None else name, tensor._values
        if isinstance(values, LazyValues):
            if number_of(tensor.export_dtype) == values._number:
                return (name, 0, None, values._told[3], values._owner, None)
            values = tensor.values
        number = number_of(tensor.export_dtype)
        if number == STRING:
            return (name, 0, None, _text_message(values), None, None)
        if number != number_of(values.dtype):
            values = _converted(values, number)
        memory = packed(values, number)
        self.memory.append(memory)
        return (name, number, list(values.shape), None, None, (memory.ctypes.data, memory.nbytes))

    def _node(self, node: Node, around: dict[int, Tensor]) -> tuple:
        attributes = [self._attribute(node, name, value, around) for name, value in node.attrs.items() if value is not None] if node.attrs else ()
        return (node.op, node.name or "", node.domain or "", [each.name for each in node._inputs], [each.name for each in node._outputs],
                attributes, node._rest)

    def _parameters(self, function: Function) -> list[tuple]:
        return [(name, 0, None, None, None, None) if value is None else self._attribute(function, name, value, {})
                for name, value in function.attrs.items()]

    def _attribute(self, holder: Any, name: str, value: Any, around: dict[int, Tensor]) -> tuple:
        kept = holder._read.get(name)
        if kept is not None and kept.kind not in (GRAPH, GRAPHS) and _is_kept(value, kept):
            return (name, kept.kind, None, None, kept.encoded, kept.owner)
        if isinstance(value, Node.AttributeRef):
            return (name, _kind_of_type(value.type), None, value.name, None, None)
        if isinstance(value, Opaque):
            raise GraphError(f"the attribute {name} of a kind that is only carried along was put elsewhere\n  hint: leave it where it was")
        kind, plain = self._plain(name, value, around)
        if kept is not None:
            kind, plain = _as_before(kind, plain, kept.kind)
            if kind in (GRAPH, GRAPHS) and kind == kept.kind:
                return (name, kind, plain, None, kept.encoded, None)
        return (name, kind, plain, None, None, None)

    def _plain(self, name: str, value: Any, around: dict[int, Tensor]) -> tuple[int, Any]:
        """The kind, and the value without anything that is numpy's."""
        if isinstance(value, Graph):
            return GRAPH, [self.graph(value, around, [])]
        if isinstance(value, Constant):
            return TENSOR, self._weight(value)
        if isinstance(value, (bool, int, np.integer, np.bool_)):
            return INT, int(value)
        if isinstance(value, (float, np.floating)):
            return FLOAT, float(value)
        if isinstance(value, (str, bytes)):
            return TEXT, value
        if isinstance(value, (type, np.dtype)):
            return INT, number_of(value)
        if isinstance(value, LazyValues):
            return TENSOR, self._weight(Constant(name, value))
        if isinstance(value, np.ndarray):
            return self._plain(name, value.tolist(), around)
        if isinstance(value, (list, tuple, range)):
            return self._plain_list(name, list(value), around)
        raise GraphError(f"the attribute {name} cannot be written: {type(value).__name__} {value!r}"
                         "\n  hint: numbers, texts, lists of them, Constant, Graph and AttributeRef are attributes")

    def _plain_list(self, name: str, values: list, around: dict[int, Tensor]) -> tuple[int, Any]:
        items = [self._plain(name, each, around) for each in values]
        kinds = {kind for kind, _ in items}
        plain = [each for _, each in items]
        if kinds <= {INT}:
            return INTS, plain
        if kinds <= {INT, FLOAT}:
            return FLOATS, [float(each) for each in plain]
        if kinds == {TEXT}:
            return TEXTS, plain
        if kinds == {GRAPH}:
            return GRAPHS, [each[0] for each in plain]
        raise GraphError(f"the attribute {name} mixes what is no list of ONNX: {values!r}\n  hint: numbers alone, texts alone, or graphs alone")

    def _check_names(self, graph: Graph, own: dict[int, Tensor]) -> None:
        """Two tensors of one name would become one without a word."""
        makers: dict[str, Tensor] = {}
        for tensor in [*own.values(), *graph._inputs, *(each for node in graph._nodes for each in node._outputs)]:
            if tensor.name and makers.setdefault(tensor.name, tensor) is not tensor:
                raise GraphError(f"two tensors are called {tensor.name}\n  hint: rename one of them; graph.tensors(check_duplicates=True) shows them")


def _in_order(order: dict[str, int], tensors: list) -> list:
    """In the order of the model that was read; what is new comes last."""
    return sorted(tensors, key=lambda each: order.get(each.name, len(order))) if order else tensors


def _lies_in(tensor: Constant, graph: Graph) -> bool:
    values = tensor._values
    return not isinstance(values, LazyValues) or values._owner is graph._origin


def _sizes(shape: Any) -> list | None:
    if shape is None:
        return None
    return [-1 if each is None else each if isinstance(each, str) else int(each) for each in shape]


def _is_kept(value: Any, kept: Any) -> bool:
    if isinstance(value, list):
        return isinstance(kept.was, list) and value == kept.was and [type(each) for each in value] == [type(each) for each in kept.was]
    if isinstance(value, Constant):
        return value is kept.value and value._values is kept.was and value._export_dtype is None
    return value is kept.value or (type(value) is type(kept.value) and isinstance(value, (int, float, str, bytes)) and value == kept.value)


def _as_before(kind: int, plain: Any, before: int) -> tuple[int, Any]:
    """A value of the kind that the attribute had, where that loses nothing."""
    if kind == INT and before == FLOAT:
        return FLOAT, float(plain)
    if kind == INTS and before == FLOATS:
        return FLOATS, [float(each) for each in plain]
    if kind in (INTS, FLOATS) and not plain:
        return before if before in (INTS, FLOATS, TEXTS) else kind, plain
    return kind, plain


def _kind_of_type(kind: Any) -> int:
    for number, each in REFERENCES.items():
        if kind is each or kind == each:
            return number
    origin, items = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and len(items) == 1 and items[0] in (float, int, str, Tensor, Graph):
        return {float: FLOATS, int: INTS, str: TEXTS, Tensor: TENSORS, Graph: GRAPHS}[items[0]]
    if isinstance(kind, type) and issubclass(kind, (np.floating, np.integer, Tensor)):
        return FLOAT if issubclass(kind, np.floating) else INT if issubclass(kind, np.integer) else TENSOR
    raise GraphError(f"{kind!r} is no type of an attribute\n  hint: float, int, str, Tensor, Graph, or typing.List of one of them")


def _converted(values: np.ndarray, number: int) -> np.ndarray:
    from .types import dtype_of, name_of

    dtype = dtype_of(number)
    if isinstance(dtype, int):
        raise GraphError(f"numpy has no type {name_of(number)}\n  hint: install ml_dtypes")
    return values.astype(dtype)


def _text_message(values: np.ndarray) -> bytes:
    """A TensorProto of texts: sizes, type, elements."""
    out = bytearray()
    for size in values.shape:
        out += b"\x08" + _varint(size)
    out += b"\x10" + _varint(STRING)
    for text in values.flat:
        data = text if isinstance(text, bytes) else str(text).encode()
        out += b"\x32" + _varint(len(data)) + data
    return bytes(out)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


