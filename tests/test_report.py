# SPDX-License-Identifier: Apache-2.0
"""hone report: engines on one offline page, its figures equal to the exported JSON, drawn by a real browser."""

import json
import math
import re

import browser as chromium
import onnx
import pytest
import tiny

UNTIMED = "--builderOptimizationLevel=0"
PARTS = ["Overview", "Latency", "Precision", "Layers", "Graph", "Roofline", "Memory", "Tactics", "Hazards", "Build", "Compare", "Data"]


@pytest.fixture
def exported(folder, trtexec):
    """m.plan with m.graph.json, m.profile.json and m.timing.json beside it; n.* of the same model in BF16."""
    tiny.convolutions(folder / "m.onnx")
    for name, flags in (("m", []), ("n", ["--bf16"])):
        trtexec("--onnx=m.onnx", UNTIMED, "--shapes=x:2x3x16x16", f"--saveEngine={name}.plan", "--profilingVerbosity=detailed",
                f"--exportLayerInfo={name}.graph.json", f"--exportProfile={name}.profile.json", f"--exportTimes={name}.timing.json",
                "--duration=0.05", "--warmUp=0", *flags)
    return folder


def text_of(browser, script):
    return browser.ask(f"Array.from(document.querySelectorAll({script!r})).map(e => e.textContent)")


def layer_names(browser):
    return text_of(browser, "main table tbody tr td:first-child")


def test_row_91_the_page_is_one_file_that_names_no_server(hone, exported):
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
        assert layer["weights"] == given.get("WeightBytes", 0)
    weights = sum(math.prod(tensor.dims) * 4 for tensor in onnx.load(exported / "m.onnx").graph.initializer)
    assert weights <= sum(layer["weights"] for layer in engine["layers"]) <= 8 * weights  # Winograd keeps up to 64 numbers for 9
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


def test_few_queries_and_rounds_are_called_few(hone, exported, browser):
    hone("report", "m.plan", "-o", "r.html", "-t", "0", "-n", "3", "--warmUp=0")
    browser.open(exported / "r.html")
    engine, = browser.ask("JSON.parse(document.getElementById('data').textContent).engines")
    told, count = dict(map(tuple, engine["facts"])), len(engine["latencies"])
    assert 3 <= count < 10 and engine["rounds"] == 3
    assert re.fullmatch(rf"queries: {count} in [\d.]+ s, after 0 to warm up; then layer by layer, rounds: 3", told["measured"])
    assert told["steadiness"] == "not known of so few queries; -t 1 measures longer"
    cards = browser.ask("Object.fromEntries(Array.from(document.querySelectorAll('.card')).map(e => [e.querySelector('span').textContent, e.querySelector('b').textContent]))")
    assert float(cards["slowest query (ms)"]) == pytest.approx(max(engine["latencies"]), rel=1e-3)
    assert cards["queries"] == str(count) and "of all layers, one inference (ms), mean of 3" in cards
    assert not {"99th percentile (ms)", "between the quartiles, of the median (%)"} & cards.keys()
    for part in ("Latency", "Layers"):
        shown(browser, part)
        assert "means of 3 rounds, too few for small differences" in browser.ask("document.getElementById('main').textContent")
    shown(browser, "Overview")
    hone("report", "m.plan", "-o", "r.html", "-t", "0", "-n", "200", "--warmUp=0")
    browser.open(exported / "r.html", "#Layers")
    assert "too few" not in browser.ask("document.getElementById('main').textContent") and browser.errors == []


def test_candidates_of_a_tuned_plan_say_why_they_were_not_taken(hone, folder):
    tiny.convolutions(folder / "m.onnx")
    engine, = json.loads(hone.answer("report", "m.onnx", "--json", "-t", "0.05", "--shapes=x:2x3x16x16"))["engines"]
    tried = [candidate for layer in engine["layers"] for candidate in layer["candidates"]]
    assert any(candidate["note"] == "chosen" for candidate in tried) and any(candidate["note"] not in ("", "chosen") for candidate in tried)


def test_row_98_text_groups_and_sorts(hone, exported):
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


