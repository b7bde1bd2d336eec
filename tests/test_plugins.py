# SPDX-License-Identifier: Apache-2.0
"""`hone plugin`: operators of one's own put into models where patterns fit, beside Polygraphy's plugin commands (row 78 of docs/companions.md)."""

import json
import os
import subprocess
import sys

import conftest
import onnx
import pytest
import tiny
import yaml
from onnx import helper


def said_by(program, status, *words):
    """What it said; it has to exit with the status."""
    done = program.run(*words)
    assert done.returncode == status, f"exit {done.returncode}, not {status}: {program.name} {' '.join(map(str, words))}\n{done.stdout}"
    return done.stdout


def swish(path):
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"], name="sigmoid"), helper.make_node("Mul", ["x", "s"], ["m"], name="mul"), helper.make_node("Relu", ["m"], ["r"]),
             helper.make_node("Sigmoid", ["r"], ["t"]), helper.make_node("Mul", ["t", "r"], ["y"])]
    return tiny.save(path, nodes, inputs=[("x", [4])], outputs=[("y", [4])], opset=13)


def test_row_78_plugins(hone):
    swish(hone.folder / "m.onnx")
    for name, text in (("swish", {"name": "swish", "op": "Swish", "pattern": "Mul($x, Sigmoid($x))", "attributes": {"beta": 1.0, "tag": "t", "axes": [0, 1]}}),
                       ("nothing", {"name": "nothing", "op": "N", "pattern": "Erf($x)"})):
        (hone.folder / "plugins" / name).mkdir(parents=True)
        (hone.folder / "plugins" / name / "pattern.json").write_text(json.dumps(text))
    said = said_by(hone, 0, "plugin", "list", "m.onnx", "--plugin-dir", "plugins")
    assert "the following plugins matched:" in said and "{'nothing': 0, 'swish': 2}" in said
    assert "{'swish': 2}" in said_by(hone, 0, "plugin", "list", "m.onnx", "--plugin-dir", "plugins", "--exclude", "nothing")
    said_by(hone, 0, "plugin", "match", "m.onnx", "--plugin-dir", "plugins")
    text = (hone.folder / "config.yaml").read_text()
    (config,) = yaml.safe_load_all(text)
    assert config["op"] == "Swish" and [instance["inputs"] for instance in config["instances"]] == [["x"], ["r"]]
    assert config["instances"][0]["attributes"] == {"beta": 1.0, "tag": "t", "axes": [0, 1]}
    said = said_by(hone, 0, "plugin", "replace", "m.onnx", "-o", "new.onnx")
    assert "replaced 2 instances of swish plugin" in said
    graph = onnx.load(hone.folder / "new.onnx").graph
    assert [node.op_type for node in graph.node] == ["Swish", "Relu", "Swish"]
    assert {attribute.name: helper.get_attribute_value(attribute) for attribute in graph.node[0].attribute} == {"beta": 1.0, "tag": b"t", "axes": [0, 1]}
    for bad in ("name: swish\nop: Swish\n", "- a\n", "name: [\n", "name: ../swish\nop: Swish\ninstances: []\n"):
        (hone.folder / "bad.yaml").write_text(bad)
        assert "does not say where operators go" in said_by(hone, 3, "plugin", "replace", "m.onnx", "--config", "bad.yaml", "-o", "no.onnx")
    assert not (hone.folder / "no.onnx").exists()


PATTERN = '''
from polygraphy import mod
gs = mod.lazy_import("onnx_graphsurgeon>=0.5.0")

def get_matching_subgraphs(graph):
    pattern = gs.GraphPattern()
    x = pattern.variable()
    s = pattern.add("s", "Sigmoid", inputs=[x])
    pattern.set_output_tensors([pattern.add("m", "Mul", inputs=[x, s])])
    print("looking")
    found = []
    for match in pattern.match_all(graph):
        ends = sorted({tensor.name for tensor in match.inputs}), sorted({tensor.name for tensor in match.outputs})
        found.append({"inputs": ends[0], "outputs": ends[1], "attributes": {"beta": 2.5, "size": len(ends[0])}})
    return found

def get_plugin_metadata():
    return {"name": "swish", "op": "Swish"}
'''
REPLACES = '''
def replace_with_plugin(graph, input_tensors, output_tensors, attrs=None, op=None):
    for tensor in output_tensors:
        tensor.inputs.clear()
    graph.layer(op="My" + op, inputs=input_tensors, outputs=output_tensors, attrs=attrs)
    graph.cleanup().toposort()
    return True
'''


