# SPDX-License-Identifier: Apache-2.0
"""What users of GraphSurgeon do, as functions of the module that they import: hone.graph and onnx_graphsurgeon have to come to the same.
Each returns the model that it made, an onnx.ModelProto. The numbers are those of GraphSurgeon's own examples."""

import math
from typing import List

import numpy as np
import onnx

IMAGE = (1, 3, 8, 8)


def f32(name, gs, shape=IMAGE):
    return gs.Variable(name, np.float32, shape)


def filled(shape=IMAGE, value=1.0):
    return np.full(shape, value, np.float32)


def subgraph_model(gs):
    """Y = x0 + (a * x1 + b)."""
    x0, x1, y = (f32(name, gs) for name in ("x0", "x1", "Y"))
    product, total = gs.Variable("mul_out"), gs.Variable("add_out")
    nodes = [gs.Node("Mul", inputs=[gs.Constant("a", filled(value=2)), x1], outputs=[product]),
             gs.Node("Add", inputs=[product, gs.Constant("b", filled(value=3))], outputs=[total]),
             gs.Node("Add", inputs=[x0, total], outputs=[y])]
    return gs.export_onnx(gs.Graph(nodes=nodes, inputs=[x0, x1], outputs=[y], ir_version=10))


def example_01(gs):
    x, y = gs.Variable("X", np.float32, (1, 3, 5, 5)), gs.Variable("Y", np.float32, (1, 3, 1, 1))
    return gs.export_onnx(gs.Graph([gs.Node("GlobalLpPool", attrs={"p": 2}, inputs=[x], outputs=[y])], [x], [y], ir_version=10))


def example_02(gs):
    x, y = f32("X", gs), gs.Variable("Y", np.float32, (1, 5, 6, 6))
    conv = gs.Node("Conv", inputs=[x, gs.Constant("W", values=filled((5, 3, 3, 3)))], outputs=[y])
    return gs.export_onnx(gs.Graph(nodes=[conv], inputs=[x], outputs=[y], ir_version=10))


def example_03(gs):
    graph = gs.import_onnx(subgraph_model(gs))
    tensors = graph.tensors()
    graph.inputs = [tensors["x1"].to_variable(dtype=np.float32)]
    graph.outputs = [tensors["add_out"].to_variable(dtype=np.float32)]
    graph.cleanup()
    return gs.export_onnx(graph)


def example_04(gs):
    graph = gs.import_onnx(subgraph_model(gs))
    total = [node for node in graph.nodes if node.op == "Add"][0]
    total.inputs = [tensor for tensor in total.inputs if tensor.name != "b"]
    total.op = "LeakyRelu"
    total.attrs["alpha"] = 0.02
    out = gs.Variable("identity_out", dtype=np.float32)
    graph.nodes.append(gs.Node(op="Identity", inputs=total.outputs, outputs=[out]))
    graph.outputs = [out]
    graph.cleanup(remove_unused_graph_inputs=True).toposort()
    return onnx.shape_inference.infer_shapes(gs.export_onnx(graph))


def example_05(gs):
    shape = (1, 3)
    given, made = gs.Variable("input", np.float32, shape), gs.Variable("output", np.float32, shape)
    c, e = gs.Variable("c"), gs.Variable("e")
    a, b, d = (gs.Constant(name, filled(shape)) for name in "abd")
    nodes = [gs.Node("Add", inputs=[a, b], outputs=[c]), gs.Node("Add", inputs=[c, d], outputs=[e]), gs.Node("Add", inputs=[given, e], outputs=[made])]
    graph = gs.import_onnx(gs.export_onnx(gs.Graph(nodes, [given], [made], ir_version=10)))
    graph.fold_constants().cleanup()
    return gs.export_onnx(graph)


