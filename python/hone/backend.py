# SPDX-License-Identifier: Apache-2.0
"""Hone as an ONNX backend: what `onnx.backend.test.BackendTest` and other users of onnx.backend.base call.

    import hone.backend
    y = hone.backend.run_model(model, [x])
"""

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

import hone

LEVEL = "--builderOptimizationLevel=0"  # nothing is timed: conformance, not speed


class HoneRep(BackendRep):
    """A model ready to run. Plans are made per shape of the inputs, since nothing says beforehand which will come."""

    def __init__(self, model, device, arguments):
        self.model = hone.Model.parse(model.SerializeToString())
        self.device, self.arguments, self.contexts, self.plan = hone.Device(device), list(arguments), {}, None
        self.names = [value.name for value in model.graph.output]
        initial = {value.name for value in model.graph.initializer}
        self.required = [value.name for value in model.graph.input if value.name not in initial]

    def _context(self, feeds):
        shapes = tuple(sorted((name, values.shape) for name, values in feeds.items() if isinstance(values, np.ndarray)))
        if shapes not in self.contexts:
            dynamic = [(name, shape) for name, shape in shapes if -1 in self.model.inputs[name][1]]
            text = ",".join(f"'{name}':" + ("x".join(map(str, shape)) or "scalar") for name, shape in dynamic)
            flags = [f"--shapes={text}"] if dynamic else []
            self.plan = self.model.build([*flags, *self.arguments], self.device)  # the last one made
            self.contexts[shapes] = self.plan.engine(self.device).context()
        return self.contexts[shapes]

    def run(self, inputs, **_):
        """`inputs`: a list in the order of the model's inputs, a dictionary by name, or a single array."""
        if isinstance(inputs, dict):
            feeds = dict(inputs)
        elif isinstance(inputs, (list, tuple)):
            feeds = dict(zip(self.required, inputs))
        else:
            feeds = {self.required[0]: inputs}
        feeds = {name: np.asarray(values) if isinstance(values, (np.generic, int, float)) else values for name, values in feeds.items()}
        results = self._context(feeds).run(feeds)
        return namedtupledict("Outputs", self.names)(*(results[name] for name in self.names))


class HoneBackend(Backend):
    """`arguments` are trtexec's build flags; a subclass may fix other ones."""

    arguments = (LEVEL,)

    @classmethod
    def is_compatible(cls, model, device="CPU", **_):
        try:
            hone.Model.parse(model.SerializeToString())
        except hone.Error:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model, device="CPU", **_):
        kind = Device(device)
        name = "cpu" if kind.type == DeviceType.CPU else f"cuda:{kind.device_id}"
        return HoneRep(model, name, cls.arguments)

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **options):
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **options):
        """One node as a model of its own; the types of outputs come from `outputs_info` or from ONNX's inference."""
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                  for name, array in zip(names, arrays)]
        results = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
                   for name, (dtype, shape) in zip(node.output, outputs_info)] if outputs_info else [
                       onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type, values, results)
        opset = options.pop("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model if outputs_info else onnx.shape_inference.infer_shapes(model), arrays, device)

    @classmethod
    def supports_device(cls, device):
        try:
            hone.Device("cpu" if Device(device).type == DeviceType.CPU else "cuda:0")
        except hone.Error:
            return False
        return True


is_compatible = HoneBackend.is_compatible
prepare = HoneBackend.prepare
run_model = HoneBackend.run_model
run_node = HoneBackend.run_node
supports_device = HoneBackend.supports_device
