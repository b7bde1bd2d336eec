# SPDX-License-Identifier: Apache-2.0
"""The newer layout: runtime, driver, nvrtc."""

from cuda import __version__  # noqa: F401
