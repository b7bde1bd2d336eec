# SPDX-License-Identifier: Apache-2.0
"""Quickly deployable plugins: operators from decorated functions, on a processor.

    @register("mine::add")                      describes outputs by inputs: register(inp0: TensorDesc, delta: int) -> TensorDesc
    @impl("mine::add")                          computes on memory: impl(inp0, delta, outputs, stream)
    network.add_plugin(op.mine.add(x, delta=2))

What lies behind stands in _plugins/quick.py. Kernels that are compiled ahead (aot_impl) are kept and not used.
"""

from .._base import surface as _surface

if _surface.MAJOR == "8":
    raise ImportError("tensorrt 8.6 has no quickly deployable plugins")

from .._plugins.quick import aot_impl, autotune, impl, op, register  # noqa: E402
from .._plugins.quick_tensors import (AutoTuneCombination, Shape, ShapeExpr, ShapeExprs, SizeTensorDesc, SizeTensorShapeExpr, SymExprs,  # noqa: E402
                                      SymInt8, SymInt16, SymInt32, SymIntExprs, Tensor, TensorDesc, cdiv, from_shape_expr, max, min, size_tensor)
from .._plugins.classes import KernelLaunchParams  # noqa: E402

__all__ = ["AutoTuneCombination", "KernelLaunchParams", "Shape", "ShapeExpr", "ShapeExprs", "SizeTensorDesc", "SizeTensorShapeExpr", "SymExprs", "SymInt16",
           "SymInt32", "SymInt8", "SymIntExprs", "Tensor", "TensorDesc", "aot_impl", "autotune", "cdiv", "from_shape_expr", "impl", "max", "min", "op",
           "register", "size_tensor"]
