# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: one network for each add_ method, against numpy: shapes, choosing, quantising, loops and conditionals."""

import numpy as np
import pytest
from test_trt_layers import RANDOM, close, constant, ints, reals
from trt_networks import Log, build, infer, run, trt


# ---- shapes ----

def test_constants_of_all_ranks_and_types():
    def make(network):
        return [constant(network, np.array(values, dtype)) for values, dtype in
                ((3, ints), ([1.5, 2], np.float32), ([[1, 2]], np.int64), ([True, False], bool), ([0.5], np.float16))]

    found = run(lambda network, t: make(network), reals(1))
    for array, (values, dtype) in zip(found, ((3, ints), ([1.5, 2], np.float32), ([[1, 2]], np.int64), ([True, False], bool), ([0.5], np.float16))):
        assert array.dtype == dtype
        close(array, np.array(values, dtype))


def test_shuffle():
    x = reals(2, 3, 4)

    def make(network, t):
        layer = network.add_shuffle(t)
        layer.first_transpose, layer.reshape_dims, layer.second_transpose = (2, 0, 1), (0, -1), (1, 0)
        assert tuple(layer.reshape_dims) == (0, -1) and tuple(layer.first_transpose)[:3] == (2, 0, 1)
        by_tensor = network.add_shuffle(t)
        by_tensor.set_input(1, constant(network, np.array([6, 4], ints)))
        return layer.get_output(0), by_tensor.get_output(0)

    turned, shaped = run(make, x)
    close(turned, x.transpose(2, 0, 1).reshape(4, 6).T)
    close(shaped, x.reshape(6, 4))


@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_computed_of_other_sizes(dynamic):
    x = reals(2, 3, 4)

    def make(network, t):
        shape = network.add_shape(t)
        assert shape.get_output(0).dtype == trt.int64
        first = network.add_slice(shape.get_output(0), (0,), (1,), (1,)).get_output(0)
        joined = network.add_concatenation([first, constant(network, np.array([-1], np.int64))])
        joined.axis = 0
        layer = network.add_shuffle(t)
        layer.set_input(1, joined.get_output(0))
        assert first.is_shape_tensor and not t.is_shape_tensor
        assert tuple(layer.get_output(0).shape) == ((-1, -1) if dynamic else (2, 12))
        return layer.get_output(0)

    close(run(make, x, dynamic=dynamic), x.reshape(2, 12))


def sliced(x, start, shape, stride, mode):
    for axis in range(x.ndim):
        at, size = start[axis] + np.arange(shape[axis]) * stride[axis], x.shape[axis]
        if mode == "WRAP":
            at = at % size
        elif mode == "CLAMP":
            at = np.clip(at, 0, size - 1)
        elif mode == "REFLECT":
            at = at % (2 * size - 2)
            at = np.minimum(at, 2 * size - 2 - at)
        x = np.take(x, at, axis)
    return x


@pytest.mark.parametrize("mode", ["STRICT_BOUNDS", "WRAP", "CLAMP", "REFLECT"])
def test_slice(mode):
    x = reals(5, 6)
    start, shape, stride = ((4, 1), (3, 3), (-2, 2)) if mode == "STRICT_BOUNDS" else ((-1, 2), (7, 6), (1, 1))

    def make(network, t):
        layer = network.add_slice(t, start, shape, stride)
        layer.mode = getattr(trt.SampleMode, mode)
        return layer.get_output(0)

    close(run(make, x), sliced(x, start, shape, stride, mode))


def test_a_slice_fills_and_takes_tensors_and_axes():
    x = reals(2, 3)

    def make(network, t):
        filled = network.add_slice(t, (-1, 0), (4, 4), (1, 1))
        filled.mode = trt.SampleMode.FILL
        filled.set_input(4, constant(network, np.array(9, np.float32)))
        tensors = network.add_slice(t, (), (), ())
        for at, values in enumerate(((0, 1), (2, 2), (1, 1)), 1):
            tensors.set_input(at, constant(network, np.array(values, ints)))
        assert tensors.num_inputs == 4
        one = network.add_slice(t, (1,), (2,), (1,))
        one.axes = (1,)
        return [layer.get_output(0) for layer in (filled, tensors, one)]

    filled, tensors, one = run(make, x)
    close(filled, np.pad(x, ((1, 1), (0, 1)), constant_values=9))
    close(tensors, x[:, 1:])
    close(one, x[:, 1:])


