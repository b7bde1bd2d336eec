#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs public test suites, unmodified, on python/tensorrt, and counts what passes.

    bench/tensorrt_suites.py --polygraphy FOLDER [--python PYTHON] [tests...]     FOLDER is tools/Polygraphy of NVIDIA's TensorRT repository
    bench/tensorrt_suites.py --onnx-tensorrt FOLDER [--python PYTHON]             FOLDER is the repository onnx/onnx-tensorrt

The suites are fetched by whoever runs this, and need packages that the project does not pin: pytest below 9, pytest-console-scripts,
pytest-virtualenv, onnxruntime, onnx, onnx-graphsurgeon, numpy, ml_dtypes, nanobind-backend, torch (some files), tabulate and six. PYTHON is an
environment that has them; without it, the one that runs this. docs/tensorrt.md has the counts of the last run.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
POLYGRAPHY = ["common", "comparator", "util/test_serde.py", "cuda", "backend", "mod/test_exporter.py", "mod/test_importer.py", "tools/args", "tools/test_inspect.py",
              "tools/test_convert.py", "tools/test_template.py", "tools/test_script.py", "tools/test_debug.py", "tools/test_run.py"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polygraphy", type=pathlib.Path)
    parser.add_argument("--onnx-tensorrt", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("tests", nargs="*")
    given = parser.parse_args()
    if (given.polygraphy is None) == (given.onnx_tensorrt is None):
        parser.error("give --polygraphy or --onnx-tensorrt, one of them")
    build = given.build.resolve()
    paths = [build / "tensorrt", build / "python"]
    if given.polygraphy:
        folder, tests = given.polygraphy.resolve() / "tests", given.tests or POLYGRAPHY
        paths.insert(0, given.polygraphy.resolve())
    else:
        folder, tests = given.onnx_tensorrt.resolve(), given.tests or ["onnx_backend_test.py", "-k", "not RealModel"]
        paths.append(build / "tensorrt/stand_ins")
    programs = pathlib.Path(given.python).absolute().parent
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "LD_LIBRARY_PATH": str(build / "tensorrt/cudart"),
                 "HONE_TENSORRT_DEVICE": "cpu", "POLYGRAPHY_INTERNAL_CORRECTNESS_CHECKS": "1",
                 "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = [given.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=folder, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
