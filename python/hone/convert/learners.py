# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's pipelines by skl2onnx, XGBoost's and LightGBM's models by onnxmltools, inside pipelines too.

A pipeline that was fitted on a table has an input for each column, of the type that it was fitted on: text where an encoder knows
categories of text, else numbers. A classifier gives its label and a tensor of probabilities, not a list of maps.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

from .common import ConvertError, Missing, Request, Unknown, need

SCIKIT = "scikit-learn skl2onnx"
TREES = ("Tree", "Forest", "Boost", "LGBM", "XGB")


def pickled(request: Request) -> None:
    """What pickle or joblib has written: a pipeline or an estimator, or a booster."""
    model = _unpickled(request)
    family = type(model).__module__.split(".")[0]
    if family == "lightgbm" and type(model).__name__ == "Booster":
        return _booster(request, model, "lightgbm")
    if family == "xgboost" and type(model).__name__ == "Booster":
        raise Unknown(f"{request.source} holds an xgboost.Booster, which does not say whether it classifies", 'booster.save_model("model.json") does')
    if not hasattr(model, "fit"):
        raise Unknown(f"{request.source} holds a {type(model).__module__}.{type(model).__name__}", "pickle the fitted pipeline or estimator")
    return _scikit(request, model)


def _unpickled(request):
    try:
        if request.source.suffix == ".joblib":
            (joblib,) = need("joblib")
            return joblib.load(request.source)
        with open(request.source, "rb") as file:
            return pickle.load(file)
    except ModuleNotFoundError as error:
        raise Missing(f"{request.source} needs the module {error.name}", f"pip install {_package(error.name)}") from error
    except ConvertError:
        raise
    except Exception as error:
        raise ConvertError(f"{request.source}: it cannot be unpickled: {error}", "open it with the versions of Python's packages that wrote it") from error


def _package(module):
    root = (module or "").split(".")[0]
    return {"sklearn": "scikit-learn"}.get(root, root)


def _scikit(request, model):
    (skl2onnx,) = need("skl2onnx", install=SCIKIT)
    _register(model)
    options: dict[Any, Any] = {}
    final = model.steps[-1][1] if hasattr(model, "steps") else model
    if hasattr(final, "predict_proba"):
        options = {id(final): {"zipmap": False}}
    if any(word in type(each).__name__ for each in _parts(model) for word in TREES):
        # Divided in float64, as scikit-learn does: a tree's threshold is one of the values that it has seen, or half-way between two.
        options.update({id(each): {"div": "div_cast"} for each in _parts(model) if type(each).__name__ == "StandardScaler"})
    opset = request.opset and {"": request.opset, "ai.onnx.ml": 3}
    try:
        made = skl2onnx.convert_sklearn(model, initial_types=_types(request, model), options=options, target_opset=opset or _opset(model))
    except ConvertError:
        raise
    except Exception as error:
        raise ConvertError(f"{request.source}: skl2onnx: {_first(error)}", "--example rows.csv says the types of columns; skl2onnx documents which estimators it knows") from error
    _write(request, made)


def _first(error):
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _opset(model):
    """That of the converters of boosted trees, which know no newer ai.onnx.ml than 3."""
    return {"": 17, "ai.onnx.ml": 3} if _boosted(model) else None


def _parts(model):
    """The estimators in a model, itself among them."""
    yield model
    inside = [each for _, each in getattr(model, "steps", [])] + [each[1] for each in getattr(model, "transformers_", [])]
    inside += [each[1] for each in getattr(model, "transformer_list", [])] + list(getattr(model, "estimators_", []) or [])
    for each in inside:
        if hasattr(each, "get_params"):
            yield from _parts(each)


def _boosted(model):
    return {type(each).__name__: each for each in _parts(model) if type(each).__name__ in BOOSTED}


BOOSTED = ("LGBMClassifier", "LGBMRegressor", "XGBClassifier", "XGBRegressor")


def _register(model):
    """Teaches skl2onnx the boosted trees in a pipeline."""
    for name, each in _boosted(model).items():
        need("onnxmltools")
        from skl2onnx import update_registered_converter
        from skl2onnx.common import shape_calculator

        if name.startswith("LGBM"):
            from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm as convert
        else:
            from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost as convert
        classifies = name.endswith("Classifier")
        shapes = shape_calculator.calculate_linear_classifier_output_shapes if classifies else shape_calculator.calculate_linear_regressor_output_shapes
        options = {"nocl": [True, False], "zipmap": [True, False, "columns"]} if classifies else None
        update_registered_converter(type(each), f"Hone{name}", shapes, convert, options=options)


