# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the whole-program tests. HONE_BIN names the folder of the programs; default build/release/bin."""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import materialise  # noqa: E402

# As the programs set it for themselves: what loads Hone's library here or in C spins no longer than they do.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def place(variable, default):
    """A folder of the build. The variable is of the tests alone: the programs would ask what it means."""
    return pathlib.Path(os.environ.pop(variable, ROOT / "build/release" / default)).resolve()


BIN, UNIT, PACKAGE = place("HONE_BIN", "bin"), place("HONE_UNIT", "unit"), place("HONE_PACKAGE", "python")
IMPORTED = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))  # PYTHONPATH of programs that import hone
WORK = ROOT / "build" / "pytest"  # big files; /tmp may be small


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="where ONNX's own cases run: cpu, cuda:0")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: an hour in all; run by hand")
    config.addinivalue_line("markers", "slow: a big model; left out of ./dev test --fast")
    if not (BIN / "trtexec").exists():
        raise pytest.UsageError(f"{BIN}/trtexec is missing: ./dev build, or set HONE_BIN")


class Program:
    """A program of Hone, run in one folder."""

    def __init__(self, folder, name="trtexec"):
        self.folder, self.name = pathlib.Path(folder), name

    def run(self, *arguments, env=None, timeout=1800):
        """The finished process; stdout and stderr are joined in `stdout`."""
        return subprocess.run([BIN / self.name, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                              env={**os.environ, **(env or {})}, timeout=timeout, check=False)

    def answer(self, *arguments):
        """What it printed to stdout alone, whatever its exit status."""
        return subprocess.run([BIN / self.name, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace", timeout=1800, check=False).stdout

    def start(self, *arguments):
        """The running process, its lines on `stdout` as they come."""
        return subprocess.Popen([BIN / self.name, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")

    def __call__(self, *arguments, **options):
        """What a run that must succeed printed."""
        done = self.run(*arguments, **options)
        assert done.returncode == 0, f"exit {done.returncode}: {self.name} {' '.join(map(str, arguments))}\n" + "\n".join(
            done.stdout.splitlines()[-30:])
        return done.stdout


@pytest.fixture
def folder():
    """An empty folder on the build's own disk, removed afterwards."""
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as name:
        yield pathlib.Path(name)


@pytest.fixture
def trtexec(folder):
    return Program(folder)


@pytest.fixture
def hone(folder):
    return Program(folder, "hone")


def unpacked(name, folder):
    """The file of a model of the zoo. Used where it lies under build/zoo already, else unpacked into the folder."""
    kept = ROOT / "build" / "zoo" / f"{name}.onnx"
    return kept if kept.exists() else materialise.materialise(name, folder / "zoo")


@pytest.fixture
def zoo(folder):
    """zoo(name): the model's file, unpacked for this test alone."""
    return lambda name: unpacked(name, folder)


@pytest.fixture
def resnet18(folder, zoo):
    """resnet18.onnx in the folder: input x, output y, any batch."""
    import onnx

    model = onnx.load(zoo("resnet18.ts"))
    rename_output(model, "y")
    onnx.save(model, folder / "resnet18.onnx")
    return folder / "resnet18.onnx"


def rename_output(model, name):
    """Gives the only output of an ONNX model another name."""
    (output,) = model.graph.output
    for node in model.graph.node:
        node.output[:] = [name if old == output.name else old for old in node.output]
    output.name = name
