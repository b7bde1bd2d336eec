# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: one network for each add_ method, against numpy."""

import numpy as np
import pytest
from trt_networks import run, trt

RANDOM = np.random.default_rng(7)  # the seed of all inputs here
ints = np.int32


def reals(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def close(found, expected, tolerance=2e-5):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)


def constant(network, values):
    values = np.require(values, requirements="C")
    return network.add_constant(values.shape, values).get_output(0)


def erf(x):
    import math

    return np.vectorize(math.erf)(x)


def convolved(x, w, b, stride=1, pad=0, dilation=1, groups=1):
    """By its definition."""
    n, c, h, width = x.shape
    k, cg, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    oh = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    ow = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    y = np.zeros((n, k, oh, ow))
    for at in range(k):
        first = at // (k // groups) * cg
        for i in range(kh):
            for j in range(kw):
                part = x[:, first:first + cg, i * dilation:i * dilation + (oh - 1) * stride + 1:stride,
                         j * dilation:j * dilation + (ow - 1) * stride + 1:stride]
                y[:, at] += np.einsum("nchw,c->nhw", part, w[at, :, i, j])
    return y + b.reshape(1, -1, 1, 1)


# ---- images ----

@pytest.mark.parametrize("stride, pad, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (1, 1, 1, 2)])
def test_convolution(stride, pad, dilation, groups):
    x, w, b = reals(2, 4, 9, 9), reals(6, 4 // groups, 3, 3), reals(6)

    def make(network, t):
        layer = network.add_convolution_nd(t, 6, (3, 3), w, b)
        layer.stride_nd, layer.padding_nd, layer.dilation_nd, layer.num_groups = (stride,) * 2, (pad,) * 2, (dilation,) * 2, groups
        assert tuple(layer.kernel_size_nd) == (3, 3) and layer.num_output_maps == 6
        return layer.get_output(0)

    close(run(make, x), convolved(x, w, b, stride, pad, dilation, groups), 1e-4)


def test_a_convolutions_kernel_is_a_tensor():
    x, w, b = reals(1, 2, 5, 5), reals(3, 2, 3, 3), np.zeros(3, np.float32)

    def make(network, t, kernel):
        layer = network.add_convolution_nd(t, 3, (3, 3), trt.Weights())
        layer.set_input(1, kernel)
        return layer.get_output(0)

    close(run(make, x, w), convolved(x, w, b), 1e-4)


def test_same_padding_and_rounding_up():
    x, w = reals(1, 1, 6, 6), reals(1, 1, 3, 3)

    def make(network, t):
        layer = network.add_convolution_nd(t, 1, (3, 3), w)
        layer.padding_mode = trt.PaddingMode.SAME_UPPER
        pool = network.add_pooling_nd(t, trt.PoolingType.MAX, (3, 3))
        pool.stride_nd, pool.padding_mode = (2, 2), trt.PaddingMode.EXPLICIT_ROUND_UP
        return layer.get_output(0), pool.get_output(0)

    same, pooled = run(make, x)
    close(same, convolved(x, w, np.zeros(1, np.float32), pad=1), 1e-4)
    assert pooled.shape == (1, 1, 3, 3) and pooled[0, 0, 2, 2] == x[0, 0, 4:, 4:].max()


def test_deconvolution():
    x, w, b = reals(1, 3, 4, 4), reals(3, 2, 3, 3), reals(2)
    full = np.zeros((1, 2, 9, 9))
    for i in range(4):
        for j in range(4):
            full[:, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3] += np.einsum("nc,ckij->nkij", x[:, :, i, j], w)

    def make(network, t):
        layer = network.add_deconvolution_nd(t, 2, (3, 3), w, b)
        layer.stride_nd, layer.padding_nd = (2, 2), (1, 1)
        return layer.get_output(0)

    close(run(make, x), full[:, :, 1:-1, 1:-1] + b.reshape(1, 2, 1, 1), 1e-4)


@pytest.mark.parametrize("kind", ["MAX", "AVERAGE", "MAX_AVERAGE_BLEND"])
def test_pooling(kind):
    x = reals(1, 2, 6, 6)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    largest, mean = windows.max((4, 5)), windows.mean((4, 5))

    def make(network, t):
        layer = network.add_pooling_nd(t, getattr(trt.PoolingType, kind), (2, 2))
        assert layer.type == getattr(trt.PoolingType, kind) and network.get_layer(0).type == trt.LayerType.POOLING
        layer.blend_factor = 0.25
        return layer.get_output(0)

    close(run(make, x), {"MAX": largest, "AVERAGE": mean, "MAX_AVERAGE_BLEND": 0.75 * largest + 0.25 * mean}[kind])


@pytest.mark.parametrize("excludes", [True, False])
def test_an_average_counts_padding_or_not(excludes):
    x = np.ones((1, 1, 3, 3), np.float32)

    def make(network, t):
        layer = network.add_pooling_nd(t, trt.PoolingType.AVERAGE, (3, 3))
        layer.padding_nd, layer.average_count_excludes_padding = (1, 1), excludes
        return layer.get_output(0)

    assert run(make, x)[0, 0, 0, 0] == pytest.approx(1 if excludes else 4 / 9)


def test_lrn():
    x = reals(1, 5, 2, 2)
    squares = np.pad(x ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    near = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    close(run(lambda n, t: n.add_lrn(t, 3, 0.5, 0.75, 2.0).get_output(0), x), x / (2.0 + 0.5 / 3 * near) ** 0.75)


def test_padding_adds_and_takes_away():
    x = reals(1, 1, 4, 4)
    close(run(lambda n, t: n.add_padding_nd(t, (1, 0), (2, -1)).get_output(0), x), np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 0)))[..., :-1])


