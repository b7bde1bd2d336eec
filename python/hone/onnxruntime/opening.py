# SPDX-License-Identifier: Apache-2.0
"""Opens what a session is given: a model or a plan, from a path or from bytes, with ONNX Runtime's exceptions where it cannot be.

And the devices that go by the names of ONNX Runtime's providers: TensorRT's and CUDA's stand for a GPU, whose options about types,
shapes and kept engines mean the same here.
"""

from __future__ import annotations

import collections.abc
import functools
import os
import pathlib
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base import Error, Log
from ..building import Model, Plan, load
from ..devices import Device
from ..shaped import Range, digest_of
from . import errors
from .model_info import Malformed, ModelInfo, read_file_info, read_model_info
from .values import content_of, device_named

PLAN_MARK = b"HONEPLAN"
GPU_PROVIDERS = ("TensorrtExecutionProvider", "CUDAExecutionProvider")


class Source:
    """A model's file or bytes."""

    def __init__(self, path_or_bytes: Any):
        if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            self.path, self.data = None, bytes(path_or_bytes)
        elif isinstance(path_or_bytes, (str, os.PathLike)):
            self.path, self.data = os.fspath(path_or_bytes), b""
            if not os.path.exists(self.path):
                raise errors.NoSuchFile.of(f"Load model from {self.path} failed:Load model {self.path} failed. File doesn't exist")
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")

    @functools.cached_property
    def is_plan(self) -> bool:
        """Whether it holds an engine, not a model."""
        if self.path is None:
            return self.data.startswith(PLAN_MARK)
        try:
            with open(self.path, "rb") as file:
                return file.read(len(PLAN_MARK)) == PLAN_MARK
        except OSError:
            return False

    def plan(self) -> Plan:
        """The plan in it."""
        if self.path:
            return load(self.path)
        with tempfile.NamedTemporaryFile(suffix=".plan") as file:
            file.write(self.data)
            file.flush()
            return load(file.name)

    def info(self) -> ModelInfo:
        """What the file says of itself."""
        where = f"Load model from {self.path} failed:" if self.path else "Failed to load model because "
        try:
            info = read_file_info(self.path) if self.path else read_model_info(self.data)
        except (Malformed, OSError):
            raise errors.InvalidProtobuf.of(where + ("Protobuf parsing failed." if self.path else "protobuf parsing failed.")) from None
        if info is None:
            raise errors.InvalidArgument.of((where if self.path else "") + "No graph was found in the protobuf.")
        return info

    def model(self, weights: dict[str, Any], log: Log | None, threshold: int) -> Model:
        """The model, checked, with these weights instead of its own."""
        try:
            model = Model.load(self.path, log, threshold) if self.path else Model.parse(self.data, os.getcwd(), log, threshold)
        except Error as error:
            kind = errors.InvalidArgument if "is not defined by any node" in str(error) else errors.InvalidGraph
            raise kind.of(f"{'Load model from ' + self.path + ' failed:' if self.path else ''}This is an invalid model. {error}") from None
        for name, value in weights.items():
            try:
                model.set_weight(name, np.asarray(content_of(value)))
            except Error as error:
                raise errors.InvalidArgument.of(str(error)) from None
        return model

    def digest(self, external: set[str], weights: dict[str, Any]) -> bytes:
        """Of the contents: bytes, files of weights beside them, weights that were exchanged."""
        if self.path:
            folder = pathlib.Path(self.path).parent
            parts = [np.memmap(path, np.uint8, "r") for path in [pathlib.Path(self.path), *(folder / name for name in sorted(external))]
                     if path.stat().st_size]
        else:
            parts = [self.data]
        for name, value in sorted(weights.items()):
            parts += [name.encode(), np.ascontiguousarray(content_of(value)).tobytes()]
        return digest_of(*parts)


def has_gpu() -> bool:
    """Whether Hone finds one."""
    try:
        device_named("cuda:0")
    except Error:
        return False
    return True


