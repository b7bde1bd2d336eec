# SPDX-License-Identifier: Apache-2.0
"""Loops, conditionals and attention: objects beside the list of layers, whose boundary layers stand in it."""

from .._base import enums
from .add import member
from .layer_classes import CLASSES
from .layers import ILayer, enum, flag, number


class ILoopBoundaryLayer(ILayer):
    """A layer at the edge of a loop."""

    __slots__ = ()

    @property
    def loop(self):
        """The loop; of a model's own, one that has a name alone."""
        if self._record.owner is not None:
            return self._record.owner
        loop = object.__new__(ILoop)
        loop._network, loop.name = self._record.network, self._record.name
        return loop


class ITripLimitLayer(ILoopBoundaryLayer):
    """How often a loop runs: so many times, or while a condition holds."""

    __slots__ = ()
    kind = enum("kind", "TripLimit", "COUNT")


class IRecurrenceLayer(ILoopBoundaryLayer):
    """A value that goes from one iteration to the next; input 1 closes the loop."""

    __slots__ = ()


class IIteratorLayer(ILoopBoundaryLayer):
    """One slice of a tensor for each iteration."""

    __slots__ = ()
    axis, reverse = number("axis"), flag("reverse")


class ILoopOutputLayer(ILoopBoundaryLayer):
    """The last value, or those of all iterations."""

    __slots__ = ()
    axis, kind = number("axis"), enum("kind", "LoopOutput", "LAST_VALUE")


class IIfConditionalBoundaryLayer(ILayer):
    """A layer at the edge of a conditional."""

    __slots__ = ()
    conditional = property(lambda self: self._record.owner)


class IConditionLayer(IIfConditionalBoundaryLayer):
    """What decides."""

    __slots__ = ()


class IIfConditionalInputLayer(IIfConditionalBoundaryLayer):
    """A value that only a branch reads."""

    __slots__ = ()


class IIfConditionalOutputLayer(IIfConditionalBoundaryLayer):
    """The value of the branch that was taken."""

    __slots__ = ()


class IAttentionBoundaryLayer(ILayer):
    """A layer at the edge of an attention."""

    __slots__ = ()
    attention = property(lambda self: self._record.owner)


class IAttentionInputLayer(IAttentionBoundaryLayer):
    """Query, key and value."""

    __slots__ = ()


class IAttentionOutputLayer(IAttentionBoundaryLayer):
    """What the attention gives."""

    __slots__ = ()


class _Owner:
    """What has boundary layers."""

    def __init__(self, network, word):
        self._network = network
        self.name = f"{word} {len(network._owners)}"
        network._owners.append(self)

    def _boundary(self, layer_kind, inputs, outputs, cls, /, **params):
        layer = self._network._add(layer_kind, inputs, outputs, None, cls, **params)
        if layer is not None:
            layer._record.owner = self
        return layer

    def _records(self, kind=None):
        return [record for record in self._network._records if record.owner is self and kind in (None, record.kind)]


class ILoop(_Owner):
    """A loop: what lies between its recurrences, iterators and outputs runs again and again."""

    def add_recurrence(self, initial_value):
        return self._boundary("RECURRENCE", [initial_value], 1, IRecurrenceLayer)

    def add_trip_limit(self, tensor, kind):
        return self._boundary("TRIP_LIMIT", [tensor], 0, ITripLimitLayer, kind=member("TripLimit", kind, "add_trip_limit"))

    def add_iterator(self, tensor, axis=0, reverse=False):
        return self._boundary("ITERATOR", [tensor], 1, IIteratorLayer, axis=int(axis), reverse=bool(reverse))

    def add_loop_output(self, tensor, kind, axis=0):
        return self._boundary("LOOP_OUTPUT", [tensor], 1, ILoopOutputLayer, kind=member("LoopOutput", kind, "add_loop_output"), axis=int(axis))


class IIfConditional(_Owner):
    """One of two branches."""

    def set_condition(self, condition):
        return self._boundary("CONDITION", [condition], 0, IConditionLayer)

    def add_input(self, input):
        return self._boundary("CONDITIONAL_INPUT", [input], 1, IIfConditionalInputLayer)

    def add_output(self, true_subgraph_output, false_subgraph_output):
        return self._boundary("CONDITIONAL_OUTPUT", [true_subgraph_output, false_subgraph_output], 1, IIfConditionalOutputLayer)


