#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.compile with Hone's backend beside torch's own, inductor, on one device: models of torchvision and transformers with random
weights, the two in turns, on two sets of inputs in turn (a program's inputs seldom lie where the last ones lay). A ratio is the median
over rounds of (inductor / Hone). An error is max|y - r| / max|r| against the model in torch in f32.

    torch_compile.py --device cpu --threads 2 --rounds 7 --json out.json
    torch_compile.py --device cuda --half --json out.json
    torch_compile.py --check-only --level 0

With --alone FILE an exclusive lock of FILE (flock) is held while engines are tuned and calls timed: other work on the machine that holds
a shared one (`flock -s FILE ...`) waits meanwhile. inductor compiles before, beside it.
"""

import argparse
import contextlib
import fcntl
import json
import math
import statistics
import time
import warnings

import hone.torch
import torch


def settle(model, inputs):
    """Random weights that tell engines apart: a head of zeros gets numbers, batch normalisations the statistics of an image, without which
    a deep network's output is its last bias, and blocks that add to what they are given scale what they add, as training has them do:
    else a ResNet-50 makes 1000 times the rounding of its input of it."""
    for each in model.modules():
        if isinstance(each, torch.nn.Linear) and not each.weight.any():
            torch.nn.init.normal_(each.weight, std=each.in_features ** -0.5)
        if isinstance(each, torch.nn.modules.batchnorm._BatchNorm):
            each.momentum = 1.0
            each.train()
        if hasattr(each, "bn3"):
            torch.nn.init.constant_(each.bn3.weight, 0.2)
    with torch.no_grad():
        model(*inputs)
    return model.eval()


def image_model(name):
    import torchvision

    inputs = [(torch.randn(1, 3, 224, 224),) for _ in range(2)]
    return settle(getattr(torchvision.models, name)(weights=None).eval(), (torch.randn(8, 3, 224, 224),)), inputs


def text_model(name):
    import transformers

    if name == "whisper_encoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder

        sizes = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
        return WhisperEncoder(sizes).eval(), [(torch.randn(1, 80, 3000),) for _ in range(2)]
    kinds = {"bert": (transformers.BertConfig(), transformers.BertModel), "gpt2": (transformers.GPT2Config(use_cache=False), transformers.GPT2Model)}
    config, kind = kinds[name]
    return kind(config).eval(), [(torch.randint(0, 30000, (1, 128)),) for _ in range(2)]


MODELS = {"resnet50": image_model, "mobilenet_v3_large": image_model, "vit_b_16": image_model, "swin_t": image_model,
          "bert": text_model, "gpt2": text_model, "whisper_encoder": text_model}


def first(result):
    return result if torch.is_tensor(result) else result[0]


def burst(call, sets, seconds, device):
    """Milliseconds of a call, and until it returns: medians of as many as fit."""
    times, returned, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 4:
        inputs = sets[len(times) % len(sets)]
        start = time.perf_counter()
        call(*inputs)
        returned.append((time.perf_counter() - start) * 1e3)
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), statistics.median(returned)


def error_of(call, sets, expected):
    """The largest over the sets, in later calls too."""
    found = [float((first(call(*inputs)).float() - wanted).abs().max() / wanted.abs().max()) for _ in range(3) for inputs, wanted in zip(sets, expected)]
    return max(found) if not any(map(math.isnan, found)) else math.nan


def flags_of(options):
    level = [] if options.level is None else [f"--builderOptimizationLevel={options.level}"]
    return level + (["--fp16"] if options.half else ["--noTF32"])


@contextlib.contextmanager
def locked(path, kind):
    """With a lock of the file, if there is one."""
    if path is None:
        yield
        return
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, kind)
        yield


def measure(name, options):
    torch.manual_seed(1)
    model, sets = MODELS[name](name)
    dtype = torch.float16 if options.half else torch.float32
    model = model.to(options.device)
    sets = [tuple(x.to(options.device) for x in inputs) for inputs in sets]
    with torch.inference_mode():
        expected = [first(model(*inputs)).clone() for inputs in sets]
        model = model.to(dtype)
        sets = [tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs) for inputs in sets]
        row = {"model": name}
        if not options.check_only:
            with locked(options.alone, fcntl.LOCK_SH):
                peer = torch.compile(model, mode="reduce-overhead" if options.device == "cuda" else "default")
                row["inductor_error"] = error_of(peer, sets, expected)
        with locked(options.alone, fcntl.LOCK_EX):
            start = time.perf_counter()
            ours = torch.compile(model, backend=hone.torch.backend, options={"flags": flags_of(options), "cache": False})
            first(ours(*sets[0]))
            row |= {"build_s": time.perf_counter() - start, "error": error_of(ours, sets, expected)}
            if options.check_only:
                return row
            calls = {"hone": ours, "inductor": peer}
            times = {kind: [] for kind in calls}
            for _ in range(options.rounds):
                for kind, call in calls.items():
                    times[kind].append(burst(call, sets, options.burst, options.device))
    for kind, found in times.items():
        row[f"{kind}_ms"], row[f"{kind}_host_ms"] = (statistics.median(column) for column in zip(*found))
    row["ratio"] = statistics.median(b / a for (a, _), (b, _) in zip(times["hone"], times["inductor"]))
    return row


def told(row):
    text = f"{row['model']}: error {row['error']:.1e}, built in {row['build_s']:.0f} s"
    if "ratio" in row:
        text += (f"; hone {row['hone_ms']:.3f} ms (host {row['hone_host_ms']:.3f}), inductor {row['inductor_ms']:.3f} ms (host "
                 f"{row['inductor_host_ms']:.3f}, error {row['inductor_error']:.1e}), ratio {row['ratio']:.2f}")
    return "\n    ".join([text, *row.get("left_to_torch", [])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--half", action="store_true", help="model, inputs and engine in fp16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst", type=float, default=0.3, help="seconds of a turn")
    parser.add_argument("--level", type=int, help="builder optimisation level instead of torch.compile's 3")
    parser.add_argument("--alone", help="a file to hold an exclusive lock of while tuning and timing")
    parser.add_argument("--check-only", action="store_true", help="errors alone; no inductor")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    rows = []
    for name in options.models.split(","):
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always", hone.torch.HoneWarning)
                rows.append(measure(name, options))
            left = [str(each.message) for each in heard if issubclass(each.category, hone.torch.HoneWarning)]
            if left:
                rows[-1]["left_to_torch"] = left
        except Exception as error:  # noqa: BLE001: the next model is measured all the same
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        print(told(rows[-1]), flush=True)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"torch": torch.__version__, "device": options.device, "half": options.half, "threads": options.threads, "rows": rows}, file, indent=1)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}")
    worst = 1e-2 if options.half else 1e-4
    off = [row["model"] for row in rows if not row["error"] <= worst]
    if off or len(rows) < len(options.models.split(",")):
        raise SystemExit(f"not all models are within {worst}: {', '.join(off)}")


if __name__ == "__main__":
    main()
