# SPDX-License-Identifier: Apache-2.0
"""What bench/operators.py measures: for each operator that ONNX Runtime runs on a processor one node, at a size that models have.

A row is (operator, operands, attributes). An operand is a text: "f32[1,64,56,56]" holds normal values, "i64[8,128]<30522" integers from 0
on, "f32[64]>0" values above 0, "f32[64]*0.1" values a tenth as large; "=f32[64]" is a constant of the model instead of an input; "i64[2]:3,4" holds what it says, "i64:5" one
number; "" is left out. Operators of other domains are written "ml:Scaler" and "ms:Attention".
"""

IMAGE, ROWS, TOKENS = "f32[1,64,56,56]", "f32[128,768]", "f32[1,128,768]"

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Mish
           Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Tan Tanh ThresholdedRelu"""
BINARY = "Add Sub Mul Div Max Min Equal Greater GreaterOrEqual Less LessOrEqual"
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
NORM = ["=f32[768]", "=f32[768]"]


def pointwise():
    yield from ((op, [IMAGE], {}) for op in UNARY.split())
    yield from ((op, [IMAGE + ">0"], {}) for op in ("Log", "Sqrt"))
    yield from [("Gelu", [IMAGE], {"opset": 20}), ("Swish", [IMAGE], {"opset": 24})]
    yield from ((op, [kind + "[1,64,56,56]>0"] * 2, {}) for op in BINARY.split() for kind in ("f32", "i32", "i64", "f64"))
    yield from ((op, [kind + "[1,64,56,56]"], {}) for op in ("Abs", "Neg", "Sign") for kind in ("i64", "i32"))
    yield from ((op, ["bool[1,64,56,56]"] * 2, {}) for op in ("And", "Or", "Xor"))
    yield from ((op, ["i32[1,64,56,56]<1000"] * 2, {}) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"))
    yield from [("Not", ["bool[1,64,56,56]"], {}), ("BitwiseNot", ["i32[1,64,56,56]<1000"], {}),
                ("BitShift", ["u32[100000]<1000", "u32[100000]<8"], {"direction": "LEFT"}),
                ("Mod", ["i64[100000]<1000", "=i64:7"], {}), ("Mod", ["f32[100000]", "=f32[1]>0"], {"fmod": 1}),
                ("Pow", [IMAGE + ">0", "=f32:2.5"], {}), ("Pow", [IMAGE, "=f32:2"], {}), ("Pow", [IMAGE, "f32:2"], {}), ("PRelu", [IMAGE, "=f32[64,1,1]"], {}),
                ("Clip", [IMAGE, "=f32:0", "=f32:6"], {}), ("Clip", ["i64[200000]<100", "=i64:3", "=i64:60"], {}),
                ("Where", ["bool[1,64,56,56]", IMAGE, IMAGE], {}), ("Where", ["bool[1,64,56,56]", "i64[1,64,56,56]", "i64[1,1,1,1]"], {}),
                ("Sum", [IMAGE] * 3, {}), ("Mean", [IMAGE] * 3, {}), ("Max", [IMAGE] * 3, {}), ("Dropout", [IMAGE], {}),
                ("QuantizeLinear", [IMAGE, "=f32:0.05", "=u8:128"], {}), ("DequantizeLinear", ["u8[1,64,56,56]<256", "=f32:0.05", "=u8:128"], {}),
                ("DynamicQuantizeLinear", [ROWS], {"outputs": 3})]
    kinds = {"f32": 1, "u8": 2, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11}
    pairs = "f32:f16 f16:f32 f32:i64 i64:f32 i32:i64 i64:i32 f32:bool bool:f32 u8:f32 f32:u8 f64:f32 f32:f64"
    for source, target in (pair.split(":") for pair in pairs.split()):
        yield "Cast", [source + "[1,64,56,56]" + (">0" if target == "u8" else "" if source[0] == "f" or source == "bool" else "<100")], {"to": kinds[target]}


def reductions():
    for name in REDUCTIONS.split():
        operand = "f32[64,128,128]" + (">0" if "Log" in name else "")
        yield "Reduce" + name, [operand, "=i64[1]:2"], {}
        yield "Reduce" + name, [operand, "=i64[1]:1"], {"keepdims": 0}
    yield from (("Reduce" + name, [kind + "[64,128,128]<9", "=i64[1]:2"], {}) for name in ("Sum", "Max", "Mean") for kind in ("i64", "i32", "f64"))
    yield from [("ArgMax", ["f32[1,21,128,128]"], {"axis": 1}), ("ArgMin", ["f32[128,1000]"], {"axis": 1}),
                ("ArgMax", ["i32[128,1000]<99999"], {"axis": 1}),
                ("TopK", ["f32[1,1000]", "=i64[1]:5"], {"outputs": 2}), ("TopK", ["f32[1,25200]", "=i64[1]:300"], {"outputs": 2}), ("TopK", ["f32[64,50257]", "=i64[1]:50"], {"outputs": 2}),
                ("TopK", ["i64[1,8400]<100000", "=i64[1]:300"], {"outputs": 2}),
                ("CumSum", ["f32[128,768]", "=i64:1"], {}), ("CumSum", ["i64[8,1024]<2", "=i64:1"], {}), ("CumSum", ["f32[64,128,128]", "=i64:0"], {}),
                ("Hardmax", [ROWS], {}), ("Softmax", ["f32[12,128,128]"], {}), ("Softmax", ["f32[1,21,64,64]"], {"axis": 1}),
                ("Softmax", ["f64[128,128]"], {}), ("LogSoftmax", ["f32[128,1000]"], {}), ("LpNormalization", [ROWS], {"axis": 1, "p": 2}),
                ("LayerNormalization", [TOKENS, *NORM], {}), ("InstanceNormalization", [IMAGE, "=f32[64]", "=f32[64]"], {}),
                ("BatchNormalization", [IMAGE, "=f32[64]", "=f32[64]", "=f32[64]", "=f32[64]>0"], {}),
                ("GroupNormalization", [IMAGE, "=f32[64]", "=f32[64]"], {"num_groups": 8, "opset": 21}), ("LRN", [IMAGE], {"size": 5}),
                ("RMSNormalization", [TOKENS, "=f32[768]"], {"opset": 23}), ("MeanVarianceNormalization", [IMAGE], {}),
                ("SoftmaxCrossEntropyLoss", ["f32[128,1000]", "i64[128]<1000"], {}), ("NegativeLogLikelihoodLoss", ["f32[128,1000]", "i64[128]<1000"], {})]


def movement():
    yield from [("Concat", [IMAGE, IMAGE], {"axis": 1}), ("Concat", ["i64[128,64]"] * 2, {"axis": 1}),
                ("Transpose", [IMAGE], {"perm": [0, 2, 3, 1]}), ("Transpose", ["f32[1,128,12,64]"], {"perm": [0, 2, 1, 3]}),
                ("Transpose", ["u8[1,224,224,3]<256"], {"perm": [0, 3, 1, 2]}), ("Transpose", ["i64[256,256]"], {}),
                ("Slice", [IMAGE, "=i64[2]:8,8", "=i64[2]:48,48", "=i64[2]:2,3"], {}), ("Slice", ["i64[1024,128]", "=i64[1]:-1", "=i64[1]:-999", "=i64[1]:0", "=i64[1]:-1"], {}),
                ("Split", ["f32[128,2304]"], {"axis": 1, "num_outputs": 3, "outputs": 3}), ("Tile", ["f32[64,128]", "=i64[2]:8,4"], {}),
                ("Expand", ["f32[1,64,1,1]", "=i64[4]:8,64,28,28"], {}), ("Pad", [IMAGE, "=i64[8]:0,0,1,1,0,0,1,1"], {}),
                ("Pad", [IMAGE, "=i64[8]:0,0,3,3,0,0,3,3"], {"mode": "reflect"}), ("Reshape", [IMAGE, "=i64[2]:64,-1"], {}),
                ("Flatten", [IMAGE], {}), ("Squeeze", [IMAGE, "=i64[1]:0"], {}), ("Unsqueeze", [IMAGE, "=i64[1]:0"], {}),
                ("Shape", [IMAGE], {}), ("Size", [IMAGE], {}), ("ConstantOfShape", ["i64[2]:256,256"], {}),
                ("Gather", ["=f32[30522,768]", "i64[1,128]<30522"], {}), ("Gather", ["f32[128,768]", "i64[64]<768"], {"axis": 1}),
                ("Gather", ["i64[4096]", "i64[1024]<4096"], {}), ("GatherElements", [ROWS, "i64[128,768]<128"], {}),
                ("GatherND", ["f32[64,64,128]", "i64[1000,2]<64"], {}), ("ScatterElements", [ROWS, "i64[128,64]<128", "f32[128,64]"], {}),
                ("ScatterElements", [ROWS, "i64[128,64]<128", "f32[128,64]"], {"reduction": "add"}),
                ("ScatterND", ["f32[1024,128]", "i64[100,1]<1024", "f32[100,128]"], {}), ("Compress", ["f32[1024,128]", "bool[1024]"], {"axis": 0}),
                ("Compress", ["f32[100000]", "bool[100000]"], {}), ("NonZero", ["f32[256,256]"], {}), ("NonZero", ["bool[100000]"], {}),
                ("OneHot", ["i64[128]<1000", "=i64:1000", "=f32[2]:0,1"], {}), ("OneHot", ["i64[8,512]<64", "=i64:64", "=f32[2]:0,1"], {"axis": 1}),
                ("Range", ["i64:0", "i64:10000", "i64:1"], {}), ("Range", ["f32:0", "f32:1000", "f32:0.25"], {}),
                ("Unique", ["i64[10000]<500"], {"outputs": 4}), ("Unique", ["f32[1000]"], {"outputs": 1}),
                ("ReverseSequence", ["f32[128,16,64]", "i64[16]<128"], {}), ("Trilu", ["f32[12,256,256]"], {}), ("EyeLike", ["f32[512,512]"], {}),
                ("DepthToSpace", [IMAGE], {"blocksize": 2}), ("SpaceToDepth", [IMAGE], {"blocksize": 2}),
                ("CenterCropPad", ["f32[3,256,256]", "=i64[2]:224,224"], {"axes": [1, 2]}), ("TensorScatter", ["f32[4,8,512,64]", "f32[4,8,1,64]", "i64[4]<500"], {"opset": 24})]


def products():
    yield from [("MatMul", [ROWS, "=f32[768,768]"], {}), ("MatMul", ["f32[12,128,64]", "f32[12,64,128]"], {}), ("MatMul", ["f64[128,256]", "f64[256,128]"], {}),
                ("MatMul", ["i32[64,128]<9", "i32[128,64]<9"], {}), ("Gemm", [ROWS, "=f32[3072,768]", "=f32[3072]"], {"transB": 1}),
                ("Gemm", ["f64[64,128]", "=f64[128,64]", "=f64[64]"], {}), ("Einsum", ["f32[12,128,64]", "f32[12,128,64]"], {"equation": "bid,bjd->bij"}),
                ("MatMulInteger", ["u8[128,768]<256", "=u8[768,768]<256"], {}), ("Det", ["f32[64,16,16]"], {}),
                ("QLinearMatMul", ["u8[128,768]<256", "=f32:0.02", "=u8:128", "=i8[768,768]<99", "=f32:0.01", "=i8:0", "=f32:0.5", "=u8:120"], {}),
                ("Conv", [IMAGE, "=f32[64,64,3,3]", "=f32[64]"], {"pads": [1, 1, 1, 1]}), ("Conv", [IMAGE, "=f32[64,1,3,3]"], {"group": 64, "pads": [1, 1, 1, 1]}),
                ("Conv", ["f32[1,32,400]", "=f32[64,32,5]"], {}), ("Conv", ["f32[1,8,16,32,32]", "=f32[16,8,3,3,3]"], {}),
                ("ConvInteger", ["u8[1,32,28,28]<256", "=u8[32,32,3,3]<256"], {}),
                ("QLinearConv", ["u8[1,32,28,28]<256", "=f32:0.02", "=u8:128", "=i8[32,32,3,3]<99", "=f32:0.01", "=i8:0", "=f32:0.5", "=u8:120"], {}),
                ("ConvTranspose", ["f32[1,64,28,28]", "=f32[64,32,4,4]"], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
                ("DeformConv", ["f32[1,64,28,28]", "=f32[64,64,3,3]", "f32[1,18,28,28]"], {"pads": [1, 1, 1, 1], "opset": 22}),
                ("LSTM", ["f32[64,1,128]", "=f32[1,512,128]*0.088", "=f32[1,512,128]*0.088", "=f32[1,1024]*0.088"], {"hidden_size": 128}),
                ("GRU", ["f32[64,1,128]", "=f32[1,384,128]*0.088", "=f32[1,384,128]*0.088", "=f32[1,768]*0.088"], {"hidden_size": 128}),
                ("RNN", ["f32[64,1,128]", "=f32[1,128,128]*0.088", "=f32[1,128,128]*0.088", "=f32[1,256]*0.088"], {"hidden_size": 128})]


def images():
    pools = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    yield from [("MaxPool", [IMAGE], pools), ("AveragePool", [IMAGE], pools), ("LpPool", [IMAGE], pools), ("MaxPool", [IMAGE], {**pools, "outputs": 2}),
                ("MaxPool", ["u8[1,64,56,56]<256"], pools), ("GlobalAveragePool", [IMAGE], {}), ("GlobalMaxPool", [IMAGE], {}), ("GlobalLpPool", [IMAGE], {}),
                ("MaxUnpool", ["f32[1,16,28,28]", "i64[1,16,28,28]<3000"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
                ("MaxRoiPool", ["f32[1,64,50,50]", "f32[100,5]:0,3,4,30,40"], {"pooled_shape": [7, 7]}),
                ("RoiAlign", ["f32[1,64,50,50]", "f32[100,4]:3,4,30,40", "i64[100]<1"], {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
                ("Resize", ["f32[1,32,64,64]", "", "=f32[4]:1,1,2,2"], {"mode": "linear"}), ("Resize", ["f32[1,32,64,64]", "", "=f32[4]:1,1,2,2"], {"mode": "nearest"}),
                ("Resize", ["f32[1,16,64,64]", "", "=f32[4]:1,1,2,2"], {"mode": "cubic"}), ("Resize", ["u8[1,3,224,224]<256", "", "=f32[4]:1,1,2,2"], {"mode": "nearest"}),
                ("GridSample", ["f32[1,64,56,56]", "f32[1,56,56,2]"], {}), ("GridSample", ["f32[1,64,56,56]", "f32[1,56,56,2]"], {"mode": "cubic", "opset": 20}),
                ("GridSample", ["f32[1,8,16,32,32]", "f32[1,16,32,32,3]"], {"opset": 20}), ("AffineGrid", ["f32[1,2,3]", "=i64[4]:1,3,112,112"], {"opset": 20}),
                ("Col2Im", ["f32[1,288,3136]", "=i64[2]:56,56", "=i64[2]:3,3"], {"pads": [1, 1, 1, 1]}),
                ("NonMaxSuppression", ["f32[1,1000,4]>0", "f32[1,4,1000]>0", "=i64[1]:100", "=f32[1]:0.5", "=f32[1]:0.1"], {}),
                ("NonMaxSuppression", ["f32[1,8400,4]>0", "f32[1,1,8400]>0", "=i64[1]:300", "=f32[1]:0.6", "=f32[1]:1.5"], {})]


def signals():
    yield from [("DFT", ["f32[8,1024,1]", "", "=i64:1"], {"opset": 20}), ("DFT", ["f32[8,1000,2]", "", "=i64:1"], {"opset": 20}),
                ("DFT", ["f32[1,400,80,2]", "", "=i64:1"], {"opset": 20, "inverse": 1}),
                ("STFT", ["f32[1,16000,1]", "=i64:160", "=f32[400]>0", "=i64:400"], {}), ("STFT", ["f32[1,16384,1]", "=i64:256", "=f32[512]>0", "=i64:512"], {}),
                ("MelWeightMatrix", ["i64:80", "i64:400", "i64:16000", "f32:0", "f32:8000"], {}),
                ("HannWindow", ["i64:400"], {}), ("HammingWindow", ["i64:400"], {}), ("BlackmanWindow", ["i64:400"], {})]


def learners():
    table = "f32[1000,32]"
    for rows in (1, 1000):
        x = f"f32[{rows},32]"
        yield from [("ml:Scaler", [x], {"offset": [0.5] * 32, "scale": [2.0] * 32}), ("ml:Normalizer", [x], {"norm": "L2"}), ("ml:Normalizer", [x], {"norm": "L1"}),
                    ("ml:Normalizer", [x + ">0"], {"norm": "MAX"}), ("ml:Binarizer", [x], {"threshold": 0.5}),
                    ("ml:Imputer", [x], {"imputed_value_floats": [1.0] * 32, "replaced_value_float": 0.0}),
                    ("ml:LinearRegressor", [x], {"coefficients": [0.25] * 64, "intercepts": [0.5, 1.0], "targets": 2}),
                    ("ml:LinearClassifier", [x], {"coefficients": [0.25, -0.5, 1.0] * 32, "intercepts": [0.5, 1.0, 0.0], "classlabels_ints": [3, 4, 9],
                                                  "post_transform": "SOFTMAX", "outputs": 2}),
                    ("ml:OneHotEncoder", [f"i64[{rows},4]<20"], {"cats_int64s": list(range(20))}),
                    ("ml:LabelEncoder", [f"i64[{rows}]<20"], {"keys_int64s": list(range(20)), "values_floats": [0.5 * i for i in range(20)]}),
                    ("ml:LabelEncoder", [f"i64[{rows}]<20"], {"keys_int64s": list(range(20)), "values_int64s": list(range(5, 25))}),
                    ("ml:ArrayFeatureExtractor", [x, "=i64[3]:4,1,9"], {}), ("ml:FeatureVectorizer", [x, x], {"inputdimensions": [32, 32]})]
        yield from (("model:" + name, [x], {}) for name in ("forest", "forest_regressor", "boosted", "boosted_regressor", "lightgbm", "svm", "svm_regressor",
                                                             "svm_probability", "pipeline", "logistic"))
    yield "ml:Scaler", [table.replace("f32", "i64") + "<50"], {"offset": [0.5], "scale": [2.0]}


def microsoft():
    heads = {"num_heads": 12}
    cache = ["f32[1,4,127,64]", "f32[1,4,127,64]"]
    step = ["f32[1,1,768]", "f32[1,1,256]", "f32[1,1,256]", *cache, "=i32[1]:127", "=i32:128"]
    prompt = ["f32[1,128,768]", "f32[1,128,256]", "f32[1,128,256]", "f32[1,4,0,64]", "f32[1,4,0,64]", "=i32[1]:127", "=i32:128"]
    group = {"num_heads": 12, "kv_num_heads": 4, "outputs": 3}
    turned = ["=f32[512,32]", "=f32[512,32]"]
    yield from [("ms:Attention", [TOKENS, "=f32[768,2304]", "=f32[2304]"], heads), ("ms:Attention", [TOKENS, "=f32[768,2304]", "=f32[2304]", "i32[1,128]:1"], heads),
                ("ms:Attention", [TOKENS, "=f32[768,2304]", "=f32[2304]"], {**heads, "unidirectional": 1}),
                ("ms:MultiHeadAttention", [TOKENS] * 3, heads), ("ms:MultiHeadAttention", [TOKENS, TOKENS, TOKENS, "=f32[2304]", "", "f32[1,12,128,128]"], heads),
                ("ms:GroupQueryAttention", step, group), ("ms:GroupQueryAttention", prompt, group),
                ("ms:GroupQueryAttention", step + turned, {**group, "do_rotary": 1}), ("ms:GroupQueryAttention", prompt, {**group, "local_window_size": 32}),
                ("ms:GroupQueryAttention", prompt, {**group, "softcap": 30.0}), ("ms:GroupQueryAttention", step, {**group, "softcap": 30.0, "local_window_size": 64}),
                ("ms:RotaryEmbedding", [TOKENS, "i64[1]:0", "=f32[512,32]", "=f32[512,32]"], heads),
                ("ms:SkipLayerNormalization", [TOKENS, TOKENS, *NORM, "=f32[768]"], {}), ("ms:SkipSimplifiedLayerNormalization", [TOKENS, TOKENS, "=f32[768]"], {}),
                ("ms:EmbedLayerNormalization", ["i32[1,128]<30522", "i32[1,128]<2", "=f32[30522,768]", "=f32[512,768]", "=f32[2,768]", *NORM], {"outputs": 2}),
                ("ms:BiasGelu", ["f32[1,128,3072]", "=f32[3072]"], {}), ("ms:FastGelu", ["f32[1,128,3072]", "=f32[3072]"], {}), ("ms:Gelu", ["f32[1,128,3072]"], {}),
                ("ms:QuickGelu", ["f32[1,128,3072]"], {}), ("ms:Inverse", ["f32[16,32,32]"], {}), ("ms:FusedMatMul", ["f32[12,128,64]", "f32[12,128,64]"], {"transB": 1, "alpha": 0.125}),
                ("ms:FusedGemm", [ROWS, "=f32[768,768]", "=f32[768]"], {"activation": "Relu"}), ("ms:FusedConv", [IMAGE, "=f32[64,64,3,3]", "=f32[64]"], {"activation": "Relu"}),
                ("ms:MatMulNBits", ["f32[1,768]", "=u8[768,24,16]<256", "=f32[18432]>0"], {"K": 768, "N": 768, "bits": 4, "block_size": 32}),
                ("ms:MatMulIntegerToFloat", ["u8[128,768]<256", "=i8[768,768]<99", "=f32:0.1", "=f32:0.02"], {}),
                ("ms:DynamicQuantizeMatMul", [ROWS, "=i8[768,768]<99", "=f32:0.02"], {}),
                ("ms:QLinearAdd", ["u8[1,64,56,56]<256", "=f32:0.1", "=u8:120", "u8[1,64,56,56]<256", "=f32:0.2", "=u8:100", "=f32:0.25", "=u8:110"], {}),
                ("ms:QLinearMul", ["u8[1,64,56,56]<256", "=f32:0.1", "=u8:120", "u8[1,64,56,56]<256", "=f32:0.2", "=u8:100", "=f32:0.25", "=u8:110"], {}),
                ("ms:QLinearSigmoid", ["u8[1,64,56,56]<256", "=f32:0.05", "=u8:128", "=f32:0.00390625", "=u8:0"], {}),
                ("ms:QLinearLeakyRelu", ["u8[1,64,56,56]<256", "=f32:0.05", "=u8:128", "=f32:0.05", "=u8:100"], {"alpha": 0.1}),
                ("ms:QLinearAveragePool", ["u8[1,64,56,56]<256", "=f32:0.1", "=u8:120", "=f32:0.12", "=u8:118"], {"kernel_shape": [3, 3], "strides": [2, 2]}),
                ("ms:QLinearGlobalAveragePool", ["u8[1,64,56,56]<256", "=f32:0.1", "=u8:120", "=f32:0.05", "=u8:118"], {}),
                ("ms:QLinearConcat", ["=f32:0.2", "=u8:120", "u8[1,64,56,56]<256", "=f32:0.1", "=u8:110", "u8[1,64,56,56]<256", "=f32:0.3", "=u8:130"], {"axis": 1}),
                ("ms:QLinearSoftmax", ["u8[128,1000]<256", "=f32:0.1", "=u8:120", "=f32:0.00390625", "=u8:0"], {"node_opset": 13, "axis": -1})]


def all_rows():
    for rows in (pointwise, reductions, movement, products, images, signals, learners, microsoft):
        yield from rows()
