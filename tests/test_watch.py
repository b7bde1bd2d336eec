# SPDX-License-Identifier: Apache-2.0
"""hone watch: on a terminal of the test's own (a pty) and without one; what the command itself prints and returns stays."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import conftest
import numpy as np
import onnx
import pytest
import tiny
from conftest import Program

UNTIMED = "--builderOptimizationLevel=0"
LOOP = ["-t", "0.3", "-n", "50"]


class Terminal:
    """So much of one as the program uses: text, line ends, cursor up, erase to the end of line and screen."""

    def __init__(self, columns, rows):
        self.size, self.lines, self.at, self.column = (columns, rows), [""], 0, 0

    def feed(self, text):
        for part in re.findall(r"\x1b\[\??\d*[A-Za-z]|\r|\n|[^\x1b\r\n]+|\x1b", text):
            if part == "\n":
                self.at += 1
                self.lines += [""] * (self.at + 1 - len(self.lines))
            elif part == "\r":
                self.column = 0
            elif part.startswith("\x1b["):
                self.escape(part)
            else:
                assert not any(ord(each) < 32 or ord(each) == 127 for each in part), repr(part)
                line = self.lines[self.at]
                self.lines[self.at] = line[:self.column].ljust(self.column) + part + line[self.column + len(part):]
                self.column += len(part)

    def escape(self, code):
        if code.endswith("A"):
            self.at -= int(code[2:-1])
            assert self.at >= 0
        elif code == "\x1b[K":
            self.lines[self.at] = self.lines[self.at][:self.column]
        elif code == "\x1b[J":
            self.lines[self.at] = self.lines[self.at][:self.column]
            del self.lines[self.at + 1:]
        else:
            assert code in ("\x1b[?25l", "\x1b[?25h"), code


def watched(folder, *words, columns=100, rows=40, env=None, interrupt_at=None):
    """(terminal, frames, exit status) of the command on a terminal of that size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen([conftest.BIN / "hone", "watch", *map(str, words)], cwd=folder, stdin=slave, stdout=slave, stderr=slave,
                               env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})}, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))  # Ctrl-C goes to it
    os.close(slave)
    said = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is closed
            piece = b""
        said += piece
        if interrupt_at is not None and interrupt_at in said:
            os.write(master, b"\x03")
            interrupt_at = None
        if not piece:
            break
    status = process.wait(timeout=600)
    os.close(master)
    terminal = Terminal(columns, rows)
    terminal.feed(said.decode(errors="replace"))
    return terminal, said.decode(errors="replace"), status


@pytest.fixture
def model(folder):
    tiny.convolutions(folder / "m.onnx")
    return folder


def test_a_build_shows_its_phases_and_the_best_so_far(model):
    terminal, said, status = watched(model, "trtexec", "--onnx=m.onnx", "--saveEngine=m.plan", "--shapes=x:1x3x16x16", "--skipInference")
    text = "\n".join(terminal.lines)
    assert status == 0 and (model / "m.plan").exists()
    assert terminal.lines[0].startswith("&&&& RUNNING") and "&&&& PASSED" in text  # above the screen, untouched
    head = next(i for i, line in enumerate(terminal.lines) if line.startswith("hone trtexec --onnx=m.onnx"))
    foot = terminal.lines[head:]
    assert not any(line.startswith(("&&&&", "[")) for line in foot)
    for phase in ("build", "  prepare", "  profile 0", "    tune", "    choose", "    write"):
        assert any(re.match(rf"  {phase} +done in ", line) for line in foot), (phase, foot)
    assert any(re.match(r"best so far  [\d.e-]+ ms in 4 layers", line) for line in foot), foot
    assert said.endswith("\x1b[?25h") and max(map(len, foot)) <= 100


