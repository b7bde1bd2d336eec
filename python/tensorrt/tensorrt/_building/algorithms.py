# SPDX-License-Identifier: Apache-2.0
"""IAlgorithmSelector: a program chooses among the tactics of each layer, or records which were chosen.

The network is built, the program is asked about each layer's measured candidates, and where it does not want the one that was chosen,
the network is built once more from times in which the wanted ones are by far the fastest. So the choice goes the way that all choices
go, layouts included.
"""

import hashlib
import json

import hone

from .._base import enums, native
from .._base.reports import called
from .._base.values import Dims

_FAVOUR = 1e-6  # on the time of what is wanted


def _number(text):
    """The same number for a text in every process, of 63 bits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


class IAlgorithmSelector:
    """Chooses tactics; to be derived from: select_algorithms(context, choices) -> indices, report_algorithms(contexts, choices)."""

    def __init__(self):
        pass


class IAlgorithmIOInfo:
    """How a tactic reads or writes a tensor."""

    def __init__(self, dtype, shape):
        self.dtype = dtype
        strides = [1] * len(shape)
        for at in range(len(shape) - 2, -1, -1):
            strides[at] = strides[at + 1] * max(shape[at + 1], 1)
        self.strides = Dims(strides)
        self.vectorized_dim, self.components_per_element = -1, 1
        self.tensor_format = enums.TensorFormat.LINEAR


class IAlgorithmVariant:
    """A tactic: its family and the tactic with its parameters, as numbers."""

    def __init__(self, text):
        self.implementation, self.tactic = _number(text.partition("(")[0].partition(" ")[0]), _number(text)


class IAlgorithm:
    """A candidate of a layer."""

    def __init__(self, candidate, tensors):
        self._text, self._tensors = candidate.tactic, tensors
        self.algorithm_variant = IAlgorithmVariant(candidate.tactic)
        self.timing_msec, self.workspace_size = max(candidate.ms, 0.0), 0

    def get_algorithm_io_info(self, index):
        """Of an input, or behind them of an output."""
        return self._tensors[index] if 0 <= index < len(self._tensors) else None


class IAlgorithmContext:
    """The layer that tactics are chosen for."""

    def __init__(self, name, inputs, outputs):
        self.name, self.num_inputs, self.num_outputs = name, len(inputs), len(outputs)
        self._shapes = [*inputs, *outputs]

    def get_shape(self, index):
        """[smallest, likeliest, largest shape] of an input, or behind them of an output."""
        return [Dims(self._shapes[index])] * 3 if 0 <= index < len(self._shapes) else []


class _Question:
    """What a program is asked of one layer."""

    def __init__(self, name, layer):
        sides = [list(side.values()) for side in (layer.inputs, layer.outputs)]
        self.context = IAlgorithmContext(name, *[[shape for _, shape in side] for side in sides])
        tensors = [IAlgorithmIOInfo(_dtype(dtype), shape) for side in sides for dtype, shape in side]
        self.candidates = [candidate for candidate in layer.candidates if candidate.ms >= 0 and candidate.note == "" or candidate.chosen]
        self.choices = [IAlgorithm(candidate, tensors) for candidate in self.candidates]
        self.chosen = next((at for at, candidate in enumerate(self.candidates) if candidate.chosen), None)


def _dtype(dtype):
    known = None if dtype is None else native.dtype_of(hone.arrays.type_of(dtype))
    return enums.DataType.FLOAT if known is None else known


def _questions(plan):
    """A question for each layer that has a choice, in the order of execution, profile by profile."""
    questions, seen = [], {}
    for profile in range(plan.info().profiles):
        for layer in plan.layers(profile):
            if not any(candidate.chosen for candidate in layer.candidates):
                continue
            seen[layer.name] = seen.get(layer.name, -1) + 1
            questions.append(_Question(layer.name + (f" [{seen[layer.name]}]" if seen[layer.name] else ""), layer))
    return questions


def _favouring(cache, wishes):
    """The cache's bytes with the times of what is wanted made small. `wishes`: [(candidates, wanted ones)] of layers."""
    head, *lines = cache.bytes().decode().splitlines()
    entries = [json.loads(line) for line in lines if line]
    for candidates, wanted in wishes:
        times = {(candidate.tactic, candidate.ms) for candidate in candidates}
        problems = {entry["key"].split(" | ")[0] for entry in entries if (entry["key"].split(" | ")[1], entry["ms"]) in times}
        texts = {candidate.tactic for candidate in wanted}
        for entry in entries:
            problem, tactic = entry["key"].split(" | ")[:2]
            if problem in problems and tactic in texts:
                entry["ms"] *= _FAVOUR
    return "\n".join([head, *map(json.dumps, entries), ""]).encode()


def select(selector, build, cache, builder):
    """A plan whose tactics the program agrees with. `build(cache)` makes one; None with the reason in the log where there is none."""
    times = hone.TimingCache(b"" if cache is None else cache.bytes())
    plan = build(times)
    wishes = []
    for question in _questions(plan):
        answer = called(selector.select_algorithms, question.context, question.choices)
        if answer is None:
            return builder._failed(f"the algorithm selector failed for the layer {question.context.name}")
        indices = [int(index) for index in answer]
        if any(not 0 <= index < len(question.choices) for index in indices):
            return builder._failed(f"the algorithm selector chose {indices} of {len(question.choices)} tactics for {question.context.name}")
        if indices and question.chosen not in indices:
            wishes.append((question.candidates, [question.candidates[index] for index in indices]))
    if wishes:
        plan = build(hone.TimingCache(_favouring(times, wishes)))
    if cache is not None:
        cache.merge(times)
    final = _questions(plan)
    called(selector.report_algorithms, [question.context for question in final], [question.choices[question.chosen] for question in final])
    return plan
