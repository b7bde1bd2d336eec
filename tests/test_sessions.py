# SPDX-License-Identifier: Apache-2.0
"""hone.onnxruntime beside ONNX Runtime itself: what it says of a model, what runs give, which exception by which name. Shapes that
change, kept engines, threads, options."""

import importlib
import json
import sys
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
import tiny
from conftest import PACKAGE
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")
ort = importlib.import_module("hone.onnxruntime")
onnxruntime.set_default_logger_severity(4)
BOTH = (onnxruntime, ort)


@pytest.fixture
def model(folder):
    return tiny.perceptron(folder / "model.onnx")


def rows(count, size=4):
    return np.random.default_rng(count).standard_normal((count, size)).astype(np.float32)


def same(found, expected):
    """Results of two runs, whatever they are made of."""
    assert type(found) is type(expected)
    if isinstance(found, list):
        assert len(found) == len(expected)
        for each in zip(found, expected):
            same(*each)
    elif isinstance(found, dict):
        assert found.keys() == expected.keys()
        for key in found:
            same(found[key], expected[key])
    elif isinstance(found, np.ndarray) and found.dtype.kind in "fc":
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    elif isinstance(found, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape) and (found == expected).all()
    else:
        assert found == (pytest.approx(expected, rel=1e-5) if isinstance(expected, float) else expected)


def described(arguments):
    return [(each.name, each.type, each.shape) for each in arguments]


def graph(folder, nodes, inputs, outputs, weights=(), **options):
    tensors = [[helper.make_tensor_value_info(*each) if isinstance(each, tuple) else each for each in side] for side in (inputs, outputs)]
    made = helper.make_graph(nodes, "made", *tensors, [numpy_helper.from_array(values, name) for name, values in dict(weights).items()])
    path = folder / "graph.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8,
                                **options), path)
    return str(path)


