# SPDX-License-Identifier: Apache-2.0
"""The Python package's build side: networks by hand, profiles, timing caches, progress, cancelling, layers."""

import io
import json
import os
import signal
import sys
import threading

import numpy as np
import onnxruntime
import pytest
import tiny
from conftest import PACKAGE

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

PROFILE = {"x": ([1, 4], [2, 4], [8, 4])}
FAST = ["--builderOptimizationLevel=0"]


@pytest.fixture
def model(folder):
    return tiny.perceptron(folder / "model.onnx")


def test_a_network_is_put_together_by_hand():
    weights = np.arange(12, dtype=np.float32).reshape(4, 3)
    with hone.Network(17) as network:
        x = network.input("x", np.float32, ["n", 4])
        w = network.constant("w", weights)
        h = network.node("Gemm", [x, w, ""], ["h"], name="multiply", alpha=0.5, transA=0)
        network.node("Transpose", [h], ["y"], perm=[1, 0])
        network.node("Constant", [], ["c"], value=np.array([1, 2], np.int64))
        for tensor in ("y", "c"):
            network.output(tensor)
        parsed, again = network.model(), hone.Model.parse(network.bytes())
    assert parsed.inputs == again.inputs == {"x": (np.dtype(np.float32), (-1, 4))} and list(parsed.outputs) == ["y", "c"]
    values = np.ones((2, 4), np.float32)
    found = parsed.build(FAST, profiles=[PROFILE]).engine().context().run({"x": values})
    np.testing.assert_allclose(found["y"], (values @ weights * 0.5).T)
    assert found["c"].tolist() == [1, 2]
    with pytest.raises(hone.Error, match="Frobnicate"):
        broken = hone.Network()
        broken.input("x", "float32", [1])
        broken.node("Frobnicate", ["x"], ["y"])
        broken.output("y")
        broken.model()


def test_profiles_layer_types_and_times_are_given_as_objects(model):
    cache = hone.TimingCache()
    with hone.Model.load(model) as parsed:
        plan = parsed.build(["--builderOptimizationLevel=1"], profiles=[PROFILE, {"x": ([1, 4], [1, 4], [1, 4])}], layer_types={"dense": "fp32"}, timing_cache=cache)
        with pytest.raises(hone.Error, match="several ranks"):
            parsed.build(profiles=[{"x": ([1, 4], [2, 4], [8])}])
        with pytest.raises(hone.Error, match="fp99"):
            parsed.build(layer_types={"dense": "fp99"})
    engine = plan.engine()
    assert engine.profiles == 2 and engine.memory_bytes(1) <= engine.memory_bytes(0)
    with engine.context(1) as context:
        context.run({"x": np.ones((1, 4), np.float32)})
        context.set_profile(0)
        assert context.run({"x": np.ones((5, 4), np.float32)})["y"].shape == (5, 8)
    assert len(cache) > 0
    copy = hone.TimingCache(cache.bytes())
    copy.merge(cache)
    assert len(copy) == len(cache)


def test_layers_are_told(model):
    plan = hone.build(model, [*FAST, "--profilingVerbosity=detailed"], profiles=[PROFILE])
    info = plan.info()
    assert info.device_kind == "cpu" and info.profiles == 1 and info.version == hone.version() and info.has_weights and not info.refittable
    layers = plan.layers()
    assert {node for layer in layers for node in layer.nodes} == {"dense", "act"}
    assert "x" in layers[0].inputs and "y" in layers[-1].outputs and all(layer.source and layer.tactic for layer in layers if not layer.is_view)
    assert all(json.loads(layer.parameters or "{}") is not None for layer in layers)
    assert len(json.loads(plan.layers_json())["Layers"]) == len(layers)


def test_weights_are_exchanged_by_name(model):
    with hone.Model.load(model) as parsed:
        assert parsed.weights()["b"] == (np.dtype(np.float32), (8,))
        plan = parsed.build([*FAST, "--refit"], profiles=[PROFILE])
        parsed.set_weight("b", np.zeros(8))
        with pytest.raises(hone.Error, match="has the shape"):
            parsed.set_weight("b", np.zeros(7))
        with pytest.raises(hone.Error, match="nothing_of_the_kind"):
            parsed.set_weight("nothing_of_the_kind", np.zeros(7))
        plan = plan.refit(parsed)
    values = np.ones((2, 4), np.float32)
    found = plan.engine().context().run({"x": values})["y"]
    np.testing.assert_allclose(found, np.maximum(values @ np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8), 0), rtol=1e-5, atol=1e-6)