def test_the_graph_is_searched_zoomed_and_coloured(hone, exported, browser):
    hone("report", "m.graph.json", "-o", "r.html")
    layers = json.loads(hone.answer("report", "m.graph.json", "--json"))["engines"][0]["layers"]
    browser.open(exported / "r.html", "#Graph")
    graph = "document.querySelector('canvas').graph"
    assert browser.ask(f"{graph}.count") == len(layers) + 2 and browser.ask(f"{graph}.drawn()") > 0
    browser.ask("(e => { e.value = 'CONV1'; e.dispatchEvent(new Event('input')); })(document.getElementById('findnode'))")
    found = sum(any("conv1" in name for name in [layer["name"], *layer["nodes"]]) for layer in layers)
    assert found and f"{found} found" in text_of(browser, ".controls .note")
    few = browser.ask(f"(() => {{ {graph}.centre(0, 20); return {graph}.drawn(); }})()")
    assert few < browser.ask(f"(() => {{ {graph}.fit(); return {graph}.drawn(); }})()") == len(layers) + 2
    for by, words in (("type", {layer["type"] for layer in layers}), ("precision", {layer["precision"] for layer in layers}),
                      ("source", {layer["tactic"].split(".")[0] for layer in layers}), ("time", {"takes longest", "takes least"}),
                      ("memory or compute", {"not known"})):
        browser.ask(f"(e => {{ e.value = {by!r}; e.dispatchEvent(new Event('change')); }})(document.getElementById('colour'))")
        assert set(text_of(browser, ".legend span span")) == words, by
    assert browser.errors == []


def figures(browser):
    return text_of(browser, "figcaption")


def shown(browser, part):
    browser.ask(f"document.getElementById('tab-{part}').click()")


def cells(browser, table="main table"):
    """The rows of the first table of a part, as they are read."""
    return browser.ask(f"Array.from(document.querySelector({table!r}).tBodies[0].rows).map(row => Array.from(row.cells).map(cell => cell.textContent))")


def titles(browser, bars):
    """What bars of a figure say of themselves."""
    return browser.ask(f"Array.from(document.querySelectorAll('svg')).find(e => e.getAttribute('aria-label') === {bars!r}).querySelectorAll('title').length")


def test_row_92_latency_and_precision_are_shown_and_add_up(hone, exported, browser):
    hone("report", "m.graph.json", "-o", "r.html")
    profile = {row["name"]: row["averageMs"] for row in json.loads((exported / "m.profile.json").read_text())[1:]}
    layers = json.loads(hone.answer("report", "m.graph.json", "--json"))["engines"][0]["layers"]
    browser.open(exported / "r.html", "#Layers")
    rows = cells(browser)
    assert {row[0]: float(row[3]) for row in rows} == pytest.approx({layer["name"]: profile[layer["name"]] for layer in layers}, rel=1e-3)
    assert sum(float(row[4]) for row in rows) == pytest.approx(100, abs=0.1 * len(rows))
    seen = []
    for part in ("Overview", "Latency", "Precision"):
        shown(browser, part)
        seen += figures(browser)
        if part == "Latency":
            assert titles(browser, "Latency per layer (ms)") == titles(browser, "Layers Latencies (%)") == len(layers)
            by_type = browser.ask("""Array.from(document.querySelectorAll('svg')).find(e => e.getAttribute('aria-label') === 'Latency per layer type (ms)')
                                     .querySelectorAll('title').length""")
            assert by_type == len({layer["type"] for layer in layers})
    assert set(seen) >= {"Latency per layer (%)", "Latency per layer (ms)", "Layer latency distribution (ms)", "Precision per layer", "Output precision per layer",
                         "Count per layer type", "Latency per layer type (ms)", "Latency per layer type (%)", "Precision per layer type",
                         "Layer Count By Precision", "% Latency By Precision", "Layers Latencies (%)"}
    assert browser.errors == []


def engine_of_nvidia(folder, name, kind):
    """A small engine in the form of TensorRT's files: a copy, a convolution of three channels, one that leaves the integers, a product."""
    def tensor(name, dims, word):
        return {"Name": name, "Location": "Device", "Dimensions": dims, "Format/Datatype": word}
    x, low = tensor("x", [1, 3, 8, 8], "Row major linear FP32"), tensor("q", [1, 3, 8, 8], f"Four wide channel vectorized row major {kind} format")
    half = tensor("c", [1, 16, 8, 8], "Channel major FP16 format where channel % 8 == 0")
    wide, out = tensor("f", [1, 1024], "Row major linear BFloat16 format"), tensor("y", [1, 10], "Row major linear FP8 format")
    layers = [{"Name": "copy", "LayerType": "Reformat", "ParameterType": "Reformat", "Origin": "QDQ", "Inputs": [x], "Outputs": [low], "TacticName": "copy"},
              {"Name": "conv", "LayerType": "CaskConvolution", "ParameterType": "Convolution", "Inputs": [low], "Outputs": [half], "Kernel": [3, 3], "Groups": 1,
               "Weights": {"Type": kind, "Count": 432}, "Bias": {"Type": "Float", "Count": 16}, "TacticName": f"sm80_{kind}"},
              {"Name": "fc", "LayerType": "gemm", "ParameterType": "MatrixMultiply", "Inputs": [wide], "Outputs": [out],
               "Weights": {"Type": "BFloat16", "Count": 10240}, "TacticName": "gemm"}]
    (folder / f"{name}.graph.json").write_text(json.dumps({"Layers": layers, "Bindings": ["x", "y"]}))
    (folder / f"{name}.profile.json").write_text(json.dumps([{"count": 9}] + [
        {"name": layer["Name"], "timeMs": 9 * ms, "averageMs": ms, "medianMs": ms, "percentage": 100 * ms / 7} for layer, ms in zip(layers, (1, 4, 2), strict=True)]))


