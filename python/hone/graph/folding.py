# SPDX-License-Identifier: Apache-2.0
"""Constants folded: the library computes what follows from the model alone, and the tensors of the graph become constants where they stand.
Pairs of casts that undo each other go, and Ifs whose condition is known become their branch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import Error
from .cleaning import captured, defined, forget_bodies
from .nodes import Node
from .tensors import Constant, LazyValues, Variable
from .types import dtype_of, number_of

log = logging.getLogger("hone.graph")

UNFOLDED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")  # what a quantised model says by them would be lost
# By ONNX's numbers: which types hold every value of a type exactly.
_INTEGERS = {2: (0, 8), 3: (1, 8), 4: (0, 16), 5: (1, 16), 6: (1, 32), 7: (1, 64), 12: (0, 32), 13: (0, 64)}
_REALS = {10: (11, 5), 16: (8, 8), 1: (24, 8), 11: (53, 11)}  # bits of the significand and of the exponent
# Between casts from integers to floats and back these are computed on the integers: exactly, where the floats would have rounded.
_ON_INTEGERS = ("Add", "Sub", "Mul", "Max", "Min", "Concat")


@dataclass
class Rules:
    """What Graph.fold_constants() is given."""

    fold_shapes: bool = True
    recurse_subgraphs: bool = True
    error_ok: bool = True
    flatten_subgraphs: bool = True
    size_threshold: int | None = None
    should_exclude_node: Callable[[Node], bool] | None = None


def fold(graph: Any, rules: Rules) -> None:
    _take_constants(graph)
    _drop_casts(graph)
    try:
        _evaluate(graph, rules)
    except Error as error:
        if not rules.error_ok:
            raise
        log.warning("constants of %s are not folded: %s", graph.name, error)
    if rules.recurse_subgraphs:
        for body in graph.subgraphs():
            fold(body, rules)
    if rules.flatten_subgraphs:
        _flatten(graph)


def _take_constants(graph: Any) -> None:
    """Results of Constant nodes become constants; the nodes stay, without results, until cleanup()."""
    for node in graph.nodes:
        if node.op != "Constant" or node.domain or len(node.outputs) != 1 or len(node.attrs) != 1:
            continue
        (name, value), = node.attrs.items()
        if isinstance(value, Constant):
            values = value._values
        elif name in ("value_int", "value_ints") and isinstance(value, (int, list)):
            values = np.array(value, np.int64)
        elif name in ("value_float", "value_floats") and isinstance(value, (int, float, list)):
            values = np.array(value, np.float32)
        else:
            continue
        result = node.outputs[0]
        if any(each is result for each in graph.outputs):
            continue
        node.outputs.clear()
        result.to_constant(values)


def _sealed(graph: Any) -> Any:
    """The library's graph of it that stands for itself: what a body reads from around it is given."""
    from .writing import to_library

    sealed = graph.copy({id(tensor): tensor.copy() for tensor in captured(graph).values()})
    sealed.inputs += [tensor for tensor in captured(sealed).values() if isinstance(tensor, Variable)]
    sealed.__dict__.update(_loose=[], _given=[])
    return to_library(sealed, with_functions=not hasattr(sealed, "unique_id"))  # functions hold no functions


def infer(graph: Any) -> None:
    handle = _sealed(graph)
    handle.infer(True)
    told = handle.read()
    found = {each[0]: each for part in ("values", "outputs") for each in told[part]}
    for node in graph.nodes:
        for tensor in node.outputs:
            if isinstance(tensor, Variable) and tensor.name in found and tensor.type == "tensor_type":
                _, number, sizes, *_ = found[tensor.name]
                tensor.dtype = dtype_of(number) if number else tensor.dtype
                tensor.shape = tensor.shape if sizes is None else [None if size == -1 else size for size in sizes]


