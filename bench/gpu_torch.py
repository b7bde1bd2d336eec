#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model in PyTorch, compiled as its users would for a GPU, in a process of its own: fp16, channels last, CUDA graphs.

Reads lines from standard input and answers each with one line of JSON: "time" measures, "stop" ends. The first line, which
comes by itself, says that the model is compiled and has run.

A figure is the median of the GPU's own clock over single inferences, each queued behind a pause on the GPU that is long
enough for the host to get ahead; or the mean over inferences queued without a pause, where that is shorter.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts")]

PAUSE_CYCLES = 3_000_000


def vision(name, side=224):
    def make(batch):
        import torch
        import torchvision

        model = getattr(torchvision.models, name)()
        for weight in model.parameters():
            if weight.dim() > 1 and not weight.any():  # a head that begins with zeros would hide every error before it
                torch.nn.init.normal_(weight, std=0.02)
        return model, (torch.randn(batch, 3, side, side),)
    return make


def tokens(torch, batch, vocabulary):
    return torch.randint(0, vocabulary, (batch, 128))


def encoder(name, **options):
    """A text encoder of transformers, with a mask."""
    def make(batch):
        import torch
        import transformers

        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(), **options)

            def forward(self, ids, mask):
                return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

        return Encoder(), (tokens(torch, batch, 30522), torch.ones(batch, 128, dtype=torch.int64))
    return make


def segformer(batch):
    import torch
    import transformers

    class Segmenter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(num_labels=150))

        def forward(self, x):
            return self.model(pixel_values=x).logits

    return Segmenter(), (torch.randn(batch, 3, 512, 512),)


def gpt2(batch):
    import torch
    import transformers

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))

        def forward(self, ids):
            return self.model(input_ids=ids, use_cache=False).logits

    return Decoder(), (tokens(torch, batch, 50257),)


def llama_token(batch):
    """One more token behind those of a cache, which is as large as it will become: transformers' StaticCache."""
    import torch
    import transformers
    import zoo

    config = transformers.LlamaConfig(vocab_size=32000, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
                                      num_key_value_heads=4, tie_word_embeddings=False)

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.LlamaForCausalLM(config)

        def prepare(self, ids, position):
            """The cache is there before anything is compiled, and its layers count together."""
            self.cache = transformers.StaticCache(config=config, max_cache_len=zoo.PAST + 64)
            self.model(input_ids=ids, past_key_values=self.cache, cache_position=position, use_cache=True)
            self.count = self.cache.layers[0].cumulative_length
            for layer in self.cache.layers:
                layer.cumulative_length = self.count

        def forward(self, ids, position):
            self.count.copy_(position[0])
            return self.model(input_ids=ids, past_key_values=self.cache, cache_position=position, use_cache=True).logits

    return Step(), (torch.randint(0, 32000, (batch, 1)), torch.full((1,), zoo.PAST))


def yolo(batch):
    """The network has no home in a package: its ONNX nodes are run one by one, for the compiler to see."""
    import torch

    return OnnxModule("yolov8n_like.dyn"), (torch.randn(batch, 3, 640, 640),)


MODELS = {name: vision(name) for name in ("resnet18", "resnet50", "mobilenet_v3_large", "efficientnet_b0", "vit_b_16", "swin_t", "convnext_tiny",
                                          "mobilenet_v2", "shufflenet_v2_x1_0", "densenet121", "vgg16", "squeezenet1_1", "alexnet")}
MODELS |= {"inception_v3": vision("inception_v3", 299), "hf_bert_base": encoder("Bert", add_pooling_layer=False), "hf_distilbert": encoder("DistilBert"),
           "hf_gpt2": gpt2, "segformer": segformer, "yolov8n_like": yolo, "llama_160m_token": llama_token}