def example_06(gs):
    x, y = f32("x", gs), gs.Variable("y", dtype=np.float32)
    i0, i1 = gs.Variable("i0"), gs.Variable("i1")
    nodes = [gs.Node("Identity", inputs=[x], outputs=[i0]), gs.Node("FakeNodeToRemove", inputs=[i0], outputs=[i1]),
             gs.Node("Identity", inputs=[i1], outputs=[y])]
    graph = gs.import_onnx(gs.export_onnx(gs.Graph(nodes, [x], [y], ir_version=10)))
    fake, = (node for node in graph.nodes if node.op == "FakeNodeToRemove")
    before = fake.i()
    before.outputs = fake.outputs
    fake.outputs.clear()
    graph.cleanup()
    return onnx.shape_inference.infer_shapes(gs.export_onnx(graph))


def register(gs):
    """Methods of graphs by decorator."""

    def pointwise(op, out):
        def method(self, *tensors):
            return self.layer(op=op, inputs=tensors, outputs=[out])[0]

        method.__name__ = out
        gs.Graph.register()(method)

    for op, out in (("Min", "min_out"), ("Max", "max_out"), ("Identity", "identity_out"), ("Add", "add_out"), ("Mul", "mul_out"), ("Shape", "shape_out"),
                    ("Relu", "relu_out"), ("Div", "div_out"), ("MatMul", "matmul_out"), ("Softmax", "softmax_out")):
        pointwise(op, out)

    @gs.Graph.register(opsets=[11])
    def activation(self, a):
        return self.layer(op="Relu", inputs=[a], outputs=["act_out"])[0]

    @gs.Graph.register(opsets=[1])
    def activation(self, a):  # noqa: F811
        raise NotImplementedError

    @gs.Graph.register()
    def gemm(self, a, b):
        return self.layer(op="Gemm", inputs=[a, b], outputs=["gemm_out"], attrs={"transA": 0, "transB": 1})[0]


def example_07(gs):
    register(gs)
    graph = gs.Graph(opset=11, ir_version=10)
    x = gs.Variable(name="X", shape=(8, 8), dtype=np.float32)
    graph.inputs = [x]
    dense = graph.activation(graph.add_out(graph.gemm(filled((8, 8)), x), filled((8, 8), 0.5)))
    c = gs.Constant(name="C", values=filled((8, 8)))
    graph.outputs = [graph.add_out(graph.mul_out(dense, c), filled((8, 8)))]
    for out in graph.outputs:
        out.dtype = np.float32
    return onnx.shape_inference.infer_shapes(gs.export_onnx(graph))


def example_08(gs):
    register(gs)

    @gs.Graph.register()
    def replace_with_clip(self, inputs, outputs):
        for tensor in inputs:
            tensor.outputs.clear()
        for tensor in outputs:
            tensor.inputs.clear()
        return self.layer(op="Clip", inputs=inputs, outputs=outputs)

    graph = gs.Graph(ir_version=10)
    graph.inputs = [gs.Variable("input", shape=(4, 4), dtype=np.float32)]
    inner = graph.identity_out(graph.inputs[0])
    graph.outputs = [graph.identity_out(graph.max_out(graph.min_out(inner, np.array(6, np.float32)), np.array(0, np.float32)))]
    graph.outputs[0].to_variable(dtype=np.float32, shape=(4, 4))
    graph = gs.import_onnx(gs.export_onnx(graph))
    tensors = graph.tensors()
    # layer() numbers every name that it makes, of constants and nodes, too.
    graph.replace_with_clip([tensors[name] for name in ("identity_out_0", "onnx_graphsurgeon_constant_5", "onnx_graphsurgeon_constant_2")],
                            [tensors["max_out_6"]])
    graph.cleanup().toposort()
    return gs.export_onnx(graph)


def shape_operations(gs, sizes):
    register(gs)
    graph = gs.Graph(ir_version=10)
    data = gs.Variable("data", np.float32, sizes)
    graph.inputs = [data]

    def layer(op, inputs, **attrs):
        return graph.layer(op=op, inputs=inputs, outputs=[op.lower()], attrs=attrs)[0]

    shape = graph.shape_out(data)
    flat = layer("Reshape", [data, layer("ReduceProd", [shape], axes=[0], keepdims=1)])
    first, last = layer("Gather", [shape, [0, 1]]), layer("Gather", [shape, [2, 3]])
    partly = layer("Reshape", [data, layer("Concat", [first, layer("ReduceProd", [last], axes=[0], keepdims=1)], axis=0)])
    for tensor, name, shape in ((flat, "flattened", (-1,)), (partly, "partially_flattened", (-1, 3, -1))):
        tensor.name, tensor.dtype, tensor.shape = name, np.float32, shape
    graph.outputs = [flat, partly]
    return graph