def get_available_providers() -> list[str]:
    """By ONNX Runtime's names, the fastest first."""
    return [*(GPU_PROVIDERS if has_gpu() else ()), "CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """Those that Hone knows."""
    return [*GPU_PROVIDERS, "CPUExecutionProvider"]


def normalized_providers(providers: Any, options: Any) -> list[tuple[str, dict[str, str]]]:
    """[(name, options)], checked as ONNX Runtime does."""
    if providers is None:
        return []
    if isinstance(providers, str) or not isinstance(providers, collections.abc.Sequence):
        raise ValueError("'providers' should be a sequence.")
    if options is not None:
        if not isinstance(options, collections.abc.Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(name, str) for name in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(each, dict) for each in options):
            raise ValueError("'provider_options' values must be dicts.")
        providers = list(zip(providers, options))
    found: dict[str, dict[str, str]] = {}
    available = get_available_providers()
    for each in providers:
        name, chosen = (each, {}) if isinstance(each, str) else each if isinstance(each, tuple) and len(each) == 2 else (None, None)
        if not isinstance(name, str) or not isinstance(chosen, dict):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        if name not in available:
            warnings.warn(f"Specified provider '{name}' is not in available provider names.Available providers: '{', '.join(available)}'",
                          stacklevel=4)
        elif name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
        else:
            found[name] = {str(key): str(value) for key, value in chosen.items()}
    return list(found.items())


class Target(NamedTuple):
    """Where a session runs, and what that adds to its build."""

    device: Device
    providers: list[str]
    provider_options: dict[str, dict[str, str]]
    flags: list[str]
    folder: str | None
    profiles: list[Range]


def _on(options, name):
    return options.get(name, "0").lower() in ("1", "true")


def _ranges(options):
    """The profiles of trt_profile_min_shapes and the like: "x:1x3,y:2;x:..." has one for each semicolon."""
    def parsed(text):
        return {name: tuple(map(int, sizes.split("x"))) for name, _, sizes in (part.strip().rpartition(":") for part in text.split(",") if part)}

    texts = [options.get(f"trt_profile_{end}_shapes", "").split(";") for end in ("min", "opt", "max")]
    if not any(texts[0]):
        return []
    try:
        ends = [[parsed(part) for part in each] for each in texts]
        return [{name: (low[name], opt[name], high[name]) for name in low} for low, opt, high in zip(*ends, strict=True)]
    except (ValueError, KeyError):
        raise errors.InvalidArgument.of("trt_profile_min_shapes, trt_profile_opt_shapes and trt_profile_max_shapes name the same inputs, "
                                        "as in input:1x3x224x224") from None


def target_of(chosen: Sequence[tuple[str, dict[str, str]]], threads: int) -> Target:
    """The device of the first provider, its flags and what it keeps."""
    name, options = chosen[0] if chosen else ("CPUExecutionProvider", {})
    names = [each for each, _ in chosen] or [name]
    if "CPUExecutionProvider" not in names:
        names.append("CPUExecutionProvider")
    all_options = {each: dict(chosen).get(each, {}) if each in GPU_PROVIDERS else {} for each in names}
    if name not in GPU_PROVIDERS:
        return Target(device_named(f"cpu/{threads}" if threads else "cpu"), names, all_options, [], None, [])
    number = options.setdefault("device_id", "0")
    flags = [flag for key, flag in (("trt_fp16_enable", "--fp16"), ("trt_bf16_enable", "--bf16"), ("trt_int8_enable", "--int8")) if _on(options, key)]
    if options.get("use_tf32", "1").lower() in ("0", "false"):
        flags.append("--noTF32")
    folder = options.get("trt_engine_cache_path", ".") if _on(options, "trt_engine_cache_enable") else None
    return Target(device_named(f"cuda:{number}"), names, all_options, flags, folder, _ranges(options))
