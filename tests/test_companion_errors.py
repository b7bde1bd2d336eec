# SPDX-License-Identifier: Apache-2.0
"""What the companions do with bad input: one sentence that begins with the command's name, the exit status that says of what kind it is, and
nothing half-written. One table of commands, one of what can be wrong; numbers in the tests' names are rows of docs/companions.md."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile

import conftest
import numpy as np
import onnx
import pytest
import tiny

# The command's words, which of them is the file, and what it writes. MODEL, PLAN, ... are files of the fixture.
COMMANDS = {
    "run": (["run", "MODEL", "--ref", "--validate", "--save-outputs", "OUT"], "out.json"),
    "run cpu": (["run", "MODEL", "--cpu", "--validate", "--save-engine", "OUT"], "out.plan"),
    "run --save-inputs": (["run", "MODEL", "--ref", "--validate", "--save-inputs", "OUT"], "out.json"),
    "run --load-inputs": (["run", "a.onnx", "--ref", "--validate", "--load-inputs", "INPUTS"], None),
    "run --load-inputs npz": (["run", "a.onnx", "--ref", "--validate", "--load-inputs", "ARCHIVE"], None),
    "run --load-inputs npy": (["run", "a.onnx", "--ref", "--validate", "--load-inputs", "ARRAY"], None),
    "run --load-outputs safetensors": (["run", "a.onnx", "--ref", "--load-outputs", "TENSORS"], None),
    "run --load-timing-cache": (["run", "a.onnx", "--cpu", "--validate", "--load-timing-cache", "CACHE"], None),
    "run --save-tactics": (["run", "MODEL", "--cpu", "--validate", "--save-tactics", "OUT"], "out.json"),
    "run --save-timing-cache": (["run", "MODEL", "--cpu", "--validate", "--save-timing-cache", "OUT"], "out.cache"),
    "run --save-onnx": (["run", "MODEL", "--ref", "--validate", "--onnx-outputs", "h", "y", "--save-onnx", "OUT"], "out.onnx"),
    "run --save-heatmaps": (["run", "MODEL", "--ref", "--cpu", "--save-heatmaps", "OUT"], "maps"),
    "run --save-error-metrics-plot": (["run", "MODEL", "--ref", "--cpu", "--save-error-metrics-plot", "OUT"], "plots"),
    "run --save-input-blob": (["run", "MODEL", "--ref", "--validate", "--save-input-blob", "OUT"], "blobs"),
    "run --gen-script py": (["run", "MODEL", "--ref", "--cpu", "--gen-script", "OUT"], "out.py"),
    "run --gen-script cpp": (["run", "MODEL", "--ref", "--cpu", "--gen-script", "OUT"], "out.cpp"),
    "run --tap": (["run", "MODEL", "--cpu", "--tap", "*", "--json", "OUT"], "out.json"),
    "run --load-outputs": (["run", "a.onnx", "--ref", "--load-outputs", "RESULTS", "--save-accuracy-results", "OUT"], "out.json"),
    "run --load-tactics": (["run", "a.onnx", "--cpu", "--validate", "--load-tactics", "TACTICS"], None),
    "run --plan": (["run", "a.onnx", "--ref", "--plan", "PLAN"], None),
    "convert onnx": (["convert", "MODEL", "-o", "OUT"], "out.onnx"),
    "convert fp16": (["convert", "MODEL", "-o", "OUT", "--fp-to-fp16"], "out.onnx"),
    "convert plan": (["convert", "MODEL", "--cpu", "-o", "OUT"], "out.plan"),
    "convert network": (["convert", "MODEL", "--convert-to", "onnx-like-network", "-o", "OUT"], "out.onnx"),
    "inspect model": (["inspect", "model", "MODEL"], None),
    "inspect model plan": (["inspect", "model", "PLAN"], None),
    "inspect data": (["inspect", "data", "INPUTS"], None),
    "inspect data results": (["inspect", "data", "RESULTS"], None),
    "inspect data accuracy": (["inspect", "data", "ACCURACY"], None),
    "inspect tactics": (["inspect", "tactics", "TACTICS"], None),
    "inspect diff-tactics": (["inspect", "diff-tactics", "--good", "TACTICS", "--bad", "t.json"], None),
    "inspect sparsity": (["inspect", "sparsity", "MODEL"], None),
    "inspect capability": (["inspect", "capability", "MODEL"], None),
    "inspect capability parts": (["inspect", "capability", "MODEL", "--with-partitioning", "-o", "OUT"], "parts"),
    "check lint": (["check", "lint", "MODEL", "-o", "OUT"], "out.json"),
    "check accuracy": (["check", "accuracy", "ACCURACY", "--save-accuracy-results", "OUT"], "out.json"),
    "surgeon extract": (["surgeon", "extract", "MODEL", "--outputs", "h:auto", "-o", "OUT"], "out.onnx"),
    "surgeon sanitize": (["surgeon", "sanitize", "MODEL", "--fold-constants", "-o", "OUT"], "out.onnx"),
    "surgeon copy": (["surgeon", "copy", "MODEL", "-o", "OUT"], "out.onnx"),
    "surgeon copy, weights beside": (["surgeon", "copy", "MODEL", "--save-external-data", "--external-data-size-threshold", "0", "-o", "OUT"], "out.onnx"),
    "surgeon insert": (["surgeon", "insert", "MODEL", "--inputs", "h", "--outputs", "y", "--op", "Neg", "-o", "OUT"], "out.onnx"),
    "surgeon remove": (["surgeon", "remove", "MODEL", "--op", "Relu", "-o", "OUT"], "out.onnx"),
    "surgeon replace": (["surgeon", "replace", "MODEL", "--pattern", "Relu($x)", "--with", "Neg($x)", "-o", "OUT"], "out.onnx"),
    "surgeon rename": (["surgeon", "rename", "MODEL", "h=hidden", "-o", "OUT"], "out.onnx"),
    "surgeon set-attr": (["surgeon", "set-attr", "MODEL", "--node", "dense", "alpha=2.0", "-o", "OUT"], "out.onnx"),
    "surgeon set-dynamic": (["surgeon", "set-dynamic", "MODEL", "--dim", "x:0=N", "-o", "OUT"], "out.onnx"),
    "surgeon set-weight": (["surgeon", "set-weight", "MODEL", "b=b.npy", "-o", "OUT"], "out.onnx"),
    "surgeon weight-reconstruct": (["surgeon", "weight-reconstruct", "MODEL", "-o", "OUT"], "out.onnx"),
    "surgeon prune": (["surgeon", "prune", "MODEL", "-o", "OUT"], "out.onnx"),
    "surgeon weight-strip": (["surgeon", "weight-strip", "MODEL", "-o", "OUT"], "out.onnx"),
    "surgeon diff, the other": (["surgeon", "diff", "a.onnx", "MODEL"], None),
    "surgeon diff": (["surgeon", "diff", "MODEL", "a.onnx"], None),
    "debug reduce": (["debug", "reduce", "MODEL", "-o", "OUT", "--check", "false"], "out.onnx"),
    "debug reduce replay": (["debug", "reduce", "a.onnx", "-o", "out.onnx", "--load-debug-replay", "REPLAY", "--check", "false"], None),
    "debug precision": (["debug", "precision", "MODEL", "--cpu", "--fp16", "--check", "false"], None),
    "debug repeat": (["debug", "repeat", "--until", "1", "--check", "true"], None),
    "debug build": (["debug", "build", "MODEL", "--cpu", "--until", "1", "--check", "true"], None),
    "debug diff-tactics": (["debug", "diff-tactics", "--good", "t.json", "--bad", "TACTICS"], None),
    "data merge": (["data", "merge", "INPUTS", "-o", "OUT"], "out.json"),
    "data to-input": (["data", "to-input", "RESULTS", "-o", "OUT"], "out.json"),
    "data concat": (["data", "concat", "RESULTS", "-o", "OUT"], "out.json"),
    "plugin list": (["plugin", "list", "MODEL", "--plugin-dir", "plugins"], None),
    "plugin list patterns": (["plugin", "list", "a.onnx", "--plugin-dir", "FOLDER"], None),
    "plugin match": (["plugin", "match", "MODEL", "--plugin-dir", "plugins", "-o", "OUT"], "out.yaml"),
    "plugin replace": (["plugin", "replace", "MODEL", "--config", "config.yaml", "-o", "OUT"], "out.onnx"),
    "plugin replace config": (["plugin", "replace", "a.onnx", "--config", "CONFIG", "-o", "out.onnx"], None),
    "plugin autotune": (["plugin", "autotune", "MODEL", "--plugin-dir", "plugins", "--cpu", "-o", "OUT"], "out.onnx"),
    "template onnx-gs": (["template", "onnx-gs", "MODEL", "-o", "OUT"], "out.py"),
    "template trt-config": (["template", "trt-config", "-o", "OUT"], "out.py"),
    "template shard-hints": (["template", "shard-hints", "MODEL", "-o", "OUT"], "out.json"),
    "multi-device shard": (["multi-device", "shard", "MODEL", "-s", "hints.json", "-o", "OUT"], "out.onnx"),
    "multi-device shard hints": (["multi-device", "shard", "attention.onnx", "-s", "HINTS", "-o", "OUT"], "out.onnx"),
    "template trt-network": (["template", "trt-network", "-o", "OUT"], "out.py"),
}
FILES = {"MODEL": "a.onnx", "PLAN": "a.plan", "INPUTS": "in.json", "RESULTS": "out0.json", "ACCURACY": "acc.json", "TACTICS": "t.json", "REPLAY": "replay.json",
         "CONFIG": "config.yaml", "FOLDER": "plugins", "ARCHIVE": "in.npz", "ARRAY": "in.npy", "TENSORS": "out.safetensors", "CACHE": "t.cache", "HINTS": "hints.json"}
FOLDERS = ("parts", "maps", "plots", "blobs")
READERS = [name for name, (words, _) in COMMANDS.items() if any(word in FILES for word in words)]
WRITERS = [name for name, (_, output) in COMMANDS.items() if output]
# Model files that are damaged are found wrong by what reads them: a check of the model fails (1), a file that cannot be read is 3.
WRONG = (1, 2, 3)


@pytest.fixture(scope="module")
def good():
    """A folder with one of each file."""
    conftest.WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=conftest.WORK) as name:
        program = conftest.Program(name, "hone")
        folder = program.folder
        tiny.perceptron(folder / "a.onnx")
        program("run", "a.onnx", "--cpu", "--save-engine", "a.plan", "--save-tactics", "t.json", "--save-inputs", "in.json", "--save-outputs", "out0.json")
        program("run", "a.onnx", "--cpu", "--load-outputs", "out0.json", "--save-accuracy-results", "acc.json")
        program("run", "a.onnx", "--cpu", "--save-inputs", "in.npz", "--save-outputs", "out.safetensors", "--save-timing-cache", "t.cache")
        np.save(folder / "in.npy", np.load(folder / "in.npz")["x"])
        np.save(folder / "b.npy", np.zeros(8, np.float32))
        attention = [onnx.helper.make_node("MatMul", ["x", "x"], ["s"]), onnx.helper.make_node("Softmax", ["s"], ["p"]), onnx.helper.make_node("MatMul", ["p", "x"], ["y"])]
        tiny.save(folder / "attention.onnx", attention, inputs=[("x", [4, 4])], outputs=[("y", [4, 4])])
        program("template", "shard-hints", "attention.onnx", "-o", "hints.json")
        (folder / "plugins/p").mkdir(parents=True)
        (folder / "plugins/p/pattern.json").write_text(json.dumps({"name": "p", "op": "P", "pattern": "Relu($x)"}))
        program("plugin", "match", "a.onnx", "--plugin-dir", "plugins", "-o", "config.yaml")
        program.run("debug", "reduce", "a.onnx", "-o", "r.onnx", "--save-debug-replay", "replay.json", "--check", "false")
        yield folder


@pytest.fixture
def hone(good, folder):
    """A program in a copy of the folder."""
    shutil.copytree(good, folder / "w")
    return conftest.Program(folder / "w", "hone")


def filled(name, **exchanged):
    words, output = COMMANDS[name]
    exchanged.setdefault("OUT", output)
    return [exchanged.get(word, FILES.get(word, word)) for word in words]


def file_of(name):
    return next(word for word in COMMANDS[name][0] if word in FILES)


def refused(hone, name, words, statuses, preexec=None):
    """It ends with one of the statuses, and stderr says why in a sentence with the command's name; no trace of a crash."""
    before = listing(hone.folder)
    done = subprocess.run([conftest.BIN / "hone", *map(str, words)], cwd=hone.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace", timeout=300, check=False, preexec_fn=preexec)
    said = f"{name}: exit {done.returncode}\n{' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    assert done.returncode in statuses, said
    lines = [line for line in done.stderr.splitlines() if line.startswith("hone ")]
    command = " ".join(word for word in words[:2] if word.replace("-", "").isalpha() and not word.startswith("-"))
    assert lines and any(line.startswith((f"hone {command}", f"hone {words[0]}")) for line in lines), said
    assert "terminate called" not in done.stderr and "Traceback" not in done.stderr and "what():" not in done.stderr, said
    left = {path for path in listing(hone.folder) - before if not path.startswith(("polygraphy_debug_replay", "polygraphy_debug."))}
    return left


def listing(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_missing(hone, name):
    kind = file_of(name)
    assert not refused(hone, name, filled(name, **{kind: "nowhere/file.onnx" if kind == "MODEL" else "nowhere/file.json"}), (3,)), name


@pytest.mark.parametrize("name", [name for name in READERS if file_of(name) != "FOLDER"])
@pytest.mark.parametrize("how", ["truncated", "empty", "foreign", "zeros"])
def test_a_file_that_is_damaged_or_foreign(hone, name, how):
    kind = file_of(name)
    path = hone.folder / FILES[kind]
    content = path.read_bytes()
    broken = hone.folder / ("broken" + path.suffix)
    broken.write_bytes({"truncated": content[:len(content) * 2 // 3], "empty": b"", "foreign": b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "zeros": bytes(4096)}[how])
    if kind == "CONFIG" and how == "empty":
        return  # nothing to replace: nothing is wrong
    if name == "template onnx-gs":
        return  # it names the model and does not read it
    if kind == "CACHE":  # what is no time is left out, as by trtexec
        said = hone(*filled(name, CACHE=broken.name))
        assert how == "empty" or "broken.cache: " in said and "are no times, or of another version, and are left out" in said, said
        return
    left = refused(hone, name, filled(name, **{kind: broken.name}), WRONG)
    assert left <= {"out.json", "parts"} and not any(path.endswith((".onnx", ".plan", ".part")) for path in left), (name, left)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_cannot_be_written(hone, name):
    output = COMMANDS[name][1]
    left = refused(hone, name, filled(name, OUT=f"/proc/{output}" if output in FOLDERS else f"nowhere/{output}"), WRONG)
    assert not left, (name, left)


def small_files(most):
    """Files beyond so many bytes cannot be written: as on a full disk. SIGXFSZ is ignored, so that write() fails with EFBIG."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return limit


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_is_full(hone, name):
    output = COMMANDS[name][1]
    words = filled(name, OUT=output)
    left = refused(hone, name, words, WRONG, small_files(8 if output == "blobs" else 64))
    assert not [path for path in left if (hone.folder / path).is_file() and not path.endswith(".lock")], (name, left)


@pytest.mark.parametrize("name", WRITERS)
def test_an_old_file_stays_where_the_new_one_cannot_be_written(hone, name):
    output = COMMANDS[name][1]
    if output in FOLDERS:
        return
    (hone.folder / output).write_bytes(b"old")
    refused(hone, name, filled(name, OUT=output), WRONG, small_files(64))
    assert (hone.folder / output).read_bytes() == b"old"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_flag_that_there_is_not(hone, name):
    words = filled(name)
    words = words[:2] + ["--frobnicate"] + words[2:]
    assert not refused(hone, name, words, (1, 2) if name.startswith("inspect capability") else (2,))


@pytest.mark.parametrize("command", ["surgeon copy", "surgeon sanitize", "run", "convert onnx", "convert plan", "inspect capability parts", "debug reduce", "check lint"])
@pytest.mark.parametrize("place", ["../secret.bin", "/etc/hostname", "link.bin", "a/../../secret.bin"])
def test_names_that_lead_to_other_folders(hone, command, place):
    """A model's external data lie beside it or below, and nowhere else."""
    (hone.folder.parent / "secret.bin").write_bytes(np.ones(4, np.float32).tobytes())
    os.symlink("../secret.bin", hone.folder / "link.bin")
    (hone.folder / "a").mkdir()
    model = onnx.load(tiny.save(hone.folder / "e.onnx", [onnx.helper.make_node("Add", ["x", "w"], ["y"], name="h")], {"w": np.ones(4, np.float32)}))
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", place), ("offset", "0"), ("length", "16")):
        weight.external_data.add(key=key, value=value)
    (hone.folder / "e.onnx").write_bytes(model.SerializeToString())
    words = filled(command, MODEL="e.onnx", OUT="elsewhere/out.onnx" if command.startswith(("surgeon", "debug")) else COMMANDS[command][1])
    (hone.folder / "elsewhere").mkdir()
    done = hone.run(*words)
    if command == "convert onnx" and done.returncode == 0:
        assert onnx.load(hone.folder / "out.onnx", load_external_data=False).graph.initializer[0].external_data[0].value == place  # as it was, not followed
        return
    assert done.returncode in (1, 3), done.stdout
    assert "secret" not in "".join(path.name for path in (hone.folder / "elsewhere").iterdir())


def test_every_companion_is_in_the_table():
    """Commands of other documents are tried where those are tested."""
    groups = {"check": {"accuracy", "lint"}, "inspect": {"capability", "model", "data", "tactics", "diff-tactics", "sparsity"}}
    found = re.findall(r'^(SUBCOMMAND|HYPHENATED)\((\w+), (\w+)(?:, "([\w-]+)")?', (conftest.ROOT / "src/tools/commands/commands.def").read_text(), re.MULTILINE)
    commands = {(first.replace("_", "-"), spelled if kind == "HYPHENATED" else second) for kind, first, second, spelled in found if first != "bench"}
    tried = {tuple(words[:2]) for words, _ in COMMANDS.values()}
    assert {(first, second) for first, second in commands if second in groups.get(first, {second})} <= tried