def test_cast_identity_and_types_of_outputs():
    x = np.array([1.6, -1.6, 0], np.float32)

    def make(network, t):
        same, converted = network.add_identity(t), network.add_identity(t)
        converted.set_output_type(0, trt.int32)
        return [network.add_cast(t, trt.float16).get_output(0), network.add_cast(t, trt.bool).get_output(0), same.get_output(0),
                converted.get_output(0)]

    half, truth, same, converted = run(make, x)
    assert half.dtype == np.float16 and truth.tolist() == [True, True, False] and converted.tolist() == [1, -1, 0]
    close(same, x)


def test_concatenation():
    a, b = reals(2, 3, 1, 4), reals(2, 2, 1, 4)

    def make(network, s, t):
        layer = network.add_concatenation([s, t])
        assert layer.axis == 1
        return layer.get_output(0)

    close(run(make, a, b), np.concatenate([a, b], 1))


@pytest.mark.parametrize("op, function", [("SUM", np.sum), ("PROD", np.prod), ("MAX", np.max), ("MIN", np.min), ("AVG", np.mean)])
def test_reduce(op, function):
    x = reals(2, 3, 4)
    for keep in (True, False):
        close(run(lambda n, t: n.add_reduce(t, getattr(trt.ReduceOperation, op), 0b110, keep).get_output(0), x),
              function(x, (1, 2), keepdims=keep))


def test_fill():
    def make(network, t):
        line = network.add_fill((4,), trt.FillOperation.LINSPACE, trt.int32)
        line.alpha, line.beta = 3, 2
        plane = network.add_fill((2, 3), trt.FillOperation.LINSPACE, trt.float32)
        plane.set_input(1, constant(network, np.array(1, np.float32)))
        plane.set_input(2, constant(network, np.array([10, 1], np.float32)))
        chance = network.add_fill((3, 50), trt.FillOperation.RANDOM_UNIFORM, trt.float32)
        chance.alpha, chance.beta = 2.0, 3.0
        return [layer.get_output(0) for layer in (line, plane, chance)]

    line, plane, chance = run(make, reals(1))
    assert line.dtype == ints and line.tolist() == [3, 5, 7, 9]
    close(plane, [[1, 2, 3], [11, 12, 13]])
    assert 2 <= chance.min() and chance.max() <= 3 and chance.std() > 0.1


def test_squeeze_and_unsqueeze():
    x = reals(2, 1, 3)

    def make(network, t):
        axis = constant(network, np.array([1], np.int64))
        return network.add_squeeze(t, axis).get_output(0), network.add_unsqueeze(t, axis).get_output(0)

    less, more = run(make, x)
    close(less, x[:, 0])
    close(more, x[:, None])


# ---- choosing ----

@pytest.mark.parametrize("op", ["MAX", "MIN"])
def test_topk(op):
    x = reals(3, 8)
    order = np.argsort(-x if op == "MAX" else x, 1)[:, :3]

    def make(network, t):
        layer = network.add_topk(t, getattr(trt.TopKOperation, op), 3, 2)
        by_tensor = network.add_topk(t, getattr(trt.TopKOperation, op), 1, 2)
        by_tensor.set_input(1, constant(network, np.array(3, ints)))
        return layer.get_output(0), layer.get_output(1), by_tensor.get_output(0)

    values, indices, again = run(make, x)
    assert indices.dtype == ints and (indices == order).all()
    close(values, np.take_along_axis(x, order, 1))
    close(again, values)


def test_gather_of_all_modes():
    x, rows = reals(4, 5), np.array([[3, 0], [1, 1]], ints)
    points = np.array([[0, 1], [3, 4]], ints)
    each = np.array([[4, 0, 1, 1, 2]] * 2, ints)

    def make(network, t, r, p, e):
        elements = network.add_gather_v2(t, e, trt.GatherMode.ELEMENT)
        elements.axis = 1
        return [network.add_gather(t, r, 1).get_output(0), network.add_gather_v2(t, p, trt.GatherMode.ND).get_output(0),
                elements.get_output(0)]

    plain, nd, elements = run(make, x, rows, points, each)
    close(plain, x[:, rows])
    close(nd, [x[0, 1], x[3, 4]])
    close(elements, np.take_along_axis(x[:2], each, 1))


