# SPDX-License-Identifier: Apache-2.0
"""Values for inputs where no file has them: Polygraphy's, number by number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import DTYPES, NAMES, STRING


class Input(NamedTuple):
    """What is drawn: floats from `low` to `high`, integers with both ends. `contents`: no random numbers but these."""

    sizes: Sequence[int]
    dtype: str = "float32"
    low: float = 0
    high: float = 1
    contents: Sequence[int] | None = None


def dtype_of(name: str) -> np.dtype:
    """numpy's, or of ml_dtypes for types that numpy lacks."""
    found = DTYPES[NAMES.index(name)] if name in NAMES and name != NAMES[STRING] else np.dtype(name)
    if found is None:
        raise TypeError(f"numpy has no type {name}\n  hint: pip install ml_dtypes")
    return found


def _is_float(name: str) -> bool:
    return "float" in name


def draw(inputs: Mapping[str, Input], seed: int = 1) -> dict[str, np.ndarray]:
    """One inference's inputs, one behind the other from one generator. `hone run` draws iteration i from its seed + i."""
    random = np.random.RandomState(seed)
    feed = {}
    for name, (sizes, word, low, high, contents) in inputs.items():
        dtype = dtype_of(word)
        if contents is not None:
            feed[name] = np.array(contents, dtype).reshape(sizes)
        elif _is_float(word):
            # infinities are wanted as such: the difference of two would be a NaN
            scale, shift = (low, 0) if math.isinf(low) else (high - low, low)
            numbers = random.random_sample(size=sizes) * (high if math.isinf(high) else scale) + shift
            feed[name] = (numbers if word == "float64" else numbers.astype(np.float32)).astype(dtype)
        else:
            feed[name] = random.randint(int(low), int(high) + 1, size=sizes, dtype=dtype)
    return feed
