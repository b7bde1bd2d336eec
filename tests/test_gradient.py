# SPDX-License-Identifier: Apache-2.0
"""The Gradient operator: derivatives of every operator that has a rule against central differences, which onnx's reference
evaluator gives in double precision; of whole graphs, of second order, at other values; and what is refused."""

import sys

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import PACKAGE
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

TRAINING = "ai.onnx.preview.training"


def parse(inputs, outputs, nodes):
    """A model from onnx's own text form."""
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 21, "{TRAINING}": 1]> g ({inputs}) => ({outputs}) {{ {nodes} }}')


def run(model, feeds, arguments=()):
    plan = hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0", *arguments])
    return plan.engine().context().run(feeds)


def inputs_text(feeds):
    kinds = {np.dtype(np.float32): "float", np.dtype(np.int64): "int64", np.dtype(bool): "bool"}
    sizes = {name: f"[{','.join(map(str, values.shape))}]" if values.ndim else "" for name, values in feeds.items()}
    return ", ".join(f"{kinds[values.dtype]}{sizes[name]} {name}" for name, values in feeds.items())


def central_differences(evaluate, feeds, name, step=1e-6):
    """d evaluate / d feeds[name], each element moved to both sides."""
    wide = {key: values.astype(np.float64) if values.dtype == np.float32 else values for key, values in feeds.items()}
    result = np.zeros(feeds[name].shape)
    for index in np.ndindex(result.shape):
        sides = []
        for sign in (1, -1):
            moved = wide[name].copy()
            moved[index] += sign * step
            sides.append(evaluate({**wide, name: moved}))
        result[index] = (sides[0] - sides[1]) / (2 * step)
    return result


def signed(random, shape):
    """Away from 0, where many functions have no derivative."""
    return (random.uniform(0.2, 0.9, shape) * random.choice([-1, 1], shape)).astype(np.float32)


def positive(random, shape):
    return random.uniform(0.3, 0.9, shape).astype(np.float32)


def above_one(random, shape):
    return random.uniform(1.2, 2.5, shape).astype(np.float32)


