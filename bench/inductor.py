# SPDX-License-Identifier: Apache-2.0
"""PyTorch's compiler as an engine of worker.py: the ONNX model in torch's operators (onnx2torch), compiled by inductor with its weights
frozen, as its authors advise for inference on processors. `pip install torch onnx2torch` first; what onnx2torch does not know is said.
"""

import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def folded(path, feeds):
    """The model with its shapes fixed and what does not depend on inputs computed: onnx2torch reads no weight behind an Identity."""
    import onnx

    shapes = [f"{name}:{json.dumps(list(values.shape))}".replace(" ", "") for name, values in feeds.items()]
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "folded.onnx"
        subprocess.run([ROOT / "build/release/bin/hone", "surgeon", "sanitize", path, "--fold-constants", "--override-input-shapes", *shapes,
                        "-o", target], check=True, stdout=subprocess.DEVNULL)
        return onnx.load(target)


class Inductor:
    def __init__(self, name, path, feeds, threads, batch, precision, streams):
        import onnx2torch
        import torch
        import torch._inductor.config

        torch.set_num_threads(max(1, threads // streams))
        torch._inductor.config.freezing = True
        graph = folded(path, feeds)
        compiled = torch.compile(onnx2torch.convert(graph).eval(), dynamic=False)
        self.inputs = [torch.from_numpy(feeds[value.name]) for value in graph.graph.input]
        self.outputs = [value.name for value in graph.graph.output]
        half = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")

        def run():
            with torch.no_grad(), half:
                return compiled(*self.inputs)

        self.runs = [run] * streams

    def results(self):
        found = self.runs[0]()
        return {name: values.float().numpy() for name, values in zip(self.outputs, found if isinstance(found, (list, tuple)) else [found])}
