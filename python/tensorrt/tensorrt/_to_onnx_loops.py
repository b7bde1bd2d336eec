# SPDX-License-Identifier: Apache-2.0
"""ONNX's Loop and If of a group of layers.

TensorRT asks a WHILE condition at the beginning of each iteration, ONNX at the end: what computes it is written twice, once in front of the
loop over the initial values, once in the body over the next ones.
"""

from . import _onnx, _to_onnx
from ._to_onnx_flow import sort


class _Body:
    """The layers between a group's boundaries, for a body."""

    def __init__(self, group, lowering):
        self.group, self.lowering, self.owner = group, lowering, group.owner
        self.own = {kind: [each for each in group.records if each.owner is group.owner and each.kind == kind]
                    for kind in {each.kind for each in group.records}}
        self.inside = [each for each in group.records if each.owner is not group.owner]
        self.tensors = {}
        self.first = next(each for each in group.records if each.owner is group.owner)

    def fail(self, why):
        raise _to_onnx.CannotLower(f"{self.owner.name}: {why}")

    def emitter(self, names, suffix):
        return _to_onnx.Emitter(names, self.first, f"{self.owner.name}/{suffix}")

    def nodes(self, names, wanted, suffix=""):
        """The nodes that make the tensors `wanted` of the entries; `names` gets what they make."""
        needed, waiting = set(), list(wanted)
        while waiting:
            record = waiting.pop()._record
            if record in self.inside and record not in needed:
                needed.add(record)
                waiting += [tensor for tensor in record.inputs if tensor is not None]
        if suffix:
            names.update({tensor: f"{names[tensor]}/{suffix}" for record in needed for tensor in record.outputs})
        made = []
        for record in _sorted_inside(self.lowering.network, self.inside, needed):
            if record.node is not None and not record.edited:
                self.lowering._keep(record)
                made += _to_onnx.parsed_nodes(record, names)
                continue
            emitter = _to_onnx.emitted(record, names, record.name + suffix)
            self.tensors.update(emitter.tensors)
            self.lowering.keep_weights(record, emitter.tensors)
            made += emitter.nodes
        return made


def _sorted_inside(network, inside, needed):
    """The needed ones in an order that works."""
    for record in inside:
        if record.owner is not None and not record.kind.startswith("ATTENTION"):
            raise _to_onnx.CannotLower(f"{record.owner.name} lies inside of a loop or conditional; that is not lowered")
    return sort([record for record in inside if record in needed])


def lower_group(group, lowering):
    """(nodes, tensors, outputs)."""
    body = _Body(group, lowering)
    return _conditional(body) if "CONDITIONAL_OUTPUT" in body.own or "CONDITION" in body.own else _loop(body)


def _conditional(body):
    outer, outputs = body.lowering.names, body.own.get("CONDITIONAL_OUTPUT", [])
    condition = body.own.get("CONDITION")
    if not condition or not outputs:
        body.fail("it needs a condition and an output")
    head = body.emitter(outer, "condition")
    branches = []
    for side, word in enumerate(("then", "else")):
        graph, names = _onnx.Graph(word), dict(outer)
        for entry in body.own.get("CONDITIONAL_INPUT", []):
            names[entry.outputs[0]] = outer[entry.inputs[0]]
        wanted = [record.inputs[side] for record in outputs]
        graph.nodes = body.nodes(names, wanted, word)
        for at, tensor in enumerate(wanted):
            graph.nodes.append(_onnx.Node("Identity", [names[tensor]], [f"{body.owner.name}/{word}{at}"]))
            graph.outputs.append(_onnx.Info(f"{body.owner.name}/{word}{at}", tensor._element, None))
        branches.append(graph)
    asked = head.node("Reshape", [outer[condition[0].inputs[0]], head.ints([])])
    names = [outer[record.outputs[0]] for record in outputs]
    head.nodes.append(_onnx.Node("If", [asked], names, body.owner.name, then_branch=branches[0], else_branch=branches[1]))
    return head.nodes, body.tensors, names