# name: (nodes that compute z, {input: shape, or how it is drawn and its shape, or fixed values})
CASES = {
    "Add": ("z = Add(a, b)", {"a": (2, 3), "b": (3,)}),
    "Sub": ("z = Sub(a, b)", {"a": (3,), "b": (2, 3)}),
    "Mul": ("z = Mul(a, b)", {"a": (2, 1, 3), "b": (4, 1)}),
    "Mul of itself": ("z = Mul(a, a)", {"a": (2, 3)}),
    "Div": ("z = Div(a, b)", {"a": (2, 3), "b": (2, 1)}),
    "Pow": ("z = Pow(a, b)", {"a": (positive, (2, 3)), "b": (3,)}),
    "Pow by an integer": ("e = Constant<value = int64 {3}>() z = Pow(a, e)", {"a": (2, 3)}),
    "Sum": ("z = Sum(a, b, a)", {"a": (2, 3), "b": (3,)}),
    "Mean": ("z = Mean(a, b)", {"a": (2, 3), "b": (3,)}),
    "Min": ("z = Min(a, b)", {"a": (2, 3), "b": (2, 3)}),
    "Max": ("z = Max(a, b)", {"a": (2, 3), "b": (3,)}),
    "Mod": ("z = Mod<fmod = 1>(a, b)", {"a": (above_one, (2, 3)), "b": (positive, (2, 3))}),
    "Where": ("z = Where(c, a, b)", {"c": np.array([[True], [False]]), "a": (2, 3), "b": (3,)}),
    "Clip": ("l = Constant<value = float {-0.5}>() h = Constant<value = float {0.5}>() z = Clip(a, l, h)", {"a": (4, 5)}),
    "PRelu": ("z = PRelu(a, b)", {"a": (2, 3), "b": (3,)}),
    "LeakyRelu": ("z = LeakyRelu<alpha = 0.2>(a)", {"a": (2, 3)}),
    "Elu": ("z = Elu<alpha = 0.7>(a)", {"a": (2, 3)}),
    "Celu": ("z = Celu<alpha = 0.7>(a)", {"a": (2, 3)}),
    "Gelu by tanh": ('z = Gelu<approximate = "tanh">(a)', {"a": (2, 3)}),
    "HardSigmoid": ("z = HardSigmoid<alpha = 0.9>(a)", {"a": (2, 3)}),
    "ThresholdedRelu": ("z = ThresholdedRelu<alpha = 0.5>(a)", {"a": (4, 5)}),
    "Shrink": ("z = Shrink<lambd = 0.5, bias = 0.1>(a)", {"a": (4, 5)}),
    "Swish": ("s = Sigmoid(a) z = Mul(a, s)", {"a": (2, 3)}),
    "Cast": ("d = Cast<to = 11>(a) e = Exp(d) z = CastLike(e, a)", {"a": (2, 3)}),
    "Reshape": ("s = Constant<value_ints = [3, -1]>() y = Reshape(a, s) z = Exp(y)", {"a": (2, 6)}),
    "Flatten": ("y = Flatten(a) z = Exp(y)", {"a": (2, 3, 2)}),
    "Squeeze": ("s = Constant<value_ints = [1]>() y = Squeeze(a, s) z = Exp(y)", {"a": (2, 1, 3)}),
    "Unsqueeze": ("s = Constant<value_ints = [0]>() y = Unsqueeze(a, s) z = Exp(y)", {"a": (2, 3)}),
    "Transpose": ("z = Transpose<perm = [2, 0, 1]>(a)", {"a": (2, 3, 4)}),
    "Transpose reversed": ("z = Transpose(a)", {"a": (2, 3, 4)}),
    "Expand": ("s = Constant<value_ints = [4, 2, 3]>() z = Expand(a, s)", {"a": (2, 1)}),
    "Tile": ("s = Constant<value_ints = [2, 3]>() z = Tile(a, s)", {"a": (2, 3)}),
    "Concat": ("z = Concat<axis = 1>(a, b, a)", {"a": (2, 3), "b": (2, 1)}),
    "Split": ("p, q = Split<axis = 1, num_outputs = 2>(a) e = Exp(p) f = Mul(q, q) z = Concat<axis = 0>(e, f)", {"a": (2, 4)}),
    "Split, one part used": ("p, q = Split<axis = 1, num_outputs = 2>(a) z = Exp(q)", {"a": (2, 4)}),
    "Slice": ("s = Constant<value_ints = [1, 6]>() e = Constant<value_ints = [3, 0]>() t = Constant<value_ints = [1, -2]>() "
              "x = Constant<value_ints = [0, 1]>() z = Slice(a, s, e, x, t)", {"a": (4, 7)}),
    "Gather": ("i = Constant<value = int64[2,2] {2, 0, 2, -1}>() z = Gather(a, i)", {"a": (4, 3)}),
    "Gather, axis 1": ("i = Constant<value_ints = [1, 1, 0]>() z = Gather<axis = 1>(a, i)", {"a": (2, 3, 2)}),
    "GatherElements": ("i = Constant<value = int64[2,3] {0, 1, 1, 1, 1, 0}>() z = GatherElements<axis = 0>(a, i)", {"a": (2, 3)}),
    "GatherND": ("i = Constant<value = int64[3,2] {0, 1, 1, 1, 0, 1}>() z = GatherND(a, i)", {"a": (2, 3, 2)}),
    "ScatterElements": ('i = Constant<value = int64[2,3] {0, 1, 1, 1, 1, 0}>() z = ScatterElements<reduction = "add">(a, i, b)',
                        {"a": (2, 3), "b": (2, 3)}),
    "ScatterND": ('i = Constant<value = int64[2,1] {1, 1}>() z = ScatterND<reduction = "add">(a, i, b)', {"a": (2, 3), "b": (2, 3)}),
    "DepthToSpace": ("z = DepthToSpace<blocksize = 2>(a)", {"a": (1, 8, 2, 1)}),
    "SpaceToDepth": ("z = SpaceToDepth<blocksize = 2>(a)", {"a": (1, 2, 4, 2)}),
    "MatMul": ("z = MatMul(a, b)", {"a": (2, 3), "b": (3, 4)}),
    "MatMul of batches": ("z = MatMul(a, b)", {"a": (2, 1, 2, 3), "b": (4, 3, 2)}),
    "MatMul of vectors": ("z = MatMul(a, b)", {"a": (3,), "b": (3,)}),
    "MatMul, vector first": ("z = MatMul(a, b)", {"a": (3,), "b": (2, 3, 4)}),
    "MatMul, vector last": ("z = MatMul(a, b)", {"a": (2, 4, 3), "b": (3,)}),
    "Conv 1d": ("z = Conv(a, b)", {"a": (2, 3, 6), "b": (2, 3, 3)}),
    "Conv with all": ("z = Conv<strides = [2, 1], pads = [1, 2, 0, 1], dilations = [1, 2]>(a, b, c)",
                      {"a": (2, 3, 6, 7), "b": (4, 3, 3, 2), "c": (4,)}),
    "Conv in groups": ("z = Conv<group = 2, strides = [2, 2], pads = [1, 1, 1, 1]>(a, b)", {"a": (2, 4, 6, 5), "b": (6, 2, 3, 3)}),
    "Conv by depth": ("z = Conv<group = 3>(a, b)", {"a": (1, 3, 4, 4), "b": (3, 1, 2, 2)}),
    "ConvTranspose": ("z = ConvTranspose<strides = [2, 1], pads = [1, 0, 0, 1]>(a, b)", {"a": (2, 3, 3, 4), "b": (3, 2, 3, 2)}),
    "GlobalAveragePool": ("z = GlobalAveragePool(a)", {"a": (2, 3, 2, 4)}),
    "Softmax": ("z = Softmax<axis = 1>(a)", {"a": (2, 4, 2)}),
    "LogSoftmax": ("z = LogSoftmax(a)", {"a": (2, 4)}),
    "loss, mean": ("t = Constant<value_ints = [2, 0, 1]>() z = SoftmaxCrossEntropyLoss(a, t)", {"a": (3, 4)}),
    "loss, weighted": ("t = Constant<value = int64[2,2] {2, 0, 1, 1}>() z = SoftmaxCrossEntropyLoss<ignore_index = 0>(a, t, w)",
                       {"a": (2, 3, 2), "w": np.array([0.5, 1, 2], np.float32)}),
    "loss, of each": ('t = Constant<value_ints = [2, 0, 1]>() l = LogSoftmax(a) z = NegativeLogLikelihoodLoss<reduction = "none">(l, t)',
                      {"a": (3, 4)}),
}
for op in ("Neg", "Abs", "Exp", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh", "Tanh", "Sigmoid", "Relu", "Selu",
           "HardSwish", "Softplus", "Softsign", "Mish", "Gelu", "Erf", "Reciprocal", "Identity", "Floor", "Sign"):
    CASES[op] = (f"z = {op}(a)", {"a": (2, 3)})
