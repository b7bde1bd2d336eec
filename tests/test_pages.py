# SPDX-License-Identifier: Apache-2.0
"""The pages of hone report and hone view as people meet them: what axe-core says of them in light and dark, wide and narrow, each part
as a picture in build/screens, and nothing that leaves the page."""

import axe
import browser as chromium
import onnx
import pytest
import tiny
from conftest import ROOT
from onnx import TensorProto, helper

SCREENS = ROOT / "build" / "screens"
LOOKS = [(1280, False), (1280, True), (400, False), (400, True)]
pytestmark = pytest.mark.skipif(chromium.program() is None or axe.FILE is None, reason="no Chromium or no axe-core")


def drawn(browser):
    browser.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def keep(browser, name, width, dark):
    SCREENS.mkdir(parents=True, exist_ok=True)
    browser.screenshot(SCREENS / f"{name}-{width}-{'dark' if dark else 'light'}.png")


def branches(path):
    """Scopes, an If with two bodies, a weight that is seen through, and one that holds what is no number."""
    def body(name, op):
        return helper.make_graph([helper.make_node(op, ["/a/c"], [name], name=f"/a/{op}")], name, [], [helper.make_tensor_value_info(name, 1, [4])])
    choice = helper.make_node("If", ["which"], ["chosen"], name="/a/If", then_branch=body("then", "Neg"), else_branch=body("else", "Abs"))
    nodes = [helper.make_node("Add", ["x", "w"], ["/a/c"], name="/a/Add"), choice, helper.make_node("Mul", ["chosen", "odd"], ["y"], name="/b/Mul")]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [4], [1, 2, 3, 4]),
               helper.make_tensor("odd", TensorProto.FLOAT, [4], [float("nan"), float("inf"), -0.0, 1e38])]
    inputs = [helper.make_tensor_value_info("x", 1, [4]), helper.make_tensor_value_info("which", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "branches", inputs, [helper.make_tensor_value_info("y", 1, [4])], weights)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def test_every_part_of_a_report_is_labelled_readable_and_fits(hone, folder):
    tiny.convolutions(folder / "m.onnx")
    hone("build", "m.onnx", "-o", "n.plan", "--shapes=x:2x3x16x16", "--bf16", "--builderOptimizationLevel=0")
    hone("report", "m.onnx", "n.plan", "--shapes=x:2x3x16x16", "-t", "0.05", "-o", "r.html")
    with chromium.Browser() as browser:
        for width, dark in LOOKS:
            browser.resize(width, 900, dark)
            browser.open(folder / "r.html")
            for part in browser.ask("Array.from(document.querySelectorAll('[role=tab]')).map(e => e.textContent)"):
                browser.ask(f"document.getElementById('tab-{part}').click()")
                drawn(browser)
                if part == "Layers":
                    browser.ask("document.querySelector('tbody button').click()")
                    assert browser.ask("document.querySelectorAll('#detail dd').length") > 3
                assert axe.violations(browser) == [], (part, width, dark)
                assert browser.ask("document.documentElement.scrollWidth") <= width, (part, width)
                keep(browser, f"report-{part}", width, dark)
        browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        assert browser.ask("getComputedStyle(document.querySelector('[role=tablist]')).display") == "none"  # paper is white and has no buttons
        assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.errors == [] and all(address.startswith("file:") for address in browser.requests)


def test_every_sheet_of_a_view_is_labelled_readable_and_fits(hone, folder):
    branches(folder / "m.onnx")
    tiny.convolutions(folder / "c.onnx")
    hone("build", "c.onnx", "-o", "c.plan", "--shapes=x:1x3x16x16", "--builderOptimizationLevel=0")
    hone("view", "m.onnx", "-o", "m.html")
    hone("view", "c.onnx", "c.plan", "-o", "c.html")
    with chromium.Browser() as browser:
        for width, dark in LOOKS:
            browser.resize(width, 900, dark)
            for name, search in (("m", ["", "Add", "Mul", "Neg"]), ("c", ["", "conv1"])):
                browser.open(folder / f"{name}.html")
                for text in search:
                    browser.ask(f"(i => {{ i.value = {text!r}; i.dispatchEvent(new Event('input', {{ bubbles: true }})); }})(document.getElementById('find'))")
                    drawn(browser)
                    assert axe.violations(browser) == [], (name, text, width, dark)
                    assert browser.ask("document.documentElement.scrollWidth") <= width, (name, width)
                    keep(browser, f"view-{name}-{text or 'begin'}", width, dark)
        assert browser.errors == [] and all(address.startswith("file:") for address in browser.requests)
