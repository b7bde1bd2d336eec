# SPDX-License-Identifier: Apache-2.0
"""Functions of a model: operators that it defines by other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import cleaning, folding
from .graphs import Graph
from .nodes import Node
from .tensors import Tensor


class Function(Graph):
    """A graph that nodes call by its domain and name. `attrs`: what a call may give, with the value that holds otherwise; None: a call has
    to give it. Inner nodes refer to them by Node.AttributeRef. Calling it adds a node to a graph."""

    DEFAULT_DOMAIN = "onnx_graphsurgeon"

    def __init__(self, name: str, domain: str | None = None, nodes: Sequence[Node] | None = None, inputs: Sequence[Tensor] | None = None,
                 outputs: Sequence[Tensor] | None = None, doc_string: str | None = None, opset: int | None = None,
                 import_domains: Sequence | None = None, functions: Sequence[Function] | None = None, attrs: dict | None = None,
                 ir_version: int | None = None, overload: str = ""):
        self.domain, self.attrs, self.overload = Function.DEFAULT_DOMAIN if domain is None else domain, attrs or {}, overload
        self._read: dict = {}  # attrs as a model had them
        super().__init__(nodes, inputs, outputs, name, doc_string, opset, import_domains, functions=functions, ir_version=ir_version)

    @property
    def unique_id(self) -> tuple[str, ...]:
        """What nodes call it by."""
        return (self.domain, self.name, self.overload) if self.overload else (self.domain, self.name)

    def cleanup(self, remove_unused_node_outputs: bool = False, recurse_subgraphs: bool = True, remove_unused_graph_inputs: bool = False,
                recurse_functions: bool = False) -> Function:
        """Graph.cleanup() of this function alone."""
        if recurse_functions:
            return super().cleanup(remove_unused_node_outputs, recurse_subgraphs, remove_unused_graph_inputs)
        cleaning.clean(self, remove_unused_node_outputs, recurse_subgraphs, remove_unused_graph_inputs)
        return self

    def toposort(self, recurse_subgraphs: bool = True, recurse_functions: bool = False, mode: str = "nodes") -> Function:
        """Graph.toposort() of this function alone."""
        if recurse_functions or mode != "nodes":
            return super().toposort(recurse_subgraphs, recurse_functions, mode)
        cleaning.sort(self, recurse_subgraphs)
        return self

    def fold_constants(self, recurse_functions: bool = False, **kwargs: Any) -> Function:
        """Graph.fold_constants() of this function alone."""
        kwargs.pop("partitioning", None)
        folding.fold(self, folding.Rules(**kwargs))
        if recurse_functions:
            for function in self._functions:
                if function is not self:
                    folding.fold(function, folding.Rules(**kwargs))
        return self

    def __call__(self, graph: Graph, inputs: Sequence | None = None, outputs: Sequence | None = None, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Adds a node that calls it to `graph`, as Graph.layer() does; outputs that are not given are made after the function's."""
        if all(each is not self for each in graph.functions) and self.unique_id not in {each.unique_id for each in graph.functions}:
            graph.functions.append(self)
        given = outputs if outputs is not None else [output.name for output in self.outputs]
        made = graph.layer(inputs, given, *args, op=self.name, domain=self.domain, **kwargs)
        for tensor, asked, output in zip(made, given, self.outputs):
            if not isinstance(asked, Tensor):
                tensor.dtype, tensor.shape = output.dtype, output.shape
        return made

    def copy(self, tensor_map: dict | None = None) -> Function:
        """The same with nodes and tensors of its own."""
        made = super().copy(tensor_map)
        made.attrs = dict(self.attrs)
        return made

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Function) and self.unique_id == other.unique_id and self.opset == other.opset
                                 and self.inputs == other.inputs and self.outputs == other.outputs and list(self.nodes) == list(other.nodes))

    __hash__ = None

    def __str__(self) -> str:
        nodes = "\n".join(map(str, self.nodes))
        return f"Function {self.name}, Domain {self.domain}, Opset {self.opset}\nInputs: {self.inputs}\nNodes: {nodes}\nOutputs: {self.outputs}"

    __repr__ = __str__