for op, draw in {"Log": positive, "Sqrt": positive, "Acosh": above_one}.items():
    CASES[op] = (f"z = {op}(a)", {"a": (draw, (2, 3))})
for trans_a in (0, 1):
    for trans_b in (0, 1):
        CASES[f"Gemm {trans_a}{trans_b}"] = (f"z = Gemm<alpha = 0.5, beta = 2.0, transA = {trans_a}, transB = {trans_b}>(a, b, c)",
                                             {"a": (3, 2)[::1 - 2 * trans_a], "b": (2, 4)[::1 - 2 * trans_b], "c": (3, 1)})
for op in ("Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"):
    shape = (positive, (2, 3, 4)) if op == "LogSum" else (2, 3, 4)
    CASES[f"Reduce{op}"] = (f"s = Constant<value_ints = [2, 0]>() z = Reduce{op}<keepdims = 0>(a, s)", {"a": shape})
    CASES[f"Reduce{op}, axes kept"] = (f"s = Constant<value_ints = [-2]>() z = Reduce{op}(a, s)", {"a": shape})
    CASES[f"Reduce{op} of all"] = (f"z = Reduce{op}<keepdims = 0>(a)", {"a": shape})


STEPS = {"Erf": 1e-3, "Gelu": 1e-3}  # the evaluator rounds erf to single precision


