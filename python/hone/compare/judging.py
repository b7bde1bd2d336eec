# SPDX-License-Identifier: Apache-2.0
"""Whether one array is near enough to another: Polygraphy's metrics and statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

ByName = Mapping[str, float]  # "" for all that are not named


@dataclasses.dataclass
class Limits:
    """What `hone run` takes as --compare, --atol, --rtol, --check-error-stat, ...: by output, "" for all others."""

    metrics: Sequence[str] = ("simple",)  # simple, indices, l2, cosine_similarity, psnr, snr
    atol: ByName = dataclasses.field(default_factory=dict)
    rtol: ByName = dataclasses.field(default_factory=dict)
    stat: Mapping[str, str] = dataclasses.field(default_factory=dict)  # elemwise, max, mean, median, quantile
    quantile: ByName = dataclasses.field(default_factory=dict)
    index_tolerance: ByName = dataclasses.field(default_factory=dict)
    l2: ByName = dataclasses.field(default_factory=dict)
    cosine_similarity: ByName = dataclasses.field(default_factory=dict)
    psnr: ByName = dataclasses.field(default_factory=dict)
    snr: ByName = dataclasses.field(default_factory=dict)
    shape_check: bool = True
    infinities_equal: bool = False

    def of(self, member: str, output: str):
        """What holds for an output."""
        given = getattr(self, member)
        return given.get(output, given.get("", STANDARD[member]))


STANDARD = {"atol": 1e-5, "rtol": 1e-5, "stat": "elemwise", "quantile": 0.99, "index_tolerance": 0, "l2": 1e-5, "cosine_similarity": 0.997,
            "psnr": 30, "snr": 20}


@dataclasses.dataclass
class Verdict:
    """Of one metric on one output. `needed`: the tolerances that would just pass; of other metrics their one number."""

    output: str
    metric: str
    passed: bool
    text: str
    needed: tuple[float, ...] = ()


def judge(metric: str, output: str, found: np.ndarray, expected: np.ndarray, limits: Limits) -> Verdict:
    """One output by one metric."""
    if found.dtype.kind in "OUS" or expected.dtype.kind in "OUS":
        same = np.array_equal(found, expected)
        return Verdict(output, metric, same, "the same strings" if same else "strings are compared as a whole: they differ")
    if found.shape != expected.shape if limits.shape_check else found.size != expected.size:
        return Verdict(output, metric, False, f"Shapes differ: {found.shape} and {expected.shape}")
    if metric == "simple":
        return _simple(output, found, expected, limits)
    limit = limits.of("index_tolerance" if metric == "indices" else metric, output)
    if metric == "indices":
        value, passed = _places_apart(found, expected, int(limit))
    else:
        value = _single(metric, _real(found), _real(expected))
        passed = value <= limit if metric == "l2" else value >= limit
    return Verdict(output, metric, bool(passed), f"{metric} {value:.5g} (limit {limit:g})", (value,))


def _real(array: np.ndarray) -> np.ndarray:
    wide = array if array.dtype.kind in "fiub" else array.astype(np.float32)  # of ml_dtypes
    return wide.astype(np.float64).ravel()


def _simple(output, found, expected, limits):
    stat, atol, rtol = (limits.of(member, output) for member in ("stat", "atol", "rtol"))
    a, b = _real(found), _real(expected)
    with np.errstate(all="ignore"):
        absolute = (a != b).astype(np.float64) if found.dtype == bool else np.abs(a - b)
        if limits.infinities_equal:
            absolute[np.isinf(a) & (a == b)] = 0
        relative = np.where(absolute == 0, 0, absolute / np.where(b == 0, np.finfo(np.float64).eps, np.abs(b)))
    reduced = {"mean": np.mean, "median": np.median, "quantile": lambda each: np.quantile(each, limits.of("quantile", output))}
    needed = tuple(float(reduced.get(stat, np.max)(each)) if each.size else 0.0 for each in (absolute, relative))
    if stat == "elemwise":
        off = int(np.count_nonzero(~(absolute <= atol) & ~(relative <= rtol)))
        passed, counted = off == 0, f", {off} of {a.size} elements beyond both"
    else:
        passed, counted = needed[0] <= atol or needed[1] <= rtol, ""
    return Verdict(output, "simple", passed, f"{stat} error [abs={needed[0]:.5g}] OR [rel={needed[1]:.5g}], "
                   f"tolerance [abs={atol:.5g}, rel={rtol:.5g}]{counted}", needed)


def _single(metric, a, b):
    with np.errstate(all="ignore"):
        if metric == "l2":
            return float(np.sqrt(np.sum((a - b) ** 2)))
        if metric == "cosine_similarity":
            sizes = np.sum(a * a), np.sum(b * b)
            if 0 in sizes:
                return float(sizes[0] == sizes[1])
            return float(np.clip(np.sum(a * b) / (np.sqrt(sizes[0]) * np.sqrt(sizes[1])), -1, 1))
        error = np.sum((a - b) ** 2) / max(1, a.size)
        if error == 0:
            return float("inf")
        if metric == "psnr":
            most = a.max(initial=-np.inf)
            return float(20 * np.log10(most if most > 0 else 1) - 10 * np.log10(error))
        if metric == "snr":
            return float(10 * np.log10(np.sum(a * a) / max(1, a.size) / error))
    raise ValueError(f"there is no metric {metric}\n  hint: simple, indices, l2, cosine_similarity, psnr or snr")


def _places_apart(found, expected, allowed):
    """How far each value of a row stands from where it stands in the other row; the last `allowed` of a row are left out."""
    length = found.shape[-1] if found.ndim else 1
    worst = 0
    for mine, theirs in zip(found.reshape(-1, length), expected.reshape(-1, length)):
        for at, value in enumerate(mine[:length - min(allowed, length)]):
            places = np.flatnonzero(theirs == value)
            worst = max(worst, int(np.abs(places - at).min()) if places.size else length)
    return worst, worst <= allowed


def top_places(array: np.ndarray, count: int, axis: int = -1) -> np.ndarray:
    """Where the largest values stand, the largest first, as int64: what --postprocess top-K compares."""
    order = np.argsort(-(array if array.dtype.kind == "f" else array.astype(np.float64)), axis=axis, kind="stable")
    return np.take(order, np.arange(min(count, array.shape[axis])), axis=axis).astype(np.int64)
