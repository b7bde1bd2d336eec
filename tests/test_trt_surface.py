# SPDX-License-Identifier: Apache-2.0
"""python/tensorrt: the three surfaces against lists of classes, members and enum numbers of releases 8.6, 10.16 and 11.1
(trt_members.json.xz, collected from the releases' headers and bindings: names and numbers alone)."""

import json
import lzma
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import BIN, PACKAGE, ROOT

pytest.importorskip("trt_networks")
LISTS = json.loads(lzma.decompress((pathlib.Path(__file__).parent / "trt_members.json.xz").read_bytes()))
SURFACES = {"8.6": "8.6", "10": "10.16", "11": "11.1"}

# In the lists of headers, but of the C++ interface alone, or under another name in Python.
NOT_IN_PYTHON = {"FallbackString", "OptProfileSelector", "PluginVersion", "FieldType", "UffInputOrder", "CodeTypeSSD", "Severity", "ErrorCode",
                 "CaffeParser", "FieldCollection", "FieldMap", "IBlobNameToTensor", "ICaffePluginFactoryV2", "UffParser"}
RENAMED = {"KVCACHE_UPDATE": "KV_CACHE_UPDATE"}
# Their methods are the programs': a class that is derived from has them.
DERIVED_FROM = """IAlgorithmSelector IDebugListener IErrorRecorder IGpuAllocator IGpuAsyncAllocator IInt8Calibrator IInt8EntropyCalibrator
    IInt8EntropyCalibrator2 IInt8LegacyCalibrator IInt8MinMaxCalibrator IOutputAllocator IPluginCreator IPluginCreatorV3One
    IPluginCreatorV3Quick IPluginResource IPluginV2 IPluginV2DynamicExt IPluginV2DynamicExtBase IPluginV2Ext IPluginV3 IPluginV3OneBuild
    IPluginV3OneBuildV2 IPluginV3OneCore IPluginV3OneRuntime IPluginV3QuickAOTBuild IPluginV3QuickBuild IPluginV3QuickCore
    IPluginV3QuickRuntime IProgressMonitor IStreamReader IStreamReaderV2
    IStreamWriter""".split()
# What is not done, by class; nothing else may be missing.
GAPS = {
    "IBuilderConfig": "plugins_to_serialize remote_auto_tuning_config build_route",
    "IAttention": "causal_kind key_value_form key_value_lengths query_form query_lengths",  # of 11
    "IRNNv2Layer": """cell_state data_length direction get_bias_for_gate get_weights_for_gate hidden_size hidden_state input_mode
        max_seq_length num_layers op seq_lengths set_bias_for_gate set_weights_for_gate""",  # of 8.6
}

ASK = r"""
import dis, inspect, json, tensorrt as trt
def members(cls):  # with what __init__ gives each object
    made = [vars(each)["__init__"] for each in cls.__mro__ if inspect.isfunction(vars(each).get("__init__"))]
    return sorted({*dir(cls), *(step.argval for each in made for step in dis.get_instructions(each) if step.opname == "STORE_ATTR")})
print(json.dumps({
    "version": trt.__version__,
    "classes": {name: members(getattr(trt, name)) for name in dir(trt) if isinstance(getattr(trt, name), type)},
    "enums": {name: {word: int(member) for word, member in getattr(trt, name).__members__.items()} for name in dir(trt)
              if hasattr(getattr(trt, name), "__members__")},
    "types": [name for name in "float32 float16 int8 int32 int64 bool uint8 bfloat16 fp8 int4 fp4 e8m0".split() if hasattr(trt, name)]}))
"""


@pytest.fixture(scope="module", params=SURFACES)
def surface(request):
    """(what the module shows, what the lists say, the surface's name)."""
    variables = {**os.environ, "HONE_TENSORRT_API": request.param, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PACKAGE.parent / 'tensorrt'}"}
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), LISTS[SURFACES[request.param]], request.param


def test_versions(surface):
    shown, _, name = surface
    assert shown["version"] == {"8.6": "8.6.1", "10": "10.16.1", "11": "11.1.0"}[name]
    assert ("int64" in shown["types"]) == (name != "8.6")


def test_enums_have_their_members_and_numbers(surface):
    shown, listed, _ = surface
    for name, members in listed["enums"].items():
        if name in NOT_IN_PYTHON:
            continue
        expected = {RENAMED.get(word, word): number for word, number in members.items()}
        found = shown["enums"].get(name)
        assert found is not None, f"there is no {name}"
        numbered = {word: number for word, number in expected.items() if number is not None}
        assert {word: found.get(word) for word in numbered} == numbered, name
        assert set(found) == set(expected), name


def test_no_enum_is_of_another_release(surface):
    shown, listed, _ = surface
    others = {name for each in LISTS.values() for name in each["enums"]} - set(listed["enums"]) - {"OnnxParserFlag"}  # of 8.6 as well
    assert not others & set(shown["enums"])


