# SPDX-License-Identifier: Apache-2.0
"""Command lines from articles and manuals run as people type them: tests/cli/examples holds a script for each and, beside
it, what must be seen. (The seven steps of the 8.6 tutorial have a file of their own, test_seed002.py.)

A .see file has lines of these kinds:
    exit N        the script's exit status; 0 without such a line
    file NAME     it is there and not empty; nofile NAME: it is not there
    + REGEX       found in what was printed, log files of the run included; - REGEX: not found
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import conftest
import numpy as np
import pytest
import tiny
from onnx import helper

EXAMPLES = conftest.ROOT / "tests/cli/examples"
METRICS = {"Latency": "latencyMs", "H2D Latency": "h2dMs", "GPU Compute Time": "computeMs", "D2H Latency": "d2hMs"}


@pytest.fixture(scope="module")
def kit():
    """A folder with the models that the articles use (small ones of the same types and shapes) and a plan of one."""
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as name:
        folder = pathlib.Path(name)
        tiny.classifier(folder / "resnet18.onnx", opset=12, ir_version=7)
        (folder / "models/alexnet").mkdir(parents=True)
        tiny.classifier(folder / "models/alexnet/alexnet_fp16.onnx", "input", "output", np.float16, opset=10, ir_version=5)
        tiny.save(folder / "split.onnx", [helper.make_node("Split", ["x"], ["a", "y"], name="layer_1", axis=1)],
                  outputs=[("a", None), ("y", None)])
        conftest.Program(folder)("--onnx=resnet18.onnx", "--saveEngine=model.plan", "--skipInference", "--minShapes=x:1x3x224x224",
                                 "--optShapes=x:1x3x224x224", "--maxShapes=x:4x3x224x224", "--profilingVerbosity=detailed")
        yield folder


class Result:
    def __init__(self, folder, status, printed):
        self.folder, self.status = folder, status
        logs = [path.read_text(errors="replace") for pattern in ("*.log", "*.txt") for path in sorted(folder.rglob(pattern))]
        self.text = "\n".join([printed, *logs])


def run_example(name, kit, folder):
    shutil.copytree(kit, folder, dirs_exist_ok=True)
    script = EXAMPLES / f"{name}.sh"
    environment = {**os.environ, "PATH": f"{conftest.BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", timeout=1200, check=False)
    return Result(folder, done.returncode, done.stdout)


def faults(see, result):
    """What of a .see file is not so."""
    status = 0
    for line in filter(None, see.splitlines()):
        kind, _, rest = line.partition(" ")
        if kind == "exit":
            status = int(rest)
        elif kind == "file":
            path = result.folder / rest
            if not path.is_file() or path.stat().st_size == 0:
                yield f"the file {rest} is missing or empty"
        elif kind == "nofile":
            if (result.folder / rest).exists():
                yield f"the file {rest} is there"
        elif kind in ("+", "-"):
            if bool(re.search(rest, result.text, re.MULTILINE)) != (kind == "+"):
                yield f"{'not seen' if kind == '+' else 'seen'}: {rest}"
        else:
            raise ValueError(f"cannot read the line {line!r}")
    if status != result.status:
        yield f"exit status {result.status} instead of {status}"


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.sh")))
def test_example(name, kit, folder):
    result = run_example(name, kit, folder)
    wrong = list(faults((EXAMPLES / f"{name}.see").read_text(), result))
    assert not wrong, "\n".join([*wrong, "", *result.text.splitlines()[-60:]])


SIX_DIGITS = 5e-6  # half a unit of the sixth digit, at worst


def summary(text, metric):
    found = re.search(rf"\[I\] {metric}: (min.*)", text)
    return {name: float(value) for name, value in re.findall(r"(min|max|mean|median|percentile\([\d.]+%\)) = (\S+) ms", found[1])}


def test_the_summary_agrees_with_the_exported_times_to_six_digits(kit, folder):
    """Calculated again from the file, with the index rule of percentiles in single precision."""
    shutil.copytree(kit, folder, dirs_exist_ok=True)
    text = conftest.Program(folder)("--loadEngine=model.plan", "--warmUp=5", "--duration=0", "--iterations=57", "--exportTimes=t.json",
                                    "--percentile=0,50,90,99.9,100")
    times = json.loads((folder / "t.json").read_text())
    assert len(times) == int(re.search(r"Timing trace has (\d+) queries", text)[1])
    assert times[0]["startComputeMs"] >= 5
    single = np.float32
    columns = {metric: [single(query[key]) for query in times] for metric, key in METRICS.items()}
    columns["Enqueue Time"] = [single(query["endEnqMs"]) - single(query["startEnqMs"]) for query in times]
    for metric, samples in columns.items():
        ordered, count = sorted(samples), len(samples)
        half = count // 2
        expected = {"min": ordered[0], "max": ordered[-1], "mean": np.mean(np.asarray(samples, np.float64)),
                    "median": ordered[half] if count % 2 else (ordered[half - 1] + ordered[half]) / 2}
        for p in ("0", "50", "90", "99.9", "100"):
            excluded = int((single(1) - single(p) / single(100)) * single(count))
            expected[f"percentile({p}%)"] = ordered[max(count - 1 - excluded, 0)]
        found = summary(text, metric)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name] == pytest.approx(float(value), rel=SIX_DIGITS, abs=1e-9), (metric, name)
    wall = single(times[-1]["endD2hMs"]) - single(times[0]["startH2dMs"])
    assert float(re.search(r"Throughput: (\S+) qps", text)[1]) == pytest.approx(len(times) / float(wall) * 1000, rel=SIX_DIGITS)
    assert float(re.search(r"Total Host Walltime: (\S+) s", text)[1]) == pytest.approx(float(wall) / 1000, rel=SIX_DIGITS)


def test_profile_and_layer_information_name_the_same_layers_in_the_same_order(kit, folder):
    shutil.copytree(kit, folder, dirs_exist_ok=True)
    text = conftest.Program(folder)("--loadEngine=model.plan", "--warmUp=0", "--duration=0", "--iterations=3", "--exportProfile=p.json",
                                    "--exportLayerInfo=l.json", "--separateProfileRun")
    count, *rows = json.loads((folder / "p.json").read_text())
    layers = json.loads((folder / "l.json").read_text())["Layers"]
    assert [row["name"] for row in rows] == [layer["Name"] for layer in layers]
    assert sum(row["percentage"] for row in rows) == pytest.approx(100, abs=0.1)
    for row in rows:
        assert row["averageMs"] * count["count"] == pytest.approx(row["timeMs"], rel=1e-4, abs=1e-6)
    assert "Throughput:" in text
