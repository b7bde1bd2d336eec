# SPDX-License-Identifier: Apache-2.0
"""Models that are large or deep: weights of 3 GB beside the model, 10,000 nodes in a row."""

import re
import subprocess
import threading
import time

import conftest
import numpy as np
import pytest
import tiny
from inference import ONE_RUN, read_raw
from onnx import TensorProto, helper

LAYERS, WIDTH = 48, 4096
MIB = 1 << 20


def factor(layer):
    """What a layer multiplies by: their product over all layers stays far from the largest f32."""
    return np.float32(1 + layer % 3)


def sparse_weights(path):
    """LAYERS matrices of WIDTH x WIDTH f32 that are zero but for one element of its own each; 3 GiB, hardly any on disk."""
    size = WIDTH * WIDTH * 4
    with open(path, "wb") as file:
        file.truncate(LAYERS * size)
        for layer in range(LAYERS):
            file.seek(layer * size + (layer * WIDTH + (layer + 1) % WIDTH) * 4)
            file.write(factor(layer).tobytes())


def large_model(folder):
    """y = x W0 W1 ... with the weights in weights.bin."""
    sparse_weights(folder / "weights.bin")
    size, weights, nodes = WIDTH * WIDTH * 4, [], []
    for layer in range(LAYERS):
        tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "weights.bin"), ("offset", layer * size), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [f"v{layer}", f"w{layer}"], [f"p{layer}"], name=f"layer{layer}"))
        nodes.append(helper.make_node("Add", ["v0", f"p{layer}"], [f"v{layer + 1}"], name=f"sum{layer}"))
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH])  # noqa: E731
    graph = helper.make_graph(nodes, "large", [value("v0")], [value(f"v{LAYERS}")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "large.onnx").write_bytes(model.SerializeToString())


def private_bytes(pid):
    """Memory of the process that no file stands behind."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return sum(int(fields[name].split()[0]) for name in ("RssAnon", "RssShmem")) * 1024
    except (OSError, KeyError):
        return 0  # it has ended


def run_and_watch(folder, *arguments):
    """What trtexec said, and the largest amount of private memory that it held."""
    process = subprocess.Popen([conftest.BIN / "trtexec", *arguments], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    peaks = [0]

    def watch():
        while process.poll() is None:
            peaks[0] = max(peaks[0], private_bytes(process.pid))
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    said = process.communicate(timeout=1800)[0]
    watcher.join()
    assert process.returncode == 0, said[-3000:]
    return said, peaks[0]


def expected_output(values):
    result = values.copy()
    for layer in range(LAYERS):
        product = np.zeros_like(values)
        product[(layer + 1) % WIDTH] = result[layer] * factor(layer)
        result = values + product
    return result


@pytest.mark.slow
def test_three_gigabytes_of_weights_need_no_three_gigabytes_of_memory(folder):
    large_model(folder)
    values = np.random.default_rng(5).standard_normal(WIDTH, np.float32)
    values.tofile(folder / "v0.in")
    options = ["--builderOptimizationLevel=0", "--loadInputs=v0:v0.in", "--dumpRawBindingsToFile", *ONE_RUN]
    said, peak = run_and_watch(folder, "--onnx=large.onnx", *options)
    print(f"import, build, run: {peak / MIB:.0f} MiB of memory, engine built in {re.search(r'Engine built in ([0-9.e+-]+)', said)[1]} s")
    assert peak < 300 * MIB
    np.testing.assert_allclose(read_raw(folder, f"v{LAYERS}")[0], expected_output(values), rtol=1e-5)
    said, peak = run_and_watch(folder, "--onnx=large.onnx", "--saveEngine=large.plan", *options)
    print(f"the same with a plan of {(folder / 'large.plan').stat().st_size / MIB:.0f} MiB: {peak / MIB:.0f} MiB")
    assert peak < 300 * MIB
    said, peak = run_and_watch(folder, "--loadEngine=large.plan", "--loadInputs=v0:v0.in", *ONE_RUN)
    print(f"load, run: {peak / MIB:.0f} MiB")
    assert peak < 300 * MIB


def test_ten_thousand_nodes_are_imported_and_built(folder, trtexec):
    count = 10_000
    nodes = [helper.make_node("Neg" if i % 3 else "Sigmoid", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(count)]
    tiny.save(folder / "deep.onnx", nodes, inputs=[("v0", [2, 8])], outputs=[(f"v{count}", [2, 8])])
    said = trtexec("--onnx=deep.onnx", "--builderOptimizationLevel=0", *ONE_RUN)  # quadratic work would outlast the test's limit
    print(re.search(r"Finished parsing network model\. Parse time: ([0-9.e+-]+)", said)[0])