def test_row_93_bytes_of_every_type_are_counted(hone, folder, browser):
    engine_of_nvidia(folder, "e", "Int8")
    copy, conv, product = json.loads(hone.answer("report", "e.graph.json", "--json"))["engines"][0]["layers"]
    assert (copy["weights"], conv["weights"], product["weights"]) == (0, 432 + 64, 2 * 10240)
    assert (copy["activations"], conv["activations"], product["activations"]) == (5 * 192, 192 + 2 * 1024, 2 * 1024 + 10)
    hone("report", "e.graph.json", "-o", "r.html")
    browser.open(folder / "r.html", "#Memory")
    assert set(figures(browser)) >= {f"{what} footprint {how}" for what in ("Weights", "Activation", "Total") for how in ("per layer", "distribution per layer (bytes)")}
    assert browser.ask("Array.from(document.querySelectorAll('title')).some(e => e.textContent.includes('20.5 kB'))") and browser.errors == []


def test_rows_94_and_95_two_engines_are_aligned_and_filtered(hone, folder, browser):
    engine_of_nvidia(folder, "one", "Int8")
    engine_of_nvidia(folder, "two", "Half")
    slow = json.loads((folder / "two.profile.json").read_text())
    slow[2]["averageMs"] = slow[2]["medianMs"] = 8
    (folder / "two.profile.json").write_text(json.dumps(slow))
    hone("report", "one.graph.json", "two.graph.json", "-o", "r.html")
    browser.open(folder / "r.html", "#Compare")
    rows = {row[0]: row for row in cells(browser)}
    assert {name: (float(row[2]), float(row[3]), float(row[4])) for name, row in rows.items()} == {"copy": (1, 1, 1), "conv": (4, 8, .5), "fc": (2, 2, 1)}
    assert rows["conv"][5:] == ["INT8", "FP16", "sm80_Int8", "sm80_Half", "the same"]
    for wanted, names in (("precision mismatch", {"conv"}), ("tactic mismatch", {"conv"}), ("only in one", set()), ("type MatrixMultiply", {"fc"}), ("all", set(rows))):
        browser.ask(f"(e => {{ e.value = {wanted!r}; e.dispatchEvent(new Event('change')); }})(document.getElementById('filter'))")
        assert {row[0] for row in cells(browser)} == names, wanted
    assert "3 aligned; 7 and 11 ms" in browser.ask("document.getElementById('main').textContent") and browser.errors == []


def test_row_96_hazards_say_what_and_what_to_do(hone, folder, browser):
    engine_of_nvidia(folder, "e", "Int8")
    hone("report", "e.graph.json", "-o", "r.html")
    browser.open(folder / "r.html", "#Hazards")
    rows = [(layer, hazard) for layer, _, hazard, _ in cells(browser)]
    assert ("conv", "3 input channels in INT8: matrix units take 16 at a time") in rows and ("copy", "a Reformat that converts FP32 to INT8 (origin QDQ)") in rows
    assert all(advice for *_, advice in cells(browser)) and browser.errors == []


def test_row_97_every_layer_that_computes_stands_below_measured_ceilings(hone, exported, browser):
    hone("report", "m.plan", "-o", "r.html", "-t", "0.05")
    browser.open(exported / "r.html")
    engine, = browser.ask("JSON.parse(document.getElementById('data').textContent).engines")
    shown(browser, "Roofline")
    placed = browser.ask("Array.from(document.querySelectorAll('circle title')).map(e => e.textContent.split('\\n')[0])")
    assert sorted(placed) == sorted(layer["name"] for layer in engine["layers"] if layer["flops"] > 0)
    assert {"conv0", "conv1", "classify"} <= {node for layer in engine["layers"] if layer["name"] in placed for node in layer["nodes"]}
    ceilings = {kind for kind in ("f32", "f16", "i8") if engine["peaks"][kind] > 0 and (kind != "f16" or engine["peaks"]["f16"] != engine["peaks"]["f32"])}
    assert browser.ask("document.querySelectorAll('.roof').length") == len(ceilings) and browser.errors == []


EVIL = "</script><script>window.bad=1</script><img src=x onerror='window.bad=1'>\u202e\u2066\0" + "n" * 100_000