def test_latencies_have_a_histogram_and_results_stand_above_it(model):
    Program(model)("--onnx=m.onnx", "--saveEngine=m.plan", "--shapes=x:1x3x16x16", "--skipInference", UNTIMED)
    terminal, _, status = watched(model, "bench", "m.plan", "-s", "x:1x3x16x16", *LOOP, columns=60)
    text = "\n".join(terminal.lines)
    assert status == 0 and re.search(r"\d+ queries per second|queries per second", text)
    line = next(each for each in terminal.lines if " ms median, " in each and "best" in each)
    assert float(line.split()[0]) >= float(re.search(r"median, ([\d.e-]+) best", line)[1]) > 0
    head = next(i for i, each in enumerate(terminal.lines) if each.startswith("hone bench m.plan"))
    assert any("█" in each for each in terminal.lines) and max(map(len, terminal.lines[head:])) <= 60


def test_a_small_terminal_is_not_overrun_and_plain_letters_do(model):
    terminal, said, status = watched(model, "bench", "m.onnx", UNTIMED, "-s", "x:1x3x16x16", *LOOP, columns=30, rows=8, env={"LC_ALL": "C"})
    assert status == 0 and said.isascii()
    for up in re.findall(r"\x1b\[(\d+)A", said):
        assert int(up) < 8
    _, said, status = watched(model, "bench", "m.onnx", UNTIMED, "-s", "x:1x3x16x16", *LOOP, columns=60, env={"LC_ALL": "C"})
    assert status == 0 and said.isascii() and "#" in said


def test_interrupting_ends_a_build_which_still_makes_a_plan(folder):
    widths = [192 + 8 * i for i in range(25)]  # a product of its own each, so that tuning is under way when it is interrupted
    nodes = [onnx.helper.make_node("MatMul", [f"t{i}" if i else "x", f"w{i}"], [f"t{i + 1}" if i < 23 else "y"], name=f"n{i}") for i in range(24)]
    weights = {f"w{i}": np.full((widths[i], widths[i + 1]), 0.01, np.float32) for i in range(24)}
    tiny.save(folder / "m.onnx", nodes, weights, inputs=[("x", ["N", 192])])
    _, _, status = watched(folder, "build", "m.onnx", "-o", "m.plan", "--shapes=x:64x192", interrupt_at=b"tune")
    assert status == 0 and (folder / "m.plan").stat().st_size > 0


def test_without_a_terminal_there_are_lines_and_the_output_is_the_commands(model):
    done = subprocess.run([conftest.BIN / "hone", "watch", "bench", "m.onnx", UNTIMED, "-s", "x:1x3x16x16", *LOOP, "--json"], cwd=model,
                          capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["queries"] >= 50
    assert "\x1b" not in done.stderr and "\r" not in done.stderr
    lines = done.stderr.splitlines()
    assert any(line.startswith("tune: done in ") for line in lines) and lines[-1].startswith("latency: "), lines


def test_the_exit_status_is_the_commands_and_words_are_checked(model):
    hone = Program(model, "hone")
    assert hone.run("watch", "run", "nowhere.onnx", "--ref").returncode == hone.run("run", "nowhere.onnx", "--ref").returncode == 3
    done = hone.run("watch", "bensh")
    assert done.returncode == 2 and "did you mean bench?" in done.stdout
    assert hone.run("watch").returncode == 2 and "usage: hone watch COMMAND" in hone.run("watch", "--help").stdout


def test_names_cannot_move_the_cursor(folder):
    tiny.save(folder / "m.onnx", [onnx.helper.make_node("Relu", ["x"], ["y"], name="\x1b[2J\x9b5A\u202e" + "n" * 3_000)])
    terminal, _, status = watched(folder, "build", "m.onnx", "-o", "m.plan", "--shapes=x:1x4")
    assert status == 0 and any("?[2J" in line for line in terminal.lines)


def test_the_watched_command_dies_with_its_watcher(model):
    process = Program(model, "hone").start("watch", "bench", "m.onnx", UNTIMED, "-s", "x:1x3x16x16", "-t", "300")
    while "done in" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
