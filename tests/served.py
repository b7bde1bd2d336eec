# SPDX-License-Identifier: Apache-2.0
"""Triton Inference Server with Hone's backend, for tests and measurements. `./dev test` installs the server into build/.triton."""

import contextlib
import csv
import importlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
import pytest
from conftest import BIN, ROOT, WORK, Program

HOME = ROOT / "build" / ".triton"
PROGRAM = HOME / "pytriton" / "tritonserver" / "bin" / "tritonserver"
PERF = HOME / "perf" / "bin" / "perf_analyzer"
BACKENDS = BIN.parent / "lib" / "backends"
EXPLICIT = "--model-control-mode=explicit"
MISSING = None if PROGRAM.exists() else f"{PROGRAM} is missing: ./dev test installs it from PyPI"
if MISSING is None:
    sys.path.append(str(HOME))  # behind the packages of the tests


def libraries():
    """Where the programs of the server look for theirs."""
    return os.pathsep.join(filter(None, [str(HOME / "lib"), os.environ.get("LD_LIBRARY_PATH")]))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server, killed at the end of a `with`. `http` and `grpc` are clients' addresses."""

    def __init__(self, repository, *flags, backends=BACKENDS, env=None):
        ports = [free_port() for _ in range(3)]
        self.http, self.grpc, self.metrics = (f"127.0.0.1:{port}" for port in ports)
        self.log = pathlib.Path(repository).parent / f"server-{ports[0]}.log"
        words = [PROGRAM, f"--model-repository={repository}", f"--backend-directory={backends}", "--exit-timeout-secs=5"]
        for kind, port in zip(("http", "grpc", "metrics"), ports):
            words += [f"--{kind}-port={port}", f"--{kind}-address=127.0.0.1"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*map(str, words), *flags], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env={"GOMP_SPINCOUNT": "1000", **os.environ, "LD_LIBRARY_PATH": libraries(), **(env or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def text(self):
        return self.log.read_text("utf-8", errors="replace")

    def alive(self):
        return self.process.poll() is None

    def client(self, kind="grpc"):
        """A client of a server that is up; waits for that."""
        module = importlib.import_module(f"tritonclient.{kind}")
        client = module.InferenceServerClient(self.grpc if kind == "grpc" else self.http)
        for _ in range(3000):
            with contextlib.suppress(Exception):
                if client.is_server_live():
                    return client
            if not self.alive():
                break
            time.sleep(0.02)
        raise AssertionError(f"the server does not answer:\n{self.text()[-3000:]}")

    def kill(self, how=signal.SIGKILL):
        if self.alive():
            self.process.send_signal(how)
        self.process.wait(60)

    def counter(self, name, model):
        """One of the numbers that it shows to Prometheus, of a model."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=60) as page:
            text = page.read().decode()
        return sum(float(value) for value in re.findall(rf'^{name}{{[^}}]*model="{re.escape(model)}"[^}}]*}} (\S+)$', text, re.MULTILINE))

    def processor_seconds(self):
        """What its threads have computed so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def resident(self):
        """Bytes of memory that belong to the process alone and in use."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(re.search(r"^RssAnon:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A server that loads what it is told to, for tests that do it no harm: (server, its repository, a client)."""
    WORK.mkdir(parents=True, exist_ok=True)
    models = tmp_path_factory.mktemp("shelf") / "models"
    models.mkdir()
    with Server(models, EXPLICIT) as server:
        yield server, models, server.client()
        assert server.alive()


def ranges(**shapes):
    """Flags of a profile: name=(smallest, fastest, largest) rows behind the other sizes."""
    return [f"--{word}Shapes=" + ",".join(f"{name}:" + "x".join(map(str, (rows[i], *rest))) for name, (rows, *rest) in shapes.items())
            for i, word in enumerate(("min", "opt", "max"))]


def place(repository, name, file, config="", version=1, called=None):
    """Puts a plan or a model into a repository as its backend expects it; returns the file."""
    folder = repository / name / str(version)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (called or ("model.onnx" if str(file).endswith(".onnx") else "model.hone" if not config else "model.plan"))
    shutil.copyfile(file, target)
    if config:
        (repository / name / "config.pbtxt").write_text(config, "utf-8")
    return target


def infer(client, model, feeds, outputs=None, request_id=""):
    """{name: array} of an inference, over either protocol."""
    from tritonclient.utils import np_to_triton_dtype

    module = importlib.import_module("tritonclient.grpc" if ".grpc." in type(client).__module__ else "tritonclient.http")
    inputs = []
    for name, array in feeds.items():
        inputs.append(module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        inputs[-1].set_data_from_numpy(array)
    wanted = [module.InferRequestedOutput(name) for name in outputs] if outputs else None
    result = client.infer(model, inputs, outputs=wanted, request_id=request_id)
    if outputs is None:
        response = result.get_response()
        named = response.outputs if not isinstance(response, dict) else response["outputs"]
        outputs = [output["name"] if isinstance(output, dict) else output.name for output in named]
    return {name: result.as_numpy(name) for name in outputs}


def run(folder, plan, feeds, *flags):
    """What `hone run` makes of the values."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
    shapes = ",".join(f"{name}:{'x'.join(map(str, array.shape))}" for name, array in feeds.items())
    Program(folder, "hone")("run", plan, "-o", "out", "-s", shapes, "-i", ",".join(f"{name}:{name}.npy" for name in feeds), *flags)
    return {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}


def analyze(server, model, *flags, protocol="grpc"):
    """{column: number} of what perf_analyzer counted and timed of its own requests."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PERF, "-m", model, "-u", getattr(server, protocol), "-i", protocol, "-f", f"{folder}/row.csv", *map(str, flags)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": libraries()})
        assert done.returncode == 0, done.stdout
        with open(f"{folder}/row.csv", encoding="utf-8") as text:
            (row,) = csv.DictReader(text)
    return {name: float(value) for name, value in row.items() if value}


def statistics(client, model):
    """(requests answered, inferences made) of a model, over gRPC."""
    (stats,) = client.get_inference_statistics(model).model_stats
    return stats.inference_count, stats.execution_count


def counted(client, model, answers):
    """The same once they tell of so many answers: the server counts one after it was given."""
    for _ in range(100):
        if (found := statistics(client, model))[0] >= answers:
            break
        time.sleep(0.05)
    return found