def example_09(gs):
    return onnx.shape_inference.infer_shapes(gs.export_onnx(shape_operations(gs, (gs.Tensor.DYNAMIC, 3, gs.Tensor.DYNAMIC, 5))))


def example_10(gs):
    x = gs.Variable("input_1", np.float32, (1, 3, 28, 28))
    graph = gs.Graph(inputs=[x], ir_version=10)
    conv = graph.layer(op="Conv", inputs=[x, filled((32, 3, 3, 3))], outputs=["conv_out"],
                       attrs={"dilations": [1, 1], "group": 1, "kernel_shape": (3, 3), "strides": [1, 1]})[0]
    flat = graph.layer(op="Reshape", inputs=[conv, np.array([1, 21632], np.int64)], outputs=["reshape_out"])[0]
    out = graph.layer(op="MatMul", inputs=[flat, filled((21632, 10), 1e-4)], outputs=["matmul_out"])[0]
    out.dtype = np.float32
    graph.outputs = [out]
    graph = gs.import_onnx(gs.export_onnx(graph))
    for tensor in graph.inputs:
        tensor.shape[0] = "N"
    for node in graph.nodes:
        if node.op == "Reshape":
            node.inputs[1].values[0] = -1
    return gs.export_onnx(graph)


def example_11(gs):
    register(gs)

    @gs.Graph.register()
    def weight(self, name):
        return self.layer(op="Constant", outputs=["constant_out"], attrs={"value": gs.Node.AttributeRef(name, gs.Tensor)})[0]

    given = gs.Variable("input", dtype=np.float32, shape=("batch", "seqlen", "emb_dim"))
    attention = gs.Function("SelfAttention", inputs=[given],
                            attrs={"Wq": None, "Wk": None, "Wv": None, "transpose_perm": [0, 2, 1], "sqrt_emb_dim": 1.0})
    q, k, v = (attention.matmul_out(given, attention.weight(name)) for name in ("Wq", "Wk", "Wv"))
    scale = attention.layer(op="Constant", outputs=["constant_out"], attrs={"value_float": gs.Node.AttributeRef("sqrt_emb_dim", float)})[0]
    turned = attention.layer(op="Transpose", inputs=[k], outputs=["transpose_out"],
                             attrs={"perm": gs.Node.AttributeRef("transpose_perm", List[int])})[0]
    scores = attention.div_out(attention.matmul_out(q, turned), scale)
    attention.outputs = [attention.matmul_out(attention.softmax_out(scores), v)]
    attention.opset = 18
    random = np.random.default_rng(3)
    x = gs.Variable("input_embeds", dtype=np.float32, shape=("batch", "seqlen", 4))
    graph = gs.Graph(inputs=[x], functions=[attention], ir_version=10)
    out = x
    for _ in range(4):
        attrs = {name: gs.Constant(name, random.standard_normal((4, 4)).astype(np.float32)) for name in ("Wq", "Wk", "Wv")}
        out = graph.add_out(out, graph.relu_out(graph.SelfAttention(inputs=[out], attrs={"sqrt_emb_dim": math.sqrt(4), **attrs})[0]))
    out.dtype, out.shape = np.float32, x.shape
    graph.outputs, graph.opset = [out], 18
    return gs.export_onnx(graph)


def add_a_node(gs):
    """The cookbook's 02: Add between two Identities."""
    x, y, middle = f32("x", gs), f32("y", gs), gs.Variable("middle", np.float32, IMAGE)
    graph = gs.Graph([gs.Node("Identity", "first", inputs=[x], outputs=[middle]), gs.Node("Identity", "last", inputs=[middle], outputs=[y])], [x], [y],
                     ir_version=10)
    for node in graph.nodes:
        if node.op == "Identity" and node.name == "first":
            one, tensor = gs.Constant("one", filled((1,))), gs.Variable("tensor3", np.float32, None)
            graph.nodes.append(gs.Node("Add", "added", inputs=[node.outputs[0], one], outputs=[tensor]))
            node.o().inputs[0] = tensor
            break
    graph.cleanup().toposort()
    return gs.export_onnx(graph)


