# SPDX-License-Identifier: Apache-2.0
"""The Python package: build, save, load, inspect and run with numpy arrays; onnx.backend on top; installable with pip."""

import inspect
import json
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import onnxruntime
import pytest
import tiny
from conftest import PACKAGE, ROOT

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

FLAGS = ["--minShapes=x:1x4", "--optShapes=x:2x4", "--maxShapes=x:8x4", "--builderOptimizationLevel=1"]


@pytest.fixture
def model(folder):
    return tiny.perceptron(folder / "model.onnx")


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 4)).astype(np.float32)


def expected(model, values):
    return onnxruntime.InferenceSession(str(model)).run(None, {"x": values})[0]


def test_one_plan_serves_the_shapes_of_its_profile(folder, model):
    plan = hone.build(model, FLAGS)
    plan.save(folder / "m.plan")
    for made in (plan, hone.load(folder / "m.plan")):
        context = made.engine().context()
        for count in (1, 8, 3):
            np.testing.assert_allclose(context.run({"x": rows(count)})["y"], expected(model, rows(count)), rtol=1e-5, atol=1e-5)
    assert plan.bytes() == (folder / "m.plan").read_bytes()
    assert json.loads(plan.json())["profiles"]
    engine = plan.engine()
    assert engine.inputs == {"x": (np.dtype(np.float32), (-1, 4))} and list(engine.outputs) == ["y"]


def test_a_plan_keeps_notes_of_the_program_that_built_it(folder, model):
    model = hone.Model.load(model)
    plan = model.build(["--refit", *FLAGS[-1:]], profiles=[{"x": ([1, 4], [2, 4], [8, 4])}], notes={"mine": "\u00e9 {}", "other": ""})
    again = hone.Plan.parse(plan.bytes())
    assert again.bytes() == plan.bytes() and again.note("mine") == "\u00e9 {}" and again.note("other") == "" and again.note("none") is None
    assert plan.refit(model).note("mine") == "\u00e9 {}" and model.build(FLAGS).note("mine") is None
    assert again.ranges() == {"x": ((1, 4), (2, 4), (8, 4))}
    with pytest.raises(hone.Error, match="not a Hone plan"):
        hone.Plan.parse(b"HONE")


def test_a_plan_takes_the_weights_of_another_model(folder, model):
    import onnx

    other = onnx.load(model)
    for weight in other.graph.initializer:
        weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) * np.float32(-2), weight.name))
    onnx.save(other, folder / "other.onnx")
    plan = hone.build(model, [*FLAGS, "--refit"])
    for refitted in (plan.refit(folder / "other.onnx"), plan.refit(folder / "other.onnx").refit(hone.Model.load(folder / "other.onnx"))):
        found = refitted.engine().context().run({"x": rows(3)})["y"]
        np.testing.assert_allclose(found, expected(folder / "other.onnx", rows(3)), rtol=1e-5, atol=1e-5)
    with pytest.raises(hone.Error, match="built with fixed weights"):
        hone.build(model, FLAGS).refit(model)


def test_debug_tensors_are_read_after_a_run(model):
    context = hone.build(model, [*FLAGS, "--markDebug=h"]).engine().context()
    with pytest.raises(hone.Error, match="can be read after a run"):
        context.debug_values()
    answer = context.run({"x": rows(5)})["y"]
    (name, values), = context.debug_values().items()
    assert name == "h" and values.shape == (5, 8) and values.min() < 0
    np.testing.assert_allclose(np.maximum(values, 0), answer, rtol=1e-6)


def test_arrays_that_fit_are_not_copied(model):
    context = hone.build(model, FLAGS).engine().context()
    values = rows(2)
    context.set_input("x", values)
    assert context.bound["x"].ctypes.data == values.ctypes.data
    context.allocate_outputs()
    context.run_bound()
    values[:] = rows(3)[:2]  # seen by the next run, because the memory is the caller's
    context.run_bound()
    np.testing.assert_allclose(context.bound["y"], expected(model, rows(3)[:2]), rtol=1e-5, atol=1e-5)
    context.set_input("x", np.asfortranarray(rows(2)).astype(np.float64))
    context.run_bound()
    np.testing.assert_allclose(context.bound["y"], expected(model, rows(2)), rtol=1e-5, atol=1e-5)


def test_models_are_inspected_and_the_log_is_heard(model):
    lines = []
    parsed = hone.Model.parse(model.read_bytes())
    assert parsed.inputs["x"] == (np.dtype(np.float32), (-1, 4))
    parsed.build(FLAGS, log=lambda severity, text: lines.append((severity, text)))
    assert lines and all(severity <= hone.INFO and text for severity, text in lines)


def test_layers_are_timed(model):
    context = hone.build(model, FLAGS).engine().context()
    context.run({"x": rows(2)})
    layers = context.profile()
    assert layers and all(name and ms >= 0 for name, ms in layers)


def test_what_is_wrong_is_an_error_with_a_reason(folder, model):
    with pytest.raises(hone.Error, match="nowhere"):
        hone.build(folder / "nowhere.onnx")
    with pytest.raises(hone.Error, match="--frobnicate"):
        hone.build(model, ["--frobnicate"])
    context = hone.build(model, FLAGS).engine().context()
    with pytest.raises(hone.Error, match="9"):
        context.run({"x": rows(9)})
    with pytest.raises(hone.Error, match="no input z"):
        context.run({"z": rows(1)})
    with pytest.raises(hone.Error, match="vulkan"):
        hone.Device("vulkan")


