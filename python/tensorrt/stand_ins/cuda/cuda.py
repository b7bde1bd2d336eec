# SPDX-License-Identifier: Apache-2.0
"""The older layout's name for cuda.bindings.driver."""

from cuda.bindings.driver import *  # noqa: F403