def test_classes_have_their_members(surface):
    shown, listed, _ = surface
    lacking = {}
    for name, members in listed["classes"].items():
        if name in NOT_IN_PYTHON or name in DERIVED_FROM and name in shown["classes"]:
            continue
        if name not in shown["classes"]:
            lacking[name] = "the class"
            continue
        done = {"__del__", "__nonzero__", *GAPS.get(name, "").split(), *shown["classes"][name]}
        left = [member for member in members if member not in done]
        if left:
            lacking[name] = left
    assert not lacking


def test_classes_and_members_of_other_releases_are_not_here(surface):
    shown, listed, _ = surface
    for each in LISTS.values():
        for name, members in each["classes"].items():
            if name not in listed["classes"]:
                assert name not in shown["classes"], name
            elif name in shown["classes"]:
                extra = set(members) - set(listed["classes"][name]) - ANYWHERE.get(name, set())
                bases = {member for member in extra if member.startswith("__")}
                assert not (extra - bases) & set(shown["classes"][name]), name


# What the lists have in one release only because of how they were collected, and two members that are kept for all: nobody asks for them.
ANYWHERE = {"ILogger": {"log"}, "IOutputAllocator": {"notify_shape", "reallocate_output", "tensorrt_version"},
            "IPluginCreator": {"tensorrt_version"}, "Builder": {"max_batch_size"}, "IAlgorithmIOInfo": {"tensor_format"}}


OLD_FORMS = r"""
import numpy as np
from trt_networks import run, trt
assert trt.__version__ == "8.6.1" and not hasattr(trt, "int64")
x = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
def make(network, t):
    conv = network.add_convolution(t, 1, (1, 1), np.ones(2, np.float32))
    conv.stride = (2, 2)
    assert isinstance(conv.stride, trt.DimsHW) and conv.stride.h == 2
    pool = network.add_pooling(t, trt.PoolingType.MAX, (2, 2))
    pool.stride = (2, 2)
    dense = network.add_fully_connected(t, 3, np.ones(96, np.float32), np.array([0, 1, 2], np.float32))
    shape = network.add_shape(t)
    return [layer.get_output(0) for layer in (conv, pool, dense, shape)]
conv, pool, dense, shape = run(make, x)
assert (conv[0, 0] == x.sum(1)[0, ::2, ::2]).all() and pool[0, 0].tolist() == [[5, 7], [13, 15]]
assert dense.shape == (1, 3, 1, 1) and dense.ravel().tolist() == [496, 497, 498]
assert shape.dtype == np.int32 and shape.tolist() == [1, 2, 4, 4]
"""


def test_forms_of_8_6_compute():
    """In a process of its own: a surface is chosen at import."""
    script = OLD_FORMS.replace("from trt_networks", f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); from trt_networks")
    variables = {**os.environ, "HONE_TENSORRT_API": "8.6", "HONE_PACKAGE": str(PACKAGE)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


ATTENTION_OF_11 = '''
import numpy as np
from trt_networks import trt, run

random = np.random.default_rng(3)
q, k, v = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8)))
lengths = np.array([5, 2], np.int32)


def expected(kind, counted):
    keys, values = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    weights = q @ keys.transpose(0, 1, 3, 2)
    rows, columns = np.arange(3)[:, None], np.arange(5)
    if kind != trt.CausalMaskKind.NONE:
        weights = np.where(columns <= rows + (2 if kind == trt.CausalMaskKind.LOWER_RIGHT else 0), weights, -np.inf)
    if counted:
        weights = np.where(columns < lengths[:, None, None, None], weights, -np.inf)
    weights = np.exp(weights - weights.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values


for kind in trt.CausalMaskKind.__members__.values():
    for counted in (False, True):
        def make(n, a, b, c, *rest):
            made = n.add_attention_v2(a, b, c, trt.AttentionNormalizationOp.SOFTMAX, kind)
            assert made.causal_kind == kind and made.causal == (kind != trt.CausalMaskKind.NONE) and made.key_value_lengths is None
            assert made.query_form == trt.AttentionIOForm.PADDED_BHND
            if rest:
                made.key_value_lengths = rest[0]
            return made.get_output(0)
        np.testing.assert_allclose(run(make, q, k, v, *([lengths] if counted else [])), expected(kind, counted), rtol=1e-4, atol=1e-5)
print("done")
'''


def test_attention_of_11_has_kinds_of_masks_and_lengths():
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "HONE_PACKAGE": str(PACKAGE), "HONE_BIN": str(BIN), "HONE_TENSORRT_API": "11",
                 "HONE_TENSORRT_DEVICE": "cpu"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", ATTENTION_OF_11], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
