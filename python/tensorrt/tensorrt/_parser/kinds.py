# SPDX-License-Identifier: Apache-2.0
"""Of ONNX's operators: the kind of layer that stands for each, and which operands are weights where the file holds them."""

from .._base import enums

KINDS = {
    "CONVOLUTION": "Conv ConvInteger DeformConv QLinearConv",
    "DECONVOLUTION": "ConvTranspose",
    "ACTIVATION": """Relu Sigmoid Tanh LeakyRelu Elu Selu Softsign Softplus Clip HardSigmoid ThresholdedRelu Gelu HardSwish Celu Mish Swish
        Shrink""",
    "PARAMETRIC_RELU": "PRelu",
    "ELEMENTWISE": """Add Mul Max Min Sub Div Pow And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual Mod Mean Sum BitShift BitwiseAnd
        BitwiseOr BitwiseXor""",
    "UNARY": """Exp Log Sqrt Reciprocal Abs Neg Sin Cos Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Ceil Floor Erf Not Sign Round IsInf
        IsNaN BitwiseNot""",
    "POOLING": "MaxPool AveragePool LpPool",
    "SCALE": "BatchNormalization",
    "MATRIX_MULTIPLY": "MatMul Gemm MatMulInteger QLinearMatMul",
    "SHUFFLE": "Reshape Flatten Transpose DepthToSpace SpaceToDepth",
    "REDUCE": """ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare
        GlobalAveragePool GlobalMaxPool GlobalLpPool""",
    "SLICE": "Split Slice Tile Expand Pad CenterCropPad",
    "SHAPE": "Shape Size",
    "FILL": "Range ConstantOfShape RandomUniform RandomNormal RandomUniformLike RandomNormalLike EyeLike",
    "SELECT": "Where",
    "IDENTITY": "Identity Dropout CastLike",
    "CAST": "Cast",
    "QUANTIZE": "QuantizeLinear",
    "DEQUANTIZE": "DequantizeLinear",
    "DYNAMIC_QUANTIZE": "DynamicQuantizeLinear",
    "LOOP_OUTPUT": "Loop Scan LSTM GRU RNN",
    "CONDITIONAL_OUTPUT": "If",
    "CONCATENATION": "Concat",
    "SOFTMAX": "Softmax LogSoftmax Hardmax",
    "TOPK": "TopK ArgMax ArgMin",
    "GATHER": "Gather GatherElements GatherND",
    "SCATTER": "ScatterElements ScatterND Scatter",
    "RESIZE": "Resize Upsample",
    "LRN": "LRN",
    "NORMALIZATION": "InstanceNormalization LayerNormalization GroupNormalization RMSNormalization LpNormalization MeanVarianceNormalization",
    "EINSUM": "Einsum",
    "ONE_HOT": "OneHot",
    "NON_ZERO": "NonZero",
    "GRID_SAMPLE": "GridSample",
    "NMS": "NonMaxSuppression",
    "REVERSE_SEQUENCE": "ReverseSequence",
    "CUMULATIVE": "CumSum",
    "SQUEEZE": "Squeeze",
    "UNSQUEEZE": "Unsqueeze",
    "ROTARY_EMBEDDING": "RotaryEmbedding",
}
_OF = {op: kind for kind, ops in KINDS.items() for op in ops.split()}
_OLDER = {"SQUEEZE": "SHUFFLE", "UNSQUEEZE": "SHUFFLE", "CUMULATIVE": "LOOP_OUTPUT", "DYNAMIC_QUANTIZE": "QUANTIZE",
          "ROTARY_EMBEDDING": "PLUGIN_V2"}

# Operands that are weights where an initialiser stands there; anywhere else it becomes a layer of its own.
WEIGHTS = {"Conv": (1, 2), "ConvTranspose": (1, 2), "BatchNormalization": (1, 2, 3, 4), "Reshape": (1,), "Slice": (1, 2, 3, 4), "Squeeze": (1,),
           "Unsqueeze": (1,), "Pad": (1, 2, 3), "Resize": (1, 2, 3), "Upsample": (1,), "Clip": (1, 2), "TopK": (1,), "Expand": (1,), "Tile": (1,),
           "ConstantOfShape": (0,), "Split": (1,), "QuantizeLinear": (2,), "DequantizeLinear": (2,), "LSTM": (1, 2, 3, 4, 5, 6, 7),
           "GRU": (1, 2, 3, 4, 5), "RNN": (1, 2, 3, 4, 5), "CumSum": (1,), "OneHot": (1, 2), "Dropout": (1, 2),
           "InstanceNormalization": (1, 2), "CenterCropPad": (1,), "NonMaxSuppression": (2, 3, 4),
           **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum",
                            "ReduceLogSumExp", "ReduceSumSquare"), (1,))}


def kind_of(node):
    """The kind of layer for a node; operators that are nobody's are plugins."""
    layer_type = enums.ALL["LayerType"]
    kind = _OF.get(node.op) if node.domain in ("", "com.microsoft") else None
    if kind in ("SQUEEZE", "UNSQUEEZE"):
        kind = "SHUFFLE"  # as the parser of the original says it
    kind = kind or "PLUGIN_V2"
    return kind if hasattr(layer_type, kind) else _OLDER.get(kind, "PLUGIN_V2")


def weight_places(node):
    return WEIGHTS.get(node.op, ()) if node.domain == "" else ()