def OnnxModule(name):  # noqa: N802 - a class that exists once torch does
    import tempfile

    import materialise
    import numpy as np
    import onnx
    import torch
    from torch.nn import functional

    graph = onnx.load(materialise.materialise(name, tempfile.mkdtemp())).graph

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.numbers, self.weights = {}, {}  # small integers steer operators and stay on the host
            for tensor in graph.initializer:
                array = onnx.numpy_helper.to_array(tensor)
                if array.dtype.kind == "f" and array.size > 8:
                    self.weights[tensor.name] = f"w{len(self.weights)}"
                    self.register_buffer(self.weights[tensor.name], torch.from_numpy(array.copy()))
                else:
                    self.numbers[tensor.name] = array.tolist()
            self.steps = [(node.op_type, list(node.input), list(node.output), {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}) for node in graph.node]

        def forward(self, x):
            values = {graph_input: x}
            values.update(self.numbers)
            values.update({name: getattr(self, member) for name, member in self.weights.items()})
            for operator, inputs, outputs, attributes in self.steps:
                results = RULES[operator]([values[i] if i else None for i in inputs], attributes)
                values.update(zip(outputs, results if isinstance(results, (list, tuple)) else [results]))
            return values[graph_output]

    def convolve(i, a):
        pads = a.get("pads", [0, 0, 0, 0])
        return functional.conv2d(i[0], i[1], i[2] if len(i) > 2 else None, a.get("strides", 1), pads[:2], a.get("dilations", 1), a.get("group", 1))

    def cut(i, a):
        x, starts, ends = i[:3]
        for axis, start, end in zip(i[3] if len(i) > 3 else range(len(starts)), starts, ends):
            x = x.narrow(axis, start, min(end, x.shape[axis]) - start)
        return x

    graph_input, graph_output = graph.input[0].name, graph.output[0].name
    RULES = {
        "Conv": convolve, "Sigmoid": lambda i, a: torch.sigmoid(i[0]), "Slice": cut,
        "Add": lambda i, a: i[0] + i[1], "Sub": lambda i, a: i[0] - i[1], "Mul": lambda i, a: i[0] * i[1], "Div": lambda i, a: i[0] / i[1],
        "Split": lambda i, a: torch.chunk(i[0], a["num_outputs"], a.get("axis", 0)), "Concat": lambda i, a: torch.cat(i, a["axis"]),
        "MaxPool": lambda i, a: functional.max_pool2d(i[0], a["kernel_shape"], a.get("strides"), a["pads"][:2]),
        "Resize": lambda i, a: functional.interpolate(i[0], scale_factor=2, mode="nearest"),
        "Reshape": lambda i, a: i[0].reshape(i[1]), "Softmax": lambda i, a: torch.softmax(i[0], a.get("axis", -1)),
        "ReduceSum": lambda i, a: i[0].sum(i[1], keepdim=bool(a.get("keepdims", 1))),
    }
    return Module()


def compiled(name, batch):
    import torch

    torch.manual_seed(0)
    model, inputs = MODELS[name](batch)
    model = model.eval().cuda().half()
    inputs = tuple(value.cuda().half() if value.is_floating_point() else value.cuda() for value in inputs)
    if inputs[0].dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        inputs = (inputs[0].contiguous(memory_format=torch.channels_last),)
    if hasattr(model, "prepare"):
        model.prepare(*inputs)
    return torch.compile(model, mode="reduce-overhead"), inputs


def measure(model, inputs, seconds):
    import torch

    def stamped(count, pause):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if pause:
            torch.cuda._sleep(PAUSE_CYCLES)
        start.record()
        for _ in range(count):
            model(*inputs)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / count

    single, rows, begin = [], [], time.time()
    while time.time() - begin < seconds or len(single) < 20:
        single.append(stamped(1, True))
        if len(single) % 5 == 0:
            rows.append(stamped(20, False))
    return {"ms": min(statistics.median(single), statistics.median(rows)), "single": statistics.median(single), "row": statistics.median(rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("batch", type=int)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one measurement")
    parser.add_argument("--export", type=pathlib.Path, help="write the model as ONNX instead")
    options = parser.parse_args()
    import torch

    if options.export:
        model, inputs = MODELS[options.model](options.batch)
        torch.onnx.export(model.eval(), inputs, str(options.export), dynamo=True, external_data=False)
        return
    begin = time.time()
    with torch.inference_mode():
        model, inputs = compiled(options.model, options.batch)
        for _ in range(5):
            model(*inputs)
        torch.cuda.synchronize()
        print(json.dumps({"compile_s": round(time.time() - begin, 1), "torch": torch.__version__, "gpu": torch.cuda.get_device_name()}), flush=True)
        for line in sys.stdin:
            if line.strip() != "time":
                return
            print(json.dumps(measure(model, inputs, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
