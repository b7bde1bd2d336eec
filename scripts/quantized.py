# SPDX-License-Identifier: Apache-2.0
"""Models of the zoo as ONNX Runtime's own quantiser writes them."""

import pathlib
import re
import tempfile

import materialise
import numpy as np
import onnx
import zoo

# Without VNNI ONNX Runtime's sums of 8-bit products saturate at 16 bits: weights of 7 bits keep them exact there.
SEVEN_BITS = not re.search(r"\b(avx512_vnni|avx_vnni)\b", pathlib.Path("/proc/cpuinfo").read_text())
# Pairs of QuantizeLinear and DequantizeLinear, and quantised operators, around unsigned or symmetric activations; matmuls whose
# activations are quantised as they run. Weights of a filter have a scale of their own, but for "qoperator".
KINDS = ["qdq", "qdq_symmetric", "qoperator", "qoperator_symmetric", "dynamic"]


def draws(name, count=3):
    """A few random inputs, as all inputs of the zoo are."""
    random = np.random.default_rng(5)

    def drawn(value):
        if value.vocabulary:
            return random.integers(0, value.vocabulary, value.shape(), value.dtype)
        return random.standard_normal(value.shape(), np.float32).astype(value.dtype)

    return [{value.name: drawn(value) for value in zoo.inputs(name)} for _ in range(count)]


def prepare(source, target):
    """The model in floats as the quantiser takes it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(str(source), str(target), skip_symbolic_shape=True)
    # Types of weights that were transposed on the way are those of before, which quantize_dynamic refuses.
    model = onnx.load(target)
    weights = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.value_info if value.name not in weights]
    del model.graph.value_info[:]
    model.graph.value_info.extend(kept)
    onnx.save(model, target)
    return target


def quantize(name, prepared, kind, target):
    """`prepared` of the zoo's model `name` becomes `target`."""
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = iter(draws(name))

        def get_next(self):
            return next(self.feeds, None)

    types = quantization.QuantType
    if kind == "dynamic":
        quantization.quantize_dynamic(str(prepared), str(target), weight_type=types.QUInt8, reduce_range=SEVEN_BITS)
        return target
    symmetric, operators = kind.endswith("_symmetric"), kind.startswith("qoperator")
    quantization.quantize_static(str(prepared), str(target), Reader(), per_channel=kind != "qoperator", reduce_range=SEVEN_BITS,
                                 quant_format=quantization.QuantFormat.QOperator if operators else quantization.QuantFormat.QDQ,
                                 activation_type=types.QInt8 if symmetric else types.QUInt8, weight_type=types.QInt8,
                                 extra_options={"ActivationSymmetric": True} if symmetric else None)
    return target


def quantized(name, kind, folder):
    """The file NAME.KIND.onnx in the folder, made when it is not there."""
    target = pathlib.Path(folder) / f"{name}.{kind}.onnx"
    if not target.exists():
        source = materialise.materialise(name, folder)
        with tempfile.TemporaryDirectory(dir=folder) as own:  # another process may make the same
            prepared = prepare(source, pathlib.Path(own) / "prepared.onnx")
            quantize(name, prepared, kind, pathlib.Path(own) / target.name).rename(target)
    return target
