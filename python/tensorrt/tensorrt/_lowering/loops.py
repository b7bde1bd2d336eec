# SPDX-License-Identifier: Apache-2.0
"""ONNX's Loop and If of a group of layers, which may hold further groups.

TensorRT asks a WHILE condition at the beginning of each iteration, ONNX at the end: what computes it is written twice, once in front of the
loop over the initial values and each iterator's first slice, once in the body over the next ones. A last value that is no recurrence
becomes a state of the Loop's own, which begins as what the layers make of the initial values.
"""

from .._base import onnx
from . import flow, to_onnx


class _Body:
    """The layers between a group's boundaries, for a body."""

    def __init__(self, group, lowering, outer):
        self.group, self.lowering, self.owner, self.outer = group, lowering, group.owner, outer
        self.own = {}
        for record in group.records:
            if record.owner is group.owner:
                self.own.setdefault(record.kind, []).append(record)
        self.inside = [each for each in group.records if each.owner is not group.owner]
        self.units = flow.units(lowering.network, self.inside, group.owner)
        self.made = {tensor: unit for unit in self.units for record in flow.records_of(unit) for tensor in record.outputs}
        self.tensors = {}
        self.first = next(each for each in group.records if each.owner is group.owner)
        self.prefix = lowering.fresh(self.owner.name)

    def fail(self, why):
        raise to_onnx.CannotLower(f"{self.owner.name}: {why}")

    def emitter(self, names, suffix):
        return to_onnx.Emitter(names, self.first, f"{self.prefix}/{suffix}")

    def _needed(self, wanted):
        """The units that make these tensors."""
        needed, waiting = set(), list(wanted)
        while waiting:
            unit = self.made.get(waiting.pop())
            if unit is not None and unit not in needed:
                needed.add(unit)
                waiting += [tensor for record in flow.records_of(unit) for tensor in record.inputs if tensor is not None]
        return needed

    def nodes(self, names, wanted, suffix):
        """The nodes that make the tensors `wanted` of the entries; `names` gets what they make."""
        needed, made = self._needed(wanted), []
        for unit in needed:
            names.update({tensor: f"{self.prefix}/{suffix}/{tensor._name}" for record in flow.records_of(unit) for tensor in record.outputs})
        for unit in self.units:
            if unit in needed:
                made += self._unit(unit, names, suffix)
        return made

    def _unit(self, unit, names, suffix):
        if isinstance(unit, flow.Group):
            nodes, tensors, _ = lower_group(unit, self.lowering, names)
            self.tensors.update(tensors)
            return nodes
        if unit.node is not None and not unit.edited:
            self.lowering._keep(unit)
            return to_onnx.parsed_nodes(unit, names)
        emitter = to_onnx.emitted(unit, names, f"{self.prefix}/{suffix}/{unit.name}")
        self.tensors.update(emitter.tensors)
        self.lowering.keep_weights(unit, emitter.tensors)
        return emitter.nodes


def lower_group(group, lowering, outer):
    """(nodes, tensors, outputs) over the names of what lies outside."""
    body = _Body(group, lowering, outer)
    return _conditional(body) if "CONDITIONAL_OUTPUT" in body.own or "CONDITION" in body.own else _Loop(body).lower()


def _conditional(body):
    outer, outputs = body.outer, body.own.get("CONDITIONAL_OUTPUT", [])
    condition = body.own.get("CONDITION")
    if not condition or not outputs:
        body.fail("it needs a condition and an output")
    head = body.emitter(outer, "condition")
    branches = []
    for side, word in enumerate(("then", "else")):
        graph, names = onnx.Graph(word), dict(outer)
        for entry in body.own.get("CONDITIONAL_INPUT", []):
            names[entry.outputs[0]] = outer[entry.inputs[0]]
        wanted = [record.inputs[side] for record in outputs]
        graph.nodes = body.nodes(names, wanted, word)
        for at, tensor in enumerate(wanted):
            graph.nodes.append(onnx.Node("Identity", [names[tensor]], [f"{body.prefix}/{word}{at}"]))
            graph.outputs.append(onnx.Info(f"{body.prefix}/{word}{at}", tensor._element, None))
        branches.append(graph)
    asked = head.node("Reshape", [outer[condition[0].inputs[0]], head.ints([])])
    names = [outer[record.outputs[0]] for record in outputs]
    head.nodes.append(onnx.Node("If", [asked], names, body.prefix, then_branch=branches[0], else_branch=branches[1]))
    return head.nodes, body.tensors, names