def test_memory_stays_flat_over_many_runs_of_changing_shapes(folder):
    path = tiny.convolutions(folder / "convolutions.onnx")
    context = hone.build(path, ["--minShapes=x:1x3x16x16", "--optShapes=x:2x3x16x16", "--maxShapes=x:8x3x16x16", "--builderOptimizationLevel=1"]).engine().context()
    images = np.random.default_rng(3).standard_normal((8, 3, 16, 16)).astype(np.float32)
    counts = np.random.default_rng(4).integers(1, 9, 10_000)

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for count in counts[:1000]:
        context.run({"x": images[:count]})
    before = resident()
    for count in counts[1000:]:
        context.run({"x": images[:count]})
    assert resident() - before < 2 << 20


def test_threads_share_an_engine(model):
    engine, failures = hone.build(model, FLAGS).engine(), []

    def work(count):
        context = engine.context()
        for _ in range(20):
            if not np.allclose(context.run({"x": rows(count)})["y"], expected(model, rows(count)), rtol=1e-5, atol=1e-5):
                failures.append(count)

    threads = [threading.Thread(target=work, args=(count,)) for count in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_backend_runs_nodes_and_models(model):
    import onnx
    from onnx import helper

    import hone.backend

    (result,) = hone.backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)])
    np.testing.assert_array_equal(result, np.ones((2, 1)) + np.arange(3))
    prepared = hone.backend.prepare(onnx.load(model))
    for count in (1, 5):
        np.testing.assert_allclose(prepared.run([rows(count)])[0], expected(model, rows(count)), rtol=1e-5, atol=1e-5)
    assert hone.backend.supports_device("CPU") and not hone.backend.supports_device("CUDA:99")


def test_every_public_name_says_what_it_is_and_takes():
    named = {name: getattr(hone, name) for name in hone.__all__ if callable(getattr(hone, name))}
    for kind in [value for value in named.values() if isinstance(value, type) and not issubclass(value, (Exception, tuple))]:
        own = {name for parent in kind.__mro__ if parent.__module__.startswith("hone.") for name in vars(parent)}
        named |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in own if not name.startswith("_") and name != "WIDTH"}
    for name, value in named.items():
        assert inspect.getdoc(value), f"{name} says nothing"
        value = getattr(value, "fget", None) or getattr(value, "func", value)  # of properties
        if inspect.isroutine(value):
            parameters = inspect.signature(value).parameters.values()
            assert all(one.name in ("self", "cls") or one.annotation is not one.empty for one in parameters), name
            assert "return" in value.__annotations__, name
    assert {"build", "load", "Context.run", "Plan.handle"} <= set(named)
    order = ["arguments", "device", "log", "threshold"]
    for name in ("build", "Model.build", "Plan.refit", "Plan.engine", "Engine", "Model.load"):
        found = [one for one in inspect.signature(named[name]).parameters if one in order]
        assert found == [one for one in order if one in found], name
    stub = (PACKAGE / "hone/_hone.pyi").read_text()
    assert (PACKAGE / "hone/py.typed").exists() and "class Context:" in stub and "def enqueue(self, arg: Stream, /) -> None:" in stub


def test_objects_are_closed_by_hand_and_by_with(model):
    with hone.Device() as device, hone.Model.load(model) as parsed, parsed.build(FLAGS, device) as plan, plan.engine(device) as engine:
        with engine.context() as context:
            context.run({"x": rows(2)})
        with pytest.raises(hone.Error, match="this Context is closed"):
            context.run({"x": rows(2)})
        later = engine.context()
    with pytest.raises(hone.Error, match="this Plan is closed"):
        plan.save("nowhere.plan")
    # The library keeps what is in use.
    np.testing.assert_allclose(later.run({"x": rows(2)})["y"], expected(model, rows(2)), rtol=1e-5, atol=1e-5)


def test_pip_installs_the_package(folder, model):
    target = folder / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--target", target,
                    f"--config-settings=cmake.define.HONE_BUILD={PACKAGE.parent}", f"--config-settings=build-dir={folder}/wheel", ROOT / "python"], check=True, timeout=1200)
    program = f"import hone; print(hone.__file__, hone.build({str(model)!r}, {FLAGS}).engine().outputs)"
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(target)}, cwd=folder,
                          capture_output=True, text=True, check=True, timeout=300)
    assert str(target) in done.stdout and "'y'" in done.stdout
    (tags,) = target.glob("hone-*.dist-info/WHEEL")
    assert "Tag: cp310-abi3-" in tags.read_text() and list(target.glob("hone/_hone.abi3.so"))
    said = subprocess.run([target / "bin/trtexec", f"--onnx={model}", "--builderOptimizationLevel=0", "--skipInference"], cwd=folder,
                          capture_output=True, text=True, check=True, timeout=300).stdout
    assert "PASSED" in said
    assert subprocess.run([target / "bin/hone", "--version"], capture_output=True, text=True, check=True).stdout.split() == ["hone", hone.version()]
    assert hone.__version__ == hone.version()
