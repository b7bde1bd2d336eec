# SPDX-License-Identifier: Apache-2.0
"""A server in small: server.py MODEL.onnx [CONTEXTS] < requests

One engine, several contexts of one core each, all in one thread of Python's: while they compute, the loop reads and writes. A request
is a line of input values; the answer is its number and the output's values, in the order in which they are ready.
"""

import asyncio
import sys

import hone
import numpy as np


class Server:
    def __init__(self, model, contexts):
        self.engine = hone.build(model).engine(hone.Device("cpu", workers=1))
        ((self.name, (self.dtype, sizes)),) = self.engine.inputs.items()
        self.shape = [1 if size < 0 else size for size in sizes]
        self.free = asyncio.Queue()
        for _ in range(contexts):
            self.free.put_nowait(self.engine.context())

    async def answer(self, number, line):
        context = await self.free.get()  # here requests queue up
        try:
            values = np.array(line.split(), self.dtype).reshape(self.shape)
            (result,) = (await context.run_async({self.name: values})).values()
            print(number, *result.ravel())
        except (hone.Error, ValueError) as error:
            print(number, "error:", error)
        finally:
            self.free.put_nowait(context)


async def main(model, contexts=2):
    server, loop, tasks = Server(model, int(contexts)), asyncio.get_running_loop(), []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        tasks.append(asyncio.create_task(server.answer(len(tasks), line)))
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