@pytest.mark.parametrize("without", [(), ("onnx_graphsurgeon", "polygraphy")], ids=["onnx_graphsurgeon", "hone.graph"])
def test_row_78_patterns_in_python_are_those_of_polygraphy(hone, monkeypatch, without):
    """pattern.py as Polygraphy's plugins have it, its configuration read by either program; on hone.graph where GraphSurgeon is not installed."""
    swish(hone.folder / "m.onnx")
    (hone.folder / "plugins/swish").mkdir(parents=True)
    (hone.folder / "plugins/swish/pattern.py").write_text(PATTERN)
    for name in without:
        (hone.folder / "absent").mkdir(exist_ok=True)
        (hone.folder / f"absent/{name}.py").write_text("raise ImportError")
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{hone.folder / 'absent'}:{conftest.PACKAGE}")
    words = ("m.onnx", "--plugin-dir", "plugins")
    assert "{'swish': 1}" in said_by(hone, 0, "plugin", "list", *words)
    said_by(hone, 0, "plugin", "match", *words, "-o", "ours.yaml")
    (config,) = yaml.safe_load_all((hone.folder / "ours.yaml").read_text())
    assert config == {"name": "swish", "op": "Swish", "instances": [{"inputs": ["x"], "outputs": ["m"], "attributes": {"beta": 2.5, "size": 1}}]}
    said_by(hone, 0, "plugin", "replace", *words, "--config", "ours.yaml", "-o", "ours.onnx")
    ours = onnx.load(hone.folder / "ours.onnx")
    if not without:
        theirs = [sys.executable, "-c", "import sys; from polygraphy.tools import main; sys.exit(main())", "plugin"]
        for command in (["match", *words, "-o", "theirs.yaml"], ["replace", *words, "--config", "ours.yaml", "-o", "theirs.onnx"]):
            subprocess.run([*theirs, *command], cwd=hone.folder, check=True, stdout=subprocess.DEVNULL)
        assert list(yaml.safe_load_all((hone.folder / "theirs.yaml").read_text())) == [config]
        theirs = onnx.load(hone.folder / "theirs.onnx")
        assert [(node.op_type, node.input, node.output) for node in theirs.graph.node] == [(node.op_type, node.input, node.output) for node in ours.graph.node]
        said_by(hone, 0, "plugin", "replace", *words, "--config", "theirs.yaml", "-o", "again.onnx")
        assert (hone.folder / "again.onnx").read_bytes() == (hone.folder / "ours.onnx").read_bytes()
    (hone.folder / "plugins/swish/pattern.py").write_text(PATTERN + REPLACES)
    assert "replaced 1 instances of swish" in said_by(hone, 0, "plugin", "replace", *words, "--config", "ours.yaml", "-o", "own.onnx")
    assert [node.op_type for node in onnx.load(hone.folder / "own.onnx").graph.node] == ["MySwish", "Relu", "Sigmoid", "Mul"]
    (hone.folder / "plugins/swish/pattern.py").write_text("raise ValueError('broken')\n")
    assert "pattern.py failed" in said_by(hone, 3, "plugin", "list", *words)


# Templates


@pytest.mark.parametrize("mode", ["greedy", "exhaustive"])
def test_plugin_autotune_writes_the_set_that_it_found_fastest(hone, mode):
    """Which set that is depends on the machine; what is said of it, what is written and what it computes have to fit."""
    swish(hone.folder / "m.onnx")
    for name, text in (("quick", {"name": "quick", "op": "QuickGelu", "domain": "com.microsoft", "pattern": "Mul($x, Sigmoid($x))", "attributes": {"alpha": 1.0}}),
                       ("nowhere", {"name": "nowhere", "op": "NoSuchOperator", "pattern": "Relu($x)"})):
        (hone.folder / "plugins" / name).mkdir(parents=True)
        (hone.folder / "plugins" / name / "pattern.json").write_text(json.dumps(text))
    words = ("plugin", "autotune", "m.onnx", "--plugin-dir", "plugins", "--cpu", "--autotune-mode", mode)
    said_by(hone, 0, *words, "--skip-autotuning", "--save-config-yaml", "found.yaml")
    assert [plugin["name"] for plugin in yaml.safe_load_all((hone.folder / "found.yaml").read_text())] == ["nowhere", "quick"]
    said = said_by(hone, 0, *words, "--load-config-yaml", "found.yaml", "-o", "best.onnx", "--report", "report.txt", "--json", "best.json")
    told, report = json.loads((hone.folder / "best.json").read_text()), (hone.folder / "report.txt").read_text()
    assert "nowhere: not possible" in said and "nowhere: not possible" in report and " of the time of none (" in report
    assert told["plugins"] in ([], ["quick"]) and told["engines"] >= 2 and (told["timeRatio"] < 1) == bool(told["plugins"])
    ops = ["QuickGelu", "Relu", "QuickGelu"] if told["plugins"] else ["Sigmoid", "Mul", "Relu", "Sigmoid", "Mul"]
    assert [node.op_type for node in onnx.load(hone.folder / "best.onnx").graph.node] == ops
    said_by(hone, 0, "plugin", "replace", "m.onnx", "--config", "found.yaml", "-o", "all.onnx")
    said_by(hone, 0, "run", "m.onnx", "--ref", "--save-inputs", "in.json", "--save-outputs", "out.json")
    said_by(hone, 0, "run", "best.onnx", "--cpu", "--load-inputs", "in.json", "--load-outputs", "out.json")
    assert "greedy, exhaustive" in said_by(hone, 2, *words[:-1], "best", "-o", "no.onnx")
    assert "no file to write" in said_by(hone, 2, *words)
