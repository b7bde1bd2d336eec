# SPDX-License-Identifier: Apache-2.0
"""What bench/ranks_cards.py starts as ranks, through the Python package.

    ranks_program.py DEVICE run MODEL|PLAN INPUT.npy FOLDER   three inferences, so that the last replays a graph; its outputs as FOLDER/NAME.npy
    ranks_program.py DEVICE rows MODEL RANK                   two contexts whose number of rows changes: prints how far their results are off
"""

import os
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("HONE_PACKAGE", str(ROOT / "build/release/python")))

import hone  # noqa: E402

ROWS = (3, 4096, 3, 1, 4096, 4096, 257, 3)  # of one inference after the other
WIDTH = 64


def run(device, path, values, folder):
    plan = hone.build(path, [], device) if path.endswith(".onnx") else hone.load(path)
    context, feeds = plan.engine(device).context(), {"x": np.load(values)}
    for _ in range(3):
        outputs = context.run(feeds)
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for name, array in outputs.items():
        np.save(folder / f"{name}.npy", array)


def rows(device, path, rank):
    plan = hone.build(path, [], device, profiles=[{"x": ((1, WIDTH), (WIDTH, WIDTH), (max(ROWS), WIDTH))}])
    engine, worst = plan.engine(device), 0
    contexts = [engine.context(), engine.context()]
    for turn, count in enumerate(ROWS):
        given = [np.random.default_rng(1000 * turn + each).integers(-8, 8, (count, WIDTH)).astype(np.float32) for each in range(2)]
        expected = np.concatenate([4 * sum(given)] * 2)
        for context in (*contexts, contexts[0]):
            worst = max(worst, float(np.abs(context.run({"x": given[int(rank)]})["y"] - expected).max()))
    print("worst", worst)


if __name__ == "__main__":
    {"run": run, "rows": rows}[sys.argv[2]](hone.Device(sys.argv[1]), *sys.argv[3:])