def test_gather_batch_by_batch():
    x, rows = reals(2, 3, 4), np.array([[3, 0], [1, 1]], ints)

    def make(network, t, r):
        layer = network.add_gather(t, r, 2)
        layer.num_elementwise_dims = 1
        return layer.get_output(0)

    close(run(make, x, rows), np.stack([x[at][:, rows[at]] for at in range(2)]))


def test_scatter():
    x, updates = reals(3, 3), reals(2, 3)
    indices, rows = np.array([[0, 1, 2], [2, 2, 0]], ints), np.array([[2], [0]], ints)
    expected, nd = x.copy(), x.copy()
    for i in range(2):
        for j in range(3):
            expected[indices[i, j], j] = updates[i, j]
    nd[[2, 0]] = updates

    def make(network, t, i, r, u):
        return [network.add_scatter(t, i, u, trt.ScatterMode.ELEMENT).get_output(0), network.add_scatter(t, r, u, trt.ScatterMode.ND).get_output(0)]

    found = run(make, x, indices, rows, updates)
    close(found[0], expected)
    close(found[1], nd)


def test_select_non_zero_and_one_hot():
    a, b, which = reals(2, 4), reals(2, 4), RANDOM.random((2, 4)) > 0.5
    hot = np.array([0, 2, 1], ints)

    def make(network, c, s, t, h):
        values, depth = constant(network, np.array([0, 5], np.float32)), constant(network, np.array(3, ints))
        return [network.add_select(c, s, t).get_output(0), network.add_non_zero(c).get_output(0),
                network.add_one_hot(h, values, depth, -1).get_output(0)]

    chosen, where, rows = run(make, which, a, b, hot)
    close(chosen, np.where(which, a, b))
    assert where.dtype == ints
    close(where, np.stack(np.nonzero(which)))
    close(rows, 5 * np.eye(3)[hot])


def test_nms():
    boxes = np.array([[[[0, 0, 1, 1]], [[0, 0, 1, 1.1]], [[2, 2, 3, 3]]]], np.float32)
    scores = np.array([[[0.9], [0.8], [0.7]]], np.float32)

    def make(network, b, s):
        layer = network.add_nms(b, s, constant(network, np.array(3, ints)))
        layer.set_input(3, constant(network, np.array(0.5, np.float32)))
        return layer.get_output(0), layer.get_output(1)

    chosen, count = run(make, boxes, scores)
    assert chosen.tolist() == [[0, 0, 0], [0, 0, 2]] and count == 2


def test_reverse_sequence_cumulative_and_ragged_softmax():
    x, lengths, bounds = reals(4, 2), np.array([3, 2], ints), np.array([[1], [2], [2], [1]], ints)
    turned = x.copy()
    turned[:3, 0], turned[:2, 1] = x[:3, 0][::-1], x[:2, 1][::-1]

    def make(network, t, n, b):
        axis = constant(network, np.array(0, ints))
        return [network.add_reverse_sequence(t, n).get_output(0),
                network.add_cumulative(t, axis, trt.CumulativeOperation.SUM, False, False).get_output(0),
                network.add_cumulative(t, axis, trt.CumulativeOperation.SUM, True, True).get_output(0),
                network.add_ragged_softmax(t, b).get_output(0)]

    found = run(make, x, lengths, bounds)
    close(found[0], turned)
    close(found[1], np.cumsum(x, 0))
    close(found[2], np.cumsum(x[::-1], 0)[::-1] - x)
    powers = np.where(np.arange(2) < bounds, np.exp(x), 0)
    close(found[3], powers / powers.sum(1, keepdims=True))


def test_an_assertion_computes_nothing():
    def make(network, t):
        layer = network.add_assertion(constant(network, np.array(True)), "it holds")
        assert layer.message == "it holds" and layer.num_outputs == 0
        return network.add_identity(t).get_output(0)

    x = reals(3)
    close(run(make, x), x)