def drawn(random, spec):
    if isinstance(spec, np.ndarray):
        return spec
    draw, shape = spec if callable(spec[0]) else (signed, spec)
    return draw(random, shape)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_agree_with_central_differences(name):
    nodes, specs = CASES[name]
    random = np.random.default_rng(7)
    feeds = {key: drawn(random, spec) for key, spec in specs.items()}
    xs = [key for key, spec in specs.items() if isinstance(spec, tuple)]
    (z,) = ReferenceEvaluator(parse(inputs_text(feeds), "float[] z", nodes)).run(None, feeds)
    weights = {"weight": signed(random, np.shape(z))}  # of the results in one sum, so that each derivative shows
    nodes += " weighted = Mul(z, weight) sum = ReduceSum<keepdims = 0>(weighted)"
    forward = ReferenceEvaluator(parse(inputs_text({**feeds, **weights}), "float sum", nodes))
    names = ", ".join(f'"{x}"' for x in xs)
    model = parse(inputs_text({**feeds, **weights}), ", ".join(f"float[] d_{x}" for x in xs),
                  nodes + f' {", ".join("d_" + x for x in xs)} = {TRAINING}.Gradient<xs = [{names}], y = "sum">({", ".join(xs)})')
    results = run(model, {**feeds, **weights})
    for x in xs:
        expected = central_differences(lambda moved: forward.run(None, {**moved, "weight": weights["weight"].astype(np.float64)})[0], feeds, x,
                                       STEPS.get(name, 1e-6))
        assert results["d_" + x].shape == expected.shape
        np.testing.assert_allclose(results["d_" + x], expected, rtol=2e-4, atol=2e-4, err_msg=f"d {name} / d {x}")


PERCEPTRON = """h0 = MatMul(x, w) h1 = Add(h0, b) h = Tanh(h1) g = Gemm(h, v) y = Softmax(g) d = Sub(y, t) s = Mul(d, d)
                l = ReduceMean<keepdims = 0>(s) """
LAYERS = {"x": (5, 3), "w": (3, 4), "b": (4,), "v": (4, 2), "t": (5, 2)}


def test_a_network_is_trained_by_its_own_gradients():
    random = np.random.default_rng(3)
    feeds = {name: signed(random, shape) for name, shape in LAYERS.items()}
    model = parse(inputs_text(feeds), "float l, float[3,4] dw, float[4] db, float[4,2] dv",
                  PERCEPTRON + f'dw, db, dv = {TRAINING}.Gradient<xs = ["w", "b", "v"], zs = ["x", "t"], y = "l">(w, b, v, x, t)')
    context = hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0"]).engine().context()
    first = context.run(feeds)["l"].item()
    for _ in range(100):
        results = context.run(feeds)
        for name in ("w", "b", "v"):
            feeds[name] = feeds[name] - np.float32(0.5) * results["d" + name]
    assert context.run(feeds)["l"] < 0.8 * first


def test_sizes_may_stay_open():
    random = np.random.default_rng(4)
    feeds = {name: signed(random, shape) for name, shape in LAYERS.items()}
    model = parse("float[N,3] x, float[3,4] w, float[4] b, float[4,2] v, float[N,2] t", "float[3,4] dw, float[4] db",
                  PERCEPTRON + f'dw, db = {TRAINING}.Gradient<xs = ["w", "b"], y = "l">(w, b)')
    forward = ReferenceEvaluator(parse(inputs_text(feeds), "float l", PERCEPTRON))
    results = run(model, feeds, ["--minShapes=x:1x3,t:1x2", "--optShapes=x:4x3,t:4x2", "--maxShapes=x:8x3,t:8x2"])
    for name in ("w", "b"):
        expected = central_differences(lambda moved: forward.run(None, moved)[0], feeds, name)
        np.testing.assert_allclose(results["d" + name], expected, rtol=2e-4, atol=2e-4)


