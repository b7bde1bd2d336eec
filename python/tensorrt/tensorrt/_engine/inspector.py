# SPDX-License-Identifier: Apache-2.0
"""EngineInspector: what an engine's layers are, as JSON or in lines."""

import json

from .._base import enums, surface
from .._base.reports import Told

_Format = enums.ALL["LayerInformationFormat"]


class EngineInspector(Told):
    """Tells of an engine's layers; of the shapes of `execution_context` where that is set."""

    def __init__(self, engine):
        self._engine, self._logger, self._context = engine, engine._logger, None

    @property
    def execution_context(self):
        """Whose profile is told of."""
        return self._context

    @execution_context.setter
    def execution_context(self, context):
        if context is not None and context.engine is not self._engine:
            self._failed("the context is another engine's")
            return
        self._context = context

    def _profile(self):
        return self._context.active_optimization_profile if self._context is not None else 0

    def _layers(self, profile):
        """The layers as trtexec's --exportLayerInfo writes them: texts, or dictionaries where the build kept details."""
        layers = json.loads(self._engine._plan.layers_json(profile))
        return [_in_words_of(layer) for layer in layers.get("Layers", [])], layers.get("Bindings", [])

    def get_layer_information(self, layer_index, format):
        """One layer; those of later profiles come behind those of the first."""
        profiles = self._engine.num_optimization_profiles
        per_profile = max(1, self._engine.num_layers // max(1, profiles))
        profile, index = (divmod(layer_index, per_profile) if self._context is None else (self._profile(), layer_index % per_profile))
        layers = self._layers(profile)[0] if 0 <= profile < profiles else []
        if not 0 <= index < len(layers):
            return self._failed(f"there is no layer {layer_index}; the engine has {self._engine.num_layers}", "")
        return _text(layers[index], format)

    def get_engine_information(self, format):
        """All layers, inputs and outputs."""
        layers, bindings = self._layers(self._profile())
        if format == _Format.ONELINE:
            return "\n".join(_text(layer, format) for layer in layers) + "\nBindings:\n" + "\n".join(bindings) + "\n"
        return json.dumps({"Layers": layers, "Bindings": bindings})


_TYPES = {"Float": "FP32", "Half": "FP16", "BFloat16": "BF16", "Int8": "INT8", "Int32": "INT32", "Int64": "INT64", "Bool": "BOOL"}


def _in_words_of(layer):
    """A layer in the words of this release: 11 tells types and layouts of tensors apart."""
    if not isinstance(layer, dict):
        return layer
    layer.setdefault("Origin", layer.get("ParameterType", layer.get("LayerType", "")).upper())
    for side in ("Inputs", "Outputs"):
        for tensor in layer.get(side, []):
            kind, layout = tensor.pop("Format/Datatype", ""), tensor.pop("Layout", None)
            kind, layout = _TYPES.get(kind, kind), "Row major linear" if layout is None else layout
            if surface.MAJOR == "11":
                tensor["Datatype"], tensor["Format"] = kind, f"{layout} format"
            else:
                tensor["Format/Datatype"] = f"{layout} {kind} format"
    return layer


def _text(layer, format):
    if format == _Format.JSON:
        return json.dumps(layer)
    if not isinstance(layer, dict):
        return layer
    return ", ".join(f"{key}: {value if not isinstance(value, (list, dict)) else json.dumps(value)}" for key, value in layer.items())
