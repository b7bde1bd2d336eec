# SPDX-License-Identifier: Apache-2.0
"""The classes of layers: which parameters each kind has. What they mean in ONNX's words stands in _lowering/."""

import numbers

from .layers import ILayer, dims, enum, flag, hw, maybe_numbers, number, parameter, permutation, real, weights, words


def _padding():
    """padding_nd says both sides."""

    def set_(self, value):
        self.pre_padding = value
        self.post_padding = value

    return property(lambda self: self.pre_padding, set_)


def _convolution(name, doc):
    """Convolution and deconvolution have the same parameters."""
    return type(name, (ILayer,), {
        "__slots__": (), "__doc__": doc,
        "kernel_size_nd": dims("kernel_size"), "stride_nd": dims("stride"), "dilation_nd": dims("dilation"),
        "padding_nd": _padding(), "pre_padding": dims("pre_padding"), "post_padding": dims("post_padding"),
        "padding_mode": enum("padding_mode", "PaddingMode", "EXPLICIT_ROUND_DOWN"),
        "num_groups": number("num_groups", 1), "num_output_maps": number("num_output_maps"),
        "kernel": weights("kernel", "KERNEL"), "bias": weights("bias", "BIAS"),
        "kernel_size": hw("kernel_size"), "stride": hw("stride"), "dilation": hw("dilation"),
        "padding": property(lambda self: hw("pre_padding").fget(self), lambda self, value: _padding().fset(self, value))})


IConvolutionLayer = _convolution("IConvolutionLayer", "A convolution; kernels are K, C / groups, then space.")
IDeconvolutionLayer = _convolution("IDeconvolutionLayer", "A transposed convolution; kernels are C, K / groups, then space.")


class IFullyConnectedLayer(ILayer):
    """Of 8.x: all values behind the third last axis, times a matrix."""

    __slots__ = ()
    num_output_channels = number("num_output_channels")
    kernel, bias = weights("kernel", "KERNEL"), weights("bias", "BIAS")


class IPoolingLayer(ILayer):
    """The largest, the mean or both of windows."""

    __slots__ = ()
    type = enum("operation", "PoolingType", "MAX")
    window_size_nd, stride_nd = dims("window_size"), dims("stride")
    padding_nd, pre_padding, post_padding = _padding(), dims("pre_padding"), dims("post_padding")
    padding_mode = enum("padding_mode", "PaddingMode", "EXPLICIT_ROUND_DOWN")
    blend_factor = real("blend_factor")
    average_count_excludes_padding = flag("average_count_excludes_padding", True)
    window_size, stride = hw("window_size"), hw("stride")
    padding = property(lambda self: hw("pre_padding").fget(self), lambda self, value: _padding().fset(self, value))


class IActivationLayer(ILayer):
    """A function of each value."""

    __slots__ = ()
    type = enum("operation", "ActivationType", "RELU")
    alpha, beta = real("alpha"), real("beta")


class IElementWiseLayer(ILayer):
    """An operation on two tensors of one rank."""

    __slots__ = ()
    op = enum("op", "ElementWiseOperation", "SUM")


class IUnaryLayer(ILayer):
    """An operation on each value."""

    __slots__ = ()
    op = enum("op", "UnaryOperation", "EXP")


class IMatrixMultiplyLayer(ILayer):
    """Products of matrices, transposed or vectors."""

    __slots__ = ()
    op0, op1 = enum("op0", "MatrixOperation", "NONE"), enum("op1", "MatrixOperation", "NONE")


class IConstantLayer(ILayer):
    """Numbers."""

    __slots__ = ()
    weights = weights("weights", "CONSTANT")
    shape = dims("shape")


class IShuffleLayer(ILayer):
    """Transposes, gives other sizes, transposes."""

    __slots__ = ()
    first_transpose, second_transpose = permutation("first_transpose"), permutation("second_transpose")
    zero_is_placeholder = flag("zero_is_placeholder", True)
    reshape_dims = dims("reshape_dims")


class ISliceLayer(ILayer):
    """A part of a tensor, or more than it."""

    __slots__ = ()
    start, shape, stride, axes = dims("start"), dims("shape"), dims("stride"), dims("axes")
    mode = enum("mode", "SampleMode", "STRICT_BOUNDS")


class IIdentityLayer(ILayer):
    """The same values, of another type if the output has one."""

    __slots__ = ()


class ICastLayer(ILayer):
    """The values in another type."""

    __slots__ = ()
    to_type = enum("to_type", "DataType", "FLOAT")


