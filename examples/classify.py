# SPDX-License-Identifier: Apache-2.0
"""Classifies pictures: classify.py MODEL.onnx PICTURE.ppm...

The model takes [n,3,h,w] as torchvision's do, the pictures have its size (convert in.jpg -resize 224x224! picture.ppm; with Pillow
in place of pixels(): np.asarray(Image.open(path).convert("RGB").resize((224, 224)))). The plan is kept beside the model.
"""

import pathlib
import sys

import hone
import numpy as np

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


def pixels(path):
    """[h,w,3] of a PPM file, 0 to 255."""
    data = pathlib.Path(path).read_bytes()
    kind, width, height, most = data.split(maxsplit=4)[:4]
    if kind != b"P6" or most != b"255":
        raise SystemExit(f"{path} is no PPM file of 8 bits")
    width, height = int(width), int(height)
    return np.frombuffer(data[len(data) - 3 * width * height:], np.uint8).reshape(height, width, 3)


def main(model, *pictures):
    plan_file = pathlib.Path(model).with_suffix(".plan")
    if plan_file.exists():
        plan = hone.load(plan_file)
    else:
        plan = hone.build(model)
        plan.save(plan_file)
    with plan, plan.engine() as engine, engine.context() as context:
        (name,), (answer,) = engine.inputs, engine.outputs
        for picture in pictures:
            image = (pixels(picture).astype(np.float32) / 255 - MEAN) / DEVIATION
            (scores,) = context.run({name: image.transpose(2, 0, 1)[None]})[answer]
            print(picture, *(f"{best}:{scores[best]:.4f}" for best in np.argsort(-scores)[:5]))


if __name__ == "__main__":
    main(*sys.argv[1:])