# ---- normalising, quantising ----

def test_normalization():
    x, scale, bias = reals(2, 4, 5), reals(1, 4, 1), reals(1, 4, 1)
    wide, shift = reals(1, 1, 5), reals(1, 1, 5)

    def make(network, t, s, b, w, h):
        layer = network.add_normalization(t, w, h, 1 << 2)
        layer.epsilon = 1e-3
        groups = network.add_normalization(t, s, b, 1 << 2)
        groups.num_groups = 2
        return layer.get_output(0), groups.get_output(0)

    def normal(values, axis, epsilon):
        return (values - values.mean(axis, keepdims=True)) / np.sqrt(values.var(axis, keepdims=True) + epsilon)

    layer, groups = run(make, x, scale, bias, wide, shift)
    close(layer, normal(x, 2, 1e-3) * wide + shift, 1e-4)
    close(groups, normal(x.reshape(2, 2, 10), 2, 1e-5).reshape(2, 4, 5) * scale + bias, 1e-4)


def test_quantize_and_dequantize():
    x, scales = reals(3, 4), np.array([0.02, 0.05, 0.1], np.float32)

    def make(network, t):
        one, many = constant(network, np.array(0.05, np.float32)), constant(network, scales)
        tensor = network.add_dequantize(network.add_quantize(t, one).get_output(0), one)
        quantised = network.add_quantize(t, many)
        quantised.axis = 0
        channels = network.add_dequantize(quantised.get_output(0), many)
        channels.axis = 0
        return tensor.get_output(0), channels.get_output(0)

    tensor, channels = run(make, x)
    close(tensor, np.clip(np.rint(x / 0.05), -128, 127) * 0.05, 1e-3)
    close(channels, np.clip(np.rint(x / scales[:, None]), -128, 127) * scales[:, None], 1e-3)


def test_rotary_embedding():
    x, cos, sin = reals(1, 2, 3, 4), reals(1, 3, 2), reals(1, 3, 2)
    a, b = x[..., :2], x[..., 2:]
    expected = np.concatenate([a * cos[:, None] - b * sin[:, None], a * sin[:, None] + b * cos[:, None]], -1)
    close(run(lambda n, t, c, s: n.add_rotary_embedding(t, c, s, False, 0).get_output(0), x, cos, sin), expected)


# ---- loops and conditionals ----

def test_a_loop_of_so_many_iterations():
    x = reals(2, 3)

    def make(network, t):
        loop, count = network.add_loop(), constant(network, np.array(5, ints))
        loop.add_trip_limit(count, trt.TripLimit.COUNT)
        state = loop.add_recurrence(t)
        double = network.add_elementwise(state.get_output(0), state.get_output(0), trt.ElementWiseOperation.SUM)
        state.set_input(1, double.get_output(0))
        last = loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE)
        outputs = [last.get_output(0)]
        for kind, axis in ((trt.LoopOutput.CONCATENATE, 0), (trt.LoopOutput.REVERSE, 1)):
            layer = loop.add_loop_output(double.get_output(0), kind, axis)
            layer.set_input(1, count)
            assert layer.kind == kind and layer.axis == axis and layer.loop is loop
            outputs.append(layer.get_output(0))
        return outputs

    last, rows, backwards = run(make, x)
    every = np.stack([x * 2 ** at for at in range(1, 6)])
    close(last, every[-1])
    close(rows, every)
    close(backwards, every[::-1].transpose(1, 0, 2))


def test_a_loop_over_slices_forwards_and_backwards():
    x = reals(4, 3)

    def make(network, t):
        loop = network.add_loop()
        loop.add_trip_limit(constant(network, np.array(4, ints)), trt.TripLimit.COUNT)
        forwards, backwards = loop.add_iterator(t), loop.add_iterator(t, 0, True)
        state = loop.add_recurrence(constant(network, np.zeros(3, np.float32)))
        product = network.add_elementwise(forwards.get_output(0), backwards.get_output(0), trt.ElementWiseOperation.PROD)
        total = network.add_elementwise(state.get_output(0), product.get_output(0), trt.ElementWiseOperation.SUM)
        state.set_input(1, total.get_output(0))
        return loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    close(run(make, x), (x * x[::-1]).sum(0))


