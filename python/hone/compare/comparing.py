# SPDX-License-Identifier: Apache-2.0
"""Whole runs held against each other, with the lines that Polygraphy's users search their logs for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from .judging import Limits, Verdict, judge, top_places

Outputs = Mapping[str, np.ndarray]
Runs = Sequence[tuple[str, Sequence[Outputs]]]  # an entry for each iteration; names may come twice
Results = Mapping[str, Sequence[Outputs]] | Runs


def runs_of(results: Results) -> Runs:
    """Names and iterations, in their order."""
    return list(results.items()) if isinstance(results, Mapping) else list(results)


def valid(results: Results) -> bool:
    """Whether no output holds an infinity or a NaN; prints which does."""
    good = True
    for run, iterations in runs_of(results):
        for outputs in iterations:
            for name, array in outputs.items():
                fine = array.dtype.kind in "OUSiub" or bool(np.isfinite(array.astype(np.float64)).all())
                print(f"PASSED | {run} | Output: {name} is valid" if fine else f"FAILED | {run} | Errors detected in output: {name}")
                good &= fine
    return good


def agree(results: Results, limits: Limits | None = None, *, pairs: str = "first", fail_fast: bool = False, average: bool = False,
          allow_unmatched: bool = False, allow_prefix: bool = False, postprocess: Sequence[tuple[str, int, int]] = ()) -> bool:
    """Whether the runs agree. `pairs`: first (each with the first), neighbour, all. `average` judges the mean of each metric over
    iterations. `postprocess`: (output or "", K, axis): places of the K largest values are compared."""
    limits = limits or Limits()
    runs = runs_of(results)
    counts = [len(iterations) for _, iterations in runs]
    good = allow_prefix or len(set(counts)) < 2
    if not good:
        print(f"FAILED | runs have different numbers of iterations: {counts}")
    count = min(counts)
    shown = [[_postprocessed(outputs, postprocess) for outputs in iterations[:count]] for _, iterations in runs]
    for first, second in _pairs([name for name, _ in runs], pairs):
        mine, theirs = runs[first][0], runs[second][0]
        print(f"Accuracy Comparison | {mine} vs. {theirs}")
        verdicts, passed = [], 0
        for found, expected in zip(shown[first], shown[second]):
            judged, fine = _judged(found, expected, limits, allow_unmatched, fail_fast)
            verdicts.append(judged)
            passed += fine
            if fail_fast and not fine:
                break
        if average:
            good &= _average(mine, theirs, verdicts, limits)
            continue
        print(f"Accuracy Summary | {mine} vs. {theirs} | Passed: {passed}/{len(verdicts)} iterations | "
              f"Pass Rate: {100 * passed / max(1, len(verdicts)):.2f}%")
        good &= passed == len(verdicts) and any(verdicts)
        if fail_fast and not good:
            break
    return bool(good)


def _pairs(names, which) -> Iterator[tuple[int, int]]:
    """A golden run comes first on the line and second in a pair: what is judged stands first."""
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            if which == "all" or which == "first" and a == 0 or which == "neighbour" and b == a + 1:
                yield (b, a) if which == "first" and names[0].startswith("ref") else (a, b)


def _postprocessed(outputs, wanted):
    for output, count, axis in wanted:
        outputs = {name: top_places(array, count, axis) if output in ("", name) else array for name, array in outputs.items()}
    return outputs


def _partners(found, expected) -> tuple[list[tuple[str, str]], list[str]]:
    """By name, else by names that hold each other, else by place; and what is left."""
    free = [name for name in expected if name not in found]
    by_place = len(found) == len(expected) == len(free)
    pairs, unmatched = [], []
    for name, beside in zip(found, [*expected, *[None] * len(found)]):
        if name in expected:
            pairs.append((name, name))
            continue
        low = name.lower()
        partner = next((other for other in free if low in other.lower() or other.lower() in low), None)
        if partner is None and by_place and beside in free:
            partner = beside
        if partner is None:
            unmatched.append(name)
        else:
            free.remove(partner)
            print(f"Output '{name}' is compared with '{partner}': there is none of its own name")
            pairs.append((name, partner))
    return pairs, unmatched + free


def _judged(found, expected, limits, allow_unmatched, fail_fast) -> tuple[list[Verdict], bool]:
    pairs, unmatched = _partners(found, expected)
    for name in unmatched:
        print(f"{'WARNING' if allow_unmatched else 'FAILED'} | Output '{name}' is there in one run alone")
    verdicts: list[Verdict] = []
    good = allow_unmatched or not unmatched
    for mine, theirs in pairs:
        for metric in limits.metrics:
            verdict = judge(metric, mine, np.asarray(found[mine]), np.asarray(expected[theirs]), limits)
            print(f"{'PASSED' if verdict.passed else 'FAILED'} | Output: '{mine}' | {verdict.text}")
            verdicts.append(verdict)
            good &= verdict.passed
        if fail_fast and not good:
            break
    return verdicts, good


def _average(mine, theirs, iterations, limits) -> bool:
    """Means over iterations. There is none of single elements: the statistic has to be another."""
    grouped: dict[tuple[str, str], list[Verdict]] = {}
    for verdicts in iterations:
        for verdict in verdicts:
            grouped.setdefault((verdict.output, verdict.metric), []).append(verdict)
    passed = 0
    for (output, metric), verdicts in grouped.items():
        if not all(verdict.needed for verdict in verdicts):  # shapes that differ, strings
            fine = all(verdict.passed for verdict in verdicts)
        else:
            means = np.mean([verdict.needed for verdict in verdicts], axis=0)
            if metric == "simple":
                fine = means[0] <= limits.of("atol", output) or means[1] <= limits.of("rtol", output)
            else:
                limit = limits.of("index_tolerance" if metric == "indices" else metric, output)
                fine = means[0] <= limit if metric in ("l2", "indices") else means[0] >= limit
        passed += bool(fine)
    print(f"Accuracy Summary | {mine} vs. {theirs} | Passed: {passed}/{len(grouped)} outputs")
    return passed == len(grouped) and bool(grouped)
