# SPDX-License-Identifier: Apache-2.0
"""What is installed suffices, wherever it lies: the examples are built against a moved install tree and run, the library shows its
interface alone, manual pages and completion are there and say the right things."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import tiny
from conftest import BIN, PACKAGE, ROOT
from onnx import helper

BUILD, EXAMPLES = BIN.parent, ROOT / "examples"


def run(*command, **options):
    """What a command that must succeed printed; stderr too."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
                          check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An install tree that was moved after it was installed, with spaces on the way."""
    first, moved = (tmp_path_factory.mktemp("install") / name for name in ("first", "moved here"))
    for component in ("programs", "system", "development"):
        run("cmake", "--install", BUILD, "--prefix", first, "--component", component)
    first.rename(moved)
    yield moved
    shutil.rmtree(moved)


@pytest.fixture(scope="module")
def programs(place, tmp_path_factory):
    """The examples, by find_package."""
    build = tmp_path_factory.mktemp("examples")
    run("cmake", "-G", "Ninja", "-S", EXAMPLES, "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={place}", "-Dhone_DIR=")
    run("cmake", "--build", build)
    return build


def picture(path, size):
    values = np.random.default_rng(5).integers(0, 256, (*size, 3), np.uint8)
    path.write_bytes(f"P6\n{size[1]} {size[0]}\n255\n".encode() + values.tobytes())
    image = (values.astype(np.float32) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return image.astype(np.float32).transpose(2, 0, 1)[None]


def answers(model, values):
    session = onnxruntime.InferenceSession(str(model))
    return session.run(None, {session.get_inputs()[0].name: values})[0]


def python(program, *arguments, **options):
    return run(sys.executable, EXAMPLES / program, *arguments, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, **options)


def test_pictures_are_classified_in_c_and_python(folder, programs):
    model = tiny.convolutions(folder / "model.onnx")
    scores = answers(model, picture(folder / "picture.ppm", (16, 16)))[0]
    best = np.argsort(-scores)[:5]
    found = [line.split() for line in run(programs / "classify", model, folder / "picture.ppm").splitlines()]
    assert [int(place) for place, _ in found] == best.tolist()
    np.testing.assert_allclose([float(score) for _, score in found], scores[best], atol=2e-3)
    for _ in ("builds", "loads"):
        words = python("classify.py", model, folder / "picture.ppm").split()[1:]
        assert [int(word.split(":")[0]) for word in words] == best.tolist()
    assert (folder / "model.plan").exists()
    done = subprocess.run([programs / "classify", folder / "nowhere.onnx", folder / "picture.ppm"], capture_output=True, text=True)
    assert done.returncode == 1 and "nowhere.onnx" in done.stderr


def test_a_server_answers_from_several_contexts(folder, programs):
    model = tiny.save(folder / "model.onnx", [helper.make_node("Gemm", ["x", "w"], ["y"])],
                      {"w": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}, inputs=[("x", [1, 4])])
    requests = np.random.default_rng(3).integers(-9, 10, (200, 4)).astype(np.float32)
    said = run(programs / "server", model, 3, input="\n".join(" ".join(map(str, row)) for row in requests) + "\n")
    found = dict((int(number), np.array(values, np.float32)) for number, *values in map(str.split, said.splitlines()))
    assert sorted(found) == list(range(200))
    for number, values in found.items():
        np.testing.assert_allclose(values, answers(model, requests[number][None])[0], rtol=1e-4, atol=1e-4)


def test_waiting_requests_share_an_inference(folder):
    said = python("dynamic_batch.py", tiny.perceptron(folder / "model.onnx"), 60)
    batches = [(int(rows), int(count)) for rows, count in re.findall(r"(\d+) \((\d+)x\)", said)]
    assert said.startswith("60 answers") and sum(rows * count for rows, count in batches) == 60 and max(batches)[0] <= 16


def test_a_loop_answers_from_several_contexts(folder):
    model = tiny.save(folder / "model.onnx", [helper.make_node("Gemm", ["x", "w"], ["y"])],
                      {"w": np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)}, inputs=[("x", [1, 4])])
    requests = np.random.default_rng(3).integers(-9, 10, (60, 4)).astype(np.float32)
    said = python("server.py", model, 3, input="\n".join(" ".join(map(str, row)) for row in requests) + "\nno numbers\n").splitlines()
    assert [line for line in said if line.startswith("60 error:")]
    found = {int(number): np.array(values, np.float32) for number, *values in map(str.split, said) if number != "60"}
    assert sorted(found) == list(range(60))
    for number, values in found.items():
        np.testing.assert_allclose(values, answers(model, requests[number][None])[0], rtol=1e-4, atol=1e-4)


def test_an_engine_works_between_the_operators_of_torch(folder):
    """With torch where it is installed; else with as much of it as the example calls."""
    model = tiny.perceptron(folder / "model.onnx")
    path = [str(PACKAGE), *([] if importlib.util.find_spec("torch") else [str(ROOT / "tests/fake")])]
    said = run(sys.executable, EXAMPLES / "torch_stream.py", model, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}).splitlines()
    for step in range(3):
        assert float(said[step].split()[-1]) == pytest.approx(answers(model, np.full((1, 4), step, np.float32)).sum(), rel=1e-4)


def test_a_build_shows_how_far_it_is_and_may_be_cut_short(folder):
    model = tiny.convolutions(folder / "model.onnx")
    for seconds, outcome in ((0, "cut short"), ("inf", "complete"), ("inf", r", 0 new times, complete")):
        assert re.search(outcome, python("progress_bar.py", model, folder / "model.plan", seconds))
        run(BIN / "trtexec", f"--loadEngine={folder}/model.plan", "--duration=0", "--iterations=1", "--warmUp=0")


def test_pkg_config_names_what_a_program_needs(folder, place):
    env = {**os.environ, "PKG_CONFIG_PATH": str(place / "lib/pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "hone"], env=env, capture_output=True, text=True, check=True).stdout.strip()
    run("sh", "-c", f"cc {EXAMPLES}/classify.c {flags} -o {folder}/classify", env=env)
    assert "usage" in subprocess.run([folder / "classify"], env={**os.environ, "LD_LIBRARY_PATH": str(place / "lib")},
                                     capture_output=True, text=True).stderr
    assert run("pkg-config", "--modversion", "hone", env=env).split() == run(place / "bin/hone", "--version").split()[1:]


def test_the_library_shows_its_interface_alone(place):
    header = "\n".join(path.read_text() for path in sorted((place / "include/hone").glob("*.h")))
    declared = set(re.findall(r"^HONE_API [^;]*?\b(hone_\w+)\(", header, re.MULTILINE))
    shown = {line.split()[-1] for line in run("nm", "-D", "--defined-only", place / "lib/libhone.so").splitlines()}
    assert shown == declared and len(shown) > 30
    assert re.search(r"SONAME.*\[libhone\.so\.\d+\]", run("readelf", "-d", place / "lib/libhone.so"))


THROUGH_TENSORRT = """
import ctypes, numpy as np, os, sys, tensorrt as trt
assert "site" in trt.__file__, trt.__file__
log = trt.Logger()
builder = trt.Builder(log)
network = builder.create_network()
parser = trt.OnnxParser(network, log)
assert parser.parse_from_file(sys.argv[1])
config, profile = builder.create_builder_config(), builder.create_optimization_profile()
config.builder_optimization_level = 0
profile.set_shape("x", (1, 4), (2, 4), (8, 4))
config.add_optimization_profile(profile)
engine = trt.Runtime(log).deserialize_cuda_engine(builder.build_serialized_network(network, config))
context, x, y = engine.create_execution_context(), np.full((2, 4), 0.5, np.float32), np.zeros((2, 8), np.float32)
context.set_input_shape("x", x.shape)
assert context.execute_v2([x.ctypes.data, y.ctypes.data])
cuda, count = ctypes.CDLL("libcudart.so"), ctypes.c_int()  # the stand-in
assert cuda.cudaGetDeviceCount(ctypes.byref(count)) == 0 and count.value == 1
print(trt.__version__, *y.sum(1).tolist())
"""


def test_the_wheels_of_both_modules_are_installed(folder):
    """hone-tensorrt's is made here; hone's is what ./dev wheel has left, else the build's package stands for it."""
    if not (PACKAGE / "hone").exists():
        pytest.skip("this build has no Python binding (sanitizers)")
    made, site = folder / "made", folder / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", made, f"--config-settings=build-dir={folder}/tree",
        ROOT / "python/tensorrt", env={**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})
    wheel, = made.glob("hone_tensorrt-*-py3-none-*.whl")
    left = sorted((ROOT / "build/wheel").glob("hone-*.whl"))
    run(*pip, "install", "--no-deps", "--no-index", "--target", site, wheel, *left[-1:])
    assert (site / "tensorrt/_cudart/libcudart.so").exists() and (site / "hone").exists() == bool(left)
    path = [str(site)] + ([] if left else [str(PACKAGE)])
    said = run(sys.executable, "-c", THROUGH_TENSORRT, tiny.perceptron(folder / "model.onnx"),
               env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "HONE_TENSORRT_DEVICE": "cpu", "LD_LIBRARY_PATH": ""}).splitlines()[-1]
    version, *sums = said.split()
    assert version == "10.16.1"
    np.testing.assert_allclose([float(each) for each in sums], answers(folder / "model.onnx", np.full((2, 4), 0.5, np.float32)).sum(1), rtol=1e-4)


