# SPDX-License-Identifier: Apache-2.0
"""Nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base import Links, assign

if TYPE_CHECKING:
    from .graphs import Graph
    from .tensors import Tensor


class Node:
    """An operator at work. An attribute is a number, a text, a list of these, a Constant, a Graph, or an AttributeRef; those that are no
    members of the node itself can be read as such: node.alpha."""

    @dataclass
    class AttributeRef:
        """The value of an attribute that is the function's around it; `type`: float, int, str, Tensor, Graph, or typing.List of them."""

        name: str
        type: Any

    _read: dict = {}  # attributes as a model had them: what they were, and where their messages lie
    _rest = b""  # fields of a model's node that have no member here
    _owner: Any = None

    def __init__(self, op: str, name: str | None = None, attrs: dict | None = None, inputs: Sequence[Tensor] | None = None,
                 outputs: Sequence[Tensor] | None = None, domain: str | None = None):
        self.op, self.name, self.domain = op, name or "", domain
        self.attrs = {} if attrs is None else attrs
        self._inputs, self._outputs = Links(self, "_outputs", inputs or ()), Links(self, "_inputs", outputs or ())

    @property
    def inputs(self) -> Links:
        """The tensors that it reads."""
        return self._inputs

    @inputs.setter
    def inputs(self, tensors: Sequence) -> None:
        assign(self._inputs, tensors)

    @property
    def outputs(self) -> Links:
        """The tensors that it makes."""
        return self._outputs

    @outputs.setter
    def outputs(self, tensors: Sequence) -> None:
        assign(self._outputs, tensors)

    def i(self, tensor_idx: int = 0, producer_idx: int = 0) -> Node:
        """The node that makes an input."""
        return self.inputs[tensor_idx].inputs[producer_idx]

    def o(self, consumer_idx: int = 0, tensor_idx: int = 0) -> Node:
        """A node that reads an output."""
        return self.outputs[tensor_idx].outputs[consumer_idx]

    def subgraphs(self, recursive: bool = False) -> Iterator[Graph]:
        """The graphs among its attributes; `recursive`: those inside of them, too."""
        waiting, seen = [self], set()
        while waiting:
            for body in waiting.pop()._bodies():
                if id(body) in seen:
                    continue
                seen.add(id(body))
                yield body
                if recursive:
                    waiting.extend(body.nodes)

    def _bodies(self) -> Iterator[Graph]:
        if not self.attrs:
            return
        from .graphs import Graph

        for value in self.attrs.values():
            if isinstance(value, Graph):
                yield value
            elif isinstance(value, list):
                yield from (each for each in value if isinstance(each, Graph))

    def copy(self, inputs: Sequence[Tensor] | None = None, outputs: Sequence[Tensor] | None = None, tensor_map: dict | None = None) -> Node:
        """The same with other tensors; bodies are copied with the tensors around them (`tensor_map`)."""
        from .graphs import Graph

        def copied(value: Any) -> Any:
            if isinstance(value, Graph):
                return value.copy(tensor_map)
            return [copied(each) for each in value] if isinstance(value, list) else value

        made = Node(self.op, self.name, {name: copied(value) for name, value in self.attrs.items()}, inputs, outputs, self.domain)
        made._read, made._rest, made._owner = self._read, self._rest, self._owner
        return made

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__.get("attrs")
        if attributes and name in attributes:
            return attributes[name]
        raise AttributeError(f"the node {self.__dict__.get('name', '')!r} has neither a member nor an attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Node) and (self.name, self.op, self.domain or "") == (other.name, other.op, other.domain or "")
                                 and list(self.inputs) == list(other.inputs) and list(self.outputs) == list(other.outputs)
                                 and self.attrs == other.attrs)

    __hash__ = None

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.op})"]
        for title, tensors in (("Inputs", self.inputs), ("Outputs", self.outputs)):
            lines += [f"\t{title}: ["] + [f"\t\t{tensor}" for tensor in tensors] + ["\t]"]
        if self.attrs:
            lines.append(f"Attributes: {self.attrs}")
        if self.domain:
            lines.append(f"Domain: {self.domain}")
        return "\n".join(lines)

    __repr__ = __str__
