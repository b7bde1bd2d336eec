# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's Python samples that need no checkpoint, run as they are (samples/python of release 10.16), on data made here in place of the archive
and the sets that they download: pictures of strokes in MNIST's files, and the zoo's ResNet-50 with three drawn pictures, whose class ONNX
Runtime has said. "Correctly recognized" then says that the engine agrees with it.
"""

import gzip
import pathlib
import shutil
import struct
import subprocess

import numpy as np

MNIST = pathlib.Path("/tmp/mnist/data/MNIST/raw")  # where the sample looks
PICTURES = ("binoculars.jpeg", "reflex_camera.jpeg", "tabby_tiger_cat.jpg")
# The strokes of a digit on a clock's display: top, upper left, upper right, middle, lower left, lower right, bottom.
STROKES = ("1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011")


def digit(number, random):
    """A picture of 28 x 28."""
    picture = np.zeros((28, 28))
    x, y, wide, high = random.integers(6, 11), random.integers(3, 6), random.integers(8, 11), random.integers(9, 11)
    places = [(y, x, 2, wide), (y, x, high, 2), (y, x + wide - 2, high, 2), (y + high - 1, x, 2, wide), (y + high, x, high, 2),
              (y + high, x + wide - 2, high, 2), (y + 2 * high - 2, x, 2, wide)]
    for lit, (row, column, rows, columns) in zip(STROKES[number], places):
        if lit == "1":
            picture[row:row + rows, column:column + columns] = 200 + random.integers(0, 55)
    return np.clip(picture + random.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)


def write_mnist():
    """The four files; none where they are there already."""
    if MNIST.exists():
        return
    MNIST.mkdir(parents=True)
    random = np.random.default_rng(3)
    for name, count in (("train", 12000), ("t10k", 1000)):
        labels = random.integers(0, 10, count).astype(np.uint8)
        pictures = np.stack([digit(label, random) for label in labels])
        for kind, head, values in (("images-idx3", struct.pack(">4i", 2051, count, 28, 28), pictures),
                                   ("labels-idx1", struct.pack(">2i", 2049, count), labels)):
            path = MNIST / f"{name}-{kind}-ubyte"
            path.write_bytes(head + values.tobytes())
            with gzip.open(f"{path}.gz", "wb") as file:
                file.write(path.read_bytes())


def write_resnet(folder, materialise):
    """The folder that samples take for TensorRT's data."""
    import onnx
    import onnxruntime
    from PIL import Image

    data = folder / "data/resnet50"
    data.mkdir(parents=True)
    model = onnx.load(materialise("resnet50.ts", folder))
    old, = (value.name for value in model.graph.input)
    for node in model.graph.node:
        node.input[:] = ["gpu_0/data_0" if name == old else name for name in node.input]
    model.graph.input[0].name = "gpu_0/data_0"
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, (1, 3, 224, 224)):
        dim.dim_value = size
    onnx.save(model, data / "ResNet50.onnx")
    session, labels, random = onnxruntime.InferenceSession(str(data / "ResNet50.onnx")), [f"class {at}" for at in range(1000)], np.random.default_rng(5)
    for name in PICTURES:
        coarse = Image.fromarray(random.integers(0, 255, (9, 9, 3), np.uint8).astype(np.uint8))
        coarse.resize((300, 280), Image.BICUBIC).save(data / name)
        picture = np.asarray(Image.open(data / name).resize((224, 224), Image.LANCZOS)).transpose([2, 0, 1]).astype(np.float32)
        scores, = session.run(None, {"gpu_0/data_0": ((picture / 255.0 - 0.45) / 0.225).astype(np.float32)[None]})
        labels[int(np.argmax(scores))] = "a"  # a letter of all three names
    (data / "class_labels.txt").write_text("\n".join(labels))
    return folder / "data"


def run(samples, folder, python, variables, materialise):
    """Runs them; prints how each ended. 0 where all do what they are for."""
    write_mnist()
    data = write_resnet(folder, materialise)
    copied = folder / "samples"
    shutil.copytree(samples, copied)
    commands = [("network_api_pytorch_mnist", ["sample.py"], None),
                ("simple_progress_monitor", ["simple_progress_monitor.py", "-d", data], "Correctly recognized"),
                ("introductory_parser_samples", ["onnx_resnet50.py", "-d", data], "Correctly recognized"),
                ("sample_weight_stripping", ["build_engines.py", "-d", data], "built and saved normal_engine.trt"),
                ("sample_weight_stripping", ["refit_engine_and_infer.py", "-d", data], "Refitted stripped engine correctly recognized")]
    good = 0
    for sample, command, wanted in commands:
        done = subprocess.run([python, *map(str, command)], cwd=copied / sample, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        lines = done.stdout.strip().splitlines()
        if wanted is None:  # the digit that it drew and the one that the engine saw
            told = dict(line.split(": ") for line in lines[-2:] if ": " in line)
            right = told.get("Test Case") is not None and told.get("Test Case") == told.get("Prediction")
        else:
            right = wanted in done.stdout
        good += done.returncode == 0 and right
        print(f"{sample}/{command[0]}: {'right' if done.returncode == 0 and right else f'ended with {done.returncode}'}\n    " + "\n    ".join(lines[-3:]),
              flush=True)
    print(f"{good} of {len(commands)}")
    return 0 if good == len(commands) else 1
