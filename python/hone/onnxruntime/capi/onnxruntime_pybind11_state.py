# SPDX-License-Identifier: Apache-2.0
"""Where scripts look for ONNX Runtime's exceptions."""

from .. import errors as _errors
from ..binding import IOBinding as SessionIOBinding  # noqa: F401
from ..model_info import ModelMetadata, NodeArg  # noqa: F401
from ..options import RunOptions, SessionOptions  # noqa: F401

globals().update({name: getattr(_errors, name) for name in _errors.NAMES})
