# SPDX-License-Identifier: Apache-2.0
"""Whole logs, line by line: NAME.args under tests/cli/transcripts is a command line, NAME.expected what it prints with times,
sizes and the machine's properties masked. `HONE_BLESS=1` writes what is printed now; read the difference before committing."""

import os
import pathlib
import re
import tempfile

import conftest
import pytest
import tiny

BLESS = os.environ.pop("HONE_BLESS", None)  # no variable of the programs'
TRANSCRIPTS = conftest.ROOT / "tests/cli/transcripts"
# A number that is no part of a word or of a shape such as 4x3x224x224.
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w|\.\w)")
MACHINE = re.compile(r"(Selected Device|Compute Capability|Bound by|Steadiness|Machine|Precision used): .*")
# Hints and layers depend on times and on the processor; the rest does not.
LEFT_OUT = re.compile(r"\[W\] (\* GPU compute time is unstable|\* Throughput may be bound|  )|Reformatting CopyNode|^&&&& ")


@pytest.fixture(scope="module")
def kit():
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as name:
        trtexec = conftest.Program(name)
        whole = tiny.classifier(trtexec.folder / "model.onnx").read_bytes()
        (trtexec.folder / "broken.onnx").write_bytes(whole[: len(whole) // 2])
        trtexec("--onnx=model.onnx", "--saveEngine=kept.plan", "--skipInference", "--minShapes=x:1x3x224x224",
                "--optShapes=x:1x3x224x224", "--maxShapes=x:4x3x224x224")
        yield trtexec


def masked(text):
    """The option blocks stay as they are; below them every number becomes '#'."""
    lines, in_blocks = [], True
    for line in text.splitlines():
        if LEFT_OUT.search(line):
            continue
        line = re.sub(r"^\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] ", "", line)
        in_blocks &= "=== Device Information ===" not in line
        if not in_blocks:
            line = NUMBER.sub("#", MACHINE.sub(r"\1: #", line))
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.args")))
def test_transcript(name, kit):
    for stale in ("model.plan", "model.cache", "model.cache.lock"):
        (kit.folder / stale).unlink(missing_ok=True)
    done = kit.run(*(TRANSCRIPTS / f"{name}.args").read_text().split())
    failing = name in ("failing", "misspelt", "shape_above")
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if failing else 0), "\n".join(lines[-20:])
    assert lines[0].startswith("&&&& RUNNING Hone.trtexec [Hone v")
    assert lines[-1].startswith("&&&& FAILED Hone.trtexec [Hone v" if failing else "&&&& PASSED Hone.trtexec [Hone v")
    printed, path = masked(done.stdout), TRANSCRIPTS / f"{name}.expected"
    if BLESS:
        path.write_text(printed)
    assert printed.splitlines() == pathlib.Path(path).read_text().splitlines()