def test_a_session_describes_its_model_as_the_original_does(folder, model):
    extended = onnx.load(model)
    extended.producer_name, extended.domain, extended.doc_string, extended.model_version = "maker", "org", "what it is", 7
    extended.graph.doc_string = "of the graph"
    helper.set_model_props(extended, {"labels": "a,b", "Ä": "ö"})
    extended.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 8]))
    models = [str(model), extended.SerializeToString(),
              graph(folder, [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Shape", ["c"], ["s"])],
                    [("a", TensorProto.DOUBLE, [None, "m", 3]), ("b", TensorProto.DOUBLE, [1, "m", 3])],
                    [("c", TensorProto.DOUBLE, None), ("s", TensorProto.INT64, None)])]
    for source in models:
        theirs, ours = (each.InferenceSession(source, providers=["CPUExecutionProvider"]) for each in BOTH)
        for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
            assert described(getattr(ours, method)()) == described(getattr(theirs, method)()), method
        for name in ("producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map"):
            assert getattr(ours.get_modelmeta(), name) == getattr(theirs.get_modelmeta(), name), name
        assert str(ours.get_inputs()[0]) == str(theirs.get_inputs()[0])
        assert ours.get_providers() == theirs.get_providers() and ours.get_provider_options() == theirs.get_provider_options()


@pytest.mark.parametrize("give", [
    lambda r, s, x: s.run(None, {"x": x}),
    lambda r, s, x: s.run([], {"x": x}),
    lambda r, s, x: s.run(["y", "y"], {"x": x}),
    lambda r, s, x: s.run(None, {"x": x.tolist()}),
    lambda r, s, x: s.run(None, {"x": np.tile(x, 2)[:, ::2]}),
    lambda r, s, x: s.run(None, {"x": x[:0]}),
    lambda r, s, x: s.run(None, {"x": r.OrtValue.ortvalue_from_numpy(x)}),
    lambda r, s, x: [each.numpy() for each in s.run_with_ort_values(["y"], {"x": r.OrtValue.ortvalue_from_numpy(x)})],
    lambda r, s, x: s.run(None, {}),
    lambda r, s, x: s.run(None, {"z": x}),
    lambda r, s, x: s.run(None, {"x": x, "z": x}),
    lambda r, s, x: s.run(["q"], {"x": x}),
    lambda r, s, x: s.run("y", {"x": x}),
    lambda r, s, x: s.run(None, {"x": x.astype(np.float64)}),
    lambda r, s, x: s.run(None, {"x": rows(2, 5)}),
    lambda r, s, x: s.run(None, {"x": x[0]}),
    lambda r, s, x: s.run(None, {"x": "text"}),
    lambda r, s, x: s.run(None, [x]),
    lambda r, s, x: s.run(None, {"x": x}, 5),
    lambda r, s, x: s.run(None, {"x": x}, stopped(r)),
    lambda r, s, x: r.InferenceSession("/nowhere/model.onnx"),
    lambda r, s, x: r.InferenceSession("/"),
    lambda r, s, x: r.InferenceSession(__file__),
    lambda r, s, x: r.InferenceSession(b"no model"),
    lambda r, s, x: r.InferenceSession(b""),
    lambda r, s, x: r.InferenceSession(3),
    lambda r, s, x: r.InferenceSession(renamed("Foo", None)),
    lambda r, s, x: r.InferenceSession(renamed(None, "nowhere")),
    lambda r, s, x: setattr(r.SessionOptions(), "intra_op_threads", 1),
    lambda r, s, x: setattr(r.SessionOptions(), "intra_op_num_threads", "two"),
    lambda r, s, x: setattr(r.SessionOptions(), "graph_optimization_level", 3),
    lambda r, s, x: r.SessionOptions().get_session_config_entry("nothing"),
    lambda r, s, x: s.io_binding().bind_cpu_input("q", x),
    lambda r, s, x: bound(r, s, x, None),
    lambda r, s, x: bound(r, s, x, np.empty((2, 8), np.float32)),
    lambda r, s, x: bound(r, s, x, np.empty((3, 8), np.float32)),
    lambda r, s, x: s.run_with_iobinding(s.io_binding()),
    lambda r, s, x: r.OrtValue.ortvalue_from_numpy([1]),
    lambda r, s, x: r.OrtValue.ortvalue_from_numpy(x).update_inplace(x[:1]),
    lambda r, s, x: s.end_profiling(),
    lambda r, s, x: s.get_profiling_start_time_ns(),
])
def test_results_and_exceptions_are_those_of_the_original(model, give):
    outcomes = []
    for runtime in BOTH:
        session = runtime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        try:
            outcomes.append(give(runtime, session, rows(2)))
        except Exception as error:
            outcomes.append(error)
    theirs, ours = outcomes
    if not isinstance(theirs, Exception):
        return same(ours, theirs)
    assert type(ours).__name__ == type(theirs).__name__
    if type(theirs).__module__ != "builtins":  # one of ONNX Runtime's
        assert isinstance(ours, RuntimeError) and isinstance(ours, hone.Error)
        assert str(ours).split(" : ")[:3] == str(theirs).split(" : ")[:3]
        if not isinstance(ours, ort.InvalidGraph) and "nowhere" not in str(ours):
            assert str(ours) == str(theirs)
    return None


def stopped(runtime):
    options = runtime.RunOptions()
    options.terminate = True
    return options


def renamed(operator, operand):
    nodes = [helper.make_node(operator or "Relu", [operand or "x"], ["y"])]
    sides = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in "xy"]
    return helper.make_model(helper.make_graph(nodes, "g", *sides), opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def bound(runtime, session, x, output):
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    if output is None:
        binding.bind_output("y")
    else:
        binding.bind_output("y", "cpu", 0, np.float32, output.shape, output.ctypes.data)
    session.run_with_iobinding(binding)
    (found,) = binding.copy_outputs_to_cpu()
    assert output is None or (found == output).all()
    values = binding.get_outputs()[0]
    return [found, values.shape(), values.data_type(), values.device_name(), values.element_type(), values.is_tensor(), values.has_value()]


def test_sequences_maps_and_texts_come_out_as_the_original_gives_them(folder):
    classes = graph(folder, [helper.make_node("ZipMap", ["x"], ["m"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"]),
                             helper.make_node("SplitToSequence", ["x"], ["s"], axis=0),
                             helper.make_node("LabelEncoder", ["t"], ["n"], domain="ai.onnx.ml", keys_strings=["a", "b"], values_int64s=[1, 2]),
                             helper.make_node("Identity", ["t"], ["u"])],
                    [("x", TensorProto.FLOAT, ["n", 2]), ("t", TensorProto.STRING, ["k"])],
                    [helper.make_value_info("m", helper.make_sequence_type_proto(helper.make_map_type_proto(
                        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))),
                     helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None), ("n", TensorProto.INT64, ["k"]),
                     ("u", TensorProto.STRING, ["k"])])
    theirs, ours = (each.InferenceSession(classes, providers=["CPUExecutionProvider"]) for each in BOTH)
    assert described(ours.get_inputs()) == described(theirs.get_inputs())
    assert [(each.name, each.type) for each in ours.get_outputs()] == [(each.name, each.type) for each in theirs.get_outputs()]
    for texts in (["a", "b", "z"], np.array(["b"]), np.array(["b", "a"], object)):
        feeds = {"x": rows(3, 2), "t": texts}
        same(ours.run(None, feeds), theirs.run(None, feeds))


def test_shapes_that_change_find_or_make_an_engine(folder, model):
    theirs, ours = (each.InferenceSession(str(model)) for each in BOTH)
    for count in (2, 1, 8, 3):
        same(ours.run(None, {"x": rows(count)}), theirs.run(None, {"x": rows(count)}))
    assert ours._engines.built == 1, "up to four times the first feed"
    for count in (9, 100, 33, 2, 50):
        same(ours.run(None, {"x": rows(count)}), theirs.run(None, {"x": rows(count)}))
    assert ours._engines.built == 3
    same(ours.run(None, {"x": rows(0)}), theirs.run(None, {"x": rows(0)}))
    for count in (1, 5000, 200000, 7, 1000, 30000):  # no more than a few are kept
        same(ours.run(None, {"x": rows(count)}), theirs.run(None, {"x": rows(count)}))
    assert len(ours._engines.engines) <= 8


def test_engines_are_kept_in_a_folder(folder, model):
    options = ort.SessionOptions()
    options.add_session_config_entry("hone.cache", str(folder / "kept"))
    expected = onnxruntime.InferenceSession(str(model)).run(None, {"x": rows(5)})
    for built, loaded in ((1, 0), (0, 1)):
        session = ort.InferenceSession(str(model), options)
        same(session.run(None, {"x": rows(5)}), expected)
        assert (session._engines.built, session._engines.loaded) == (built, loaded)
    same(ort.InferenceSession(str(model), options).run(None, {"x": rows(1)}), onnxruntime.InferenceSession(str(model)).run(None, {"x": rows(1)}))
    assert len(list((folder / "kept").glob("*.plan"))) == 1, "the nearest that allows the shapes serves"
    other = onnx.load(model)
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full((4, 8), 2, np.float32), "w"))
    same(ort.InferenceSession(other.SerializeToString(), options).run(None, {"x": rows(5)}),
         onnxruntime.InferenceSession(other.SerializeToString()).run(None, {"x": rows(5)}))
    for path in (folder / "kept").glob("*.plan"):
        path.write_bytes(path.read_bytes()[:-50])
    session = ort.InferenceSession(str(model), options)
    same(session.run(None, {"x": rows(5)}), expected)
    assert session._engines.built == 1, "a damaged plan is built anew"


