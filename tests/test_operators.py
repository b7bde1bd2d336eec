# SPDX-License-Identifier: Apache-2.0
"""Operators of programs as users bring them: libraries that the command line names, functions of Python; in models whose neighbours
still fuse, in plans that another process loads, and each way in which that can go wrong."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tiny
from conftest import PACKAGE, ROOT, UNIT, Program
from onnx import helper

RUN = ("--iterations=1", "--warmUp=0", "--duration=0", "--builderOptimizationLevel=0")
INCLUDE = ROOT / "include"


def library(folder, name="custom_operator", change=lambda text: text):
    """The example, compiled as a user would; it needs the header alone."""
    source, made = folder / f"{name}.c", folder / f"lib{name}.so"
    source.write_text(change((ROOT / "examples/custom_operator.c").read_text()))
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{INCLUDE}", source, "-o", made, "-lm"], check=True)
    return made


def model(path, op="SoftClip", **attributes):
    """Relu(x w) goes through the operator, Neg and Abs."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node(op, ["r"], ["s"], name="clip", domain="com.acme", **attributes),
             helper.make_node("Neg", ["s"], ["m"]), helper.make_node("Abs", ["m"], ["y"])]
    return tiny.save(path, nodes, {"w": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}, inputs=[("x", ["n", 4])])


ROWS = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def expected(limit):
    product = np.maximum(ROWS @ np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8), 0)
    return limit * np.tanh(product / limit)


@pytest.fixture
def place(trtexec):
    """A folder with a plan of a model that uses the library's operator, with the trtexec that runs in it."""
    library(trtexec.folder)
    model(trtexec.folder / "model.onnx", limit=1.5)
    ROWS.tofile(trtexec.folder / "x.raw")
    trtexec("--onnx=model.onnx", "--staticPlugins=libcustom_operator.so", "--saveEngine=model.plan", "--exportLayerInfo=layers.json",
            "--profilingVerbosity=detailed", "--minShapes=x:1x4", "--optShapes=x:3x4", "--maxShapes=x:8x4", *RUN)
    return trtexec


def test_a_librarys_operator_is_a_layer_between_fused_ones_in_a_plan_that_another_process_loads(place):
    layers = json.loads((place.folder / "layers.json").read_text())["Layers"]
    assert [layer["LayerType"].removeprefix("Cpu") for layer in layers] == ["MatrixMultiply", "CustomPlugin", "PointWise"]
    place("--loadEngine=model.plan", "--dynamicPlugins=./libcustom_operator.so", "--shapes=x:3x4", "--loadInputs=x:x.raw",
          "--exportOutput=y.json", *RUN)
    values = json.loads((place.folder / "y.json").read_text())[0]["values"]
    np.testing.assert_allclose(np.reshape(values, (3, 8)), expected(1.5), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name, said", [
    ("", r"needs the operator com\.acme::SoftClip, version 1, of the library libcustom_operator\.so, which is not registered"),
    ("newer", r"needs the operator com\.acme::SoftClip in version 1; registered is version 2"),
    ("other", r"with the hash [0-9a-f]{32}; registered is that of the library libother\.so with the hash [0-9a-f]{32}"),
    ("nowhere", r"libnowhere\.so"),
    ("plain", r"the library exports no hone_library_operators\(\)"),
    ("text", r"the library cannot be opened"),
    ("future", r"the library refuses Hone's interface of version"),
])
def test_what_a_plan_needs_and_does_not_find_is_a_sentence(place, name, said):
    changes = {"newer": ("version = 1", "version = 2"), "other": ("/ limit)", "/ limit + 0)"),
               "plain": ("hone_library_operators(int", "something_else(int"), "future": ("HONE_API_VERSION ?", "HONE_API_VERSION + 1 ?")}
    if name in changes:
        library(place.folder, name, lambda text: text.replace(*changes[name]))
    if name == "text":
        (place.folder / "libtext.so").write_text("not a library")
    done = place.run("--loadEngine=model.plan", *([f"--staticPlugins=lib{name}.so"] if name else []), *RUN)
    assert done.returncode == 1 and re.search(said, done.stdout), done.stdout[-2000:]
    if name in ("", "newer", "other"):
        assert "--staticPlugins=<path of libcustom_operator.so>" in done.stdout


