# SPDX-License-Identifier: Apache-2.0
"""Writes a comparison's figures between two marks of docs/measurements.md."""

import re

import machine

BEGIN, END = "<!-- begin: bench/compare.py -->", "<!-- end: bench/compare.py -->"


def cell(result, engine):
    return f"{result[engine]['ms']:.2f} ±{100 * result[engine]['spread']:.0f} %" if engine in result else "–"


def table(run):
    engines = [engine for engine in ("hone", "onnxruntime", "openvino") if any(engine in r for r in run["models"].values())]
    yield f"### {run['threads']} thread{'s' if run['threads'] > 1 else ''}, batch {run['batch']}, {run['precision']}{', all streams together' if run.get('hint') == 'throughput' else ''}, ms per inference"
    yield ""
    yield "| model | " + " | ".join(engines) + " | better peer / Hone |"
    yield "|---|" + "---:|" * (len(engines) + 1)
    for name, result in run["models"].items():
        ratio = f"{result['ratio']:.2f}" if "ratio" in result else "–"
        yield f"| {name} | " + " | ".join(cell(result, engine) for engine in engines) + f" | {ratio} |"
    if "geomean" in run:
        yield f"| **geometric mean** |{' |' * len(engines)} **{run['geomean']:.2f}** |"
    yield ""


def section(report):
    versions = ", ".join(f"{name} {text}" for name, text in report["machine"]["versions"].items() if text)
    yield from (BEGIN, f"`{report['command'].strip()}` on {report['machine']['date'][:10]}", "",
                machine.sentence(report["machine"]) + f". Load before the run: {report['machine']['load_before']:.2f}.", "",
                f"Versions: {versions}.", "")
    for run in report["runs"]:
        yield from table(run)
    yield END


def replace(path, begin, end, text):
    """Puts `text`, marks and all, where the marks stand."""
    old = path.read_text() if path.exists() else f"# Measurements\n\n{begin}\n{end}\n"
    between = re.escape(begin) + ".*?" + re.escape(end)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(between, lambda _: text, old, flags=re.DOTALL))
    print(f"wrote {path}")


def write_measurements(path, report):
    replace(path, BEGIN, END, "\n".join(section(report)))
