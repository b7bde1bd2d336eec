# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's files by tf2onnx, which runs in a process of its own, and torch's exported programs by torch.onnx.

tf2onnx is asked through its command line, the one interface that it documents: the same for a SavedModel, TFLite and a frozen graph;
a Keras model is made a SavedModel first, so that inputs and outputs have the names of its signature.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

from .common import ConvertError, Request, Unknown, need

TENSORFLOW = "tensorflow-cpu tf2onnx"


def _tf2onnx(request: Request, *words: str) -> None:
    need("tensorflow=tensorflow-cpu", "tf2onnx", install=TENSORFLOW)
    command = [sys.executable, "-m", "tf2onnx.convert", *words, "--output", str(request.destination)]
    if request.opset:
        command += ["--opset", str(request.opset)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0 or not request.destination.exists():
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        said = [line for line in lines if "rror" in line]
        raise ConvertError(f"{request.source}: tf2onnx: {(said or lines or ['it says nothing'])[-1].strip()}",
                           f"python -m tf2onnx.convert {' '.join(words)} --output model.onnx shows all that it says")


def _inputs(request):
    """tf2onnx's --inputs: name:0[1,2]."""
    if not request.shapes:
        return []
    told = [f"{name}[{','.join(str(-1 if size is None else size) for size in sizes)}]" for name, sizes in request.shapes.items()]
    return ["--inputs", ",".join(told)]


def saved_model(request: Request) -> None:
    """A SavedModel's folder."""
    signature = ["--signature_def", request.signature] if request.signature else []
    _tf2onnx(request, "--saved-model", str(request.source), "--tag", "serve", *signature, *_inputs(request))


def tflite(request: Request) -> None:
    """A TFLite file; its integers stay QDQ."""
    _tf2onnx(request, "--tflite", str(request.source), *_inputs(request))


def graphdef(request: Request) -> None:
    """A frozen graph of TensorFlow 1."""
    if not request.shapes or not request.outputs:
        raise Unknown(f"{request.source} is a frozen graph, which does not say its inputs and outputs",
                      "--input-shapes x:0:[1,28,28,1] --outputs y:0; a SavedModel is converted as a folder")
    _tf2onnx(request, "--graphdef", str(request.source), *_inputs(request), "--outputs", ",".join(request.outputs))


def keras(request: Request) -> None:
    """A model of Keras, by way of a SavedModel."""
    need("tensorflow=tensorflow-cpu", "keras", "tf2onnx", install=TENSORFLOW + " keras")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras as framework

    if framework.backend.backend() != "tensorflow":
        raise ConvertError(f"keras runs on {framework.backend.backend()} here", "unset KERAS_BACKEND: the conversion goes by TensorFlow")
    with tempfile.TemporaryDirectory() as folder:
        try:
            model = framework.saving.load_model(request.source, compile=False)
            if request.shapes:
                raise Unknown("--input-shapes is for files that leave sizes open", "a Keras model says its own")
            model.export(os.path.join(folder, "saved"), format="tf_saved_model", verbose=False)
        except ConvertError:
            raise
        except Exception as error:
            raise ConvertError(f"{request.source}: keras: {str(error).strip().splitlines()[0]}",
                               "layers and functions of your own must be registered: convert in a program that imports them, with hone.convert.to_onnx()") from error
        saved_model(request._replace(source=pathlib.Path(folder) / "saved"))


def torch(request: Request) -> None:
    """A program of torch.export.save()."""
    (framework, _) = need("torch", "onnxscript", install="torch onnxscript")
    options = {"opset_version": request.opset} if request.opset else {}
    try:
        program = framework.export.load(request.source)
        with contextlib.redirect_stdout(sys.stderr):
            made = framework.onnx.export(program, dynamo=True, verbose=False, **options)
        made.save(str(request.destination))
    except Exception as error:
        raise ConvertError(f"{request.source}: torch: {_first(error)}", "docs/from-pytorch.md says what is exported and how") from error


def _first(error):
    while error.__cause__ is not None:
        error = error.__cause__
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def torch_other(request: Request) -> None:
    """Weights, pickled modules and TorchScript: none says how it is called."""
    raise Unknown(f"{request.source} holds a torch object that does not say what it is called with",
                  'torch.export.save(torch.export.export(model, (example,)), "model.pt2") writes one that does')


CONVERTERS = {"saved_model": saved_model, "tflite": tflite, "graphdef": graphdef, "keras": keras, "torch": torch, "torch_other": torch_other}
