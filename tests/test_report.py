# SPDX-License-Identifier: Apache-2.0
"""hone report: engines on one offline page, its figures equal to the exported JSON, drawn by a real browser."""

import json
import re

import browser as chromium
import pytest
import tiny
from conftest import Program

UNTIMED = "--builderOptimizationLevel=0"
PARTS = ["Overview", "Layers", "Graph", "Roofline", "Memory", "Tactics", "Hazards", "Build", "Compare", "Data"]


@pytest.fixture
def hone(folder):
    return Program(folder, "hone")


@pytest.fixture
def exported(folder):
    """m.plan with m.graph.json, m.profile.json and m.timing.json beside it; n.* of the same model in BF16."""
    tiny.convolutions(folder / "m.onnx")
    for name, flags in (("m", []), ("n", ["--bf16"])):
        done = Program(folder).run("--onnx=m.onnx", UNTIMED, "--shapes=x:2x3x16x16", f"--saveEngine={name}.plan", "--profilingVerbosity=detailed",
                                   f"--exportLayerInfo={name}.graph.json", f"--exportProfile={name}.profile.json",
                                   f"--exportTimes={name}.timing.json", "--duration=0.05", "--warmUp=0", *flags)
        assert done.returncode == 0, done.stdout[-3000:]
    return folder


def text_of(browser, script):
    return browser.ask(f"Array.from(document.querySelectorAll({script!r})).map(e => e.textContent)")


def layer_names(browser):
    return text_of(browser, "main table tbody tr td:first-child")


def test_the_page_is_one_file_that_names_no_server(hone, exported):
    done = hone.run("report", "m.graph.json", "n.graph.json", "-o", "r.html")
    assert done.returncode == 0 and "2 engines" in done.stdout, done.stdout
    page = (exported / "r.html").read_text()
    addresses = set(re.findall(r"https?://[\w./]+", page))
    assert all(address.startswith(("http://www.w3.org/", "https://d3js.org")) for address in addresses), addresses  # namespaces, a licence
    assert "src=" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert len(page) < 3_000_000


def test_figures_are_those_of_the_exported_files(hone, exported):
    report = json.loads(hone.answer("report", "m.graph.json", "--json"))
    engine, = report["engines"]
    profile = {row["name"]: row for row in json.loads((exported / "m.profile.json").read_text())[1:]}
    graph = json.loads((exported / "m.graph.json").read_text())
    launched = [layer for layer in graph["Layers"] if layer["LayerType"] != "NoOp"]
    assert [layer["name"] for layer in engine["layers"]] == [layer["Name"] for layer in launched]
    for layer, given in zip(engine["layers"], launched, strict=True):
        assert layer["average"] == pytest.approx(profile[layer["name"]]["averageMs"])
        assert layer["flops"] == given.get("Flops", 0)
    assert sum(layer["share"] for layer in engine["layers"]) == pytest.approx(100, abs=0.01)
    assert engine["latencies"] == pytest.approx([row["latencyMs"] for row in json.loads((exported / "m.timing.json").read_text())])
    assert {node for layer in engine["layers"] for node in layer["nodes"]} >= {"conv0", "conv1", "classify"}
    assert [binding["name"] for binding in engine["bindings"]] == ["x", "y"]
    edges = {tuple(edge[:2]) for edge in engine["graph"]["edges"]}  # of the input, the layers and the output
    assert all(begin < end for begin, end in edges) and {end for _, end in edges} == set(range(1, len(launched) + 2))


def test_a_plan_is_measured_here_beside_the_ceilings_of_the_machine(hone, exported):
    report = json.loads(hone.answer("report", "m.plan", "--json", "-t", "0.05"))
    engine, = report["engines"]
    assert engine["profiled"] and engine["latencies"] and engine["peaks"]["bytes"] > 0 and engine["peaks"]["f32"] > 0
    assert dict(map(tuple, engine["facts"]))["precision"] == "FP32"


def test_candidates_of_a_tuned_plan_say_why_they_were_not_taken(hone, folder):
    tiny.convolutions(folder / "m.onnx")
    engine, = json.loads(hone.answer("report", "m.onnx", "--json", "-t", "0.05", "--shapes=x:2x3x16x16"))["engines"]
    tried = [candidate for layer in engine["layers"] for candidate in layer["candidates"]]
    assert any(candidate["note"] == "chosen" for candidate in tried) and any(candidate["note"] not in ("", "chosen") for candidate in tried)


