# SPDX-License-Identifier: Apache-2.0
"""hone run --gen-script: what it writes, in Python and in C++, comes to the verdict that hone run comes to. Row 4 of docs/companions.md."""

import base64
import io
import json
import os
import re
import subprocess
import sys

import conftest
import numpy as np
import pytest
import tiny
from onnx import TensorProto, helper
from test_companion_files import SHAPES, mnist
from test_compare import LIBRARIES, said_by, scaled, with_onnxruntime

INCLUDE, LIB = conftest.ROOT / "include", conftest.BIN.parent / "lib"


@pytest.fixture(scope="module")
def hone(tmp_path_factory):
    """In a folder with models and with what two of them computed: b.onnx is a thousandth off a.onnx, ids.onnx looks rows up."""
    folder = tmp_path_factory.mktemp("scripts")
    program = conftest.Program(folder, "hone")
    scaled(folder / "a.onnx", 1)
    scaled(folder / "b.onnx", 1.001)
    tiny.perceptron(folder / "p.onnx")
    tiny.save(folder / "ids.onnx", [helper.make_node("Gather", ["table", "ids"], ["y"])], {"table": np.arange(300, dtype=np.float32).reshape(100, 3)},
              [("ids", [5], TensorProto.INT64)], [("y", [5, 3])], opset=13)
    tiny.save(folder / "log.onnx", [helper.make_node("Log", ["x"], ["y"])], {}, [("x", [2, 2])], [("y", [2, 2])], opset=13)
    tiny.save(folder / "half.onnx", [helper.make_node("Add", ["x", "x"], ["y"])], {}, [("x", [33], TensorProto.FLOAT16)],
              [("y", [33], TensorProto.FLOAT16)], opset=13)
    tiny.save(folder / "mixed.onnx", [helper.make_node("Where", ["c", "i", "j"], ["y"])], {},
              [("c", [37], TensorProto.BOOL), ("i", [37], TensorProto.INT8), ("j", [37], TensorProto.INT8)], [("y", [37], TensorProto.INT8)], opset=16)
    program("run", "a.onnx", "--cpu", "--iterations", "2", "--save-outputs", "a.json", "--save-inputs", "in.json")
    program("run", "a.onnx", "--cpu", "--onnx-outputs", "*", "--save-outputs", "a_all.json")
    program("run", "a.onnx", "--cpu", "--save-inputs", "in.npz", "--save-outputs", "out.safetensors")
    program("run", "p.onnx", "--cpu", "--input-shapes", "x:[3,4]", "--save-engine", "p.plan")
    np.random.default_rng(3).random((2, 8), np.float32).tofile(folder / "x.raw")
    np.save(folder / "x.npy", np.full((2, 8), -1, np.float32))
    (folder / "loads.py").write_text("import numpy as np\ndef load_data():\n    for i in range(3):\n        yield {'x': np.full((2, 8), i, np.float32)}\n")
    return program


def array_of(told):
    return np.load(io.BytesIO(base64.b64decode(told["array"])))


def by_python(folder, name="run.py"):
    return subprocess.run([sys.executable, name], cwd=folder, env={**os.environ, "PYTHONPATH": str(conftest.PACKAGE)}, encoding="utf-8",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)


def by_cpp(folder, name="run.cpp"):
    subprocess.run(["g++", "-std=c++20", "-O0", f"-I{INCLUDE}", name, f"-L{LIB}", "-lhone", f"-Wl,-rpath,{LIB}", "-o", "made"], cwd=folder, check=True)
    return subprocess.run(["./made"], cwd=folder, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)


def summaries(said):
    return re.findall(r"Accuracy Summary \| .*? \| Passed: \d+/\d+ \w+", said)


