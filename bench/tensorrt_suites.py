#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs public test suites, unmodified, on python/tensorrt, and counts what passes.

    bench/tensorrt_suites.py --polygraphy FOLDER [--python PYTHON] [tests...]     FOLDER is tools/Polygraphy of NVIDIA's TensorRT repository
    bench/tensorrt_suites.py --onnx-tensorrt FOLDER [--python PYTHON] [--all-cases]   FOLDER is the repository onnx/onnx-tensorrt; --all-cases: its backend on
                                                                                  every case of the onnx that is installed, not those that its test lists
    bench/tensorrt_suites.py --samples FOLDER [--python PYTHON]                   FOLDER is samples/python of NVIDIA's repository, release 10.16
    bench/tensorrt_suites.py --cookbook FOLDER [--python PYTHON]                  FOLDER is cookbook/ of NVIDIA/trt-samples-for-hackathon-cn

Behind pytest's own report stands each reason for a failure, with the cases that have it. Polygraphy's tests are two reports, as its Makefile
runs them: first those marked serial, which read what others leave behind.

The suites are fetched by whoever runs this (`tests` and pytest's options stand behind --), and need packages that the project does not pin: pytest below 9, pytest-console-scripts,
pytest-virtualenv, onnxruntime, onnx, onnx-graphsurgeon, numpy, ml_dtypes, nanobind-backend, torch (some files), tabulate and six; torch, torchvision and Pillow for the samples, torch and
nvtx for the cookbook. PYTHON is an
environment that has them; without it, the one that runs this. docs/tensorrt.md has the counts of the last run.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

import materialise  # noqa: E402
import tensorrt_cookbook  # noqa: E402
import tensorrt_samples  # noqa: E402

POLYGRAPHY = ["common", "comparator", "util/test_serde.py", "cuda", "backend", "mod/test_exporter.py", "mod/test_importer.py", "tools/args", "tools/test_inspect.py",
              "tools/test_convert.py", "tools/test_template.py", "tools/test_script.py", "tools/test_debug.py", "tools/test_run.py"]

NOTHING_COLLECTED = 5  # pytest's exit status

ALL_CASES = """import onnx.backend.test
import onnx_tensorrt.backend
globals().update(onnx.backend.test.BackendTest(onnx_tensorrt.backend, __name__).test_cases)
"""


def tell_reasons(report):
    """Prints each reason for a failure once, numbers left out, with its cases; the most common first."""
    found = collections.defaultdict(list)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        for failure in [*case.findall("failure"), *case.findall("error")]:
            line = (failure.get("message") or failure.text or "").strip().split("\n")[0]
            found[re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?", "#", line)[:200]].append(case.get("name"))
    for line, names in sorted(found.items(), key=lambda each: -len(each[1])):
        print(f"{len(names)}: {line}\n    {' '.join(sorted(names))}")


def run_pytest(python, folder, tests, variables):
    """Its exit status."""
    with tempfile.TemporaryDirectory() as kept:  # onnx puts the models' inputs there
        report = pathlib.Path(kept) / "report.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        status = subprocess.run(command, cwd=folder, env={**variables, "ONNX_HOME": kept}, check=False).returncode
        if report.exists():
            tell_reasons(report)
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraphy", type=pathlib.Path)
    parser.add_argument("--onnx-tensorrt", type=pathlib.Path)
    parser.add_argument("--all-cases", action="store_true")
    parser.add_argument("--samples", type=pathlib.Path)
    parser.add_argument("--cookbook", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("tests", nargs="*")
    given = parser.parse_args()
    suites = [given.polygraphy, given.onnx_tensorrt, given.samples, given.cookbook]
    if sum(suite is not None for suite in suites) != 1:
        parser.error("give one of --polygraphy, --onnx-tensorrt, --samples, --cookbook")
    build = given.build.resolve()
    paths = [build / "tensorrt", build / "python"]
    if given.polygraphy or given.onnx_tensorrt:
        paths.insert(0, (given.polygraphy or given.onnx_tensorrt).resolve())
    if not given.polygraphy:
        paths.append(build / "tensorrt/stand_ins")
    programs = pathlib.Path(given.python).absolute().parent
    outer = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, paths), *outer]), "LD_LIBRARY_PATH": str(build / "tensorrt/cudart"),
                 "HONE_TENSORRT_DEVICE": "cpu", "POLYGRAPHY_INTERNAL_CORRECTNESS_CHECKS": "1",
                 "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    if given.cookbook:
        return tensorrt_cookbook.run(given.cookbook.resolve(), given.python, variables)
    if given.samples:
        with tempfile.TemporaryDirectory() as folder:
            return tensorrt_samples.run(given.samples.resolve(), pathlib.Path(folder), given.python, variables, materialise.materialise)
    if given.polygraphy:
        folder, tests = given.polygraphy.resolve() / "tests", given.tests or POLYGRAPHY
        statuses = {run_pytest(given.python, folder, ["-m", kind, *tests], variables) for kind in ("serial", "not serial")}
        return max(statuses - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)
    folder = given.onnx_tensorrt.resolve()
    if not given.all_cases:
        return run_pytest(given.python, folder, given.tests or ["onnx_backend_test.py"], variables)
    with tempfile.TemporaryDirectory() as own:
        cases = pathlib.Path(own) / "test_all_cases.py"
        cases.write_text(ALL_CASES)
        return run_pytest(given.python, folder, [f"--rootdir={own}", str(cases), *given.tests], variables)


if __name__ == "__main__":
    sys.exit(main())
