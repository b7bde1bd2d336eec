# SPDX-License-Identifier: Apache-2.0
"""Requests that wait share an inference: dynamic_batch.py MODEL.onnx [REQUESTS]

One plan serves every batch from 1 to 16. Random requests come from several threads; the program says how they were batched."""

import collections
import queue
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import hone
import numpy as np

MOST = 16


class Batcher:
    """ask() takes one row of the input and gives a Future of the rows of the outputs."""

    def __init__(self, path):
        with hone.Model.load(path) as model:
            ((self.name, (self.dtype, sizes)),) = model.inputs.items()
            self.row = sizes[1:]
            shape = {rows: f"{self.name}:" + "x".join(map(str, (rows, *self.row))) for rows in (1, MOST // 2, MOST)}
            plan = model.build([f"--minShapes={shape[1]}", f"--optShapes={shape[MOST // 2]}", f"--maxShapes={shape[MOST]}"])
        self.context = plan.engine().context()
        self.waiting, self.batches = queue.SimpleQueue(), collections.Counter()
        threading.Thread(target=self.serve).start()

    def ask(self, row):
        future = Future()
        self.waiting.put((row, future))
        return future

    def serve(self):
        while (batch := [self.waiting.get()]) != [None]:
            while len(batch) < MOST and not self.waiting.empty():
                batch.append(self.waiting.get())
            try:
                results = self.context.run({self.name: np.stack([row for row, _ in batch])})
                for place, (_, future) in enumerate(batch):
                    future.set_result({name: values[place] for name, values in results.items()})
            except (hone.Error, ValueError) as error:
                for _, future in batch:
                    future.set_exception(error)
            self.batches[len(batch)] += 1


def main(path, requests=100):
    batcher, random = Batcher(path), np.random.default_rng(1)
    rows = random.standard_normal((int(requests), *batcher.row)).astype(batcher.dtype)
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda row: batcher.ask(row).result(), rows))
    batcher.waiting.put(None)  # serve() ends
    print(f"{len(answers)} answers; batches of", ", ".join(f"{rows} ({count}x)" for rows, count in sorted(batcher.batches.items())))


if __name__ == "__main__":
    main(*sys.argv[1:])
