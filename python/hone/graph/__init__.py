# SPDX-License-Identifier: Apache-2.0
"""ONNX models as graphs of Python objects, made, edited and written: the names of onnx_graphsurgeon, so that one import line moves a script.

    import hone.graph as gs

    graph = gs.import_onnx("model.onnx")                   # a path, a file's bytes or an onnx.ModelProto
    for node in graph.nodes:
        if node.op == "Relu":
            node.op, node.attrs = "LeakyRelu", {"alpha": 0.1}
    graph.fold_constants().cleanup().toposort()
    gs.save(graph, "new.onnx")                             # or gs.export_onnx(graph), an onnx.ModelProto

Nodes and tensors are plain objects of Python; models are read and written in one call each. What a program does not touch goes from file to
file as it stands: documentation, metadata, unknown fields. Weights are read when their values are asked for, those in other files stay
there. The onnx package is needed for onnx.ModelProto alone. docs/graph-api.md says what differs from onnx_graphsurgeon.
"""

from .base import GraphError, OnnxGraphSurgeonException
from .functions import Function
from .graphs import Graph
from .nodes import Node
from .patterns import GraphPattern, PatternMapping
from .reading import import_onnx
from .tensors import Constant, LazyValues, SparseValues, Tensor, Variable
from .writing import export_bytes, export_onnx, save

__all__ = ["Constant", "Function", "Graph", "GraphError", "GraphPattern", "LazyValues", "Node", "OnnxGraphSurgeonException", "PatternMapping",
           "SparseValues", "Tensor", "Variable", "export_bytes", "export_onnx", "import_onnx", "save"]
