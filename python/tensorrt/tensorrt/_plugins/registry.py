# SPDX-License-Identifier: Apache-2.0
"""The registry of plugin creators, and what plugins and creators are derived from.

Creators of a program's own are kept and found; what their plugins compute, _plugin_operators.py makes an operator of Hone's. Creators
with names of TensorRT's own plugins stand here too: what they make becomes nodes of ONNX (nodes.py).
"""

import ctypes

import hone
import numpy as np

from .._base import enums
from .._base.checks import instance
from .._base.reports import Told, called

_FieldType = enums.ALL["PluginFieldType"]
_ARRAYS = {"FLOAT16": np.float16, "FLOAT32": np.float32, "FLOAT64": np.float64, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32,
           "INT64": np.int64, "CHAR": np.int8, "DIMS": np.int32, "UNKNOWN": np.uint8}


class PluginField:
    """A named parameter of a plugin."""

    def __init__(self, name="", data=None, type=None):
        self.name = name
        self.type = _FieldType.UNKNOWN if type is None else type
        self.data = data

    @property
    def data(self):
        """The values: numpy's of the type, text as bytes."""
        if self.type.name == "CHAR":
            return self._data if isinstance(self._data, bytes) else np.asarray(self._data).tobytes()
        return self._data

    @data.setter
    def data(self, data):
        if data is None:
            self._data = np.empty(0, _ARRAYS.get(self.type.name, np.uint8))
        elif isinstance(data, str):
            self._data = data.encode()
        elif isinstance(data, (bytes, bytearray, memoryview)):
            self._data = bytes(data) if self.type.name == "CHAR" else np.frombuffer(data, _ARRAYS.get(self.type.name, np.uint8))
        else:
            self._data = np.asarray(data)

    @property
    def size(self):
        """How many there are."""
        return len(self._data) if isinstance(self._data, bytes) else int(self._data.size)


class PluginFieldCollection(list):
    """The parameters of a plugin."""

    def __init__(self, fields=()):
        super().__init__(fields or ())


class PluginFieldCollection_(PluginFieldCollection):  # noqa: N801: the interface's name
    """The same."""


class IVersionedInterface:
    """An interface that says which it is."""

    @property
    def api_language(self):
        """All here is Python."""
        return enums.get("APILanguage") and enums.get("APILanguage").PYTHON

    @property
    def interface_info(self):
        """Kind and version."""
        return InterfaceInfo(type(self).__name__, 1, 0)


class InterfaceInfo:
    """Which interface, of which version."""

    def __init__(self, kind, major, minor):
        self.kind, self.major, self.minor = kind, major, minor


class IPluginCreatorInterface(IVersionedInterface):
    """Makes plugins; to be derived from by way of one of the following."""


class _Creator(IPluginCreatorInterface):
    def __init__(self):
        self.name, self.plugin_version, self.plugin_namespace = "", "1", ""
        self.field_names = PluginFieldCollection()


class IPluginCreator(_Creator):
    """Makes plugins of the second interface: create_plugin(name, field_collection), deserialize_plugin(name, serialized_plugin)."""

    def create_plugin(self, name, field_collection):
        """The plugin; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no create_plugin()")

    def deserialize_plugin(self, name, serialized_plugin):
        """The plugin of what its serialize() gave; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no deserialize_plugin()")


class IPluginCreatorV3One(_Creator):
    """Makes plugins of the third: create_plugin(name, field_collection, phase)."""

    def create_plugin(self, name, field_collection, phase):
        """The plugin; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no create_plugin()")


class IPluginCreatorV3Quick(_Creator):
    """Makes quickly deployable plugins."""


class IPluginResource(IVersionedInterface):
    """What plugins share; to be derived from: clone(), release()."""

    def __init__(self):
        pass


class IPluginResourceContext:
    """What a plugin finds in a context."""

    error_recorder = gpu_allocator = None


class IPluginRegistry(Told):
    """Creators by name, version and namespace."""

    def __init__(self):
        self._creators, self._libraries, self._resources = {}, [], {}
        self.parent_search_enabled = True

    def _failed(self, text, result=None, code="INVALID_ARGUMENT"):
        """There is no logger here: the recorder hears."""
        if self._error_recorder is not None:
            called(self._error_recorder.report_error, getattr(enums.ALL["ErrorCodeTRT"], code), text)
        return result

    @property
    def all_creators(self):
        """All that are registered."""
        return list(self._creators.values())

    all_creators_recursive = all_creators

    @property
    def plugin_creator_list(self):
        """Those of the second interface, and TensorRT's own."""
        return [creator for creator in self._creators.values() if not isinstance(creator, (IPluginCreatorV3One, IPluginCreatorV3Quick))]

    def register_creator(self, creator, plugin_namespace=""):
        """False where there is one of that name, version and namespace."""
        instance(creator, IPluginCreatorInterface, "register_creator")
        key = creator.name, creator.plugin_version, plugin_namespace or getattr(creator, "plugin_namespace", "")
        if key in self._creators:
            return self._failed(f"there is a plugin creator {key[0]} of version {key[1]} already", False)
        self._creators[key] = creator
        return True

    def deregister_creator(self, creator):
        """False where it is not there."""
        for key, known in self._creators.items():
            if known is creator:
                del self._creators[key]
                return True
        return False

    def get_creator(self, type, version, plugin_namespace=""):
        """The creator, or None."""
        return self._creators.get((type, version, plugin_namespace))

    def get_plugin_creator(self, type, version, plugin_namespace=""):
        """The same, of the second interface."""
        found = self.get_creator(type, version, plugin_namespace)
        return None if isinstance(found, (IPluginCreatorV3One, IPluginCreatorV3Quick)) else found

    def load_library(self, plugin_path):
        """A library of Hone's operators (operators.h), whose operators models may then name; None for one that is none."""
        try:
            hone.open_operators(plugin_path)
        except hone.Error as error:
            return self._failed(str(error))
        self._libraries.append(plugin_path)
        return ctypes.py_object(plugin_path)

    def deregister_library(self, handle):
        """Operators of a library stay until the process ends."""

    def acquire_plugin_resource(self, key, resource):
        """The resource under this key, which is the first one's clone."""
        instance(resource, IPluginResource, "acquire_plugin_resource")
        if key not in self._resources:
            self._resources[key] = [called(resource.clone), 0]
        self._resources[key][1] += 1
        return self._resources[key][0]

    def release_plugin_resource(self, key):
        """Released when nobody holds it; False where there is none."""
        if key not in self._resources:
            return False
        entry = self._resources[key]
        entry[1] -= 1
        if entry[1] == 0:
            del self._resources[key]
            called(entry[0].release)
        return True


_registry = IPluginRegistry()


def get_plugin_registry():
    """The one of the process. TensorRT's own plugins are in it from the start: there is no library to load for them."""
    init_libnvinfer_plugins(None)
    return _registry


def get_builder_plugin_registry(capability):
    """The same: there is one."""
    return get_plugin_registry()


def init_libnvinfer_plugins(logger, namespace=""):
    """Registers creators with the names of TensorRT's own plugins."""
    from .nodes import CREATORS

    for creator in CREATORS:
        if _registry.get_creator(creator.name, creator.plugin_version, "") is None:
            _registry.register_creator(creator, "")
    return True
