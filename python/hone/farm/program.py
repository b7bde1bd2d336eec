# SPDX-License-Identifier: Apache-2.0
"""The `hone` program, as driver and workers call it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile

UNLIKE_ITS_KIND = 3  # exit status of `hone tune --probe-ms`


class FarmError(Exception):
    """What is wrong, and what to do."""


def path() -> str:
    """Of the program: the package's own, else the PATH's."""
    own = pathlib.Path(__file__).resolve().parent.parent / "bin" / "hone"
    found = str(own) if own.is_file() else shutil.which("hone")
    if found is None:
        raise FarmError("there is no program called hone on the PATH; the wheel brings it: pip install hone")
    return found


def end_with_parent():
    """A worker that is killed takes its `hone tune` along: it would disturb whoever times there next."""
    pr_set_pdeathsig = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def call(*words, text=None):
    """The finished process."""
    return subprocess.run([path(), *map(str, words)], input="" if text is None else text, capture_output=True, encoding="utf-8",
                          errors="replace", check=False, preexec_fn=end_with_parent)


def answer(*words, text=None):
    """The JSON that it printed. Raises FarmError with its words where it failed."""
    done = call(*words, text=text)
    if done.returncode != 0:
        raise FarmError(done.stderr.strip() or f"hone {words[0]} ended with exit status {done.returncode}")
    return json.loads(done.stdout)


def describe(device: str):
    """What `hone problems --for` takes, of a device here."""
    return answer("problems", "--describe", f"--device={device}")


def problems(model: str, flags, description):
    """What a build of a model would time on the described device: its keys, the heaviest first."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(description, file)
        file.flush()
        return answer("problems", model, f"--for={file.name}", "--json", *flags)["problems"]


def probe(device: str) -> float:
    """What the fixed problem takes here, in ms."""
    return answer("tune", "-", f"--device={device}", "--probe", "--json")["probeMs"]


def tune(keys, device: str, flags, timeout: float):
    """What `hone tune` says of the keys, and the lines of the cache that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        part = pathlib.Path(folder) / "part.jsonl"
        summary = answer("tune", "-", f"--device={device}", f"--timingCacheFile={part}", f"--timeout={timeout:g}", "--json", *flags,
                         text="".join(f"{key}\n" for key in keys))
        return summary, part.read_text()


def merge(parts) -> str:
    """The texts of caches made one."""
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder) / "parts"
        sources.mkdir()
        for number, text in enumerate(parts):
            (sources / f"{number}.jsonl").write_text(text)
        done = call("cache", "merge", f"{folder}/cache", sources)
        if done.returncode != 0:
            raise FarmError(done.stderr.strip())
        return (pathlib.Path(folder) / "cache").read_text()
