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
