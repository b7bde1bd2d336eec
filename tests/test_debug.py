# SPDX-License-Identifier: Apache-2.0
"""hone debug: what makes a check fail. The numbers in the tests' names are rows of docs/companions.md."""

import json
import re
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest
import tiny
from onnx import helper


def said_by(program, status, *words, **options):
    """What it said; it has to exit with the status."""
    done = program.run(*words, **options)
    assert done.returncode == status, f"exit {done.returncode}, not {status}: {program.name} {' '.join(map(str, words))}\n{done.stdout}"
    return done.stdout


def affine(path):
    """output = x0 + (a * x1 + b): the example that Polygraphy's users know."""
    sizes = [1, 3, 4, 4]
    weights = {name: np.ones([1, 3, 1, 1], np.float32) * factor for name, factor in (("a", 2), ("b", 3))}
    nodes = [helper.make_node("Mul", ["a", "x1"], ["mul_out"], name="mul"), helper.make_node("Add", ["mul_out", "b"], ["add_out"], name="add"),
             helper.make_node("Add", ["x0", "add_out"], ["output"], name="sum")]
    return tiny.save(path, nodes, weights, [("x0", sizes), ("x1", sizes)], [("output", sizes)], opset=13)


def branches(path, links=12):
    """Two branches of Sigmoids that meet in a Mul, and a chain behind it; every node's type is declared."""
    nodes = []
    for side in "ab":
        nodes += [helper.make_node("Sigmoid", [f"{side}{i}" if i else "x"], [f"{side}{i + 1}"], name=f"{side}_{i}") for i in range(links)]
    nodes.append(helper.make_node("Mul", [f"a{links}", f"b{links}"], ["c0"], name="join"))
    nodes += [helper.make_node("Relu", [f"c{i}"], [f"c{i + 1}"], name=f"c_{i}") for i in range(links)]
    return tiny.save(path, nodes, inputs=[("x", [2, 8])], outputs=[(f"c{links}", [2, 8])], opset=13)


def test_row_81_reduce_with_a_command(hone):
    affine(hone.folder / "model.onnx")
    check = ("--check", "hone", "inspect", "model", "polygraphy_debug.onnx", "--show", "layers")
    said = said_by(hone, 0, "debug", "reduce", "model.onnx", "-o", "red.onnx", "--min-good", "g.onnx", "--mode=linear", "--fail-regex", "Op: Mul", *check)
    reduced = onnx.load(hone.folder / "red.onnx").graph
    assert [node.op_type for node in reduced.node] == ["Mul"]
    assert [value.name for value in reduced.input] == ["x1"] and [value.name for value in reduced.output] == ["mul_out"]
    assert "Mul" not in [node.op_type for node in onnx.load(hone.folder / "g.onnx").graph.node]
    for text in ("Reducing model outputs", "Marking model outputs: ['mul_out']", "Minimum Bad Model:", "Minimum Good Model:", "RUNNING | Iteration 1",
                 "Running check command: hone inspect model polygraphy_debug.onnx --show layers", "========== CAPTURED STDOUT", "Pass Rate:"):
        assert text in said, text
    assert not (hone.folder / "polygraphy_debug.onnx").exists() and (hone.folder / "polygraphy_debug_replay.json").exists()
    for mode in ("bisect", "linear"):
        for op, output in (("Op: Add", None), ("Op: Mul", "mul_out")):
            said_by(hone, 0, "debug", "reduce", "model.onnx", "-o", "red.onnx", "--mode", mode, "--fail-regex", op, *check)
            graph = onnx.load(hone.folder / "red.onnx").graph
            assert len(graph.node) == 1 and graph.node[0].op_type == op[4:] and (output is None or graph.output[0].name == output)
            onnx.checker.check_model(onnx.load(hone.folder / "red.onnx"))