def test_a_plan_opens_as_a_session(folder, model):
    session = ort.InferenceSession(str(model))
    with pytest.raises(ort.InvalidArgument, match="say the shapes"):
        session.save_plan(folder / "m.plan")
    session.run(None, {"x": rows(2)})
    session.save_plan(folder / "m.plan")
    for source in (str(folder / "m.plan"), (folder / "m.plan").read_bytes()):
        again = ort.InferenceSession(source)
        assert described(again.get_inputs()) == [("x", "tensor(float)", ["n", 4])]
        same(again.run(None, {"x": rows(8)}), session.run(None, {"x": rows(8)}))
        with pytest.raises(ort.Fail, match="the plan has no profile for x"):
            again.run(None, {"x": rows(9)})
    (folder / "m.plan").write_bytes(b"HONEPLAN and then nothing")
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(folder / "m.plan")


def test_threads_share_a_session(model):
    session = ort.InferenceSession(str(model))
    counts = list(range(1, 9)) * 5
    expected = {count: onnxruntime.InferenceSession(str(model)).run(None, {"x": rows(count)}) for count in set(counts)}
    wrong = []

    def work(count):
        try:
            for _ in range(20):
                same(session.run(None, {"x": rows(count)}), expected[count])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(count,)) for count in counts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_run_on_another_thread_calls_back(model):
    for feeds, failed in (({"x": rows(2)}, ""), ({"x": rows(2).astype(np.float64)}, "Unexpected input data type")):
        told = []
        for runtime in BOTH:
            done, session = threading.Event(), runtime.InferenceSession(str(model))
            session.run_async(None, feeds, lambda *each, done=done: (told.append(each), done.set()), "mine")
            assert done.wait(60)
        (theirs, _, why), (ours, data, reason) = told
        assert data == "mine" and reason == why and reason.startswith(failed)
        same(list(ours), list(theirs))


def test_options_take_effect(folder, model):
    made = []
    for runtime in BOTH:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_free_dimension_override_by_name("n", 3)
        values = runtime.OrtValue.ortvalue_from_numpy(np.full(8, 5, np.float32))
        options.add_initializer("b", values)
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / runtime.__name__)
        session = runtime.InferenceSession(str(model), options)
        assert described(session.get_inputs()) == [("x", "tensor(float)", [3, 4])] and session.get_outputs()[0].shape == [3, 8]
        made.append(session.run(None, {"x": rows(3)}))
        with pytest.raises(Exception, match="index: 0 Got: 2 Expected: 3"):
            session.run(None, {"x": rows(2)})
        events = json.loads(open(session.end_profiling(), encoding="utf-8").read())
        assert {"session_initialization", "model_run"} <= {event["name"] for event in events}
        assert [event for event in events if event["cat"] == "Node" and event["dur"] >= 0]
    same(*made)
    assert session._engines.device.info.workers == 1
    with pytest.raises(ort.Fail, match="nowhere.so"):
        options.register_custom_ops_library("/nowhere.so")


