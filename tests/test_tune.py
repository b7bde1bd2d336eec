# SPDX-License-Identifier: Apache-2.0
"""hone problems, hone tune, hone cache merge: what a model asks for is listed in one place, timed in another, and merged."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import pytest
import tiny
from conftest import BIN

HUGE = "(%0:f32[4096,4096] %1:f32[4096,4096] ); %2 = MatMul(%0, %1, ) -> %2"  # the reference takes seconds for it


@pytest.fixture
def model(folder):
    return tiny.convolutions(folder / "model.onnx")


def keys_of(hone, model, *flags):
    return hone.answer("problems", model, *flags).splitlines()


def entries(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def shaped(size):
    return f"--shapes=x:{size}x3x16x16"


def build(trtexec, model, cache, plan, *flags):
    return trtexec(f"--onnx={model}", f"--timingCacheFile={cache}", f"--saveEngine={plan}", "--skipInference", *flags)


def test_a_build_after_tune_times_nothing(folder, hone, trtexec, model):
    for batch in (1, 4):
        keys = keys_of(hone, model, shaped(batch))
        assert keys and len(set(keys)) == len(keys)
        (folder / "keys").write_text("\n".join(keys))
        told = json.loads(hone.answer("tune", "keys", "--timingCacheFile=cache", "--json"))
        assert told["timed"] > 0 and told["rejected"] == told["refused"] == []
        again = json.loads(hone.answer("tune", "keys", "--timingCacheFile=cache", "--json"))
        assert again["timed"] == 0 and again["known"] >= told["timed"]
        before = (folder / "cache").read_bytes()
        build(trtexec, model, "cache", f"{batch}.plan", "--errorOnTimingCacheMiss", f"--optShapes=x:{batch}x3x16x16")
        assert (folder / "cache").read_bytes() == before


def test_plans_from_one_cache_are_the_same_bytes(folder, hone, trtexec, model):
    (folder / "keys").write_text("\n".join(keys_of(hone, model, shaped(2))))
    hone("tune", "keys", "--timingCacheFile=cache")
    for number in range(3):
        build(trtexec, model, "cache", f"{number}.plan", "--errorOnTimingCacheMiss", "--optShapes=x:2x3x16x16")
    assert len({(folder / f"{number}.plan").read_bytes() for number in range(3)}) == 1


def test_parts_of_single_keys_merge_to_what_a_single_run_times(folder, hone, model):
    """The recipe for xargs: a file of keys for each task, a part of the cache from each, merged in the end."""
    keys = keys_of(hone, model, shaped(1))
    (folder / "keys").write_text("\n".join(keys))
    hone("tune", "keys", "--timingCacheFile=whole")
    recipe = """set -e
