# SPDX-License-Identifier: Apache-2.0
"""The Python package beside torch on a GPU: its tensors where they lie, its streams, its CUDA graphs. Without both: skipped."""

import asyncio
import os
import subprocess
import sys

import numpy as np
import pytest
import tiny
from conftest import PACKAGE, ROOT

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")
try:
    import torch
except ImportError:
    torch = None
pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="needs torch and a GPU that it sees")

PROFILE = {"x": ([1, 4], [2, 4], [8, 4])}
WEIGHTS = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tiny.perceptron(tmp_path_factory.mktemp("model") / "model.onnx")
    device = hone.Device("cuda:0")
    return hone.build(path, ["--builderOptimizationLevel=0", "--noTF32"], device, profiles=[PROFILE]).engine(device)


def rows(count):
    return torch.linspace(-1, 1, count * 4, device="cuda").reshape(count, 4)


def is_right(found, values):
    values = values.cpu().numpy() if hasattr(values, "cpu") else values
    found = found.cpu().numpy() if hasattr(found, "cpu") else np.asarray(found)
    np.testing.assert_allclose(found, np.maximum(values @ WEIGHTS + 1, 0), rtol=1e-4, atol=1e-4)


def test_tensors_of_the_gpu_and_arrays_of_the_host_are_inputs(engine):
    with engine.context() as context:
        for values in (rows(3), rows(8).cpu(), rows(2).cpu().numpy(), rows(3)):
            is_right(context.run({"x": values})["y"], values)
        with pytest.raises(hone.Error, match="the tensor holds float64"):
            context.run({"x": rows(2).double()})


def test_an_engine_works_in_the_stream_and_the_graph_of_torch(engine):
    with engine.context() as context:
        x, y = rows(2), torch.zeros(2, 8, device="cuda")
        context.set_shape("x", x.shape)
        context.bind("x", x)
        context.bind("y", y)
        stream = hone.Stream(engine.device, torch.cuda.current_stream())
        for factor in (1.0, 3.0):
            x.mul_(factor)
            context.enqueue(stream)
            doubled = y * 2
            is_right(doubled / 2, x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            context.enqueue(hone.Stream(engine.device, torch.cuda.current_stream()))
            tripled = y * 3
        for factor in (0.5, -1.0):
            x.mul_(factor)
            graph.replay()
            is_right(tripled / 3, x)


def test_tensors_of_hone_are_torchs_without_a_copy(engine):
    with engine.context() as context:
        x = rows(4)
        context.set_shape("x", x.shape)
        context.bind("x", x)
        context.allocate_outputs(on_device=True)
        torch.cuda.synchronize()
        y = context.bound["y"]
        context.enqueue()
        for seen in (torch.from_dlpack(y), torch.as_tensor(y, device="cuda")):
            assert seen.data_ptr() == y.address and seen.is_cuda
        is_right(torch.from_dlpack(y), x)  # waits, in torch's stream, for the inference
        is_right(y.numpy(), x)
        with pytest.raises(ValueError, match="copied"):
            y.__array__(copy=False)


def test_inferences_are_awaited(engine):
    async def main():
        with engine.context() as one, engine.context() as two:
            return await asyncio.gather(one.run_async({"x": rows(3).cpu().numpy()}), two.run_async({"x": rows(5)}))

    for found, count in zip(asyncio.run(main()), (3, 5)):
        is_right(found["y"], rows(count))


def test_the_example_runs(tmp_path):
    path = tiny.perceptron(tmp_path / "model.onnx")
    said = subprocess.run([sys.executable, ROOT / "examples/torch_stream.py", path], env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])},
                          capture_output=True, text=True, check=True, timeout=600).stdout.splitlines()
    assert len(said) == 4 and said[-1].split()[-1] == said[-2].split()[-1]
