# SPDX-License-Identifier: Apache-2.0
"""Triton Inference Server with Hone's backend, for tests and measurements. `./dev test` installs the server into build/.triton."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from conftest import BIN, ROOT

HOME = ROOT / "build" / ".triton"
PROGRAM = HOME / "pytriton" / "tritonserver" / "bin" / "tritonserver"
PERF = HOME / "perf" / "bin" / "perf_analyzer"
BACKENDS = BIN.parent / "lib" / "backends"
MISSING = None if PROGRAM.exists() else f"{PROGRAM} is missing: ./dev test installs it from PyPI"
if MISSING is None:
    sys.path.append(str(HOME))  # behind the packages of the tests


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
                                            env={"GOMP_SPINCOUNT": "1000", **os.environ, "LD_LIBRARY_PATH": str(HOME / "lib"), **(env or {})})

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
        import tritonclient.grpc
        import tritonclient.http

        module, address = (tritonclient.grpc, self.grpc) if kind == "grpc" else (tritonclient.http, self.http)
        client = module.InferenceServerClient(address)
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

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def resident(self):
        """Bytes of memory that belong to the process alone and in use."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(re.search(r"^RssAnon:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024


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
    import tritonclient.grpc
    import tritonclient.http
    from tritonclient.utils import np_to_triton_dtype

    module = tritonclient.grpc if isinstance(client, tritonclient.grpc.InferenceServerClient) else tritonclient.http
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


def statistics(client, model):
    """(requests answered, inferences made) of a model, over gRPC."""
    (stats,) = client.get_inference_statistics(model).model_stats
    return stats.inference_count, stats.execution_count
