# SPDX-License-Identifier: Apache-2.0
"""Lists what models ask for, hands it out in bundles to a worker on each node of a kind, and keeps what they measured.

A worker that dies loses its bundle alone, which is handed out again key by key; the key that takes a second worker with it is rejected.
A node whose fixed problem takes longer or shorter than on most of its kind is given nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import threading

from . import program
from .program import FarmError
from .store import Store

PATIENCE = 60  # seconds for the first workers to be there; who comes later is judged by itself
LOST_EARLY = 3  # workers that may end before they are given anything
HEADER = '{"hone_timing_cache":1}'


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of device: a resource of Ray's that its nodes declare, and the name of the device on them."""

    resource: str
    device: str = "0"

    @classmethod
    def parse(cls, text: str) -> Kind:
        """Of resource[=device]."""
        resource, _, device = text.partition("=")
        if not resource:
            raise FarmError(f"{text} is no kind; write resource, or resource=device: h100=cuda:0")
        return cls(resource, device or "0")


@dataclasses.dataclass
class Report:
    """What became of a kind."""

    kind: str = ""  # the digest that names its files
    problems: int = 0  # that the models ask for
    known: int = 0  # of those in the store before
    timed: int = 0  # tactics
    rejected: list = dataclasses.field(default_factory=list)  # (key, why)
    refused_nodes: list = dataclasses.field(default_factory=list)
    cache: str = ""  # its URL


class Worker:
    """On a node of the cluster, with a device for itself."""

    def __init__(self, device: str):
        self.device = device

    def introduce(self):
        """Its node, process and device, and what the fixed problem takes."""
        return {"node": os.uname().nodename, "process": os.getpid(), "description": program.describe(self.device),
                "ms": program.probe(self.device)}

    def tune(self, keys, flags, timeout):
        """What `hone tune` says, and the lines that it wrote."""
        return program.tune(keys, self.device, flags, timeout)


def bundles(problems, seconds: float):
    """Lists of keys that take about so long to time together."""
    bundle, total = [], 0.0
    for problem in problems:
        if bundle and total + problem["seconds"] > seconds:
            yield bundle
            bundle, total = [], 0.0
        bundle.append(problem["key"])
        total += problem["seconds"]
    if bundle:
        yield bundle


