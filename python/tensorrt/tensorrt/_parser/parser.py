# SPDX-License-Identifier: Apache-2.0
"""OnnxParser: fills a network with a model's nodes, one layer each, or says of each node why not.

What Hone can read of a model decides: the parser asks it for the types of all tensors (diagnose.py) and keeps the nodes as they are.
"""

import os
import struct

from .._base import enums, onnx, surface
from .._base.elements import type_of_element
from .._base.checks import buffer
from .._base.reports import Managed, Told
from .._plugins.layers import prepare
from . import diagnose
from .fill import fill

ErrorCode, OnnxParserFlag = enums.ALL["ErrorCode"], enums.ALL["OnnxParserFlag"]
_NO_PLUGIN = 'creator && "Plugin not found, are the plugin name, version, and namespace correct?"'


def get_nv_onnx_parser_version():
    """As a number: two digits a part."""
    major, minor, patch = (int(part) for part in surface.VERSION.split("."))
    return major * 10000 + minor * 100 + patch


class ParserError:
    """Why a model or one of its nodes was refused."""

    def __init__(self, code, desc, func, node=None, name="", operator=""):
        self._code, self._desc, self._func = code, desc, func
        self._node, self._name, self._operator = node, name, operator

    def code(self):
        return self._code

    def desc(self):
        return self._desc

    def file(self):
        return "ModelImporter.cpp" if self._node is None else "onnxOpImporters.cpp"

    def line(self):
        return 0

    def func(self):
        return self._func

    def node(self):
        return -1 if self._node is None else self._node

    def node_name(self):
        return self._name

    def node_operator(self):
        return self._operator

    def local_function_stack(self):
        return []

    def local_function_stack_size(self):
        return 0

    def __str__(self):
        told = f"({self._func}): {self._code}: {self._desc}"
        if self._node is None:
            return told
        if surface.MAJOR == "8":
            return f"In node {self._node} {told}"
        return f"In node {self._node} with name: {self._name} and operator: {self._operator} {told}"

    __repr__ = __str__


def error_at(model, at, text, unknown):
    """The error of a node."""
    node = model.graph.nodes[at]
    if unknown:
        return ParserError(ErrorCode.INVALID_NODE, _NO_PLUGIN, "checkFallbackPluginImporter", at, node.name, node.op)
    code = ErrorCode.UNSUPPORTED_NODE if "not supported" in text else ErrorCode.INVALID_NODE
    return ParserError(code, text, "parseNode", at, node.name, node.op)


