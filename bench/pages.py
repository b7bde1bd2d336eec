#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long hone report and hone view take, how large their pages are, and how soon and how smoothly a browser shows them.

    pages.py [--model MODEL.onnx] [--rounds 7] [--folder FOLDER]

An engine of ResNet-50 and one of 3,000 layers (a chain of small matmuls, a residual sum between each ten) are built without timing, and
exported with trtexec; reports are made of the plans, measured as briefly as hone report does by itself, and of these files. Views: the
model, a chain of 3,000 nodes, and 10,000 nodes in blocks, unfolded. First paint is Chromium's own (the Paint Timing interface); frames are
the page's own drawing while a window moves over the whole graph at three zooms. Medians of the rounds; the browser has no GPU.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]
import browser as chromium  # noqa: E402
import machine  # noqa: E402
import materialise  # noqa: E402

BIN = ROOT / "build/release/bin"
PAINT = """new Promise(done => new PerformanceObserver(list => {
  for (const entry of list.getEntriesByName('first-contentful-paint')) done(entry.startTime);
}).observe({type: 'paint', buffered: true}))"""
FRAMES = """(async () => {
  const graph = document.querySelector('canvas').graph, times = [];
  for (const zoom of [.1, .4, 1]) for (let i = 0; i < 60; ++i) {
    graph.centre(Math.floor(i / 60 * graph.count), zoom);
    const begin = performance.now();
    graph.draw();
    document.querySelector('canvas').getContext('2d').getImageData(0, 0, 1, 1);  // waits for what was drawn
    times.push(performance.now() - begin);
    if (i % 20 === 0) await new Promise(requestAnimationFrame);
  }
  return times;
})()"""


def save(path, nodes, ends, weights=()):
    graph = helper.make_graph(nodes, path.stem, [helper.make_tensor_value_info(ends[0], 1, [8, 8])],
                              [helper.make_tensor_value_info(ends[1], 1, [8, 8])], list(weights))
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def layers(path, count):
    """As many matmuls, which stay a layer each."""
    nodes, weights = [], []
    for i in range(count):
        name = f"/model/layers.{i // 10}/proj.{i % 10}"
        nodes.append(helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"m{i}" if i % 10 == 9 else f"t{i + 1}"], name=f"{name}/MatMul"))
        weights.append(numpy_helper.from_array(np.full((8, 8), 0.1, np.float32), f"w{i}"))
        if i % 10 == 9:
            nodes.append(helper.make_node("Add", [f"m{i}", f"t{i - 9}"], [f"t{i + 1}"], name=f"{name}/Add"))
    return save(path, nodes, ("t0", f"t{count}"), weights)


def chain(path, count):
    return save(path, [helper.make_node("Neg", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(count)], ("t0", f"t{count}"))


def blocks(path, count):
    """Blocks of ten nodes: three branches of three nodes and what joins them."""
    nodes = []
    for b in range(count // 10):
        for branch in range(3):
            at = f"b{b}"
            for step, op in enumerate(("Neg", "Abs", "Relu")):
                nodes.append(helper.make_node(op, [at], [f"b{b}.{branch}.{step}"], name=f"/stage{b // 100}/block{b}/branch{branch}/{op}"))
                at = f"b{b}.{branch}.{step}"
        nodes.append(helper.make_node("Sum", [f"b{b}.{branch}.2" for branch in range(3)], [f"b{b + 1}"], name=f"/stage{b // 100}/block{b}/Sum"))
    return save(path, nodes, ("b0", f"b{count // 10}"))


def timed(rounds, *command):
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([BIN / command[0], *map(str, command[1:])], check=True, capture_output=True)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def paint(page, rounds):
    """ms from the navigation to the first contentful paint and to the end of the scripts."""
    paints, ends = [], []
    for _ in range(rounds):
        with chromium.Browser() as browser:
            browser.resize(1280, 900)
            browser.open(page)
            paints.append(browser.ask(PAINT))
            ends.append(browser.ask("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
            assert browser.errors == [], browser.errors
    return statistics.median(paints), statistics.median(ends)


def frames(page, unfold):
    with chromium.Browser() as browser:
        browser.resize(1280, 900)
        browser.open(page)
        if unfold:
            browser.ask("document.querySelector('button.fold').click()")
        return browser.ask("document.querySelector('canvas').graph.count"), sorted(browser.ask(FRAMES))


def extent(page):
    """What a report of a plan says of its measuring."""
    engine, = json.loads(page.read_text().split('<script type="application/json" id="data">')[1].split("</script>")[0])["engines"]
    return dict(engine["facts"])["measured"]


def show(what, seconds, page, rounds, note=""):
    first, scripts = paint(page, rounds)
    print(f"| {what} | {seconds:.3f} | {page.stat().st_size / 1e6:.2f} | {first:.0f} | {scripts:.0f} | {note} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, help="default: ResNet-50 of the zoo")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=pathlib.Path, help="keep models, files and pages here")
    options = parser.parse_args()
    resnet = options.model or materialise.materialise("resnet50.ts", ROOT / "build/zoo")
    print(machine.sentence(machine.describe(ROOT)))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("\n| page | command, s | MB | first paint, ms | drawn, ms | |\n|---|---:|---:|---:|---:|---|")
        for model in (resnet, layers(folder / "layers3000.onnx", 3000)):
            stem = folder / model.name.removesuffix(".onnx")
            plan, graph, page = (pathlib.Path(f"{stem}.{ending}") for ending in ("plan", "graph.json", "report.html"))
            timed(1, "trtexec", f"--onnx={model}", f"--saveEngine={plan}", "--skipInference", "--builderOptimizationLevel=0",
                  "--profilingVerbosity=detailed")
            timed(1, "trtexec", f"--loadEngine={plan}", f"--exportLayerInfo={graph}", f"--exportProfile={stem}.profile.json",
                  f"--exportTimes={stem}.timing.json", "--duration=1", "--warmUp=0", "--iterations=10")
            measured = pathlib.Path(f"{stem}.plan.html")
            show(f"`hone report` of {model.name}'s plan", timed(options.rounds, "hone", "report", plan, "-o", measured), measured, options.rounds, extent(measured))
            show(f"`hone report` of {model.name}, exported files", timed(options.rounds, "hone", "report", graph, "-o", page), page, options.rounds)
        for model in (resnet, chain(folder / "chain3000.onnx", 3000), blocks(folder / "blocks10000.onnx", 10000)):
            page = folder / f"{model.name}.view.html"
            seconds = timed(options.rounds, "hone", "view", model, "-o", page)
            count, drawn = frames(page, model.stem.startswith("blocks"))
            show(f"`hone view` of {model.name}", seconds, page, options.rounds,
                 f"{count} boxes; a frame {statistics.median(drawn):.1f} ms, 95 of 100 in {drawn[len(drawn) * 95 // 100]:.1f}, the slowest {drawn[-1]:.1f}")


if __name__ == "__main__":
    main()
