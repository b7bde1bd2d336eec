# SPDX-License-Identifier: Apache-2.0
"""An engine on several devices: on each a copy, one summary of all. Two processors stand for two cards."""

import json
import os
import re

import pytest
import tiny
from conftest import Program

CORES = sorted(os.sched_getaffinity(0))[:2]
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="this machine has one processor")
DEVICES = ",".join(f"cpu@{core}" for core in CORES)


@pytest.fixture
def plan(folder, trtexec):
    model = tiny.convolutions(folder / "model.onnx")
    trtexec(f"--onnx={model}", f"--device=cpu@{CORES[0]}", "--saveEngine=model.plan", "--skipInference", "--shapes=x:1x3x16x16")
    return "model.plan"


def test_bench_tells_of_each_device_and_of_all(folder, plan):
    told = json.loads(Program(folder, "hone").answer("bench", plan, f"--device={DEVICES}", "-t", "0.3", "--json"))
    assert [each["device"] for each in told["devices"]] == DEVICES.split(",")
    assert told["queries"] > 0 and all(each["queries"] > 0 and each["latencyMs"]["median"] > 0 for each in told["devices"])
    assert abs(sum(each["queries"] for each in told["devices"]) - told["queries"]) <= 0.1 * told["queries"]  # warm-up ends for each by itself


def test_trtexec_counts_the_queries_of_all_devices(folder, trtexec, plan):
    told = trtexec(f"--loadEngine={plan}", f"--device={DEVICES}", "--duration=0", "--warmUp=0", "--iterations=40", "--exportTimes=times.json")
    assert re.search(f"Device: {DEVICES}", told) and "Throughput:" in told
    assert len(json.loads((folder / "times.json").read_text())) >= 80


def test_a_device_that_is_not_there_is_named(folder, plan):
    done = Program(folder, "hone").run("bench", plan, f"--device=cpu@{CORES[0]},cpu@4000", "-t", "0.1")
    assert done.returncode == 1 and "cpu@4000" in done.stdout and "while setting up" in done.stdout


def test_commands_that_take_one_device_say_so(folder, plan):
    done = Program(folder, "hone").run("run", plan, f"--device={DEVICES}")
    assert done.returncode == 1 and "takes one device" in done.stdout and "hone bench" in done.stdout


def test_cores_of_one_device_may_be_listed(folder, plan):
    """cpu@0,1 is one device of two cores."""
    listed = "cpu@" + ",".join(map(str, CORES))
    told = json.loads(Program(folder, "hone").answer("bench", plan, f"--device={listed}", "-t", "0.1", "--json"))
    assert "devices" not in told and told["queries"] > 0
