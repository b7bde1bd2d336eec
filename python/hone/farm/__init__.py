# SPDX-License-Identifier: Apache-2.0
"""Timing what models ask for on the machines of a cluster, into one cache for each kind of device.

Models are listed where they lie; only the keys of their problems travel. A worker on each node runs `hone tune` on them, alone on its
device, and what it measured is kept as files that are written once. `python -m hone.farm --help`; docs/farm.md. Ray runs the workers and
fsspec reaches the files: `pip install "hone[ray]"`. Neither is imported with this package.
"""

from .driver import Kind, Report, run
from .program import FarmError
from .store import Store

__all__ = ["FarmError", "Kind", "Report", "Store", "run"]
