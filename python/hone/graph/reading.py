# SPDX-License-Identifier: Apache-2.0
"""From a model to a graph: the library tells all of it at once, and objects of Python are made of that."""

from __future__ import annotations

import os
import typing
from typing import Any

from .. import _hone
from .base import GraphError
from .functions import Function
from .graphs import Graph, Opset, _Nodes
from .nodes import Node
from .tensors import Constant, LazyValues, SparseValues, Tensor, Variable
from .types import dtype_of

FLOAT, INT, TEXT, TENSOR, GRAPH, FLOATS, INTS, TEXTS, TENSORS, GRAPHS = range(1, 11)
REFERENCES = {FLOAT: float, INT: int, TEXT: str, TENSOR: Tensor, GRAPH: Graph, FLOATS: typing.List[float], INTS: typing.List[int],  # noqa: UP006
              TEXTS: typing.List[str], TENSORS: typing.List[Tensor], GRAPHS: typing.List[Graph]}  # noqa: UP006


class Kept(typing.NamedTuple):
    """An attribute as the model has it: it is written as it stands while its value is what it was."""

    value: Any
    kind: int
    was: Any  # of a list: a copy
    encoded: Any
    owner: Any


class Opaque:
    """The value of an attribute of a kind that has no place in Python: it is only carried along."""

    def __init__(self, kind: int):
        self.kind = kind

    def __repr__(self) -> str:
        return f"<an attribute of ONNX's kind {self.kind}>"


def import_onnx(onnx_model: Any, folder: str | os.PathLike | None = None) -> Graph:
    """A graph of a model: a path, a file's bytes, or an onnx.ModelProto. Of the latter two weights in other files are looked for in
    `folder`, or where the program runs. An Error is raised for what is no model."""
    if isinstance(onnx_model, (str, os.PathLike)):
        return _Reader(_hone.Graph.open(os.fspath(onnx_model))).graph
    place = os.fspath(folder) if folder is not None else "."
    if isinstance(onnx_model, (bytes, bytearray, memoryview)):
        return _Reader(_hone.Graph.parse(bytes(onnx_model), place)).graph
    try:
        data = onnx_model.SerializeToString()
    except AttributeError:
        raise GraphError(f"{type(onnx_model).__name__} is no model\n  hint: give a path, a file's bytes or an onnx.ModelProto") from None
    except ValueError as error:  # of more than 2 GiB
        raise GraphError(f"the model cannot be read from an onnx.ModelProto: {error}\n  hint: give the path of its file") from None
    return _Reader(_hone.Graph.parse(data, place)).graph


class _Reader:
    """Reads a model with its functions, of which all graphs have one list."""

    def __init__(self, handle: Any):
        self.functions: list[Function] = []
        told = handle.read()
        for function in told["functions"]:
            self.functions.append(self._function(function, told["ir_version"]))
        self.graph = self._fill(Graph.__new__(Graph), handle, told, {}, None)

    def _function(self, handle: Any, ir_version: int) -> Function:
        told = handle.read()
        made = Function.__new__(Function)
        made.domain, made.overload = told["words"]["domain"], told["words"]["overload"]
        made.attrs, made._read = {}, {}
        for attribute in told["parameters"]:
            made._read[attribute[0]] = kept = self._attribute(handle, attribute, {})
            made.attrs[attribute[0]] = kept.value if attribute[1] else None
        self._fill(made, handle, told, {}, None)
        made.ir_version = ir_version
        return made

    def _fill(self, graph: Graph, handle: Any, told: dict, around: dict[str, Tensor], parent: Graph | None) -> Graph:
        words = told["words"]
        Graph.__init__(graph, name=words["name"], doc_string=words["doc_string"])
        graph.__dict__.update(_origin=handle, ir_version=told["ir_version"], _functions=self.functions,
                              producer_name=words.get("producer_name", ""), producer_version=words.get("producer_version", ""))
        graph.opset = next((version for domain, version in told["opsets"] if domain in ("", "ai.onnx")), Graph.DEFAULT_OPSET if parent is None else parent.opset)
        graph.import_domains = [Opset(domain, version) for domain, version in told["opsets"]]
        known = dict(around)
        declared = {each[0]: each for part in ("values", "outputs", "inputs") for each in told[part] if each[3][1]}
        weights = {each[0]: Constant(each[0], LazyValues._at(handle, each)) for each in told["weights"]}
        weights.update((each[0], Constant(each[0], SparseValues._at(handle, each))) for each in told["sparse"])
        known.update(weights)
        for each in told["inputs"]:
            if each[0] in weights:
                graph._given = [*graph._given, weights[each[0]]]
            else:
                known[each[0]] = variable = _declared(each[0], declared.get(each[0]), handle)
                graph._inputs.append(variable)
        for node in told["nodes"]:
            for name in node[4]:
                if name:
                    known[name] = _declared(name, declared.get(name), handle)
        graph._nodes = _Nodes(self._node(handle, node, known, graph) for node in told["nodes"])
        for name, *_ in told["outputs"]:
            if name not in known:
                known[name] = _declared(name, declared.get(name), handle)
            graph._outputs.append(known[name])
        graph._loose = [weight for weight in weights.values() if not weight.outputs and all(each is not weight for each in graph._outputs)]
        graph._order = {part: {each[0]: at for at, each in enumerate(told[part])} for part in ("inputs", "values", "weights")}
        graph._extra = [each for each in told["values"] if each[0] not in known or each[0] in weights]
        return graph

    def _node(self, handle: Any, told: tuple, known: dict[str, Tensor], graph: Graph) -> Node:
        op, name, domain, inputs, outputs, attributes, rest = told
        for each in inputs:
            if each and each not in known:
                known[each] = Variable(each)
        node = Node(op, name, None, [known[each] if each else Variable("") for each in inputs],
                    [known[each] if each else Variable("") for each in outputs], domain or None)
        if rest:
            node._rest = rest
        if attributes:
            node._read = read = {each[0]: self._attribute(handle, each, known, graph) for each in attributes}
            node.attrs = {key: kept.value for key, kept in read.items()}
        return node

    def _attribute(self, handle: Any, told: tuple, known: dict[str, Tensor], graph: Graph | None = None) -> Kept:
        name, kind, value, reference, encoded = told
        if reference is not None:
            value = Node.AttributeRef(reference, REFERENCES.get(kind))
        elif kind == TENSOR:
            value = Constant(value[0], LazyValues._at(handle, value)) if value is not None else Opaque(kind)
        elif kind in (GRAPH, GRAPHS):
            bodies = [self._fill(Graph.__new__(Graph), body, body.read(), known, graph) for body in value]
            value = bodies if kind == GRAPHS else bodies[0] if bodies else Opaque(kind)
        elif kind not in (FLOAT, INT, TEXT, FLOATS, INTS, TEXTS):
            value = Opaque(kind)
        was = list(value) if isinstance(value, list) else value._values if isinstance(value, Constant) else value
        return Kept(value, kind, was, encoded, handle)


def _declared(name: str, told: tuple | None, handle: Any) -> Variable:
    """What the model says of a tensor. Sizes that it says nothing of are None."""
    if told is None:
        return Variable(name)
    sizes = None if told[2] is None else [None if size == -1 else size for size in told[2]]
    made = Variable(name, dtype_of(told[1]), sizes)
    made._told = (told, handle, None if sizes is None else list(sizes), made.dtype)
    return made
