# SPDX-License-Identifier: Apache-2.0
"""RegexFullMatch: patterns are RE2's, as ONNX says, and neither a long text nor a pattern that would backtrack ends the process."""

import sys

import numpy as np
import pytest
from conftest import PACKAGE
from onnx import TensorProto, helper

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")


def matches(pattern, texts):
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], name="match", pattern=pattern)
    graph = helper.make_graph([node], "strings", [helper.make_tensor_value_info("x", TensorProto.STRING, [len(texts)])],
                              [helper.make_tensor_value_info("y", TensorProto.BOOL, [len(texts)])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return hone.Model.parse(model.SerializeToString()).build([]).engine().context().run({"x": np.array(texts, object)})["y"]


def test_matches_the_whole_text():
    assert matches(r"(\pL+|\d{2,})@x\.org", ["jürgen@x.org", "7@x.org", "77@x.org", "a@x.orgs"]).tolist() == [True, False, True, False]


def test_a_long_text_and_a_pattern_that_backtracks_end():
    assert matches("(a|b)*(a*)*c", ["ab" * 500_000, "ab" * 500_000 + "c"]).tolist() == [False, True]


def test_a_pattern_that_is_none_is_named():
    with pytest.raises(hone.Error, match=r"'\(a' is not a pattern"):
        matches("(a", ["a"])
