# SPDX-License-Identifier: Apache-2.0
"""Engines for the shapes that come: a program that says no range of shapes still gets tuned ones.

The first feed's shapes are tuned for, and each size that is not fixed may be from 1 to four times what it was, rounded up to a power of
two. A feed outside of all ranges gets an engine of its own, tuned for it, whose range reaches as much further; later feeds take the
engine whose tuned shapes are nearest among those that allow them. A size that only grows is thus tuned a few times, not at each
step. What was measured is kept, so that shapes that share kernels share their times. Plans may be kept in a folder, by the model's
contents, the flags and the device: another process then loads what this one has built.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import building
from .base import WARNING, Error, Log, version
from .building import Model, Plan, TimingCache
from .devices import Device
from .running import Context, Engine

Shapes = Mapping[str, tuple[int, ...]]
Range = dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]  # smallest, tuned, largest

MOST_ENGINES = 8  # of one model; the one that was used longest ago goes first


def default_folder() -> pathlib.Path:
    """Where plans are kept that no program has given a folder."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hone"


def widest(size: int) -> tuple[int, int]:
    """The range of a size that is `size` at first."""
    return min(size, 1), 1 << max(4 * size - 1, 1).bit_length()


def range_around(shapes: Shapes, sizes: Mapping[str, Sequence[int]]) -> Range:
    """A profile for shapes: what `sizes` has as -1 may change."""
    profile: Range = {}
    for name, shape in shapes.items():
        if -1 not in sizes.get(name, ()):
            continue
        ends = [widest(size) if known == -1 else (size, size) for size, known in zip(shape, sizes[name])]
        profile[name] = (tuple(low for low, _ in ends), tuple(shape), tuple(high for _, high in ends))
    return profile


def allows(profile: Range, shapes: Shapes) -> bool:
    """Whether the shapes lie in the range."""
    return all(len(low) == len(shapes.get(name, ())) and all(a <= size <= b for a, size, b in zip(low, shapes[name], high))
               for name, (low, _, high) in profile.items())


def distance(profile: Range, shapes: Shapes) -> float:
    """How far shapes are from what was tuned: in powers of two, over all sizes."""
    return sum(abs(math.log2(max(size, 1) / max(tuned, 1))) for name, (_, opt, _) in profile.items()
               for tuned, size in zip(opt, shapes[name]))


