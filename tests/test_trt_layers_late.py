# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: what the later releases added, against numpy: quantising in blocks and with scales found as it runs, attention that is
quantised, caches of keys and values, mixtures of experts; and assertions, and sizes that follow from shape tensors."""

import ml_dtypes
import numpy as np
import pytest
from trt_networks import Allocator, Log, build, infer, run, trt

RANDOM = np.random.default_rng(29)
FP8, FP4 = ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn
STRONG = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)


def constant(n, values):
    values = np.ascontiguousarray(values)
    return n.add_constant(values.shape, values).get_output(0)


def spread(scale, blocks):
    for axis, block in enumerate(blocks):
        scale = np.repeat(scale, block, axis)
    return scale


@pytest.mark.parametrize("blocks", [(1, 4), (2, 4), (3, 1), (-1, 4), (1, 1)])
def test_quantising_in_blocks(blocks):
    x = RANDOM.standard_normal((6, 8)).astype(np.float32)
    real = [size if block == -1 else block for block, size in zip(blocks, x.shape)]
    scale = (0.01 + RANDOM.random([size // block for size, block in zip(x.shape, real)])).astype(np.float32) / 20

    def make(n, value):
        s = constant(n, scale)
        q = n.add_quantize(value, s)
        q.block_shape = blocks
        d = n.add_dequantize(q.get_output(0), s)
        d.block_shape = blocks
        return d.get_output(0)

    wide = spread(scale, real)
    np.testing.assert_allclose(run(make, x), np.clip(np.round(x / wide), -128, 127) * wide, rtol=1e-5, atol=1e-6)


def test_a_zero_point_of_reals_is_zero():
    x = RANDOM.standard_normal((3, 4)).astype(np.float32)

    def make(n, value):
        q = n.add_quantize(value, constant(n, np.full(4, 0.05, np.float32)))
        q.axis = 1
        q.set_input(2, constant(n, np.zeros(4, np.float32)))
        return n.add_dequantize(q.get_output(0), constant(n, np.array(1.0, np.float32))).get_output(0)

    np.testing.assert_allclose(run(make, x), np.clip(np.round(x / np.float32(0.05)), -128, 127), atol=1e-5)


def halves(shape):
    """Values of which no quotient falls between two."""
    return (RANDOM.integers(1, 16, shape) / 16 * RANDOM.choice([-1, 1], shape)).astype(np.float32)


def blocks_of(x, block):
    return np.abs(x).reshape(x.shape[0] // block[0], block[0], x.shape[1] // block[1], block[1]).max((1, 3))


@pytest.mark.parametrize("second", (False, True))
@pytest.mark.parametrize("kind, most, block", [("FP8", 448.0, (1, 16)), ("FP4", 6.0, (1, 16)), ("FP8", 448.0, (2, 8)), ("FP4", 6.0, (-1, 32))])
def test_scales_that_are_found_as_the_network_runs(kind, most, block, second):
    x = halves((4, 32))
    real = tuple(size if each == -1 else each for each, size in zip(block, x.shape))

    def make(n, value):
        to, scale_type = getattr(trt.DataType, kind), trt.DataType.FP8 if second else trt.DataType.FLOAT
        layer = n.add_dynamic_quantize(value, 1, 16, to, scale_type) if block == (1, 16) else n.add_dynamic_quantize_v2(value, block, to, scale_type)
        if second:
            layer.set_input(1, constant(n, np.array(0.25, np.float32)))
        return [layer.get_output(0), layer.get_output(1)]

    values, scales = run(make, x)
    expected = (blocks_of(x, real) / np.float32(most)).astype(np.float32)
    divisor = expected
    if second:
        expected = (expected / np.float32(0.25)).astype(FP8).astype(np.float32)
        divisor = expected * np.float32(0.25)
    np.testing.assert_allclose(scales, expected, rtol=1e-6)
    quotients = x / spread(divisor, real)
    rounded = np.clip(quotients, -most, most).astype(FP8 if kind == "FP8" else FP4).astype(np.float32)
    near = np.abs(values - quotients) <= np.abs(rounded - quotients) * 1.001 + 1e-3 * most / 448  # on a tie, either
    assert near.all(), (values[~near], quotients[~near])
    assert (values == rounded).mean() > 0.9


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


@pytest.mark.parametrize("kind", ("FP8", "INT8"))
def test_attention_whose_weights_are_quantised(kind):
    q, k, v = (RANDOM.random((2, 3, 4, 8)).astype(np.float32) for _ in range(3))
    scale = np.float32(1 / 240 if kind == "FP8" else 1 / 127)

    def make(n, *inputs):
        attention = n.add_attention(*inputs, trt.AttentionNormalizationOp.SOFTMAX, False)
        attention.normalization_quantize_scale = constant(n, np.array([scale]))
        attention.normalization_quantize_to_type = getattr(trt.DataType, kind)
        assert attention.num_inputs == 5 and attention.mask is None
        return attention.get_output(0)

    weights = softmax(q @ k.transpose(0, 1, 3, 2)) / scale
    weights = weights.astype(FP8).astype(np.float32) if kind == "FP8" else np.round(weights)
    np.testing.assert_allclose(run(make, q, k, v, flags=STRONG), weights * scale @ v, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype, index", [(np.float32, np.int32), (np.float16, np.int64)])
def test_a_cache_of_keys_is_updated_in_its_own_memory_or_elsewhere(dtype, index):
    cache, update = RANDOM.random((2, 3, 8, 4)).astype(dtype), RANDOM.random((2, 3, 2, 4)).astype(dtype)
    at = np.array([5, 0], index)
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network(STRONG)
    types = {np.dtype(np.float32): trt.float32, np.dtype(np.float16): trt.float16, np.dtype(np.int32): trt.int32, np.dtype(np.int64): trt.int64}
    inputs = [network.add_input(name, types[values.dtype], values.shape) for name, values in (("cache", cache), ("new", update), ("at", at))]
    layer = network.add_kv_cache_update(*inputs, trt.KVCacheMode.LINEAR)
    layer.get_output(0).name = "after"
    network.mark_output(layer.get_output(0))
    doubled = network.add_elementwise(layer.get_output(0), inputs[0], trt.ElementWiseOperation.SUM)  # reads the cache as it was
    doubled.get_output(0).name = "sum"
    network.mark_output(doubled.get_output(0))
    assert network.add_kv_cache_update(layer.get_output(0), inputs[1], inputs[2], trt.KVCacheMode.LINEAR) is None
    plan = build(network, None, log)
    expected = cache.copy()
    for row, first in enumerate(at):
        expected[row, :, first:first + 2] = update[row]
    found = infer(plan, {"cache": cache, "new": update, "at": at})
    np.testing.assert_array_equal(found["after"], expected)
    engine = trt.Runtime(log).deserialize_cuda_engine(plan)
    assert engine.get_aliased_input_tensor("after") == "cache" and engine.get_aliased_input_tensor("sum") is None
    context, held, total = engine.create_execution_context(), cache.copy(), np.zeros_like(cache)
    for name, array in (("cache", held), ("new", update), ("at", at), ("after", held), ("sum", total)):
        context.set_tensor_address(name, array.ctypes.data)
    assert context.execute_async_v3(1)
    np.testing.assert_array_equal(held, expected)
    np.testing.assert_allclose(total, expected + cache, rtol=1e-3)


def silu(x, steep=1.0):
    return x / (1 + np.exp(-steep * x))


@pytest.mark.parametrize("how", ("plain", "biased", "limited", "none", "static", "dynamic"))
def test_mixtures_of_experts(how):
    hidden, experts, inner = 8, 4, 6
    x = RANDOM.standard_normal((2, 3, hidden)).astype(np.float32)
    chosen = np.stack([RANDOM.permutation(experts)[:2] for _ in range(6)]).reshape(2, 3, 2).astype(np.int32)
    scores = RANDOM.random((2, 3, 2)).astype(np.float32)
    gate, up = (RANDOM.standard_normal((experts, hidden, inner)).astype(np.float32) for _ in range(2))
    down = RANDOM.standard_normal((experts, inner, hidden)).astype(np.float32)
    biases = [RANDOM.standard_normal((experts, size)).astype(np.float32) if how == "biased" else np.zeros((experts, size), np.float32)
              for size in (inner, inner, hidden)]
    scale = np.array([0.05], np.float32)

    def make(n, *inputs):
        layer = n.add_moe(*inputs)
        kind = trt.MoEActType.NONE if how == "none" else trt.MoEActType.SILU
        layer.set_gated_weights(constant(n, gate), constant(n, up), constant(n, down), kind)
        if how == "biased":
            layer.set_gated_biases(*(constant(n, each) for each in biases))
        if how == "limited":
            layer.set_swiglu_params(1.5, 1.702, 1.0)
            assert abs(layer.swiglu_param_alpha - 1.702) < 1e-6
        if how == "static":
            layer.set_quantization_static(constant(n, scale), trt.DataType.FP8)
        if how == "dynamic":
            layer.set_quantization_dynamic_dbl_q(constant(n, np.ones(1, np.float32)), trt.DataType.FP8, (6,), trt.DataType.FLOAT)
        assert layer.activation_type == kind
        return layer.get_output(0)

    def expert(row, at):
        a, b = row @ gate[at] + biases[0][at], row @ up[at] + biases[1][at]
        if how == "limited":
            a, b = np.minimum(a, 1.5), np.clip(b, -1.5, 1.5) + 1
            middle = silu(a, 1.702) * b
        else:
            middle = (a if how == "none" else silu(a)) * b
        if how == "static":
            middle = np.clip(middle / scale, -448, 448).astype(FP8).astype(np.float32) * scale
        if how == "dynamic":
            own = np.abs(middle).max() / np.float32(448)
            middle = (middle / own).astype(FP8).astype(np.float32) * own
        return middle @ down[at] + biases[2][at]

    expected = np.zeros_like(x)
    for b, s in np.ndindex(2, 3):
        for k in range(2):
            expected[b, s] += scores[b, s, k] * expert(x[b, s], chosen[b, s, k])
    rough = how in ("static", "dynamic")  # a value between two of FP8 goes either way
    np.testing.assert_allclose(run(make, x, chosen, scores, flags=STRONG), expected, rtol=1e-3, atol=0.3 if rough else 1e-4)


def test_a_mixture_without_weights_is_refused():
    log = Log()
    network = trt.Builder(log).create_network(STRONG)
    layer = network.add_moe(network.add_input("x", trt.float32, (1, 2, 8)), network.add_input("e", trt.int32, (1, 2, 1)),
                            network.add_input("s", trt.float32, (1, 2, 1)))
    network.mark_output(layer.get_output(0))
    assert network.builder.build_serialized_network(network, network.builder.create_builder_config()) is None
    assert "has no weights" in log.errors()[-1]


def test_gathers_with_several_elementwise_dimensions():
    data, at = RANDOM.random((2, 3, 5, 4)).astype(np.float32), RANDOM.integers(0, 4, (2, 3, 2)).astype(np.int32)

    def gather(axis, batch):
        def make(n, x, indices):
            layer = n.add_gather_v2(x, indices, trt.GatherMode.DEFAULT)
            layer.axis, layer.num_elementwise_dims = axis, batch
            return layer.get_output(0)
        return make

    expected = np.stack([[data[b, c][:, at[b, c]] for c in range(3)] for b in range(2)])
    np.testing.assert_array_equal(run(gather(3, 2), data, at), expected)
    expected = np.stack([[data[b, c][at[b, c]] for c in range(3)] for b in range(2)])
    np.testing.assert_array_equal(run(gather(2, 2), data, at), expected)
    expected = np.stack([np.moveaxis(data[b], 2, 0)[at[b]].transpose(2, 3, 0, 1) for b in range(2)])
    np.testing.assert_array_equal(run(gather(3, 1), data, at), expected)


def test_slices_whose_axes_are_a_tensor():
    x = RANDOM.random((3, 6, 5)).astype(np.float32)

    def make(mode, known):
        def layers(n, value, *axes):
            layer = n.add_slice(value, (1, 0), (3, 2), (1, 2))
            layer.mode = mode
            layer.set_input(5, constant(n, np.array([1, 2], np.int32)) if known else axes[0])
            return layer.get_output(0)
        return layers

    np.testing.assert_array_equal(run(make(trt.SampleMode.STRICT_BOUNDS, True), x), x[:, 1:4, 0:4:2])
    np.testing.assert_array_equal(run(make(trt.SampleMode.CLAMP, True), x), x[:, 1:4, 0:4:2])


def test_convolutions_with_several_dimensions_in_front():
    x, w = RANDOM.random((2, 2, 3, 5, 6)).astype(np.float32), RANDOM.random((4, 3, 2, 2)).astype(np.float32)

    def make(n, value):
        return [n.add_convolution_nd(value, 4, (2, 2), w).get_output(0), n.add_deconvolution_nd(value, 4, (1, 1), w[:, :, 0, 0].T.copy()).get_output(0)]

    forward, back = run(make, x)
    expected = sum(np.einsum("abchw,kc->abkhw", x[..., i:i + 4, j:j + 5], w[:, :, i, j]) for i in range(2) for j in range(2))
    np.testing.assert_allclose(forward, expected, rtol=1e-4)
    np.testing.assert_allclose(back, np.einsum("abchw,kc->abkhw", x, w[:, :, 0, 0]), rtol=1e-4)


def test_random_numbers_between_tensors():
    def make(kind):
        def layers(n, low, high):
            layer = n.add_fill((50, 60), kind, trt.float32)
            layer.set_input(1, low)
            layer.set_input(2, high)
            return layer.get_output(0)
        return layers

    drawn = run(make(trt.FillOperation.RANDOM_UNIFORM), np.array(5, np.float32), np.array(10, np.float32))
    assert drawn.min() >= 5 and drawn.max() <= 10 and abs(drawn.mean() - 7.5) < 0.2
    drawn = run(make(trt.FillOperation.RANDOM_NORMAL), np.array(3, np.float32), np.array(0.5, np.float32))
    assert abs(drawn.mean() - 3) < 0.1 and abs(drawn.std() - 0.5) < 0.05


def test_casts_to_eight_bits():
    x = np.array([-300, -1, 0, 3.7, 200, 256, 290], np.float32)
    found = run(lambda n, value: n.add_cast(value, trt.uint8).get_output(0), x)
    np.testing.assert_array_equal(found, [0, 0, 0, 3, 200, 0, 34])


def equal_sizes(log, shape, other):
    """A network that asserts that the last sizes of its inputs are equal."""
    builder = trt.Builder(log)
    network = builder.create_network()
    a, b = network.add_input("a", trt.float32, shape), network.add_input("b", trt.float32, other)
    last = [network.add_slice(network.add_shape(each).get_output(0), (1,), (1,), (1,)).get_output(0) for each in (a, b)]
    same = network.add_elementwise(*last, trt.ElementWiseOperation.EQUAL).get_output(0)
    assertion = network.add_assertion(same, "sizes differ")
    assertion.message += "!"
    network.mark_output(network.add_identity(a).get_output(0))
    network.get_output(0).name = "y"
    return builder, network


def test_an_assertion_that_cannot_hold_fails_the_build():
    for other, holds in ((4, True), (5, False)):
        log = Log()
        builder, network = equal_sizes(log, (3, 4), (2, other))
        plan = builder.build_serialized_network(network, builder.create_builder_config())
        assert (plan is not None) == holds and ("sizes differ!" in str(log.errors())) != holds


def test_an_assertion_about_sizes_is_asked_when_they_are_known():
    log = Log()
    builder, network = equal_sizes(log, (3, -1), (2, -1))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape("a", (3, 1), (3, 4), (3, 8))
    profile.set_shape("b", (2, 1), (2, 4), (2, 8))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, config, log))
    assert [engine[at] for at in range(engine.num_io_tensors)] == ["a", "b", "y"]
    context = engine.create_execution_context()
    assert context.set_input_shape("a", (3, 4)) and context.set_input_shape("b", (2, 4)) and context.infer_shapes() == []
    context.set_input_shape("b", (2, 5))
    with pytest.raises(RuntimeError, match="sizes differ!"):
        context.infer_shapes()


def test_an_assertion_about_data_is_asked_in_each_run():
    log = Log()
    network = trt.Builder(log).create_network()
    x = network.add_input("x", trt.float32, (1,))
    small = network.add_elementwise(x, constant(network, np.array([10], np.float32)), trt.ElementWiseOperation.LESS).get_output(0)
    network.add_assertion(small, "x is large")
    network.mark_output(network.add_identity(x).get_output(0))
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, None, log))
    context, y = engine.create_execution_context(), np.zeros(1, np.float32)
    for value, holds in ((3.0, True), (11.0, False), (4.0, True)):
        array = np.array([value], np.float32)
        assert context.execute_v2([array.ctypes.data, y.ctypes.data]) == holds
    assert "x is large" in log.errors()[-1] and len(log.errors()) == 1


def test_shape_tensors_say_the_sizes_of_outputs_before_a_run():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x, sizes = network.add_input("x", trt.float32, (2, 6)), network.add_input("sizes", trt.int32, (3,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, sizes)
    network.mark_output(network.add_unary(shuffle.get_output(0), trt.UnaryOperation.NEG).get_output(0))
    network.mark_output(network.add_non_zero(shuffle.get_output(0)).get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape_input("sizes", (1, 1, 1), (1, 3, 4), (1, 12, 12))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, config, log))
    context, allocator = engine.create_execution_context(), Allocator()
    negated, places = engine[2], engine[3]
    assert tuple(context.get_tensor_shape(negated)) == (-1, -1, -1)
    data = np.arange(12, dtype=np.float32)
    for wanted in ((1, 3, 4), (1, 12, 1)):
        values = np.array(wanted, np.int32)
        context.set_tensor_address("sizes", values.ctypes.data)
        context.set_tensor_address("x", data.ctypes.data)
        assert context.infer_shapes() == [] and tuple(context.get_tensor_shape(negated)) == wanted
        assert -1 in tuple(context.get_tensor_shape(places))  # that the data decide
        for name in (negated, places):
            context.set_output_allocator(name, allocator)
        assert context.execute_async_v3(1) and allocator.shapes[negated] == wanted and allocator.shapes[places] == (3, 11)


def test_a_size_that_a_shape_tensor_decides_in_another_layout():
    log = Log()
    builder = trt.Builder(log)
    network = builder.create_network()
    x, sizes = network.add_input("x", trt.float32, (2, 6)), network.add_input("sizes", trt.int32, (4,))
    shuffle = network.add_shuffle(x)
    shuffle.set_input(1, sizes)
    y = shuffle.get_output(0)
    y.name, y.allowed_formats = "y", 1 << int(trt.TensorFormat.HWC)
    network.mark_output(y)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    profile.set_shape_input("sizes", (1, 1, 1, 1), (1, 2, 3, 2), (1, 12, 12, 12))
    config.add_optimization_profile(profile)
    engine = trt.Runtime(log).deserialize_cuda_engine(build(network, config, log))
    context, allocator = engine.create_execution_context(), Allocator()
    data, wanted = np.arange(12, dtype=np.float32), np.array([1, 2, 3, 2], np.int32)
    context.set_tensor_address("x", data.ctypes.data)
    context.set_tensor_address("sizes", wanted.ctypes.data)
    context.set_output_allocator("y", allocator)
    assert context.execute_async_v3(1), log.errors()
    found = allocator.memory["y"][:48].view(np.float32)
    np.testing.assert_array_equal(found, data.reshape(2, 3, 2).transpose(1, 2, 0).reshape(-1))


def test_the_normalisation_of_a_number():
    x = np.array(2.5, np.float32)
    np.testing.assert_allclose(run(lambda n, value: n.add_normalization(value, value, value, 0).get_output(0), x), 2.5)


@pytest.mark.parametrize("kind", ("INT4", "FP4"))
def test_no_input_or_output_has_half_a_byte_an_element(kind):
    log = Log()
    network = trt.Builder(log).create_network()
    dtype = getattr(trt.DataType, kind)
    assert network.add_input("narrow", dtype, (2,)) is None
    x = network.add_input("x", trt.float32, (3, 5))
    cast = network.add_cast(x, dtype).get_output(0)
    network.mark_output(cast)
    cast.dtype = dtype
    assert cast.dtype == (trt.int8 if kind == "INT4" else trt.float32) and len(log.errors()) == 2
    values = np.arange(15, dtype=np.float32).reshape(3, 5) / 2 - 3
    expected = values.astype(FP4).astype(np.float32) if kind == "FP4" else np.clip(np.trunc(values), -8, 7)
    found = infer(build(network, None, None), {"x": values})[cast.name]
    np.testing.assert_allclose(found, expected, atol=1 if kind == "INT4" else 0)  # what a half becomes is nobody's promise


def test_rotations_by_tables_that_do_not_fit_are_refused():
    for cosines, sines in (((), ()), ((2, 3, 4), (2, 3, 2)), ((1, 3, 4), (1, 3, 4)), ((2, 3, 3), (2, 3, 3))):
        log = Log()
        network = trt.Builder(log).create_network()
        x, c, s = (network.add_input(name, trt.float32, shape) for name, shape in (("x", (2, 2, 3, 8)), ("c", cosines), ("s", sines)))
        network.mark_output(network.add_rotary_embedding(x, c, s, False, 0).get_output(0))
        plan = network.builder.build_serialized_network(network, network.builder.create_builder_config())
        if plan is None:
            assert log.errors()
            continue
        engine = trt.Runtime(log).deserialize_cuda_engine(plan)
        context, arrays = engine.create_execution_context(), {name: np.ones(engine.get_tensor_shape(name), np.float32) for name in engine}
        for name, array in arrays.items():
            context.set_tensor_address(name, array.ctypes.data)
        assert not context.execute_async_v3(1) and log.errors()
