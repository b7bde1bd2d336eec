# SPDX-License-Identifier: Apache-2.0
"""Models of one node, and of one learner, from the rows of operator_rows.py, with values for their inputs."""

import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper

DOMAINS = {"": "", "ml": "ai.onnx.ml", "ms": "com.microsoft"}
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "u32": np.uint32, "u8": np.uint8, "i8": np.int8,
         "bool": np.bool_}
OPERAND = re.compile(r"(=?)(\w+)(?:\[([\d,]*)\])?(?:<(\d+)|(>0)|:([-\d.,]+)|\*([\d.]+))?$")
OPSET = 18


def array_of(text, random):
    """(whether it is a constant, its values)"""
    constant, kind, dims, below, positive, given, scale = OPERAND.match(text).groups()
    shape, dtype = [int(size) for size in dims.split(",")] if dims else [], TYPES[kind]
    if given:
        values = np.resize(np.array([float(number) for number in given.split(",")]), shape)
    elif below or dtype is np.bool_:
        values = random.integers(0, int(below or 2), shape)
    else:
        values = random.standard_normal(shape) * (1 if dtype in (np.float32, np.float64, np.float16) else 50) * float(scale or 1)
        values = np.abs(values) + 1 if positive else values
    return bool(constant), np.asarray(values, dtype)


def node_model(name, operands, attributes):
    """(bytes of the model, {input: values})"""
    random, attributes = np.random.default_rng(5), dict(attributes)
    domain, _, op = name.rpartition(":")
    opset, outputs = attributes.pop("opset", OPSET), attributes.pop("outputs", 1)
    if "node_opset" in attributes:  # an attribute of that name
        attributes["opset"] = attributes.pop("node_opset")
    names, inputs, weights, feeds = [], [], [], {}
    for index, text in enumerate(operands):
        names.append(f"in{index}" if text else "")
        if not text:
            continue
        constant, values = array_of(text, random)
        if constant:
            weights.append(numpy_helper.from_array(values, names[-1]))
        else:
            inputs.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(values.dtype), values.shape))
            feeds[names[-1]] = values
    results = [f"out{index}" for index in range(outputs)]
    if "num_outputs" not in attributes and op == "Split":
        attributes["num_outputs"] = outputs
    node = helper.make_node(op, names, results, name="node", domain=DOMAINS[domain], **attributes)
    values = [helper.make_value_info(name, helper.make_tensor_type_proto(TensorProto.UNDEFINED, None)) for name in results]
    for value in values:
        value.ClearField("type")
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "node", inputs, values, weights)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def learner(name, features):
    """A model that is trained, and what its converter wants."""
    from sklearn import ensemble, linear_model, pipeline, preprocessing, svm

    random = np.random.default_rng(5)
    x = random.standard_normal((600, features)).astype(np.float32)
    number, label = x[:, 0] * x[:, 1] + x[:, 2] + 0.1 * random.standard_normal(600), (x[:, :3] @ [[1, 0, 1], [0, 1, -1], [1, -1, 0]]).argmax(1)
    if name == "lightgbm":
        import lightgbm
        return lightgbm.LGBMClassifier(n_estimators=100, random_state=0, verbose=-1).fit(x, label), x
    kinds = {"forest": ensemble.RandomForestClassifier(100, random_state=0), "forest_regressor": ensemble.RandomForestRegressor(100, random_state=0),
             "boosted": ensemble.GradientBoostingClassifier(random_state=0), "boosted_regressor": ensemble.GradientBoostingRegressor(random_state=0),
             "svm": svm.SVC(), "svm_regressor": svm.SVR(), "svm_probability": svm.SVC(probability=True, random_state=0),
             "logistic": linear_model.LogisticRegression(max_iter=500),
             "pipeline": pipeline.make_pipeline(preprocessing.StandardScaler(), preprocessing.Normalizer(), linear_model.LogisticRegression())}
    return kinds[name].fit(x, number if name.endswith("_regressor") else label), x


def learner_model(name, operands, _):
    _, values = array_of(operands[0], np.random.default_rng(6))
    trained, x = learner(name, values.shape[1])
    if name == "lightgbm":
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType
        made = convert_lightgbm(trained, initial_types=[("x", FloatTensorType(values.shape))], zipmap=False, target_opset=15)
    else:
        from skl2onnx import to_onnx
        options = {"zipmap": False} if hasattr(trained, "classes_") else {}
        made = to_onnx(trained, x[:1], options=options, target_opset=OPSET)
    for given, size in ((made.graph.input[0], values.shape),):
        for dim, count in zip(given.type.tensor_type.shape.dim, size):
            dim.dim_value = count
    for result in made.graph.output:  # onnxmltools says that there is one label
        result.type.tensor_type.shape.dim[0].dim_value = values.shape[0]
    return made.SerializeToString(), {made.graph.input[0].name: values}


def model_of(row):
    name, *rest = row
    return learner_model(name.removeprefix("model:"), *rest) if name.startswith("model:") else node_model(name, *rest)


def title(row):
    """What a table says of a row: the operator, its operands, and what of its attributes is short."""
    name, operands, attributes = row
    short = ", ".join(f"{key}={value}" for key, value in attributes.items() if not isinstance(value, list) and key not in ("opset", "node_opset", "outputs"))
    return f"{name} {' '.join(text or '-' for text in operands)}" + (f" ({short})" if short else "")