def _types(request, model):
    """[(input, type)] for skl2onnx."""
    from skl2onnx.common import data_types

    kinds = {"text": data_types.StringTensorType, "float": data_types.FloatTensorType, "double": data_types.DoubleTensorType,
             "int": data_types.Int64TensorType, "bool": data_types.BooleanTensorType}
    if request.example:
        return [(name, kinds[kind]([None, 1])) for name, kind in _example_kinds(request.example)]
    names, count = getattr(model, "feature_names_in_", None), getattr(model, "n_features_in_", None)
    if count is None:
        raise Unknown(f"{request.source} does not say how many columns it takes", "--example rows.csv does")
    text = _text_columns(model, range(int(count)))
    if names is None and len(text) in (0, count):
        return [("X", kinds["text" if text else "float"]([None, int(count)]))]
    return [(f"x{at}" if names is None else str(names[at]), kinds["text" if at in text else "float"]([None, 1])) for at in range(int(count))]


def _example_kinds(path):
    (pandas,) = need("pandas")
    rows = pandas.read_pickle(path) if path.suffix in (".pkl", ".pickle") else pandas.read_csv(path)
    letters = {"f": "float", "i": "int", "u": "int", "b": "bool"}
    return [(str(name), letters.get(getattr(dtype, "kind", "O"), "text")) for name, dtype in rows.dtypes.items()]


def _text_columns(model, columns):
    """Those of `columns` (numbers) of which a fitted encoder, imputer or vectoriser knows text."""
    columns = list(columns)
    found = set()
    if hasattr(model, "transformers_"):
        names = list(getattr(model, "feature_names_in_", []))
        for _, each, chosen in model.transformers_:
            if hasattr(each, "get_params"):
                found |= _text_columns(each, [columns[at] for at in _places(chosen, names, len(columns))])
    elif hasattr(model, "steps"):
        for _, each in model.steps:
            found |= _text_columns(each, columns)
            if found or not _keeps_columns(each, columns):
                break
    elif hasattr(model, "vocabulary_"):
        found |= set(columns)
    else:
        kinds = [getattr(each, "dtype", None) for each in _list(getattr(model, "categories_", None))]
        kinds = kinds or [type(each) for each in _list(getattr(model, "statistics_", None))]
        found |= {columns[at] for at, kind in enumerate(kinds) if getattr(kind, "kind", "") in ("O", "U", "S", "T") or kind is str}
    return found


def _list(values):
    return [] if values is None else list(values)


def _keeps_columns(step, columns):
    """Whether what follows a step sees its columns at their places."""
    if step in (None, "passthrough"):
        return True
    return hasattr(step, "transform") and getattr(step, "_n_features_out", len(columns)) == len(columns) and hasattr(step, "statistics_")


def _places(chosen, names, count):
    """The numbers of columns that a ColumnTransformer was told by name, number, slice or mask."""
    if isinstance(chosen, slice):
        return list(range(count))[chosen] if not isinstance(chosen.start or chosen.stop, str) else \
            list(range(names.index(chosen.start) if chosen.start else 0, (names.index(chosen.stop) if chosen.stop else count - 1) + 1))
    chosen = [chosen] if isinstance(chosen, (str, int)) else list(chosen)
    if chosen and all(type(each).__name__ in ("bool", "bool_") for each in chosen):
        return [at for at, each in enumerate(chosen) if each]
    return [names.index(each) if isinstance(each, str) else int(each) for each in chosen]


def xgboost(request: Request) -> None:
    """A model that XGBoost has saved."""
    (framework, onnxmltools) = need("xgboost", "onnxmltools", install="xgboost scikit-learn onnxmltools")
    try:
        booster = framework.Booster(model_file=str(request.source))
        objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    except Exception as error:
        raise ConvertError(f"{request.source}: xgboost: {_first(error)}", 'model.save_model("model.json") writes one') from error
    kind = framework.XGBClassifier if objective.startswith(("binary:logi", "multi:")) else framework.XGBRegressor
    model = kind()
    model.load_model(request.source)
    _by_onnxmltools(request, onnxmltools.convert_xgboost, model, booster.num_features())


def lightgbm(request: Request) -> None:
    """A model that LightGBM has saved."""
    (framework,) = need("lightgbm", install="lightgbm onnxmltools")
    try:
        booster = framework.Booster(model_file=str(request.source))
    except Exception as error:
        raise ConvertError(f"{request.source}: lightgbm: {_first(error)}", 'booster.save_model("model.txt") writes one') from error
    _booster(request, booster, "lightgbm")


def _booster(request, booster, _):
    (onnxmltools,) = need("onnxmltools", install="lightgbm onnxmltools")
    _by_onnxmltools(request, onnxmltools.convert_lightgbm, booster, booster.num_feature(), zipmap=False)


def _by_onnxmltools(request, convert, model, features, **options):
    from onnxmltools.convert.common.data_types import FloatTensorType

    try:
        made = convert(model, initial_types=[("X", FloatTensorType([None, int(features)]))], target_opset=min(request.opset or 15, 15), **options)
    except Exception as error:
        raise ConvertError(f"{request.source}: onnxmltools: {_first(error)}", "onnxmltools documents which objectives and boosters it knows") from error
    _write(request, made)


def _write(request, model):
    with open(request.destination, "wb") as file:
        file.write(model.SerializeToString())


CONVERTERS = {"pickle": pickled, "xgboost": xgboost, "lightgbm": lightgbm}
