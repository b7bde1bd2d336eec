#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a process waits for whose engines an earlier one has kept: bench/torch_compile.py's models, each first in a process that builds its
engine into a folder, then in one that finds it there. The time runs from when torch hands over the graph that it has traced until the
model's first results are there: reading weights, the kept plan, the engine and one inference are in it. The least and the median of
--times processes, and what of it is the inference itself.

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
    given, found = [], []
    variant = ShapedEngines.variant

    def counted(self, shapes):
        if self not in found:
            found.append(self)
        return variant(self, shapes)

    def timed(module, examples):
        given.append(time.perf_counter())
        return hone.torch.backend(module, examples, options={"flags": ["--builderOptimizationLevel=0", "--noTF32"], "cache": folder})

    ShapedEngines.variant = counted
    torch.manual_seed(1)
    model, (inputs, others) = torch_compile.MODELS[name](name)
    with torch.inference_mode():
        compiled = torch.compile(model, backend=timed)
        compiled(*inputs)
        first = time.perf_counter() - given[0]
        start = time.perf_counter()
        compiled(*others)
        print(json.dumps({"first_s": first, "next_s": time.perf_counter() - start, "graphs": len(given), "built": sum(each.built for each in found),
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
    firsts = [each["first_s"] for each in seen]
    return {"model": name, "building_s": builder["first_s"], "found_s": statistics.median(firsts), "found_least_s": min(firsts),
            "inference_s": statistics.median(each["next_s"] for each in seen), "folder_bytes": size}


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
        print("{model}: found in {found_s:.2f} s (least {found_least_s:.2f}), one inference of it {inference_s:.2f}; built in {building_s:.1f} s, "
              "{folder_bytes:,} bytes".format(**rows[-1]), flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps({"threads": options.threads, "times": options.times, "rows": rows}, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
