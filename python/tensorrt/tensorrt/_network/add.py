# SPDX-License-Identifier: Apache-2.0
"""The network's add_ methods, first half: what images, matrices and values go through."""

import operator

import numpy as np

from .._base import enums
from .._base.values import DimsHW, sizes_of, weights_of
from .tensors import ITensor

DataType = enums.ALL["DataType"]
_PaddingMode, _SampleMode = enums.ALL["PaddingMode"], enums.ALL["SampleMode"]


def member(name, value, what):
    """A member of an enum; TypeError for all else."""
    cls = enums.ALL[name]
    if not isinstance(value, cls):
        raise TypeError(f"{what}: {value!r} is no tensorrt.{name}")
    return value


def _held(**named):
    """{role: Weights} of those that there are."""
    return {role: held for role, held in ((role, weights_of(value)) for role, value in named.items()) if len(held)}


class _AddLayers:
    """Methods of INetworkDefinition."""

    def _convolving(self, kind, input, num_output_maps, kernel_shape, kernel, bias):
        sizes = tuple(sizes_of(kernel_shape, "kernel_shape"))
        ones, zeros = (1,) * len(sizes), (0,) * len(sizes)
        return self._add(kind, [input], weights=_held(KERNEL=kernel, BIAS=bias), num_output_maps=operator.index(num_output_maps),
                         kernel_size=sizes, stride=ones, dilation=ones, pre_padding=zeros, post_padding=zeros, num_groups=1,
                         padding_mode=_PaddingMode.EXPLICIT_ROUND_DOWN)

    def add_convolution_nd(self, input, num_output_maps, kernel_shape, kernel, bias=None):
        return self._convolving("CONVOLUTION", input, num_output_maps, kernel_shape, kernel, bias)

    def add_deconvolution_nd(self, input, num_output_maps, kernel_shape, kernel, bias=None):
        return self._convolving("DECONVOLUTION", input, num_output_maps, kernel_shape, kernel, bias)

    def add_convolution(self, input, num_output_maps, kernel_shape, kernel, bias=None):
        return self._convolving("CONVOLUTION", input, num_output_maps, DimsHW(kernel_shape), kernel, bias)

    def add_deconvolution(self, input, num_output_maps, kernel_shape, kernel, bias=None):
        return self._convolving("DECONVOLUTION", input, num_output_maps, DimsHW(kernel_shape), kernel, bias)

    def add_fully_connected(self, input, num_outputs, kernel, bias=None):
        return self._add("FULLY_CONNECTED", [input], weights=_held(KERNEL=kernel, BIAS=bias), num_output_channels=operator.index(num_outputs))

    def add_pooling_nd(self, input, type, window_size):
        sizes = tuple(sizes_of(window_size, "window_size"))
        zeros = (0,) * len(sizes)
        return self._add("POOLING", [input], operation=member("PoolingType", type, "add_pooling_nd"), window_size=sizes,
                         stride=(1,) * len(sizes), pre_padding=zeros, post_padding=zeros, blend_factor=0.0,
                         average_count_excludes_padding=True, padding_mode=_PaddingMode.EXPLICIT_ROUND_DOWN)

    def add_pooling(self, input, type, window_size):
        return self.add_pooling_nd(input, type, DimsHW(window_size))

    def add_padding_nd(self, input, pre_padding, post_padding):
        return self._add("PADDING", [input], pre_padding=tuple(sizes_of(pre_padding)), post_padding=tuple(sizes_of(post_padding)))

    def add_padding(self, input, pre_padding, post_padding):
        return self.add_padding_nd(input, DimsHW(pre_padding), DimsHW(post_padding))

    def add_rnn_v2(self, input, layer_count, hidden_size, max_seq_length, op):
        op = member("RNNOperation", op, "add_rnn_v2")
        count, hidden, steps = (operator.index(each) for each in (layer_count, hidden_size, max_seq_length))
        if count < 1 or hidden < 1 or steps < 1:
            return self._failed(f"add_rnn_v2: {count} layers of {hidden} values over {steps} steps; each is at least 1")
        return self._add("RNN_V2", [input], 3 if op.name == "LSTM" else 2, op=op, num_layers=count, hidden_size=hidden, max_seq_length=steps)

    def add_activation(self, input, type):
        return self._add("ACTIVATION", [input], operation=member("ActivationType", type, "add_activation"), alpha=0.0, beta=0.0)

    def add_elementwise(self, input1, input2, op):
        return self._add("ELEMENTWISE", [input1, input2], op=member("ElementWiseOperation", op, "add_elementwise"))

    def add_unary(self, input, op):
        return self._add("UNARY", [input], op=member("UnaryOperation", op, "add_unary"))

    def add_matrix_multiply(self, input0, op0, input1, op1):
        return self._add("MATRIX_MULTIPLY", [input0, input1], op0=member("MatrixOperation", op0, "op0"), op1=member("MatrixOperation", op1, "op1"))

    def add_constant(self, shape, weights):
        sizes, held = tuple(sizes_of(shape, "shape")), weights_of(weights)
        if int(np.prod(sizes)) != len(held):
            return self._failed(f"add_constant: the sizes {sizes} need {int(np.prod(sizes))} numbers, the weights have {len(held)}")
        return self._add("CONSTANT", [], weights={"CONSTANT": held}, shape=sizes)

    def add_shuffle(self, input):
        return self._add("SHUFFLE", [input], zero_is_placeholder=True)

    def add_slice(self, input, start, shape, stride):
        return self._add("SLICE", [input], start=tuple(sizes_of(start, "start")), shape=tuple(sizes_of(shape, "shape")),
                         stride=tuple(sizes_of(stride, "stride")), mode=_SampleMode.STRICT_BOUNDS)

    def add_identity(self, input):
        return self._add("IDENTITY", [input])

    def add_cast(self, input, to_type):
        return self._add("CAST", [input], to_type=member("DataType", to_type, "add_cast"))

    def add_fill(self, shape, op, output_type=None):
        return self._add("FILL", [], shape=tuple(sizes_of(shape, "shape")), operation=member("FillOperation", op, "add_fill"),
                         to_type=DataType.FLOAT if output_type is None else member("DataType", output_type, "output_type"))

    def add_concatenation(self, inputs):
        inputs = list(inputs)
        if not inputs:
            return self._failed("add_concatenation: there are no inputs")
        rank = len(inputs[0].shape) if isinstance(inputs[0], ITensor) else 0
        return self._add("CONCATENATION", inputs, axis=max(0, rank - 3))

    def add_softmax(self, input):
        rank = len(input.shape) if isinstance(input, ITensor) else 0
        return self._add("SOFTMAX", [input], axes=1 << max(0, rank - 3))

    def add_reduce(self, input, op, axes, keep_dims):
        return self._add("REDUCE", [input], op=member("ReduceOperation", op, "add_reduce"), axes=operator.index(axes), keep_dims=bool(keep_dims))

    def add_shape(self, input):
        return self._add("SHAPE", [input])

    def add_select(self, condition, then_input, else_input):
        return self._add("SELECT", [condition, then_input, else_input])
