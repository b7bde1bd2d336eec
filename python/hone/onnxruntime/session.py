# SPDX-License-Identifier: Apache-2.0
"""InferenceSession: a model and its engines, with the methods of ONNX Runtime's class.

A model whose sizes are all fixed is built when the session is made. Where sizes may change, the first feed says what to tune for
(hone/shaped.py): nothing is known before. Inferences of several threads run beside each other.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pathlib
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..arrays import DTYPES, NAMES, Tensor
from ..base import WARNING, Cancelled, Error
from ..running import Context
from ..shaped import ShapedEngines, digest_of, range_around
from . import errors
from .binding import IOBinding
from .model_info import ModelInfo, ModelMetadata, NodeArg
from .opening import Source, get_available_providers, normalized_providers, target_of
from .options import RunOptions, SessionOptions
from .profiling import Profile
from .values import HONE_TYPES, OrtValue, content_of, ort_name, type_text

MOST_OTHERS = 4  # sessions for weights that were fed
_severity = 2  # of all sessions that do not say their own
_workers: ThreadPoolExecutor | None = None
_workers_lock = threading.Lock()


def set_default_logger_severity(severity: int) -> None:
    """0 tells everything, 2 warnings, 4 nothing."""
    global _severity
    _severity = int(severity)


def _pool():
    global _workers
    with _workers_lock:
        if _workers is None:
            _workers = ThreadPoolExecutor(thread_name_prefix="hone-run-async")
        return _workers


class InferenceSession:
    """A model that is ready to run: an ONNX file, its bytes, or a plan of Hone's."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[dict] | None = None, **_: Any):
        """`providers` are names, or (name, options); TensorRT's and CUDA's mean the GPU."""
        begin = time.perf_counter()
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is a SessionOptions, not {type(sess_options).__name__}")
        self._options = sess_options or SessionOptions()
        self._source = Source(path_or_bytes)
        self._profile = Profile(self._options.profile_file_prefix, begin) if self._options.enable_profiling else None
        self._known = None if self._source.is_plan else self._source.info()
        self._digest: bytes | None = None
        self._others: dict[bytes, InferenceSession] = {}  # with weights that were fed
        self._others_lock = threading.Lock()
        self._open(providers, provider_options)
        if self._options.optimized_model_filepath:
            self._write_model(self._options.optimized_model_filepath)
        if self._profile:
            self._profile.add("session_initialization", begin, time.perf_counter())

    # What is made of the model.

    def _open(self, providers, provider_options):
        chosen = normalized_providers(providers, provider_options) or normalized_providers(self._options._providers or None, None)
        self._target = target_of(chosen, self._options.intra_op_num_threads)
        log, threshold = self._log()
        if self._source.is_plan:
            return self._open_plan(log, threshold)
        options = self._options
        with self._source.model(options._weights, log, threshold) as model:
            sides = model.inputs, model.outputs
        self._sizes = {name: list(sizes) for name, (_, sizes) in sides[0].items()}
        self._inputs = [self._with_overrides(each) for each in self._known.inputs]
        given = {each.name: each for each in self._inputs}
        for name, sizes in self._sizes.items():
            for axis, size in enumerate(given[name].shape[:len(sizes)] if name in given else ()):
                sizes[axis] = size if isinstance(size, int) else sizes[axis]
        self._types = {name: HONE_TYPES.get(_element(each.type)) for name, each in given.items()}
        self._outputs = self._described_outputs(sides[1])
        self._unnamed = any(None in each.shape and each.name not in self._known.shaped for each in self._outputs)
        folder = options._entries.get("hone.cache") or self._target.folder
        flags = [*options._flags(), *self._target.flags]
        weights = [name.encode() for name in sorted(options._weights)]
        if folder and self._digest is None:
            self._digest = self._source.digest(self._known.external, options._weights) + b"\0".join(weights)
        model_sizes = {name: sizes for name, (_, sizes) in sides[0].items()}
        self._engines = ShapedEngines(lambda: self._source.model(options._weights, log, threshold), model_sizes, self._target.device, flags,
                                      identity=self._digest or b"", folder=folder, profiles=self._target.profiles, log=log,
                                      threshold=threshold)
        if all(-1 not in sizes for sizes in self._sizes.values()):
            self._ready({name: tuple(sizes) for name, sizes in self._sizes.items()})

    def _open_plan(self, log, threshold):
        self._unnamed = False
        try:
            plan = self._source.plan()
            self._engines = ShapedEngines.of_plan(plan, self._target.device, log, threshold)
        except Error as error:
            raise errors.InvalidProtobuf.of(f"the plan cannot be used: {error}") from None
        engine = self._engines.engines[0]
        symbols = {each["name"]: each["type"]["dims"] for each in json.loads(plan.json())["io"]}
        self._sizes = {name: list(sizes) for name, (_, sizes) in engine.inputs.items()}
        self._inputs, self._outputs = ([NodeArg(name, f"tensor({ort_name(engine.types[name])})", list(symbols.get(name, sizes)))
                                        for name, (_, sizes) in side.items()] for side in (engine.inputs, engine.outputs))
        self._types = {name: engine.types[name] for name in engine.inputs}
        self._known = ModelInfo(ModelMetadata(producer_name="Hone", graph_name=plan.info().model))

    def _log(self):
        severity = self._options.log_severity_level
        severity = _severity if severity < 0 else severity
        if severity > 2:
            return None, WARNING
        name = self._options.logid

        def tell(level, text):
            print(f"[{'IEWIV'[level] if level < 5 else 'V'}:hone:{name}] {text}", file=sys.stderr)

        return tell, {0: 4, 1: 3}.get(severity, WARNING)

    def _with_overrides(self, argument: NodeArg) -> NodeArg:
        options = self._options
        shape = [options._sizes.get(size, size) if isinstance(size, str) else options._meanings.get(meaning, size) if size is None else size
                 for size, meaning in zip(argument.shape, argument._denotations)]
        return NodeArg(argument.name, argument.type, shape, argument._denotations, argument._elements)

    def _described_outputs(self, outputs) -> list[NodeArg]:
        """Declared sizes, and what Hone finds out about those that are not."""
        found = []
        for each in map(self._with_overrides, self._known.outputs):
            kind, sizes = outputs.get(each.name, (None, None))
            shape, text = each.shape, each.type
            if sizes is not None and each.type.startswith("tensor"):
                if each.name not in self._known.shaped or len(shape) != len(sizes):
                    shape = [None] * len(sizes)
                shape = [known if known >= 0 else said for said, known in zip(shape, sizes)]
                if text == "tensor(undefined)" and kind is not None:
                    text = f"tensor({ort_name(DTYPES.index(kind))})"
            found.append(NodeArg(each.name, text, shape))
        return found

    def _ready(self, shapes):
        """The engine for shapes is there afterwards."""
        try:
            return self._engines.variant(shapes)
        except Error as error:
            raise (error if isinstance(error, errors.OnnxRuntimeError) else errors.Fail.of(str(error))) from None

    def _write_model(self, path):
        """What optimized_model_filepath asks for: a model that computes the same. Hone's optimised form is the engine."""
        if self._source.is_plan or self._known.external:
            raise errors.NotImplemented.of("optimized_model_filepath: the model is a plan, or has weights in other files; save_plan() keeps the engine")
        data = self._source.data or pathlib.Path(self._source.path).read_bytes()
        draft = pathlib.Path(f"{path}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(path)
        warnings.warn(f"{path} has the model as it was: what is optimised is the engine, which InferenceSession.save_plan() keeps", stacklevel=3)

    # What it says of itself.

    def get_inputs(self) -> list[NodeArg]:
        """Names, types, sizes; a size that may change is its name, or None."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The same of the outputs."""
        if self._unnamed:
            self._name_sizes()
        return self._outputs

    def _name_sizes(self):
        """Names for sizes that the file does not say: an engine knows which of its inputs' they are."""
        self._unnamed = False
        names = {size: size for each in self._known.inputs for size in each.shape if isinstance(size, str)}
        names |= self._options._sizes
        if self._engines.engines:
            plan = self._engines.latest.plan
        else:
            ones = {name: tuple(max(size, 1) for size in sizes) for name, sizes in self._sizes.items()}
            with self._source.model({}, None, WARNING) as model:
                plan = model.build(["--builderOptimizationLevel=0"], self._target.device, profiles=[range_around(ones, self._sizes)])
        known = {each["name"]: each["type"]["dims"] for each in json.loads(plan.json())["io"]}
        for each in self._outputs:
            for axis, size in enumerate(known.get(each.name, ()) if each.type.startswith("tensor") else ()):
                if each.shape[axis] is None:
                    each.shape[axis] = size if isinstance(size, int) else names.get(size)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Weights that the model lists among its inputs. Where one is fed, an engine is built with it, and kept for the next feed that is
        the same; SessionOptions.add_initializer() exchanges one for all runs."""
        return self._known.overridable

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of its origin."""
        return self._known.meta

    def get_session_options(self) -> SessionOptions:
        """Those that it was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """In the order in which they are asked."""
        return list(self._target.providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Of each provider."""
        return self._target.provider_options

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[dict] | None = None) -> None:
        """Other devices: the engines are made anew."""
        self._open(providers, provider_options)

    def enable_fallback(self) -> None:
        """Accepted: an engine that runs needs none."""

    def disable_fallback(self) -> None:
        """Accepted."""

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began; 0 without."""
        return self._profile.start_ns if self._profile else 0

    def end_profiling(self) -> str:
        """Writes the file and says its name; "" without profiling."""
        return self._profile.write() if self._profile else ""

    def save_plan(self, path: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """Hone's own: the engine for the shapes (of the last run, by default) as a file that InferenceSession opens."""
        if shapes is None and not self._engines.engines:
            raise errors.InvalidArgument.of("no engine has been built: sizes may change and nothing has run; say the shapes")
        wanted = {name: tuple(sizes) for name, sizes in (shapes or {}).items()}
        variant = self._engines.variant(wanted) if shapes else self._engines.latest
        variant.plan.save(path)

    # Inferences.

    def _check_type(self, name, kind):
        wanted = self._types.get(name)
        if wanted is not None and kind != wanted:
            raise errors.InvalidArgument.of(f"Unexpected input data type. Actual: (tensor({ort_name(kind)})) , "
                                            f"expected: (tensor({ort_name(wanted)}))")

    def _check_feed(self, name, content):
        wanted = self._types.get(name)
        if wanted is None:
            return
        text = type_text(content) if isinstance(content, (np.ndarray, Tensor)) else f"tensor({ort_name(wanted)})"
        if text != f"tensor({ort_name(wanted)})":
            raise errors.InvalidArgument.of(f"Unexpected input data type. Actual: ({text}) , expected: (tensor({ort_name(wanted)}))")

    def _check_shape(self, name, shape):
        sizes = self._sizes.get(name)
        if sizes is None or self._types.get(name) is None:
            return
        if len(shape) != len(sizes):
            raise errors.InvalidArgument.of(f"Invalid rank for input: {name} Got: {len(shape)} Expected: {len(sizes)} "
                                            "Please fix either the inputs/outputs or the model.")
        wrong = [f"\n index: {axis} Got: {size} Expected: {known}" for axis, (size, known) in enumerate(zip(shape, sizes))
                 if known not in (-1, size)]
        if wrong:
            raise errors.InvalidArgument.of(f"Got invalid dimensions for input: {name} for the following indices{''.join(wrong)}\n"
                                            " Please fix either the inputs/outputs or the model.")

    def _missing(self, names):
        return [each.name for each in self._inputs if each.name not in names and not each.type.startswith("optional")]

    def _check_complete(self, names):
        missing = self._missing(names)
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(names)}).")

    def _feeds(self, given):
        """The feeds as arrays or what else the engine takes, checked."""
        self._check_complete(given.keys())
        feeds = {}
        for name, value in given.items():
            content = content_of(value)
            if name not in self._types:
                if any(each.name == name for each in self._known.overridable):
                    feeds[name] = self._fed_weight(name, content)
                    continue
                raise errors.InvalidArgument.of(f"Invalid input name: {name}")
            wanted = self._types[name]
            if wanted is not None and not isinstance(content, np.ndarray) and not hasattr(content, "__dlpack__"):
                content = self._array(name, content, wanted)
            self._check_feed(name, content)
            if wanted is not None:
                self._check_shape(name, tuple(content.shape))
            feeds[name] = content
        for each in self._inputs:
            feeds.setdefault(each.name, None)
        return feeds

    def _fed_weight(self, name, content):
        (known,) = [each for each in self._known.overridable if each.name == name]
        wanted = HONE_TYPES.get(_element(known.type))
        content = content if isinstance(content, np.ndarray) else np.asarray(content, None if wanted is None else DTYPES[wanted])
        if type_text(content) != known.type:
            raise errors.InvalidArgument.of(f"Unexpected input data type. Actual: ({type_text(content)}) , expected: ({known.type})")
        return content

    def _session_for(self, feeds):
        """The session that computes the feeds: this one, or one with the weights that are among them; and the feeds without those."""
        names = [each.name for each in self._known.overridable if each.name in feeds] if self._known.overridable else []
        if not names:
            return self, feeds
        weights = {name: feeds[name] for name in names}
        key = digest_of(*(part for name, value in sorted(weights.items()) for part in (name.encode(), str(value.shape).encode(), np.ascontiguousarray(value))))
        with self._others_lock:
            if key not in self._others:
                while len(self._others) >= MOST_OTHERS:
                    del self._others[next(iter(self._others))]  # the oldest
                other = self._others[key] = copy.copy(self)
                other._options = copy.copy(self._options)
                other._options._values = {**self._options._values, "optimized_model_filepath": ""}
                other._options._weights = {**self._options._weights, **weights}
                other._digest, other._others = None, {}
                other._open(list(self._target.providers), [dict(self._target.provider_options.get(each, {})) for each in self._target.providers])
            return self._others[key], {name: value for name, value in feeds.items() if name not in names}

    def _array(self, name, content, wanted):
        if isinstance(content, (str, bytes)) or content is None:
            raise RuntimeError(f"Input must be a list of dictionaries or a single numpy array for input '{name}'.")
        try:
            return np.asarray(content, object if NAMES[wanted] == "string" else DTYPES[wanted])
        except (TypeError, ValueError):
            raise RuntimeError(f"Input must be a list of dictionaries or a single numpy array for input '{name}'.") from None

    def _names(self, output_names):
        known = {each.name for each in self._outputs}
        if isinstance(output_names, (str, bytes)):
            raise TypeError("run(): output_names is a list of names, or None for all")
        names = list(output_names or [each.name for each in self._outputs])
        for name in names:
            if name not in known:
                raise errors.InvalidArgument.of(f"Invalid output name:{name}")
        return names

    @contextlib.contextmanager
    def _running(self, shapes, run_options):
        """A context for shapes, which the options may end."""
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise TypeError(f"run_options is a RunOptions, not {type(run_options).__name__}")
        if run_options is not None and run_options.terminate:
            raise errors.Fail.of("Exiting due to terminate flag being set to true.")
        try:
            with self._engines.context(shapes) as context:
                if run_options is not None:
                    run_options._running.add(context)
                try:
                    yield context
                finally:
                    if run_options is not None:
                        run_options._running.discard(context)
        except errors.OnnxRuntimeError:
            raise
        except Cancelled:
            raise errors.Fail.of("Exiting due to terminate flag being set to true.") from None
        except Error as error:
            raise errors.Fail.of(str(error)) from None

    def _infer(self, context: Context) -> None:
        if self._profile is None:
            return context.run_bound()
        return self._profile.run(context, self._target.providers[0])

    def _outcome(self, feeds, run_options):
        shapes = {name: tuple(content.shape) for name, content in feeds.items() if self._types.get(name) is not None}
        with self._running(shapes, run_options) as context:
            for name, content in feeds.items():
                context.set_input(name, content)
            context.allocate_outputs()
            self._infer(context)
            return {name: _plain(content) for name, content in context._outcome().items()}

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """The outputs that are named, or all: arrays, lists for sequences, dictionaries for maps."""
        feeds, names = self._feeds(input_feed), self._names(output_names)
        session, feeds = self._session_for(feeds)
        outcome = session._outcome(feeds, run_options)
        return [outcome[name] for name in names]

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """The same with OrtValues on both sides."""
        return [OrtValue(content) for content in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], callback: Callable[[list, Any, str], Any],
                  user_data: Any, run_options: RunOptions | None = None) -> None:
        """run() on another thread, which calls `callback(results, user_data, "")`, or with what went wrong in place of ""."""
        feeds = dict(input_feed)
        self._check_complete(feeds)

        def work():
            try:
                results, failure = self.run(output_names, feeds, run_options), ""
            except Exception as error:
                results, failure = [], _reason(error)
            callback(results, user_data, failure)

        _pool().submit(work)

    def io_binding(self) -> IOBinding:
        """For inputs and outputs that stay where they are."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs on what is bound."""
        if not iobinding._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        missing = self._missing(iobinding._inputs)
        if missing:
            raise RuntimeError(f"Error in execution: Missing Input: {', '.join(missing)}")
        try:
            shapes = iobinding._shapes()
            for name, shape in shapes.items():
                self._check_shape(name, shape)
            with self._running({name: shape for name, shape in shapes.items() if self._types.get(name) is not None}, run_options) as context:
                iobinding._feed(context)
                placed = iobinding._place(context)
                self._infer(context)
                iobinding._take(context, placed)
        except errors.OnnxRuntimeError as error:
            raise type(error)(f"Error in execution: {_reason(error)}") from None


def _reason(error):
    """What went wrong, without ONNX Runtime's number and word for it."""
    return str(error).split(" : ", 3)[-1] if isinstance(error, errors.OnnxRuntimeError) else str(error)


def _element(text):
    return text.removeprefix("tensor(").removesuffix(")") if text.startswith("tensor(") else ""


def _plain(content):
    """An output as run() gives it: arrays, not Hone's tensors."""
    return content.numpy() if isinstance(content, Tensor) else content
