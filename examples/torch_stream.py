# SPDX-License-Identifier: Apache-2.0
"""Hone between torch's operators: torch_stream.py MODEL.onnx

The engine reads and writes torch's tensors where they lie. On a GPU it works in torch's own stream, so that nothing is copied and nothing
waits, and joins the CUDA graph that torch captures; without one the same program runs on the processor.
"""

import sys

import hone
import torch

FLAGS = ["--builderOptimizationLevel=1"]


def tensor(shape, dtype, device):
    return torch.zeros([1 if size < 0 else size for size in shape], dtype=getattr(torch, dtype.name), device=device)


def main(model):
    on_gpu = torch.cuda.is_available()
    place = "cuda:0" if on_gpu else "cpu"
    device = hone.Device(place)
    with hone.build(model, FLAGS, device) as plan, plan.engine(device) as engine, engine.context() as context:
        x = {name: tensor(shape, dtype, place) for name, (dtype, shape) in engine.inputs.items()}
        for name, values in x.items():
            context.set_shape(name, values.shape)
            context.bind(name, values)
        y = {name: tensor(context.shape(name), dtype, place) for name, (dtype, _) in engine.outputs.items()}
        for name, values in y.items():
            context.bind(name, values)

        stream = hone.Stream(device, torch.cuda.current_stream() if on_gpu else None)
        for step in range(3):
            for values in x.values():
                values.fill_(step)  # seen by the inference: it is the tensor's memory
            context.enqueue(stream)
            if not on_gpu:
                stream.synchronize()  # torch's work on a processor is in no stream
            print(f"step {step}:", *(f"{name} {float(values.sum()):.4f}" for name, values in y.items()))

        if on_gpu:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                context.enqueue(hone.Stream(device, torch.cuda.current_stream()))
                sums = {name: values.sum() for name, values in y.items()}
            graph.replay()
            print("graph:", *(f"{name} {float(value):.4f}" for name, value in sums.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
