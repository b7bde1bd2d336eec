#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a process waits for whose engines an earlier one has kept: bench/torch_compile.py's models, each first in a process that builds its
engine into a folder, then in one that finds it there. Three times of that second process, medians of --times and the least:

    found     what Hone takes of the first call: from torch handing over the graph that it has traced to the graph's first results, without
              what torch does in between. Reading weights, the kept plan, the engine and its first inference are in it
    graph     from torch handing over the graph to the model's first results: torch writes its guards meanwhile
    call      the whole first call, torch's tracing in it

    torch_cache.py --threads 2 --times 5 --json out.json

--alone FILE is torch_compile.py's: an exclusive lock of FILE while the second processes run.
"""

import argparse
import fcntl
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch_compile


def second(name, folder, threads):
    """In a process of its own: prints the times as JSON."""
    import hone.torch
    import torch
    from hone.shaped import ShapedEngines

    torch.set_num_threads(threads)
    given, found, ours = [], [], []
    variant = ShapedEngines.variant

    def counted(self, shapes):
        if self not in found:
            found.append(self)
        return variant(self, shapes)

    def spent(function, *arguments, **named):
        start = time.perf_counter()
        result = function(*arguments, **named)
        ours.append(time.perf_counter() - start)
        return result

    def timed(module, examples):
        given.append(time.perf_counter())
        compiled = spent(hone.torch.backend, module, examples, options={"flags": ["--builderOptimizationLevel=0", "--noTF32"], "cache": folder})
        return lambda *arguments: spent(compiled, *arguments)

    ShapedEngines.variant = counted
    torch.manual_seed(1)
    model, (inputs, others) = torch_compile.MODELS[name](name)
    with torch.inference_mode():
        compiled = torch.compile(model, backend=timed)
        start = time.perf_counter()
        compiled(*inputs)
        end = time.perf_counter()
        times = {"found_s": sum(ours), "graph_s": end - given[0], "call_s": end - start}
        start = time.perf_counter()
        compiled(*others)
        print(json.dumps({**times, "next_s": time.perf_counter() - start, "graphs": len(given), "built": sum(each.built for each in found),
                          "loaded": sum(each.loaded for each in found)}))


def process(name, folder, threads):
    done = subprocess.run([sys.executable, __file__, "--child", name, folder, str(threads)], capture_output=True, text=True, check=False)
    if done.returncode != 0 or "HoneWarning" in done.stderr:
        raise SystemExit(f"{name}: the process left with {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(name, threads, times, alone):
    with tempfile.TemporaryDirectory() as folder:
        with torch_compile.locked(alone, fcntl.LOCK_SH):
            builder = process(name, folder, threads)
        with torch_compile.locked(alone, fcntl.LOCK_EX):
            seen = [process(name, folder, threads) for _ in range(times)]
        size = sum(each.stat().st_size for each in pathlib.Path(folder).iterdir())
    if builder["built"] == 0 or any(each["built"] or not each["loaded"] for each in seen):
        raise SystemExit(f"{name}: the engines were not found: {builder}, {seen}")
    row = {"model": name, "graphs": seen[0]["graphs"], "building_s": builder["graph_s"], "folder_bytes": size}
    for key in ("found_s", "graph_s", "call_s", "next_s"):
        row[key] = statistics.median(each[key] for each in seen)
        row[f"least_{key}"] = min(each[key] for each in seen)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--models", default=",".join(torch_compile.MODELS))
    parser.add_argument("--alone")
    parser.add_argument("--json")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, folder, threads = options.child
        return second(name, folder, int(threads))
    rows = []
    for name in options.models.split(","):
        rows.append(measure(name, options.threads, options.times, options.alone))
        print("{model}: found in {found_s:.3f} s (least {least_found_s:.3f}), from the graph {graph_s:.2f} ({least_graph_s:.2f}), the whole call "
              "{call_s:.2f} ({least_call_s:.2f}); the next call {next_s:.3f}; built in {building_s:.1f} s, {folder_bytes:,} bytes".format(**rows[-1]), flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps({"threads": options.threads, "times": options.times, "rows": rows}, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