class Kept:
    """Plans in a folder, by a digest of what they were made of. A plan has its range beside it, in a small file that is written last."""

    def __init__(self, folder: str | os.PathLike, identity: bytes):
        self.folder = pathlib.Path(folder)
        self.key = hashlib.blake2b(identity, digest_size=16).hexdigest()

    def find(self, shapes: Shapes) -> tuple[Range, Plan] | None:
        """The nearest plan that allows the shapes."""
        found = []
        for path in sorted(self.folder.glob(f"{self.key}-*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                known = json.loads(path.read_text())["ranges"]
                profile: Range = {name: tuple(map(tuple, three)) for name, three in known.items()}
                if allows(profile, shapes):
                    found.append((distance(profile, shapes), path, profile))
        for _, path, profile in sorted(found, key=lambda each: each[0]):
            with contextlib.suppress(Error):  # another version's, or damaged: built anew
                return profile, building.load(path.with_suffix(".plan"))
        return None

    def add(self, profile: Range, plan: Plan) -> Plan:
        """Keeps a plan, and gives it as the file has it: its weights are then mapped, and shared with other processes that load it. A
        folder that cannot be written is no failure of the program that only wanted to be faster: the plan comes back as it is."""
        text = json.dumps({"ranges": profile}, sort_keys=True)
        path = self.folder / f"{self.key}-{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}.json"
        with contextlib.suppress(OSError, Error):
            self.folder.mkdir(parents=True, exist_ok=True)
            plan.save(path.with_suffix(".plan"))
            draft = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            draft.write_text(text)
            draft.replace(path)
            kept = building.load(path.with_suffix(".plan"))
            plan.close()
            return kept
        return plan


class Variant:
    """A plan's engine, its range, and contexts that are free."""

    def __init__(self, profile: Range, plan: Plan, engine: Engine, number: int = 0):
        self.profile, self.plan, self.engine, self.number = profile, plan, engine, number
        self.free: list[Context] = []

    def take(self) -> Context:
        """A context that nobody else uses."""
        try:
            return self.free.pop()
        except IndexError:
            return self.engine.context(self.number)


class ShapedEngines:
    """The engines of a model. Threads may share it: each inference has a context to itself while it runs."""

    def __init__(self, model: Callable[[], Model] | None, sizes: Mapping[str, Sequence[int]], device: Device, flags: Sequence[str] = (), *,
                 identity: bytes = b"", folder: str | os.PathLike | None = None, profiles: Sequence[Range] = (), log: Log | None = None,
                 threshold: int = WARNING):
        """`model()` gives the model, when one has to be built. `sizes`: of each input, -1 for what changes. `identity`: digest of
        the model, for the plans that `folder` keeps. `profiles`: the ranges to begin with, instead of those around the first feed."""
        self.sizes, self.device, self.flags = dict(sizes), device, list(flags)
        self._model, self._log, self._threshold = model, log, threshold
        self._lock, self._times = threading.Lock(), TimingCache()
        self._wanted, self._variants = list(profiles), []
        info = device.info
        made_for = (identity, version(), *flags, device.name, info.name, info.architecture, str(info.workers))
        self._kept = None if folder is None else Kept(folder, b"\0".join(part if isinstance(part, bytes) else part.encode()
                                                                        for part in made_for))
        self.built = self.loaded = 0  # engines that were, for who wants to know

    @classmethod
    def of_plan(cls, plan: Plan, device: Device, log: Log | None = None, threshold: int = WARNING) -> ShapedEngines:
        """The profiles of a plan, and no others."""
        engine = plan.engine(device, log, threshold)
        self = cls(None, {name: sizes for name, (_, sizes) in engine.inputs.items()}, device, log=log, threshold=threshold)
        for number, profile in enumerate(json.loads(plan.json())["profiles"]):
            ranges = {each["tensor"]: tuple(tuple(each[end]) for end in ("min", "opt", "max")) for each in profile["ranges"]}
            self._variants.append(Variant(ranges, plan, engine, number))
        return self

    def _build(self, shapes: Shapes) -> Variant:
        profile = next((each for each in self._wanted if allows(each, shapes)), None) or range_around(shapes, self.sizes)
        kept = self._kept.find(shapes) if self._kept else None
        if kept:
            with contextlib.suppress(Error):  # of a machine that differs in what its digest does not say
                variant = Variant(*kept, kept[1].engine(self.device, self._log, self._threshold))
                self.loaded += 1
                return variant
        with self._model() as model:
            plan = model.build(self.flags, self.device, self._log, self._threshold, profiles=[profile] if profile else [],
                               timing_cache=self._times)
        self.built += 1
        if self._kept:
            plan = self._kept.add(profile, plan)
        return Variant(profile, plan, plan.engine(self.device, self._log, self._threshold))

    def variant(self, shapes: Shapes) -> Variant:
        """The engine for shapes; it is built where there is none."""
        variants = self._variants
        if len(variants) == 1 and allows(variants[0].profile, shapes):
            return variants[0]
        with self._lock:
            fitting = [each for each in self._variants if allows(each.profile, shapes)]
            if not fitting:
                if self._model is None:
                    ranges = "; ".join(f"{name} from {list(low)} to {list(high)}" for each in self._variants
                                       for name, (low, _, high) in each.profile.items())
                    raise Error(f"the plan has no profile for {', '.join(f'{name} {list(shape)}' for name, shape in shapes.items())}"
                                f"\n  hint: it allows {ranges}")
                fitting = [self._build(shapes)]
                self._variants = self._variants[-(MOST_ENGINES - 1):] + fitting
            best = min(fitting, key=lambda each: distance(each.profile, shapes))
            if self._model is not None and best is not self._variants[-1]:
                self._variants = [each for each in self._variants if each is not best] + [best]
            return best

    @contextlib.contextmanager
    def context(self, shapes: Shapes) -> Iterator[Context]:
        """A context for the shapes, to oneself until the end of the block."""
        variant = self.variant(shapes)
        context = variant.take()
        try:
            yield context
        finally:
            variant.free.append(context)

    @property
    def latest(self) -> Variant:
        """The engine that was used last, of those that there are."""
        return self._variants[-1]

    @property
    def engines(self) -> list[Engine]:
        """Those that are ready, the last used behind the others."""
        return [each.engine for each in self._variants]


def with_level(level: int, flags: Sequence[str]) -> list[str]:
    """Flags of a build, of this level where they do not say another."""
    name = "--builderOptimizationLevel"
    return [*([] if any(flag.startswith(name) for flag in flags) else [f"{name}={level}"]), *flags]


def digest_of(*parts: Any) -> bytes:
    """Of bytes, one behind the other."""
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.digest()
