# SPDX-License-Identifier: Apache-2.0
"""The operators that ONNX Runtime's tools write into models (domain com.microsoft), each against ONNX Runtime itself."""

import os
import pathlib
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import inference

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")

RANDOM = np.random.default_rng(11)


def real(*shape, scale=1.0):
    return (RANDOM.standard_normal(shape) * scale).astype(np.float32)


def quantised(*shape, kind=np.uint8):
    bounds = np.iinfo(kind)
    return RANDOM.integers(bounds.min, bounds.max + 1, shape).astype(kind)


def scale(value):
    return np.float32(value)


def zero(value, kind=np.uint8):
    return np.asarray(value, kind)


HEADS, DEPTH, TOKENS, BATCH = 4, 16, 6, 2
WIDTH = HEADS * DEPTH
ANGLES = np.outer(np.arange(32), 10000.0 ** -(np.arange(DEPTH // 2) / (DEPTH // 2))).astype(np.float32)
COSINES, SINES = np.cos(ANGLES), np.sin(ANGLES)


def packed_weight(k, n, block, bits=4):
    """A weight of few bits as MatMulNBits reads it: packed rows, scales, packed zero points."""
    blocks = -(-k // block)
    return quantised(n, blocks, block * bits // 8), real(n * blocks, scale=0.1), quantised(n * (-(-blocks * bits // 8)))


def n_bits(rows, k, n, block, bits=4, parts=3, zeros=None, groups=None, bias=False):
    """A case of MatMulNBits, with `parts` of the packed weight; `zeros` in place of packed ones."""
    given = [("w", part) for part in packed_weight(k, n, block, bits)][:parts] + ([("w", zeros)] if zeros is not None else [])
    operands = [real(rows, k), *given]
    if groups is not None:
        operands += [None] * (4 - len(operands)) + [("w", groups)]
    if bias:
        operands += [None] * (5 - len(operands)) + [("w", real(n))]
    return "MatMulNBits", operands, {"K": k, "N": n, "bits": bits, "block_size": block}, 1


def table_bits(kind, k, n, block):
    """A case of MatMulBnb4: four bits that stand for one of 16 numbers."""
    weight = [("w", quantised(k * n // 2)), ("w", np.abs(real(-(-k * n // block), scale=0.1)))]
    return "MatMulBnb4", [real(3, k), *weight], {"K": k, "N": n, "block_size": block, "quant_type": kind}, 1


def gathered_blocks(bits, zeros, width=64, block=16):
    """A case of GatherBlockQuantized: rows of a table of bytes, with a code or two in each."""
    packed = lambda count: quantised(9, -(-count * bits // 8))
    blocks = -(-width // block)
    operands = [("w", packed(width)), np.array([[3, 0, 8], [1, 3, 3]], np.int64), ("w", real(9, blocks, scale=0.1))]
    return ("GatherBlockQuantized", operands + ([("w", packed(blocks))] if zeros else []),
            {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}, 1)


# name: operator, operands (None: not given; ("w", array): a constant), attributes, number of outputs, tolerance
CASES = {
    "inverse": ("Inverse", [real(3, 5, 5) + 4 * np.eye(5, dtype=np.float32)], {}, 1),
    "gelu": ("Gelu", [real(3, 8)], {}, 1),
    "fast_gelu": ("FastGelu", [real(3, 8), real(8)], {}, 1),
    "bias_gelu": ("BiasGelu", [real(3, 8), real(8)], {}, 1),
    "quick_gelu": ("QuickGelu", [real(3, 8)], {"alpha": 1.3}, 1),
    "fused_mat_mul": ("FusedMatMul", [real(2, 3, 4), real(2, 5, 4)], {"transB": 1, "alpha": 0.5}, 1),
    "fused_mat_mul_batch": ("FusedMatMul", [real(3, 2, 4), real(2, 4, 5)], {"transBatchA": 1}, 1),
    "fused_conv": ("FusedConv", [real(1, 4, 7, 7), ("w", real(8, 4, 3, 3)), ("w", real(8))], {"activation": "Relu", "pads": [1, 1, 1, 1]}, 1),
    "fused_conv_leaky": ("FusedConv", [real(1, 4, 7, 7), ("w", real(8, 4, 3, 3)), ("w", real(8))],
                         {"activation": "LeakyRelu", "activation_params": [0.2]}, 1),
    "fused_gemm": ("FusedGemm", [real(3, 8), ("w", real(5, 8)), ("w", real(5))],
                   {"transB": 1, "alpha": 0.5, "beta": 2.0, "activation": "LeakyRelu", "activation_alpha": 0.3}, 1),
    "fused_gemm_plain": ("FusedGemm", [real(8, 3), ("w", real(8, 5))], {"transA": 1, "activation": "Relu"}, 1),
    "skip_norm": ("SkipLayerNormalization", [real(2, 3, 8), real(2, 3, 8), real(8), real(8), real(8)], {"epsilon": 1e-5}, 1),
    "skip_rms_norm": ("SkipSimplifiedLayerNormalization", [real(2, 3, 8), real(2, 3, 8), real(8)], {"epsilon": 1e-5}, 1),
    "embed_norm": ("EmbedLayerNormalization",
                   [quantised(2, 5, kind=np.int8).astype(np.int32) % 7 + 0, np.zeros((2, 5), np.int32), real(16, 8), real(9, 8), real(2, 8), real(8),
                    real(8)], {"epsilon": 1e-12}, 2),
    "attention": ("Attention", [real(BATCH, TOKENS, 16), ("w", real(16, 3 * WIDTH, scale=0.2)), ("w", real(3 * WIDTH))], {"num_heads": HEADS}, 1),
    "attention_causal": ("Attention", [real(BATCH, TOKENS, 16), ("w", real(16, 3 * WIDTH, scale=0.2)), ("w", real(3 * WIDTH))],
                         {"num_heads": HEADS, "unidirectional": 1}, 1),
    "attention_mask": ("Attention", [real(BATCH, TOKENS, 16), ("w", real(16, 3 * WIDTH, scale=0.2)), ("w", real(3 * WIDTH)),
                                     np.array([[1] * 6, [1] * 4 + [0] * 2], np.int32)], {"num_heads": HEADS}, 1),
    "multi_head": ("MultiHeadAttention", [real(BATCH, TOKENS, WIDTH), real(BATCH, 5, WIDTH), real(BATCH, 5, WIDTH), real(3 * WIDTH)],
                   {"num_heads": HEADS}, 1),
    "multi_head_bias": ("MultiHeadAttention", [real(BATCH, TOKENS, WIDTH), real(BATCH, 5, WIDTH), real(BATCH, 5, WIDTH), None, None,
                                               real(BATCH, HEADS, TOKENS, 5)], {"num_heads": HEADS}, 1),
    "rotary": ("RotaryEmbedding", [real(BATCH, TOKENS, WIDTH), np.array([3], np.int64), COSINES, SINES], {}, 1),
    "rotary_interleaved": ("RotaryEmbedding", [real(BATCH, TOKENS, WIDTH), np.tile(np.arange(TOKENS), (BATCH, 1)), COSINES, SINES],
                           {"interleaved": 1}, 1),
    "group_query": ("GroupQueryAttention",
                    [real(BATCH, TOKENS, WIDTH), real(BATCH, TOKENS, WIDTH // 2), real(BATCH, TOKENS, WIDTH // 2),
                     real(BATCH, HEADS // 2, 0, DEPTH), real(BATCH, HEADS // 2, 0, DEPTH), np.full(BATCH, TOKENS - 1, np.int32),
                     ("w", np.array(TOKENS, np.int32)), COSINES, SINES], {"num_heads": HEADS, "kv_num_heads": HEADS // 2, "do_rotary": 1}, 3),
    "q_add": ("QLinearAdd", [quantised(3, 8), scale(0.1), zero(120), quantised(8), scale(0.2), zero(100), scale(0.25), zero(110)], {}, 1),
    "q_mul": ("QLinearMul", [quantised(3, 8), scale(0.1), zero(120), quantised(8), scale(0.2), zero(100), scale(1.5), zero(110)], {}, 1),
    "q_add_of_a_mask": ("QLinearAdd", [quantised(3, 8), ("w", scale(0.25)), ("w", zero(0)), np.tile(np.array([0, 255], np.uint8), 4), ("w", scale(2.6e36)),
                                       ("w", zero(200)), ("w", scale(5.2e36)), ("w", zero(128))], {}, 1),
    "q_sigmoid": ("QLinearSigmoid", [quantised(3, 8), scale(0.05), zero(128), scale(1 / 256), zero(0)], {}, 1),
    "q_leaky_relu": ("QLinearLeakyRelu", [quantised(3, 8), scale(0.05), zero(128), scale(0.05), zero(100)], {"alpha": 0.1}, 1),
    "q_average": ("QLinearAveragePool", [quantised(1, 3, 8, 8), scale(0.1), zero(120), scale(0.12), zero(118)],
                  {"kernel_shape": [3, 3], "strides": [2, 2]}, 1),
    "q_global_average": ("QLinearGlobalAveragePool", [quantised(1, 3, 8, 8), scale(0.1), zero(120), scale(0.05), zero(118)], {}, 1),
    "q_concat": ("QLinearConcat", [scale(0.2), zero(120), quantised(2, 3), scale(0.1), zero(110), quantised(2, 4), scale(0.3), zero(130)],
                 {"axis": 1}, 1),
    "q_softmax": ("QLinearSoftmax", [quantised(3, 8), scale(0.1), zero(120), scale(1 / 256), zero(0)], {"opset": 13, "axis": -1}, 1),
    "q_softmax_flattened": ("QLinearSoftmax", [quantised(2, 3, 4), scale(0.1), zero(120), scale(1 / 256), zero(0)], {"opset": 12, "axis": 1}, 1),
    "q_where": ("QLinearWhere", [np.array([[True], [False], [True]]), quantised(3, 8), ("w", scale(0.1)), ("w", zero(120)), quantised(3, 8),
                                 ("w", scale(0.2)), ("w", zero(100)), ("w", scale(0.25)), ("w", zero(110))], {}, 1),
    "q_gemm": ("QGemm", [quantised(3, 8), scale(0.05), zero(120), ("w", quantised(8, 5, kind=np.int8)), ("w", scale(0.02)), ("w", zero(0, np.int8)),
                         ("w", RANDOM.integers(-500, 500, 5, np.int32)), scale(0.5), zero(110)], {}, 1),
    "q_gemm_columns": ("QGemm", [quantised(3, 8), scale(0.05), zero(120), ("w", quantised(5, 8, kind=np.int8)),
                                 ("w", np.linspace(0.01, 0.03, 5, dtype=np.float32)), ("w", np.zeros(5, np.int8)),
                                 ("w", RANDOM.integers(-500, 500, 5, np.int32))], {"transB": 1, "alpha": 0.5}, 1),
    "q_attention": ("QAttention", [quantised(BATCH, TOKENS, 16), ("w", quantised(16, 3 * WIDTH, kind=np.int8)), ("w", real(3 * WIDTH)),
                                   scale(0.01), ("w", np.float32(0.01)), None, zero(128), ("w", np.int8(0))], {"num_heads": HEADS}, 1),
    "dynamic_product": ("DynamicQuantizeMatMul", [real(3, 16), ("w", quantised(16, 8, kind=np.int8)), ("w", np.float32(0.02)), None, ("w", real(8))],
                        {}, 1),
    "integer_to_float": ("MatMulIntegerToFloat", [quantised(3, 16), ("w", quantised(16, 8, kind=np.int8)), scale(0.1), ("w", np.float32(0.02)),
                                                  zero(120), ("w", np.int8(3)), ("w", real(8))], {}, 1),
    "n_bits": n_bits(3, 64, 8, 32),
    "n_bits_middle": n_bits(1, 128, 48, 32, parts=2),
    "n_bits_bias": n_bits(2, 96, 20, 32, bias=True),
    "n_bits_ragged": n_bits(1, 80, 24, 32),
    "n_bits_many_rows": n_bits(70, 64, 40, 16),
    "n_bits_by_index": n_bits(3, 64, 24, 16, parts=2, groups=RANDOM.integers(0, 4, 64).astype(np.int32)),
    "n_bits_middle_by_index": n_bits(1, 64, 24, 32, parts=2, groups=np.arange(64, dtype=np.int32)[::-1] // 32),
    "n_bits_eight": n_bits(3, 64, 24, 32, bits=8),
    "table_fp4": table_bits(0, 64, 24, 64),
    "table_nf4": table_bits(1, 96, 20, 16),
    "gather_blocks": gathered_blocks(4, zeros=False),
    "gather_blocks_zeros": gathered_blocks(4, zeros=True),
    "gather_blocks_ragged": gathered_blocks(4, zeros=True, width=72),
    "gather_blocks_eight": gathered_blocks(8, zeros=True),
    "n_bits_between": n_bits(3, 64, 24, 32, parts=2, zeros=np.linspace(0.5, 15, 48, dtype=np.float32)),
}


def model_of(kind, operands, attributes, outputs):
    names, inputs, weights, feeds = [], [], [], {}
    for index, operand in enumerate(operands):
        if operand is None:
            names.append("")
            continue
        name = f"in{index}"
        names.append(name)
        constant = isinstance(operand, tuple)
        array = np.asarray(operand[1] if constant else operand)
        if constant:
            weights.append(numpy_helper.from_array(array, name))
        else:
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
            feeds[name] = array
    results = [f"out{index}" for index in range(outputs)]
    node = helper.make_node(kind, names, results, name="node", domain="com.microsoft", **attributes)
    values = [helper.make_value_info(name, helper.make_tensor_type_proto(TensorProto.UNDEFINED, None)) for name in results]
    for value in values:
        value.ClearField("type")
    graph = helper.make_graph([node], "microsoft", inputs, values, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


@pytest.mark.parametrize("case", CASES)
def test_the_operator_gives_what_onnx_runtime_gives(case):
    kind, operands, attributes, outputs = CASES[case]
    model, feeds = model_of(kind, operands, attributes, outputs)
    session = inference.session_of(model.SerializeToString())
    expected = session.run(None, feeds)
    context = hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0"]).engine().context()
    found = context.run(feeds)
    for index, reference in enumerate(expected):
        own = found[f"out{index}"]
        assert own.shape == reference.shape and own.dtype == reference.dtype
        if own.dtype == np.uint8:                      # a value halfway between two may go either way
            assert np.max(np.abs(own.astype(int) - reference.astype(int)), initial=0) <= 1
        else:
            np.testing.assert_allclose(own, reference, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("scales", [(0.1, 0.2, 1.5), (0.0235, 0.0039, 0.0117), (1, 0.5, 1)])
def test_all_products_of_two_steps_round_as_onnx_runtime_rounds_them(scales):
    a, b, y = map(scale, scales)
    steps = np.arange(256, dtype=np.uint8)
    model, feeds = model_of("QLinearMul", [steps[:, None], ("w", a), ("w", zero(120)), steps[None, :], ("w", b), ("w", zero(3)), ("w", y),
                                           ("w", zero(101))], {}, 1)
    expected, = inference.session_of(model.SerializeToString()).run(None, feeds)
    plan = hone.Model.parse(model.SerializeToString()).build(["--builderOptimizationLevel=0"])
    np.testing.assert_array_equal(plan.engine().context().run(feeds)["out0"], expected)
