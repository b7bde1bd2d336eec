# SPDX-License-Identifier: Apache-2.0
"""hone view: models and engines as one offline page, drawn and searched by a real browser, and as SVG and DOT."""

import json
import re

import browser as chromium
import numpy as np
import onnx
import pytest
import tiny
from onnx import helper

UNTIMED = "--builderOptimizationLevel=0"
needs_browser = pytest.mark.skipif(chromium.program() is None, reason="there is no Chromium")


def chain(path, count):
    nodes = [helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(count)]
    ends = [helper.make_tensor_value_info(name, 1, [4]) for name in ("t0", f"t{count}")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "chain", ends[:1], ends[1:]), ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def test_row_99_a_model_with_every_node_attribute_and_weight(hone, folder):
    tiny.convolutions(folder / "m.onnx")
    model = onnx.load(folder / "m.onnx")
    shown, = json.loads(hone.answer("view", "m.onnx", "-o", "g.html", "--json"))["views"]
    graph = shown["graphs"][0]
    assert [(node["name"], node["op"]) for node in graph["nodes"]] == [(node.name, node.op_type) for node in model.graph.node]
    text = json.dumps(graph)
    for node in model.graph.node:
        for attribute in node.attribute:
            assert attribute.name in text
    for weight in model.graph.initializer:
        assert weight.name in graph["weights"]
        values = onnx.numpy_helper.to_array(weight)
        if values.dtype == np.float32 and values.size > 1:
            assert f"{values.size}" in json.dumps(graph["weights"][weight.name])
    page = (folder / "g.html").read_text()
    assert {address for address in re.findall(r"https?://[\w./]+", page) if not address.startswith("http://www.w3.org/")} <= {"https://d3js.org"}


def test_row_99_colours_of_types_as_pictures_have_them(hone, folder):
    tiny.convolutions(folder / "m.onnx")
    assert hone.run("build", "m.onnx", "-o", "m.plan", "--shapes=x:1x3x16x16", UNTIMED).returncode == 0
    assert hone.run("view", "m.plan", "--color", "precision", "--svg", "g.svg").returncode == 0
    assert "#FF0000" in (folder / "g.svg").read_text()  # FP32
    assert hone.run("view", "m.onnx", "--fp-to-fp16", "--color", "precision", "--svg", "h.svg", "--dot", "h.dot").returncode == 0
    assert "#FFA500" in (folder / "h.svg").read_text().upper()  # FP16
    assert (folder / "h.dot").read_text().startswith("digraph")
    layers = [{"Name": word, "LayerType": "gemm", "Inputs": [{"Name": f"t{i}", "Dimensions": [4], "Format/Datatype": word}],
               "Outputs": [{"Name": f"t{i + 1}", "Dimensions": [4], "Format/Datatype": word}]} for i, word in enumerate(("Int8", "Half", "Float", "FP8"))]
    (folder / "e.json").write_text(json.dumps({"Layers": layers, "Bindings": []}))
    hone("view", "e.json", "--color", "precision", "--svg", "e.svg")
    assert {"#76B900", "#FFA500", "#FF0000", "#00BFFF"} <= set(re.findall("#[0-9A-F]{6}", (folder / "e.svg").read_text().upper()))


@needs_browser
def test_row_100_three_thousand_nodes_open_and_the_last_is_found(hone, folder):
    chain(folder / "c.onnx", 3000)
    assert hone.run("view", "c.onnx", "-o", "c.html").returncode == 0
    with chromium.Browser() as browser:
        browser.open(folder / "c.html")
        browser.ask("(i => { i.value = 'n2999'; i.dispatchEvent(new Event('input', { bubbles: true })); })(document.querySelector('input'))")
        assert "n2999" in browser.ask("document.getElementById('side').textContent")
        assert browser.errors == [] and all(address.startswith(("file:", "data:", "blob:")) for address in browser.requests)


@needs_browser
def test_names_that_look_like_markup_stay_text(hone, folder):
    wild = "</script><img src=x onerror=document.title='got'>\u202e" + "n" * 4_000
    tiny.save(folder / "m.onnx", [helper.make_node("Add", ["x", wild], [wild + "2"], name=wild, doc_string=wild),
                                  helper.make_node(wild[:300], [wild + "2"], ["y"], name=wild + "/b", domain=wild[:300], **{"words": wild + "n" * 100_000})],
              {wild: np.array([np.nan, np.inf, -np.inf, 1], np.float32)})
    assert hone.run("view", "m.onnx", "-o", "g.html", "--svg", "g.svg").returncode == 0
    assert "<img" not in (folder / "g.html").read_text() and "<img" not in (folder / "g.svg").read_text()
    with chromium.Browser() as browser:
        browser.open(folder / "g.html")
        for width in (1280, 400):
            browser.resize(width, 900)
            browser.ask("(i => { i.value = 'script'; i.dispatchEvent(new Event('input', { bubbles: true })); })(document.getElementById('find'))")
            assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask("document.title") != "got" and browser.ask("document.querySelectorAll('img').length") == 0
        assert browser.errors == []


def test_names_beyond_the_limit_of_models_are_refused_with_a_sentence(hone, folder):
    tiny.save(folder / "m.onnx", [helper.make_node("Relu", ["x"], ["y"], name="n" * 100_000)])
    done = hone.run("view", "m.onnx", "-o", "g.html")
    assert done.returncode == 1 and "names may have 4096" in done.stdout and done.stdout.count("while reading") == 1, done.stdout
    assert len(done.stdout) < 2_000 and not (folder / "g.html").exists()


def test_files_that_are_none_are_refused_with_a_sentence(hone, folder):
    (folder / "bad.onnx").write_bytes(b"\xff" * 100)
    for words, status in ((["nope.onnx"], 3), (["bad.onnx"], 1), ([], 2)):
        done = hone.run("view", *words, "-o", "g.html")
        assert done.returncode == status and "hone" in done.stdout and not (folder / "g.html").exists(), done.stdout
