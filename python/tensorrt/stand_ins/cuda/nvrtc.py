# SPDX-License-Identifier: Apache-2.0
"""The older layout's name for cuda.bindings.nvrtc."""

from cuda.bindings.nvrtc import *  # noqa: F403
