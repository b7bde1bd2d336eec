# SPDX-License-Identifier: Apache-2.0
"""Runs of a model held against each other, as `hone run` does it: what its --gen-script writes are calls of this.

    from hone import compare

    model = compare.Model("model.onnx")
    runs = {"cpu-0": compare.engine(model), "ref-0": compare.reference(model)}     # functions from {input: array} to {output: array}
    feeds = [compare.draw({"x": compare.Input([4, 3])}, seed=1 + i) for i in range(2)]
    results = {name: [run(feed) for feed in feeds] for name, run in runs.items()}
    good = compare.agree(results, compare.Limits(atol={"": 1e-4}))                # prints a line an output, and a summary a pair

Names of metrics, statistics and files are Polygraphy's, and so are the numbers that are drawn. Nothing here needs more than numpy, except
onnx_runtime(), which needs onnxruntime.
"""

from .comparing import agree, valid
from .files import load_inputs, load_outputs, loaded_by_program, loaded_by_script, save_blobs, save_inputs, save_outputs
from .inputs import Input, draw
from .judging import Limits, Verdict, judge, top_places
from .runners import Model, engine, onnx_runtime, plan, reference, timed

__all__ = ["Input", "Limits", "Model", "Verdict", "agree", "draw", "engine", "judge", "load_inputs", "load_outputs", "loaded_by_program",
           "loaded_by_script", "onnx_runtime", "plan", "reference", "save_blobs", "save_inputs", "save_outputs", "timed", "top_places",
           "valid"]
