# SPDX-License-Identifier: Apache-2.0
"""What does nothing is removed, and nodes are put into an order in which producers come first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from .base import GraphError
from .tensors import Constant, Variable


def defined(graph: Any) -> set[int]:
    """The tensors, by identity, that a graph makes or is given."""
    own = {id(tensor) for tensor in graph.inputs}
    own.update(id(tensor) for node in graph.nodes for tensor in node.outputs)
    return own


def captured(body: Any) -> dict[int, Any]:
    """The tensors that a body takes from around it, by identity; constants that it reads are among them."""
    own, found = defined(body), {}
    for node in body.nodes:
        found.update((id(tensor), tensor) for tensor in reads(node) if id(tensor) not in own)
    found.update((id(tensor), tensor) for tensor in body.outputs if id(tensor) not in own)
    return found


def reads(node: Any) -> Iterator[Any]:
    """The tensors that a node reads, those that its bodies take from around it among them."""
    for tensor in node.inputs:
        if not tensor.is_empty():
            yield tensor
    for body in node._bodies():
        yield from captured(body).values()


def clean(graph: Any, unused_outputs: bool, bodies: bool, unused_inputs: bool) -> None:
    for body in graph.subgraphs() if bodies else ():
        clean(body, unused_outputs, True, False)  # what a body is given counts by position
    inside = {id(node) for node in graph.nodes}
    for tensor in graph.inputs:
        tensor.inputs = [node for node in tensor.inputs if id(node) not in inside]
    used = _live(graph, inside)
    kept = []
    for node in graph.nodes:
        if id(node) in used:
            kept.append(node)
        else:
            node.inputs.clear()
            node.outputs.clear()
            forget_bodies(node)
    graph.nodes = kept
    _leave_out(graph, unused_outputs, unused_inputs)
    graph._loose = []


def _live(graph: Any, inside: set[int]) -> set[int]:
    waiting, used = list(graph.outputs), set()
    seen = {id(tensor) for tensor in waiting}
    while waiting:
        for node in waiting.pop().inputs:
            if id(node) not in inside or id(node) in used:
                continue
            used.add(id(node))
            for tensor in reads(node):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    waiting.append(tensor)
    return used


def forget_bodies(node: Any) -> None:
    """What stands in the bodies of a node that is gone reads nothing any more."""
    for body in node.subgraphs(recursive=True):
        for inner in body.nodes:
            inner.inputs.clear()


def _leave_out(graph: Any, unused_outputs: bool, unused_inputs: bool) -> None:
    inside = {id(node) for node in graph.nodes}
    for body in graph.subgraphs(recursive=True):
        inside.update(id(node) for node in body.nodes)
    for tensor in graph.outputs:
        if any(id(node) not in inside for node in tensor.outputs):
            tensor.outputs = [node for node in tensor.outputs if id(node) in inside]
    results = {id(tensor) for tensor in graph.outputs}
    for body in graph.subgraphs(recursive=True):
        results.update(id(tensor) for tensor in body.outputs)
    if unused_outputs:
        for node in graph.nodes:
            for at, tensor in enumerate(node.outputs):
                if not tensor.is_empty() and not tensor.outputs and id(tensor) not in results:
                    node.outputs[at] = Variable.empty()  # those behind it keep their places
            while node.outputs and node.outputs[-1].is_empty():
                node.outputs.pop()
    if unused_inputs:
        graph.inputs = [tensor for tensor in graph.inputs if tensor.outputs or id(tensor) in results]


def sort(graph: Any, bodies: bool) -> None:
    nodes = list(graph.nodes)
    at = {id(node): place for place, node in enumerate(nodes)}
    producers = [{at[id(maker)] for tensor in reads(node) for maker in tensor.inputs if id(maker) in at} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for place, before in enumerate(producers):
        for maker in before:
            readers[maker].append(place)
    missing = [len(before) for before in producers]
    ready = [place for place, count in enumerate(missing) if count == 0]
    heapify(ready)
    order = []
    while ready:
        place = heappop(ready)
        order.append(place)
        for reader in readers[place]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heappush(ready, reader)
    if len(order) != len(nodes):
        raise GraphError(f"the graph has a cycle: {_cycle(nodes, producers, set(order))}"
                         "\n  hint: an output of the last node is read by the first; break the circle")
    if order != sorted(order):
        graph.nodes = [nodes[place] for place in order]
    for body in graph.subgraphs() if bodies else ():
        sort(body, True)


def _cycle(nodes: list, producers: list[set[int]], placed: set[int]) -> str:
    at = next(place for place in range(len(nodes)) if place not in placed)
    path: list[int] = []
    while at not in path:
        path.append(at)
        at = next(maker for maker in producers[at] if maker not in placed)
    circle = path[path.index(at):][::-1]
    return " -> ".join(nodes[place].name or f"{nodes[place].op}_{place}" for place in [*circle, circle[0]])


def sort_functions(functions: list) -> None:
    """Those that are called come before those that call them."""
    by_id = {function.unique_id: function for function in functions}
    order: list = []
    state: dict = {}

    def visit(function: Any) -> None:
        if state.get(function.unique_id) == "open":
            raise GraphError(f"the function {function.name} calls itself\n  hint: ONNX's functions do not recur")
        if function.unique_id in state:
            return
        state[function.unique_id] = "open"
        for graph in [function, *function.subgraphs(recursive=True)]:
            for node in graph.nodes:
                called = by_id.get((node.domain or "", node.op))
                if called is not None:
                    visit(called)
        state[function.unique_id] = "done"
        order.append(function)

    for function in functions:
        visit(function)
    functions[:] = order


def constants(graph: Any) -> Iterator[Constant]:
    """The constants that its nodes read and its outputs are, each once."""
    seen = set()
    for tensor in [*(tensor for node in graph.nodes for tensor in node.inputs), *graph.outputs]:
        if isinstance(tensor, Constant) and id(tensor) not in seen:
            seen.add(id(tensor))
            yield tensor
