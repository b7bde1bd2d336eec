# SPDX-License-Identifier: Apache-2.0
"""Types by their names: TensorRT's, ONNX's and Hone's. Where TensorRT has none of a type that ONNX has, it shows the nearest one."""

from . import _enums, _onnx

DataType = _enums.ALL["DataType"]

_ELEMENTS = {"FLOAT": _onnx.FLOAT, "HALF": _onnx.FLOAT16, "INT8": _onnx.INT8, "INT32": _onnx.INT32, "BOOL": _onnx.BOOL, "UINT8": _onnx.UINT8,
             "FP8": _onnx.FLOAT8E4M3FN, "BF16": _onnx.BFLOAT16, "INT64": _onnx.INT64, "INT4": _onnx.INT4, "FP4": _onnx.FLOAT4E2M1,
             "E8M0": _onnx.FLOAT8E8M0}
_NAMES = {number: name for name, number in _ELEMENTS.items()}
# What stands for types that TensorRT lacks: inputs and outputs are cast there and back.
_NEAREST = {_onnx.DOUBLE: "FLOAT", _onnx.INT16: "INT32", _onnx.UINT16: "INT32", _onnx.UINT32: "INT64", _onnx.UINT64: "INT64",
            _onnx.FLOAT8E4M3FNUZ: "FP8", _onnx.FLOAT8E5M2: "HALF", _onnx.FLOAT8E5M2FNUZ: "HALF", _onnx.UINT4: "UINT8"}
_OLDER = {"INT64": "INT32", "BF16": "FLOAT"}  # on a surface without the type

# ONNX's number of hone_dtype, in its order.
HONE = (_onnx.FLOAT, _onnx.FLOAT16, _onnx.BFLOAT16, _onnx.DOUBLE, _onnx.INT8, _onnx.UINT8, _onnx.INT16, _onnx.UINT16, _onnx.INT32, _onnx.UINT32,
        _onnx.INT64, _onnx.UINT64, _onnx.BOOL, _onnx.STRING, _onnx.FLOAT8E4M3FN, _onnx.FLOAT8E4M3FNUZ, _onnx.FLOAT8E5M2,
        _onnx.FLOAT8E5M2FNUZ, _onnx.FLOAT8E8M0, _onnx.FLOAT4E2M1, _onnx.INT4, _onnx.UINT4, None, None, None, None, None)


def element_of_type(dtype):
    """ONNX's number of TensorRT's type."""
    return _ELEMENTS[dtype.name]


def type_of_element(element):
    """TensorRT's type of ONNX's; None where nothing comes near."""
    name = _NAMES.get(element) or _NEAREST.get(element)
    if name is None:
        return None
    return getattr(DataType, name, None) or getattr(DataType, _OLDER.get(name, "FLOAT"), None)
