# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's exceptions by their names. Each is a RuntimeError and a hone.Error as well, so that either catches it."""

from __future__ import annotations

from ..base import Error


class OnnxRuntimeError(Error, RuntimeError):
    """What all have in common; `code` and `word` are ONNX Runtime's."""

    code, word = 1, "FAIL"

    @classmethod
    def of(cls, text: str) -> OnnxRuntimeError:
        """The exception, worded as scripts expect that read it."""
        return cls(f"[ONNXRuntimeError] : {cls.code} : {cls.word} : {text}")


def _kind(name, code, word, meaning):
    return type(name, (OnnxRuntimeError,), {"code": code, "word": word, "__doc__": meaning, "__module__": __name__})


Fail = _kind("Fail", 1, "FAIL", "Something that has no name of its own.")
InvalidArgument = _kind("InvalidArgument", 2, "INVALID_ARGUMENT", "A name, type or shape that the model does not have.")
NoSuchFile = _kind("NoSuchFile", 3, "NO_SUCHFILE", "There is no such file.")
NoModel = _kind("NoModel", 4, "NO_MODEL", "No model was given.")
EngineError = _kind("EngineError", 5, "ENGINE_ERROR", "The engine failed.")
RuntimeException = _kind("RuntimeException", 6, "RUNTIME_EXCEPTION", "The inference failed.")
InvalidProtobuf = _kind("InvalidProtobuf", 7, "INVALID_PROTOBUF", "The bytes are no ONNX model.")
ModelLoaded = _kind("ModelLoaded", 8, "MODEL_LOADED", "The model has been loaded already.")
NotImplemented = _kind("NotImplemented", 9, "NOT_IMPLEMENTED", "Hone has nothing that does this.")  # noqa: A001
InvalidGraph = _kind("InvalidGraph", 10, "INVALID_GRAPH", "The model has an operator that is unknown, or nodes that do not fit.")
EPFail = _kind("EPFail", 11, "EP_FAIL", "The device failed.")
NotFound = _kind("NotFound", 12, "NOT_FOUND", "Something that was named is not there.")

NAMES = ["EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded", "NoModel", "NoSuchFile",
         "NotFound", "NotImplemented", "OnnxRuntimeError", "RuntimeException"]