def test_resize_to_a_shape_by_scales_and_by_a_tensor():
    x = reals(1, 1, 2, 3)

    def make(network, t):
        shaped, scaled, asked = network.add_resize(t), network.add_resize(t), network.add_resize(t)
        shaped.shape, scaled.scales = (1, 1, 4, 6), [1, 1, 2, 2]
        asked.set_input(1, constant(network, np.array([1, 1, 4, 6], ints)))
        linear = network.add_resize(t)
        linear.shape, linear.resize_mode = (1, 1, 2, 5), trt.InterpolationMode.LINEAR
        linear.coordinate_transformation = trt.ResizeCoordinateTransformation.ALIGN_CORNERS
        return [layer.get_output(0) for layer in (shaped, scaled, asked, linear)]

    *nearest, linear = run(make, x)
    for each in nearest:
        close(each, x.repeat(2, 2).repeat(2, 3))
    close(linear[..., ::2], x)


def test_grid_sample():
    x, grid = reals(1, 1, 3, 3), np.array([[[[-1, -1], [1, 1], [0, 0]]]], np.float32)

    def make(network, t, g):
        layer = network.add_grid_sample(t, g)
        layer.align_corners = True
        return layer.get_output(0)

    close(run(make, x, grid), np.array([[[[x[0, 0, 0, 0], x[0, 0, 2, 2], x[0, 0, 1, 1]]]]]))


# ---- values ----

ALPHA, BETA = 0.3, 0.7
ACTIVATIONS = {
    "RELU": lambda x: np.maximum(x, 0), "SIGMOID": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh,
    "LEAKY_RELU": lambda x: np.where(x < 0, ALPHA * x, x), "ELU": lambda x: np.where(x < 0, ALPHA * (np.exp(x) - 1), x),
    "SELU": lambda x: BETA * np.where(x < 0, ALPHA * (np.exp(x) - 1), x), "SOFTSIGN": lambda x: x / (1 + abs(x)),
    "SOFTPLUS": lambda x: ALPHA * np.log(np.exp(BETA * x) + 1), "CLIP": lambda x: np.clip(x, ALPHA, BETA),
    "HARD_SIGMOID": lambda x: np.clip(ALPHA * x + BETA, 0, 1), "SCALED_TANH": lambda x: ALPHA * np.tanh(BETA * x),
    "THRESHOLDED_RELU": lambda x: np.where(x > ALPHA, x, 0), "GELU_ERF": lambda x: x * 0.5 * (1 + erf(x / np.sqrt(2))),
    "GELU_TANH": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
}


