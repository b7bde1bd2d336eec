# SPDX-License-Identifier: Apache-2.0
"""--best: the network is built in every type that may be, the engines run, and the fastest one is kept. Which one that is depends
on the machine; that it is one of those that ran, and near enough to FP32, does not."""

import re

import numpy as np
import onnx
import pytest
import tiny
from onnx import helper

BUILD = ("--onnx=m.onnx", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=1", "--skipInference")


@pytest.fixture
def network(folder):
    model = onnx.load(tiny.convolutions(folder / "m.onnx"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 10]))
    onnx.save(model, folder / "m.onnx")
    np.savez(folder / "data.npz", x=np.random.default_rng(4).standard_normal((8, 3, 16, 16), np.float32))
    return folder / "m.onnx"


def tried(said):
    """Milliseconds and error of each engine that ran, and the one that was taken."""
    rows = re.findall(r"Best: (\S+) takes (\S+) ms, relative error (\S+)\.$", said, re.MULTILINE)
    return {name: (float(ms), float(error)) for name, ms, error in rows}, re.findall(r"Best: (\S+) is taken\.$", said, re.MULTILINE)


def test_an_engine_that_ran_is_the_plan(trtexec, network):
    said = trtexec(*BUILD, "--best", "--calibData=data.npz", "--saveEngine=m.plan")
    engines, [taken] = tried(said)
    assert {"FP32", "BF16", "INT8", "INT8+BF16"} <= engines.keys() and taken in engines
    assert engines["FP32"][1] == 0 and 0 < engines["INT8"][1] < 0.1
    trtexec("--loadEngine=m.plan", "--shapes=x:1x3x16x16", "--iterations=3", "--warmUp=0", "--duration=0")


def test_the_budget_keeps_what_is_near_to_fp32(trtexec, network):
    said = trtexec(*BUILD, "--best", "--calibData=data.npz", "--accuracyBudget=0")
    engines, [taken] = tried(said)
    assert engines[taken][1] == 0 and "Best: INT8 is left out: its results are further from" in said


def test_a_timing_cache_serves_all_engines(trtexec, network):
    trtexec(*BUILD, "--best", "--calibData=data.npz", "--timingCacheFile=t.cache")
    entries = (network.parent / "t.cache").read_text().count("\n")
    trtexec(*BUILD, "--fp16", "--bf16", "--timingCacheFile=t.cache")
    trtexec(*BUILD, "--timingCacheFile=t.cache")
    assert (network.parent / "t.cache").read_text().count("\n") == entries


def test_without_calibration_integers_are_no_candidate(trtexec, network):
    engines, [taken] = tried(trtexec(*BUILD, "--best"))
    assert engines.keys() >= {"FP32", "BF16"} and not any("INT8" in name for name in engines)


def test_a_network_that_cannot_be_compared_is_built_with_all_types(trtexec, folder):
    """Nobody can bind strings."""
    graph = helper.make_graph([helper.make_node("Identity", ["s"], ["t"])], "strings",
                              [helper.make_tensor_value_info("s", onnx.TensorProto.STRING, [2])],
                              [helper.make_tensor_value_info("t", onnx.TensorProto.STRING, [2])])
    onnx.save(helper.make_model(graph), folder / "s.onnx")
    said = trtexec("--onnx=s.onnx", "--best", "--skipInference", "--saveEngine=s.plan")
    assert "Best: a choice by time is left out: input s holds" in said and (folder / "s.plan").exists()


@pytest.mark.parametrize("flags, complaint", [
    (("--best", "--accuracyBudget=-1"), "takes a relative error of 0 or more, not '-1'"),
    (("--best", "--accuracyBudget=x"), "--accuracyBudget"),
])
def test_a_budget_is_a_number_of_0_or_more(trtexec, network, flags, complaint):
    done = trtexec.run(*BUILD, *flags)
    assert done.returncode != 0 and complaint in done.stdout


def test_a_budget_alone_does_nothing_and_it_says_so(trtexec, network):
    assert "--accuracyBudget has no effect without --best" in trtexec(*BUILD, "--accuracyBudget=0.1")