def same_verdict(hone, words, language):
    """What the script printed; its exit status and its summaries are those of hone run."""
    run = hone.run("run", *words, env={"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})
    name = "run.py" if language is by_python else "run.cpp"
    said_by(hone, 0, *words, "--gen-script", name)
    done = language(hone.folder)
    assert done.returncode == run.returncode, f"{done.returncode}, not {run.returncode}: {words}\n{done.stdout}\n{run.stdout}"
    assert summaries(done.stdout) == summaries(run.stdout), (words, done.stdout)
    return done.stdout


ANYWHERE = [
    (["a.onnx", "--cpu", "--ref", "--iterations", "2", "--val-range", "x:[-3,3]"], "cpu-0 vs. ref-0 | Passed: 2/2"),
    (["a.onnx", "--ref", "--cpu", "--cpu", "--pairs", "all"], "cpu-0 vs. cpu-1"),
    (["b.onnx", "--cpu", "--load-outputs", "a.json", "--allow-prefix"], "FAILED | Output: 'y' | elemwise error [abs=0.00087816]"),
    (["b.onnx", "--cpu", "--load-outputs", "a.json"], "different numbers|not 1"),
    (["b.onnx", "--cpu", "--load-inputs", "in.json", "--load-outputs", "a.json", "--check-average", "--check-error-stat", "mean", "--rtol", "2e-3"],
     "Passed: 1/1 outputs"),
    (["b.onnx", "--cpu", "--load-inputs", "in.json", "--load-outputs", "a.json", "--check-error-stat", "quantile", "--error-quantile", "0.5", "--rtol",
      "2e-3"], "quantile error [abs=0.00037119] OR [rel=0.001]"),
    (["b.onnx", "--cpu", "--load-inputs", "in.json", "--load-outputs", "a.json", "--compare", "simple", "cosine_similarity", "psnr", "snr", "l2"],
     "psnr 65.703|l2 0.0018234"),
    (["b.onnx", "--cpu", "--load-inputs", "in.json", "--load-outputs", "a.json", "--compare", "indices", "--postprocess", "top-3"], "indices 0"),
    (["b.onnx", "--cpu", "--onnx-outputs", "*", "--load-outputs", "a_all.json", "--fail-fast"], "FAILED | Output: 'm'"),
    (["b.onnx", "--cpu", "--onnx-outputs", "*", "--load-outputs", "a_all.json", "--rtol", "1e-2", "m:1e-6", "--atol", "1e-9"], "PASSED | Output: 'y'"),
    (["a.onnx", "--cpu", "--ref", "--load-inputs", "x:x.raw"], "Passed: 1/1"),
    (["a.onnx", "--cpu", "--ref", "--load-inputs", "x:x.npy", "--validate", "--time", "--warm-up", "1"], "is valid"),
    (["log.onnx", "--ref", "--validate", "--val-range", "[-1,-1]"], "FAILED | ref-0 | Errors detected in output: y"),
    (["p.onnx", "--ref", "--plan", "p.plan", "--cpu", "--trt-min-shapes", "x:[1,4]", "--trt-opt-shapes", "x:[3,4]", "--trt-max-shapes", "x:[5,4]",
      "--input-shapes", "x:[3,4]"], "plan-0 vs. ref-0"),
    (["p.plan", "--cpu", "--input-shapes", "x:[3,4]", "--load-outputs", "a.json", "--allow-unmatched"], "cpu-0 vs. cpu-0"),
    (["ids.onnx", "--cpu", "--ref"], "cpu-0 vs. ref-0"),
    (["half.onnx", "--cpu", "--ref"], "cpu-0 vs. ref-0"),
    (["mixed.onnx", "--cpu", "--ref", "--iterations", "2", "--val-range", "[-9,9]", "c:[0,1]"], "Passed: 2/2"),
    (["a.onnx", "--cpu", "--ref", "--data-loader-cmd", "echo in.json"], "Passed: 2/2"),
]


@pytest.mark.parametrize("words, texts", ANYWHERE, ids=[" ".join(words) for words, _ in ANYWHERE])
def test_row_4_a_script_in_python_comes_to_the_same_verdict(hone, words, texts):
    said = same_verdict(hone, words, by_python)
    assert any(text in said for text in texts.split("|") + [texts]), said


@pytest.mark.parametrize("words", [
    ["a.onnx", "--cpu", "--ref", "--load-inputs", "in.npz", "--load-outputs", "out.safetensors"],
    ["a.onnx", "--cpu", "--ref", "--data-loader-script", "loads.py"]])
def test_row_4_python_has_archives_and_functions(hone, words):
    assert "Passed:" in same_verdict(hone, words, by_python)


@with_onnxruntime
def test_row_4_python_has_onnx_runtime(hone):
    pytest.importorskip("onnxruntime")
    for words in (["a.onnx", "--cpu", "--onnxrt"], ["b.onnx", "--onnxrt", "--cpu", "--onnx-outputs", "*", "--atol=-1", "--rtol=-1"],
                  ["p.onnx", "--onnxrt", "--cpu", "--input-shapes", "x:[3,4]", "--graph-optimization-level", "ORT_DISABLE_ALL"]):
        assert "onnxrt-0" in same_verdict(hone, words, by_python)


@pytest.mark.parametrize("index", range(0, len(ANYWHERE), 3))
def test_row_4_a_program_in_cpp_comes_to_the_same_verdict(hone, index):
    """Three command lines in one program: compiling takes longer than all else."""
    group = ANYWHERE[index:index + 3]
    texts, expected = ["#include <hone/compare_files.hpp>\n"], []
    for number, (words, _) in enumerate(group):
        expected.append(hone.run("run", *words))
        said_by(hone, 0, *words, "--gen-script", "one.cpp")
        body = (hone.folder / "one.cpp").read_text().split("namespace compare = hone::compare;\n", 1)[1]
        texts.append(f"namespace program{number} {{\nnamespace compare = hone::compare;\n{body.replace('int main() try', 'int run() try')}}}\n")
    calls = "".join(f'  status = program{number}::run(); std::printf("EXIT %d\\n", status);\n' for number in range(len(group)))
    (hone.folder / "run.cpp").write_text("".join(texts) + f"int main() {{\n  int status = 0;\n{calls}}}\n")
    done = by_cpp(hone.folder)
    pieces = re.split(r"EXIT (\d+)\n", done.stdout)
    for number, ((words, wanted), run) in enumerate(zip(group, expected)):
        said, status = pieces[2 * number], int(pieces[2 * number + 1])
        assert status == run.returncode, (words, said, run.stdout)
        assert summaries(said) == summaries(run.stdout), (words, said)
        assert any(text in said for text in wanted.split("|") + [wanted]), (words, said)


@pytest.mark.parametrize("language", [by_python, by_cpp])
def test_row_4_scripts_draw_and_keep_what_hone_run_does(hone, language):
    name = "run.py" if language is by_python else "run.cpp"
    for model, more in (("ids.onnx", []), ("half.onnx", ["--val-range", "[-2,5]"]), ("mixed.onnx", ["--val-range", "[-9,9]", "c:[0,1]"])):
        kept = [model, "--cpu", *more, "--iterations", "2", "--seed", "5"]
        hone("run", *kept, "--save-inputs", "there.json", "--save-outputs", "there_out.json")
        said_by(hone, 0, *kept, "--save-inputs", "here.json", "--save-outputs", "here_out.json", "--save-input-blob", "blobs", "--save-engine", "kept.plan",
                "--save-tactics", "tactics.json", "--save-timing-cache", "kept.cache", "--gen-script", name)
        done = language(hone.folder)
        assert done.returncode == 0, done.stdout
        here, there = (json.loads((hone.folder / each).read_text()) for each in ("here.json", "there.json"))
        assert len(here) == len(there) == 2
        for mine, theirs in zip(here, there):
            assert mine.keys() == theirs.keys()
            for tensor in mine:
                np.testing.assert_array_equal(array_of(mine[tensor]), array_of(theirs[tensor]))
        for tensor in here[1]:
            assert (hone.folder / "blobs/1" / f"{tensor}.bin").read_bytes() == array_of(here[1][tensor]).tobytes()
        assert "Passed: 2/2" in said_by(hone, 0, model, "--plan", "kept.plan", "--load-inputs", "here.json", "--load-outputs", "here_out.json")
        assert json.loads((hone.folder / "tactics.json").read_text())["replay"] and (hone.folder / "kept.cache").exists()
        (hone.folder / "kept.plan").unlink()


def test_row_4_a_folder_has_a_file_for_each_iteration(hone):
    for name, language in (("run.py", by_python), ("run.cpp", by_cpp)):
        said_by(hone, 0, "a.onnx", "--cpu", "--iterations", "2", "--save-inputs", f"ins_{name[4:]}", "--save-outputs", f"outs_{name[4:]}", "--gen-script", name)
        assert language(hone.folder).returncode == 0
        assert sorted(path.name for path in (hone.folder / f"outs_{name[4:]}").iterdir()) == ["0000000000.json", "0000000001.json"]
        said = said_by(hone, 0, "a.onnx", "--cpu", "--load-inputs", f"ins_{name[4:]}", "--load-outputs", f"outs_{name[4:]}")
        assert "Passed: 2/2" in said
        done = language(hone.folder)  # once more: the folders are not empty
        assert done.returncode == 1 and "is not empty" in done.stdout


def test_row_4_what_scripts_cannot_do_is_said(hone):
    for name, words, said in (
            ("no.py", ["--cpu", "--tap", "*"], "--tap is not written into scripts"),
            ("no.py", ["--cpu", "--ref", "--json", "-"], "a script's exit status is its verdict"),
            ("no.cpp", ["--cpu", "--ref", "--load-inputs", "in.npz"], "programs in C++ have no archives"),
            ("no.py", [], "a script needs a runner")):
        assert said in said_by(hone, 2, "a.onnx", *words, "--gen-script", name) and not (hone.folder / name).exists()


@with_onnxruntime
@pytest.mark.parametrize("name, language", [("run.py", by_python), ("run.cpp", by_cpp)])
def test_row_4_the_cookbooks_third_case(hone, monkeypatch, name, language):
    """The classifier by ONNX Runtime and by an engine: the script runs alone, comes to the verdict, and keeps what the line says."""
    monkeypatch.setenv("HONE_ONNXRUNTIME_LIB", next(filter(os.path.exists, LIBRARIES)))
    mnist(hone.folder / "mnist.onnx")
    both = ["mnist.onnx", "--onnxrt", "--trt", *SHAPES]
    kept = {"inputs": "in.json", "outputs": "out.json", "tactics": "t.json"}
    said_by(hone, 0, *both, f"--gen-script={name}", *(f"--save-{what}={file}" for what, file in kept.items()))
    assert not any((hone.folder / file).exists() for file in ("t.json", "out.json")), "writing a script runs nothing"
    done = language(hone.folder)
    assert done.returncode == 0, done.stdout
    assert summaries(done.stdout) == summaries(hone("run", *both)) and "onnxrt-0" in done.stdout
    assert "onnxrt-0" in said_by(hone, 0, "mnist.onnx", "--ref", "--load-inputs", "in.json", "--load-outputs", "out.json", "--allow-unmatched")
    assert json.loads((hone.folder / "t.json").read_text())["replay"]
    assert "==== Run Results (2 runners) ====" in hone("inspect", "data", "out.json") and "Layer: " in hone("inspect", "tactics", "t.json")
    for file in kept.values():
        (hone.folder / file).unlink()


@with_onnxruntime
def test_row_4_programs_in_cpp_have_onnx_runtime(hone, monkeypatch):
    monkeypatch.setenv("HONE_ONNXRUNTIME_LIB", next(filter(os.path.exists, LIBRARIES)))
    for words in (["b.onnx", "--onnxrt", "--cpu", "--onnx-outputs", "*", "--atol=-1", "--rtol=-1"], ["mixed.onnx", "--onnxrt", "--ref"]):
        assert "onnxrt-0" in same_verdict(hone, words, by_cpp)
    monkeypatch.setenv("HONE_ONNXRUNTIME_LIB", "nothing.so")
    done = subprocess.run(["./made"], cwd=hone.folder, encoding="utf-8", capture_output=True, timeout=300, check=False)
    assert done.returncode == 1 and "searched: nothing.so" in done.stderr
