# SPDX-License-Identifier: Apache-2.0
"""hone bench --throughput: settings that divide the cores are measured, the winner goes into the plan, and tools that feed it follow."""

import ctypes
import json
import os
import re

import pytest
import tiny

CORES = len(os.sched_getaffinity(0))
BRIEF = ("-t", "0.1", "-n", "3", "--warmUp=20")


@pytest.fixture
def model(folder):
    return tiny.convolutions(folder / "model.onnx")


def search(hone, file, *flags):
    return json.loads(hone.answer("bench", file, "--throughput", "--json", *BRIEF, *flags))


def test_settings_divide_the_cores_and_the_fastest_steady_one_is_chosen(hone, model):
    told = search(hone, model, "--device=cpu/2", "--builderOptimizationLevel=1")
    points = told["points"]
    assert {(point["streams"], point["workers"]) for point in points} == {(1, 2), (2, 1)}
    assert all(point["streams"] * point["workers"] <= told["cores"] == 2 for point in points)
    for streams in (1, 2):  # doubled from one row on, until that gains nothing
        rows = [point["rows"] for point in points if point["streams"] == streams]
        assert rows == [1, 2, 4, 8][: len(rows)] and len(rows) >= 2
    assert all(0 < point["medianMs"] <= point["p99Ms"] and point["rowsPerSecond"] > 0 for point in points)
    assert told["device"] and told["device"] in hone.answer("doctor")
    frontier = [point for point in points if point["onFrontier"]]
    for point in points:
        beaten = any(other["rowsPerSecond"] > point["rowsPerSecond"] and other["p99Ms"] <= point["p99Ms"] for other in points)
        assert (point in frontier) != beaten
    steady = [point for point in points if point["p99Ms"] <= 3 * point["medianMs"]] or points
    best, chosen = max(steady, key=lambda point: point["rowsPerSecond"]), told["chosen"]
    assert all(chosen[name] == best[name] for name in ("streams", "workers", "rows"))
    if chosen["streams"] > 1:
        turns = chosen["rowsPerSecondOfTurns"]
        assert chosen["tunedUnderLoad"] == (turns["tunedUnderLoad"] > turns["tunedAlone"])


@pytest.mark.parametrize("limit, fits", [("1e-6", False), ("1e6", True)])
def test_a_latency_that_is_asked_for_goes_before_the_rate(hone, model, limit, fits):
    told = search(hone, model, "--device=cpu/2", "--builderOptimizationLevel=0", "--p99", limit, "--shapes=x:2x3x16x16")
    assert [point["rows"] for point in told["points"]] == [2, 2]
    best = max(told["points"], key=lambda point: point["rowsPerSecond"])
    assert told["chosen"]["streams"] == best["streams"]
    assert all((point["p99Ms"] <= float(limit)) == fits for point in told["points"])


@pytest.mark.skipif(CORES < 2, reason="this machine has one processor")
def test_the_plan_keeps_the_winner_and_tools_follow_it(folder, hone, trtexec, model):
    """Of a plan for streams alone: rows are what was asked for."""
    trtexec(f"--onnx={model}", "--saveEngine=built.plan", "--skipInference", "--builderOptimizationLevel=0", "--minShapes=x:1x3x16x16",
            "--optShapes=x:2x3x16x16", "--maxShapes=x:4x3x16x16")
    told = search(hone, "built.plan", "-o", "tuned.plan")
    assert {point["rows"] for point in told["points"]} <= {1, 2, 4} and "rowsPerSecondOfTurns" not in told["chosen"]
    chosen = told["chosen"]
    summary = json.loads(hone.answer("inspect", "tuned.plan", "--json"))
    kept = summary["throughput"]
    assert all(kept[name] == chosen[name] for name in ("streams", "workers", "rows", "rowsPerSecond", "medianMs", "p99Ms"))
    assert "throughput" not in json.loads(hone.answer("inspect", "built.plan", "--json"))
    assert f"{kept['streams']} of {kept['workers']} workers" in hone("inspect", "tuned.plan")

    followed = json.loads(hone.answer("bench", "tuned.plan", "--json", *BRIEF))
    assert followed["streams"] == chosen["streams"]
    assert json.loads(hone.answer("bench", "tuned.plan", "--json", "--streams", "1", *BRIEF))["streams"] == 1
    told = trtexec("--loadEngine=tuned.plan", "--duration=0", "--iterations=3")
    assert re.search(f"Inference Streams: {chosen['streams']}", told)
    assert f"with {chosen['streams']} inference streams and {chosen['rows']} rows a query, which are taken" in told
    assert re.search(rf"Set shape of input tensor x to: {chosen['rows']}x3x16x16", told)
    told = trtexec("--loadEngine=tuned.plan", "--duration=0", "--iterations=3", "--infStreams=1", "--shapes=x:1x3x16x16")
    assert "which are taken" not in told and "Inference Streams: 1" in told


