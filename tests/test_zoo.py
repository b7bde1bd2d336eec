# SPDX-License-Identifier: Apache-2.0
"""Every model of the zoo builds and answers as ONNX Runtime does, however it is run."""

import json

import materialise
import numpy as np
import onnx
import pytest
import zoo as models
from conftest import Program
from inference import check_plan, differences, nats_per_byte, reference_session, relative_error, run_plan, session_of
from liven import DETECTION, liven

TOLERANCE = 1e-4
CLOSER = {"llama_160m_int4.ort": 1e-5}  # what four-bit weights may add to exact arithmetic

# Level 1 times one candidate of each kind: the same kernels, held against the reference as often, a fraction of the time. The
# small models get the default.
QUICK = ["--builderOptimizationLevel=1", "--avgTiming=1"]
FEW = 4  # inferences in a row of the big models; `hone check` runs them in six other ways, too
TRAINED = {"digits_cnn", "byte_gpt"}
SMALL = {"resnet18.ts", "mobilenet_v2.dyn", "mobilenet_v3_large.ts", "squeezenet1_1.ts", "lstm_tagger.ts", "gru_tagger.ts"}


def zoo_names():
    names = [name for name in materialise.names() if name not in DETECTION.keys() | TRAINED]
    return [pytest.param(name, marks=() if name in SMALL else pytest.mark.slow) for name in names]


def build(trtexec, model, name, batches):
    """The plan file for all of `batches`."""
    profile = zip(("min", "opt", "max"), (batches[0], batches[0], batches[-1]))
    level = [] if name in SMALL | TRAINED else QUICK
    flags = [f"--{end}Shapes={models.shape_text(name, batch)}" for end, batch in profile if models.shape_text(name)]
    trtexec(f"--onnx={model}", "--saveEngine=m.plan", "--skipInference", *level, *flags)
    return "m.plan"


@pytest.mark.parametrize("name", zoo_names())
def test_agrees_with_onnxruntime(name, trtexec, zoo):
    path = zoo(name)
    session = reference_session(path)
    outputs = [output.name for output in session.get_outputs()]
    batches = (1, 3, 8) if models.has_dynamic_batch(name) else (1,)
    plan = build(trtexec, path, name, batches)

    def hold(found, feeds, batch):
        for output, expected in zip(outputs, session.run(outputs, feeds)):
            error = relative_error(found[output], expected)
            print(f"{name} batch {batch} {output}: relative error {error:.2e}")
            assert np.isfinite(expected).all() and error <= CLOSER.get(name, TOLERANCE), f"batch {batch}, output {output}: {error:.2e}"

    sets = [{value.name: value.values(1, draw) for value in models.inputs(name)} for draw in (0, 1)]
    hone = Program(trtexec.folder, "hone")
    report, found = check_plan(hone, plan, sets, models.shape_text(name, 1), inferences=100 if name in SMALL else FEW)
    assert not differences(report)
    for outputs_found, feeds in zip(found, sets):
        hold(outputs_found, feeds, 1)
    for batch in batches[1:]:
        feeds = {value.name: value.values(batch) for value in models.inputs(name)}
        hold(run_plan(trtexec, plan, feeds, outputs, models.shape_text(name, batch)), feeds, batch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DETECTION))
def test_finds_the_boxes_that_onnxruntime_finds(name, trtexec, zoo):
    model = onnx.load(zoo(name))
    feeds = {value.name: value.values(1) for value in models.inputs(name)}
    liven(model, feeds, DETECTION[name])
    onnx.save(model, trtexec.folder / "m.onnx")
    session = session_of(model.SerializeToString())
    boxes, scores, labels = names = [output.name for output in session.get_outputs()]
    expected = dict(zip(names, session.run(names, feeds)))
    print(f"{name}: {len(expected[scores])} boxes of {len(set(expected[labels]))} labels")
    assert len(expected[scores]) >= 100 and len(set(expected[labels])) >= 5
    trtexec("--onnx=m.onnx", "--saveEngine=m.plan", "--skipInference", "--noTF32", *QUICK)  # thresholds decide what is a box
    report, (found, _) = check_plan(Program(trtexec.folder, "hone"), "m.plan", [feeds, {value.name: value.values(1, 1) for value in models.inputs(name)}], inferences=FEW)
    assert not differences(report)
    assert found[scores].shape == expected[scores].shape
    np.testing.assert_allclose(found[scores], expected[scores], atol=1e-4)
    # Boxes whose scores are closer than the tolerance may have changed places.
    left = set(range(len(found[scores])))
    for box, score, label in zip(expected[boxes], expected[scores], expected[labels]):
        like = [i for i in left if found[labels][i] == label and abs(found[scores][i] - score) <= 1e-4
                and np.abs(found[boxes][i] - box).max() <= 0.05]
        assert like, f"no box {box} with label {label} and score {score}"
        left.remove(like[0])


def has_bf16_matmuls(folder):
    return next(backend for backend in json.loads(Program(folder, "hone")("doctor", "--json"))["backends"] if backend["name"] == "cpu")["bf16Matmuls"]


BF16_BY_ESTIMATE = ["--bf16", "--builderOptimizationLevel=0"]  # on a busy machine measuring may choose FP32 everywhere


def check_that_bf16_is_used(trtexec):
    log = trtexec("--loadEngine=m.plan", "--iterations=1", "--duration=0", "--warmUp=0")
    used = next(line for line in log.splitlines() if "Precision used:" in line)
    print(used)
    assert "BF16 in" in used