def test_a_model_without_its_library_says_how_to_bring_one(place):
    done = place.run("--onnx=model.onnx", *RUN)
    assert done.returncode == 1 and "com.acme::SoftClip" in done.stdout and "--staticPlugins" in done.stdout


def test_a_failing_operator_names_its_node(place):
    model(place.folder / "wrong.onnx", limit=-1.0)
    done = place.run("--onnx=wrong.onnx", "--staticPlugins=libcustom_operator.so", *RUN)
    assert done.returncode == 1 and "its limit is -1, which is not above 0" in done.stdout and "running node clip" in done.stdout


def test_results_stay_the_same_however_the_engine_is_run(place):
    said = Program(place.folder, "hone")("check", "model.onnx", "--staticPlugins=libcustom_operator.so")
    assert "differ" not in said, said


def test_a_library_in_cpp(place):
    place("--onnx=model.onnx", f"--staticPlugins={UNIT / 'libcpp_operators.so'}", "--shapes=x:3x4", "--loadInputs=x:x.raw",
          "--exportOutput=y.json", *RUN)
    values = json.loads((place.folder / "y.json").read_text())[0]["values"]
    np.testing.assert_allclose(np.reshape(values, (3, 8)), expected(1.5), rtol=1e-6, atol=1e-6)


def test_operators_of_a_program_in_cpp(folder):
    done = subprocess.run([UNIT / "use_operators", folder / "m.plan"], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def python(folder, text):
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


BEGIN = """
import hone, numpy as np
rows = np.fromfile("x.raw", np.float32).reshape(3, 4)
def run(plan):
    with plan.engine().context() as context:
        return context.run({"x": rows})["y"]
FLAGS = ["--minShapes=x:1x4", "--optShapes=x:3x4", "--maxShapes=x:8x4"]
"""


def test_a_python_function_is_an_operator(folder):
    model(folder / "model.onnx", limit=1.5)
    ROWS.tofile(folder / "x.raw")
    register = BEGIN + """
@hone.operator("com.acme", "SoftClip", version=4, attributes={"limit": 1.0})
def soft_clip(x, limit):
    return np.float32(limit) * np.tanh(x / np.float32(limit))
"""
    python(folder, register + 'plan = hone.build("model.onnx", FLAGS); plan.save("model.plan"); np.save("built.npy", run(plan))')
    python(folder, register + 'np.save("loaded.npy", run(hone.load("model.plan")))')
    for name in ("built.npy", "loaded.npy"):
        np.testing.assert_allclose(np.load(folder / name), expected(1.5), rtol=1e-6, atol=1e-6)
    said = python(folder, BEGIN + """
try: run(hone.load("model.plan"))
except hone.Error as error: print(error)
""")
    assert "com.acme::SoftClip, version 4, of the program that built it" in said and "hone_operator_register()" in said


def test_a_python_function_may_say_sizes_and_may_fail(folder):
    model(folder / "model.onnx", "Twice")
    ROWS.tofile(folder / "x.raw")
    said = python(folder, BEGIN + """
with hone.Operator(lambda x: np.concatenate([x, x]), "com.acme", "Twice", sizes=lambda shapes, _: [(2 * shapes[0][0], shapes[0][1])]):
    plan = hone.build("model.onnx", FLAGS)
    y = run(plan)
    assert y.shape == (6, 8) and (y[:3] == y[3:]).all(), y
    fixed = run(hone.build("model.onnx", ["--shapes=x:3x4"]))
    assert (fixed == y).all()
def short(x): return x[:1]
with hone.Operator(short, "com.acme", "Twice", sizes="x0[0] * 2, x0[1:]"):
    plan = hone.build("model.onnx", ["--builderOptimizationLevel=0"] + FLAGS)
    try: run(plan)
    except hone.Error as error: print(error)
try: hone.build("model.onnx", FLAGS)
except hone.Error as error: print(error)
""")
    assert "output 0 is float32 of (1, 8), planned was float32 of (6, 8)" in said and "running node clip" in said
    assert "com.acme::Twice" in said and "are not supported" in said or "is not supported" in said


def test_the_examples_run(folder):
    model(folder / "model.onnx", limit=2.0)
    ROWS.tofile(folder / "x.raw")
    done = subprocess.run([sys.executable, ROOT / "examples/custom_operator.py", model(folder / "fixed.onnx", limit=2.0)], cwd=folder,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)}, text=True, capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("y "), done.stderr
