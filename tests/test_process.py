# SPDX-License-Identifier: Apache-2.0
"""hone process, hone draw and their other name trex: the files that engine explorers read, and what stands in them."""

import json
import shutil
import subprocess
import zipfile
from xml.etree import ElementTree

import onnx
import pytest
import tiny
from conftest import Program

QUICK = ["builderOptimizationLevel=0", "shapes=x:1x3x16x16", "duration=0", "iterations=5"]
# Seed 004's artefacts.
ENDINGS = ["", ".build.log", ".build.metadata.json", ".graph.json", ".profile.log", ".profile.json", ".profile.metadata.json",
           ".timing.json", ".graph.json.svg"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    tiny.convolutions(folder / "m.onnx")
    Program(folder, "hone")("process", "m.onnx", "out", "fp16", *QUICK, "--archive")
    return folder / "out"


def loaded(artefacts, ending):
    return json.loads((artefacts / ("m.onnx.engine" + ending)).read_text())


def test_every_artefact_is_there_and_the_archive_holds_them(artefacts):
    names = {"m.onnx.engine" + ending for ending in ENDINGS}
    assert names <= {path.name for path in artefacts.iterdir()}
    with zipfile.ZipFile(artefacts / "m.onnx.engine.tea") as archive:
        assert archive.testzip() is None and set(archive.namelist()) == names
        for name in names:
            assert archive.read(name) == (artefacts / name).read_bytes()


def test_the_metadata_are_what_the_logs_say(artefacts):
    build, profile = loaded(artefacts, ".build.metadata.json"), loaded(artefacts, ".profile.metadata.json")
    assert build["model_options"] == {"Format": "ONNX", "Model": "m.onnx", "Output": ""}
    assert build["build_options"]["Precision"] == "FP32+FP16"
    log = (artefacts / "m.onnx.engine.profile.log").read_text()
    summary = profile["performance_summary"]
    said = next(line for line in log.splitlines() if "] [I] Throughput: " in line)
    assert summary["Throughput"] == float(said.split("Throughput: ")[1].split()[0]) > 0
    times = [row["latencyMs"] for row in loaded(artefacts, ".timing.json")]
    assert summary["Latency"][:2] == pytest.approx([min(times), max(times)], rel=1e-4) and len(summary["Latency"]) == 7
    assert profile["device_information"]["Selected Device"] in log and profile["inference_options"]["Data transfers"] == "Disabled"


def test_the_drawing_has_a_box_for_every_layer_and_its_time(artefacts):
    root = ElementTree.fromstring((artefacts / "m.onnx.engine.graph.json.svg").read_text())
    titles = [each.text.split("\n")[0] for each in root.iter(SVG + "title")][1:]
    layers = [layer["Name"] for layer in loaded(artefacts, ".graph.json")["Layers"] if layer["LayerType"] != "NoOp"]
    assert sorted(titles) == sorted([*layers, "x", "y"])
    written = {each.text for each in root.iter(SVG + "text")}
    for row in loaded(artefacts, ".profile.json")[1:]:
        assert row["timeMs"] == 0 or f"{row['averageMs']:.4f} ms" in written


def test_the_report_finds_the_files_by_their_names(artefacts):
    said = Program(artefacts, "trex")("summary", "m.onnx.engine.graph.json", "-gt", "-sk", "latency")
    rows = [line.split() for line in said.split("tactic\n")[1].splitlines() if line.strip()]
    shares = [float(row[0]) for row in rows if row[-1].startswith("cpu.")]
    assert sum(shares) == pytest.approx(100, abs=0.05) and shares == sorted(shares, reverse=True)


def test_print_only_shows_the_two_command_lines_and_does_nothing(folder):
    tiny.convolutions(folder / "m.onnx")
    said = Program(folder, "trex")("process", "m.onnx", "out", "int8", "shapes=x:1x3x8x8", "--print-only").splitlines()
    assert not (folder / "out").exists() and len(said) == 2
    for flag in ("--verbose", "--onnx=m.onnx", "--saveEngine=out/m.onnx.engine", "--exportLayerInfo=out/m.onnx.engine.graph.json",
                 "--profilingVerbosity=detailed", "--int8", "--shapes=x:1x3x8x8"):
        assert flag in said[0].split()
    for flag in ("--noDataTransfers", "--useCudaGraph", "--separateProfileRun", "--useSpinWait", "--loadEngine=out/m.onnx.engine",
                 "--exportTimes=out/m.onnx.engine.timing.json", "--exportProfile=out/m.onnx.engine.profile.json", "--int8"):
        assert flag in said[1].split()


def test_parts_are_done_alone_and_an_engine_is_profiled_where_it_lies(folder):
    tiny.convolutions(folder / "m.onnx")
    hone = Program(folder, "hone")
    hone("process", "m.onnx", "built", "-b", *QUICK)
    assert not (folder / "built/m.onnx.engine.profile.json").exists()
    hone("process", "built/m.onnx.engine", "ran", "-p", *QUICK[2:])
    names = {path.name for path in (folder / "ran").iterdir()}
    assert {"m.onnx.engine.profile.json", "m.onnx.engine.timing.json"} <= names and "m.onnx.engine" not in names


@pytest.mark.parametrize("words, status, said", [
    (["nowhere.onnx", "out"], 3, "there is no file nowhere.onnx"),
    (["m.onnx", "out", "fp17"], 2, "did you mean --fp16?"),
    (["m.onnx"], 2, "OUTDIR"),
    (["bad.onnx", "out"], 1, "out/bad.onnx.engine.build.log"),
])
def test_errors_say_what_is_wrong(folder, words, status, said):
    tiny.convolutions(folder / "m.onnx")
    (folder / "bad.onnx").write_bytes(b"\x08\x07nothing")
    done = Program(folder, "hone").run("process", *words)
    assert done.returncode == status and said in done.stdout, done.stdout


def test_a_drawing_shows_part_of_an_engine_and_writes_dot(artefacts):
    trex = Program(artefacts, "trex")
    trex("draw", "m.onnx.engine.graph.json", "-of", "dot", "--query", "pool", "-drn", "-dr", "-o", "part.dot")
    dot = (artefacts / "part.dot").read_text()
    assert "pool" in dot and "classify" not in dot and " -> " in dot
    trex("draw", "m.onnx.engine.graph.json", "--beam", "pool,1", "-o", "beam.svg")
    assert 'stroke="red" stroke-width="6"' in (artefacts / "beam.svg").read_text()
    done = trex.run("draw", "m.onnx.engine.graph.json", "--beam", "pol,1")
    assert done.returncode == 1 and "did you mean pool?" in done.stdout
    done = trex.run("draw", "m.onnx.engine.graph.json", "--query", "(")
    assert done.returncode == 1 and "is no regular expression" in done.stdout
    done = trex.run("drew")
    assert done.returncode == 2 and "did you mean draw?" in done.stdout


def test_names_of_anybody_break_no_drawing(folder):
    name = '</script>"&\x01\u202e' + "n" * 4_000
    tiny.save(folder / "m.onnx", [onnx.helper.make_node("Relu", ["x"], ["y"], name=name)])
    Program(folder, "hone")("process", "m.onnx", "out", *QUICK[:1], "shapes=x:1x4", *QUICK[2:])
    ElementTree.fromstring((folder / "out/m.onnx.engine.graph.json.svg").read_text())
    Program(folder, "hone")("draw", "out/m.onnx.engine.graph.json", "-o", "g.dot")
    dot = subprocess.run(["dot", "-Tcanon", folder / "g.dot"], capture_output=True, check=False) if shutil.which("dot") else None
    assert dot is None or dot.returncode == 0
