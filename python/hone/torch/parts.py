# SPDX-License-Identifier: Apache-2.0
"""A graph that an engine cannot compute as a whole, divided: engines for what they can, torch for the rest.

The exported program, without operators that write in place, is put into levels: each operator comes as early as its operands allow, on
even levels those of engines, on odd ones those of torch. So there is no circle among parts, and branches beside each other share one.
Sizes are fixed here: each set of shapes is divided for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from ..base import Error
from . import exporting, fused
from .graph import Refused, attribute_of

LEAST_OPERATORS = 8  # of a part without products: less is not worth an engine's call
PRODUCTS = ("conv", "mm", "matmul", "linear", "attention", "lstm", "gru")
FREE = ("view", "reshape", "permute", "transpose", "getitem", "expand", "squeeze", "slice", "select", "alias", "detach")
MOST_ROUNDS = 4  # of finding operators that are refused


class Part(NamedTuple):
    """A piece of the graph: its module reads `reads` and gives `gives`, as places among all values."""

    module: fx.GraphModule
    reads: list[int]
    gives: list[int]
    for_engine: bool

    def examples(self) -> list[torch.Tensor]:
        """Tensors such as it reads."""
        known = [node.meta["val"] for node in self.module.graph.nodes if node.op == "placeholder"]
        return [torch.zeros(each.shape, dtype=each.dtype, device=each.device) for each in known]

    def types(self) -> list[torch.dtype]:
        """Of what it gives."""
        (output,) = [node for node in self.module.graph.nodes if node.op == "output"]
        return [node.meta["val"].dtype for node in output.args[0]]


class PartRefused(Exception):
    """What computes a part cannot be made."""

    def __init__(self, part: Part, why: str):
        super().__init__(why)
        self.part = part


def name_of(node: fx.Node) -> str:
    """Of its operator."""
    return str(node.target).removesuffix(".default")


def functional(module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> fx.GraphModule:
    """The module as a graph of operators that the ONNX exporter knows, where they have such a form, and that write nothing in place."""
    program = exporting.exported(module, tensors, [[] for _ in tensors], exporting.check_changes)
    fused.teach()
    try:
        from torch.onnx._internal.exporter import _fx_passes

        with exporting.quietly(), torch.no_grad():
            program = _fx_passes.decompose_with_registry(program, _registry())
        made = program.module(check_guards=False)
    except Exception as error:
        raise Refused(f"torch.export: {exporting.reason(error)}") from error
    for node in list(made.graph.nodes):
        if not node.users and node.op == "call_function" and "_assert" in str(node.target):
            made.graph.erase_node(node)
    made.graph.eliminate_dead_code()
    return made


def _registry():
    from torch.onnx._internal.exporter import _registration

    return _registration.ONNXRegistry.from_torchlib()


def is_random(node: fx.Node) -> bool:
    """Whether it draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not exporting.inert(node)


def _values(thing):
    return [each.meta.get("val") for each in thing if isinstance(each, fx.Node)]


def _flat(value):
    return [each for item in value for each in _flat(item)] if isinstance(value, (tuple, list)) else [value]


class Division:
    """Which operators go where."""

    def __init__(self, module: fx.GraphModule, refused: Iterable[str] = ()):
        """`refused`: names of operators that engines do not take, for the user's eyes and another process's."""
        self.module, self.refused = module, set(refused)
        registry = _registry()
        self.nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        strange = [node for node in module.graph.nodes if node.op in ("call_module", "call_method")]
        if strange:
            raise Refused(f"it calls {strange[0].target}")
        for node in self.nodes:
            if not self._is_free_of_reasons(node, registry):
                self.refused.add(name_of(node))
        if any(isinstance(each, torch.SymInt) for node in self.nodes for value in _flat([node.meta.get("val")])
               for each in (value.shape if isinstance(value, torch.Tensor) else [value])):
            raise Refused("the data decide sizes")
        self.random = any(is_random(node) for node in self.nodes)

    def _is_free_of_reasons(self, node, registry):
        tensors = [each for each in _flat([node.meta.get("val"), *_values(node.all_input_nodes)]) if isinstance(each, torch.Tensor)]
        if any(each.dtype.is_complex for each in tensors) or is_random(node):
            return False
        return not isinstance(node.target, torch._ops.OpOverload) or registry.is_registered(node.target)

    def parts(self) -> list[Part]:
        """The pieces, in the order in which they can be computed."""
        for_torch = {node for node in self.nodes if name_of(node) in self.refused}
        for _ in range(2):
            levels = self._levels(for_torch)
            small = [nodes for level, nodes in levels.items() if level % 2 == 0 and not _is_worth_it(nodes)]
            for_torch.update(node for nodes in small for node in nodes)
        levels = self._levels(for_torch)
        places = {node: at for at, node in enumerate(self.module.graph.nodes)}
        return [self._part(nodes, places, level % 2 == 0) for level, nodes in sorted(levels.items())]

    def _levels(self, for_torch):
        level: dict[fx.Node, int] = {}
        found: dict[int, list[fx.Node]] = {}
        for node in self.nodes:
            if "getitem" in str(node.target):  # tuples stay inside
                level[node] = level.get(node.args[0], 0)
            else:
                odd = node in for_torch
                least = max((level.get(each, 0) for each in node.all_input_nodes), default=0)
                level[node] = least + (least % 2 != odd)
            found.setdefault(level[node], []).append(node)
        return found

    def _part(self, nodes, places, for_engine):
        inside, graph, copies = set(nodes), fx.Graph(), {}
        reads = []
        for each in dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside):
            if each.op == "get_attr":
                copies[each] = graph.get_attr(each.target)
            else:
                reads.append(each)
        for number, each in enumerate(reads):
            copies[each] = graph.placeholder(f"in{number}")
            copies[each].meta = dict(each.meta)
        for node in nodes:
            copies[node] = graph.node_copy(node, lambda each: copies[each])
        gives = [node for node in nodes if any(user not in inside for user in node.users) and not isinstance(node.meta.get("val"), (tuple, list))]
        graph.output(tuple(copies[each] for each in gives))
        module = fx.GraphModule(self.module, _placeholders_first(graph))
        return Part(module, [places[each] for each in reads], [places[each] for each in gives], for_engine)

    def alone(self, node: fx.Node) -> Part:
        """An operator by itself."""
        return self._part([node], {each: at for at, each in enumerate(self.module.graph.nodes)}, True)

    def refuse(self, part: Part, tries: Callable[[Part], Any]) -> bool:
        """Finds the operators for which a part is refused: whether there are any."""
        names = {name_of(node) for node in part.module.graph.nodes if node.op == "call_function"}
        seen = set()
        for node in self.nodes:
            name = name_of(node)
            if name not in names or name in seen or "getitem" in name or isinstance(node.meta.get("val"), (tuple, list)):
                continue
            seen.add(name)
            try:
                tries(self.alone(node))
            except (Refused, Error):
                self.refused.add(name)
        return bool(names & self.refused)


