# SPDX-License-Identifier: Apache-2.0
"""A random walk over the module `tensorrt`: objects that there are, methods by name with arguments that mostly fit, attributes read and set.

A walk keeps what calls return, so that layers are added to networks, networks built, engines run and refitted. Addresses are of arrays that
the walk keeps, large enough for all that it makes, or 0: what a program does with wild ones is its own fault.
"""

import random

import numpy as np
from trt_networks import Allocator, Log, trt

BYTES = 1 << 22
FORBIDDEN = {"set_device_memory", "device_memory"}  # they take addresses that nobody can check
TYPES = [trt.float32, trt.float16, trt.int32, trt.int64, trt.int8, trt.bool, trt.uint8]
HUGE = [2 ** 38, 2 ** 40, 2 ** 62, 2 ** 63 - 1]  # sizes for which no machine has memory
BAD = [None, -1, 2 ** 40, "no", b"", 1.5, (), [1, "2"], object(), float("nan"), (0,), (-3, 2), {}]


class Small(Allocator):
    """No more memory than a test may take."""

    def reallocate_output_async(self, name, memory, size, alignment, stream):
        return super().reallocate_output_async(name, memory, size, alignment, stream) if size <= BYTES else 0


class Walk:
    def __init__(self, seed, expected):
        self.random, self.expected, self.told = random.Random(seed), expected, []
        self.numpy = np.random.default_rng(seed)
        self.answered = self.refused = 0
        self.counts = []  # tensors: small constants
        self.log = Log()
        self.memory = [np.zeros(BYTES, np.uint8) for _ in range(2)]
        self.builder = trt.Builder(self.log)
        self.things = {"builder": [self.builder], "runtime": [trt.Runtime(self.log)], "registry": [trt.get_plugin_registry()]}
        self.fresh_network()

    # ---- one call ----

    def call(self, what, function, *arguments, **named):
        """What the function returns; None where it raises what a program may expect."""
        self.told.append(f"{what}{arguments!r:.300}{named if named else ''}")
        try:
            result = function(*arguments, **named)
            self.answered += 1
            return result
        except self.expected:
            self.refused += 1
            return None

    def keep(self, kind, value):
        if value is not None:
            held = self.things.setdefault(kind, [])
            held.append(value)
            del held[:-12]
        return value

    def some(self, kind):
        held = self.things.get(kind)
        return self.random.choice(held) if held else None

    def fresh_network(self):
        flags = self.random.choice((0, 0, 1, 2, 3))
        self.network = self.builder.create_network(flags)
        self.keep("network", self.network)
        self.things["tensor"], self.things["layer"] = [], []
        for at in range(self.random.randint(1, 3)):
            shape = [self.random.choice((1, 2, 3, 4, 8)) for _ in range(self.random.randint(0, 4))]
            if self.random.random() < 0.02 and shape:
                shape[-1] = self.random.choice(HUGE)
            if self.random.random() < 0.2 and shape:
                shape[0] = -1
            self.keep("tensor", self.network.add_input(f"x{at}", self.random.choice(TYPES[:4]), shape))

    def go(self, steps):
        """So many moves, then a build and a run of what there is."""
        moves = [self.add_layer] * 8 + [self.attribute] * 5 + [self.method] * 4 + [self.mark] * 2 + [self.build, self.run, self.parse, self.refit,
                                                                                                self.flow, self.configure, self.values]
        for _ in range(steps):
            self.random.choice(moves)()
            if self.random.random() < 0.02:
                self.fresh_network()
        self.build()
        self.run()

    # ---- arguments ----

    def dims(self, most=4):
        dims = [self.random.choice((0, 1, 1, 2, 2, 3, 4, -1)) for _ in range(self.random.randint(0, most))]
        if dims and self.random.random() < 0.04:
            dims[self.random.randrange(len(dims))] = self.random.choice(HUGE)
        return tuple(dims)

    def weights(self):
        kind = self.random.choice((np.float32, np.float32, np.float32, np.float16, np.int32, np.int8))
        array = self.numpy.standard_normal(self.random.choice((0, 1, 2, 4, 8, 9, 16, 36, 64))).astype(kind)
        return self.random.choice((array, trt.Weights(array), trt.Weights(), None))

    def enum(self):
        kinds = [kind for kind in vars(trt).values() if isinstance(kind, type) and hasattr(kind, "__members__") and kind.__members__]
        return self.random.choice(list(self.random.choice(kinds).__members__.values()))

    def argument(self, name=""):
        """Mostly what the name suggests, sometimes anything."""
        if self.random.random() < 0.12:
            return self.random.choice(BAD)
        if self.random.random() < 0.05:
            return self.enum()
        if name in _ENUMS:
            return self.random.choice(list(getattr(trt, _ENUMS[name]).__members__.values()))
        if any(word in name for word in ("input", "tensor", "index_tensor", "indices", "scale_t", "condition", "boxes", "scores", "data", "grid", "bias_t",
                                         "update", "depth", "values", "slopes", "sequence", "bounds", "axis_t", "cache", "query", "key", "value")):
            return self.some("tensor")
        if any(word in name for word in ("shape", "dims", "kernel_size", "window", "stride", "padding", "dilation", "start", "axes_d")):
            return self.dims()
        if any(word in name for word in ("kernel", "bias", "weights", "shift", "scale", "power")):
            return self.weights()
        return self.random.choice((0, 1, 2, 3, -1, 7, True, False, 0.5, "a", self.dims()))

    # ---- moves ----

    def add_layer(self):
        name = self.random.choice(list(_ADD))
        arguments = [self._for(word) for word in _ADD[name].split()]
        if not hasattr(self.network, name):
            return
        layer = self.call(name, getattr(self.network, name), *arguments)
        if layer is not None and hasattr(layer, "num_outputs"):
            self.keep("layer", layer)
            for at in range(layer.num_outputs):
                self.keep("tensor", layer.get_output(at))

    def _for(self, word):
        if self.random.random() < 0.08:
            return self.random.choice(BAD)
        if word == "T":
            return self.some("tensor")
        if word == "L":
            return [self.some("tensor") for _ in range(self.random.randint(0, 3))]
        if word == "D":
            return self.dims()
        if word == "W":
            return self.weights()
        if word == "I":
            return self.random.choice((0, 1, 2, 3, 4, 16, -1))
        if word == "F":
            return self.random.choice((0.0, 0.5, 1.0, -2.0))
        if word == "B":
            return self.random.random() < 0.5
        if word == "S":
            return self.random.choice(("ij,jk->ik", "i->i", "bij,bjk->bik", "a message", "ij->"))
        if word.startswith("="):  # constants whose count fits
            shape = tuple(self.random.choice((1, 2, 3, 4)) for _ in range(self.random.randint(0, 3)))
            self._shape = shape
            return shape
        if word == "~":
            kind = self.random.choice((np.float32, np.float32, np.int32, np.int64, np.bool_))
            array = (self.numpy.random(self._shape if hasattr(self, "_shape") else ()) * 4).astype(kind)
            if kind == np.int64 and self.random.random() < 0.1:
                array.flat[:1] = self.random.choice(HUGE)
            return array
        return self.random.choice(list(getattr(trt, word).__members__.values()))

    def attribute(self):
        """Reads or sets a property of something."""
        kind = self.random.choice(("layer", "layer", "layer", "tensor", "config", "network", "engine", "context", "profile", "builder", "runtime"))
        thing = self.some(kind)
        if thing is None:
            return
        names = [name for name in dir(thing) if not name.startswith("_") and name not in FORBIDDEN]
        name = self.random.choice(names)
        value = self.call(f"{type(thing).__name__}.{name}", getattr, thing, name)
        if callable(value) or self.random.random() < 0.4:
            return
        if isinstance(value, trt.ITensor):
            new = self.some("tensor")
        elif hasattr(type(value), "__members__") and type(value).__members__:
            new = self.random.choice(list(type(value).__members__.values()))
        elif isinstance(value, (bool, int, float, str)):
            new = self.random.choice((value, 0, 1, 2, 5, -1, True, 0.25, "renamed"))
        elif isinstance(value, np.ndarray):
            new = self.weights()
        else:
            new = self.random.choice((value, self.dims(), self.dims(), None))
        if self.random.random() < 0.1:
            new = self.random.choice(BAD)
        if getattr(getattr(type(thing), name, None), "fset", True) is not None:
            self.call(f"{type(thing).__name__}.{name} =", setattr, thing, name, new)

    def method(self):
        """Any method of something, with what its parameters' names suggest."""
        kind = self.random.choice(("layer", "layer", "tensor", "network", "config", "engine", "context", "profile", "inspector", "refitter", "registry",
                                   "parser"))
        thing = self.some(kind)
        if thing is None:
            return
        names = [name for name in dir(thing) if not name.startswith("_") and name not in FORBIDDEN and name not in _UNSAFE]
        name = self.random.choice(names)
        value = self.call(f"{type(thing).__name__}.{name}", getattr, thing, name)
        if not callable(value) or isinstance(value, type):
            return
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        names = list(code.co_varnames[1:code.co_argcount]) if code is not None else []
        count = len(names) - (self.random.random() < 0.05)
        result = self.call(f"{type(thing).__name__}.{name}", value, *[self._named(thing, each) for each in names[:max(0, count)]])
        if isinstance(result, trt.ITensor):
            self.keep("tensor", result)

    def _named(self, thing, name):
        if name in ("name", "tensor_name", "input") and isinstance(thing, (trt.ICudaEngine, trt.IExecutionContext, trt.IOptimizationProfile)):
            engine = self.some("engine")
            names = [engine[at] for at in range(engine.num_io_tensors)] if engine is not None else ["x0"]
            return self.random.choice([*names, "nothing"])
        if name in ("memory", "stream_handle", "stream", "data", "event"):
            return self.random.choice((0, self.memory[0].ctypes.data))
        if name in ("index", "profile_index", "layer_index", "i"):
            return self.random.choice((0, 1, 2, -1, 99))
        return self.argument(name)

    def mark(self):
        tensor = self.some("tensor")
        function = self.random.choice(("mark_output", "mark_output", "mark_output", "unmark_output", "mark_debug", "mark_output_for_shapes"))
        if tensor is not None:
            self.call(function, getattr(self.network, function), tensor)

    def configure(self):
        config = self.keep("config", self.builder.create_builder_config())
        config.builder_optimization_level = 0
        for _ in range(self.random.randint(0, 3)):
            self.call("set_flag", config.set_flag, self.random.choice(list(trt.BuilderFlag.__members__.values())))
        profile = self.keep("profile", self.builder.create_optimization_profile())
        for at in range(self.network.num_inputs):
            tensor = self.network.get_input(at)
            low, middle, high = ([each if size == -1 else size for size in tensor.shape] for each in (1, 2, 4))
            self.call("set_shape", profile.set_shape, tensor.name, low, middle, high)
            count = min(64, int(np.prod(low, dtype=np.float64))) if low else 1
            if tensor.dtype in (trt.int32, trt.int64) and len(low) < 2:
                self.call("set_shape_input", profile.set_shape_input, tensor.name, [1] * count, [2] * count, [4] * count)
        self.call("add_optimization_profile", config.add_optimization_profile, profile)

    def build(self):
        if self.random.random() < 0.7 or not self.things.get("config"):
            self.configure()
        if self.network.num_outputs == 0 and self.things["tensor"]:
            self.call("mark_output", self.network.mark_output, self.things["tensor"][-1])
        plan = self.call("build_serialized_network", self.builder.build_serialized_network, self.network, self.some("config"))
        if plan is None:
            return
        data = bytes(plan)
        if self.random.random() < 0.15:  # a damaged one
            data = bytearray(data)
            for _ in range(self.random.randint(1, 20)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
            data = bytes(data[:self.random.choice((len(data), len(data) // 2))])
        engine = self.call("deserialize_cuda_engine", self.some("runtime").deserialize_cuda_engine, data)
        if self.keep("engine", engine) is not None and self.ends():
            context = self.keep("context", self.call("create_execution_context", engine.create_execution_context))
            self.keep("inspector", self.call("create_engine_inspector", engine.create_engine_inspector))
            if context is not None:
                self.prepare(context)

    def ends(self):
        """Whether the network's loops do, soon: what data or a condition say may be a billion trips, as the program asked."""
        for layer in self.network:
            if layer.type == trt.LayerType.TRIP_LIMIT:
                layer.__class__ = trt.ITripLimitLayer
                if layer.kind != trt.TripLimit.COUNT or layer.get_input(0) not in self.counts:
                    return False
        return True

    def prepare(self, context):
        """Shapes and addresses, most of them right."""
        engine = context.engine
        for at in range(engine.num_io_tensors):
            name = engine[at]
            if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
                shape = [self.random.choice((1, 2, 4)) if size == -1 else size for size in engine.get_tensor_shape(name)]
                self.call("set_input_shape", context.set_input_shape, name, shape if self.random.random() < 0.9 else self.dims())
                if np.prod(shape) * 8 < BYTES and self.random.random() < 0.95:
                    context.set_tensor_address(name, self.memory[0].ctypes.data)
            elif self.random.random() < 0.8:
                context.set_output_allocator(name, Small())

    def run(self):
        context = self.some("context")
        if context is None:
            return
        # what the inputs hold decides sizes: small numbers
        self.memory[0][:4096].view(np.int32)[:] = self.numpy.integers(0, 4, 1024) if self.random.random() < 0.5 else 1
        self.prepare(context)
        self.call("infer_shapes", context.infer_shapes)
        for at in range(context.engine.num_io_tensors):
            self.call("get_tensor_shape", context.get_tensor_shape, context.engine[at])
        if all(context.get_output_allocator(context.engine[at]) is not None for at in range(context.engine.num_io_tensors)
               if context.engine.get_tensor_mode(context.engine[at]) == trt.TensorIOMode.OUTPUT):
            self.call("execute_async_v3", context.execute_async_v3, 1)

    def parse(self):
        """A model of a few nodes, whole or damaged."""
        import onnx
        from onnx import helper

        ops = self.random.choices(["Relu", "Abs", "Sigmoid", "Identity", "Neg", "NoSuchOperator", "Shape", "Transpose"], k=self.random.randint(1, 4))
        names = ["p"] + [f"v{at}" for at in range(len(ops))]
        nodes = [helper.make_node(op, [before], [behind]) for op, before, behind in zip(ops, names, names[1:])]
        sizes = []
        if self.random.random() < 0.4:  # one whose sizes stand in a constant
            op, count = self.random.choice((("Expand", 2), ("Tile", 2), ("Reshape", 2), ("Pad", 4), ("Resize", 2), ("ConstantOfShape", 2), ("Range", 0)))
            numbers = [self.random.choice((0, 1, 2, 3, 6, *HUGE)) for _ in range(count or 3)]
            sizes = [helper.make_tensor(f"n{at}", onnx.TensorProto.INT64, [len(each)] if count else [], each)
                     for at, each in enumerate([numbers] if count else [[each] for each in numbers])]
            operands = {"Resize": [names[-1], "", "", "n0"], "ConstantOfShape": ["n0"], "Range": ["n0", "n1", "n2"]}.get(op, [names[-1], "n0"])
            nodes.append(helper.make_node(op, operands, ["sized"]))
            names.append("sized")
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, [2, 3])],
                                  [helper.make_tensor_value_info(names[-1], onnx.TensorProto.FLOAT, None)], sizes)
        data = bytearray(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        if self.random.random() < 0.4:
            for _ in range(self.random.randint(1, 8)):
                data[self.random.randrange(len(data))] = self.random.randrange(256)
        self.network = self.keep("network", self.builder.create_network(0))
        parser = self.keep("parser", trt.OnnxParser(self.network, self.log))
        self.call("parse", self.random.choice((parser.parse, parser.supports_model_v2, parser.supports_model)), bytes(data))
        for at in range(min(3, parser.num_errors)):
            self.call("get_error", lambda error: (str(error), error.node_name(), error.code()), parser.get_error(at))
        self.things["tensor"] = [layer.get_output(at) for layer in self.network for at in range(layer.num_outputs)]
        self.things["layer"] = list(self.network)

    def refit(self):
        engine = self.some("engine")
        if engine is None:
            return
        refitter = self.keep("refitter", self.call("Refitter", trt.Refitter, engine, self.log))
        if refitter is None:
            return
        for name in [*refitter.get_all_weights()[:3], "nothing"]:
            self.call("set_named_weights", refitter.set_named_weights, name, self.random.choice((self.weights(), refitter.get_weights_prototype(name).size
                                                                                                * [0.5])))
        self.call("refit_cuda_engine", refitter.refit_cuda_engine)

    def flow(self):
        """A loop or a conditional, or a part of one."""
        if self.random.random() < 0.5 or not self.things.get("loop"):
            self.keep("loop", self.call("add_loop", self.network.add_loop))
        loop, tensor = self.some("loop"), self.some("tensor")
        move = self.random.choice(("add_recurrence", "add_iterator", "add_trip_limit", "add_loop_output", "close", "conditional"))
        if move == "close":
            state = self.some("state")
            if state is not None and tensor is not None:
                self.call("set_input", state.set_input, 1, tensor)
            return
        if move == "conditional":
            choice = self.call("add_if_conditional", self.network.add_if_conditional)
            for function, count in (("set_condition", 1), ("add_input", 1), ("add_output", 2)):
                made = self.call(function, getattr(choice, function), *[self.some("tensor") for _ in range(count)])
                if made is not None and made.num_outputs:
                    self.keep("tensor", made.get_output(0))
            return
        if move == "add_trip_limit" and self.random.random() < 0.6:
            tensor = self.network.add_constant((), np.array(self.random.randint(0, 4), np.int32)).get_output(0)
            self.counts.append(tensor)
        extra = {"add_trip_limit": (self._for("TripLimit"),), "add_loop_output": (self._for("LoopOutput"), self._for("I"))}.get(move, ())
        layer = self.call(move, getattr(loop, move), tensor, *extra)
        if layer is not None:
            self.keep("layer", layer)
            if move == "add_recurrence":
                self.keep("state", layer)
            for at in range(layer.num_outputs):
                self.keep("tensor", layer.get_output(at))

    def values(self):
        """Dims, weights, enums and caches by themselves."""
        self.call("Dims", trt.Dims, self.argument())
        self.call("Weights", trt.Weights, self.argument())
        self.call("Permutation", trt.Permutation, self.argument("shape"))
        self.call("volume", trt.volume, self.argument("shape"))
        self.call("nptype", trt.nptype, self.argument())
        config = self.some("config")
        if config is not None:
            cache = self.call("create_timing_cache", config.create_timing_cache, self.random.choice((b"", b"junk", bytes(100))))
            if cache is not None:
                self.call("combine", cache.combine, cache, True)
                self.call("set_timing_cache", config.set_timing_cache, cache, False)
        self.call("deserialize", self.some("runtime").deserialize_cuda_engine, self.random.choice((b"", b"ftrt" + bytes(50), b"HONEPLAN" + bytes(64))))


_ENUMS = {"op": "ElementWiseOperation", "type": "ActivationType", "mode": "ScaleMode", "dtype": "DataType", "flag": "BuilderFlag"}
# Methods that take addresses which only the caller can know, or run for long.
_UNSAFE = {"set_tensor_address", "execute_v2", "execute_async_v3", "set_debug_listener", "set_output_allocator", "load_library", "load_initializer",
           "set_communicator", "parse_with_weight_descriptors", "infer_shapes", "set_weights", "set_named_weights"}
# T tensor, L list of them, D sizes, W weights, I integer, F real, B flag, S text, = and ~ sizes and numbers that fit, else an enum.
_ADD = {"add_convolution_nd": "T I D W W", "add_deconvolution_nd": "T I D W W", "add_pooling_nd": "T PoolingType D", "add_activation": "T ActivationType",
        "add_elementwise": "T T ElementWiseOperation", "add_unary": "T UnaryOperation", "add_matrix_multiply": "T MatrixOperation T MatrixOperation",
        "add_constant": "= ~", "add_shuffle": "T", "add_slice": "T D D D", "add_identity": "T", "add_cast": "T DataType",
        "add_fill": "D FillOperation DataType", "add_concatenation": "L", "add_softmax": "T", "add_reduce": "T ReduceOperation I B",
        "add_topk": "T TopKOperation I I", "add_gather": "T T I", "add_gather_v2": "T T GatherMode", "add_scatter": "T T T ScatterMode",
        "add_scale": "T ScaleMode W W W", "add_scale_nd": "T ScaleMode W W W I", "add_resize": "T", "add_shape": "T", "add_select": "T T T",
        "add_non_zero": "T", "add_one_hot": "T T T I", "add_quantize": "T T DataType", "add_dequantize": "T T DataType",
        "add_normalization": "T T T I", "add_normalization_v2": "T T T I", "add_parametric_relu": "T T", "add_lrn": "T I F F F",
        "add_padding_nd": "T D D", "add_einsum": "L S", "add_grid_sample": "T T", "add_nms": "T T T", "add_reverse_sequence": "T T",
        "add_cumulative": "T T CumulativeOperation B B", "add_squeeze": "T T", "add_unsqueeze": "T T", "add_assertion": "T S",
        "add_ragged_softmax": "T T", "add_dynamic_quantize": "T I I DataType DataType", "add_dynamic_quantize_v2": "T D DataType DataType",
        "add_rotary_embedding": "T T T B I", "add_kv_cache_update": "T T T KVCacheMode", "add_moe": "T T T",
        "add_attention": "T T T AttentionNormalizationOp B", "add_plugin_v2": "L I", "add_plugin_v3": "L L I", "add_loop": "", "add_if_conditional": ""}