mkdir tasks parts
split -l 2 keys tasks/
ls tasks | xargs -P1 -I{} hone tune tasks/{} --timingCacheFile=parts/{}.jsonl
hone cache merge merged parts"""
    subprocess.run(["sh", "-c", recipe], cwd=folder, check=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
                   stdout=subprocess.DEVNULL)
    assert {row["key"] for row in entries(folder / "merged")} == {row["key"] for row in entries(folder / "whole")}


def test_merging_twenty_shuffled_parts_gives_the_same_bytes(folder, hone, model):
    (folder / "keys").write_text("\n".join(keys_of(hone, model, shaped(1))))
    hone("tune", "keys", "--timingCacheFile=whole")
    head, *lines = (folder / "whole").read_text().splitlines()
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    drawn = random.Random(seed)
    (folder / "parts").mkdir()
    for number in range(20):
        rows = [json.loads(line) for line in drawn.sample(lines, len(lines) // 2)]
        for row in rows:
            row["ms"] *= drawn.choice([0.5, 1, 2])
            row["samples"] = drawn.choice([4, 8, 8])
        damaged = "".join(chr(drawn.randrange(32, 127)) for _ in range(40))
        text = "\n".join([head, *(json.dumps(row) for row in rows), damaged, ""])
        (folder / "parts" / f"{number}").write_text(text)
    names = [f"parts/{number}" for number in range(20)]
    merged = []
    for number in range(4):
        drawn.shuffle(names)
        told = hone("cache", "merge", f"merged{number}", *(names if number else ["parts"]))
        assert "20 damaged lines left out" in told
        merged.append((folder / f"merged{number}").read_bytes())
    assert len(set(merged)) == 1


def busy_children(process):
    """Those that have computed for half a second: longer than it takes to start."""
    text = subprocess.run(["ps", "--ppid", str(process), "-o", "pid="], capture_output=True, encoding="utf-8", check=False).stdout
    for child in map(int, text.split()):
        try:
            with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                if int(file.read().rpartition(")")[2].split()[11]) >= os.sysconf("SC_CLK_TCK") / 2:
                    yield child
        except OSError:
            pass  # it has ended


def test_a_key_that_crashes_costs_its_tactics_alone(folder, hone, model):
    keys = keys_of(hone, model, shaped(1))
    (folder / "keys").write_text("\n".join([HUGE, *keys]))
    process = subprocess.Popen([BIN / "hone", "tune", "keys", "--timingCacheFile=cache", "--json", "--maxTactics=1"], cwd=folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    # As a kernel that writes where it must not: whoever times the huge product dies, the first time and each time after.
    while process.poll() is None and not any(row["ms"] >= 0 for row in (entries(folder / "cache") if (folder / "cache").exists() else [])):
        for child in busy_children(process.pid):
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(child, signal.SIGSEGV)
        time.sleep(0.02)
    told = json.loads(process.stdout.read())
    assert process.wait() == 0 and "killed by signal 11" in process.stderr.read()
    assert told["rejected"] and all("killed by signal 11" in each["why"] and HUGE in each["key"] for each in told["rejected"])
    problems = {row["key"].split(" | ")[0] for row in entries(folder / "cache") if row["ms"] >= 0}
    assert problems == set(keys)


def test_a_key_that_takes_too_long_is_rejected(folder, hone, model):
    keys = keys_of(hone, model, shaped(1))
    (folder / "keys").write_text("\n".join([HUGE.replace("4096", "8192"), keys[0]]))
    told = json.loads(hone.answer("tune", "keys", "--timingCacheFile=cache", "--timeout=1", "--maxTactics=1", "--json"))
    assert told["rejected"] and all("took longer than 1 s" in each["why"] for each in told["rejected"])
    assert any(row["key"].startswith(keys[0]) and row["ms"] > 0 for row in entries(folder / "cache"))


def test_what_is_no_key_is_refused_and_the_others_are_timed(folder, hone, model):
    keys = keys_of(hone, model, shaped(1))
    (folder / "keys").write_text("\n".join(["no key", "(%0:f32[1] ); %1 = NoSuchOperator(%0, ) -> %1", keys[0]]))
    done = hone.run("tune", "keys", "--timingCacheFile=cache")
    assert done.returncode == 1 and "no key" in done.stdout and "NoSuchOperator" in done.stdout
    assert any(row["key"].startswith(keys[0]) for row in entries(folder / "cache"))


def test_a_node_that_is_not_like_its_kind_times_nothing(folder, hone, model):
    (folder / "keys").write_text(keys_of(hone, model, shaped(1))[0])
    probe = json.loads(hone.answer("tune", "-", "--probe", "--json"))["probeMs"]
    assert probe > 0
    done = hone.run("tune", "keys", "--timingCacheFile=cache", f"--probe-ms={probe / 100}")
    assert done.returncode == 3 and "nothing is timed" in done.stdout and not (folder / "cache").exists()
    hone("tune", "keys", "--timingCacheFile=cache", f"--probe-ms={probe}", "--probe-tolerance=1000")
    assert (folder / "cache").exists()


def test_problems_of_another_machine_need_its_description_alone(folder, hone, model):
    here = json.loads(hone.answer("problems", "--describe"))
    assert here["kind"] == json.loads(hone.answer("problems", model, "--json"))["kind"]
    (folder / "here").write_text(json.dumps(here))
    assert keys_of(hone, model, "--for=here") == keys_of(hone, model)
    for change, said in (({"key": "other | version"}, "another version"), ({"backend": "abacus"}, "no backend abacus"),
                         ({"device": {}}, "name")):
        (folder / "there").write_text(json.dumps({**here, **change}))
        done = hone.run("problems", model, "--for=there")
        assert done.returncode == 1 and said in done.stdout


def test_devices_of_one_name_have_keys_of_their_own(hone):
    key = json.loads(hone.answer("problems", "--describe"))["key"]
    architecture, _, workers, revision, level2, level3 = key.split(" | ")[0].split("/")
    assert architecture and int(workers) > 0
    assert len(revision.split("-")) == 3 and level2.startswith("L2 ") and level3.startswith("L3 ")
