// SPDX-License-Identifier: Apache-2.0
#include "tools/data/template_texts.h"

namespace hone {

const char* const kNetworkTemplate = R"SCRIPT(#!/usr/bin/env python3
# Written by: @COMMAND@
"""Makes a network by TensorRT's Python interface and saves its engine: hone trt-env -- python3 THIS_FILE [ENGINE.plan]"""

import sys

import tensorrt as trt

MODEL = @MODEL@  # an ONNX file to go on from; None: begin with nothing
LOGGER = trt.Logger(trt.Logger.WARNING)


def load_network(builder, network, parser):
    """Sets up the network; it needs a marked output."""
    if parser is not None:
        # Its outputs are marked already; network.get_layer(i) and network.get_output(i) find what is there.
        return
    # TODO: put the layers of the network here. This one is max(x, 0).
    x = network.add_input("x", trt.float32, (1, 4))
    layer = network.add_activation(x, trt.ActivationType.RELU)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))


def main():
    builder = trt.Builder(LOGGER)
    network = builder.create_network(0)
    parser = None
    if MODEL is not None:
        parser = trt.OnnxParser(network, LOGGER)
        if not parser.parse_from_file(MODEL):
            sys.exit("\n".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    load_network(builder, network, parser)
    config = builder.create_builder_config()
    # A network with sizes of -1 needs a profile: builder.create_optimization_profile(), config.add_optimization_profile().
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        sys.exit("the network could not be built")
    path = sys.argv[1] if len(sys.argv) > 1 else "network.plan"
    with open(path, "wb") as file:
        file.write(plan)
    print("written:", path)


if __name__ == "__main__":
    main()
)SCRIPT";

const char* const kConfigTemplate = R"SCRIPT(#!/usr/bin/env python3
# Written by: @COMMAND@
"""Sets up a builder's configuration by TensorRT's Python interface: hone trt-env -- python3 THIS_FILE MODEL.onnx [ENGINE.plan]"""

import sys

import tensorrt as trt

MODEL = @MODEL@
LOGGER = trt.Logger(trt.Logger.WARNING)


def load_config(builder, network, config):
    """Sets up the configuration."""
    # TODO: put what the engine shall be like here, for example config.set_flag(trt.BuilderFlag.FP16).
@CONFIG@    if @PROFILES@:  # they are given above
        return
    profile = builder.create_optimization_profile()
    dynamic = False
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        if -1 in tuple(tensor.shape):
            dynamic = True
            smallest = [1 if size == -1 else size for size in tensor.shape]
            profile.set_shape(tensor.name, smallest, smallest, smallest)
    if dynamic:
        config.add_optimization_profile(profile)


def main():
    words = ([MODEL] if MODEL is not None else []) + sys.argv[1:]
    if not words:
        sys.exit("name a model: MODEL.onnx [ENGINE.plan]")
    builder = trt.Builder(LOGGER)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, LOGGER)
    if not parser.parse_from_file(words[0]):
        sys.exit("\n".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    config = builder.create_builder_config()
    load_config(builder, network, config)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        sys.exit("the network could not be built")
    path = words[1] if len(words) > 1 else "model.plan"
    with open(path, "wb") as file:
        file.write(plan)
    print("written:", path)


if __name__ == "__main__":
    main()
)SCRIPT";

const char* const kSurgeonTemplate = R"SCRIPT(#!/usr/bin/env python3
# Written by: @COMMAND@
"""Edits a model node by node. hone surgeon does the usual edits without a program: hone surgeon --help."""

import onnx

try:
    import hone.graph as gs
except ImportError:
    import onnx_graphsurgeon as gs

graph = gs.import_onnx(onnx.load(@MODEL@))

# TODO: put the edits here.
#   graph.inputs, graph.outputs      lists of tensors
#   graph.tensors()["name"]          any tensor
#   for node in graph.nodes:         node.name, node.op, node.attrs, node.inputs, node.outputs
#   graph.cleanup().toposort()       behind edits

onnx.save(gs.export_onnx(graph), @UPDATED@)
)SCRIPT";

}  // namespace hone