def test_derivatives_of_derivatives():
    x = np.linspace(0.2, 1, 5, dtype=np.float32)
    nodes = "s = Sin(x) m = Mul(s, x) y = Exp(m) "
    for name in ("y", "d1", "d2"):
        nodes += f'{"d" + str(int(name[1:] or 0) + 1)} = {TRAINING}.Gradient<xs = ["x"], y = "{name}">(x) '
    results = run(parse("float[5] x", "float[5] d1, float[5] d2, float[5] d3", nodes), {"x": x})
    step, wide = 1e-3, x.astype(np.float64)
    at = lambda shift: np.exp(np.sin(wide + shift) * (wide + shift))
    expected = {"d1": (at(step) - at(-step)) / (2 * step), "d2": (at(step) - 2 * at(0) + at(-step)) / step**2,
                "d3": (at(2 * step) - 2 * at(step) + 2 * at(-step) - at(-2 * step)) / (2 * step**3)}
    for name, values in expected.items():
        np.testing.assert_allclose(results[name], values, rtol=1e-4, atol=1e-4, err_msg=name)


def test_values_between_may_be_differentiated_and_given_anew():
    feeds = {"x": np.array([0.3, 0.6], np.float32), "w": np.array([2, 3], np.float32), "other": np.array([1, -1], np.float32)}
    nodes = f"""h = Mul(x, w) e = Exp(h) y = Mul(e, w)
                dh, dw = {TRAINING}.Gradient<xs = ["h", "w"], y = "y">(h, w)
                oh, ow = {TRAINING}.Gradient<xs = ["h", "w"], y = "y">(other, w)
                fixed = {TRAINING}.Gradient<xs = ["x"], zs = ["h"], y = "y">(x, h)"""
    outputs = ", ".join(f"float[2] {name}" for name in ("dh", "dw", "oh", "ow", "fixed"))
    results = run(parse(inputs_text(feeds), outputs, nodes), feeds)
    h, w = feeds["x"] * feeds["w"], feeds["w"]
    expected = {"dh": np.exp(h) * w, "dw": np.exp(h), "oh": np.exp(feeds["other"]) * w, "ow": np.exp(feeds["other"]), "fixed": np.zeros(2)}
    for name, values in expected.items():
        np.testing.assert_allclose(results[name], values, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("op", ["Sigmoid", "Softplus", "Elu", "Gelu", "Mish", "Softmax"])
def test_nothing_overflows_on_the_way(op):
    x = np.array([-200, -90, 0, 90, 200], np.float32)
    results = run(parse("float[5] x", "float[5] d", f'y = {op}(x) d = {TRAINING}.Gradient<xs = ["x"], y = "y">(x)'), {"x": x})
    assert np.isfinite(results["d"]).all()


REFUSED = {
    "an operator without a derivative": ("v, i = TopK(x, k) y = Mul(v, v)", '<xs = ["x"], y = "y">(x)', "TopK"),
    "an unknown y": ("y = Exp(x)", '<xs = ["x"], y = "q">(x)', "'q'"),
    "an unknown x": ("y = Exp(x)", '<xs = ["q"], y = "y">(x)', "'q'"),
    "integers": ("y = Cast<to = 1>(k)", '<xs = ["k"], y = "y">(k)', "only floats"),
    "too few inputs": ("y = Exp(x)", '<xs = ["x"], zs = ["k"], y = "y">(x)', "1 inputs"),
    "itself": ("y = Exp(x)", '<xs = ["x"], y = "d">(x)', "cycle"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_derivative_is_refused_with_the_node(case):
    nodes, rest, reason = REFUSED[case]
    model = parse("float[4] x, int64[1] k", "float[] d", f"{nodes} d = {TRAINING}.Gradient{rest}")
    with pytest.raises(hone.Error, match="Gradient") as raised:
        hone.Model.parse(model.SerializeToString())
    assert reason in str(raised.value)
