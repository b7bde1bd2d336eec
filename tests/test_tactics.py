# SPDX-License-Identifier: Apache-2.0
"""Accuracy is not the tuner's luck: each family of kernels, wherever it was found right, is made the fastest in turn by a timing
cache that says so, and the model still answers as ONNX Runtime does."""

import json
import re

import pytest
import zoo as models
from inference import reference_session, relative_error, run_plan

TOLERANCE = 1e-4
NAMES = ["resnet18.ts", "resnet50.ts", "mobilenet_v2.ts", "mobilenet_v3_large.ts", "efficientnet_b0.ts", "densenet121.ts",
         "vgg16.ts", "unet.ts", "yolov8n_like.ts", "vit_b_16.dyn", "swin_t.ts", "convnext_tiny.ts", "hf_bert_base.ts",
         "hf_gpt2.dyn", "hf_whisper_encoder.ts", "lstm_tagger.ts"]
USUAL = {"mobilenet_v3_large.ts", "lstm_tagger.ts"}  # the others take an hour together: -m long


def family_of(key):
    """cpu.conv of "PROBLEM | cpu.conv(pixels=1, ...) linear -> linear | DEVICE | VERSIONS"; Winograd's differ by their output tiles."""
    tactic = key.split(" | ")[1]
    name = re.split(r"[( ]", tactic)[0]
    return name if name != "cpu.winograd" else name + " " + re.search(r"output=\d+", tactic)[0]


def favour(entries, family):
    """The cache's entries with the family's times far below all others'; what was rejected stays so."""
    return [dict(entry, ms=entry["ms"] * 1e-6) if entry["ms"] > 0 and family_of(entry["key"]) == family else entry for entry in entries]


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in USUAL else pytest.mark.long) for name in NAMES])
def test_every_family_of_kernels_keeps_the_accuracy(name, trtexec, zoo):
    path = zoo(name)
    feeds = {value.name: value.values(1) for value in models.inputs(name)}
    session = reference_session(path)
    outputs = [output.name for output in session.get_outputs()]
    expected = dict(zip(outputs, session.run(outputs, feeds)))
    shapes = models.shape_text(name, 1)
    command = [f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--timingCacheFile=t.cache", "--profilingVerbosity=detailed",
               *([f"--shapes={shapes}"] if shapes else [])]
    trtexec(*command)
    header, *lines = (trtexec.folder / "t.cache").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    families = sorted({family_of(entry["key"]) for entry in entries if entry["ms"] > 0})
    assert len(families) > 3
    for family in families:
        text = "\n".join([header, *map(json.dumps, favour(entries, family))]) + "\n"
        (trtexec.folder / "t.cache").write_text(text)
        trtexec(*command, "--errorOnTimingCacheMiss")
        trtexec("--loadEngine=m.plan", "--iterations=1", "--warmUp=0", "--duration=0", "--exportLayerInfo=l.json")
        layers = json.loads((trtexec.folder / "l.json").read_text())["Layers"]
        used = sum(layer["TacticName"].startswith(family.split(" ")[0]) for layer in layers if layer.get("TacticName"))
        found = run_plan(trtexec, "m.plan", feeds, outputs, shapes)
        errors = {output: relative_error(found[output], expected[output]) for output in outputs}
        print(f"{name} with {family} in {used} layers: {max(errors.values()):.1e}")
        assert max(errors.values()) <= TOLERANCE, f"{family}: {errors}"
