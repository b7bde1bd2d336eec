# SPDX-License-Identifier: Apache-2.0
"""Types by their names: TensorRT's, ONNX's and Hone's. Where TensorRT has none of a type that ONNX has, it shows the nearest one."""

from . import enums, onnx

DataType = enums.ALL["DataType"]

_ELEMENTS = {"FLOAT": onnx.FLOAT, "HALF": onnx.FLOAT16, "INT8": onnx.INT8, "INT32": onnx.INT32, "BOOL": onnx.BOOL, "UINT8": onnx.UINT8,
             "FP8": onnx.FLOAT8E4M3FN, "BF16": onnx.BFLOAT16, "INT64": onnx.INT64, "INT4": onnx.INT4, "FP4": onnx.FLOAT4E2M1,
             "E8M0": onnx.FLOAT8E8M0}
_NAMES = {number: name for name, number in _ELEMENTS.items()}
# What stands for types that TensorRT lacks: inputs and outputs are cast there and back.
_NEAREST = {onnx.DOUBLE: "FLOAT", onnx.INT16: "INT32", onnx.UINT16: "INT32", onnx.UINT32: "INT64", onnx.UINT64: "INT64",
            onnx.FLOAT8E4M3FNUZ: "FP8", onnx.FLOAT8E5M2: "HALF", onnx.FLOAT8E5M2FNUZ: "HALF", onnx.UINT4: "UINT8"}
_OLDER = {"INT64": "INT32", "BF16": "FLOAT"}  # on a surface without the type

# ONNX's number of hone_dtype, in its order.
HONE = (onnx.FLOAT, onnx.FLOAT16, onnx.BFLOAT16, onnx.DOUBLE, onnx.INT8, onnx.UINT8, onnx.INT16, onnx.UINT16, onnx.INT32, onnx.UINT32,
        onnx.INT64, onnx.UINT64, onnx.BOOL, onnx.STRING, onnx.FLOAT8E4M3FN, onnx.FLOAT8E4M3FNUZ, onnx.FLOAT8E5M2,
        onnx.FLOAT8E5M2FNUZ, onnx.FLOAT8E8M0, onnx.FLOAT4E2M1, onnx.INT4, onnx.UINT4, None, None, None, None, None)


def element_of_type(dtype):
    """ONNX's number of TensorRT's type."""
    return _ELEMENTS[dtype.name]


def type_of_element(element):
    """TensorRT's type of ONNX's; None where nothing comes near."""
    name = _NAMES.get(element) or _NEAREST.get(element)
    if name is None:
        return None
    return getattr(DataType, name, None) or getattr(DataType, _OLDER.get(name, "FLOAT"), None)