class IFillLayer(ILayer):
    """Numbers by rule or at random."""

    __slots__ = ()
    shape = dims("shape")
    operation = enum("operation", "FillOperation", "LINSPACE")
    to_type = enum("to_type", "DataType", "FLOAT")
    # what is no number, a list for instance, changes nothing
    alpha = parameter("alpha", lambda value: value if isinstance(value, numbers.Real) else 0.0, default=0.0)
    beta = parameter("beta", lambda value: value if isinstance(value, numbers.Real) else 1.0, default=1.0)

    def is_alpha_beta_int64(self):
        return isinstance(self.alpha, int) and isinstance(self.beta, int)


class IConcatenationLayer(ILayer):
    """Tensors one behind the other along an axis."""

    __slots__ = ()
    axis = number("axis")


class ISoftMaxLayer(ILayer):
    """Softmax along one axis, a bit."""

    __slots__ = ()
    axes = number("axes")


class IReduceLayer(ILayer):
    """A sum, product, mean or extreme along axes, bits."""

    __slots__ = ()
    op = enum("op", "ReduceOperation", "SUM")
    axes, keep_dims = number("axes"), flag("keep_dims")


class ITopKLayer(ILayer):
    """The k largest or smallest along an axis, and where they are."""

    __slots__ = ()
    op = enum("op", "TopKOperation", "MAX")
    k, axes = number("k"), number("axes")
    indices_type = enum("indices_type", "DataType", "INT32")


class IGatherLayer(ILayer):
    """Values at indices."""

    __slots__ = ()
    axis, num_elementwise_dims = number("axis"), number("num_elementwise_dims")
    mode = enum("mode", "GatherMode", "DEFAULT")


class IScatterLayer(ILayer):
    """Other values at indices."""

    __slots__ = ()
    axis, mode = number("axis"), enum("mode", "ScatterMode", "ELEMENT")


class IScaleLayer(ILayer):
    """(x * scale + shift) ** power."""

    __slots__ = ()
    mode = enum("mode", "ScaleMode", "UNIFORM")
    shift, scale, power = weights("shift", "SHIFT"), weights("scale", "SCALE"), weights("power", "POWER")
    channel_axis = number("channel_axis", 1)


class IResizeLayer(ILayer):
    """An image of another size."""

    __slots__ = ()
    shape = dims("shape")
    scales = maybe_numbers("scales")
    resize_mode = enum("resize_mode", "InterpolationMode", "NEAREST")
    coordinate_transformation = enum("coordinate_transformation", "ResizeCoordinateTransformation", "ASYMMETRIC")
    selector_for_single_pixel = enum("selector_for_single_pixel", "ResizeSelector", "FORMULA")
    nearest_rounding = enum("nearest_rounding", "ResizeRoundMode", "FLOOR")
    exclude_outside = flag("exclude_outside")
    cubic_coeff = real("cubic_coeff", -0.75)


class IShapeLayer(ILayer):
    """The sizes of a tensor."""

    __slots__ = ()


class ISelectLayer(ILayer):
    """One tensor's values or the other's."""

    __slots__ = ()


class INonZeroLayer(ILayer):
    """Where values are not 0."""

    __slots__ = ()
    indices_type = enum("indices_type", "DataType", "INT32")


class IOneHotLayer(ILayer):
    """Rows of which one entry is on."""

    __slots__ = ()
    axis = number("axis")


class IQuantizeLayer(ILayer):
    """Integers for reals."""

    __slots__ = ()
    axis, to_type = number("axis", -1), enum("to_type", "DataType", "INT8")
    block_shape = dims("block_shape")


class IDequantizeLayer(ILayer):
    """Reals for integers."""

    __slots__ = ()
    axis, to_type = number("axis", -1), enum("to_type", "DataType", "FLOAT")
    block_shape = dims("block_shape")


class IDynamicQuantizeLayer(ILayer):
    """Integers for reals, with scales of blocks made as it runs."""

    __slots__ = ()
    axis, block_size = number("axis", -1), number("block_size", 16)
    to_type, scale_type = enum("to_type", "DataType", "FP4"), enum("scale_type", "DataType", "FP8")
    block_shape = dims("block_shape")


class INormalizationLayer(ILayer):
    """Mean 0 and variance 1 along axes or in groups, then scale and bias."""

    __slots__ = ()
    epsilon, axes, num_groups = real("epsilon", 1e-5), number("axes"), number("num_groups", 1)
    compute_precision = enum("compute_precision", "DataType", "FLOAT")
    is_v2 = parameter("is_v2", bool, default=False)


class IParametricReLULayer(ILayer):
    """x, or x times a slope where it is below 0."""

    __slots__ = ()


