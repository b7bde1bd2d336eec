# SPDX-License-Identifier: Apache-2.0
"""The order of layers, and loops and conditionals as ONNX's Loop and If.

A loop's body is what lies between its boundaries: what depends on a recurrence or an iterator, and decides a recurrence's next value, an
output or the condition. It becomes one node; all else of the network stays where it is.
"""

import dataclasses

from .._base import onnx


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


def _bounds(record):
    """The loop or conditional whose edge a layer is; an attention is no graph of its own."""
    return record.owner if record.owner is not None and not hasattr(record.owner, "_entry") else None


def _edges(network):
    """{loop or conditional: its boundary layers}."""
    found = {}
    for record in network._records:
        if _bounds(record) is not None:
            found.setdefault(record.owner, []).append(record)
    return found


def _members(network, owner, edges):
    """The layers of a loop or conditional, in the order in which they were made. The boundary layers of another one inside hang together:
    one reads what is inside, and all belong to it."""
    boundary = edges[owner]
    depends = {tensor for record in boundary if record.kind in _ENTRIES for tensor in record.outputs}
    bounds, inside, grown = set(boundary), {}, True
    while grown:
        grown = False
        for record in network._records:
            if record in bounds or record in inside or not any(tensor in depends for tensor in record.inputs):
                continue
            for each in edges.get(_bounds(record), [record]):
                inside[each] = grown = True
                depends.update(each.outputs)
    waiting = [record.inputs[at] for record in boundary for at in _EXITS.get(record.kind, ()) if at < len(record.inputs)]
    needed = set()
    while waiting:
        tensor = waiting.pop()
        record = None if tensor is None else tensor._record
        if record is None or record in needed or record not in inside:
            continue
        for each in edges.get(_bounds(record), [record]):
            needed.add(each)
            waiting += each.inputs
    return [record for record in network._records if record in bounds or record in needed]


def units(network, records, without=None):
    """Layers and groups, each behind what it reads; of several groups inside of each other the outermost. `without`: the loop or
    conditional whose inside the records are."""
    edges, inner, chosen = _edges(network), {}, set(records)
    groups = [Group(owner, _members(network, owner, edges)) for owner in edges if owner is not without and edges[owner][0] in chosen]
    for group in sorted(groups, key=lambda each: len(each.records)):  # the outermost one counts
        inner.update(dict.fromkeys(group.records, group))
    return sort(list(dict.fromkeys(inner.get(record, record) for record in records)))


def order(network):
    """All of a network."""
    return units(network, network._records)


def reads(record):
    """The tensors that a layer depends on where it stands alone: a recurrence depends on what closes its loop only as part of it."""
    return [tensor for tensor in (record.inputs[:1] if record.kind == "RECURRENCE" else record.inputs) if tensor is not None]


def records_of(unit):
    """Its layers."""
    return unit.records if isinstance(unit, Group) else [unit]


def sort(units):
    """As they stand, except where one reads what comes later."""
    made = {tensor: unit for unit in units for record in records_of(unit) for tensor in record.outputs}
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
            sources = [made.get(tensor) for record in records_of(unit) for tensor in (record.inputs if group else reads(record)) if tensor is not None]
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
    length = e.node("Reshape", [e.cast(e.input(1), onnx.INT64), e.ints([1])]) if e.has(1) else None
    if length is None:
        return e.node("Identity", [one], e.out())
    sizes = [e.ints([1])] * rank
    sizes[axis] = length
    return e.node("Expand", [one, e.node("Concat", sizes, axis=0)], e.out())


FLAT = {"RECURRENCE": _same, "ITERATOR": _slice_type, "LOOP_OUTPUT": _output_type, "CONDITIONAL_INPUT": _same, "CONDITIONAL_OUTPUT": _same,
        "TRIP_LIMIT": lambda e, r: None, "CONDITION": lambda e, r: None, "ATTENTION_INPUT": lambda e, r: None}


# ---- the real thing ----

def lower(group, lowering, names):
    """(nodes, tensors, outputs) of a loop or a conditional over these names."""
    from .loops import lower_group

    return lower_group(group, lowering, names)
