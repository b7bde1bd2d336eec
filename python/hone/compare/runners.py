# SPDX-License-Identifier: Apache-2.0
"""What runs a model: functions from {input: array} to {output: array}."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import building
from ..base import WARNING
from ..operators import open_operators

Feed = Mapping[str, Any]
Run = Callable[[Feed], dict[str, np.ndarray]]


class Model:
    """An ONNX file, with other tensors as its outputs where `outputs` names some; `folder`: where its external data lie."""

    def __init__(self, path: str | os.PathLike, outputs: Sequence[str] = (), folder: str | os.PathLike | None = None):
        self.path, self.outputs = os.fspath(path), list(outputs)
        self.folder = os.fspath(folder) if folder else os.path.dirname(self.path) or "."
        self._moved = folder is not None

    def bytes(self) -> bytes:
        """Of the file with these outputs."""
        if not self.outputs:
            with open(self.path, "rb") as file:
                return file.read()
        from .. import graph as graphs

        graph = graphs.import_onnx(self.path)
        tensors = graph.tensors()
        graph.outputs = [tensors[name] for name in self.outputs]
        return graphs.export_bytes(graph, do_type_check=False)

    def load(self) -> building.Model:
        """For the library."""
        if self.outputs or self._moved:
            return building.Model.parse(self.bytes(), self.folder)
        return building.Model.load(self.path)


def engine(model: Model, device: str = "cpu", flags: Iterable[str] = (), *, feeds: Sequence[Feed] = (), profiles: Sequence[building.Profile] = (),
           profile: int = 0, libraries: Iterable[str] = (), load_cache: str = "", save_cache: str = "", save_plan: str = "", save_tactics: str = "") -> Run:
    """An engine of Hone's. `flags` are trtexec's build flags, `profiles` {input: (smallest, tuned, largest shape)}; without
    them sizes that are not fixed are those of `feeds`. `libraries` are those of operators. What is to be kept goes to the files that are
    named."""
    for library in libraries:
        open_operators(library)
    cache = None
    if load_cache or save_cache:
        content = b""
        if load_cache:
            with open(load_cache, "rb") as file:
                content = file.read()
        cache = building.TimingCache(content)
    loaded = model.load()
    plan = loaded.build(flags, device, threshold=WARNING, profiles=profiles or _around(feeds, loaded.inputs),
                        timing_cache=cache)
    if save_cache and cache is not None:
        with open(save_cache, "wb") as file:
            file.write(cache.bytes())
    if save_plan:
        plan.save(save_plan)
    if save_tactics:
        layers = {layer.name: {"implementation": layer.source, "tactic": layer.tactic, "inputs": [], "outputs": [], "polygraphy_class": "Algorithm"}
                  for layer in plan.layers()}
        with open(save_tactics, "w", encoding="utf-8") as file:
            json.dump({"replay": layers, "polygraphy_class": "TacticReplayData"}, file, indent=2)
    return _of_plan(plan, device, profile)


def _around(feeds, inputs) -> list[building.Profile]:
    """From the smallest to the largest shape that comes."""
    shapes = {name: [np.shape(feed[name]) for feed in feeds] for name, (_, sizes) in inputs.items() if feeds and -1 in sizes}
    return [{name: (list(map(min, zip(*all_of))), list(all_of[0]), list(map(max, zip(*all_of)))) for name, all_of in shapes.items()}] if shapes else []


def plan(path: str | os.PathLike, device: str = "cpu", profile: int = 0) -> Run:
    """An engine of a plan's file."""
    return _of_plan(building.load(path), device, profile)


def _of_plan(plan, device, profile) -> Run:
    context = plan.engine(device).context(profile)
    wanted = set(context.engine.inputs)
    return lambda feed: {name: np.array(value) for name, value in
                         context.run({name: value for name, value in feed.items() if name in wanted}).items()}


def reference(model: Model) -> Run:
    """Hone's operators by their plain meaning, node by node: the golden values."""
    loaded = model.load()
    return lambda feed: loaded.evaluate({name: value for name, value in feed.items() if name in loaded.inputs})


def onnx_runtime(model: Model, providers: Sequence[str] = (), level: str = "ORT_ENABLE_ALL") -> Run:
    """ONNX Runtime, of the package onnxruntime; `level` of its graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    known = onnxruntime.get_available_providers()
    chosen = [each for each in known if any(word.lower() in each.lower() for word in providers)] or ["CPUExecutionProvider"]
    as_it_stands = not model.outputs and not model._moved
    if not as_it_stands:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", model.folder)
    session = onnxruntime.InferenceSession(model.path if as_it_stands else model.bytes(), options, providers=chosen)
    names, wanted = [output.name for output in session.get_outputs()], {each.name for each in session.get_inputs()}
    return lambda feed: dict(zip(names, session.run(names, {name: value for name, value in feed.items() if name in wanted})))


def timed(name: str, run: Run, feeds: Sequence[Feed], warm_up: int = 0) -> dict[str, float]:
    """Runs them, after `warm_up` inferences on the first, and prints how long each took, in ms."""
    for _ in range(warm_up):
        run(feeds[0])
    times = []
    for feed in feeds:
        start = time.perf_counter()
        run(feed)
        times.append(1e3 * (time.perf_counter() - start))
    found = {"mean": float(np.mean(times)), "median": float(np.median(times)),
             **{f"p{part}": float(np.percentile(times, part)) for part in (90, 95, 99)}}
    print(f"{name} | Latency over {len(times)} iterations: " + ", ".join(f"{word} {value:.4g} ms" for word, value in found.items()))
    return found
