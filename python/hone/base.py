# SPDX-License-Identifier: Apache-2.0
"""What the package's modules share: the compiled module, failures, objects that hold memory of the library."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# GNU's OpenMP reads it when it is loaded: idle threads that spin for long starve beside other processes (see src/tools/main.cpp).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from . import _hone  # noqa: E402

Error = _hone.Error
Error.__doc__ = "What is wrong, where, and what to do about it: a model, a file, an argument or the machine."
Cancelled = _hone.Cancelled
Cancelled.__doc__ = "An inference that was ended by cancel(); its outputs are undefined."

WARNING, INFO, VERBOSE = 2, 3, 4  # severities of log lines; a threshold lets through those up to it

Log = Callable[[int, str], Any]  # severity, text


def version() -> str:
    """The library's version."""
    return _hone.version()


class Object:
    """What is common to all that hold memory of the library."""

    _handle: Any = None

    @property
    def handle(self) -> Any:
        """The library's object."""
        if self._handle is None:
            raise Error(f"this {type(self).__name__} is closed")
        return self._handle

    def close(self) -> None:
        """Frees the library's memory, where nothing else uses it; what is left of the object is an Error to use."""
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()