@pytest.mark.parametrize("start, expected", [(1, 128), (200, 200)])
def test_a_loop_runs_while_a_condition_holds(start, expected):
    def make(network, t):
        loop, limit = network.add_loop(), constant(network, np.array(100, np.float32))
        state = loop.add_recurrence(t)
        double = network.add_elementwise(state.get_output(0), state.get_output(0), trt.ElementWiseOperation.SUM)
        state.set_input(1, double.get_output(0))
        small = network.add_elementwise(state.get_output(0), limit, trt.ElementWiseOperation.LESS)
        loop.add_trip_limit(small.get_output(0), trt.TripLimit.WHILE)
        return loop.add_loop_output(state.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)

    close(run(make, np.array(start, np.float32)), expected)


@pytest.mark.parametrize("which", [True, False])
def test_a_conditional(which):
    x = reals(3)

    def make(network, t, c):
        chosen = network.add_if_conditional()
        chosen.set_condition(c)
        inner = chosen.add_input(t).get_output(0)
        yes, no = network.add_unary(inner, trt.UnaryOperation.NEG), network.add_unary(inner, trt.UnaryOperation.ABS)
        output = chosen.add_output(yes.get_output(0), no.get_output(0))
        assert output.conditional is chosen and output.type == trt.LayerType.CONDITIONAL_OUTPUT
        return output.get_output(0)

    close(run(make, x, np.array(which)), -x if which else abs(x))


# ---- what is refused, and 8.6's forms ----

def test_refused_layers_say_why():
    log = Log()
    network = trt.Builder(log).create_network()
    a, b = network.add_input("a", trt.float32, (2, 3)), network.add_input("b", trt.float32, (3,))
    assert network.add_constant((2, 2), np.zeros(3, np.float32)) is None
    assert network.add_input("a", trt.float32, (1,)) is None
    layer = network.add_elementwise(a, b, trt.ElementWiseOperation.SUM)
    network.mark_output(layer.get_output(0))
    builder = network.builder
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    said = "\n".join(log.errors())
    assert "need 4 numbers, the weights have 3" in said and "a tensor a already" in said and "ranks 2 and 1" in said
    with pytest.raises(TypeError):
        network.add_elementwise(a, "b", trt.ElementWiseOperation.SUM)
    with pytest.raises(TypeError):
        network.add_activation(a, trt.UnaryOperation.EXP)


@pytest.mark.parametrize("first", (float("nan"), float("inf"), 3e9))
def test_numbers_that_a_layers_type_does_not_have_are_refused(first):
    log = Log()
    network = trt.Builder(log).create_network()
    layer = network.add_fill((3,), trt.FillOperation.LINSPACE, trt.int32)
    layer.alpha = first
    network.mark_output(layer.get_output(0))
    builder = network.builder
    assert builder.build_serialized_network(network, builder.create_builder_config()) is None
    assert f"{float(first)} is no number of int32" in "\n".join(log.errors())


def test_layers_change_after_they_were_added_and_networks_are_built_again():
    log, x = Log(), reals(1, 1, 6, 6)
    network = trt.Builder(log).create_network()
    t = network.add_input("x", trt.float32, (1, 1, 6, 6))
    pool = network.add_pooling_nd(t, trt.PoolingType.MAX, (2, 2))
    total = network.add_reduce(pool.get_output(0), trt.ReduceOperation.SUM, 0b1100, True)
    assert tuple(pool.get_output(0).shape) == (1, 1, 5, 5)
    network.mark_output(pool.get_output(0))
    first = infer(build(network, log=log), {"x": x})
    pool.stride_nd = (2, 2)
    assert tuple(pool.get_output(0).shape) == (1, 1, 3, 3)
    network.mark_output(total.get_output(0))
    second = infer(build(network, log=log), {"x": x})
    close(second[pool.get_output(0).name], first[pool.get_output(0).name][..., ::2, ::2])
    assert len(second) == 2 and not log.errors()
