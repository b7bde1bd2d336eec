# SPDX-License-Identifier: Apache-2.0
"""The tuning loop over build routes: which routes it takes, what it writes, and how it goes on after it was cut off."""

import json
import re

import numpy as np
import pytest
import tiny

SHORT = ("--iterations=3", "--warmUp=0", "--duration=0")
EXPRESSION = "-opt_level=[0|1] -onednn=[on|off]"
FAST = ["-opt_level=3 -onednn=on", "-opt_level=3 -onednn=off", "-opt_level=0 -onednn=on", "-opt_level=1 -onednn=on"]
FULL = [f"-opt_level={level} -onednn={onednn}" for level in (0, 1) for onednn in ("on", "off")]


@pytest.fixture
def model(folder):
    return tiny.perceptron(folder / "model.onnx")


def tune(trtexec, *arguments, expression=EXPRESSION):
    return trtexec("--onnx=model.onnx", f"--tuneBuildRoutes={expression}", *SHORT, *arguments)


def results(folder, name="best_config.json"):
    header, *lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return header, lines


@pytest.mark.parametrize("search, routes", [("fast", FAST), ("full", FULL)])
def test_a_dry_run_prints_the_routes_in_order_and_builds_nothing(trtexec, model, search, routes):
    said = tune(trtexec, "--dryRun", f"--tuningSearch={search}", "--saveEngine=m.plan")
    assert re.findall(r"^\[iter=\d+\] BuildRoute = '(.*)'$", said, re.MULTILINE) == routes
    assert not (trtexec.folder / "m.plan").exists() and not (trtexec.folder / "best_config.json").exists()


def test_every_route_is_built_measured_and_written_down(trtexec, model):
    said = tune(trtexec, "--saveEngine=m.plan", "--saveAllEngines")
    header, lines = results(trtexec.folder)
    assert [line["build_route"] for line in lines] == FAST and [line["iter"] for line in lines] == [0, 1, 2, 3]
    assert all(line["gpu_time"] > 0 and not line["crash"] and line["accuracy_loss"] is None for line in lines)
    assert header["tuner_version"] == "1" and header["searching_algorithm"] == "fast" and header["default_build_route"] == FAST[0]
    assert header["files"]["onnx"] == "model.onnx" and f"--onnx={trtexec.folder / 'model.onnx'}" in header["argv"]
    assert f"'--tuneBuildRoutes={EXPRESSION}'" in header["command_line"]
    best = min(lines, key=lambda line: line["gpu_time"])
    assert f"Best build route: '{best['build_route']}' [iter={best['iter']}]" in said
    engines = [(trtexec.folder / f"m.plan.iter{line['iter']}").read_bytes() for line in lines]
    assert (trtexec.folder / "m.plan").read_bytes() == engines[best["iter"]]
    for state in ("BEGIN", "END"):
        assert re.findall(rf"^&&&& TASK_{state} \[iter=\d\] BuildRoute = '(.*)'$", said, re.MULTILINE) == FAST
    assert "Using tuning build route: -opt_level=3 -onednn=off" in said and said.rstrip().splitlines()[-1].startswith("&&&& PASSED")
    trtexec("--loadEngine=m.plan", *SHORT)


def test_mixed_search_adds_combinations_of_what_helped(trtexec, model):
    tune(trtexec, "--tuningSearch=mixed", "--builderOptimizationLevel=0")
    header, lines = results(trtexec.folder)
    routes = [line["build_route"] for line in lines]
    times = {line["build_route"]: line["gpu_time"] for line in lines}
    assert routes[:4] == FAST and header["searching_algorithm"] == "mixed"
    helped = [any(times[route] < times[FAST[0]] for route in changes) for changes in (FAST[1:2], FAST[2:])]
    assert set(routes[4:]) == ({"-opt_level=0 -onednn=off", "-opt_level=1 -onednn=off"} if all(helped) else set())


def test_a_loop_that_was_cut_off_goes_on(trtexec, model):
    tune(trtexec, "--saveEngine=m.plan", "--tuningCacheFile=t.json", "--saveAllEngines")
    path = trtexec.folder / "t.json"
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:3]) + whole[3][:20])
    said = trtexec("--continue", "--tuningCacheFile=t.json")
    assert re.findall(r"TASK_BEGIN \[iter=(\d)\]", said) == ["2", "3"]
    _, lines = results(trtexec.folder, "t.json")
    assert [line["build_route"] for line in lines] == FAST and path.read_text().splitlines(keepends=True)[:3] == whole[:3]


def test_time_out_routes_from_a_file_and_the_engine_alone(trtexec, model):
    (trtexec.folder / "routes").write_text("-opt_level=[0 | 1]\n-onednn=[on|off]\n")
    said = trtexec("--onnx=model.onnx", "--tuneBuildRouteFile=routes", *SHORT, "--saveEngine=m.plan", "--tuningTimeOut=0", "--dryRun")
    assert "BuildRoute = '-opt_level=1 -onednn=on'" in said
    done = trtexec.run("--onnx=model.onnx", "--tuneBuildRouteFile=routes", *SHORT, "--tuningTimeOut=0")
    assert done.returncode == 1 and "--tuningTimeOut=0 is reached" in done.stdout and "No build route gave an engine" in done.stdout
    tune(trtexec, "--saveEngine=m.plan", expression="-opt_level=[0]")
    assert (trtexec.folder / "m.plan").exists() and not list(trtexec.folder.glob("m.plan.iter*"))


def test_routes_that_fail_are_written_down_and_never_the_best(trtexec, model):
    ones = np.ones((1, 4), np.float32)
    ones.tofile(trtexec.folder / "x.raw")
    np.zeros((1, 8), np.float32).tofile(trtexec.folder / "wrong.raw")
    reference = ("--loadInputs=x:x.raw", "--loadRefOutputs=y:wrong.raw", "--accuracyThreshold=0.1", "--accuracyAlgorithm=l1")
    done = trtexec.run("--onnx=model.onnx", "--tuneBuildRoutes=-opt_level=[0]", *SHORT, *reference)
    _, lines = results(trtexec.folder)
    assert done.returncode == 1 and [line["error_message"] for line in lines] == ["accuracy failed"] * 2
    assert lines[0]["accuracy_loss"]["y"] >= 0.1 and not lines[0]["crash"]
    done = trtexec.run("--onnx=model.onnx", "--tuneBuildRoutes=-opt_level=[0]", *SHORT, "--loadInputs=x:none.raw")
    _, lines = results(trtexec.folder)
    assert done.returncode == 1 and all(line["crash"] and line["error_message"] == "exit status 1" for line in lines)
    assert "&&&& TASK_ABORT [iter=0]" in done.stdout


@pytest.mark.parametrize("expression, message", [
    ("-opt_levle=[0|1]", "Unknown knob: opt_levle\n  hint: did you mean opt_level?"),
    ("-opt_level=[0|]", "a value is empty"),
    ("-opt_level=[0|0]", "the value 0 stands twice"),
    ("-opt_level=[7]", "7 is no value of opt_level\n  hint: its values are 0, 1, 2, 3, 4, 5"),
    ("-opt_level=a[0]", "there is text before the bracket"),
    ("-opt_level=[0]b", "the bracket does not end the token"),
    ("-opt_level=[0] -opt_level=[1]", "the knob stands twice"),
    ("opt_level=0", "it is not of the form -knob=value"),
    (" ", "The build route is empty"),
])
def test_bad_expressions_are_refused(trtexec, model, expression, message):
    done = trtexec.run("--onnx=model.onnx", f"--tuneBuildRoutes={expression}", "--dryRun")
    assert done.returncode == 1 and message in done.stdout
