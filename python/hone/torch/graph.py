# SPDX-License-Identifier: Apache-2.0
"""A graph as torch.compile hands it over, taken apart: which arguments are weights, inputs and sizes, which outputs an engine computes.

Weights become part of the engine, so that it can order them as its kernels read them. What aliases an input and what is no tensor is
left to torch: views and sizes cost nothing, and a view must stay one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch import fx

from ..base import _hone


class Refused(Exception):
    """The graph is left to torch; the text says what is in the way."""


class Size(NamedTuple):
    """A number that is a tensor's size."""

    tensor: int  # which argument
    axis: int


def _symbol(value):
    """The expression of a size that is one, as text."""
    return str(value.node.expr) if isinstance(value, torch.SymInt) else None


def _storage(value):
    try:
        return value.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def is_static(example: Any) -> bool:
    """Whether torch takes the argument for a module's own: a parameter or a buffer."""
    return isinstance(example, torch.nn.Parameter) or getattr(example, "_dynamo_static_input_type", None) is not None


class Traced:
    """The graph and what its arguments and outputs are."""

    def __init__(self, module: fx.GraphModule, examples: Sequence[Any]):
        self.module = module
        self.places = [node for node in module.graph.nodes if node.op == "placeholder"]
        values = [node.meta.get("example_value", example) for node, example in zip(self.places, examples)]
        self.weights = [at for at, example in enumerate(examples) if isinstance(example, torch.Tensor) and is_static(example)]
        self.tensors = [at for at, example in enumerate(examples) if isinstance(example, torch.Tensor) and at not in self.weights]
        self.dynamic = {at: [axis for axis, size in enumerate(values[at].shape) if _symbol(size)] for at in self.tensors}
        known = {_symbol(values[at].shape[axis]): Size(at, axis) for at in self.tensors for axis in self.dynamic[at]}
        others = [at for at in range(len(examples)) if at not in self.weights and at not in self.tensors]
        self.sizes = {at: known[_symbol(values[at])] for at in others if _symbol(values[at]) in known}
        self.numbers = [at for at in others if at not in self.sizes]  # part of the engine: another number, another engine
        self._divide(values)

    def _divide(self, values):
        """Which outputs the engine computes."""
        (node,) = [node for node in self.module.graph.nodes if node.op == "output"]
        self.single = not isinstance(node.args[0], (tuple, list))
        self.outputs = [node.args[0]] if self.single else list(node.args[0])
        given = {_storage(value) for value in values if isinstance(value, torch.Tensor)} - {None}
        self.computed = []  # nodes, each once
        for each in self.outputs:
            made = each.meta.get("example_value") if isinstance(each, fx.Node) else None
            if isinstance(made, torch.Tensor) and each.op != "placeholder" and _storage(made) not in given and each not in self.computed:
                self.computed.append(each)
        self.types = [each.meta["example_value"].dtype for each in self.computed]
        for dtype in [*self.types, *(values[at].dtype for at in [*self.tensors, *self.weights])]:
            if dtype.is_complex:
                raise Refused(f"it has tensors of {dtype}")

    def _copied(self, results):
        """A module of the same operators with other results."""
        graph, found = fx.Graph(), {}
        graph.graph_copy(self.module.graph, found)
        graph.output(fx.map_arg(results, lambda node: found[node]))
        return fx.GraphModule(self.module, graph), found

    def rest(self) -> fx.GraphModule | None:
        """What torch computes beside the engine: the other outputs, in order."""
        left = [each for each in self.outputs if each not in self.computed]
        if not left:
            return None
        module, _ = self._copied(tuple(left))
        module.graph.eliminate_dead_code()
        module.recompile()
        return module

    def baked(self, arguments: Sequence[Any]) -> fx.GraphModule:
        """A module of the tensors alone, with these weights and numbers inside, that gives what the engine is to compute."""
        module, found = self._copied(tuple(self.computed))
        graph = module.graph
        begin = next(node for node in graph.nodes if node.op != "placeholder")
        for at in self.weights:
            name = f"hone_weight_{at}"
            module.register_buffer(name, arguments[at].detach())
            with graph.inserting_before(begin):
                self._replace(found[self.places[at]], graph.get_attr(name))
        for at, size in self.sizes.items():
            with graph.inserting_before(begin):
                taken = graph.call_function(torch.ops.aten.sym_size.int, (found[self.places[size.tensor]], size.axis))
            self._replace(found[self.places[at]], taken)
        for at in self.numbers:
            node = found[self.places[at]]
            for user in list(node.users):
                user.args, user.kwargs = fx.map_arg((user.args, user.kwargs),
                                                    lambda each, node=node, number=arguments[at]: number if each is node else each)
            graph.erase_node(node)
        graph.eliminate_dead_code()
        graph.lint()
        module.recompile()
        return module.eval()

    @staticmethod
    def _replace(node, other):
        node.replace_all_uses_with(other)
        node.graph.erase_node(node)

    def identity(self, arguments: Sequence[Any]) -> bytes:
        """A digest of operators, constants, numbers, types and weights: of two processes' graphs that compute the same."""
        digest = hashlib.blake2b(digest_size=32)
        told = [torch.__version__, self.module.code, [(str(arguments[at].dtype), arguments[at].dim(), self.dynamic[at]) for at in self.tensors],
                [repr(arguments[at]) for at in self.numbers], [self.outputs.index(each) for each in self.computed]]
        digest.update(repr(told).encode())
        parts = [arguments[at] for at in self.weights]
        for node in self.module.graph.nodes:
            if node.op == "call_module":
                raise Refused(f"it calls the module {node.target}")
            if node.op == "get_attr":
                constant = attribute_of(self.module, node.target)
                if isinstance(constant, torch.Tensor):
                    parts.append(constant)
                else:
                    digest.update(getattr(constant, "code", repr(constant)).encode())
        with ThreadPoolExecutor(4) as pool:
            for each in pool.map(digest_of_tensor, parts):
                digest.update(each)
        return digest.digest()


def attribute_of(module: Any, path: str) -> Any:
    """What lies at a path of names."""
    for name in path.split("."):
        module = getattr(module, name)
    return module


def digest_of_tensor(tensor: torch.Tensor) -> bytes:
    """Of its type, sizes and elements."""
    elements = tensor.detach().cpu().resolve_neg().contiguous()
    return f"{tensor.dtype}{list(tensor.shape)}".encode() + _hone.digest(elements.data_ptr(), elements.nbytes)
