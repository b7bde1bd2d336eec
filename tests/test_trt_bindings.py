# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt as 8.6: bindings by number and name, profiles that have their own, calls that 10 no longer has."""

import os
import subprocess
import sys

import pytest
from conftest import PACKAGE

if not (PACKAGE / "hone").exists():
    pytest.skip("this build has no Python binding (sanitizers)", allow_module_level=True)

PROGRAM = '''
import numpy as np
import tensorrt as trt

assert trt.__version__ == "8.6.1"
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
x = network.add_input("x", trt.float32, (-1, 3, 8, 8))
weights = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
layer = network.add_convolution(input=x, num_output_maps=4, kernel_shape=(3, 3), kernel=weights, bias=np.zeros(4, np.float32))
layer.get_output(0).name = "y"
network.mark_output(layer.get_output(0))
config = builder.create_builder_config()
config.max_workspace_size = 1 << 28
for rows in ((1, 2, 4), (5, 6, 8)):
    profile = builder.create_optimization_profile()
    profile.set_shape("x", *[(count, 3, 8, 8) for count in rows])
    config.add_optimization_profile(profile)
with builder.build_engine(network, config) as engine, engine.create_execution_context() as context:
    assert engine.num_bindings == len(engine) == 4 and engine.max_batch_size == 1 and not engine.has_implicit_batch_dimension
    assert [engine.get_binding_name(i) for i in range(4)] == ["x", "y", "x [profile 1]", "y [profile 1]"]
    assert [engine.binding_is_input(i) for i in range(4)] == [True, False, True, False] and engine.binding_is_input("x")
    assert engine["y"] == 1 and engine[0] == "x" and engine.get_binding_index("x [profile 1]") == 2
    assert tuple(engine.get_binding_shape(0)) == (-1, 3, 8, 8) and engine.get_binding_dtype("y") == trt.float32
    assert [tuple(shape)[0] for shape in engine.get_profile_shape(1, 2)] == [5, 6, 8] == [tuple(s)[0] for s in engine.get_profile_shape(1, "x")]
    assert engine.get_location(0) == trt.TensorLocation.DEVICE and not engine.is_shape_binding(0) and engine.is_execution_binding(1)
    found = {}
    for profile, count in ((0, 2), (1, 7)):
        values = np.random.default_rng(2).standard_normal((count, 3, 8, 8)).astype(np.float32)
        y = np.zeros((count, 4, 6, 6), np.float32)
        context.active_optimization_profile = profile
        assert context.active_optimization_profile == profile and not context.all_binding_shapes_specified
        assert context.set_binding_shape(2 * profile, values.shape) and tuple(context.get_binding_shape(2 * profile + 1)) == y.shape
        assert context.all_binding_shapes_specified and context.all_shape_inputs_specified
        bindings = [0] * 4
        bindings[2 * profile:2 * profile + 2] = [values.ctypes.data, y.ctypes.data]
        assert context.execute_async_v2(bindings=bindings, stream_handle=0)
        found[profile] = y.copy()
        y[:] = 0
        assert context.execute_v2(bindings) and (y == found[profile]).all()
        y[:] = 0
        assert context.execute_async(batch_size=1, bindings=bindings, stream_handle=0) and (y == found[profile]).all() and y.any()
    assert not hasattr(trt.ICudaEngine, "device_memory_size_v2") and not hasattr(trt, "IProgressMonitor")
print("done")
'''


def test_programs_of_8_run_with_bindings():
    variables = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PACKAGE.parent / 'tensorrt'}", "HONE_TENSORRT_DEVICE": "cpu",
                 "HONE_TENSORRT_API": "8.6"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


def test_later_releases_have_no_bindings():
    variables = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PACKAGE.parent / 'tensorrt'}", "HONE_TENSORRT_DEVICE": "cpu"}
    program = "import tensorrt as t; print(hasattr(t.ICudaEngine, 'num_bindings'), hasattr(t.IExecutionContext, 'execute_async_v2'))"
    for release in ("10", "11"):
        done = subprocess.run([sys.executable, "-c", program], env={**variables, "HONE_TENSORRT_API": release}, capture_output=True, text=True,
                              check=False)
        assert done.stdout == "False False\n", done.stderr