class Recorder(hone.Progress):
    def __init__(self, stops_at=None, raises=None):
        self.open, self.seen, self.stops_at, self.raises, self.asked = [], [], stops_at, raises, 0

    def begin(self, phase, parent, steps):
        assert parent == (self.open[-1][0] if self.open else None) and steps > 0
        self.open.append([phase, steps, 0])

    def step(self, phase, done):
        at = self.open[-1]
        assert at[0] == phase and done == at[2] + 1 <= at[1]
        at[2] = done
        return phase == self.stops_at

    def end(self, phase):
        name, steps, done = self.open.pop()
        assert name == phase and done == steps
        self.seen.append(phase)

    def stop(self):
        self.asked += 1
        if self.raises:
            raise self.raises


def test_progress_never_goes_back_and_ends_at_its_total(folder):
    path = tiny.convolutions(folder / "model.onnx")
    profile = {"x": ([1, 3, 16, 16], [2, 3, 16, 16], [8, 3, 16, 16])}
    whole = Recorder()
    hone.build(path, ["--builderOptimizationLevel=1"], profiles=[profile], progress=whole)
    assert not whole.open and whole.seen[-1] == "build" and {"prepare", "tune", "choose", "write"} <= set(whole.seen) and whole.asked
    cut = Recorder(stops_at="prepare")
    plan = hone.build(path, ["--builderOptimizationLevel=5"], profiles=[profile], progress=cut)
    assert not cut.open and cut.seen[-1] == "build"
    assert plan.engine().context().run({"x": np.zeros((2, 3, 16, 16), np.float32)})["y"].shape == (2, 10)


def test_what_progress_raises_ends_the_build(model):
    with pytest.raises(ZeroDivisionError):
        hone.build(model, profiles=[PROFILE], progress=Recorder(raises=ZeroDivisionError()))

    class Wrong(hone.Progress):
        def begin(self, phase, parent, steps):
            raise KeyError(phase)

    with pytest.raises(KeyError, match="build"):
        hone.build(model, profiles=[PROFILE], progress=Wrong())


def test_ctrl_c_ends_a_build(folder):
    class Interrupting(hone.Progress):
        def step(self, phase, done):
            if phase == "prepare":
                os.kill(os.getpid(), signal.SIGINT)

    path = tiny.convolutions(folder / "model.onnx")
    with pytest.raises(KeyboardInterrupt):
        hone.build(path, ["--builderOptimizationLevel=5"], profiles=[{"x": ([1, 3, 16, 16],) * 3}], progress=Interrupting())


class FakeTqdm:
    made = []

    def __init__(self, total, desc, file, position):
        self.total, self.desc, self.n, self.closed = total, desc, 0, False
        FakeTqdm.made.append(self)

    def update(self, more):
        self.n += more

    def close(self):
        self.closed = True


@pytest.mark.parametrize("kind", ["file", "terminal", "tqdm"])
def test_a_bar_shows_the_phases(folder, kind, monkeypatch):
    path = tiny.convolutions(folder / "model.onnx")
    monkeypatch.setitem(sys.modules, "tqdm", type("tqdm", (), {"tqdm": FakeTqdm}) if kind == "tqdm" else None)
    out = io.StringIO()
    out.isatty = lambda: kind == "terminal"
    hone.build(path, ["--builderOptimizationLevel=1"], profiles=[{"x": ([1, 3, 16, 16],) * 3}], progress=hone.ProgressBar(out))
    if kind == "tqdm":
        bars, FakeTqdm.made = FakeTqdm.made, []
        assert {bar.desc for bar in bars} >= {"tune", "profile 0"} and all(bar.closed and bar.n == bar.total for bar in bars)
    elif kind == "terminal":
        assert "\r" in out.getvalue() and f"tune [{'#' * 30}]" in out.getvalue()
    else:
        assert "profile 0 3/3\n" in out.getvalue() and "\r" not in out.getvalue()


