# SPDX-License-Identifier: Apache-2.0
"""What docs/tour.md shows is what the program prints."""

import re

import materialise
import pytest
from conftest import ROOT, Program

PAGE = (ROOT / "docs/tour.md").read_text("utf-8")
BLOCK = re.compile(r"<!-- (.*?) -->\n```\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{what a block names: the text that the program gave}."""
    folder = tmp_path_factory.mktemp("tour")
    trtexec, dump = Program(folder), folder / "dump"
    log = trtexec(f"--onnx={materialise.materialise('digits_cnn', folder)}", "--shapes=image:1x1x8x8", "--saveEngine=m.plan", "--builderOptimizationLevel=0", "--skipInference",
                  "--verbose", env={"HONE_CPU_ISA": "avx2", "HONE_DUMP": str(dump)})
    if "Layer(cpu.conv)" not in log:
        pytest.skip("this processor has no AVX2")
    texts = {path.name: path.read_text("utf-8") for path in dump.iterdir()}
    changed = [line.split()[0] for line in texts["passes.txt"].splitlines() if line.endswith(" changed")]
    return texts | {"passes.txt: changed": "\n".join(changed), "log": log, "hone inspect m.plan": Program(folder, "hone")("inspect", "m.plan")}


@pytest.mark.parametrize("source, lines", [(match[1], match[2]) for match in BLOCK.finditer(PAGE)])
def test_lines_stand_there_in_this_order(source, lines, told):
    at = 0
    for line in lines.splitlines():
        found = told[source].find(line, at)
        assert found >= 0, f"{source} has no such line at that place: {line}"
        at = found + len(line)


def test_nothing_changes_the_graph_that_the_page_does_not_name(told):
    named = next(match[2] for match in BLOCK.finditer(PAGE) if match[1] == "passes.txt: changed")
    assert told["passes.txt: changed"].split() == named.split()


def test_files_that_the_page_names_are_there():
    for name in re.findall(r"`((?:src|include|scripts|tests|docs)/[\w./]+)`", PAGE):
        assert (ROOT / name).exists(), name
