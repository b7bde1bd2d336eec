# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges as a profiler gets them: tests/cuda/nvtx_recorder.c stands in for one, so neither nsys nor a GPU is needed."""

import collections
import json

import conftest
import pytest
import tiny
from conftest import Program

RECORDER = conftest.UNIT / "libnvtx_recorder.so"
pytestmark = pytest.mark.skipif(not RECORDER.exists(), reason="built without NVTX's header")
LOOP = ["--warmUp=0", "--duration=0", "--iterations=50"]  # seed 003's nsys command line


def recorded(folder, *arguments):
    """{name: [payload or ""]} of all ranges, which must nest."""
    done = Program(folder).run(*arguments, env={"NVTX_INJECTION64_PATH": str(RECORDER), "NVTX_RECORD": "ranges.txt", "HONE_THREADS": "1"})
    assert done.returncode == 0, done.stdout[-2000:]
    ranges, depth = collections.defaultdict(list), 0
    for line in (folder / "ranges.txt").read_text().splitlines():
        depth += 1 if line.startswith("push ") else -1
        assert depth >= 0
        if line.startswith("push "):
            domain, name, *payload = line[5:].split("|")
            assert domain == "hone"
            ranges[name].append(payload[0] if payload else "")
    assert depth == 0
    return ranges


def built(folder, verbosity):
    tiny.convolutions(folder / "m.onnx")
    ranges = recorded(folder, "--onnx=m.onnx", "--saveEngine=m.plan", "--skipInference", "--shapes=x:1x3x16x16",
                      f"--profilingVerbosity={verbosity}", "--exportLayerInfo=layers.json")
    return ranges, json.loads((folder / "layers.json").read_text())["Layers"]


def test_a_detailed_engine_tells_layers_with_payloads_and_fifty_queries_and_no_build(folder):
    ranges, layers = built(folder, "detailed")
    assert {"build", "prepare", "profile 0", "tune", "choose", "write"} <= ranges.keys()
    assert any(name.startswith("cpu.") for name in ranges), ranges.keys()  # tactics that are timed
    ran = recorded(folder, "--loadEngine=m.plan", "--shapes=x:1x3x16x16", *LOOP)
    assert ran.pop("query") == [""] * 50
    shown = {layer["Name"]: layer for layer in layers if layer["LayerType"] != "NoOp"}
    assert ran.keys() == shown.keys()
    for name, payloads in ran.items():
        assert len(payloads) >= 50 and len(payloads) % 50 == 0  # a range for each phase of a kernel
        size, flops, tactic = map(int, payloads[0].split())
        assert size == shown[name]["Bytes"] and flops == shown[name].get("Flops", 0)
        assert tactic == int(shown[name]["TacticValue"], 16) and set(payloads) == {payloads[0]}


def test_names_alone_have_no_payloads_and_none_has_no_layers(folder):
    built(folder, "layer_names_only")
    ran = recorded(folder, "--loadEngine=m.plan", "--shapes=x:1x3x16x16", *LOOP)
    assert len(ran.pop("query")) == 50 and "conv0 + relu0" in ran and {each for all_ in ran.values() for each in all_} == {""}
    built(folder, "none")
    assert recorded(folder, "--loadEngine=m.plan", "--shapes=x:1x3x16x16", *LOOP).keys() == {"query"}