RECURRENT = '''
import itertools
import numpy as np
import tensorrt as trt

random = np.random.default_rng(5)
GATES = {"RELU": ["INPUT"], "TANH": ["INPUT"], "LSTM": ["INPUT", "OUTPUT", "FORGET", "CELL"], "GRU": ["UPDATE", "RESET", "HIDDEN"]}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(op, x, h, c, w):
    """The next hidden state and cell. `w`: {gate: (W, R, input's bias, state's bias)}."""
    if op in ("RELU", "TANH"):
        W, R, a, b = w["INPUT"]
        total = x @ W.T + a + h @ R.T + b
        return (np.maximum(total, 0) if op == "RELU" else np.tanh(total)), c
    said = {gate: (x @ W.T + a, h @ R.T + b) for gate, (W, R, a, b) in w.items()}
    if op == "GRU":
        z, r = (sigmoid(sum(said[gate])) for gate in ("UPDATE", "RESET"))
        fresh = np.tanh(said["HIDDEN"][0] + r * said["HIDDEN"][1])
        return (1 - z) * fresh + z * h, c
    i, o, f = (sigmoid(sum(said[gate])) for gate in ("INPUT", "OUTPUT", "FORGET"))
    c = f * c + i * np.tanh(sum(said["CELL"]))
    return o * np.tanh(c), c


for op, sides, skip, lengths in itertools.product(GATES, (1, 2), (False, True), (None, [5, 3])):
    rows, steps, hidden, layers = 2, 5, 4, 2
    width = hidden if skip else 3
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    values = {"x": random.standard_normal((rows, steps, width)), "h": random.standard_normal((rows, layers * sides, hidden)),
              "c": random.standard_normal((rows, layers * sides, hidden))}
    values = {name: each.astype(np.float32) for name, each in values.items()}
    tensors = {name: network.add_input(name, trt.float32, each.shape) for name, each in values.items()}
    layer = network.add_rnn_v2(tensors["x"], layers, hidden, steps, getattr(trt.RNNOperation, op))
    layer.direction = trt.RNNDirection.BIDIRECTION if sides == 2 else trt.RNNDirection.UNIDIRECTION
    layer.input_mode = trt.RNNInputMode.SKIP if skip else trt.RNNInputMode.LINEAR
    layer.hidden_state = tensors["h"]
    if op == "LSTM":
        layer.cell_state = tensors["c"]
    if lengths:
        values["n"] = np.array(lengths, np.int32)
        layer.seq_lengths = network.add_input("n", trt.int32, (rows,))
    assert (layer.num_layers, layer.hidden_size, layer.data_length, layer.max_seq_length) == (layers, hidden, width, steps)
    held = {}
    for number in range(layers * sides):
        inputs = width if number < sides else sides * hidden
        for name in GATES[op]:
            gate = getattr(trt.RNNGateType, name)
            W, R = (random.standard_normal((hidden, columns)).astype(np.float32) / 2 for columns in (inputs, hidden))
            a, b = (random.standard_normal(hidden).astype(np.float32) / 2 for _ in range(2))
            first = skip and number < sides
            if first:
                W = np.eye(hidden, dtype=np.float32)
            else:
                layer.set_weights_for_gate(number, gate, True, W)
            layer.set_weights_for_gate(number, gate, False, R)
            layer.set_bias_for_gate(number, gate, True, a)
            layer.set_bias_for_gate(number, gate, False, b)
            assert np.array_equal(layer.get_weights_for_gate(number, gate, False), R.reshape(-1))
            assert np.array_equal(layer.get_bias_for_gate(number, gate, True), a)
            held.setdefault(number, {})[name] = (W, R, a, b)
    for at in range(layer.num_outputs):
        layer.get_output(at).name = f"y{at}"
        network.mark_output(layer.get_output(at))
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    engine = builder.build_engine(network, config)
    x, last_h, last_c = values["x"], [], []
    for number in range(layers):
        made = []
        for side in range(sides):
            at = number * sides + side
            out = np.zeros((rows, steps, hidden), np.float32)
            final_h, final_c = np.zeros((rows, hidden), np.float32), np.zeros((rows, hidden), np.float32)
            for row in range(rows):
                h, c = values["h"][row:row + 1, at], (values["c"] if op == "LSTM" else np.zeros_like(values["c"]))[row:row + 1, at]
                count = lengths[row] if lengths else steps
                for t in (range(count) if side == 0 else range(count - 1, -1, -1)):
                    h, c = step(op, x[row:row + 1, t], h, c, held[at])
                    out[row, t] = h
                final_h[row], final_c[row] = h, c
            made.append(out)
            last_h.append(final_h)
            last_c.append(final_c)
        x = np.concatenate(made, 2)
    expected = [x, np.stack(last_h, 1), np.stack(last_c, 1)][:layer.num_outputs]
    found = [np.zeros(each.shape, np.float32) for each in expected]
    context = engine.create_execution_context()
    arrays = {**values, **{f"y{at}": each for at, each in enumerate(found)}}
    assert context.execute_v2([arrays[engine.get_binding_name(at)].ctypes.data for at in range(engine.num_bindings)]), op
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, err_msg=f"{op} {sides} {skip} {lengths}")
network = builder.create_network(1)
layer = network.add_rnn_v2(network.add_input("x", trt.float32, (1, 2, 3)), 1, 4, 2, trt.RNNOperation.TANH)
network.mark_output(layer.get_output(0))
logger.min_severity = trt.Logger.INTERNAL_ERROR
assert builder.build_engine(network, config) is None
print("done")
'''


def test_recurrent_layers_of_8():
    variables = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PACKAGE.parent / 'tensorrt'}", "HONE_TENSORRT_DEVICE": "cpu",
                 "HONE_TENSORRT_API": "8.6"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RECURRENT], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
