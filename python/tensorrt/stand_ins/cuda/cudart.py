# SPDX-License-Identifier: Apache-2.0
"""The older layout's name for cuda.bindings.runtime."""

from cuda.bindings.runtime import *  # noqa: F403