class OnnxParser(Managed):
    """Reads ONNX models into a network."""

    def __init__(self, network, logger):
        if not callable(getattr(logger, "log", None)):
            raise TypeError("OnnxParser(network, logger): the logger is a tensorrt.ILogger")
        self._network, self._logger, self._errors = network, logger, []
        self._bits = 0 if surface.MAJOR == "8" else 1 << int(OnnxParserFlag.NATIVE_INSTANCENORM)
        self._groups, self._config = [], None
        self._loaded, self._weights = None, {}
        self._layers = {}

    # -- flags --

    @property
    def flags(self):
        return self._bits

    @flags.setter
    def flags(self, bits):
        self._bits = int(bits)

    def set_flag(self, flag):
        self._bits |= 1 << int(OnnxParserFlag(flag))

    def clear_flag(self, flag):
        self._bits &= ~(1 << int(OnnxParserFlag(flag)))

    def get_flag(self, flag):
        return bool(self._bits >> int(OnnxParserFlag(flag)) & 1)

    def set_builder_config(self, config):
        self._config = config
        return True

    # -- errors --

    @property
    def num_errors(self):
        return len(self._errors)

    def get_error(self, index):
        if not 0 <= index < len(self._errors):
            raise IndexError(f"there are {len(self._errors)} errors, no error {index}")
        return self._errors[index]

    def clear_errors(self):
        self._errors = []

    def _refuse(self, error):
        self._errors.append(error)
        self._failed(str(error), code="UNSPECIFIED_ERROR")
        return False

    # -- reading --

    def _read(self, data):
        """The model; None where the bytes are none."""
        try:
            model = onnx.Model.read(buffer(data, "the model"))
            prepare(model)
            return model
        except onnx.Malformed as error:
            self._refuse(ParserError(ErrorCode.MODEL_DESERIALIZE_FAILED, f"Failed to parse the ONNX model: {error}", "deserializeOnnxModel"))
            return None

    def _file(self, path):
        try:
            with open(os.fspath(path), "rb") as file:
                return file.read()
        except OSError as error:
            self._refuse(ParserError(ErrorCode.MODEL_DESERIALIZE_FAILED, f"Failed to open the file {path}: {error.strerror}",
                                     "deserializeOnnxModel"))
            return None

    def parse(self, model, path=None):
        """The network of a model's bytes; external data lie where `path` is."""
        return self._parse(self._read(model), os.path.dirname(os.path.abspath(path)) if path else None)

    def parse_from_file(self, model):
        data = self._file(model)
        return False if data is None else self.parse(data, os.fspath(model))

    def parse_with_weight_descriptors(self, model):
        return self.parse(model)

    def load_model_proto(self, model, path=None):
        self._loaded, self._folder = self._read(model), os.path.dirname(os.path.abspath(path)) if path else None
        return self._loaded is not None

    def load_initializer(self, name, data, size):
        """Other contents for a weight of the loaded model, by address."""
        import ctypes

        held = None if self._loaded is None else self._loaded.graph.tensors.get(name)
        if held is None:
            return self._refuse(ParserError(ErrorCode.INVALID_VALUE, f"the loaded model has no initializer {name}", "loadInitializer"))
        raw = b"".join(onnx.integer(1, each) for each in held.shape) + onnx.integer(2, held.element) + onnx.chunk(8, name)
        self._loaded.graph.tensors[name] = onnx.Tensor(memoryview(raw + onnx.chunk(9, ctypes.string_at(int(data), int(size)))))
        return True

    def parse_model_proto(self):
        if self._loaded is None:
            return self._refuse(ParserError(ErrorCode.INVALID_VALUE, "no model is loaded (load_model_proto)", "parseModelProto"))
        return self._parse(self._loaded, self._folder)

    def _parse(self, model, folder):
        if model is None:
            return False
        network = self._network
        if network.num_layers or network.num_inputs:
            return self._refuse(ParserError(ErrorCode.INVALID_VALUE, "the network has layers already; a model is read into an empty one",
                                            "parse"))
        types, refused, whole = diagnose.examine(model, folder)
        for at, text, unknown in refused:
            self._refuse(error_at(model, at, text, unknown))
        if whole is not None:
            return self._refuse(ParserError(ErrorCode.INVALID_GRAPH, whole, "importModel"))
        for info in model.graph.inputs:
            if info.name not in model.graph.tensors and type_of_element(info.element) is None:
                self._refuse(ParserError(ErrorCode.UNSUPPORTED_GRAPH, f"the input {info.name} has a type that no tensor has here", "importInput"))
        if self._errors:
            return False
        try:
            self._layers = fill(network, model, folder, types)
        except (onnx.Malformed, ValueError, TypeError, struct.error) as error:
            network._clear()
            return self._refuse(ParserError(ErrorCode.INVALID_GRAPH, f"the model's contents contradict each other: {error}", "importModel"))
        return True

    # -- asking --

    def supports_operator(self, op_name):
        from .kinds import _OF

        return str(op_name) in _OF

    def get_layer_output_tensor(self, name, i):
        record = self._layers.get(name)
        return None if record is None or not 0 <= i < len(record.outputs) else record.outputs[i]

    def get_used_vc_plugin_libraries(self):
        return []

    def supports_model(self, model, path=None):
        """(whether all is read, [(indices of nodes that follow each other, whether they are read)])."""
        self.supports_model_v2(model, path)
        return self._supported, list(self._groups)

    def supports_model_v2(self, model, path=None):
        self._groups, self._supported = [], False
        read = self._read(model)
        if read is None:
            return False
        folder = os.path.dirname(os.path.abspath(path)) if path else None
        _, refused, whole = diagnose.examine(read, folder)
        for at, text, unknown in refused:
            self._refuse(error_at(read, at, text, unknown))
        if whole is not None:
            self._refuse(ParserError(ErrorCode.INVALID_GRAPH, whole, "importModel"))
            return False
        bad, run = {at for at, *_ in refused}, []
        for at in range(len(read.graph.nodes) + 1):
            if at < len(read.graph.nodes) and at not in bad:
                run.append(at)
            elif run:
                self._groups.append((run, True))
                run = []
        self._supported = not bad
        return self._supported

    @property
    def num_subgraphs(self):
        return len(self._groups)

    def is_subgraph_supported(self, index):
        return self._groups[index][1]

    def get_subgraph_nodes(self, index):
        return list(self._groups[index][0])


class OnnxParserRefitter(Told):
    """Stages a model's weights in a refitter."""

    def __init__(self, refitter, logger):
        self._refitter, self._logger, self._errors, self._loaded, self._kept = refitter, logger, [], None, []

    num_errors = OnnxParser.num_errors
    get_error, clear_errors = OnnxParser.get_error, OnnxParser.clear_errors
    _refuse, _read, _file = OnnxParser._refuse, OnnxParser._read, OnnxParser._file
    load_model_proto, load_initializer = OnnxParser.load_model_proto, OnnxParser.load_initializer

    def refit_from_file(self, model):
        data = self._file(model)
        return False if data is None else self.refit_from_bytes(data, os.fspath(model))

    def refit_from_bytes(self, model, path=None):
        read = self._read(model)
        return False if read is None else self._refit(read, os.path.dirname(os.path.abspath(path)) if path else None)

    def refit_model_proto(self):
        if self._loaded is None:
            return self._refuse(ParserError(ErrorCode.INVALID_VALUE, "no model is loaded (load_model_proto)", "refitModelProto"))
        return self._refit(self._loaded, self._folder)

    def _refit(self, model, folder):
        from .fill import constants
        from .._base.values import Weights, type_of_array

        wanted = set(self._refitter.get_all_weights())
        for name, tensor in {**model.graph.tensors, **constants(model)}.items():
            if name not in wanted:
                continue
            array = tensor.array(folder)
            if array is None or type_of_array(array.dtype) is None:
                continue
            self._kept.append(array)  # until the refitter has read it
            if not self._refitter.set_named_weights(name, Weights(array.reshape(-1))):
                self._refuse(ParserError(ErrorCode.REFIT_FAILED, f"the weights {name} do not fit the engine's", "refit"))
                return False
        return True