class ILRNLayer(ILayer):
    """x divided by what its neighbours in other channels say."""

    __slots__ = ()
    window_size, alpha, beta, k = number("window_size"), real("alpha"), real("beta"), real("k")


class IPaddingLayer(ILayer):
    """Zeros around an image, or less of it."""

    __slots__ = ()
    pre_padding_nd, post_padding_nd = dims("pre_padding"), dims("post_padding")
    pre_padding, post_padding = hw("pre_padding"), hw("post_padding")


class IEinsumLayer(ILayer):
    """A sum of products, by its indices."""

    __slots__ = ()
    equation = words("equation")


class IGridSampleLayer(ILayer):
    """Values of an image at points."""

    __slots__ = ()
    interpolation_mode = enum("interpolation_mode", "InterpolationMode", "LINEAR")
    align_corners = flag("align_corners")
    sample_mode = enum("sample_mode", "SampleMode", "FILL")


class INMSLayer(ILayer):
    """The best boxes that do not overlap."""

    __slots__ = ()
    bounding_box_format = enum("bounding_box_format", "BoundingBoxFormat", "CORNER_PAIRS")
    topk_box_limit = number("topk_box_limit", 2147483647)
    indices_type = enum("indices_type", "DataType", "INT32")


class IReverseSequenceLayer(ILayer):
    """The beginnings of sequences, backwards."""

    __slots__ = ()
    batch_axis, sequence_axis = number("batch_axis", 1), number("sequence_axis")


class ICumulativeLayer(ILayer):
    """Sums of all values before."""

    __slots__ = ()
    op = enum("op", "CumulativeOperation", "SUM")
    exclusive, reverse = flag("exclusive"), flag("reverse")


class ISqueezeLayer(ILayer):
    """Without axes of size 1."""

    __slots__ = ()


class IUnsqueezeLayer(ILayer):
    """With axes of size 1."""

    __slots__ = ()


class IAssertionLayer(ILayer):
    """What has to be true."""

    __slots__ = ()
    message = words("message")


class IRaggedSoftMaxLayer(ILayer):
    """Softmax of the first so many values."""

    __slots__ = ()


class IRotaryEmbeddingLayer(ILayer):
    """Pairs of values, rotated by their position."""

    __slots__ = ()
    interleaved, rotary_embedding_dim = flag("interleaved"), number("rotary_embedding_dim")


class IKVCacheUpdateLayer(ILayer):
    """New keys or values written into a cache."""

    __slots__ = ()
    cache_mode = enum("cache_mode", "KVCacheMode", "LINEAR")
    update_form = parameter("update_form", lambda value: value)
    update_lengths = parameter("update_lengths", lambda value: value)


class IMoELayer(ILayer):
    """A mixture of experts: each token goes through those that it is given to."""

    __slots__ = ()
    activation_type = enum("activation_type", "MoEActType", "NONE")
    quantization_to_type = enum("quantization_to_type", "DataType", "FLOAT")
    quantization_block_shape = dims("quantization_block_shape")
    dyn_q_output_scale_type = enum("dyn_q_output_scale_type", "DataType", "FLOAT")
    swiglu_param_limit, swiglu_param_alpha, swiglu_param_beta = real("limit"), real("swiglu_alpha", 1.0), real("swiglu_beta")

    def set_gated_weights(self, fc_gate_weights, fc_up_weights, fc_down_weights, activation_type):
        self._read(3, fc_gate_weights, fc_up_weights, fc_down_weights)
        self.activation_type = activation_type

    def set_gated_biases(self, fc_gate_biases, fc_up_biases, fc_down_biases):
        self._read(6, fc_gate_biases, fc_up_biases, fc_down_biases)

    def set_quantization_static(self, fc_down_activation_scale, data_type):
        self._read(9, fc_down_activation_scale)
        self.quantization_to_type, self.quantization_block_shape = data_type, ()

    def set_quantization_dynamic_dbl_q(self, fc_down_activation_dbl_q_scale, data_type, block_shape, dyn_q_output_scale_type):
        self._read(9, fc_down_activation_dbl_q_scale)
        self.quantization_to_type, self.quantization_block_shape = data_type, block_shape
        self.dyn_q_output_scale_type = dyn_q_output_scale_type

    def set_swiglu_params(self, limit, alpha, beta):
        self.swiglu_param_limit, self.swiglu_param_alpha, self.swiglu_param_beta = limit, alpha, beta


class IDistCollectiveLayer(ILayer):
    """An exchange between devices; engines of Hone run on one."""

    __slots__ = ()


