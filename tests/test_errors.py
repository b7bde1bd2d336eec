# SPDX-License-Identifier: Apache-2.0
"""What is wrong is said in a sentence, with a hint, and exit status 1; nothing crashes and nothing is left half-written."""

import json
import os
import random
import re

import pytest
import tiny
from conftest import Program
from inference import ONE_RUN
from onnx import helper

SEED = 20240607


@pytest.fixture
def models(folder):
    """good.onnx, cut.onnx, text.onnx, empty.onnx and odd.onnx (operators that nobody knows) in the folder."""
    good = tiny.perceptron(folder / "good.onnx").read_bytes()
    (folder / "cut.onnx").write_bytes(good[: len(good) // 2])
    (folder / "text.onnx").write_text("this is a letter, not a model\n" * 20)
    (folder / "empty.onnx").write_bytes(b"")
    tiny.save(folder / "odd.onnx", [helper.make_node("Frobnicate", ["x"], ["a"], name="first"),
                                    helper.make_node("Relu", ["a"], ["b"], name="fine"),
                                    helper.make_node("Defenestrate", ["b"], ["y"], name="second")])
    return folder


@pytest.fixture
def plan(models, trtexec):
    """A small plan for 1 to 4 rows, good.plan in the folder."""
    trtexec("--onnx=good.onnx", "--saveEngine=good.plan", "--skipInference", "--minShapes=x:1x4", "--optShapes=x:2x4",
            "--maxShapes=x:4x4")
    return models / "good.plan"


def refused(trtexec, *arguments):
    """What a run that must fail said; asserts how it failed."""
    done = trtexec.run(*arguments, timeout=300)
    assert done.returncode == 1, f"exit {done.returncode}: {' '.join(arguments)}\n{done.stdout[-2000:]}"
    assert "&&&& FAILED" in done.stdout and "&&&& PASSED" not in done.stdout
    for word in ("internal error", "terminate called", "Sanitizer", "assert"):
        assert word not in done.stdout, done.stdout[-2000:]
    return done.stdout


MODEL_CASES = {
    "missing model": (["--onnx=nowhere.onnx"], r"nowhere\.onnx"),
    "truncated model": (["--onnx=cut.onnx"], r"cut\.onnx"),
    "text as model": (["--onnx=text.onnx"], r"text\.onnx"),
    "empty model": (["--onnx=empty.onnx"], r"empty\.onnx"),
    "folder as model": (["--onnx=."], r"director|folder|regular file"),
    "unknown input in shapes": (["--onnx=good.onnx", "--shapes=nobody:1x4"], r"nobody"),
    "wrong rank": (["--onnx=good.onnx", "--shapes=x:1x4x4"], r"\bx\b"),
    "contradicts a fixed size": (["--onnx=good.onnx", "--shapes=x:1x5"], r"\bx\b.*5|5.*\bx\b"),
    "min above max": (["--onnx=good.onnx", "--minShapes=x:4x4", "--optShapes=x:4x4", "--maxShapes=x:1x4"], r"\bx\b"),
    "bad shape text": (["--onnx=good.onnx", "--shapes=x:1xfour"], r"four"),
    "unknown flag": (["--onnx=good.onnx", "--saveEngin=m.plan"], r"Unknown option: --saveEngin"),
    "no model": (["--verbose"], r"[Mm]odel"),
    "positional argument": (["good.plan", "--trt"], r"[Mm]odel|Unknown option"),
    "unwritable plan": (["--onnx=good.onnx", "--saveEngine=no/such/folder/m.plan", "--skipInference"], r"no/such/folder"),
    "missing raw input": (["--onnx=good.onnx", "--loadInputs=x:none.raw"], r"none\.raw"),
    "raw input for nobody": (["--onnx=good.onnx", "--loadInputs=nobody:good.onnx"], r"nobody|loadInputs"),
    "bad number": (["--onnx=good.onnx", "--iterations=many"], r"iterations|many"),
}


@pytest.mark.parametrize("name", MODEL_CASES)
def test_bad_command_or_model_is_refused(name, models, trtexec):
    arguments, message = MODEL_CASES[name]
    before = set(models.iterdir())
    said = refused(trtexec, *arguments)
    assert re.search(message, re.sub(r"&&&&.*", "", said)), said[-2000:]
    assert set(models.iterdir()) == before, "a failed run left something"


def test_a_raw_input_that_is_too_short_is_refused(models, trtexec):
    (models / "short.raw").write_bytes(b"\0" * 7)
    said = refused(trtexec, "--onnx=good.onnx", "--shapes=x:1x4", "--loadInputs=x:short.raw")
    assert "short.raw" in said and "16" in said and "7" in said


def test_all_unsupported_operators_are_listed_at_once(models, trtexec):
    said = refused(trtexec, "--onnx=odd.onnx")
    for word in ("Frobnicate", "first", "Defenestrate", "second"):
        assert word in said, said[-2000:]
    assert not re.search(r"unsupported.*\bfine\b", said)


def test_errors_carry_a_hint(models, trtexec):
    for arguments in (["--onnx=nowhere.onnx"], ["--onnx=odd.onnx"], ["--onnx=good.onnx", "--shapes=nobody:1x4"]):
        assert "hint:" in refused(trtexec, *arguments)


BAD_VALUES = ["--shapes=x:", "--shapes=x:1x", "--shapes=x:99999999999999999999x4", "--shapes=x:-1x4", "--shapes='x:1x4", "--shapes=:1x4",
              "--shapes=x:1x4,", "--shapes=x:4611686018427387904x4", "--minShapes=x:1x4,x:2x4", "--loadInputs=x", "--memPoolSize=workspace:lots",
              "--inputIOFormats=fp99:chw", "--percentile=101", "--iterations=-1", "--useProfile=7", "--layerPrecisions=x:fp99",
              "--timingCacheFile=.", "--exportTimes=no/such/folder/t.json"]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_values_that_make_no_sense_end_in_a_sentence(value, models, trtexec):
    done = trtexec.run("--onnx=good.onnx", value, *ONE_RUN, timeout=300)
    assert done.returncode in (0, 1), done.stdout[-2000:]
    for word in ("internal error", "terminate called", "Sanitizer"):
        assert word not in done.stdout, done.stdout[-2000:]


def test_pipes_as_files_do_not_block(models, trtexec):
    os.mkfifo(models / "pipe")
    for arguments in (["--onnx=pipe"], ["--loadEngine=pipe"], ["--onnx=good.onnx", "--shapes=x:1x4", "--loadInputs=x:pipe"]):
        assert "pipe" in refused(trtexec, *arguments)
    said = trtexec.run("--onnx=good.onnx", "--timingCacheFile=pipe", "--skipInference", timeout=300).stdout
    assert "pipe" in said


def test_a_plugin_library_that_is_no_file_is_not_opened(models, trtexec):
    """A pipe that nobody writes to would block whoever opens it."""
    os.mkfifo(models / "trap")
    for flag in ("--plugins", "--staticPlugins", "--dynamicPlugins", "--setPluginsToSerialize"):
        done = trtexec.run("--onnx=good.onnx", f"{flag}=trap", "--skipInference", timeout=300)
        assert done.returncode == 1 and "trap is not a regular file" in done.stdout, done.stdout[-2000:]


def test_calibration_caches_and_results_of_routes_are_short_files(models, trtexec):
    os.mkfifo(models / "pipe")
    with open(models / "huge", "wb") as file:
        file.truncate(1 << 40)
    (models / "binary").write_bytes(bytes(range(256)) * 4)
    for name in ("pipe", "huge", "binary"):
        for arguments in (["--onnx=good.onnx", f"--calib={name}", "--int8", "--skipInference"], ["--continue", f"--tuningCacheFile={name}"],
                          ["--onnx=good.onnx", f"--tuneBuildRouteFile={name}"]):
            done = trtexec.run(*arguments, timeout=300)
            assert done.returncode == 1 and "[E]" in done.stdout and "internal error" not in done.stdout, done.stdout[-2000:]


def test_a_huge_timing_cache_is_not_read(models, trtexec):
    with open(models / "huge.cache", "wb") as file:
        file.truncate(1 << 40)
    done = trtexec.run("--onnx=good.onnx", "--timingCacheFile=huge.cache", "--skipInference", timeout=300)
    assert "huge.cache" in done.stdout and "internal error" not in done.stdout


def test_tensor_names_lead_to_no_other_folder(models):
    inner = models / "names" / "inner"
    inner.mkdir(parents=True)
    tiny.save(inner / "names.onnx", [helper.make_node("Relu", ["../x"], ["../../y/\"z\""], name="/etc/passwd")],
              inputs=[("../x", [1, 4])], outputs=[("../../y/\"z\"", [1, 4])])
    around = set(models.iterdir())
    said = Program(inner)("--onnx=names.onnx", *ONE_RUN, "--dumpRawBindingsToFile", "--exportOutput=o.json", "--exportLayerInfo=l.json",
                          "--exportProfile=p.json", "--exportTimes=t.json")
    assert "PASSED" in said and set(models.iterdir()) == around and set(inner.parent.iterdir()) == {inner}
    for name in ("o.json", "l.json", "p.json", "t.json"):
        json.loads((inner / name).read_text("utf-8"), parse_constant=lambda word: pytest.fail(f"{name} holds {word}"))


PLAN_CASES = {
    "missing plan": (["--loadEngine=nowhere.plan"], r"nowhere\.plan"),
    "model as plan": (["--loadEngine=good.onnx"], r"good\.onnx"),
    "plan as model": (["--onnx=good.plan"], r"good\.plan"),
    "above the profile": (["--loadEngine=good.plan", "--shapes=x:5x4"], r"\bx\b"),
    "below the profile": (["--loadEngine=good.plan", "--shapes=x:0x4"], r"\bx\b"),
    "wrong rank for the plan": (["--loadEngine=good.plan", "--shapes=x:2"], r"\bx\b"),
}


@pytest.mark.parametrize("name", PLAN_CASES)
def test_bad_use_of_a_plan_is_refused(name, plan, trtexec):
    arguments, message = PLAN_CASES[name]
    said = refused(trtexec, *arguments, *ONE_RUN)
    assert re.search(message, re.sub(r"&&&&.*", "", said)), said[-2000:]


def test_a_plan_cut_anywhere_is_refused(plan, trtexec):
    whole, damaged = plan.read_bytes(), plan.with_name("cut.plan")
    chance = random.Random(SEED)
    print("seed", SEED)
    cuts = {0, 1, 7, 8, len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(40))}
    for length in sorted(cuts):
        damaged.write_bytes(whole[:length])
        assert "cut.plan" in refused(trtexec, "--loadEngine=cut.plan", *ONE_RUN), f"cut to {length} of {len(whole)}"


def test_a_plan_altered_anywhere_is_refused(plan, trtexec):
    whole, damaged = plan.read_bytes(), plan.with_name("altered.plan")
    chance = random.Random(SEED + 1)
    print("seed", SEED + 1)
    places = {*range(0, 64, 3), len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(80))}
    for place in sorted(places):
        altered = bytearray(whole)
        altered[place] ^= 1 << chance.randrange(8)
        damaged.write_bytes(altered)
        said = refused(trtexec, "--loadEngine=altered.plan", *ONE_RUN)
        assert "altered.plan" in said, f"byte {place} of {len(whole)}"


def test_a_failed_build_keeps_the_old_plan(plan, trtexec):
    before = plan.read_bytes()
    refused(trtexec, "--onnx=odd.onnx", "--saveEngine=good.plan", "--skipInference")
    assert plan.read_bytes() == before


def test_help_wins_over_everything(trtexec):
    said = trtexec("--help", "--no-such-flag")
    assert "--saveEngine" in said and "--loadEngine" in said and "Unknown option" not in said
