# SPDX-License-Identifier: Apache-2.0
"""Which range of a tensor's values 256 steps shall cover, of samples that are seen one after the other.

A histogram of magnitudes holds what was seen; where a later sample leaves it, neighbouring bins are joined, so that all samples count
alike. From it follow the largest magnitude, a quantile, or the threshold whose clipped and rounded distribution is nearest to the true
one (the least relative entropy).
"""

import numpy as np

BINS, LEVELS = 2048, 128
VALUES_PER_BIN = 4
MOST_CLIPPED = 3e-4  # large values carry the signal: what clips more harms more than finer steps help


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
        total, used = self.counts.sum(), int(np.flatnonzero(self.counts).max(initial=-1)) + 1
        if total == 0:
            return self.largest
        factor = -(-used * VALUES_PER_BIN // int(total))  # of few values a fine histogram is holes: bins are joined
        counts = np.add.reduceat(self.counts[:used], np.arange(0, used, factor))
        if len(counts) <= LEVELS:
            return self.largest
        counts[0] = counts[1]  # zeros (of ReLU, of padding) are exact in any case
        clipped = total - np.cumsum(np.add.reduceat(self.counts[:used], np.arange(0, used, factor)))
        best, least = len(counts), _divergence(counts, len(counts))
        for cut in range(LEVELS, len(counts)):
            if clipped[cut - 1] <= MOST_CLIPPED * total and (loss := _divergence(counts, cut)) < least:
                best, least = cut, loss
        return min(self.largest, best * factor * self.width)


def _divergence(counts, cut):
    """Of what LEVELS levels keep of the first `cut` bins from those bins with all that is beyond in the last of them. A level stands for
    its bins in use, each as often as the others; an empty last bin counts as half a value."""
    inside, rest = counts[:cut], counts[cut:].sum()
    starts = np.arange(LEVELS) * cut // LEVELS
    sums, filled = np.add.reduceat(inside, starts), np.add.reduceat((inside > 0).astype(float), starts)
    level = np.repeat(np.arange(LEVELS), np.diff(np.append(starts, cut)))
    kept = np.where(inside > 0, (sums / np.maximum(filled, 1))[level], 0.5)
    true = inside.copy()
    true[-1] += rest
    there = true > 0
    return float((true[there] * np.log(true[there] / kept[there])).sum() / counts.sum() - np.log(counts.sum() / inside.sum()))