class IPluginV2Layer(ILayer):
    """An operator of the program's or of a library's."""

    __slots__ = ()
    plugin = property(lambda self: self._record.known().get("plugin"))


class IPluginV3Layer(ILayer):
    """An operator of the program's or of a library's."""

    __slots__ = ()
    plugin = property(lambda self: self._record.known().get("plugin"))


class IRNNv2Layer(ILayer):
    """Of 8.x: layers of a recurrent network, with a matrix and a bias for each gate."""

    __slots__ = ()
    num_layers, hidden_size, max_seq_length = (property(lambda self, name=name: self._record.known().get(name, 0))
                                               for name in ("num_layers", "hidden_size", "max_seq_length"))
    data_length = property(lambda self: self.get_input(0).shape[-1], doc="Values of a step.")
    op = enum("op", "RNNOperation", "RELU")
    input_mode, direction = enum("input_mode", "RNNInputMode", "LINEAR"), enum("direction", "RNNDirection", "UNIDIRECTION")
    seq_lengths = property(lambda self: self.get_input(1), lambda self, tensor: self.set_input(1, tensor), doc="Steps of each sequence.")
    hidden_state = property(lambda self: self.get_input(2), lambda self, tensor: self.set_input(2, tensor), doc="The first ones.")
    cell_state = property(lambda self: self.get_input(3), lambda self, tensor: self.set_input(3, tensor), doc="The first ones.")

    def set_weights_for_gate(self, layer_index, gate, is_w, weights):
        self._hold(f"W{'X' if is_w else 'H'}{int(layer_index)}{gate.name}", weights)

    def get_weights_for_gate(self, layer_index, gate, is_w):
        return self._held(f"W{'X' if is_w else 'H'}{int(layer_index)}{gate.name}")

    def set_bias_for_gate(self, layer_index, gate, is_w, bias):
        self._hold(f"B{'X' if is_w else 'H'}{int(layer_index)}{gate.name}", bias)

    def get_bias_for_gate(self, layer_index, gate, is_w):
        return self._held(f"B{'X' if is_w else 'H'}{int(layer_index)}{gate.name}")


# The class of each kind; kinds of the boundaries of loops, conditionals and attention are in _loops.py.
CLASSES = {
    "CONVOLUTION": IConvolutionLayer, "FULLY_CONNECTED": IFullyConnectedLayer, "CAST": ICastLayer, "ACTIVATION": IActivationLayer,
    "POOLING": IPoolingLayer, "LRN": ILRNLayer, "SCALE": IScaleLayer, "SOFTMAX": ISoftMaxLayer, "DECONVOLUTION": IDeconvolutionLayer,
    "CONCATENATION": IConcatenationLayer, "ELEMENTWISE": IElementWiseLayer, "UNARY": IUnaryLayer, "PADDING": IPaddingLayer,
    "SHUFFLE": IShuffleLayer, "REDUCE": IReduceLayer, "TOPK": ITopKLayer, "GATHER": IGatherLayer,
    "MATRIX_MULTIPLY": IMatrixMultiplyLayer, "RAGGED_SOFTMAX": IRaggedSoftMaxLayer, "CONSTANT": IConstantLayer,
    "IDENTITY": IIdentityLayer, "PLUGIN_V2": IPluginV2Layer, "SLICE": ISliceLayer, "SHAPE": IShapeLayer,
    "PARAMETRIC_RELU": IParametricReLULayer, "RESIZE": IResizeLayer, "SELECT": ISelectLayer, "FILL": IFillLayer,
    "QUANTIZE": IQuantizeLayer, "DEQUANTIZE": IDequantizeLayer, "SCATTER": IScatterLayer, "EINSUM": IEinsumLayer,
    "ASSERTION": IAssertionLayer, "ONE_HOT": IOneHotLayer, "NON_ZERO": INonZeroLayer, "GRID_SAMPLE": IGridSampleLayer, "NMS": INMSLayer,
    "REVERSE_SEQUENCE": IReverseSequenceLayer, "NORMALIZATION": INormalizationLayer, "PLUGIN_V3": IPluginV3Layer,
    "SQUEEZE": ISqueezeLayer, "UNSQUEEZE": IUnsqueezeLayer, "CUMULATIVE": ICumulativeLayer, "DYNAMIC_QUANTIZE": IDynamicQuantizeLayer,
    "ROTARY_EMBEDDING": IRotaryEmbeddingLayer, "KV_CACHE_UPDATE": IKVCacheUpdateLayer, "MOE": IMoELayer,
    "DIST_COLLECTIVE": IDistCollectiveLayer, "RNN_V2": IRNNv2Layer,
}