def drawn_without_complaint(browser, page):
    browser.open(page)
    for part in text_of(browser, "[role=tab]"):
        browser.ask(f"document.getElementById('tab-{part}').click()")
        browser.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert browser.ask("document.body.dataset.drawn") == part
        browser.ask("Array.from(document.querySelectorAll('tbody button')).slice(0, 3).forEach(each => each.click())")
        for width in (1280, 400):
            browser.resize(width, 900)
            assert browser.ask("document.documentElement.scrollWidth") <= width, (part, width)
    assert browser.ask("window.bad === undefined && document.querySelectorAll('img').length === 0")
    assert browser.errors == [] and all(url.startswith("file://") for url in browser.requests)


def test_names_in_files_run_no_script(hone, folder, browser):
    tensor = {"Name": EVIL, "Dimensions": [1], "Format/Datatype": EVIL}
    layer = {"Name": EVIL, "LayerType": EVIL, "ParameterType": EVIL[:90], "TacticName": EVIL, "Origin": EVIL, "Inputs": [tensor], "Outputs": [tensor],
             "Metadata": f"[ONNX Layer: {EVIL}]", EVIL: EVIL, "Kernel": EVIL, "Weights": {"Type": EVIL, "Count": EVIL}}
    graph = {"Layers": [layer, {**layer, "LayerType": "Reformat", "ParameterType": "Reformat"}], "Bindings": [EVIL],
             "Memory": [{"Tensor": EVIL, "Offset": 0, "Bytes": 4, "First": 0, "Last": 1}]}
    (folder / "a.graph.json").write_text(json.dumps(graph))
    (folder / "a.profile.json").write_text(json.dumps([{"count": 1}, {"name": EVIL, "averageMs": 1, "percentage": 50}, {"name": EVIL, "averageMs": 1}]))
    assert hone.run("report", "a.graph.json", "a.graph.json", "-o", "r.html").returncode == 0
    drawn_without_complaint(browser, folder / "r.html")


NUMBERS = [0, -1, -0.0, 1e308, 5e-324, 2**63, -2**63, 2**64 - 1, "x", None, True, [], {}, [[1]]]


def test_numbers_that_make_no_sense_leave_a_page_that_is_drawn(hone, folder, browser):
    def layer(i, number):
        tensor = {"Name": f"t{i}", "Dimensions": [number, 3, number], "Format/Datatype": number}
        return {"Name": f"l{i}", "LayerType": "CaskConvolution", "ParameterType": "Convolution", "Inputs": [tensor], "Outputs": [{**tensor, "Name": f"t{i + 1}"}],
                "Kernel": [number, number], "Groups": number, "Flops": number, "Weights": {"Type": "Int8", "Count": number}, "WeightBytes": number}
    layers = [layer(i, number) for i, number in enumerate(NUMBERS)]
    memory = [{"Tensor": "t", "Offset": number, "Bytes": number, "First": number, "Last": number} for number in NUMBERS]
    (folder / "a.graph.json").write_text(json.dumps({"Layers": layers, "Bindings": NUMBERS, "Memory": memory}))
    (folder / "a.profile.json").write_text(json.dumps([{"count": None}] + [{"name": f"l{i}", "averageMs": number, "medianMs": number, "percentage": number}
                                                                          for i, number in enumerate(NUMBERS)]))
    (folder / "a.timing.json").write_text(json.dumps([{"latencyMs": n, "startH2dMs": n, "endD2hMs": n} for n in NUMBERS] + NUMBERS))
    done = hone.run("report", "a.graph.json", "a.graph.json", "-o", "r.html")
    assert done.returncode == 0, done.stdout
    assert hone.run("view", "a.graph.json", "-pj", "a.profile.json", "-o", "g.html").returncode == 0
    drawn_without_complaint(browser, folder / "r.html")
    browser.open(folder / "g.html")
    assert browser.ask("document.body.dataset.ready") == "yes" and browser.errors == []


@pytest.mark.parametrize("name, content", [("profile", '[{"name": "l", "averageMs": NaN}]'), ("timing", '[{"latencyMs": Infinity}]'),
                                           ("profile", '[{"name": "l", "averageMs": 1e999}]'), ("profile", "[" * 100_000), ("timing", '{"latencyMs": 1}')])
def test_profiles_that_are_none_are_refused(hone, folder, name, content):
    (folder / "a.graph.json").write_text('{"Layers": [{"Name": "l"}]}')
    (folder / f"a.{name}.json").write_text(content)
    done = hone.run("report", "a.graph.json", "-o", "r.html")
    assert done.returncode == 1 and "reading a.graph.json" in done.stdout and not (folder / "r.html").exists(), done.stdout
