# SPDX-License-Identifier: Apache-2.0
"""Which range of a tensor's values 256 steps shall cover, of samples that are seen one after the other.

A histogram of magnitudes holds what was seen; where a later sample leaves it, neighbouring bins are joined, so that all samples count
alike. From it follow the largest magnitude, a quantile, or the threshold whose clipped and rounded distribution is nearest to the true
one (the least relative entropy).
"""

import numpy as np

BINS, LEVELS = 2048, 128


class Histogram:
    """Magnitudes of one tensor."""

    def __init__(self):
        self.width, self.counts, self.largest = 0.0, np.zeros(BINS), 0.0

    def add(self, values):
        """The elements of one sample."""
        magnitudes = np.abs(np.asarray(values, np.float32)).ravel()
        magnitudes = magnitudes[np.isfinite(magnitudes)]
        most = float(magnitudes.max(initial=0.0))
        self.largest = max(self.largest, most)
        if most == 0.0:
            return
        if self.width == 0.0:
            self.width = most / BINS
        while most > self.width * BINS:
            self.counts[:BINS // 2] = self.counts.reshape(-1, 2).sum(1)
            self.counts[BINS // 2:] = 0
            self.width *= 2
        self.counts += np.histogram(magnitudes, BINS, (0.0, self.width * BINS))[0]

    def quantile(self, share):
        """The magnitude that so many elements do not exceed."""
        sums = np.cumsum(self.counts)
        return self.largest if sums[-1] == 0 else min(self.largest, (int(np.searchsorted(sums, share * sums[-1])) + 1) * self.width)

    def least_entropy(self):
        """The threshold that loses least; the largest magnitude where there is little to compare."""
        counts = self.counts.copy()
        counts[0] = counts[1]  # zeros (of ReLU, of padding) are exact in any case
        if np.count_nonzero(counts) < LEVELS:
            return self.largest
        best, threshold = np.inf, self.largest
        for end in range(LEVELS, BINS + 1, 16):
            if counts[:end].sum() == 0:
                continue
            loss = _relative_entropy(counts, end)
            if loss < best:
                best, threshold = loss, min(self.largest, end * self.width)
        return threshold


def _relative_entropy(counts, end):
    """Of what is seen when magnitudes above bin `end` are clipped and the rest is rounded to LEVELS steps."""
    true = counts[:end].copy()
    true[-1] += counts[end:].sum()
    group = np.minimum(np.arange(end) * LEVELS // end, LEVELS - 1)
    there = counts[:end] > 0
    members = np.bincount(group, there, LEVELS)
    sums = np.bincount(group, counts[:end], LEVELS)
    rounded = np.where(there, (sums / np.maximum(members, 1))[group], 0)
    true, rounded = true / true.sum(), rounded / rounded.sum()
    shown = (true > 0) & (rounded > 0)
    hidden = true[(true > 0) & (rounded == 0)].sum()  # clipped into a bin that is empty else
    return float((true[shown] * np.log(true[shown] / rounded[shown])).sum() + 20.0 * hidden)