def _placeholders_first(graph):
    """The same graph with its inputs ahead of its constants."""
    ordered, found = fx.Graph(), {}
    for wanted in (True, False):
        for node in graph.nodes:
            if (node.op == "placeholder") == wanted and node.op != "output":
                found[node] = ordered.node_copy(node, lambda each: found[each])
    (output,) = [node for node in graph.nodes if node.op == "output"]
    ordered.output(fx.map_arg(output.args[0], lambda each: found[each]))
    return ordered


def _is_worth_it(nodes):
    names = [name_of(node) for node in nodes]
    return any(word in name for name in names for word in PRODUCTS) or \
        sum(not any(word in name for word in FREE) for name in names) >= LEAST_OPERATORS


class Divided:
    """A graph for one set of shapes, in parts."""

    def __init__(self, module: torch.nn.Module, tensors: Sequence[torch.Tensor], refused: Iterable[str], tries: Callable[[Part], Any],
                 makes: Callable[[Part], Any], why: str):
        """`tries` exports a part, `makes` gives what has slots for it (slot(tensors, stream)), and raises PartRefused. `why` the whole is
        refused."""
        whole = functional(module, tensors)
        division = Division(whole, refused)
        for _ in range(MOST_ROUNDS):
            self.parts = division.parts()
            try:
                self.programs = [makes(part) if part.for_engine else None for part in self.parts]
                break
            except PartRefused as error:
                if not division.refuse(error.part, tries):
                    raise Refused(why) from error
        else:
            raise Refused(why)
        if not any(self.programs) or not division.refused:
            raise Refused(why)
        self.random, self.refused = division.random, sorted(division.refused)
        self.left = sum(node.op == "call_function" for part in self.parts if not part.for_engine for node in part.module.graph.nodes)
        self.operators = len(division.nodes)
        self._know_places(whole)

    def _know_places(self, whole):
        places = {node: at for at, node in enumerate(whole.graph.nodes)}
        (output,) = [node for node in whole.graph.nodes if node.op == "output"]
        outputs = torch.utils._pytree.tree_leaves(output.args[0])
        self.inputs = [places[node] for node in whole.graph.nodes if node.op == "placeholder"]
        self.constants = {places[node]: attribute_of(whole, node.target) for node in outputs if node.op == "get_attr"}
        self.outputs = [places[each] for each in outputs]
        last = {at: number for number, part in enumerate(self.parts) for at in part.reads}
        self.ends = [[at for at, end in last.items() if end == number and at not in self.outputs] for number in range(len(self.parts))]

    def told(self) -> str:
        """What a person reads of it."""
        engines = sum(map(bool, self.programs))
        return f"{self.left} of {self.operators} operators to torch, beside {engines} {'engine' if engines == 1 else 'engines'}: {', '.join(self.refused)}"

    def slot(self, stream: int) -> DividedSlot:
        """Contexts for one call at a time."""
        return DividedSlot(self, stream)


class DividedSlot:
    """What a Slot is of an engine."""

    def __init__(self, divided: Divided, stream: int):
        self.divided = divided
        slots = [program and program.slot(part.examples(), stream) for part, program in zip(divided.parts, divided.programs)]
        self.steps = [(part.reads, part.gives, slot.run if slot else _spread(part.module), ends)
                      for part, slot, ends in zip(divided.parts, slots, divided.ends)]

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The graph's outputs."""
        values = {**self.divided.constants, **dict(zip(self.divided.inputs, tensors))}
        for reads, gives, computes, ended in self.steps:
            values.update(zip(gives, computes([values[at] for at in reads])))
            for at in ended:
                del values[at]  # its memory is free for what comes
        return [values[at] for at in self.divided.outputs]

    def moved(self, _: int) -> DividedSlot:
        raise Error("a graph that torch computes in parts has not run in this stream\n  hint: call the model a few times there before the capture")


def _spread(module):
    return lambda tensors: module(*tensors)
