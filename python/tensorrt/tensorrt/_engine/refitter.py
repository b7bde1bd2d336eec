# SPDX-License-Identifier: Apache-2.0
"""Refitter: other weights for an engine, in place.

Weights are staged by name, or by layer and role, and put in together: Hone makes the same plan of them without timing anything, and it
takes the old one's place under the engine and its contexts, which keep their shapes, addresses and allocators.
"""

import hone
import numpy as np

from .._base import enums, native
from .._base.reports import Managed, relay
from .._base.values import Weights, type_of_array, weights_of
from .._building import calibration

_Role, _Location = enums.ALL["WeightsRole"], enums.TensorLocation


class Refitter(Managed):
    """Exchanges weights of an engine that was built with BuilderFlag.REFIT or STRIP_PLAN."""

    max_threads, weights_validation = 1, True  # kept

    def __init__(self, engine, logger):
        if not callable(getattr(logger, "log", None)):
            raise TypeError("Refitter(engine, logger): the logger is a tensorrt.ILogger")
        self._engine, self._logger = engine, logger
        self._staged, self._known = {}, None
        self._layers = {(layer, role): name for layer, role, name in engine._notes.get("weights", ())}
        if not engine.refittable:
            self._failed("the engine was built neither with BuilderFlag.REFIT nor with STRIP_PLAN: it takes no other weights",
                         code="INVALID_CONFIG")

    @property
    def logger(self):
        """The program's."""
        return self._logger

    def _details(self):
        """{name: what Hone says of it} of the weights that can be exchanged; none where the plan keeps no network."""
        if self._known is None:
            try:
                with self._engine._plan.network() as network:
                    details = network.weight_details()
            except hone.Error as error:
                return self._failed(native.text_of(error), {}, "INVALID_STATE")
            self._known = {name: detail for name, detail in details.items() if detail.refusal is None}
            for name, detail in self._known.items():  # layers that were read from a file have their node's name
                self._layers.setdefault((detail.node, detail.role.upper()), name)
        return self._known

    def _dtype(self, name):
        return type_of_array(self._details()[name].dtype)

    def _is_there(self, name):
        if name in self._details():
            return True
        return self._failed(f"the engine has no weights {name!r} that could be exchanged", False)

    # ---- staging ----

    def set_named_weights(self, name, weights, location=None):
        """Stages weights under an initialiser's name; they stay the program's until the refit."""
        held = weights_of(weights)
        if not self._is_there(name):
            return False
        detail = self._details()[name]
        count = int(np.prod(detail.shape, dtype=np.int64))
        if len(held) != count:
            return self._failed(f"the weights {name} are {count} numbers {detail.shape}, {len(held)} were given", False)
        if held.dtype != self._dtype(name):
            return self._failed(f"the weights {name} are {self._dtype(name)}, {held.dtype} were given", False)
        self._staged[name] = (held, _Location.HOST if location is None else location)
        return True

    def set_weights(self, layer_name, role, weights):
        """The same by layer and role."""
        self._details()
        name = self._layers.get((layer_name, _Role(role).name))
        if name is None:
            return self._failed(f"the layer {layer_name!r} has no weights of the role {_Role(role).name} that could be exchanged", False)
        return self.set_named_weights(name, weights)

    def unset_named_weights(self, name):
        """Takes staged ones back; False where there are none."""
        return self._staged.pop(name, None) is not None

    def get_named_weights(self, name):
        """What is staged; empty Weights where nothing is."""
        return self._staged[name][0] if name in self._staged else Weights()

    def get_weights_location(self, name):
        """Where what is staged lies."""
        return self._staged[name][1] if name in self._staged else _Location.HOST

    def get_weights_prototype(self, name):
        """Type and number of what is wanted, without contents."""
        if not self._is_there(name):
            return Weights()
        return Weights(self._dtype(name), 0, int(np.prod(self._details()[name].shape, dtype=np.int64)))

    # ---- what there is ----

    def get_all_weights(self):
        """The names of all that can be exchanged."""
        return list(self._details())

    def get_missing_weights(self):
        """The names of those that the plan came without and that are not staged yet."""
        return [name for name, detail in self._details().items() if detail.missing and name not in self._staged]

    def _in_layers(self, names):
        names = set(names)
        found = [(layer, getattr(_Role, role)) for (layer, role), name in self._layers.items() if name in names and hasattr(_Role, role)]
        return [layer for layer, _ in found], [role for _, role in found]

    def get_all(self):
        """(layers, roles) of all that can be exchanged."""
        return self._in_layers(self.get_all_weights())

    def get_missing(self):
        """(layers, roles) of those that are missing."""
        return self._in_layers(self.get_missing_weights())

    # ---- putting in ----

    def _array(self, name):
        held, location = self._staged[name]
        detail = self._details()[name]
        if location == _Location.DEVICE and not native.on_host():
            return calibration.array_at(held._address, detail.shape, np.dtype(detail.dtype))
        return held._flat().view(detail.dtype).reshape(detail.shape)

    def refit_cuda_engine(self):
        """Puts the staged weights in; False with the reason in the log where some are missing."""
        missing = self.get_missing_weights()
        if missing:
            return self._failed(f"weights are missing: {', '.join(missing[:5])}" + (" ..." if len(missing) > 5 else ""), False, "INVALID_STATE")
        receive, threshold = relay(self._logger)
        try:
            with self._engine._plan.network() as network:
                for name in self._staged:
                    network.set_weight(name, self._array(name))
                plan = self._engine._plan.refit(network, native.device(), receive, threshold)
            self._engine._load(plan)
        except hone.Error as error:
            return self._failed(native.text_of(error), False, "UNSPECIFIED_ERROR")
        self._staged, self._known = {}, None
        return True

    def refit_cuda_engine_async(self, stream):
        """The same: done when it returns."""
        int(stream)
        return self.refit_cuda_engine()

    # ---- ranges of INT8 are no weights ----

    def set_dynamic_range(self, tensor_name, range):
        """They are decided when an engine is built."""
        return self._failed(f"the range of {tensor_name} was decided when the engine was built", False)

    def get_dynamic_range(self, tensor_name):
        """Not kept."""
        return None

    def get_tensors_with_dynamic_range(self):
        """None."""
        return []
