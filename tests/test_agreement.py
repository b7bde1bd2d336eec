# SPDX-License-Identifier: Apache-2.0
"""The closed-loop latency of the summary against a C program that Hone writes: the same plan, data and threads, no code of trtexec.

The two take turns. Rounds are made until the interval in which the median of their ratios lies is within 5 % of one, or wholly
outside, which fails. A round counts where nobody else used the processors, by the system's own count; beside other work there
are none, and it stays undecided: that is said."""

import math
import os
import re
import statistics
import subprocess
import time

import conftest
import pytest

ROUNDS, BATCHES, QUERIES, TOLERANCE = 9, 3, 20, 0.05
QUIET = 0.05  # of the processors' time, that others may use in a round


def compile_program(folder, plan):
    conftest.Program(folder, "hone")("inspect", plan, "--emit-c", "c")
    library = conftest.BIN.parent / "lib"
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", f"-I{conftest.ROOT}/include", "c/run_plan.c", f"-L{library}",
                    "-lhone", f"-Wl,-rpath,{library}", "-o", "c/run_plan"], cwd=folder, check=True, timeout=300)


def median_of_program(folder, plan):
    printed = subprocess.run(["c/run_plan", plan, str(QUERIES)], cwd=folder, capture_output=True, text=True, timeout=600, check=True).stdout
    return float(re.search(rf"median ([0-9.]+) ms, fastest [0-9.]+ ms of {QUERIES} queries", printed)[1])


def median_of_summary(trtexec, plan):
    log = trtexec(f"--loadEngine={plan}", "--shapes=x:1x3x224x224", f"--iterations={QUERIES}", "--duration=0", "--warmUp=100")
    return float(re.search(r"Closed-loop latency: median = (\S+) ms", log)[1])


def busy_and_own_seconds():
    """The time that all processors have worked, other machines on them too, and that of this test."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def ratio_of_round(trtexec, plan):
    """Of the summary to the program; None where others used the processors meanwhile."""
    start, (busy, own) = time.monotonic(), busy_and_own_seconds()
    theirs = median_of_program(trtexec.folder, plan)
    ratio = median_of_summary(trtexec, plan) / theirs
    elapsed, (busy_now, own_now) = time.monotonic() - start, busy_and_own_seconds()
    others = (busy_now - busy - (own_now - own)) / elapsed / os.cpu_count()
    return ratio if others <= QUIET else None


def interval(ratios):
    """Where the median of such ratios lies, with 99 % certainty, whatever they are distributed like: two of them, sorted."""
    ratios, count, below, rank = sorted(ratios), len(ratios), 0.0, 0
    while below + math.comb(count, rank) / 2 ** count <= 0.005:
        below += math.comb(count, rank) / 2 ** count
        rank += 1
    return ratios[max(rank - 1, 0)], ratios[min(count - rank, count - 1)]


def test_the_summary_agrees_with_a_program_that_hone_writes(trtexec, resnet18):
    trtexec("--onnx=resnet18.onnx", "--shapes=x:1x3x224x224", "--builderOptimizationLevel=0", "--saveEngine=r18.plan", "--skipInference")
    compile_program(trtexec.folder, "r18.plan")
    ratios = []
    for _ in range(BATCHES):
        made = [ratio_of_round(trtexec, "r18.plan") for _ in range(ROUNDS)]
        ratios += [ratio for ratio in made if ratio is not None]
        said = f"{len(ratios)} quiet rounds"
        if not ratios:
            break
        if len(ratios) < ROUNDS:
            continue
        low, high = interval(ratios)
        said = f"summary / program: {statistics.median(ratios):.3f}, from {low:.3f} to {high:.3f}, by {len(ratios)} rounds: {[round(ratio, 3) for ratio in ratios]}"
        print(said)
        assert low <= 1 + TOLERANCE and high >= 1 - TOLERANCE, said
        if low >= 1 - TOLERANCE and high <= 1 + TOLERANCE:
            return
    pytest.skip("the machine is too busy to tell: " + said)
