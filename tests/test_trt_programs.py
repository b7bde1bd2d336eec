# SPDX-License-Identifier: Apache-2.0
"""Polygraphy, unmodified, on python/tensorrt by way of `hone trt-env`: plans that other programs read, tactics and times that are replayed,
options, scripts that it writes, and larger networks. test_trt_polygraphy.py has its commands one by one."""

import os
import re
import subprocess
import sys

import materialise
import numpy as np
import onnx
import pytest
import tiny
from conftest import BIN, PACKAGE
from onnx import helper

pytest.importorskip("polygraphy")
if not (PACKAGE / "hone").exists():
    pytest.skip("this build has no Python binding (sanitizers)", allow_module_level=True)

POLYGRAPHY = os.path.join(os.path.dirname(sys.executable), "polygraphy")
FAST = "--builder-optimization-level=0"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return str(materialise.materialise("digits_cnn", tmp_path_factory.mktemp("digits")))


def run(folder, *arguments, fails=False):
    """What it printed; it must have succeeded, or failed where that is expected."""
    done = subprocess.run([BIN / "hone", "trt-env", "--", POLYGRAPHY, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=1800, check=False,
                          env={**os.environ, "PATH": f"{os.path.dirname(POLYGRAPHY)}:{os.environ['PATH']}", "HONE_TENSORRT_DEVICE": "cpu"})
    assert (done.returncode != 0) == fails, done.stdout[-6000:]
    return done.stdout


def test_plans_are_saved_loaded_and_inspected(folder, digits):
    run(folder, "convert", digits, "-o", "d.engine", "--fp16", FAST)
    assert (folder / "d.engine").read_bytes().startswith(b"HONEPLAN")
    run(folder, "run", "d.engine", "--model-type", "engine", "--trt")
    said = run(folder, "inspect", "model", "d.engine", "--model-type", "engine", "--show", "layers")
    assert "1 Engine Input(s)" in said and "{logits [dtype=float32, shape=(1, 10)" in said and "format" in said
    said = subprocess.run([BIN / "trtexec", "--loadEngine=d.engine", "--iterations=2", "--warmUp=0", "--duration=0"], cwd=folder,
                          stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    assert "&&&& PASSED" in said
    (folder / "foreign.engine").write_bytes(b"ftrt" + bytes(200))
    said = run(folder, "run", "foreign.engine", "--model-type", "engine", "--trt", fails=True)
    assert "begins as plans of NVIDIA's TensorRT do" in said


def test_tactics_and_times_are_recorded_and_replayed(folder, digits):
    run(folder, "run", digits, "--trt", "--save-tactics", "replay.json", "--save-timing-cache", "t.cache")
    run(folder, "run", digits, "--trt", "--load-tactics", "replay.json", "--load-timing-cache", "t.cache")
    assert "Algorithm: (Implementation:" in run(folder, "inspect", "tactics", "replay.json")
    before = (folder / "t.cache").read_bytes()
    run(folder, "run", digits, "--trt", "--load-timing-cache", "t.cache", "--save-timing-cache", "t.cache")
    assert len((folder / "t.cache").read_bytes()) >= len(before)


def test_debug_tools_run_to_their_end(folder, digits):
    assert "Passed: 2/2" in run(folder, "debug", "build", digits, "--until", "2", FAST, "--check", "true")
    run(folder, "debug", "precision", digits, "--fp16", "-p", "float32", FAST, "--check", "false")
    run(folder, "debug", "reduce", digits, "-o", "small.onnx", "--mode=bisect", "--check", "polygraphy", "run", "polygraphy_debug.onnx",
        "--trt", FAST)


def test_options_that_steer_builds_and_contexts(folder, digits):
    run(folder, "run", digits, "--trt", "--strongly-typed", "--onnxrt", "--atol", "1e-4", "--rtol", "1e-4", FAST)
    run(folder, "run", digits, "--trt", "--strongly-typed", "--weight-streaming", "--weight-streaming-budget", "10%", FAST)
    run(folder, "run", digits, "--trt", "--refittable", "--version-compatible", "--bf16", "--sparse-weights", "--tactic-sources",
        "--optimization-profile", "0", "--allocation-strategy", "runtime", FAST)
    run(folder, "run", digits, "--trt", "--allocation-strategy", "profile", "--pool-limit", "workspace:100M", "--fp16",
        "--precision-constraints", "obey", "--layer-precisions", "/c1/Conv:float16", FAST)
    said = run(folder, "run", digits, "--trt", "--mark-debug", "/Relu_output_0", "image", FAST)
    assert "/Relu_output_0 [dtype=float32" in said and "image [dtype=float32" in said


def test_scripts_that_polygraphy_writes_run(folder, digits):
    run(folder, "template", "trt-network", digits, "-o", "network.py")
    run(folder, "run", "network.py", "--model-type", "trt-network-script", "--trt", FAST)
    run(folder, "run", digits, "--trt", FAST, "--gen-script", "script.py")
    done = subprocess.run([BIN / "hone", "trt-env", "--", sys.executable, "script.py"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("model, tolerance", [("resnet18.dyn", "1e-4"), ("mobilenet_v3_large.ts", "1e-4"), ("hf_distilbert.ts", "1e-4"),
                                              ("hf_bert_base.ts", "1e-4")])
def test_models_of_the_zoo_agree_with_onnx_runtime(folder, model, tolerance):
    path = materialise.materialise(model, folder)
    run(folder, "run", path, "--trt", "--onnxrt", "--atol", tolerance, "--rtol", tolerance, "--builder-optimization-level=1")


@pytest.mark.slow
@pytest.mark.parametrize("model", ("resnet18.dyn", "mobilenet_v3_large.ts", "hf_bert_base.ts"))
def test_models_of_the_zoo_run_in_few_bits(folder, model):
    """In FP16 and, calibrated, in INT8; the cache that is written is read again; the engine is saved, loaded and inspected."""
    path, level = materialise.materialise(model, folder), "--builder-optimization-level=1"
    run(folder, "run", path, "--trt", "--fp16", "--onnxrt", "--atol", "5e-2", "--rtol", "5e-2", "--save-engine", "half.engine", level)
    run(folder, "run", "half.engine", "--model-type", "engine", "--trt")
    assert "Engine Input(s)" in run(folder, "inspect", "model", "half.engine", "--model-type", "engine", "--show", "layers")
    for _ in range(2):  # with drawn data an INT8 network is not near: it runs, and says numbers
        run(folder, "run", path, "--trt", "--int8", "--calibration-cache", "c.cache", "--validate", level)
        before = (folder / "c.cache").read_bytes()
    assert before.startswith(b"TRT-") and before == (folder / "c.cache").read_bytes()


SHAPES = ["--trt-min-shapes", "tensor-0:[1,1,28,28]", "--trt-opt-shapes", "tensor-0:[4,1,28,28]", "--trt-max-shapes", "tensor-0:[16,1,28,28]",
          "--input-shapes", "tensor-0:[4,1,28,28]"]
# The tutorial's --workspace N is an option of Polygraphy until 0.47; its successor says the same.
BOTH = ["--onnxrt", "--trt", "--pool-limit", "workspace:1000000000", "--atol", "1e-3", "--rtol", "1e-3", "--verbose"]


@pytest.fixture(scope="module")
def digits_of_28(tmp_path_factory):
    """The tutorial's classifier of handwritten digits, with drawn weights: two convolutions, two products, the likeliest class."""
    random, folder = np.random.default_rng(31), tmp_path_factory.mktemp("tutorial")
    weights = {name: random.standard_normal(shape).astype(np.float32) * scale
               for name, shape, scale in (("w1", (32, 1, 5, 5), 0.2), ("b1", (32, 1, 1), 0.1), ("w2", (64, 32, 5, 5), 0.04), ("b2", (64, 1, 1), 0.1),
                                          ("w3", (3136, 1024), 0.02), ("b3", (1, 1024), 0.1), ("w4", (1024, 10), 0.03), ("b4", (1, 10), 0.1))}
    weights = {name: values.astype(np.float32) for name, values in weights.items()} | {"flat": np.array([-1, 3136], np.int64)}
    steps = [("Conv", ["tensor-0", "w1"], {"pads": [2, 2, 2, 2]}), ("Add", ["t1", "b1"], {}), ("Relu", ["t2"], {}),
             ("MaxPool", ["t3"], {"kernel_shape": [2, 2], "strides": [2, 2]}), ("Conv", ["t4", "w2"], {"pads": [2, 2, 2, 2]}),
             ("Add", ["t5", "b2"], {}), ("Relu", ["t6"], {}), ("MaxPool", ["t7"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
             ("Transpose", ["t8"], {"perm": [0, 2, 3, 1]}), ("Reshape", ["t9", "flat"], {}), ("MatMul", ["t10", "w3"], {}),
             ("Add", ["t11", "b3"], {}), ("Relu", ["t12"], {}), ("MatMul", ["t13", "w4"], {}), ("Add", ["t14", "b4"], {}),
             ("Softmax", ["t15"], {"axis": 1}), ("ArgMax", ["t16"], {"axis": 1, "keepdims": 0})]
    nodes = [helper.make_node(op, reads, [f"t{at}"], name=f"{op}-{at}", **attributes) for at, (op, reads, attributes) in enumerate(steps, 1)]
    return tiny.save(folder / "model.onnx", nodes, weights, inputs=[("tensor-0", ["B", 1, 28, 28])],
                     outputs=[("t16", ["B", 10]), ("t17", ["B"], onnx.TensorProto.INT64)])


def test_a_tutorials_first_case_compares_an_fp16_engine(folder, digits_of_28):
    said = run(folder, "run", digits_of_28, *BOTH, "--save-engine=model-FP16.plan", "--fp16", *SHAPES)
    assert "All outputs matched | Outputs: ['t16', 't17']" in said and "Passed: 1/1 iterations" in said
    assert (folder / "model-FP16.plan").stat().st_size > 2_000_000


def test_a_tutorials_second_case_compares_the_outputs_of_all_layers(folder, digits_of_28):
    said = run(folder, "run", digits_of_28, *BOTH, "--save-engine=model-FP32-MarkAll.plan", "--onnx-outputs", "mark", "all", "--trt-outputs", "mark",
               "all", *SHAPES)
    outputs, = re.findall(r"All outputs matched \| Outputs: \[(.*)\]", said)
    assert len(outputs.split(", ")) == 17 and "Passed: 1/1 iterations" in said


def test_a_tutorials_third_case_writes_a_script_that_does_the_same(folder, digits_of_28):
    run(folder, "run", digits_of_28, *BOTH, "--save-engine=model-FP32.plan", "--gen-script=./polygraphyRun.py", *SHAPES)
    assert not (folder / "model-FP32.plan").exists()
    done = subprocess.run([BIN / "hone", "trt-env", "--", sys.executable, "polygraphyRun.py"], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", check=False, env={**os.environ, "HONE_TENSORRT_DEVICE": "cpu"})
    assert done.returncode == 0 and "Passed: 1/1 iterations" in done.stdout, done.stdout[-3000:]
    assert (folder / "model-FP32.plan").stat().st_size > 10_000_000


@pytest.mark.parametrize("module", ["tensorrt", "cuda.cudart"])
def test_the_stand_in_of_cudart_answers_for_no_other_library(module):
    """Who opens libcudart.so gets it; a library behind it, torch's for CUDA say, keeps its own and sees no card."""
    built = PACKAGE.parent / "tensorrt"
    program = f"import ctypes, {module}; print(hasattr(ctypes.CDLL('libcudart.so'), 'cudaMalloc'), hasattr(ctypes.CDLL(None), 'cudaMalloc'))"
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, encoding="utf-8", check=True,
                          env={**os.environ, "HONE_TENSORRT_DEVICE": "cpu", "PYTHONPATH": os.pathsep.join(map(str, (built, built / "stand_ins", PACKAGE)))}).stdout
    assert said.split() == ["True", "False"]
