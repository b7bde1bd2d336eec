# SPDX-License-Identifier: Apache-2.0
"""Loggers: what programs derive from, and the one that writes to stdout as TensorRT's does."""

import datetime
import sys

from . import enums

Severity = enums.ALL["Severity"]
_LETTERS = "FEWIV"


class ILogger:
    """To be derived from: log(severity, msg) is called with every message, from several threads."""

    Severity = Severity
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = Severity.__members__.values()

    def __init__(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def log(self, severity, msg):
        """What to do with a message: the program's own."""
        raise NotImplementedError("a class derived from tensorrt.ILogger needs a method log(severity, msg)")


class Logger(ILogger):
    """Writes messages of `min_severity` and graver ones to stdout."""

    def __init__(self, min_severity=Severity.WARNING):
        super().__init__()
        self.min_severity = min_severity

    @property
    def min_severity(self):
        return self._min_severity

    @min_severity.setter
    def min_severity(self, severity):
        if not isinstance(severity, Severity):
            raise TypeError(f"min_severity: {severity!r} is no tensorrt.ILogger.Severity")
        self._min_severity = severity

    def log(self, severity, msg):
        if severity > self._min_severity:
            return
        stamp = datetime.datetime.now().strftime("%m/%d/%Y-%H:%M:%S")
        sys.stdout.write(f"[{stamp}] [TRT] [{_LETTERS[int(severity)]}] {msg}\n")
        sys.stdout.flush()