def test_text_groups_and_sorts(hone, exported):
    lines = hone.answer("report", "m.graph.json", "-pj", "m.profile.json", "--text", "--group_tactics", "--sort_key", "latency").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.split()[:2] == ["latency", "%"])
    rows = [line.split() for line in lines[begin + 1:] if re.match(r"\s+[\d.]+\s+[\d.]+\s+\d+\s", line)]
    times = [float(row[1]) for row in rows]
    assert times == sorted(times, reverse=True) and sum(float(row[0]) for row in rows) == pytest.approx(100, abs=0.1)
    counted = hone.answer("report", "m.graph.json", "--text", "--group_tactics", "--sort_key=count")
    assert counted and "none of the orders" in hone.run("report", "m.graph.json", "--text", "--sort_key=size").stdout


@pytest.mark.parametrize("content, says", [
    ('{"Layers": ["a", "b"]}', "--profilingVerbosity=detailed"), ('{"Layers": [', "no JSON"), ("[]", 'no list "Layers"')])
def test_what_is_no_layer_information_is_refused(hone, folder, content, says):
    (folder / "a.json").write_text(content)
    done = hone.run("report", "a.json", "-o", "r.html")
    assert done.returncode == 1 and says in done.stdout and not (folder / "r.html").exists()


def test_files_that_are_missing_or_cannot_be_written_end_in_a_sentence(hone, exported):
    assert "nowhere.json" in hone.run("report", "nowhere.json").stdout
    done = hone.run("report", "m.graph.json", "-o", "no/folder/r.html")
    assert done.returncode == 1 and "no/folder/r.html" in done.stdout
    assert "several are given" in hone.run("report", "m.graph.json", "n.graph.json", "-pj", "m.profile.json").stdout


@pytest.fixture
def browser():
    with chromium.Browser() as running:
        yield running


def test_a_browser_draws_every_part_and_asks_no_server(hone, exported, browser):
    assert hone.run("report", "m.graph.json", "n.graph.json", "-o", "r.html").returncode == 0
    engine = json.loads(hone.answer("report", "m.graph.json", "--json"))["engines"][0]
    browser.open(exported / "r.html")
    assert text_of(browser, "[role=tab]") == PARTS
    for part in PARTS:
        browser.ask(f"document.getElementById('tab-{part}').click()")
        assert browser.ask("document.body.dataset.drawn") == part
        assert browser.ask("document.getElementById('main').childElementCount") > 0
        assert browser.ask("document.querySelectorAll('[aria-selected=true]').length") == 1
        for width in (1280, 400):  # nothing is wider than the window
            browser.resize(width, 900)
            assert browser.ask("document.documentElement.scrollWidth") <= width, (part, width)
    browser.ask("document.getElementById('tab-Graph').click()")
    assert f"Graph of {len(engine['layers'])} layers" in browser.ask("document.querySelector('canvas').getAttribute('aria-label')")
    browser.ask("document.querySelector('canvas').focus()")
    browser.ask("document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true }))")
    assert f"of {len(engine['layers']) + 2}" in browser.ask("document.querySelector('.spoken').textContent")  # with an input and an output
    assert browser.errors == []
    assert browser.requests and all(url.startswith("file://") for url in browser.requests)


def test_layers_are_found_and_sorted(hone, exported, browser):
    assert hone.run("report", "m.graph.json", "-o", "r.html").returncode == 0
    layers = json.loads(hone.answer("report", "m.graph.json", "--json"))["engines"][0]["layers"]
    browser.open(exported / "r.html", "#Layers")
    by_time = [layer["name"] for layer in sorted(layers, key=lambda layer: -layer["average"])]
    assert layer_names(browser) == by_time
    browser.ask("document.querySelector('thead button').click()")
    assert layer_names(browser) == sorted(by_time)
    browser.ask("(e => { e.value = 'conv1'; e.dispatchEvent(new Event('input')); })(document.getElementById('find'))")
    found = layer_names(browser)
    assert found and all("conv1" in name for name in found) and len(found) < len(layers)
    browser.ask("document.querySelector('tbody tr').click()")
    assert "conv1" in "".join(text_of(browser, "#detail dd"))
    assert browser.errors == []


def test_names_in_files_run_no_script(hone, folder, browser):
    evil = "</script><script>window.bad=1</script><img src=x onerror='window.bad=1'>‮" + "n" * 100_000
    graph = {"Layers": [{"Name": evil, "LayerType": evil[:90], "TacticName": evil, "Inputs": [{"Name": evil, "Dimensions": [1], "Format/Datatype": evil}],
                         "Outputs": [], "Metadata": f"[ONNX Layer: {evil}]", "x": evil}], "Bindings": [evil]}
    (folder / "a.graph.json").write_text(json.dumps(graph))
    assert hone.run("report", "a.graph.json", "-o", "r.html").returncode == 0
    browser.open(folder / "r.html")
    for part in ("Overview", "Layers", "Graph", "Roofline", "Memory", "Tactics", "Hazards"):
        browser.ask(f"document.getElementById('tab-{part}').click()")
    assert browser.ask("window.bad === undefined") and browser.errors == []
