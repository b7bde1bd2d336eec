# SPDX-License-Identifier: Apache-2.0
"""What plugins in Python are derived from, and what their methods are given: sizes as expressions, descriptions of tensors."""

import operator

from .._base import enums
from .registry import IVersionedInterface

_Format = enums.TensorFormat
# By numbers, and as the texts that Hone's operators have for sizes.
_OPERATIONS = {"SUM": operator.add, "PROD": operator.mul, "MAX": max, "MIN": min, "SUB": operator.sub, "EQUAL": lambda a, b: int(a == b),
               "LESS": lambda a, b: int(a < b), "FLOOR_DIV": operator.floordiv, "CEIL_DIV": lambda a, b: -(-a // b)}
_TEXTS = {"SUM": "({a} + {b})", "PROD": "({a} * {b})", "MAX": "max({a}, {b})", "MIN": "min({a}, {b})", "SUB": "({a} - {b})",
          "EQUAL": "max(0, 1 - max({a} - {b}, {b} - {a}))", "LESS": "max(0, min(1, {b} - {a}))", "FLOOR_DIV": "({a} / {b})",
          "CEIL_DIV": "(({a} + {b} - 1) / {b})"}


class UnknownSize(Exception):
    """The number of a size was asked that only the text of is known."""


class IDimensionExpr:
    """A size: a number, or the text of one, over the sizes of inputs (include/hone/operators.h)."""

    def __init__(self, value):
        self._value = value if isinstance(value, str) else int(value)

    def is_constant(self):
        """Whether it is a number."""
        return not isinstance(self._value, str)

    def get_constant_value(self):
        """The number."""
        if isinstance(self._value, str):
            raise UnknownSize(f"{self._value} is no constant")
        return self._value

    def is_size_tensor(self):
        """Whether an output says it when the plugin has run; the number is the most that it may be."""
        return False

    def text(self):
        """The number or the text."""
        return str(self._value)

    def __eq__(self, other):
        return isinstance(other, IDimensionExpr) and self._value == other._value

    def __hash__(self):
        return hash(self._value)


class SizeTensor(IDimensionExpr):
    """A size that an output says."""

    def __init__(self, output, upper):
        super().__init__(upper._value if isinstance(upper, IDimensionExpr) else upper)
        self.output = int(output)

    def is_constant(self):
        """Not before the plugin has run."""
        return False

    def is_size_tensor(self):
        """Always."""
        return True


class IExprBuilder:
    """Makes sizes of sizes."""

    def constant(self, value):
        """A number."""
        return IDimensionExpr(value)

    def operation(self, op, first, second):
        """One of two."""
        if isinstance(first._value, str) or isinstance(second._value, str):
            return IDimensionExpr(_TEXTS[op.name].format(a=first.text(), b=second.text()))
        return IDimensionExpr(_OPERATIONS[op.name](first._value, second._value))

    def declare_size_tensor(self, output_index, opt, upper):
        """A size that an output, an integer without dimensions, says when the plugin has run; at most `upper`."""
        return SizeTensor(output_index, upper)


class DimsExprs:
    """The sizes of a tensor; of a number of dimensions, or of a list of sizes."""

    def __init__(self, dims=0):
        self._dims = [IDimensionExpr(0)] * dims if isinstance(dims, int) else [_expr(each) for each in dims]

    def __len__(self):
        return len(self._dims)

    def __getitem__(self, at):
        return self._dims[at]

    def __setitem__(self, at, size):
        self._dims[at] = _expr(size)


def _expr(size):
    return size if isinstance(size, IDimensionExpr) else IDimensionExpr(size)


class PluginTensorDesc:
    """What a tensor of a plugin is."""

    def __init__(self, dims=(), type=None, format=None, scale=1.0):
        self.dims, self.type = dims, enums.DataType.FLOAT if type is None else type
        self.format, self.scale = _Format.LINEAR if format is None else format, scale


class DynamicPluginTensorDesc:
    """The same with the range of its sizes."""

    def __init__(self, desc=None, min=(), max=(), opt=()):
        self.desc, self.min, self.max, self.opt = desc or PluginTensorDesc(), min, max, opt


class IPluginCapability(IVersionedInterface):
    """A part of a plugin."""


class _Part(IPluginCapability):
    def __init__(self):
        pass


class IPluginV3OneCore(_Part):
    """Which plugin it is: plugin_name, plugin_version, plugin_namespace."""

    plugin_namespace = ""


class IPluginV3OneBuild(_Part):
    """What it makes of its inputs: num_outputs, get_output_data_types(), get_output_shapes(), supports_format_combination(),
    configure_plugin(), get_workspace_size()."""

    DEFAULT_FORMAT_COMBINATION_LIMIT = 100
    format_combination_limit = DEFAULT_FORMAT_COMBINATION_LIMIT
    metadata_string = timing_cache_id = ""

    def get_valid_tactics(self):
        """None to choose among."""
        return []

    def get_workspace_size(self, inputs, outputs):
        """No memory beside."""
        return 0

    def configure_plugin(self, inputs, outputs):
        """Nothing is to be done."""


class IPluginV3OneBuildV2(IPluginV3OneBuild):
    """The same, where outputs may share an input's memory."""

    def get_aliased_input(self, output_index):
        """None does."""
        return -1


class IPluginV3OneRuntime(_Part):
    """How it runs: enqueue(), on_shape_change(), attach_to_context(), get_fields_to_serialize()."""

    def on_shape_change(self, inputs, outputs):
        """Nothing is to be done."""

    def attach_to_context(self, resource_context):
        """The plugin that a context uses."""
        return self.clone()

    def set_tactic(self, tactic):
        """There are none to choose among."""


class IPluginV3(IVersionedInterface):
    """A plugin of the third interface: get_capability_interface(type), clone()."""

    def __init__(self):
        pass

    def destroy(self):
        """Nothing is to be done."""


class IPluginV2:
    """A plugin of the second interface."""

    plugin_namespace, tensorrt_version = "", 8601

    def __init__(self):
        pass

    def initialize(self):
        """Nothing is to be done."""

    def terminate(self):
        """Nothing is to be done."""

    def destroy(self):
        """Nothing is to be done."""


class IPluginV2Ext(IPluginV2):
    """The same with types."""


class IPluginV2DynamicExtBase(IPluginV2Ext):
    """The same with dynamic sizes."""


class IPluginV2DynamicExt(IPluginV2DynamicExtBase):
    """The same, to be derived from: num_outputs, get_output_datatype(), get_output_dimensions(), supports_format_combination(), enqueue(),
    serialize(), clone()."""

    FORMAT_COMBINATION_LIMIT = 100

    def configure_plugin(self, inputs, outputs):
        """Nothing is to be done."""

    def get_workspace_size(self, inputs, outputs):
        """No memory beside."""
        return 0

    def get_serialization_size(self):
        """Bytes of serialize()."""
        return len(self.serialize())


class _Quick(IPluginCapability):
    def __init__(self):
        raise NotImplementedError("this interface is for TensorRT's own use; write tensorrt.plugin.register and impl, or derive from IPluginV3")


class IPluginV3QuickCore(_Quick):
    """Not supported."""


class IPluginV3QuickBuild(_Quick):
    """Not supported."""


class IPluginV3QuickAOTBuild(_Quick):
    """Not supported."""


class IPluginV3QuickRuntime(_Quick):
    """Not supported."""


class ISymExpr:
    """A size of a quickly deployable plugin's kernel: kept."""

    def __init__(self, value=0):
        self.expr, self.type, self.dtype = value, enums.get("PluginArgType"), enums.get("PluginArgDataType")


class ISymExprs:
    """A list of them."""

    def __init__(self, count=0):
        self._all = [ISymExpr()] * count
        self.nbSymExprs = count

    def __len__(self):
        return len(self._all)

    def __getitem__(self, at):
        return self._all[at]

    def __setitem__(self, at, expression):
        self._all[at] = expression


class KernelLaunchParams:
    """How a quickly deployable plugin's kernel is launched: kept."""

    def __init__(self):
        self.grid_x = self.grid_y = self.grid_z = self.block_x = self.block_y = self.block_z = self.shared_mem = 0