def build_trained(trtexec, model, *profile, flags=()):
    trtexec(f"--onnx={model}", "--saveEngine=m.plan", "--skipInference", *profile, *flags)


def digits_logits(trtexec, zoo, images, flags=()):
    build_trained(trtexec, zoo("digits_cnn"), "--minShapes=image:1x1x8x8", "--optShapes=image:64x1x8x8",
                  f"--maxShapes=image:{len(images)}x1x8x8", flags=flags)
    return run_plan(trtexec, "m.plan", {"image": images}, ["logits"], f"image:{len(images)}x1x8x8")["logits"]


def test_digits_cnn_keeps_its_accuracy(trtexec, zoo):
    data = np.load(materialise.ZOO / "digits.npz")
    images, labels = data["test_images"], data["test_labels"]
    logits = digits_logits(trtexec, zoo, images)
    accuracy = float((logits.argmax(1) == labels).mean())
    print(f"digits_cnn: {100 * accuracy:.2f} % of {len(labels)} images")
    assert round(100 * accuracy, 1) >= 99.5
    expected = reference_session(zoo("digits_cnn")).run(["logits"], {"image": images})[0]
    assert relative_error(logits, expected) <= TOLERANCE


def test_digits_cnn_loses_little_in_bf16(folder, trtexec, zoo, monkeypatch):
    """Convolutions are emulated where the processor has no matmuls of bf16."""
    if not has_bf16_matmuls(folder):
        monkeypatch.setenv("HONE_CPU_BF16", "emulated")
        if not has_bf16_matmuls(folder):
            pytest.skip("bf16 needs AVX-512")
    data = np.load(materialise.ZOO / "digits.npz")
    images, labels = data["test_images"], data["test_labels"]
    logits = digits_logits(trtexec, zoo, images, BF16_BY_ESTIMATE)
    check_that_bf16_is_used(trtexec)
    accuracy = float((logits.argmax(1) == labels).mean())
    print(f"digits_cnn in bf16: {100 * accuracy:.2f} % of {len(labels)} images")
    assert 100 * accuracy >= 99.5 - 0.3


def test_digits_cnn_keeps_its_accuracy_in_int8(trtexec, zoo):
    data = np.load(materialise.ZOO / "digits.npz")
    np.savez(trtexec.folder / "train.npz", image=data["train_images"])
    logits = digits_logits(trtexec, zoo, data["test_images"], ["--int8", "--calibData=train.npz"])
    accuracy = float((logits.argmax(1) == data["test_labels"]).mean())
    print(f"digits_cnn in int8: {100 * accuracy:.2f} % of {len(logits)} images")
    assert 100 * accuracy >= 99.0


def byte_gpt_nats(trtexec, zoo, flags=(), typical=8):
    """The nats per byte of Hone, of ONNX Runtime and as trained; built for `typical` windows, run with eight."""
    data = np.load(materialise.ZOO / "bytes.npz")
    windows = data["windows"].astype(np.int64)
    context, targets = windows[:, :-1], windows[:, 1:]
    count, length = 8, context.shape[1]
    build_trained(trtexec, zoo("byte_gpt"), f"--minShapes=bytes:1x{length}", f"--optShapes=bytes:{typical}x{length}",
                  f"--maxShapes=bytes:{count}x{length}", flags=flags)
    session = reference_session(zoo("byte_gpt"))
    found, expected = [], []
    for start in range(0, len(context), count):
        feeds = {"bytes": context[start:start + count]}
        answer = run_plan(trtexec, "m.plan", feeds, ["logits"], f"bytes:{count}x{length}")["logits"]
        found.append(nats_per_byte(answer, targets[start:start + count]))
        expected.append(nats_per_byte(session.run(["logits"], feeds)[0], targets[start:start + count]))
    print(f"byte_gpt: {np.mean(found):.6f} nats per byte, ONNX Runtime {np.mean(expected):.6f}")
    return np.mean(found), np.mean(expected), float(data["nats_per_byte"])


def test_byte_gpt_keeps_its_nats_per_byte(trtexec, zoo):
    found, expected, trained = byte_gpt_nats(trtexec, zoo)
    assert abs(found - expected) <= 1e-4
    assert abs(found - trained) <= 1e-3


def test_byte_gpt_loses_little_in_int8(trtexec, zoo):
    windows = np.load(materialise.ZOO / "bytes.npz")["windows"].astype(np.int64)
    np.savez(trtexec.folder / "some.npz", bytes=windows[:16, :-1])
    found, expected, _ = byte_gpt_nats(trtexec, zoo, ["--int8", "--calibData=some.npz"])
    assert found - expected <= 0.02


def test_byte_gpt_loses_little_in_bf16(folder, trtexec, zoo):
    if not has_bf16_matmuls(folder):
        pytest.skip("this processor has no matmuls of bf16")
    found, expected, _ = byte_gpt_nats(trtexec, zoo, BF16_BY_ESTIMATE, typical=1)
    check_that_bf16_is_used(trtexec)
    assert found - expected <= 0.005


COUNTED = ["resnet18.dyn", "mobilenet_v3_large.dyn", "lstm_tagger.ts", "gru_tagger.ts", "hf_distilbert.ts"]


@pytest.mark.slow
def test_models_allocate_nothing_after_their_first_runs(folder, zoo):
    """The program that counts is a unit test; here it gets models."""
    counter = Program(folder, "../unit/hone_allocation_test")
    report = counter("--gtest_filter=*Given", env={"ALLOCATION_MODELS": ":".join(str(zoo(name)) for name in COUNTED)})
    assert "[  PASSED  ] 1 test." in report and "SKIPPED" not in report
