#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.compile with Hone's backend beside torch's own, inductor, on one device: models of torchvision and transformers with random
weights, each result held against the model in torch, the two in turns. A ratio is the median over rounds of (inductor / Hone).

    torch_compile.py --device cpu --threads 2 --rounds 7 --json out.json
    torch_compile.py --device cuda --half --json out.json
"""

import argparse
import json
import math
import statistics
import time

import hone.torch
import torch


def image_model(name):
    import torchvision

    return getattr(torchvision.models, name)(weights=None), (torch.randn(1, 3, 224, 224),)


def text_model(name):
    import transformers

    kinds = {"bert": (transformers.BertConfig(), transformers.BertModel), "gpt2": (transformers.GPT2Config(use_cache=False), transformers.GPT2Model)}
    if name == "whisper_encoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        return WhisperEncoder(transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)), (torch.randn(1, 80, 3000),)
    config, kind = kinds[name]
    return kind(config), (torch.randint(0, 30000, (1, 128)),)


MODELS = {"resnet50": image_model, "mobilenet_v3_large": image_model, "vit_b_16": image_model, "swin_t": image_model,
          "bert": text_model, "gpt2": text_model, "whisper_encoder": text_model}


def first(result):
    return result if torch.is_tensor(result) else result[0]


def burst(call, inputs, seconds, device):
    """Milliseconds of a call, the median of as many as fit."""
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call(*inputs)
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def measure(name, options):
    torch.manual_seed(1)
    model, inputs = MODELS[name](name)
    dtype = torch.float16 if options.half else torch.float32
    model = model.eval().to(options.device, dtype)
    inputs = tuple(x.to(options.device, dtype if x.is_floating_point() else x.dtype) for x in inputs)
    flags = ["--fp16"] if options.half else []
    mode = "reduce-overhead" if options.device == "cuda" else "default"
    with torch.inference_mode():
        expected = first(model(*inputs)).float()
        start = time.perf_counter()
        ours = torch.compile(model, backend=hone.torch.backend, options={"flags": flags, "cache": False})
        found = first(ours(*inputs)).float()
        built = time.perf_counter() - start
        error = float((found - expected).norm() / expected.norm())
        torch._dynamo.reset()
        ours = torch.compile(model, backend=hone.torch.backend, options={"flags": flags, "cache": False})
        peer = torch.compile(model, mode=mode)
        calls = {"hone": ours, "inductor": peer}
        for call in calls.values():
            for _ in range(3):
                call(*inputs)
        times = {kind: [] for kind in calls}
        for _ in range(options.rounds):
            for kind, call in calls.items():
                times[kind].append(burst(call, inputs, options.burst, options.device))
    ratio = statistics.median(b / a for a, b in zip(times["hone"], times["inductor"]))
    return {"model": name, "hone_ms": statistics.median(times["hone"]), "inductor_ms": statistics.median(times["inductor"]),
            "ratio": ratio, "error": error, "build_s": built}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--half", action="store_true", help="model, inputs and engine in fp16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst", type=float, default=0.3, help="seconds of a turn")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    for name in options.models.split(","):
        try:
            rows.append(measure(name, options))
        except Exception as error:  # noqa: BLE001: the next model is measured all the same
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        row = rows[-1]
        print(f"{name}: hone {row['hone_ms']:.3f} ms, inductor {row['inductor_ms']:.3f} ms, ratio {row['ratio']:.2f}, error {row['error']:.1e}, built in {row['build_s']:.0f} s", flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"torch": torch.__version__, "device": options.device, "half": options.half, "threads": options.threads, "rows": rows}, file, indent=1)
    if rows:
        print(f"geometric mean {math.exp(statistics.mean(math.log(row['ratio']) for row in rows)):.2f}, least {min(row['ratio'] for row in rows):.2f}")


if __name__ == "__main__":
    main()