def _evaluate(graph: Any, rules: Rules) -> None:
    handle = _sealed(graph)
    stays = rules.should_exclude_node or (lambda node: node.op in UNFOLDED)
    excluded = [tensor.name for node in graph.nodes if stays(node) for tensor in node.outputs if tensor.name]
    while handle.fold(not rules.fold_shapes, rules.size_threshold or 0, excluded):
        pass
    folded = {each[0]: each for each in handle.read()["weights"]}
    fixed = {id(tensor) for tensor in [*graph.inputs, *graph.outputs]}
    for node in graph.nodes:
        for tensor in list(node.outputs):
            if isinstance(tensor, Variable) and tensor.name in folded and id(tensor) not in fixed:
                tensor.inputs.clear()
                tensor.to_constant(LazyValues._at(handle, folded[tensor.name]))


def replace(bodies: list, old: Any, new: Any) -> None:
    """Who reads one tensor, in the graph's bodies too, reads another one; outputs of the graph itself stay."""
    for node in list(old.outputs):
        for at, tensor in enumerate(node.inputs):
            if tensor is old:
                node.inputs[at] = new
    for body in bodies:
        if any(tensor is old for tensor in body.outputs):
            body.outputs = [new if tensor is old else tensor for tensor in body.outputs]


def _number(dtype: Any) -> int:
    try:
        return number_of(dtype)
    except Error:
        return 0


def _holds(wide: int, narrow: int) -> bool:
    """Whether each value of one type is one of another type's."""
    if wide == narrow:
        return True
    if wide in _INTEGERS and narrow in _INTEGERS:
        (wide_sign, wide_bits), (sign, bits) = _INTEGERS[wide], _INTEGERS[narrow]
        return wide_bits - wide_sign >= bits - sign and wide_sign >= sign
    if wide in _REALS and narrow in _REALS:
        return all(have >= need for have, need in zip(_REALS[wide], _REALS[narrow]))
    return wide in _REALS and narrow in _INTEGERS and _REALS[wide][0] >= _INTEGERS[narrow][1] and _REALS[wide][1] > 5


def _source(tensor: Any) -> Any:
    """What a Cast makes this tensor of; None: no Cast makes it."""
    if len(tensor.inputs) != 1 or tensor.inputs[0].op != "Cast" or tensor.inputs[0].domain or len(tensor.inputs[0].inputs) != 1:
        return None
    return tensor.inputs[0].inputs[0]


def _drop_casts(graph: Any) -> None:
    bodies = list(graph.subgraphs(recursive=True))
    outputs = {id(tensor) for tensor in graph.outputs}
    fixed = outputs | {id(tensor) for body in bodies for tensor in body.outputs}
    for node in graph.nodes:
        if node.op in _ON_INTEGERS and not node.domain and len(node.outputs) == 1 and id(node.outputs[0]) not in fixed:
            _stay_integers(graph, node, outputs, bodies)
    for node in graph.nodes:
        if node.op != "Cast" or node.domain or len(node.inputs) != 1 or len(node.outputs) != 1:
            continue
        middle = node.inputs[0]
        source = _source(middle)
        if source is None or not (_number(source.dtype) and _holds(_number(middle.inputs[0].attrs.get("to")), _number(source.dtype))):
            continue
        if _number(node.attrs.get("to")) == _number(source.dtype) and id(node.outputs[0]) not in outputs:
            replace(bodies, node.outputs[0], source)
        else:
            node.inputs[0] = source