def test_activations_are_all_here():
    assert set(ACTIVATIONS) == set(trt.ActivationType.__members__)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activation(kind):
    x = reals(3, 20)

    def make(network, t):
        layer = network.add_activation(t, getattr(trt.ActivationType, kind))
        layer.alpha, layer.beta = ALPHA, BETA
        assert layer.type == getattr(trt.ActivationType, kind) and network[0].type == trt.LayerType.ACTIVATION
        return layer.get_output(0)

    close(run(make, x), ACTIVATIONS[kind](x.astype(np.float64)), 1e-4)


ELEMENTWISE = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum, "SUB": np.subtract, "DIV": np.divide,
               "POW": lambda a, b: np.power(abs(a) + 1, b), "FLOOR_DIV": np.floor_divide, "EQUAL": np.equal, "GREATER": np.greater,
               "LESS": np.less}


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op):
    a, b = reals(3, 1, 4), reals(1, 2, 4)
    expected = ELEMENTWISE[op](a, b)
    found = run(lambda n, s, t: n.add_elementwise(s, t, getattr(trt.ElementWiseOperation, op)).get_output(0), abs(a) + 1 if op == "POW" else a, b)
    close(found, expected, 1e-4)


def test_division_of_integers_truncates_or_floors():
    a, b = np.array([7, -7, 7, -7, 6], ints), np.array([2, 2, -2, -2, 3], ints)

    def make(network, s, t):
        return [network.add_elementwise(s, t, op).get_output(0) for op in (trt.ElementWiseOperation.DIV, trt.ElementWiseOperation.FLOOR_DIV)]

    truncated, floored = run(make, a, b)
    close(truncated, np.trunc(a / b))
    close(floored, a // b)


@pytest.mark.parametrize("op, function", [("AND", np.logical_and), ("OR", np.logical_or), ("XOR", np.logical_xor)])
def test_logic(op, function):
    a, b = RANDOM.random((2, 8)) > 0.5, RANDOM.random((2, 8)) > 0.5
    close(run(lambda n, s, t: n.add_elementwise(s, t, getattr(trt.ElementWiseOperation, op)).get_output(0), a, b), function(a, b))


UNARY = {"EXP": np.exp, "LOG": lambda x: np.log(abs(x) + 0.1), "SQRT": lambda x: np.sqrt(abs(x) + 0.1), "RECIP": lambda x: 1 / x, "ABS": abs,
         "NEG": np.negative, "SIN": np.sin, "COS": np.cos, "TAN": np.tan, "SINH": np.sinh, "COSH": np.cosh, "ASIN": np.arcsin, "ACOS": np.arccos,
         "ATAN": np.arctan, "ASINH": np.arcsinh, "ACOSH": lambda x: np.arccosh(abs(x) + 1.1), "ATANH": np.arctanh, "CEIL": np.ceil,
         "FLOOR": np.floor, "ERF": erf, "SIGN": np.sign, "ROUND": np.round, "ISINF": np.isinf, "ISNAN": np.isnan, "NOT": np.logical_not}
SHIFTED = {"LOG": 0.1, "SQRT": 0.1, "ACOSH": 1.1}


def test_unary_operations_are_all_here():
    assert set(UNARY) == set(trt.UnaryOperation.__members__)


@pytest.mark.parametrize("op", UNARY)
def test_unary(op):
    x = (RANDOM.random((4, 8)) * 1.8 - 0.9).astype(np.float32)
    given = abs(x) + np.float32(SHIFTED[op]) if op in SHIFTED else x
    if op == "NOT":
        given = x = x > 0
    if op.startswith("IS"):
        given[0, :3] = x[0, :3] = [np.inf, -np.inf, np.nan]
    close(run(lambda n, t: n.add_unary(t, getattr(trt.UnaryOperation, op)).get_output(0), given), UNARY[op](x), 1e-4)


def test_parametric_relu():
    x, slopes = reals(2, 3, 4), reals(1, 3, 1)
    close(run(lambda n, t, s: n.add_parametric_relu(t, s).get_output(0), x, slopes), np.where(x < 0, slopes * x, x))


@pytest.mark.parametrize("mode, shape", [("UNIFORM", ()), ("CHANNEL", (3, 1, 1)), ("ELEMENTWISE", (3, 2, 2))])
def test_scale(mode, shape):
    x, scale, shift, power = abs(reals(2, 3, 2, 2)), abs(reals(*shape)) + 0.5, abs(reals(*shape)), abs(reals(*shape))
    held = [np.ascontiguousarray(each, np.float32).reshape(-1) for each in (shift, scale, power)]
    close(run(lambda n, t: n.add_scale(t, getattr(trt.ScaleMode, mode), *held).get_output(0), x), (x * scale + shift) ** power, 1e-4)


# ---- matrices ----

def test_matrix_multiply():
    a, b, v, w = reals(2, 3, 4), reals(2, 5, 4), reals(4), reals(3)
    N, T, V = (getattr(trt.MatrixOperation, name) for name in ("NONE", "TRANSPOSE", "VECTOR"))

    def make(network, s, t, u, z):
        product = network.add_matrix_multiply(s, N, t, T)
        assert (product.op0, product.op1) == (N, T)
        flat = network.add_shuffle(s)
        flat.reshape_dims = (6, 4)
        return [product.get_output(0), network.add_matrix_multiply(flat.get_output(0), N, u, V).get_output(0),
                network.add_matrix_multiply(z, V, z, V).get_output(0)]

    product, applied, dot = run(make, a, b, v, w)
    close(product, a @ b.transpose(0, 2, 1))
    close(applied, a.reshape(6, 4) @ v)
    close(dot, w @ w)


def test_einsum():
    a, b = reals(2, 3, 4), reals(2, 4, 5)
    close(run(lambda n, s, t: n.add_einsum([s, t], "bij,bjk->bik").get_output(0), a, b), a @ b)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(axis):
    x = reals(2, 3, 4)

    def make(network, t):
        layer = network.add_softmax(t)
        assert layer.axes == 1
        layer.axes = 1 << axis
        return layer.get_output(0)

    powers = np.exp(x - x.max(axis, keepdims=True))
    close(run(make, x), powers / powers.sum(axis, keepdims=True))


@pytest.mark.parametrize("causal, masked", [(False, False), (True, False), (False, True)])
def test_attention(causal, masked):
    q, k, v, mask = reals(1, 2, 4, 8), reals(1, 2, 4, 8), reals(1, 2, 4, 8), RANDOM.random((1, 2, 4, 4)) > 0.3
    mask |= np.eye(4, dtype=bool)

    def make(network, *tensors):
        attention = network.add_attention(*tensors[:3], trt.AttentionNormalizationOp.SOFTMAX, causal)
        if masked:
            attention.mask = tensors[3]
        assert [layer.type for layer in network] == [trt.LayerType.ATTENTION_INPUT, trt.LayerType.ATTENTION_OUTPUT]
        return attention.get_output(0)

    scores = q @ k.transpose(0, 1, 3, 2)
    if causal:
        scores = np.where(np.tril(np.ones((4, 4), bool)), scores, -np.inf)
    if masked:
        scores = np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    close(run(make, q, k, v, *([mask] if masked else [])), powers / powers.sum(-1, keepdims=True) @ v, 1e-4)
