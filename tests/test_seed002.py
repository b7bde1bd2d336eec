# SPDX-License-Identifier: Apache-2.0
"""The seven steps of the 8.6 tutorial (tests/cli/seed002.sh, as users type them) leave what they promise."""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import conftest
import materialise
import onnx
import pytest

METRICS = ("Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency")
SUMMARY = re.compile(r"(min|max|mean|median|percentile\(\d+%\)) = ([0-9.e+-]+) ms")


class Result:
    """The folder that the script ran in."""

    def __init__(self, folder, done):
        self.folder, self.done = folder, done

    def log(self, step):
        (path,) = self.folder.glob(f"{step}-*.log") if step != "04" else [self.folder / "04-export_layer_info.log"]
        return path.read_text()

    def json(self, name):
        return json.loads((self.folder / name).read_text())

    def summary(self, step, metric):
        """{"min": …, …} of one line of the performance summary; None where the step printed none."""
        found = re.search(rf"\[I\] {metric}: (.*)", self.log(step))
        return {name: float(value) for name, value in SUMMARY.findall(found[1])} if found else None


@pytest.fixture(scope="module")
def tutorial():
    """Runs the script once for all the tests here."""
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as name:
        folder = pathlib.Path(name)
        model = onnx.load(materialise.materialise("resnet18.ts", folder / "zoo"))
        conftest.rename_output(model, "y")
        onnx.save(model, folder / "resnet18.onnx")
        shutil.copy(conftest.ROOT / "tests/cli/seed002.sh", folder)
        environment = {**os.environ, "PATH": f"{conftest.BIN}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm"}
        done = subprocess.run(["bash", "seed002.sh"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=1800, check=False)
        yield Result(folder, done)


def test_every_step_succeeds(tutorial):
    tail = "\n".join(line for log in sorted(tutorial.folder.glob("*.log")) for line in log.read_text().splitlines()[-8:])
    assert tutorial.done.returncode == 0, tutorial.done.stderr[-2000:] + tail
    for step in ("01", "02", "03", "04", "05", "06", "07"):
        lines = tutorial.log(step).splitlines()
        assert lines[0].startswith("&&&& RUNNING Hone.trtexec [Hone v") and " # trtexec --" in lines[0]
        assert lines[-1].startswith("&&&& PASSED Hone.trtexec [Hone v") and " # trtexec --" in lines[-1]


def test_step_1_gives_dynamic_dimensions_the_size_1(tutorial):
    log = tutorial.log("01")
    assert "Dynamic dimensions required for input: x, but no shapes were provided. Automatically overriding shape to: 1x3x224x224" in log
    assert re.search(r"Throughput: [0-9.]+ qps", log)


def test_the_summary_is_consistent_with_itself(tutorial):
    log = tutorial.log("01")
    for metric in METRICS:
        values = tutorial.summary("01", metric)
        assert set(values) >= {"min", "max", "mean", "median", "percentile(90%)", "percentile(95%)", "percentile(99%)"}
        assert values["min"] <= values["median"] <= values["percentile(90%)"] <= values["percentile(99%)"] <= values["max"]
        assert values["min"] <= values["mean"] <= values["max"]
    queries, seconds = re.search(r"Timing trace has (\d+) queries over ([0-9.]+) s", log).groups()
    throughput = float(re.search(r"Throughput: ([0-9.]+) qps", log)[1])
    walltime = float(re.search(r"Total Host Walltime: ([0-9.]+) s", log)[1])
    assert walltime == pytest.approx(float(seconds), rel=1e-3)
    assert throughput == pytest.approx(int(queries) / walltime, rel=1e-3)
    total = float(re.search(r"Total GPU Compute Time: ([0-9.]+) s", log)[1])
    assert total == pytest.approx(tutorial.summary("01", "GPU Compute Time")["mean"] * int(queries) / 1000, rel=1e-2)
    assert int(queries) >= 10 and walltime >= 2.9


def test_step_2_saves_plan_and_timing_cache(tutorial):
    log = tutorial.log("02")
    assert (tutorial.folder / "resnet18.plan").stat().st_size > 1_000_000
    assert (tutorial.folder / "resnet18.cache").stat().st_size > 100
    for line in ("Precision: FP32+FP16", "timingCacheMode: global", "BuilderOptimizationLevel: 5", "MaxAuxStreams: 4",
                 "Skip inference: Enabled", "Save engine: resnet18.plan", "Memory Pools: workspace: 1024 MiB",
                 "Input build shape: x=1x3x224x224+4x3x224x224+16x3x224x224", "Verbose: Enabled",
                 "Skipped inference phase since --skipInference is added."):
        assert line in log, line
    assert re.search(r"\[W\].*Could not read timing cache from: resnet18.cache", log)
    size = int(re.search(r"Saved (\d+) bytes of timing cache to resnet18.cache", log)[1])
    assert size == (tutorial.folder / "resnet18.cache").stat().st_size
    assert "Throughput:" not in log


def test_step_3_runs_without_transfers(tutorial):
    log = tutorial.log("03")
    assert "Parsing node" not in log and "Engine built in" not in log
    for line in ("Data transfers: Disabled", "Spin-wait: Enabled", "CUDA Graph: Enabled",
                 "Input inference shape: x=4x3x224x224"):
        assert line in log, line
    for metric in ("H2D Latency", "D2H Latency"):
        assert set(tutorial.summary("03", metric).values()) == {0.0}
    assert tutorial.summary("03", "Latency") == tutorial.summary("03", "GPU Compute Time")
    assert "Input binding for x with dimensions 4x3x224x224 is created." in log
    assert "Output binding for y with dimensions 4x1000 is created." in log


def test_step_4_exports_layer_information(tutorial):
    log, exported = tutorial.log("04"), tutorial.json("04-exportLayerInfo.log")
    assert exported["Bindings"] == ["x", "y"]
    layers = exported["Layers"]
    assert layers and all({"Name", "LayerType", "Inputs", "Outputs"} <= set(layer) for layer in layers)
    for layer in layers:
        for tensor in layer["Inputs"] + layer["Outputs"]:
            assert {"Name", "Dimensions", "Format/Datatype"} <= set(tensor)
            assert all(isinstance(size, int) and size >= -1 for size in tensor["Dimensions"])
    nodes = set(re.findall(r"\[ONNX Layer: ([^\]]*)\]", " ".join(layer.get("Metadata", "") for layer in layers)))
    assert len(nodes) >= 40, "nearly all of the model's nodes must stand behind some layer"
    assert "Layer Information:" in log and "Bindings:" in log
    for layer in layers:
        assert f"Name: {layer['Name']}" in log


def test_step_5_exports_times(tutorial):
    times = tutorial.json("05-exportTimes.json")
    queries = int(re.search(r"Timing trace has (\d+) queries", tutorial.log("05"))[1])
    assert len(times) == queries
    previous = -math.inf
    for query in times:
        for name in ("Enq", "H2d", "Compute", "D2h"):
            assert query[f"start{name}Ms"] <= query[f"end{name}Ms"]
        for name in ("H2d", "Compute", "D2h"):
            assert query[f"{name.lower()}Ms"] == pytest.approx(query[f"end{name}Ms"] - query[f"start{name}Ms"], abs=2e-2)
        assert query["latencyMs"] == pytest.approx(query["h2dMs"] + query["computeMs"] + query["d2hMs"], abs=1e-2)
        assert query["startH2dMs"] >= previous
        previous = query["startH2dMs"]
    assert times[0]["startComputeMs"] >= 200, "the warm-up comes first"


def test_step_5_exports_the_profile(tutorial):
    count, *layers = tutorial.json("05-exportProfile.json")
    assert count["count"] >= 1
    assert layers and all({"name", "timeMs", "averageMs", "medianMs", "percentage"} == set(layer) for layer in layers)
    assert sum(layer["percentage"] for layer in layers) == pytest.approx(100, abs=0.5)
    for layer in layers:
        assert layer["averageMs"] * count["count"] == pytest.approx(layer["timeMs"], rel=1e-2, abs=1e-3)
    log = tutorial.log("05")
    table = re.search(r"=== Profile \((\d+) iterations ?\) ===", log)
    assert int(table[1]) == count["count"]
    assert re.search(r"\b100\.0 +Total$", log, re.MULTILINE)


def dumped_output(log):
    """The numbers behind `y: (1x1000)`."""
    lines = log.splitlines()
    start = next(index for index, line in enumerate(lines) if "y: (1x1000)" in line)
    return lines[start + 1].split("[I] ")[-1].split()


def test_step_6_dumps_bindings_and_output(tutorial):
    assert "Output Tensors:" in tutorial.log("06")
    numbers = dumped_output(tutorial.log("06"))
    assert len(numbers) == 1000 and all(math.isfinite(float(number)) for number in numbers)
    assert (tutorial.folder / "x.input.1.3.224.224.Float.raw").stat().st_size == 602112
    assert (tutorial.folder / "y.output.1.1000.Float.raw").stat().st_size == 4000


def test_step_7_reloads_the_input_and_repeats_the_output(tutorial):
    log = tutorial.log("07")
    assert "Using values loaded from x.input.1.3.224.224.Float.raw for input x" in log
    assert dumped_output(log) == dumped_output(tutorial.log("06"))


def test_nothing_unexpected_is_left(tutorial):
    left = {path.name for path in tutorial.folder.iterdir()} - {"zoo", "seed002.sh", "resnet18.onnx", "resnet18.cache.lock"}
    assert left == {"01-run_onnx.log", "02-generate_engine.log", "03-run_engine.log", "04-export_layer_info.log",
                    "04-exportLayerInfo.log", "05-export_profile.log", "05-exportTimes.json", "05-exportProfile.json",
                    "06-save_data.log", "07-load_data.log", "resnet18.plan", "resnet18.cache",
                    "x.input.1.3.224.224.Float.raw", "y.output.1.1000.Float.raw"}
