# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, told as TensorRT tells it: to the logger and the error recorder, while the call returns None or False.

Callbacks of programs never raise through the library: what they raise is printed to stderr and counts as a failure.
"""

import sys
import traceback

from . import enums

_Severity = enums.ALL["Severity"]
_Code = enums.ALL["ErrorCodeTRT"]


def called(function, *arguments, failed=None):
    """What a program's function returns; `failed` where it raises."""
    try:
        return function(*arguments)
    except Exception:
        traceback.print_exc(file=sys.stderr)
        return failed


def log(logger, severity, text):
    """A line for the logger: "ERROR", "WARNING", "INFO" or "VERBOSE"."""
    called(logger.log, getattr(_Severity, severity), text)


class Told:
    """What has a logger and an error recorder. `_logger` is the program's."""

    _logger = None
    _error_recorder = None

    @property
    def error_recorder(self):
        """Is told of every error as well as the logger."""
        return self._error_recorder

    @error_recorder.setter
    def error_recorder(self, recorder):
        if recorder is not None and not callable(getattr(recorder, "report_error", None)):
            raise TypeError(f"error_recorder: {type(recorder).__name__} is no tensorrt.IErrorRecorder")
        self._error_recorder = recorder

    def _failed(self, text, result=None, code="INVALID_ARGUMENT"):
        """Tells of an error; returns `result`."""
        member = getattr(_Code, code)
        log(self._logger, "ERROR", f"Error Code {member.value}: {text}")
        if self._error_recorder is not None:
            called(self._error_recorder.report_error, member, text)
        return result

    def _warned(self, text):
        log(self._logger, "WARNING", text)

    def _said(self, text):
        log(self._logger, "INFO", text)


class Managed(Told):
    """The same, in with blocks and without a memory to free by hand."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __del__(self):
        return None


def relay(logger):
    """A log for Hone that writes to the program's logger, and its threshold."""
    severities = list(_Severity.__members__.values())
    least = getattr(logger, "min_severity", None)
    return (lambda severity, text: called(logger.log, severities[min(max(severity, 0), 4)], text)), (4 if least is None else int(least))
