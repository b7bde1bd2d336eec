# SPDX-License-Identifier: Apache-2.0
"""TensorRT's Python interface over Hone: an independent implementation, for programs written for NVIDIA's module.

The release that it shows is 10.16.1, or what HONE_TENSORRT_API asks for (8.6, 10, 11). Engines are Hone's, on a CPU or a GPU; plans of
NVIDIA's library are refused. `__hone__` is Hone's own version.
"""

import hone as _hone

from ._base import native as _native, surface as _surface
from . import tensorrt  # noqa: F401: the same classes under the name that annotations use
from .tensorrt import *  # noqa: F403
from .tensorrt import _itemsize  # noqa: F401

__version__ = _surface.VERSION
_native.load_shim()
__hone__ = _hone.version()