def fold_shapes(gs):
    """The cookbook's 07: shapes are constants once the input's sizes are numbers."""
    graph = shape_operations(gs, (2, 3, 4, 5))
    graph.fold_constants().cleanup()
    return gs.export_onnx(graph)


def flatten_condition(gs):
    """An If whose condition is a constant becomes its branch, which reads a tensor around it."""
    x, y = gs.Variable("x", np.float32, (2, 3)), gs.Variable("y", np.float32, (2, 3))
    outer = gs.Variable("outer", np.float32, (2, 3))
    graph = gs.Graph(inputs=[x], outputs=[y], ir_version=10, opset=13, name="main")
    graph.nodes.append(gs.Node("Relu", "relu", inputs=[x], outputs=[outer]))
    branches = {}
    for key, op in (("then_branch", "Mul"), ("else_branch", "Sub")):
        made, result = gs.Variable(f"{key}_made", np.float32, (2, 3)), gs.Variable(f"{key}_result", np.float32, (2, 3))
        nodes = [gs.Node(op, f"{key}_op", inputs=[outer, gs.Constant(f"{key}_two", filled((1,), 2))], outputs=[made]),
                 gs.Node("Neg", f"{key}_neg", inputs=[made], outputs=[result])]
        branches[key] = gs.Graph(nodes, [], [result], name=key, opset=13)
    graph.nodes.append(gs.Node("If", "if", attrs=branches, inputs=[gs.Constant("condition", np.array(True))], outputs=[y]))
    graph = gs.import_onnx(gs.export_onnx(graph))
    graph.fold_constants().cleanup().toposort()
    return gs.export_onnx(graph)


def loop_with_outer_values(gs):
    """A Loop whose body adds a tensor from around it; a dead node in the body goes."""
    count, x, y = gs.Variable("count", np.int64, ()), gs.Variable("x", np.float32, (3,)), gs.Variable("y", np.float32, (3,))
    step = gs.Variable("step", np.float32, (3,))
    i, go, carried = gs.Variable("i", np.int64, ()), gs.Variable("go", np.bool_, ()), gs.Variable("carried", np.float32, (3,))
    go_on, total, dead = gs.Variable("go_on", np.bool_, ()), gs.Variable("total", np.float32, (3,)), gs.Variable("dead", np.float32, (3,))
    body = gs.Graph([gs.Node("Identity", "pass", inputs=[go], outputs=[go_on]), gs.Node("Neg", "dead", inputs=[carried], outputs=[dead]),
                     gs.Node("Add", "sum", inputs=[carried, step], outputs=[total])], [i, go, carried], [go_on, total], name="body", opset=13)
    graph = gs.Graph([gs.Node("Abs", "abs", inputs=[x], outputs=[step]),
                      gs.Node("Loop", "loop", attrs={"body": body}, inputs=[count, gs.Variable.empty(), x], outputs=[y])],
                     [count, x], [y], ir_version=10, opset=13)
    graph = gs.import_onnx(gs.export_onnx(graph))
    graph.cleanup().toposort()
    return gs.export_onnx(graph)


def sort_shuffled(gs):
    graph = gs.import_onnx(subgraph_model(gs))
    graph.nodes.reverse()
    graph.toposort()
    return gs.export_onnx(graph)


def copy_and_edit(gs):
    graph = gs.import_onnx(subgraph_model(gs))
    copied = graph.copy()
    graph.nodes[0].op, graph.outputs[0].name = "Div", "elsewhere"
    return gs.export_onnx(copied)


def example_12(gs, dtype, number=0.5):
    x, y = gs.Variable("X", dtype, (1, 3, 8, 8)), gs.Variable("Y", dtype, (1, 5, 6, 6))
    w = gs.Constant("W", values=np.full((5, 3, 3, 3), number, dtype))
    return gs.export_onnx(gs.Graph([gs.Node("Conv", inputs=[x, w], outputs=[y])], [x], [y], ir_version=10))
