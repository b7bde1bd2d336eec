# SPDX-License-Identifier: Apache-2.0
"""Builds can be repeated, remember what they timed, and obey the caps put on the processor."""

import re
import signal

import numpy as np
import pytest
import tiny
from inference import ONE_RUN, reference_session, relative_error, run_plan


def seconds_to_build(log):
    return float(re.search(r"Engine built in ([0-9.e+-]+) sec", log)[1])


def test_the_same_cache_gives_the_same_bytes_and_times_nothing(resnet18, trtexec):
    build = ["--onnx=resnet18.onnx", "--timingCacheFile=t.cache", "--skipInference"]
    cold = trtexec(*build, "--saveEngine=a.plan")
    cache = (trtexec.folder / "t.cache").read_bytes()
    warm = trtexec(*build, "--saveEngine=b.plan", "--errorOnTimingCacheMiss")
    assert (trtexec.folder / "a.plan").read_bytes() == (trtexec.folder / "b.plan").read_bytes()
    assert (trtexec.folder / "t.cache").read_bytes() == cache, "a warm build times nothing"
    print(f"cold {seconds_to_build(cold)} s, warm {seconds_to_build(warm)} s")


def test_a_spent_budget_leaves_the_rest_to_the_rule(resnet18, trtexec):
    log = trtexec("--onnx=resnet18.onnx", "--buildBudget=0", "--skipInference", "--saveEngine=a.plan")
    by_rule, layers = re.search(r"the tactics of (\d+) of (\d+) layers are chosen by rule", log).groups()
    assert 0 < int(by_rule) <= int(layers)


def test_ctrl_c_ends_the_tuning_and_the_plan_is_written(resnet18, trtexec):
    process = trtexec.start("--onnx=resnet18.onnx", "--saveEngine=a.plan", "--timingCacheFile=t.cache", "--verbose")
    for line in process.stdout:
        if "Computing costs for" in line:
            process.send_signal(signal.SIGINT)
            break
    log = process.stdout.read()
    assert process.wait(timeout=900) == 0, log[-2000:]
    assert "chosen by rule" in log and "Skipped inference phase since the build was interrupted." in log
    trtexec("--loadEngine=a.plan", "--iterations=1", "--warmUp=0", "--duration=0")


def test_a_damaged_timing_cache_is_started_anew(trtexec, folder):
    tiny.convolutions(folder / "m.onnx")
    (folder / "t.cache").write_bytes(b"\xff\x00 no cache at all\n{half a line")
    log = trtexec("--onnx=m.onnx", "--timingCacheFile=t.cache", "--skipInference")
    assert "[W]" in log and "t.cache" in log


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_every_cap_on_the_instruction_set_gives_the_same_answer(isa, trtexec, folder):
    model = tiny.convolutions(folder / "m.onnx")
    values = np.random.default_rng(3).standard_normal((5, 3, 16, 16), np.float32)
    environment = {"HONE_CPU_ISA": isa}
    trtexec("--onnx=m.onnx", "--saveEngine=m.plan", "--skipInference", "--minShapes=x:1x3x16x16",
            "--optShapes=x:4x3x16x16", "--maxShapes=x:8x3x16x16", env=environment)
    found = run_plan(trtexec, "m.plan", {"x": values}, ["y"], "x:5x3x16x16", env=environment)["y"]
    expected = reference_session(model).run(["y"], {"x": values})[0]
    assert relative_error(found, expected) <= 1e-5


def test_a_plan_tuned_for_instructions_that_are_missing_is_refused(trtexec, folder):
    tiny.convolutions(folder / "m.onnx")
    log = trtexec("--onnx=m.onnx", "--saveEngine=m.plan", "--skipInference", "--shapes=x:2x3x16x16")
    if "Compute Capability: scalar" in log:
        return  # nothing is missing where nothing can be
    done = trtexec.run("--loadEngine=m.plan", "--shapes=x:2x3x16x16", env={"HONE_CPU_ISA": "scalar"})
    assert done.returncode == 1 and "scalar" in done.stdout and "hint:" in done.stdout


def test_a_plan_with_its_portable_part_is_tuned_again_where_it_does_not_fit(trtexec, folder):
    model = tiny.convolutions(folder / "m.onnx")
    values = np.random.default_rng(3).standard_normal((5, 3, 16, 16), np.float32)
    log = trtexec("--onnx=m.onnx", "--saveEngine=m.plan", "--skipInference", "--versionCompatible", "--minShapes=x:1x3x16x16",
                  "--optShapes=x:4x3x16x16", "--maxShapes=x:8x3x16x16")
    if "Compute Capability: scalar" in log:
        return  # nothing is missing where nothing can be
    done = trtexec.run("--loadEngine=m.plan", "--shapes=x:2x3x16x16", *ONE_RUN, env={"HONE_CPU_ISA": "scalar"})
    assert done.returncode == 0 and "its tactics are chosen anew" in done.stdout
    found = run_plan(trtexec, "m.plan", {"x": values}, ["y"], "x:5x3x16x16", env={"HONE_CPU_ISA": "scalar"})["y"]
    expected = reference_session(model).run(["y"], {"x": values})[0]
    assert relative_error(found, expected) <= 1e-5
    assert "chosen anew" not in trtexec("--loadEngine=m.plan", "--shapes=x:2x3x16x16", *ONE_RUN)


def test_streams_divide_the_cores(trtexec, folder):
    tiny.convolutions(folder / "m.onnx")
    log = trtexec("--onnx=m.onnx", "--shapes=x:2x3x16x16", "--infStreams=2", "--iterations=2", "--duration=0")
    cores = int(re.search(r"SMs: (\d+)", trtexec("--onnx=m.onnx", "--buildOnly"))[1])
    assert f"Cores of each of the 2 inference streams: {max(1, cores // 2)}," in log
    chosen = trtexec("--onnx=m.onnx", "--shapes=x:2x3x16x16", "--infStreams=2", "--iterations=2", "--duration=0", env={"HONE_THREADS": "2"})
    assert "Cores of each of the 2 inference streams: 2," in chosen


def test_streams_and_threads_share_one_engine(trtexec, folder):
    tiny.convolutions(folder / "m.onnx")
    log = trtexec("--onnx=m.onnx", "--shapes=x:2x3x16x16", "--infStreams=3", "--threads", "--iterations=30",
                  "--duration=0", "--warmUp=0")
    queries = int(re.search(r"Timing trace has (\d+) queries", log)[1])
    assert queries >= 30


def test_exactly_as_many_iterations_as_asked(trtexec, folder):
    tiny.perceptron(folder / "m.onnx")
    log = trtexec("--onnx=m.onnx", "--shapes=x:2x4", "--warmUp=0", "--duration=0", "--iterations=50",
                  "--exportTimes=t.json")
    assert "Warmup completed 0 queries over 0 ms" in log and "Timing trace has 50 queries" in log