class KindRun:
    """The work on one kind of device."""

    def __init__(self, ray, kind: Kind, store: Store, flags, seconds: float, tolerance: float, timeout: float, say):
        self.ray, self.kind, self.store, self.flags = ray, kind, store, tuple(flags)
        self.seconds, self.tolerance, self.timeout, self.say = seconds, tolerance, timeout, say
        self.report, self.queue, self.failures = Report(), [], {}
        self.waiting = {}  # a result to come -> its worker and its bundle; None: it introduces itself
        self.description = None
        self.lost_early = 0

    # ---- Workers

    def slots(self) -> int:
        """How many workers there may be: one for each GPU, or for each node."""
        nodes = [node for node in self.ray.nodes() if node["Alive"] and node["Resources"].get(self.kind.resource, 0) >= 1]
        if self.kind.device.startswith("cuda"):
            return sum(int(node["Resources"][self.kind.resource]) for node in nodes)
        return len(nodes)

    def hire(self):
        """Asks the cluster for a worker, which introduces itself."""
        options = {"resources": {self.kind.resource: 1}, "num_cpus": 0, "max_restarts": 0}
        if self.kind.device.startswith("cuda"):
            options["num_gpus"] = 1
        else:
            cores = [node["Resources"].get("CPU", 0) for node in self.ray.nodes() if node["Resources"].get(self.kind.resource, 0) >= 1]
            options["num_cpus"] = min(cores)
        worker = self.ray.remote(Worker).options(**options).remote(self.kind.device)
        self.waiting[worker.introduce.remote()] = (worker, None)

    def admits(self, introduction) -> bool:
        """Whether a node is like most of its kind."""
        node, ms = introduction["node"], introduction["ms"]
        usual = statistics.median_low([*self.store.probes(self.report.kind).values(), ms])
        if abs(ms / usual - 1) <= self.tolerance:
            return True
        self.report.refused_nodes.append((node, ms, usual))
        self.say(f"{node} is left out: the fixed problem takes {ms:.3f} ms there, {usual:.3f} ms on others")
        return False

    def welcome(self, results):
        """Takes in workers that introduced themselves: first what they all say, then whom to give work to."""
        introductions = []
        for result in results:
            worker, _ = self.waiting.pop(result)
            try:
                introductions.append((worker, self.ray.get(result)))
            except self.ray.exceptions.RayActorError as error:
                self.lost_early += 1
                if self.lost_early >= LOST_EARLY:
                    raise FarmError(f"workers of {self.kind.resource} end before they are given anything: {str(error).splitlines()[0]}") from None
                self.hire()
        for _, introduction in introductions:
            self.know(introduction["description"])
            self.store.put_probe(self.report.kind, introduction["node"], introduction["ms"])
        for worker, introduction in introductions:
            if introduction["description"]["key"] != self.description["key"]:
                raise FarmError(f"{introduction['node']} declares {self.kind.resource} and is another device, or has another Hone: "
                                f"{introduction['description']['key']}, not {self.description['key']}")
            if self.admits(introduction):
                yield worker

    def know(self, description):
        """What the kind is; the first worker says."""
        if self.description is None:
            self.description = description
            self.report.kind = description["kind"]

    # ---- Work

    def list_problems(self, models):
        """What the models ask for and the store lacks, each once."""
        problems = {}
        for model, flags in models:
            for problem in program.problems(model, [*self.flags, *flags], self.description):
                problems.setdefault(problem["key"], problem)
        done = self.store.done(self.report.kind)
        missing = [problem for key, problem in problems.items() if Store.digest(key, self.flags) not in done]
        self.report.problems, self.report.known = len(problems), len(problems) - len(missing)
        missing.sort(key=lambda problem: -problem["seconds"])
        self.queue = list(bundles(missing, self.seconds))
        self.say(f"{self.kind.resource} ({self.report.kind}): {len(problems)} problems, {self.report.known} known, "
                 f"{len(self.queue)} bundles")

    def give(self, worker):
        """The next bundle; a worker that none is left for goes."""
        if not self.queue:
            self.ray.kill(worker)
            return
        bundle = self.queue.pop(0)
        self.waiting[worker.tune.remote(bundle, self.flags, self.timeout)] = (worker, bundle)

    def keep(self, summary, text, bundle):
        """The results of a bundle."""
        self.store.put(self.report.kind, text, self.flags)
        self.report.timed += summary["timed"]
        found = [(each["key"], each["why"]) for each in [*summary["rejected"], *summary["refused"]]]
        self.report.rejected += found
        for key, why in found:
            if key in bundle:  # all of it: nothing else says that it was asked
                self.reject(key, why)

    def reject(self, key: str, why: str):
        """So that nobody asks for the key again."""
        line = json.dumps({"key": f"{key} | none | {self.description['key']}", "ms": -1, "spread": 0, "samples": 0, "note": why})
        self.store.put(self.report.kind, f"{HEADER}\n{line}\n", self.flags)

    def lose(self, bundle, why: str):
        """A bundle whose worker is gone: once more, key by key; a key that this happened to twice is rejected."""
        for key in bundle:
            self.failures[key] = self.failures.get(key, 0) + (1 if len(bundle) == 1 else 0.5)
            if len(bundle) == 1 and self.failures[key] >= 1.5:
                self.report.rejected.append((key, why))
                self.reject(key, why)
            else:
                self.queue.append([key])

    def take(self, result):
        """A result of a bundle; its worker gets the next one, or is followed by another."""
        worker, bundle = self.waiting.pop(result)
        try:
            summary, text = self.ray.get(result)
        except self.ray.exceptions.RayActorError as error:
            self.say(f"a worker of {self.kind.resource} is gone; its {len(bundle)} problems are handed out again")
            self.lose(bundle, f"twice: the worker ended: {str(error).splitlines()[0]}")
            if self.queue:
                self.hire()
            return
        self.keep(summary, text, bundle)
        self.give(worker)

    def run(self, models) -> Report:
        """All of it."""
        slots = self.slots()
        if slots == 0:
            raise FarmError(f"no node declares {self.kind.resource}: ray start --resources='{{\"{self.kind.resource}\": 1}}'")
        for _ in range(slots):
            self.hire()
        here, _ = self.ray.wait(list(self.waiting), num_returns=len(self.waiting), timeout=PATIENCE)
        if not here:
            here, _ = self.ray.wait(list(self.waiting), num_returns=1)
        workers = list(self.welcome(here))
        while self.description is None:
            workers += self.welcome(self.ray.wait(list(self.waiting), num_returns=1)[0])
        self.list_problems(models)
        for worker in workers:
            self.give(worker)
        while self.queue or any(bundle is not None for _, bundle in self.waiting.values()):
            if not self.waiting:
                raise FarmError(f"no node of {self.kind.resource} is like the others; --probe-tolerance says how alike they have to be")
            for result in self.ray.wait(list(self.waiting), num_returns=1)[0]:
                if self.waiting[result][1] is None:
                    for worker in self.welcome([result]):
                        self.give(worker)
                else:
                    self.take(result)
        for worker, _ in self.waiting.values():  # they came too late
            self.ray.kill(worker)
        self.store.merge(self.report.kind)
        self.report.cache = self.store.cache_name(self.report.kind)
        return self.report


def connect(address, kinds):
    """Ray, on a cluster or on this machine alone, which then is of all kinds that are named."""
    try:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray
    except ImportError:
        raise FarmError('Ray is not installed; pip install "hone[ray]", or see the recipes without it in docs/farm.md') from None
    if not ray.is_initialized():
        if address:
            ray.init(address=address, log_to_driver=False)
        else:
            ray.init(resources={kind.resource: 1 for kind in kinds}, include_dashboard=False, log_to_driver=False)
    return ray


def run(models, kinds, store, flags=(), *, seconds=30.0, tolerance=0.1, timeout=300.0, address=None, say=print):
    """Times what the models ask for on each kind of device; a Report for each.

    models: paths, or pairs of a path and flags of its own (shapes). kinds: of Kind, or "resource=device". store: a URL. flags: of the
    build, for all models. seconds: the size of a bundle. tolerance: how far a node may be off the median of its kind."""
    kinds = [kind if isinstance(kind, Kind) else Kind.parse(kind) for kind in kinds]
    models = [(model, ()) if isinstance(model, (str, os.PathLike)) else model for model in models]
    ray = connect(address, kinds)
    runs = [KindRun(ray, kind, Store(store), flags, seconds, tolerance, timeout, say) for kind in kinds]
    reports, errors = [None] * len(runs), []

    def one(index):
        try:
            reports[index] = runs[index].run(models)
        except Exception as error:  # pylint: disable=broad-except; the others go on
            errors.append(error)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return reports