class IAttention(_Owner):
    """softmax(query key^T) value, in one piece where there is a kernel for it."""

    def __init__(self, network, query, key, value, norm_op, causal):
        super().__init__(network, "Attention")
        network._counted += 1
        self.norm_op = norm_op
        self.metadata, self.decomposable, self.num_ranks = "", False, 1
        self._causal = causal if isinstance(causal, str) else "UPPER_LEFT" if causal else "NONE"
        self._forms = {}
        self.normalization_quantize_to_type = enums.DataType.FLOAT
        self._entry = self._exit = None
        self._entry = self._boundary("ATTENTION_INPUT", [query, key, value], 0, IAttentionInputLayer)
        if self._entry is None:
            network._owners.remove(self)
            return
        self._exit = self._boundary("ATTENTION_OUTPUT", [], 1, IAttentionOutputLayer)
        self._exit._record.inputs = list(self._entry._record.inputs)

    @property
    def norm_op(self):
        return self._norm_op

    @norm_op.setter
    def norm_op(self, op):
        self._norm_op = member("AttentionNormalizationOp", op, "norm_op")

    @property
    def normalization_quantize_to_type(self):
        return self._quantized

    @normalization_quantize_to_type.setter
    def normalization_quantize_to_type(self, dtype):
        self._quantized = member("DataType", dtype, "normalization_quantize_to_type")

    @property
    def mask(self):
        return self._entry.get_input(3)

    @mask.setter
    def mask(self, tensor):
        self.set_input(3, tensor)

    @property
    def normalization_quantize_scale(self):
        return self._entry.get_input(4)

    @normalization_quantize_scale.setter
    def normalization_quantize_scale(self, tensor):
        self.set_input(4, tensor)

    @property
    def causal(self):
        return self._causal != "NONE"

    @causal.setter
    def causal(self, causal):
        self._mask_by("UPPER_LEFT" if causal else "NONE")

    def _mask_by(self, kind):
        self._causal = kind
        self._network._changed(self._exit._record)

    # ---- of 11 ----

    causal_kind = property(lambda self: getattr(enums.get("CausalMaskKind"), self._causal),
                           lambda self, kind: self._mask_by(member("CausalMaskKind", kind, "causal_kind").name),
                           doc="Which keys a query sees, from the first query on or up to the last one.")
    query_lengths = property(lambda self: self._entry.get_input(5), lambda self, tensor: self.set_input(5, tensor), doc="Tokens of each batch.")
    key_value_lengths = property(lambda self: self._entry.get_input(6), lambda self, tensor: self.set_input(6, tensor), doc="The same of keys.")

    def _form(self, name):
        return self._forms.get(name, enums.get("AttentionIOForm").PADDED_BHND)

    def _set_form(self, name, form):
        if member("AttentionIOForm", form, name).name != "PADDED_BHND":
            self._network._failed(f"{self.name}: {name} stays PADDED_BHND; bring batches of one length and say their lengths")

    query_form = property(lambda self: self._form("query_form"), lambda self, form: self._set_form("query_form", form), doc="How it lies.")
    key_value_form = property(lambda self: self._form("key_value_form"), lambda self, form: self._set_form("key_value_form", form), doc="The same.")

    def _sync(self, index, tensor):
        record = self._exit._record
        record.inputs += [None] * (index + 1 - len(record.inputs))
        record.inputs[index] = tensor
        self._entry._record.inputs = list(record.inputs)
        self._network._changed(record)

    @property
    def num_inputs(self):
        return len(self._entry._record.inputs)

    @property
    def num_outputs(self):
        return 1

    def get_input(self, index):
        return self._entry.get_input(index)

    def get_output(self, index):
        return self._exit.get_output(index)

    def set_input(self, index, input):
        self._network._own(input, "set_input")
        self._sync(index, input)
        return True


_BOUNDARIES = {"TRIP_LIMIT": ITripLimitLayer, "RECURRENCE": IRecurrenceLayer, "ITERATOR": IIteratorLayer, "LOOP_OUTPUT": ILoopOutputLayer,
               "CONDITION": IConditionLayer, "CONDITIONAL_INPUT": IIfConditionalInputLayer, "CONDITIONAL_OUTPUT": IIfConditionalOutputLayer,
               "ATTENTION_INPUT": IAttentionInputLayer, "ATTENTION_OUTPUT": IAttentionOutputLayer}


def class_of(kind):
    """The class of a kind of layer."""
    return _BOUNDARIES.get(kind) or CLASSES[kind]


class _AddFlow:
    """The network's methods that make them."""

    def add_loop(self):
        return ILoop(self, "Loop")

    def add_if_conditional(self):
        return IIfConditional(self, "Conditional")

    def add_attention(self, query, key, value, norm_op, causal):
        made = IAttention(self, query, key, value, norm_op, bool(causal))
        return made if made._exit is not None else None

    def add_attention_v2(self, query, key, value, norm_op, causal_kind):
        made = IAttention(self, query, key, value, norm_op, member("CausalMaskKind", causal_kind, "add_attention_v2").name)
        return made if made._exit is not None else None
