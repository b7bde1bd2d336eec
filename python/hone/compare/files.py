# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs in files: Polygraphy's JSON (arrays as base64 of .npy files; a file, or a folder with one for each iteration), .npz,
.npy, .safetensors and raw bytes."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import os
import pathlib
import struct
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .comparing import Results, runs_of
from .inputs import Input, dtype_of

Feed = dict[str, np.ndarray]
SAFE = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
        "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}


def _array(told: Any) -> np.ndarray:
    while isinstance(told, dict):
        inner = next((told[key] for key in ("array", "tensor", "values") if key in told), None)
        if isinstance(inner, str):
            return np.load(io.BytesIO(base64.b64decode(inner)), allow_pickle=False)
        told = inner
    raise ValueError("this is no array as Polygraphy writes it")


def _told(array: np.ndarray) -> dict[str, str]:
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=False)
    return {"array": base64.b64encode(file.getvalue()).decode(), "polygraphy_class": "ndarray"}


def _json_files(path: str) -> list[Any]:
    files = sorted(pathlib.Path(path).glob("*.json")) if os.path.isdir(path) else [pathlib.Path(path)]
    if not files:
        raise ValueError(f"the folder {path} holds no .json file")
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _archive(path: str) -> Feed:
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    return {name: np.frombuffer(content[8 + length:][slice(*entry["data_offsets"])], dtype_of(SAFE[entry["dtype"]])).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def _single(word: str, inputs: Mapping[str, Input]) -> Feed | None:
    """Of "name:file", or of an .npy file where there is one input."""
    for name, known in inputs.items():
        if not word.startswith(name + ":"):
            continue
        path = word[len(name) + 1:]
        if path.endswith(".npy"):
            return {name: np.load(path, allow_pickle=False)}
        if path.endswith(".npz"):
            return {name: _archive(path)[name]}
        return {name: np.fromfile(path, dtype_of(known.dtype)).reshape(known.sizes)}
    if word.endswith(".npy"):
        if len(inputs) != 1:
            raise ValueError(f"{word} is one array, and there are {len(inputs)} inputs\n  hint: say which: NAME:{word}")
        return {next(iter(inputs)): np.load(word, allow_pickle=False)}
    return None


def load_inputs(paths: Sequence[str], inputs: Mapping[str, Input]) -> list[Feed]:
    """An entry for each iteration; `inputs` says the types and sizes of raw bytes."""
    feeds: list[Feed] = []
    singles: Feed = {}
    for path in paths:
        single = _single(path, inputs)
        if single is not None:
            singles.update(single)
        elif path.endswith((".npz", ".safetensors")):
            feeds.append(_archive(path))
        else:
            for told in _json_files(path):
                for each in told if isinstance(told, list) else [told]:
                    feeds.append({name: _array(array) for name, array in each.items()})
    if singles and not feeds:
        feeds.append({})
    return [{**feed, **singles} for feed in feeds]


def loaded_by_script(word: str) -> list[Feed]:
    """What a function in a file yields, "file:function"; without a name load_data()."""
    path, _, function = word.rpartition(":") if ":" in word else (word, "", "load_data")
    spec = importlib.util.spec_from_file_location("script", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [{name: np.asarray(array) for name, array in feed.items()} for feed in getattr(module, function)()]


def loaded_by_program(command: str, inputs: Mapping[str, Input]) -> list[Feed]:
    """What a program prints: the path of a file on each line."""
    said = subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [feed for line in said.splitlines() if line.strip() for feed in load_inputs([line.strip()], inputs)]


def load_outputs(paths: Sequence[str]) -> list[tuple[str, list[Feed]]]:
    """Runs and what they gave, an entry for each iteration; a file's runs of one name are one."""
    results: list[tuple[str, list[Feed]]] = []
    for path in paths:
        if path.endswith((".npz", ".safetensors")):
            results.append((os.path.basename(path), [_archive(path)]))
            continue
        found: dict[str, list[Feed]] = {}
        for told in _json_files(path):
            for name, iterations in told["lst"]:
                found.setdefault(name, []).extend(
                    {output: _array(array) for output, array in each["outputs"].items()} for each in iterations)
        results += found.items()
    return results


def _write_archive(path: str, tensors: Feed) -> None:
    if path.endswith(".npz"):
        np.savez(path, **tensors)
        return
    words = {dtype_of(kind): word for word, kind in SAFE.items() if not kind.startswith(("bfloat", "float8")) or _has(kind)}
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": words[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in tensors.values()))


def _has(kind: str) -> bool:
    try:
        dtype_of(kind)
    except TypeError:
        return False
    return True


def _save(path: str, iterations: list[Any], whole: Any) -> None:
    """Into one file, or for a path without an ending into a new folder, one for each iteration."""
    if not os.path.isdir(path) and os.path.splitext(path)[1]:
        pathlib.Path(path).write_text(json.dumps(whole, indent=4), encoding="utf-8")
        return
    os.makedirs(path, exist_ok=True)
    if os.listdir(path):
        raise ValueError(f"the folder {path} is not empty\n  hint: name a new one: old iterations would stay among the new")
    for number, told in enumerate(iterations):
        pathlib.Path(path, f"{number:010}.json").write_text(json.dumps(told, indent=4), encoding="utf-8")


def save_inputs(path: str, feeds: Sequence[Feed]) -> None:
    """Polygraphy's JSON, a folder, or one iteration as .npz or .safetensors."""
    if path.endswith((".npz", ".safetensors")):
        (feed,) = feeds
        return _write_archive(path, feed)
    told = [{name: _told(array) for name, array in feed.items()} for feed in feeds]
    return _save(path, told, told)


def save_blobs(folder: str, feeds: Sequence[Feed]) -> None:
    """Raw bytes: a folder for each iteration, in it a file for each input."""
    for number, feed in enumerate(feeds):
        place = pathlib.Path(folder, str(number))
        place.mkdir(parents=True, exist_ok=True)
        for name, array in feed.items():
            (place / (name.replace("/", "_") + ".bin")).write_bytes(np.ascontiguousarray(array).tobytes())


def save_outputs(path: str, results: Results) -> None:
    """The same of what runs gave."""
    results = runs_of(results)
    if path.endswith((".npz", ".safetensors")):
        ((_, (outputs,)),) = results
        return _write_archive(path, outputs)

    def told(first, last):
        runs = [[name, [{"outputs": {output: {"values": _told(array), "polygraphy_class": "LazyArray"} for output, array in each.items()},
                         "runtime": 0.0, "runner_name": name, "polygraphy_class": "IterationResult"} for each in iterations[first:last]]]
                for name, iterations in results]
        return {"lst": runs, "polygraphy_class": "RunResults"}

    count = max((len(iterations) for _, iterations in results), default=0)
    return _save(path, [told(number, number + 1) for number in range(count)], told(0, count))
