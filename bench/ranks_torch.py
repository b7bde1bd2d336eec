#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of ranks_cards.py in PyTorch, divided by its own tensor parallelism (DTensor, ColwiseParallel and RowwiseParallel), fp16, in a
CUDA graph. Started by torchrun:

    torchrun --nproc-per-node=2 bench/ranks_torch.py TOKENS LAYERS WIDTH HIDDEN HEAD

Rank 0 prints a line of JSON: the median of a replay and the wait for it, and of one among many in a row, of the slowest rank."""

import json
import os
import statistics
import sys
import time

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional


class Layer(nn.Module):
    def __init__(self, width, hidden, head):
        super().__init__()
        self.head = head
        self.before, self.between = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, hidden), (width, hidden), (hidden, width)))

    def forward(self, x):
        n = self.before(x)
        q, k, v = (part(n).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.q, self.k, self.v))
        x = x + self.o(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        n = self.between(x)
        return x + self.down(functional.silu(self.gate(n)) * self.up(n))


def replay_ms(graph, count):
    """A replay and its wait; one among many in a row."""
    single = []
    for _ in range(count):
        begin = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        single.append(1e3 * (time.perf_counter() - begin))
    begin = time.perf_counter()
    for _ in range(count):
        graph.replay()
    torch.cuda.synchronize()
    return statistics.median(single), 1e3 * (time.perf_counter() - begin) / count


def main():
    tokens, count, width, hidden, head = map(int, sys.argv[1:])
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    mesh = init_device_mesh("cuda", (2,))
    torch.manual_seed(0)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.float16)
        layers = nn.Sequential(*[Layer(width, hidden, head) for _ in range(count)]).eval()
        x = torch.randn(1, tokens, width)
    plan = {name: ColwiseParallel() for name in ("q", "k", "v", "gate", "up")} | {name: RowwiseParallel() for name in ("o", "down")}
    with torch.inference_mode():
        whole = layers(x).float()
    for layer in layers:
        parallelize_module(layer, mesh, plan)
    with torch.inference_mode():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                layers(x)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layers(x)
        graph.replay()
        error = float((y.float() - whole).norm() / whole.norm())
        replay_ms(graph, 20)
        figures = torch.tensor(replay_ms(graph, 200), dtype=torch.float64, device="cuda")
        distributed.all_reduce(figures, distributed.ReduceOp.MAX)
    if rank == 0:
        single, row = figures.tolist()
        print(json.dumps({"torch_two_ms": single, "torch_two_ms_in_a_row": row, "torch_error": error}), flush=True)
    os._exit(0)  # the group and the graph need no order at the end


if __name__ == "__main__":
    main()
