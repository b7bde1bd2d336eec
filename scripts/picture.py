#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a log of trtexec as docs/output.svg: the summary, and the profile with a bar for each layer's share.

    picture.py LOG OUTPUT.svg [COMMAND]      LOG as trtexec --dumpProfile prints it; COMMAND is shown above it
"""

import html
import pathlib
import re
import sys

WIDTH, LINE, PAD, CHARACTER = 980, 19, 18, 8.0
KEPT = (r"Throughput: ", r"Latency: ", r"Precision used: ", r"Closed-loop latency: ")
LAYERS = 9
COLOURS = {"back": "#14181f", "text": "#d8dee9", "faint": "#7b8698", "bar": "#3b7dd8", "title": "#8fd19e"}


def parts(log):
    """(lines of the summary, [(ms, share in percent, layer)] of the profile, lines of the sources)."""
    lines = [re.sub(r"^\[[^\]]*\] (\[[A-Z]\] )?", "", line.rstrip()) for line in log.splitlines()]
    lines = [re.sub(r"^\[[A-Z]\] ", "", line) for line in lines]
    summary = [line.strip() for line in lines for start in KEPT if re.match(start, line.strip())]
    begin = next(i for i, line in enumerate(lines) if "Time(ms)" in line and "Layer" in line)
    layers = []
    for line in lines[begin + 1:]:
        match = re.match(r"\s*([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\S.*)$", line)
        if not match or match[5] == "Total":
            break
        layers.append((float(match[2]), float(match[4]), match[5]))
    at = next(i for i, line in enumerate(lines) if "Time by source" in line)
    sources = [line.strip() for line in lines[at + 1:at + 5] if re.match(r"\s*[\d.]+\s+\d+\s+\w+", line)]
    return summary, sorted(layers, key=lambda layer: -layer[1])[:LAYERS], sources


def text(x, y, content, colour="text", weight="normal"):
    return f'<text x="{x}" y="{y}" fill="{COLOURS[colour]}" font-weight="{weight}" xml:space="preserve">{html.escape(content)}</text>'


def draw(log, command):
    summary, layers, sources = parts(log)
    body, y = [], PAD + LINE

    def line(content, colour="text", weight="normal"):
        nonlocal y
        body.append(text(PAD, y, content, colour, weight))
        y += LINE

    line(f"$ {command}", "title", "bold")
    for entry in summary:
        line(entry if len(entry) < 118 else entry[:115] + "...")
    y += LINE // 2
    line("  ms per layer   share", "faint")
    widest = max(share for _, share, _ in layers)
    for ms, share, layer in layers:
        body.append(f'<rect x="{PAD + 190}" y="{y - 13}" width="{max(1, 150 * share / widest):.0f}" height="14" rx="2" fill="{COLOURS["bar"]}"/>')
        body.append(text(PAD + 360, y, layer if len(layer) < 72 else layer[:69] + "..."))
        line(f"{ms:14.4f}   {share:4.1f} %")
    y += LINE // 2
    line("share, layers, source: " + "; ".join(re.sub(r"\s+", " ", entry) for entry in sources), "faint")
    height = y + PAD - LINE // 2
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="output of trtexec --dumpProfile">\n'
            f'<rect width="100%" height="100%" rx="8" fill="{COLOURS["back"]}"/>\n<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13">\n'
            + "\n".join(body) + "\n</g>\n</svg>\n")


def main(arguments):
    if len(arguments) not in (2, 3):
        raise SystemExit(__doc__)
    log, output, *command = arguments
    pathlib.Path(output).write_text(draw(pathlib.Path(log).read_text(), command[0] if command else "trtexec --loadEngine=model.plan --dumpProfile"))


if __name__ == "__main__":
    main(sys.argv[1:])