def _kind(record):
    return record.params["kind"].name


class _Loop:
    """A loop in the making: what stands in front of it, its body, and what is made of its results."""

    def __init__(self, body):
        self.body, self.outer, self.prefix = body, body.outer, body.prefix
        self.states, self.iterators = body.own.get("RECURRENCE", []), body.own.get("ITERATOR", [])
        self.limits = {_kind(record): record for record in body.own.get("TRIP_LIMIT", [])}
        if not self.limits:
            body.fail("it has no trip limit")
        if any(len(record.inputs) < 2 or record.inputs[1] is None for record in self.states):
            body.fail("input 1 of a recurrence is missing, which closes the loop")
        self.outputs = body.own.get("LOOP_OUTPUT", [])
        self.scans = [record for record in self.outputs if _kind(record) != "LAST_VALUE"]
        self.kept = [record for record in self.outputs if _kind(record) == "LAST_VALUE" and self._state_of(record) is None]
        self.head, self.names = body.emitter(self.outer, "head"), dict(self.outer)

    def _state_of(self, record):
        """Which state an output is the last value of; None."""
        return next((at for at, state in enumerate(self.states) if record.inputs[0] in (state.outputs[0], state.inputs[1])), None)

    def lower(self):
        head, outer, prefix, body = self.head, self.outer, self.prefix, self.body
        count = ""
        if "COUNT" in self.limits:
            count = head.node("Reshape", [head.cast(outer[self.limits["COUNT"].inputs[0]], onnx.INT64), head.ints([])])
        before = self._first()
        initial = head.node("Reshape", [before[self.limits["WHILE"].inputs[0]], head.ints([])]) if "WHILE" in self.limits else ""
        graph = self._graph()
        finals = [f"{prefix}/last{at}" for at in range(len(self.states) + len(self.kept))] + [f"{prefix}/all{at}" for at in range(len(self.scans))]
        begin = [outer[record.inputs[0]] for record in self.states] + [before[record.inputs[0]] for record in self.kept]
        head.nodes.append(onnx.Node("Loop", [count, initial, *begin], finals, prefix, body=graph))
        for record in self.outputs:
            self._give(record, finals)
        return head.nodes, body.tensors, [outer[record.outputs[0]] for record in self.outputs]

    def _first(self):
        """{tensor: name} of what the layers make of the initial values, as far as something in front of the loop reads it."""
        wanted = [record.inputs[0] for record in self.kept] + ([self.limits["WHILE"].inputs[0]] if "WHILE" in self.limits else [])
        before = dict(self.outer)
        if not wanted:
            return before
        before.update({record.outputs[0]: self.outer[record.inputs[0]] for record in self.states})
        zero = self.head.constant(0, "int64")
        for record in self.iterators:
            before[record.outputs[0]] = self._slice(self.head, record, zero)
        self.head.nodes += self.body.nodes(before, wanted, "first")
        return before

    def _slice(self, e, record, trip, output=None):
        """An iterator's slice of an iteration."""
        axis, at, source = record.params.get("axis", 0), trip, self.outer[record.inputs[0]]
        if record.params.get("reverse"):
            size = e.node("Gather", [e.node("Shape", [source]), e.constant(axis, "int64")])
            at = e.node("Sub", [e.node("Sub", [size, e.constant(1, "int64")]), trip])
        return e.node("Gather", [source, at], output, axis=axis)

    def _next_slice(self, e, record):
        """That of the next iteration; behind the last one, the last one again."""
        size = e.node("Gather", [e.node("Shape", [self.outer[record.inputs[0]]]), e.constant(record.params.get("axis", 0), "int64")])
        following = e.node("Add", [f"{self.prefix}/trip", e.constant(1, "int64")])
        return self._slice(e, record, e.node("Min", [following, e.node("Sub", [size, e.constant(1, "int64")])]))

    def _graph(self):
        """What happens in one iteration."""
        graph, prefix, names, states = onnx.Graph("body"), self.prefix, self.names, self.states
        graph.inputs = [onnx.Info(f"{prefix}/trip", onnx.INT64, []), onnx.Info(f"{prefix}/condition", onnx.BOOL, [])]
        entries = self.body.emitter(names, "body")
        for record in states:
            names[record.outputs[0]] = f"{prefix}/{record.outputs[0]._name}/state"
            graph.inputs.append(onnx.Info(names[record.outputs[0]], record.outputs[0]._element, None))
        for at, record in enumerate(self.kept):
            graph.inputs.append(onnx.Info(f"{prefix}/kept{at}", record.inputs[0]._element, None))
        for record in self.iterators:
            names[record.outputs[0]] = self._slice(entries, record, f"{prefix}/trip", f"{prefix}/{record.outputs[0]._name}/slice")
        told = [record.inputs[1] for record in states] + [record.inputs[0] for record in self.kept + self.scans]
        computed = self.body.nodes(names, told, "step")
        exits = self.body.emitter(names, "exit")
        following, again = self._condition(exits)
        results = [exits.node("Identity", [names[tensor]]) for tensor in told]
        graph.nodes = entries.nodes + computed + again + exits.nodes
        graph.outputs = [onnx.Info(following, onnx.BOOL, [])] + [onnx.Info(name, tensor._element, None) for name, tensor in zip(results, told)]
        return graph

    def _condition(self, exits):
        """(the name of whether there is another iteration, nodes that make it)."""
        if "WHILE" not in self.limits:
            return exits.node("Identity", [f"{self.prefix}/condition"]), []
        asked, names = self.limits["WHILE"].inputs[0], self.names
        behind = {**names, **{record.outputs[0]: names[record.inputs[1]] for record in self.states}}
        made = self.body.emitter(behind, "next")
        for record in self.iterators:
            behind[record.outputs[0]] = self._next_slice(made, record)
        again = self.body.nodes(behind, [asked], "again")
        last = self.body.emitter(behind, "last")
        return last.node("Reshape", [behind[asked], last.ints([])]), made.nodes + again + last.nodes

    def _give(self, record, finals):
        """What a loop output is of the Loop's outputs."""
        head, output, places = self.head, self.outer[record.outputs[0]], len(self.states) + len(self.kept)
        if _kind(record) == "LAST_VALUE":
            at = self._state_of(record)
            head.node("Identity", [finals[len(self.states) + self.kept.index(record) if at is None else at]], output)
            return
        name, axis = finals[places + self.scans.index(record)], record.params.get("axis", 0)
        rank = len(record.inputs[0]._sizes or ()) + 1
        if _kind(record) == "REVERSE":
            name = head.node("Slice", [name, head.ints([-1]), head.ints([-2 ** 62]), head.ints([0]), head.ints([-1])])
        limit = self.limits.get("COUNT")
        if len(record.inputs) > 1 and record.inputs[1] is not None and (limit is None or "WHILE" in self.limits or
                                                                        record.inputs[1] is not limit.inputs[0]):
            name = self._of_length(name, self.outer[record.inputs[1]], rank, record.inputs[0]._element)
        perm = list(range(1, rank))
        perm.insert(axis, 0)
        head.node("Transpose", [name], output, perm=perm)

    def _of_length(self, name, length, rank, element):
        """So many of the slices; zeros where there are fewer."""
        head = self.head
        length = head.node("Reshape", [head.cast(length, onnx.INT64), head.ints([1])])
        shape = head.node("Shape", [name])
        count, rest = head.node("Slice", [shape, head.ints([0]), head.ints([1])]), head.node("Slice", [shape, head.ints([1]), head.ints([rank])])
        missing = head.node("Max", [head.node("Sub", [length, count]), head.ints([0])])
        zeros = head.node("ConstantOfShape", [head.node("Concat", [missing, rest], axis=0)])
        zeros = zeros if element == onnx.FLOAT else head.cast(zeros, element)
        filled = head.node("Concat", [name, zeros], axis=0)
        kept = head.node("Slice", [filled, head.ints([0]), length, head.ints([0])])
        return head.node("Reshape", [kept, head.node("Concat", [length, rest], axis=0)])