def openings(file, run):
    """How often a file is opened while that runs, as Linux tells (inotify)."""
    opened, closed, one = 0x20, 0x10, 16  # bits of events, and the bytes of each; equal ones in a row would be told as one
    system = ctypes.CDLL(None, use_errno=True)
    queue = system.inotify_init1(os.O_NONBLOCK)
    assert system.inotify_add_watch(queue, os.fsencode(file), opened | closed) > 0
    run()
    events = os.read(queue, 1 << 16)
    os.close(queue)
    return sum(int.from_bytes(events[at + 4:at + 8], "little") == opened for at in range(0, len(events), one))


def test_a_plan_is_opened_and_held_against_its_checksums_once(folder, hone, trtexec, model):
    trtexec(f"--onnx={model}", "--saveEngine=m.plan", "--skipInference", "--builderOptimizationLevel=0", "--shapes=x:1x3x16x16")
    for program, words in ((trtexec, ("--loadEngine=m.plan", "--duration=0", "--iterations=3")), (trtexec, ("--loadEngine=m.plan", "--getPlanVersionOnly")),
                           (hone, ("bench", "m.plan", *BRIEF)), (hone, ("report", "m.plan", "-o", "r.html"))):
        assert openings(folder / "m.plan", lambda program=program, words=words: program(*words)) == 1, words


def test_streams_are_tuned_beside_each_other_and_the_file_of_times_stays_as_it_was(folder, hone, model):
    """Four streams of one worker on any machine: kernels are timed twice, the second time into no file."""
    flags = ("--device=cpu/4", "--builderOptimizationLevel=3", "--shapes=x:1x3x16x16", "--timingCacheFile=times")
    told = search(hone, model, *flags, "-o", "tuned.plan")
    times = (folder / "times").read_bytes()
    again = search(hone, model, *flags)
    assert (folder / "times").read_bytes() == times
    for each in (told, again):
        assert [(point["streams"], point["workers"]) for point in each["points"]] == [(1, 4), (2, 2), (4, 1)]
        assert ("rowsPerSecondOfTurns" in each["chosen"]) == (each["chosen"]["streams"] > 1)
    assert (folder / "tuned.plan").exists() and hone("check", "tuned.plan")


def test_what_is_wrong_is_said(folder, hone, model):
    for flags, sentence in ((("--throughput", "--p99", "never"), "--p99=never is no time"), (("--p99", "3"), "--p99 is of --throughput"),
                            (("--throughput", "--device=cpu@0,cpu@1"), "takes one device"),
                            (("--throughput", "-o", "no/such/folder/x.plan", "--device=cpu/1", "--builderOptimizationLevel=0", "--shapes=x:1x3x16x16",
                              *BRIEF), "no/such/folder/x.plan")):
        done = hone.run("bench", model, *flags)
        assert done.returncode == 1 and sentence in done.stdout, done.stdout