def test_an_optimised_model_is_asked_for(folder, model):
    made = []
    for runtime in BOTH:
        options = runtime.SessionOptions()
        options.optimized_model_filepath = str(folder / f"{runtime.__name__}.onnx")
        if runtime is ort:
            with pytest.warns(UserWarning, match="save_plan"):
                runtime.InferenceSession(str(model), options)
        else:
            runtime.InferenceSession(str(model), options)
        made.append(runtime.InferenceSession(options.optimized_model_filepath).run(None, {"x": rows(3)}))
    same(*made)


def test_weights_among_the_inputs_may_be_fed(folder):
    weight = np.arange(4, dtype=np.float32).reshape(1, 4)
    path = graph(folder, [helper.make_node("Add", ["x", "w"], ["y"])], [("x", 1, ["n", 4]), ("w", 1, [1, 4])], [("y", 1, ["n", 4])], {"w": weight})
    sessions = [runtime.InferenceSession(str(path)) for runtime in BOTH]
    for feeds in ({}, {"w": weight * 3}, {"w": weight - 1}, {"w": weight * 3}, {}):
        same(*(session.run(None, {"x": rows(2), **feeds}) for session in sessions))
    assert len(sessions[1]._others) == 2
    for wrong in ({"w": weight.astype(np.float64)}, {"w": weight[:, :2]}):
        with pytest.raises(ort.InvalidArgument):
            sessions[1].run(None, {"x": rows(2), **wrong})


def test_what_scripts_call_before_a_session(capsys):
    ort.preload_dlls()
    ort.set_global_thread_pool_sizes(2, 1)
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, ort.OrtArenaCfg(0, -1, -1, -1))
    ort.create_and_register_allocator_v2("CPUExecutionProvider", info, {}, None)
    source, destination = (ort.OrtValue.ortvalue_from_numpy(np.full(3, number, np.float32)) for number in (1, 2))
    ort.copy_tensors([source], [destination])
    assert destination.numpy().tolist() == [1, 1, 1] and not ort.has_collective_ops()
    ort.print_debug_info()
    assert hone.version() in capsys.readouterr().out and ort.version == ort.__version__


def test_flags_of_hone_reach_the_build(model):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("hone.flags", "--fp16")
    session = ort.InferenceSession(str(model), options)
    session.run(None, {"x": rows(1)})
    said = session._engines.latest.plan.info().options
    assert "level=1" in said and "FP16" in said
    options.add_session_config_entry("hone.flags", "--noSuchFlag")
    with pytest.raises(ort.Fail, match="noSuchFlag"):
        ort.InferenceSession(str(model), options).run(None, {"x": rows(1)})


def test_profiles_of_the_gpu_providers_options_are_read():
    from hone.onnxruntime.opening import _ranges

    assert _ranges({}) == []
    assert _ranges({"trt_profile_min_shapes": "x:1x4,y:2", "trt_profile_opt_shapes": "x:2x4,y:2", "trt_profile_max_shapes": "x:8x4,y:3"}) == [
        {"x": ((1, 4), (2, 4), (8, 4)), "y": ((2,), (2,), (3,))}]
    with pytest.raises(ort.InvalidArgument, match="name the same inputs"):
        _ranges({"trt_profile_min_shapes": "x:1x4", "trt_profile_opt_shapes": "y:2x4", "trt_profile_max_shapes": "x:8x4"})


def test_unknown_providers_are_warned_about_and_passed_over(model):
    with pytest.warns(UserWarning, match="'NoProvider' is not in available"):
        session = ort.InferenceSession(str(model), providers=["NoProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(ValueError, match="same length"):
        ort.InferenceSession(str(model), None, ["CPUExecutionProvider"], [{}, {}])


def test_the_names_are_in_hone_itself_and_where_exceptions_are_looked_for():
    assert hone.InferenceSession is ort.InferenceSession and hone.SessionOptions is ort.SessionOptions
    from hone.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile

    assert InvalidArgument is ort.InvalidArgument and NoSuchFile is hone.NoSuchFile
    assert {name for name in ort.__all__ if name not in ("OnnxRuntimeError",)} <= {*dir(onnxruntime), *dir(
        onnxruntime.capi.onnxruntime_pybind11_state)}, "nothing that the original lacks"
    with pytest.raises(AttributeError):
        hone.no_such_name
