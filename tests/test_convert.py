# SPDX-License-Identifier: Apache-2.0
"""python -m hone.convert: files of frameworks as ONNX that Hone runs with the framework's results; what is missing, unknown or damaged
says so and leaves no file. scikit-learn and LightGBM are installed by ./dev test; torch, TensorFlow and XGBoost are asked where they are."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import BIN, IMPORTED, PACKAGE

sys.path.insert(0, str(PACKAGE))
hone = pytest.importorskip("hone", reason="this build has no Python binding (sanitizers)")
import hone.convert  # noqa: E402
import hone.onnxruntime as ort  # noqa: E402



def convert(*words, **environment):
    done = subprocess.run([sys.executable, "-m", "hone.convert", *map(str, words)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": IMPORTED, **environment})
    assert "Traceback" not in done.stderr, done.stderr
    return done


def converted(source, *words):
    """A session of what a file becomes."""
    target = source.with_suffix(".onnx")
    done = convert(source, "-o", target, *words)
    assert done.returncode == 0 and done.stdout == f"{target} written\n", done.stderr
    assert not [each for each in source.parent.iterdir() if each.name.startswith(".hone")]
    return ort.InferenceSession(target)


def test_what_it_cannot_open_it_names(folder):
    (folder / "weights.pth").write_bytes(b"x")
    (folder / "model.xyz").write_bytes(b"x")
    (folder / "graph.pb").write_bytes(b"x")
    (folder / "empty").mkdir()
    (folder / "broken.pkl").write_bytes(b"\x80\x04K\x01K")
    (folder / "number.pkl").write_bytes(pickle.dumps(7))
    for name, status, said, hint in (
            ("none.keras", 3, "there is no such file", ""), ("model.xyz", 2, "no ending of a framework's file", ".keras"),
            ("weights.pth", 2, "does not say what it is called with", "torch.export.save"), ("empty", 2, "without a saved_model.pb", ""),
            ("graph.pb", 2, "frozen graph", "--outputs"), ("broken.pkl", 1, "cannot be unpickled", "versions"),
            ("number.pkl", 2, "builtins.int", "pickle the fitted")):
        done = convert(folder / name, "-o", folder / "out.onnx")
        assert done.returncode == status and said in done.stderr and hint in done.stderr, (name, done.returncode, done.stderr)
        assert done.stderr.startswith("hone convert: ")
    assert not list(folder.glob("*.onnx")) and not list(folder.glob(".hone*"))
    assert convert("x.keras").returncode == 2  # no output
    assert convert("x.keras", "-o", "y", "--input-shapes", "x=[1]").returncode == 2


def test_missing_packages_are_named_with_what_to_install(folder):
    blocked = folder / "blocked"
    blocked.mkdir()
    for name in ("tensorflow", "tf2onnx", "lightgbm", "xgboost", "skl2onnx", "keras"):
        (blocked / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name='{name}')\n")
    (folder / "saved").mkdir()
    (folder / "saved" / "saved_model.pb").write_bytes(b"")
    for name, wanted in (("saved", "pip install tensorflow-cpu tf2onnx"), ("m.keras", "pip install tensorflow-cpu tf2onnx keras"),
                         ("m.tflite", "pip install tensorflow-cpu"), ("m.txt", "pip install lightgbm onnxmltools"), ("m.json", "pip install xgboost")):
        if name != "saved":
            (folder / name).write_bytes(b"x")
        done = convert(folder / name, "-o", folder / "out.onnx", PYTHONPATH=os.pathsep.join([str(blocked), IMPORTED]))
        assert done.returncode == 4 and wanted in done.stderr, (name, done.returncode, done.stderr)
    (folder / "m.pkl").write_bytes(b"cnothing_here.at_all\nThing\n.")
    done = convert(folder / "m.pkl", "-o", folder / "out.onnx")
    assert done.returncode == 4 and "pip install nothing_here" in done.stderr


def table():
    """Rows of two numbers and two texts, and what is to be learnt of them."""
    draw = np.random.default_rng(3)
    rows = np.empty((300, 4), object)
    rows[:, 0], rows[:, 1] = draw.uniform(18, 80, 300), draw.uniform(0, 100, 300)  # no value lies on a threshold between two others
    rows[:, 2], rows[:, 3] = draw.choice(["Berlin", "Paris", "Kyōto"], 300), draw.choice(["first", "second", "third"], 300)
    return rows, np.where((rows[:, 0] > 40) ^ (rows[:, 2] == "Paris"), "yes", "no")


def pipeline(last):
    compose, impute, pipelines, preprocessing = (pytest.importorskip(f"sklearn.{name}") for name in ("compose", "impute", "pipeline", "preprocessing"))
    numbers = pipelines.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    columns = compose.ColumnTransformer([("numbers", numbers, [0, 1]), ("city", preprocessing.OneHotEncoder(handle_unknown="ignore"), [2]),
                                         ("class", preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), slice(3, 4))])
    return pipelines.Pipeline([("columns", columns), ("last", last)])


@pytest.mark.parametrize("kind", ["LogisticRegression", "RandomForestClassifier", "LGBMClassifier"])
def test_a_pipeline_of_text_and_categories(folder, kind):
    pytest.importorskip("skl2onnx")
    if kind == "LGBMClassifier":
        last = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=20, verbose=-1)
    elif kind == "RandomForestClassifier":
        last = pytest.importorskip("sklearn.ensemble").RandomForestClassifier(20, max_depth=4, random_state=1)
    else:
        last = pytest.importorskip("sklearn.linear_model").LogisticRegression(max_iter=1000)
    rows, wanted = table()
    model = pipeline(last).fit(rows, wanted)
    (folder / "pipeline.pkl").write_bytes(pickle.dumps(model))
    session = converted(folder / "pipeline.pkl")
    assert [(each.name, each.type) for each in session.get_inputs()] == [
        ("x0", "tensor(float)"), ("x1", "tensor(float)"), ("x2", "tensor(string)"), ("x3", "tensor(string)")]
    rows[0, 2], rows[1, 3] = "Lima", "fourth"  # never seen
    for count in (300, 1, 17):
        feeds = {f"x{at}": rows[:count, at:at + 1].astype(np.float32 if at < 2 else object) for at in range(4)}
        label, chances = session.run(None, feeds)
        assert label.tolist() == model.predict(rows[:count]).tolist()
        np.testing.assert_allclose(chances, model.predict_proba(rows[:count]), atol=1e-5)


def test_columns_by_name_mask_and_one_text_input(folder):
    pytest.importorskip("skl2onnx")
    learners = pytest.importorskip("hone.convert.learners")
    rows, wanted = table()
    preprocessing, linear = pytest.importorskip("sklearn.preprocessing"), pytest.importorskip("sklearn.linear_model")
    model = pytest.importorskip("sklearn.pipeline").make_pipeline(preprocessing.OneHotEncoder(), linear.LogisticRegression()).fit(rows[:, 2:], wanted)
    (folder / "text.pkl").write_bytes(pickle.dumps(model))
    session = converted(folder / "text.pkl")
    assert [(each.name, each.type, each.shape[1]) for each in session.get_inputs()] == [("X", "tensor(string)", 2)]
    assert session.run(None, {"X": rows[:, 2:]})[0].tolist() == model.predict(rows[:, 2:]).tolist()
    assert learners._places("b", ["a", "b"], 2) == [1] and learners._places([False, True], [], 2) == [1]
    assert learners._places(slice("a", "b"), ["a", "b", "c"], 3) == [0, 1] and learners._places(slice(1, None), [], 3) == [1, 2]


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_lightgbm_files(folder, classes):
    lightgbm = pytest.importorskip("lightgbm")
    pytest.importorskip("onnxmltools")
    draw = np.random.default_rng(5)
    x = draw.normal(size=(400, 6)).astype(np.float32)
    value = x[:, 0] * 2 + np.sin(x[:, 1])
    model = (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(n_estimators=25, verbose=-1)
    model.fit(x, np.digitize(value, [0, 1][:classes - 1]) if classes else value)
    model.booster_.save_model(folder / "model.txt")
    found = converted(folder / "model.txt").run(None, {"X": x})
    if classes:
        assert found[0].tolist() == model.predict(x).tolist()
    np.testing.assert_allclose(found[-1].reshape(400, -1), (model.predict_proba(x) if classes else model.predict(x)).reshape(400, -1), atol=1e-5)


@pytest.mark.parametrize("classes, ending", [(0, "json"), (2, "ubj"), (3, "json")])
def test_xgboost_files(folder, classes, ending):
    xgboost = pytest.importorskip("xgboost")
    pytest.importorskip("onnxmltools")
    draw = np.random.default_rng(6)
    x = draw.normal(size=(400, 6)).astype(np.float32)
    value = x[:, 0] * 2 + np.sin(x[:, 1])
    model = (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(n_estimators=25)
    model.fit(x, np.digitize(value, [0, 1][:classes - 1]) if classes else value)
    model.save_model(folder / f"model.{ending}")
    found = converted(folder / f"model.{ending}").run(None, {"X": x})
    np.testing.assert_allclose(found[-1].reshape(400, -1), (model.predict_proba(x) if classes else model.predict(x)).reshape(400, -1), atol=1e-4)


def test_an_exported_program_of_torch(folder):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)).eval()
    x = torch.randn(2, 3, 8, 8)
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},)), folder / "model.pt2")
    session = converted(folder / "model.pt2")
    for count in (2, 5):
        x = torch.randn(count, 3, 8, 8)
        np.testing.assert_allclose(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0], model(x).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("form", ["m.keras", "m.h5", "saved", "m.tflite"])
def test_a_functional_model_of_keras(folder, form):
    tensorflow = pytest.importorskip("tensorflow")
    pytest.importorskip("tf2onnx")
    layers = tensorflow.keras.layers
    image = tensorflow.keras.Input((12, 12, 1), name="image")
    one = layers.Conv2D(4, 3, activation="relu")(image)
    two = layers.Conv2D(4, 3, padding="same")(one)
    model = tensorflow.keras.Model(image, layers.Dense(5, activation="softmax")(layers.Flatten()(layers.add([one, two]))))
    if form == "saved":
        model.export(folder / form, verbose=False)
    elif form == "m.tflite":
        (folder / form).write_bytes(tensorflow.lite.TFLiteConverter.from_keras_model(model).convert())
    else:
        model.save(folder / form)
    session = converted(folder / form)
    x = np.random.default_rng(7).random((1 if form == "m.tflite" else 6, 12, 12, 1), np.float32)
    np.testing.assert_allclose(session.run(None, {session.get_inputs()[0].name: x})[0], model.predict(x, verbose=0), atol=1e-5)


@pytest.mark.parametrize("ending", ["onnx", "plan"])
def test_the_command_starts_it(folder, ending):
    """hone convert, which gives options on and makes a plan of what comes back."""
    pytest.importorskip("skl2onnx")
    x = np.random.default_rng(9).normal(size=(100, 2)).astype(np.float32)
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression().fit(x, x[:, 0] > x[:, 1])
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    options = ["--cpu", "--input-shapes", "X:[5,2]"] if ending == "plan" else ["--opset", "15"]
    done = subprocess.run([BIN / "hone", "convert", folder / "model.pkl", "-o", folder / f"out.{ending}", *options], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": IMPORTED, "PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    found = ort.InferenceSession(folder / f"out.{ending}").run(None, {"X": x[:5]})
    assert found[0].tolist() == model.predict(x[:5]).tolist()
    np.testing.assert_allclose(found[1], model.predict_proba(x[:5]), atol=1e-5)
    assert {each.name for each in folder.iterdir()} == {"model.pkl", f"out.{ending}"}