def _loop(body):
    outer, prefix = body.lowering.names, body.owner.name
    states, iterators = body.own.get("RECURRENCE", []), body.own.get("ITERATOR", [])
    limits = {record.params["kind"].name: record for record in body.own.get("TRIP_LIMIT", [])}
    if not limits:
        body.fail("it has no trip limit")
    if any(len(record.inputs) < 2 for record in states):
        body.fail("input 1 of a recurrence is missing, which closes the loop")
    head, names = body.emitter(outer, "head"), dict(outer)
    count = head.node("Reshape", [head.cast(outer[limits["COUNT"].inputs[0]], _onnx.INT64), head.ints([])]) if "COUNT" in limits else ""
    graph = _onnx.Graph("body")
    graph.inputs = [_onnx.Info(f"{prefix}/trip", _onnx.INT64, []), _onnx.Info(f"{prefix}/condition", _onnx.BOOL, [])]
    inner = body.emitter(names, "body")
    for record in states:
        names[record.outputs[0]] = f"{record.outputs[0]._name}/state"
        graph.inputs.append(_onnx.Info(names[record.outputs[0]], record.outputs[0]._element, None))
    for record in iterators:
        names[record.outputs[0]] = f"{record.outputs[0]._name}/slice"
        _iterate(inner, record, outer, names[record.outputs[0]], f"{prefix}/trip")
    outputs = body.own.get("LOOP_OUTPUT", [])
    scans = [record for record in outputs if record.params["kind"].name != "LAST_VALUE"]
    while_limit = limits.get("WHILE")
    wanted = [record.inputs[1] for record in states] + [record.inputs[0] for record in scans]
    computed = body.nodes(names, wanted, "step")
    following = inner.node("Identity", [f"{prefix}/condition"])
    initial = ""
    if while_limit is not None:
        initial, again, following = _condition(body, while_limit, states, names, outer, head)
    results = [inner.node("Identity", [names[record.inputs[1]]]) for record in states]
    results += [inner.node("Identity", [names[record.inputs[0]]]) for record in scans]
    # what was emitted first reads nothing of the layers; the identities behind them do
    split = len(states) + len(scans) + 1
    graph.nodes = inner.nodes[:-split] + computed + (again if while_limit is not None else []) + inner.nodes[-split:]
    kinds = [record.outputs[0]._element for record in states] + [record.inputs[0]._element for record in scans]
    graph.outputs = [_onnx.Info(following, _onnx.BOOL, [])] + [_onnx.Info(name, kind, None) for name, kind in zip(results, kinds)]
    finals = [f"{prefix}/last{at}" for at in range(len(states))] + [f"{prefix}/all{at}" for at in range(len(scans))]
    head.nodes.append(_onnx.Node("Loop", [count, initial, *(outer[record.inputs[0]] for record in states)], finals, prefix, body=graph))
    for record in outputs:
        _give(body, head, record, states, scans, finals, outer)
    return head.nodes, body.tensors, [outer[record.outputs[0]] for record in outputs]


def _iterate(inner, record, outer, output, trip):
    axis, at, source = record.params.get("axis", 0), trip, outer[record.inputs[0]]
    if record.params.get("reverse"):
        size = inner.node("Gather", [inner.node("Shape", [source]), inner.constant(axis, "int64")])
        at = inner.node("Sub", [inner.node("Sub", [size, inner.constant(1, "int64")]), trip])
    inner.node("Gather", [source, at], output, axis=axis)


def _condition(body, limit, states, names, outer, head):
    """(the condition before the loop, nodes of the one behind an iteration, its name)."""
    asked = limit.inputs[0]
    before = dict(outer)
    before.update({record.outputs[0]: outer[record.inputs[0]] for record in states})
    behind = {**names, **{record.outputs[0]: names[record.inputs[1]] for record in states}}
    for record in body.own.get("ITERATOR", []):
        before.pop(record.outputs[0], None)
        behind.pop(record.outputs[0], None)
    try:
        head.nodes += body.nodes(before, [asked], "first")
        nodes = body.nodes(behind, [asked], "next")
    except KeyError:
        body.fail("its WHILE condition reads an iterator, which has no value behind the last iteration")
    initial = head.node("Reshape", [before[asked], head.ints([])])
    last = body.emitter(behind, "next")
    name = last.node("Reshape", [behind[asked], last.ints([])])
    return initial, nodes + last.nodes, name


def _give(body, head, record, states, scans, finals, outer):
    """What a loop output is of the Loop's outputs."""
    if record in scans:
        name, axis = finals[len(states) + scans.index(record)], record.params.get("axis", 0)
        rank = len(record.inputs[0]._sizes or ()) + 1
        if record.params["kind"].name == "REVERSE":
            name = head.node("Slice", [name, head.ints([-1]), head.ints([-2 ** 62]), head.ints([0]), head.ints([-1])])
        perm = list(range(1, rank))
        perm.insert(axis, 0)
        head.node("Transpose", [name], outer[record.outputs[0]], perm=perm)
        return
    at = next((at for at, state in enumerate(states) if record.inputs[0] in (state.outputs[0], state.inputs[1])), None)
    if at is None:
        body.fail("a LAST_VALUE output is neither a recurrence nor what one is set to")
    head.node("Identity", [finals[at]], outer[record.outputs[0]])
