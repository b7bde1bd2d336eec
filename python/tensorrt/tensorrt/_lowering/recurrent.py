# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers of 8.x in ONNX's words: an RNN, LSTM or GRU for each layer, over both directions where it has two.

TensorRT has a matrix and a bias for each gate, ONNX one matrix of all gates in an order of its own.
"""

import numpy as np

from .._base import onnx

GATES = {"RELU": ("INPUT",), "TANH": ("INPUT",), "LSTM": ("INPUT", "OUTPUT", "FORGET", "CELL"), "GRU": ("UPDATE", "RESET", "HIDDEN")}


def role(kind, layer, gate, is_input):
    """The name of a gate's weights ("W") or bias ("B")."""
    return f"{kind}{'X' if is_input else 'H'}{layer}{gate}"


def _all_gates(e, layer, gates, kind, is_input, shape, identity):
    """One tensor of all gates' weights or biases of a layer in one direction, in ONNX's order, with a dimension for the direction."""
    element, parts = e.element(0), []
    for gate in gates:
        held = e.weights(role(kind, layer, gate, is_input), shape, element)
        if held is None and kind == "W" and not identity:
            e.fail(f"layer {layer} has no weights for the gate {gate} ({'input' if is_input else 'hidden state'})")
        if held is None:
            held = e.constant(np.eye(*shape) if kind == "W" else np.zeros(shape), np.float32)
            held = held if element == onnx.FLOAT else e.cast(held, element)
        parts.append(held)
    joined = e.node("Concat", parts, axis=0) if len(parts) > 1 else parts[0]
    return e.node("Unsqueeze", [joined, e.ints([0])])


def _layer(e, x, width, number, sides, initial):
    """(all hidden states (S, N, sides * H), the last ones (sides, N, H), the last cells) of one layer over x (S, N, width)."""
    op, hidden = e.param("op").name, e.param("hidden_size")
    gates, skips = GATES[op], number == 0 and e.param("input_mode") is not None and e.param("input_mode").name == "SKIP"
    if skips and width != hidden:
        e.fail(f"input_mode SKIP passes {width} values to gates of {hidden}")
    matrices = []
    for is_input, columns in ((True, width), (False, hidden)):
        both = [_all_gates(e, number * sides + side, gates, "W", is_input, (hidden, columns), skips and is_input) for side in range(sides)]
        matrices.append(e.node("Concat", both, axis=0) if sides > 1 else both[0])
    biases = [_all_gates(e, number * sides + side, gates, "B", is_input, (hidden,), True) for side in range(sides) for is_input in (True, False)]
    pairs = [e.node("Concat", biases[2 * side:2 * side + 2], axis=1) for side in range(sides)]
    bias = e.node("Concat", pairs, axis=0) if sides > 1 else pairs[0]
    lengths = e.cast(e.input(1), onnx.INT32) if e.has(1) else ""
    kind = "RNN" if op in ("RELU", "TANH") else op
    outputs = [e.fresh() for _ in range(3 if kind == "LSTM" else 2)]
    states = [_of_layer(e, at, number, sides) if at is not None else "" for at in initial[:2 if kind == "LSTM" else 1]]
    e.node(kind, [x, *matrices, bias, lengths, *states], outputs, hidden_size=hidden, direction="bidirectional" if sides > 1 else "forward",
           linear_before_reset=1 if kind == "GRU" else None, activations=[op.capitalize()] * sides if kind == "RNN" else None)
    steps = e.node("Transpose", [outputs[0]], perm=[0, 2, 1, 3])  # (S, sides, N, H)
    return e.node("Reshape", [steps, e.ints([0, 0, sides * hidden])]), outputs[1], outputs[2] if kind == "LSTM" else None


def _of_layer(e, at, number, sides):
    """The initial states of a layer, (sides, N, H), of an input (N, layers * sides, H)."""
    part = e.node("Slice", [e.input(at), e.ints([number * sides]), e.ints([(number + 1) * sides]), e.ints([1])])
    return e.node("Transpose", [part], perm=[1, 0, 2])


def _rnn(e, r):
    if e.rank(0) != 3:
        e.fail(f"its input has {e.rank(0)} dimensions; it is (batch, steps, values)")
    sides = 2 if e.param("direction") is not None and e.param("direction").name == "BIDIRECTION" else 1
    x, width = e.node("Transpose", [e.input(0)], perm=[1, 0, 2]), e.sizes(0)[2]
    initial, hidden, cells = [at if e.has(at) else None for at in (2, 3)], [], []
    for number in range(e.param("num_layers")):
        x, last, cell = _layer(e, x, width, number, sides, initial)
        width = sides * e.param("hidden_size")
        hidden.append(last)
        cells.append(cell)
    e.node("Transpose", [x], e.out(0), perm=[1, 0, 2])
    for at, states in ((1, hidden), (2, cells)):
        if at < len(r.outputs):
            joined = e.node("Concat", states, axis=0) if len(states) > 1 else states[0]
            e.node("Transpose", [joined], e.out(at), perm=[1, 0, 2])


LOWER = {"RNN_V2": _rnn}
