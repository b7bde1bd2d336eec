# SPDX-License-Identifier: Apache-2.0
"""What the converters share: what is asked of them, and how they fail."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any, NamedTuple

from ..base import Error


class ConvertError(Error):
    """A model that is not made ONNX; its text says what is in the way and what to do."""

    def __init__(self, what: str, hint: str = ""):
        super().__init__(f"{what}\n  hint: {hint}" if hint else what)


class Unknown(ConvertError):
    """A file of no framework that is known, or options that do not fit it."""


class Missing(ConvertError):
    """A package is not installed."""


class Request(NamedTuple):
    """What to_onnx() was asked."""

    source: pathlib.Path
    destination: pathlib.Path
    opset: int | None
    shapes: dict[str, list[Any]]
    outputs: list[str]
    signature: str | None
    example: pathlib.Path | None


def need(*packages: str, install: str | None = None) -> list[Any]:
    """Modules; Missing says how to install those that are not there. A package may be `name` or `module=name on PyPI`."""
    found, missing = [], []
    for package in packages:
        module, _, name = package.partition("=")
        try:
            found.append(importlib.import_module(module))
        except ImportError as error:
            root = module.split(".")[0]
            if getattr(error, "name", None) not in (root, module, None):
                raise ConvertError(f"{root} is installed and cannot be imported: {error}", "repair that package") from error
            missing.append(name or root)
    if missing:
        raise Missing(f"this file needs {', '.join(missing)}", f"pip install {install or ' '.join(missing)}")
    return found
