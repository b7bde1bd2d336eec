# SPDX-License-Identifier: Apache-2.0
"""ITimingCache: times of tactics, over Hone's own cache, whose bytes are lines of text."""

import hashlib

import hone

from .._base.reports import Told
from .._base.values import IHostMemory


class TimingCacheKey:
    """What a time is of: 32 hexadecimal digits."""

    def __init__(self, digits):
        self._digits = digits

    @staticmethod
    def parse(text):
        """The key of its text, with or without 0x; None for what is none."""
        digits = str(text).lower().removeprefix("0x")
        return TimingCacheKey(digits) if len(digits) == 32 and all(digit in "0123456789abcdef" for digit in digits) else None

    def __str__(self):
        return "0x" + self._digits

    def __eq__(self, other):
        return isinstance(other, TimingCacheKey) and self._digits == other._digits

    def __hash__(self):
        return hash(self._digits)


class TimingCacheValue:
    """The tactic that was taken, as a number, and its time."""

    def __init__(self, tacticHash=0, timingMSec=0.0):  # noqa: N803: the interface's names
        self.tacticHash, self.timingMSec = int(tacticHash), float(timingMSec)


class ITimingCache(Told):
    """Times that builds find and leave."""

    def __init__(self, data, logger):
        self._logger = logger
        self._cache = hone.TimingCache(data)
        self._values = {}  # what update() said, which Hone does not read

    def serialize(self):
        """Its bytes."""
        return IHostMemory(self._cache.bytes())

    def combine(self, input_cache, ignore_mismatch):
        """Adds another's times; False for what is no cache of Hone's."""
        if not isinstance(input_cache, ITimingCache):
            return self._failed("combine() was given no timing cache", False)
        if input_cache is self:
            return self._failed("a timing cache is not combined with itself", False)
        self._cache.merge(input_cache._cache)
        self._values.update(input_cache._values)
        return True

    def reset(self):
        """Forgets all."""
        self._cache, self._values = hone.TimingCache(), {}
        return True

    def queryKeys(self):  # noqa: N802: the interface's name
        """A key for each time."""
        lines = self._cache.bytes().split(b"\n")[1:]
        return [TimingCacheKey(hashlib.md5(line.rpartition(b" ")[0]).hexdigest()) for line in lines if line]

    def query(self, key):
        """What update() said of a key; an empty value where it said nothing."""
        return self._values.get(key, TimingCacheValue())

    def update(self, key, value):
        """Keeps a choice beside the times; builds go by the times. False for a key that is not there."""
        if key not in self.queryKeys():
            return self._failed(f"the timing cache has no key {key}", False)
        self._values[key] = value
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def timing_cache(data, logger):
    """A cache of bytes, empty ones too."""
    return ITimingCache(bytes(memoryview(data)), logger)