def _stay_integers(graph: Any, node: Node, outputs: set[int], bodies: list) -> None:
    """Integers that are cast to floats, computed with and cast back: without the casts."""
    result = node.outputs[0]
    casts = list(result.outputs)
    targets = {_number(cast.attrs.get("to")) for cast in casts if cast.op == "Cast" and not cast.domain}
    if len(targets) != 1 or any(cast.op != "Cast" for cast in casts):
        return
    target = targets.pop()
    if target not in (6, 7):
        return
    operands: list = []
    for tensor in node.inputs:
        source = _source(tensor)
        if source is not None and _number(source.dtype) == target and _number(tensor.inputs[0].attrs.get("to")) in _REALS:
            operands.append(source)
        elif isinstance(tensor, Constant) and _whole(tensor, target) is not None:
            operands.append((tensor.name, _whole(tensor, target)))
        else:
            return
    if all(isinstance(operand, tuple) for operand in operands):
        return
    names = set(graph.tensors())
    for at, operand in enumerate(operands):
        node.inputs[at] = Constant(_free(operand[0] + "_whole", names), operand[1]) if isinstance(operand, tuple) else operand
    result.dtype = "int64" if target == 7 else "int32"
    for cast in casts:
        if id(cast.outputs[0]) not in outputs:  # of the graph's own outputs the cast stays, from a type to itself
            replace(bodies, cast.outputs[0], result)


def _whole(tensor: Constant, target: int) -> np.ndarray | None:
    """The values as integers, where they are whole and floats hold them exactly."""
    if _number(tensor.dtype) not in (1, 11) or tensor._values.nbytes > 1 << 20:
        return None
    values = tensor.values
    if not np.isfinite(values).all() or (values != np.rint(values)).any() or (abs(values) > 1 << 24).any():
        return None
    return values.astype(np.int32 if target == 6 else np.int64)


def _free(name: str, taken: set[str]) -> str:
    free, count = name, 1
    while free in taken:
        free, count = f"{name}_{count}", count + 1
    taken.add(free)
    return free


def _flatten(graph: Any) -> None:
    at = 0
    while at < len(graph.nodes):
        node = graph.nodes[at]
        condition = node.inputs[0] if node.op == "If" and not node.domain and node.inputs else None
        if not isinstance(condition, Constant) or int(np.prod(condition.shape)) != 1:
            at += 1
            continue
        body = node.attrs["then_branch" if condition.values.reshape(-1)[0] else "else_branch"]
        if not hasattr(body, "nodes"):  # a function's attribute decides
            at += 1
            continue
        body = body.copy({id(tensor): tensor for tensor in captured(body).values()})  # another node may have the same
        forget_bodies(node)
        _rename(graph, body)
        results = list(node.outputs)
        graph.nodes[at:at + 1] = body.nodes
        node.inputs.clear()
        node.outputs.clear()
        _hand_over(graph, body, results, at + len(body.nodes))
        # What came in is looked at again: an If in the branch may be known, too.


def _hand_over(graph: Any, body: Any, results: list, place: int) -> None:
    """What the branch has made takes the names of the If's results."""
    made, bodies = defined(body), list(graph.subgraphs(recursive=True))
    outputs = list(body.outputs)
    for at, result in enumerate(results):
        tensor = outputs[at]
        if result.is_empty():
            continue
        if id(tensor) in made and tensor.inputs:
            producer = tensor.inputs[0]
            producer.outputs[next(slot for slot, each in enumerate(producer.outputs) if each is tensor)] = result
            replace(bodies, tensor, result)
            outputs = [result if each is tensor else each for each in outputs]
            made.discard(id(tensor))
        else:  # what stands around the branch, a constant, or what has the name of another result already
            graph.nodes.insert(place, Node("Identity", f"{result.name}_Identity", None, [tensor], [result]))


def _rename(graph: Any, body: Any) -> None:
    """Names of the body that its surroundings have, too, get others."""
    taken = set(graph.tensors())
    for other in graph.subgraphs(recursive=True):
        if other is not body:
            taken.update(other.tensors())
    made = [tensor for node in body.nodes for tensor in node.outputs if not tensor.is_empty()]
    around = captured(body)
    made += [tensor for tensor in around.values() if isinstance(tensor, Constant) and not any(tensor is each for each in graph.tensors().values())]
    for tensor in made:
        if tensor.name in taken:
            tensor.name = _free(f"{tensor.name}_of_{body.name or 'branch'}", taken)