def test_trtexec_runs_from_the_moved_tree(folder, place):
    model = tiny.perceptron(folder / "model.onnx")
    said = run(place / "bin/trtexec", f"--onnx={model}", "--duration=0", "--iterations=1", "--warmUp=0", "--builderOptimizationLevel=0")
    assert "PASSED" in said


def completions(script, lines):
    """What bash offers at the end of each line."""
    drive = r"""
compopt() { :; }
while IFS= read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE}
  IFS=$' \t=' read -ra COMP_WORDS <<<"$COMP_LINE"
  [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  "_hone$([[ ${COMP_WORDS[0]} == trtexec ]] && echo _trtexec)" "${COMP_WORDS[0]}"
  echo "${COMPREPLY[*]}"
done"""
    said = run("bash", "-c", f"source '{script}'\n{drive}", input="\n".join(lines) + "\n", cwd=script.parent.parent)
    return dict(zip(lines, map(str.split, said.splitlines())))


def test_shells_complete_commands_flags_and_values(place):
    found = completions(place / "share/bash-completion/completions/hone", [
        "hone qu", "hone inspect ca", "hone inspect --lay", "hone inspect changes --fr", "hone build --eff", "hone build --effort ",
        "hone build m.onnx --sparsity=e", "trtexec --onn", "trtexec --sparsity=", "hone trtexec --sparsity=d", "trtexec --onnx=comp"])
    assert found == {
        "hone qu": ["quantize"], "hone inspect ca": ["capability"], "hone inspect --lay": found["hone inspect --lay"],
        "hone inspect changes --fr": ["--from"], "hone build --eff": ["--effort"], "hone build --effort ": list("012345"),
        "hone build m.onnx --sparsity=e": ["enable"], "trtexec --onn": ["--onnx="], "trtexec --sparsity=": ["disable", "enable", "force"],
        "hone trtexec --sparsity=d": ["disable"], "trtexec --onnx=comp": ["completions"]}
    assert found["hone inspect --lay"][0] == "--layers"
    for shell, file in (("zsh", "zsh/vendor-completions/_hone"), ("fish", "fish/vendor_completions.d/hone.fish")):
        if shutil.which(shell):
            run(shell, "-n", place / "share" / file)


def test_every_command_has_a_manual_page(place):
    pages = {path.stem: path for path in (place / "share/man/man1").iterdir()}
    commands = re.findall(r"^  ([a-z]+) ", run(place / "bin/hone", "--help"), re.MULTILINE)
    assert {"hone", "trtexec"} | {f"hone-{word}" for word in commands if word not in ("trtexec", "help")} <= set(pages)
    assert "hone-inspect-changes" in pages
    assert run(place / "bin/hone", "help", "man", "inspect", "changes") == pages["hone-inspect-changes"].read_text()
    assert "did you mean build" in run("sh", "-c", f"! '{place}/bin/hone' help man biuld")
    for name, path in pages.items():
        text = path.read_text()
        assert text.isascii() and f"\n{name.replace('-', chr(92) + '-')} {chr(92)}- " in text
        if shutil.which("mandoc"):
            assert run("mandoc", "-Tlint", "-Wwarning", path) == ""