def test_row_81_inputs_or_outputs_stay(hone):
    affine(hone.folder / "model.onnx")
    check = ("--fail-regex", "add_out", "--check", "hone", "inspect", "model", "polygraphy_debug.onnx", "--show", "layers")
    said_by(hone, 0, "debug", "reduce", "model.onnx", "-o", "red.onnx", "--no-reduce-inputs", *check)
    graph = onnx.load(hone.folder / "red.onnx").graph
    assert [node.name for node in graph.node] == ["mul", "add"] and [value.name for value in graph.input] == ["x1"]
    said_by(hone, 0, "debug", "reduce", "model.onnx", "-o", "red.onnx", "--no-reduce-outputs", *check)
    graph = onnx.load(hone.folder / "red.onnx").graph
    assert [node.name for node in graph.node] == ["sum"] and sorted(value.name for value in graph.input) == ["add_out", "x0"]


def test_row_81_the_reduced_model_is_polygraphys(hone):
    """Polygraphy with the same check comes to the same model."""
    pytest.importorskip("polygraphy")
    affine(hone.folder / "model.onnx")
    script = hone.folder / "check.py"
    script.write_text("import onnx, sys\nsys.exit(any(n.op_type == 'Mul' for n in onnx.load('polygraphy_debug.onnx').graph.node))\n")
    flags = ["debug", "reduce", "model.onnx", "--mode=linear", "--check", sys.executable, "check.py"]
    done = subprocess.run([sys.executable, "-c", "import sys; from polygraphy.tools import main; sys.exit(main())", *flags[:3], "-o", "theirs.onnx", *flags[3:]], cwd=hone.folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    (hone.folder / "polygraphy_debug.onnx").unlink(missing_ok=True)
    said_by(hone, 0, *flags[:3], "-o", "ours.onnx", *flags[3:])
    theirs, ours = (onnx.load(hone.folder / name).graph for name in ("theirs.onnx", "ours.onnx"))
    for part in ("node", "input", "output", "initializer"):
        assert [each.name for each in getattr(theirs, part)] == [each.name for each in getattr(ours, part)], part


def test_row_82_reduce_in_this_process_with_branches(hone):
    """Long sums in another order round otherwise than the reference; copies and signs do not: one MatMul on one of two branches is left."""
    random = np.random.default_rng(5)
    nodes = []
    for side in "ab":
        nodes += [helper.make_node(("Neg", "Abs")[i % 2], [f"{side}{i}" if i else "x"], [f"{side}{i + 1}"], name=f"{side}_{i}") for i in range(6)]
    nodes.append(helper.make_node("MatMul", ["a6", "w"], ["am"], name="hot"))
    nodes += [helper.make_node("Max", ["am", "b6"], ["c0"], name="join"), helper.make_node("Neg", ["c0"], ["y"], name="last")]
    tiny.save(hone.folder / "big.onnx", nodes, {"w": random.standard_normal((512, 512), np.float32)}, [("x", [8, 512])], [("y", [8, 512])], opset=13)
    said = said_by(hone, 0, "debug", "reduce", "big.onnx", "-o", "red.onnx", "--val-range", "[-1,1]", "--check-run", "--cpu --ref --atol 0 --rtol 0",
                   "--json", "out.json")
    assert re.search(r"Finished \d+ iteration\(s\) in [\d.]+ s", said)
    reduced = onnx.load(hone.folder / "red.onnx").graph
    assert [node.name for node in reduced.node] == ["hot"] and [value.name for value in reduced.input] == ["a6"]
    found = json.loads((hone.folder / "out.json").read_text())
    assert found["written"] == "red.onnx" and found["nodes"] == ["hot"] and found["timing"]["iterations"] >= 3


def test_row_82_two_nodes_on_different_branches_are_found_together(hone):
    """The check fails where both a_3 and b_7 are in the model, which no beginning or end separates."""
    branches(hone.folder / "big.onnx")
    script = hone.folder / "check.py"
    script.write_text("import onnx, sys\nnames = {n.name for n in onnx.load('polygraphy_debug.onnx').graph.node}\nsys.exit({'a_3', 'b_7'} <= names)\n")
    said_by(hone, 0, "debug", "reduce", "big.onnx", "-o", "red.onnx", "--check", sys.executable, "check.py")
    reduced = onnx.load(hone.folder / "red.onnx")
    assert sorted(node.name for node in reduced.graph.node) == ["a_3", "b_7"]
    onnx.checker.check_model(reduced)
    assert [value.name for value in reduced.graph.input] == ["a3", "b7"] and [value.name for value in reduced.graph.output] == ["a4", "b8"]


def test_row_82_values_that_flow_in_the_whole_model(hone):
    """Log of a difference is NaN only for what flows there, not for random numbers."""
    nodes = [helper.make_node("Sub", ["x", "one"], ["d"], name="sub"), helper.make_node("Log", ["d"], ["l"], name="log"),
             helper.make_node("Exp", ["l"], ["y"], name="exp")]
    tiny.save(hone.folder / "m.onnx", nodes, {"one": np.float32(1)}, [("x", [4])], [("y", [4])], opset=13)
    said_by(hone, 0, "debug", "reduce", "m.onnx", "-o", "red.onnx", "--check-run", "--ref --validate")
    (node,) = onnx.load(hone.folder / "red.onnx").graph.node
    assert node.name in ("log", "exp")
    (value,) = onnx.load(hone.folder / "red.onnx").graph.input
    assert value.name == {"log": "d", "exp": "l"}[node.name]
    # Drawn anew, from 0 to 1, neither log nor exp would give a NaN or an infinity.
    said_by(hone, 0, "run", "red.onnx", "--ref", "--validate", "--val-range", "[0.1,1]")


def test_row_83_nothing_fails(hone):
    affine(hone.folder / "model.onnx")
    said = said_by(hone, 2, "debug", "reduce", "model.onnx", "-o", "red.onnx", "--check", "true")
    assert "The model does not fail" in said and not (hone.folder / "red.onnx").exists()


def test_row_84_build_isolates_a_tactic_and_a_replay_repeats_it(hone):
    """A check that fails where one layer has another tactic than the first engine stands for a faulty tactic."""
    tiny.convolutions(hone.folder / "m.onnx")
    script = hone.folder / "check.py"
    script.write_text("import json, os, sys\ntactic = json.load(open('t.json'))['replay'][LAYER]['tactic']\n"
                      "known = open('first').read() if os.path.exists('first') else open('first', 'w').write(tactic) and tactic\n"
                      "sys.exit(tactic != known)\n")
    said_by(hone, 0, "run", "m.onnx", "--cpu", "--input-shapes", "x:[1,3,16,16]", "--save-tactics", "t.json")
    layer = next(name for name in json.loads((hone.folder / "t.json").read_text())["replay"] if "conv1" in name)
    script.write_text(f"LAYER = {layer!r}\n" + script.read_text())
    run = ("debug", "build", "m.onnx", "--cpu", "--input-shapes", "x:[1,3,16,16]", "--until", "8", "--save-tactics", "t.json", "--artifacts", "t.json")
    said = said_by(hone, 1, *run, "--check", sys.executable, "check.py")
    assert "Finished 8 iteration(s)" in said
    good, bad = (sorted((hone.folder / "polygraphy_artifacts" / kind).iterdir()) for kind in ("good", "bad"))
    assert good and bad and len(good) + len(bad) == 8
    for command in (("inspect", "diff-tactics"), ("debug", "diff-tactics")):
        said = said_by(hone, 0, *command, "--dir", "polygraphy_artifacts")
        assert f"Loaded {len(good)} good tactic replays." in said and f"Loaded {len(bad)} bad tactic replays." in said
        assert "Found potentially bad tactics:" in said and f"Layer: {layer}" in said
    assert f"Layer: {layer}\n" in said_by(hone, 0, "inspect", "tactics", bad[0])
    for replay, status in ((good[-1], 0), (bad[0], 1)):
        said_by(hone, 0, "run", "m.onnx", "--cpu", "--input-shapes", "x:[1,3,16,16]", "--load-tactics", replay, "--save-tactics", "again.json")
        assert json.loads((hone.folder / "again.json").read_text())["replay"] == json.loads(replay.read_text())["replay"]
        (hone.folder / "t.json").write_text((hone.folder / "again.json").read_text())
        assert subprocess.run([sys.executable, "check.py"], cwd=hone.folder, check=False).returncode == status


def needs_constraints(path):
    """A large sum that FP16 cannot hold and that is taken away again, between two layers that any type will do for."""
    nodes = [helper.make_node("CumSum", ["x", "one"], ["p"], name="first"), helper.make_node("Add", ["p", "big"], ["s"], name="add"),
             helper.make_node("Sub", ["s", "big"], ["d"], name="sub"), helper.make_node("CumSum", ["d", "one"], ["y"], name="last")]
    return tiny.save(path, nodes, {"big": np.float32(65504), "one": np.int64(1)}, [("x", [8, 8])], [("y", [8, 8]), ("s", [8, 8])], opset=13)


def test_rows_85_86_precision(hone):
    needs_constraints(hone.folder / "m.onnx")
    said_by(hone, 0, "run", "m.onnx", "--ref", "--val-range", "[1,32]", "--save-inputs", "in.json", "--save-outputs", "golden.json")
    check = ("--check", "hone", "run", "polygraphy_debug.engine", "--cpu", "--load-inputs", "in.json", "--load-outputs", "golden.json", "--atol", "1",
             "--rtol", "0.02")
    for mode, direction, count in (("bisect", "forward", 3), ("linear", "forward", 3), ("bisect", "reverse", 3)):
        said = said_by(hone, 0, "debug", "precision", "m.onnx", "--cpu", "--fp16", "--mode", mode, "--dir", direction, *check)
        which = "first" if direction == "forward" else "last"
        assert f"To achieve acceptable accuracy, try running the {which} {count} layer(s) in higher precision" in said
        (layers,) = [line for line in said.splitlines() if "Layers: " in line]
        assert "add" in layers and "sub" in layers
    said = said_by(hone, 0, "debug", "precision", "m.onnx", "--cpu", "--fp16", "--minimal", "--json", "p.json", *check)
    found = json.loads((hone.folder / "p.json").read_text())
    assert found["layers"] == ["add", "sub"] and "--layerPrecisions=" in said
    # The flags are pasted as they are, and pass.
    said_by(hone, 0, "run", "m.onnx", "--cpu", "--fp16", *found["flags"], "--load-inputs", "in.json", "--load-outputs", "golden.json", "--atol", "1", "--rtol",
            "0.02")
    said_by(hone, 1, "run", "m.onnx", "--cpu", "--fp16", "--precisionConstraints=obey", "--layerPrecisions=*:fp16", "--load-inputs", "in.json",
            "--load-outputs", "golden.json", "--atol", "1", "--rtol", "0.02")
    assert "no type of few bits is allowed" in said_by(hone, 2, "debug", "precision", "m.onnx", "--cpu", "--check", "true")
    assert "with all layers in fp32 it fails, too" in said_by(hone, 1, "debug", "precision", "m.onnx", "--cpu", "--fp16", "--check", "false")
    assert "No layer needs higher precision" in said_by(hone, 0, "debug", "precision", "m.onnx", "--cpu", "--fp16", "--check", "true")


def flaky(folder):
    """Fails the third time and writes an artefact each time."""
    script = folder / "flaky.sh"
    script.write_text("#!/bin/sh\necho x >> count\ncp count trace.txt\n[ $(wc -l < count) -ne 3 ]\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def test_row_87_repeat(hone):
    flaky(hone.folder)
    run = ("debug", "repeat", "--artifacts", "trace.txt", "--iter-info", "info.json")
    said = said_by(hone, 1, *run, "--until", "bad", "--check", "./flaky.sh")
    assert "Finished 3 iteration(s)" in said and "Passed: 2/3 | Pass Rate: 66.7%" in said
    good, bad = (sorted((hone.folder / "polygraphy_artifacts" / kind).iterdir()) for kind in ("good", "bad"))
    assert len(good) == 2 and [path.read_text() for path in bad] == ["x\n" * 3] and json.loads((hone.folder / "info.json").read_text()) == {"iteration": 2}
    said_by(hone, 0, *run, "--until", "good", "--check", "./flaky.sh")
    said_by(hone, 0, *run, "--until", "4", "--check", "./flaky.sh")
    said_by(hone, 1, *run, "--until", "2", "--check", "false")
    for flags, status in ((["--fail-code", "3"], 0), (["--fail-code", "1"], 1), (["--ignore-fail-code", "1"], 0), (["--fail-regex", "oops"], 0)):
        said_by(hone, status, *run, "--until", "1", *flags, "--check", "sh", "-c", "exit 1")
    said_by(hone, 1, *run, "--until", "1", "--fail-regex", "o+ps", "--check", "echo", "ooops")
    for words, status, text in ((("--until", "soon", "--check", "true"), 2, "--until takes good, bad or a number"), (("--check", "true"), 2, "--until is missing"),
                                (("--until", "1", "--fail-regex", "(", "--check", "true"), 2, "is no regular expression"),
                                (("--until", "1", "--check", "./nothing"), 4, "the check command cannot be run")):
        assert text in said_by(hone, status, *run, *words)


def test_row_88_a_search_that_was_killed_goes_on(hone):
    branches(hone.folder / "big.onnx")
    script = hone.folder / "check.py"
    script.write_text("import onnx, sys, os, time\nopen('asked', 'a').write('x')\n"
                      "if os.path.exists('slow') and len(open('asked').read()) > 3: open('waiting', 'w').close(); time.sleep(600)\n"
                      "names = {n.name for n in onnx.load('polygraphy_debug.onnx').graph.node}\nsys.exit({'a_3', 'b_7'} <= names)\n")
    run = ("debug", "reduce", "big.onnx", "-o", "red.onnx")
    check = ("--check", sys.executable, "check.py")
    (hone.folder / "slow").touch()
    child = hone.start(*run, *check)
    for _ in range(3000):
        if (hone.folder / "waiting").exists():
            break
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (hone.folder / "slow").unlink()
    replay = json.loads((hone.folder / "polygraphy_debug_replay.json").read_text())
    assert len(replay) == 3 and all(entry["polygraphy_class"] == "IterationContext" for entry in replay.values())
    skips = json.loads((hone.folder / "polygraphy_debug_replay_skip_current.json").read_text())
    assert len(skips) == 4 and list(skips.values())[-1]["success"] is False
    assert "polygraphy_debug.onnx is there" in said_by(hone, 2, *run, *check)
    (hone.folder / "asked").unlink()
    said = said_by(hone, 0, *run, "--load-debug-replay", "polygraphy_debug_replay.json", *check)
    assert said.count("Skipped: the replay holds its answer") == 3
    assert sorted(node.name for node in onnx.load(hone.folder / "red.onnx").graph.node) == ["a_3", "b_7"]
    asked = len((hone.folder / "asked").read_text())
    (hone.folder / "asked").unlink()
    said_by(hone, 0, *run, *check)
    assert len((hone.folder / "asked").read_text()) == asked + 3
    pytest.importorskip("polygraphy")
    from polygraphy.json import load_json
    import polygraphy.tools.debug.subtool.iterative_debug_args  # noqa: F401 - registers the class

    contexts = load_json(str(hone.folder / "polygraphy_debug_replay.json"))
    assert contexts["_N0_"].success is False and contexts["_N0_"].iteration_info == {"iteration": 0}


def test_old_spellings_and_refusals(hone):
    affine(hone.folder / "model.onnx")
    check = ("--check", "false")
    for words, status, text in ((("reduce", "model.onnx", *check), 2, "no file to write is given"),
                                (("reduce", "model.onnx", "-o", "r.onnx", "--mode", "fast", *check), 2, "there is no such mode"),
                                (("reduce", "model.onnx", "-o", "r.onnx", "--no-reduce-inputs", "--no-reduce-outputs", *check), 2, "leave nothing to reduce"),
                                (("reduce", "model.onnx", "-o", "r.onnx"), 2, "nobody says whether an iteration passes"),
                                (("reduce", "model.onnx", "-o", "r.onnx", "--check-run", "--cpu --bogus"), 2, "there is no flag --bogus"),
                                (("reduce", "nothing.onnx", "-o", "r.onnx", *check), 3, "there is no file nothing.onnx"),
                                (("reduce", "model.onnx", "-o", "r.onnx", "--load-debug-replay", "model.onnx", *check), 3, "is no replay of hone debug"),
                                (("build", "model.onnx", *check), 2, "--until is missing"),
                                (("frobnicate",), 2, "there is no debug command called frobnicate")):
        assert text in said_by(hone, status, "debug", *words), words
        (hone.folder / "polygraphy_debug.onnx").unlink(missing_ok=True)
    said_by(hone, 0, "debug", "reduce", "model.onnx", "-output=r.onnx", *check)
    assert len(onnx.load(hone.folder / "r.onnx").graph.node) == 1
