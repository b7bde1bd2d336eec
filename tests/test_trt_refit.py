# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: other weights for an engine in place, by name, by layer and role, from ONNX; plans without weights."""

import numpy as np
import pytest
from onnx import helper, numpy_helper
from trt_networks import Log, build, infer, trt

RANDOM = np.random.default_rng(17)


def weights():
    return {"w": RANDOM.standard_normal((5, 3, 3, 3)).astype(np.float32), "b": RANDOM.standard_normal(5).astype(np.float32)}


def onnx_bytes(held):
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"], name="act")]
    sides = [helper.make_tensor_value_info("x", 1, [2, 3, 6, 6])], [helper.make_tensor_value_info("y", 1, [2, 5, 6, 6])]
    graph = helper.make_graph(nodes, "g", *sides, [numpy_helper.from_array(array, name) for name, array in held.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def plan_of(held, *flags, log=None):
    log = log or Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    assert trt.OnnxParser(network, log).parse(onnx_bytes(held))
    config = builder.create_builder_config()
    config.builder_optimization_level = 0
    for flag in flags:
        config.set_flag(flag)
    return build(network, config, log)


def images():
    return RANDOM.standard_normal((2, 3, 6, 6)).astype(np.float32)


def test_contexts_that_were_there_see_the_new_weights():
    log, old, new = Log(), weights(), weights()
    engine = trt.Runtime(log).deserialize_cuda_engine(plan_of(old, trt.BuilderFlag.REFIT))
    context = engine.create_execution_context()
    x, y = images(), np.zeros((2, 5, 6, 6), np.float32)
    assert engine.refittable and context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_allclose(y, infer(plan_of(old), {"x": x})["y"], rtol=1e-5, atol=1e-5)
    refitter = trt.Refitter(engine, log)
    assert sorted(refitter.get_all_weights()) == ["b", "w"] and refitter.get_missing_weights() == []
    prototype = refitter.get_weights_prototype("w")
    assert prototype.dtype == trt.float32 and prototype.size == 135
    layers, roles = refitter.get_all()
    assert set(zip(layers, roles)) == {("conv", trt.WeightsRole.KERNEL), ("conv", trt.WeightsRole.BIAS)}
    assert refitter.set_named_weights("w", trt.Weights(new["w"])) and refitter.set_weights("conv", trt.WeightsRole.BIAS, new["b"])
    assert refitter.get_named_weights("w").size == 135 and refitter.get_weights_location("w") == trt.TensorLocation.HOST
    assert refitter.refit_cuda_engine() and context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_allclose(y, infer(plan_of(new), {"x": x})["y"], rtol=1e-5, atol=1e-5)
    again = trt.Runtime(log).deserialize_cuda_engine(engine.serialize())
    assert again.name == engine.name and again.refittable and not log.errors()


def test_some_weights_alone_and_those_of_a_model():
    log, old, new = Log(), weights(), weights()
    engine = trt.Runtime(log).deserialize_cuda_engine(plan_of(old, trt.BuilderFlag.REFIT))
    x = images()
    refitter = trt.Refitter(engine, log)
    assert refitter.set_named_weights("b", new["b"]) and refitter.refit_cuda_engine_async(0)
    np.testing.assert_allclose(infer(engine.serialize(), {"x": x})["y"], infer(plan_of({**old, "b": new["b"]}), {"x": x})["y"], rtol=1e-5,
                               atol=1e-5)
    parser = trt.OnnxParserRefitter(refitter, log)
    assert parser.refit_from_bytes(onnx_bytes(new)) and parser.num_errors == 0 and refitter.refit_cuda_engine()
    np.testing.assert_allclose(infer(engine.serialize(), {"x": x})["y"], infer(plan_of(new), {"x": x})["y"], rtol=1e-5, atol=1e-5)


def test_a_plan_without_weights_takes_them_back():
    log, held = Log(), weights()
    whole, data = plan_of(held), plan_of(held, trt.BuilderFlag.STRIP_PLAN)
    engine = trt.Runtime(log).deserialize_cuda_engine(data)
    assert engine.create_execution_context() is None and "refit it first" in log.errors()[-1]
    assert list(engine) == ["x", "y"] and engine.refittable
    refitter = trt.Refitter(engine, log)
    assert sorted(refitter.get_missing_weights()) == ["b", "w"]
    assert not refitter.refit_cuda_engine() and "weights are missing" in log.errors()[-1]
    assert trt.OnnxParserRefitter(refitter, log).refit_from_bytes(onnx_bytes(held)) and refitter.get_missing_weights() == []
    assert refitter.refit_cuda_engine()
    context, x, y = engine.create_execution_context(), images(), np.zeros((2, 5, 6, 6), np.float32)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    np.testing.assert_allclose(y, infer(whole, {"x": x})["y"], rtol=1e-5, atol=1e-5)


def test_wrong_weights_are_refused_with_a_reason():
    log, held = Log(), weights()
    engine = trt.Runtime(log).deserialize_cuda_engine(plan_of(held, trt.BuilderFlag.REFIT))
    refitter = trt.Refitter(engine, log)
    for call, text in [(lambda: refitter.set_named_weights("none", held["b"]), "no weights 'none'"),
                       (lambda: refitter.set_named_weights("b", held["b"][:4].copy()), "5 numbers"),
                       (lambda: refitter.set_named_weights("b", held["b"].astype(np.float16)), "DataType.HALF were given"),
                       (lambda: refitter.set_weights("conv", trt.WeightsRole.SCALE, held["b"]), "no weights of the role SCALE")]:
        assert call() is False
        assert text in log.errors()[-1], log.errors()[-1]
    assert not refitter.unset_named_weights("b")
    fixed = trt.Runtime(log).deserialize_cuda_engine(plan_of(held))
    count = len(log.errors())
    assert trt.Refitter(fixed, log).get_all_weights() == [] and len(log.errors()) > count
    with pytest.raises(TypeError):
        refitter.set_named_weights("b", [1, 2, 3])
