# SPDX-License-Identifier: Apache-2.0
"""ONNX models of frameworks' files, by the converters that people use with each framework.

    python -m hone.convert model.keras -o model.onnx          # what `hone convert model.keras -o model.onnx` starts
    hone.convert.to_onnx("pipeline.pkl", "model.onnx", example="rows.csv")

Hone brings none of the frameworks along: where one is missing, Missing says what to install.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

from .common import ConvertError, Missing, Request, Unknown

__all__ = ["ConvertError", "Missing", "Unknown", "kind_of", "to_onnx"]

ENDINGS = {
    ".keras": "keras", ".h5": "keras", ".hdf5": "keras", ".tflite": "tflite", ".pb": "graphdef", ".pt2": "torch", ".pt": "torch_other",
    ".pth": "torch_other", ".pkl": "pickle", ".pickle": "pickle", ".joblib": "pickle", ".json": "xgboost", ".ubj": "xgboost", ".bst": "xgboost",
    ".lgb": "lightgbm", ".txt": "lightgbm",
}


def kind_of(path: str | os.PathLike) -> str:
    """What a file or folder is, by its name and, of a folder, by what lies in it."""
    path = pathlib.Path(path)
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            return "saved_model"
        raise Unknown(f"{path} is a folder without a saved_model.pb", "give a SavedModel's folder, or a file")
    if path.suffix.lower() not in ENDINGS:
        raise Unknown(f"{path} has no ending of a framework's file", f"those are {', '.join(ENDINGS)}, and a SavedModel's folder")
    return ENDINGS[path.suffix.lower()]


def to_onnx(source: str | os.PathLike, destination: str | os.PathLike, *, opset: int | None = None, shapes: dict[str, list[Any]] | None = None,
            outputs: list[str] | None = None, signature: str | None = None, example: str | os.PathLike | None = None) -> None:
    """Writes the model of `source` as ONNX, whole or not at all. `shapes`: of inputs, where the file leaves them open (-1 or None stays
    open). `outputs`: names, of a frozen graph. `signature`: of a SavedModel. `example`: rows as .csv or .pkl, which say the types of a
    pipeline's columns. A pickle runs what it holds: open those alone that you would run."""
    from . import learners, neural

    source = pathlib.Path(source)
    if not source.exists():
        raise FileNotFoundError(2, "there is no such file", str(source))
    kind = kind_of(source)
    request = Request(source, pathlib.Path(destination), opset, shapes or {}, outputs or [], signature, example and pathlib.Path(example))
    with tempfile.TemporaryDirectory(prefix=".hone-convert-", dir=request.destination.parent) as folder:
        draft = pathlib.Path(folder) / request.destination.name
        (learners if kind in ("pickle", "xgboost", "lightgbm") else neural).CONVERTERS[kind](request._replace(destination=draft))
        for each in sorted(draft.parent.iterdir(), key=lambda each: each == draft):  # weights in a file of their own first
            each.replace(request.destination.parent / each.name)