def test_builds_run_beside_other_threads(model):
    done = []
    threads = [threading.Thread(target=lambda: done.append(hone.build(model, FAST, profiles=[PROFILE]).info().profiles)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [1, 1]


def agree(network, values, profiles=()):
    """Hone's results of a network by hand are ONNX Runtime's of its file."""
    data, model = network.bytes(), network.model()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = dict(zip((each.name for each in session.get_outputs()), session.run(None, values), strict=True))
    found = model.build(FAST, profiles=profiles).engine().context().run(values)
    assert found.keys() == expected.keys()
    for name, values_of in expected.items():
        np.testing.assert_allclose(found[name], values_of, rtol=1e-6, atol=1e-6)


def branch(scale, outer):
    body = hone.Network(17)
    body.node("Mul", [outer, body.constant("factor", np.float32(scale))], ["r"])  # the constant's name is the other branch's, too
    body.output("r")
    return body


def test_branches_of_an_if_see_the_values_around_them():
    network = hone.Network(17)
    x, c = network.input("x", "float32", ["n", 4]), network.input("c", "bool", [])
    h = network.node("Relu", [x], ["h"])
    network.node("If", [c], ["y"], then_branch=branch(2, h), else_branch=branch(-3, x))
    network.output("y")
    values = np.random.default_rng(1).standard_normal((2, 4), np.float32)
    for taken in (True, False):
        agree(network, {"x": values, "c": np.array(taken)}, [PROFILE])


def test_bodies_of_a_loop_and_a_scan_carry_values_and_nest():
    body = hone.Network(17)
    body.input("i", "int64", [])
    body.input("going", "bool", [])
    a = body.input("a", "float32", [2, 4])
    b = body.node("Add", [a, "step"], ["b"])
    t = body.node("ReduceSum", [b], ["t"], keepdims=0)
    positive = body.node("Greater", [t, body.constant("zero", np.float32(0))], ["positive"])
    body.node("If", [positive], ["kept"], then_branch=branch(0.5, b), else_branch=branch(2, "x"))
    body.node("Identity", ["going"], ["still"])
    for name in ("still", "kept", "b"):
        body.output(name)
    network = hone.Network(17)
    x = network.input("x", "float32", [2, 4])
    network.constant("step", np.full((2, 4), 0.25, np.float32))
    count, on = network.constant("count", np.int64(5)), network.constant("on", np.array(True))
    network.node("Loop", [count, on, x], ["last", "all"], body=body)
    sums = hone.Network(17)
    s, row = sums.input("s", "float32", [4]), sums.input("row", "float32", [4])
    sums.node("Add", [s, row], ["next"])
    sums.node("Identity", ["next"], ["told"])
    for name in ("next", "told"):
        sums.output(name)
    network.node("Scan", [network.constant("start", np.zeros(4, np.float32)), x], ["total", "running"], body=sums, num_scan_inputs=1)
    for name in ("last", "all", "total", "running"):
        network.output(name)
    agree(network, {"x": np.random.default_rng(2).standard_normal((2, 4), np.float32)})


def test_a_body_that_does_not_fit_its_node_is_refused():
    network = hone.Network(17)
    x, c = network.input("x", "float32", [4]), network.input("c", "bool", [])
    network.node("If", [c], ["y"], name="choose", then_branch=branch(2, x), else_branch=branch(3, "nowhere"))
    network.output("y")
    with pytest.raises(hone.Error, match="'nowhere' is not defined"):
        network.model()
    (entry,) = (entry for entry in hone.diagnose(network).entries if entry.severity == 1)
    assert entry.problem == hone.Problem.GRAPH and hone.diagnose(network).nodes[entry.node].name == "choose"


def test_formats_of_single_inputs_and_outputs(folder):
    path = tiny.convolutions(folder / "model.onnx")
    profiles = [{"x": ([1, 3, 16, 16], [2, 3, 16, 16], [4, 3, 16, 16])}]
    with hone.Model.load(path) as parsed:
        expected = parsed.build(FAST, profiles=profiles).engine()
        engine = parsed.build(FAST, profiles=profiles, formats={"x": "fp32:hwc", "y": "fp16:chw"}).engine()
        with pytest.raises(hone.Error, match="no input or output called z"):
            parsed.build(FAST, profiles=profiles, formats={"z": "fp32:hwc"})
        with pytest.raises(hone.Error, match="wch"):
            parsed.build(FAST, profiles=profiles, formats={"x": "fp32:wch"})
    assert engine.outputs["y"][0] == np.float16 and engine.inputs["x"][0] == np.float32
    values = np.random.default_rng(3).standard_normal((2, 3, 16, 16), np.float32)
    known = expected.context().run({"x": values})["y"]
    lying = np.ascontiguousarray(values.transpose(0, 2, 3, 1)).reshape(values.shape)  # the bytes of rows of channels
    np.testing.assert_allclose(engine.context().run({"x": lying})["y"], known, rtol=2e-3, atol=2e-3)
