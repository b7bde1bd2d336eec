# SPDX-License-Identifier: Apache-2.0
"""The order of layers, and loops and conditionals as ONNX's Loop and If.

A loop's body is what lies between its boundaries: what depends on a recurrence or an iterator, and decides a recurrence's next value, an
output or the condition. It becomes one node; all else of the network stays where it is.
"""

import dataclasses

from . import _onnx


@dataclasses.dataclass(eq=False)
class Group:
    """A loop or a conditional, with all layers inside."""

    owner: object
    records: list

    @property
    def name(self):
        return self.owner.name


_ENTRIES = ("RECURRENCE", "ITERATOR", "CONDITIONAL_INPUT")
_EXITS = {"RECURRENCE": (1,), "LOOP_OUTPUT": (0,), "TRIP_LIMIT": (0,), "CONDITIONAL_OUTPUT": (0, 1)}


def _members(network, owner):
    """The layers of a loop or conditional, in the order in which they were made."""
    boundary = [record for record in network._records if record.owner is owner]
    depends = {tensor for record in boundary if record.kind in _ENTRIES for tensor in record.outputs}
    bounds = set(boundary)
    inside, grown = {}, True
    while grown:
        grown = False
        for record in network._records:
            if record in bounds or record in inside or not any(tensor in depends for tensor in record.inputs):
                continue
            inside[record] = grown = True
            depends.update(record.outputs)
    waiting = [record.inputs[at] for record in boundary for at in _EXITS.get(record.kind, ()) if at < len(record.inputs)]
    needed = set()
    while waiting:
        record = waiting.pop()._record
        if record is not None and record not in needed and record in inside:
            needed.add(record)
            waiting += [tensor for tensor in record.inputs if tensor is not None]
    return [record for record in network._records if record in bounds or record in needed]


def order(network):
    """Layers and groups, each behind what it reads."""
    groups, inner = [], {}
    for owner in network._owners:
        if hasattr(owner, "_entry"):
            continue  # an attention is no graph of its own
        group = Group(owner, _members(network, owner))
        if group.records:
            groups.append(group)
    for group in sorted(groups, key=lambda each: len(each.records)):  # the outermost one counts
        inner.update(dict.fromkeys(group.records, group))
    units = list(dict.fromkeys(inner.get(record, record) for record in network._records))
    return sort(units)


def reads(record):
    """The tensors that a layer depends on where it stands alone: a recurrence depends on what closes its loop only as part of it."""
    return [tensor for tensor in (record.inputs[:1] if record.kind == "RECURRENCE" else record.inputs) if tensor is not None]


def _records(unit):
    return unit.records if isinstance(unit, Group) else [unit]


def sort(units):
    """As they stand, except where one reads what comes later."""
    made = {tensor: unit for unit in units for record in _records(unit) for tensor in record.outputs}
    done, result = set(), []
    for first in units:
        waiting = [(first, False)]
        while waiting:
            unit, ready = waiting.pop()
            if unit in done and not ready:
                continue
            if ready:
                result.append(unit)
                continue
            done.add(unit)
            waiting.append((unit, True))
            group = isinstance(unit, Group)
            sources = [made.get(tensor) for record in _records(unit) for tensor in (record.inputs if group else reads(record)) if tensor is not None]
            waiting += [(source, False) for source in reversed(sources) if source is not None and source is not unit and source not in done]
    return result


# ---- what a boundary is where only types are asked ----

def _same(e, r):
    e.node("Identity", [e.input(0)], e.out())


def _slice_type(e, r):
    e.node("Gather", [e.input(0), e.constant(0, "int64")], e.out(), axis=e.param("axis", 0))


def _output_type(e, r):
    if e.param("kind").name == "LAST_VALUE":
        return _same(e, r)
    axis = e.param("axis", 0)
    one = e.node("Unsqueeze", [e.input(0), e.ints([axis])])
    rank = e.rank(0) + 1
    length = e.node("Reshape", [e.cast(e.input(1), _onnx.INT64), e.ints([1])]) if e.has(1) else None
    if length is None:
        return e.node("Identity", [one], e.out())
    sizes = [e.ints([1])] * rank
    sizes[axis] = length
    return e.node("Expand", [one, e.node("Concat", sizes, axis=0)], e.out())


FLAT = {"RECURRENCE": _same, "ITERATOR": _slice_type, "LOOP_OUTPUT": _output_type, "CONDITIONAL_INPUT": _same, "CONDITIONAL_OUTPUT": _same,
        "TRIP_LIMIT": lambda e, r: None, "CONDITION": lambda e, r: None, "ATTENTION_INPUT": lambda e, r: None}


# ---- the real thing ----

def lower(group, lowering):
    """(nodes, tensors, outputs) of a loop or a conditional."""
    from ._to_onnx_loops import lower_group

    return lower_group(group, lowering)
