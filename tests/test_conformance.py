# SPDX-License-Identifier: Apache-2.0
"""ONNX's own suite through hone.backend: every node case with the tuned sources and with the reference alone, and the cases
of the other groups. What does not pass stands in conformance/expected_failures.txt with its reason; a case that is listed
and passes fails this test as much as one that is not listed and does not."""

import pathlib

import pytest

from conftest import BIN

from conformance import operators, suite

LIST = pathlib.Path(__file__).parent / "conformance/expected_failures.txt"


def expected_failures():
    lines = [line.split(maxsplit=1) for line in LIST.read_text().splitlines() if line.strip() and not line.startswith("#")]
    assert all(len(line) == 2 for line in lines), "every listed case needs a reason"
    return dict(lines)


def describe(failed, expected):
    unexpected = [f"{name}: {message}" for name, message in sorted(failed.items()) if name not in expected]
    repaired = [f"{name} passes: take it off the list" for name in sorted(set(expected) - set(failed))]
    return "\n".join(unexpected + repaired)


@pytest.fixture
def device(request):
    """As --device=cuda:0 says; the list is the same for every device."""
    return request.config.getoption("--device")


@pytest.mark.parametrize("sources", ["tuned", "reference"])
def test_every_node_case_passes_unless_it_is_listed(sources, device):
    expected = {name: reason for name, reason in expected_failures().items() if name in suite.cases("node")}
    groups = ("node", "simple", "pytorch-converted", "pytorch-operator")
    assert set(expected_failures()) <= {name for group in groups for name in suite.cases(group)}, "the list names cases that do not exist"
    seen = {}
    failed, count = suite.failures("node", sources, device=device, seen=seen)
    assert count >= 1884 and count - len(failed) >= 1870
    assert not describe(failed, expected), describe(failed, expected)
    if (sources, device) == ("tuned", "cpu"):
        assert operators.markdown(failed, seen, BIN / "hone") == operators.DOCUMENT.read_text(), "write docs/operators.md anew: python tests/conformance/operators.py"


@pytest.mark.parametrize("kind", ["simple", "pytorch-converted", "pytorch-operator"])
def test_every_case_of_the_other_groups_passes_unless_it_is_listed(kind, device):
    expected = {name: reason for name, reason in expected_failures().items() if name in suite.cases(kind)}
    failed, count = suite.failures(kind, device=device)
    assert count > 20
    assert not describe(failed, expected), describe(failed, expected)
