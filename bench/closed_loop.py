#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the interface cost anything? The same plans through trtexec and through programs over hone.h, in turns.

    closed_loop.py programs    the C program that `hone inspect --emit-c` writes, one over hone.hpp and one in Python, beside trtexec's
                               closed-loop latency
    closed_loop.py contexts    inferences per second of two contexts on "cpu/1" each in two threads, over those of one on two workers
    closed_loop.py cancel      how long a build goes on when it is told to stop, and whether the plan then runs
    closed_loop.py import      what `import hone` takes beyond numpy

Plans are built without timing (--builderOptimizationLevel=0), so that no program is helped by luck, and kept in --folder.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]

import machine  # noqa: E402
import materialise  # noqa: E402
import zoo  # noqa: E402
from compare import MODELS  # noqa: E402

THREE = ["resnet50.ts", "mobilenet_v3_large.ts", "hf_bert_base.ts"]
BUILD = ROOT / "build/release"
PACKAGE = str(BUILD / "python")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stdout[-800:]}")
    return done.stdout


def shapes_of(model):
    return zoo.shape_text(model, 1)


def plan_of(model, device, options):
    """Built once."""
    path = options.folder / f"{model}.{device.replace('/', '-')}.{options.level}.plan"
    if not path.exists():
        shapes = shapes_of(model)
        run(BUILD / "bin/trtexec", f"--onnx={materialise.materialise(model, ROOT / 'build/zoo')}", f"--saveEngine={path}",
            "--skipInference", f"--builderOptimizationLevel={options.level}", *([f"--shapes={shapes}"] if shapes else []),
            *([f"--timingCacheFile={options.folder}/{device.replace('/', '-')}.cache"] if options.level else []),
            env={**os.environ, **({"HONE_THREADS": device[4:]} if "/" in device else {})})
    return path


def hpp_program(options):
    out = options.folder / "closed_loop"
    run("c++", "-std=c++20", "-O2", "-pthread", f"-I{ROOT}/include", ROOT / "bench/closed_loop.cpp", f"-L{BUILD}/lib", "-lhone", f"-Wl,-rpath,{BUILD}/lib", "-o", out)
    return out


def c_program(model, plan, options):
    out = options.folder / f"{model}.c"
    run(BUILD / "bin/hone", "inspect", plan, "--emit-c", out)
    run("cc", "-O2", f"-I{ROOT}/include", out / "run_plan.c", f"-L{BUILD}/lib", "-lhone", f"-Wl,-rpath,{BUILD}/lib", "-o", out / "run_plan")
    return out / "run_plan"


# trtexec's programs start with this setting, which the library cannot make for whoever loads it late.
ENVIRONMENT = {**os.environ, "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "1000")}

PYTHON = """
import sys, time, statistics
sys.path.insert(0, {package!r})
import numpy as np, hone
context = hone.load({plan!r}).engine({device!r}).context()
shapes = {shapes!r}
host = {{}}
for name, (dtype, sizes) in context.engine.inputs.items():
    values = hone.empty(shapes.get(name, sizes), dtype)
    values[...] = 0.25 if values.dtype.kind == "f" else 0
    context.set_input(name, values)
    host[name] = values.copy()
context.allocate_outputs()
inputs = [(context.bound[name], values) for name, values in host.items()]
outputs = [(context.bound[name].copy(), context.bound[name]) for name in context.engine.outputs]
times = []
until = None
while until is None or time.perf_counter() < until:
    start = time.perf_counter()
    for to, values in inputs: np.copyto(to, values)
    context.run_bound()
    for to, values in outputs: np.copyto(to, values)
    times.append(time.perf_counter() - start)
    if until is None and len(times) == 4: times, until = [], time.perf_counter() + {seconds}
print(statistics.median(times) * 1e3)
"""


def sizes_of(model):
    return {name: [int(size) for size in sizes.split("x")] for name, _, sizes in (part.rpartition(":") for part in filter(None, shapes_of(model).split(",")))}


def words_of(model):
    return [f"{name}={'x'.join(map(str, sizes))}" for name, sizes in sizes_of(model).items()]


def programs(options):
    hpp, found = hpp_program(options), {}
    for model in options.models or THREE:
        plan = plan_of(model, "cpu", options)
        compiled, shapes = c_program(model, plan, options), shapes_of(model)
        source = PYTHON.format(package=PACKAGE, plan=str(plan), device="cpu", shapes=sizes_of(model), seconds=options.seconds)

        def trtexec():
            log = run(BUILD / "bin/trtexec", f"--loadEngine={plan}", "--warmUp=50", f"--duration={options.seconds}", *([f"--shapes={shapes}"] if shapes else []))
            return float(re.search(r"Closed-loop latency: median = (\S+) ms", log)[1])

        def in_c(ms=[20.0]):  # how many queries fill the time, by the last round
            said = run(compiled, plan, max(10, int(options.seconds * 1e3 / ms[0])), env=ENVIRONMENT)
            ms[0] = float(re.search(r"median (\S+) ms", said)[1])
            return ms[0]

        def in_cpp():
            return json.loads(run(hpp, plan, "cpu", 1, options.seconds, *words_of(model), env=ENVIRONMENT))["median"]

        def in_python():
            return float(run(sys.executable, "-c", source))

        ways = {"trtexec": trtexec, "c": in_c, "hpp": in_cpp, "python": in_python}
        ms = {way: [] for way in ways}
        for turn in range(options.rounds):
            for way in list(ways) if turn % 2 == 0 else reversed(ways):
                ms[way].append(ways[way]())
        found[model] = {"ms": {way: statistics.median(values) for way, values in ms.items()},
                        "of_trtexec": {way: statistics.median(b / a for a, b in zip(ms["trtexec"], ms[way])) for way in ways}}
        print(model, {way: f"{value:.3f}" for way, value in found[model]["ms"].items()},
              {way: f"{value:.3f}" for way, value in found[model]["of_trtexec"].items()}, flush=True)
    return found


def contexts(options):
    hpp, found = hpp_program(options), {}
    for model in options.models or MODELS:
        narrow, wide = plan_of(model, "cpu/1", options), plan_of(model, "cpu/2", options)
        rates, threads = {"two": [], "one": []}, []
        for turn in range(options.rounds):
            for way in ("two", "one") if turn % 2 == 0 else ("one", "two"):
                plan, device, count = (narrow, "cpu/1", 2) if way == "two" else (wide, "cpu/2", 1)
                said = json.loads(run(hpp, plan, device, count, options.seconds, *words_of(model), env=ENVIRONMENT))
                rates[way].append(said["rate"])
                threads.append(said["threads"])
        found[model] = {"two_contexts_per_second": statistics.median(rates["two"]), "one_context_per_second": statistics.median(rates["one"]),
                        "ratio": statistics.median(a / b for a, b in zip(rates["two"], rates["one"])), "threads": max(threads)}
        print(model, {key: round(value, 3) for key, value in found[model].items()}, flush=True)
    return found


def cancel(options):
    sys.path.insert(0, PACKAGE)
    import hone
    import numpy as np

    class Stopped(hone.Progress):
        def __init__(self, after):
            self.after, self.begun, self.asked = after, time.monotonic(), None
            self.open, self.wrong, self.finished = {}, [], 0

        def begin(self, phase, parent, steps):
            self.open[phase] = (0, steps)

        def step(self, phase, done):
            before, steps = self.open[phase]
            if done <= before or done > steps:
                self.wrong.append((phase, before, done))
            self.open[phase] = (done, steps)

        def end(self, phase):
            done, steps = self.open.pop(phase)
            self.finished += 1
            if done != steps:
                self.wrong.append((phase, done, steps))

        def stop(self):
            if self.asked is None and time.monotonic() - self.begun > self.after:
                self.asked = time.monotonic()
            return self.asked is not None

    found = {}
    for model in options.models or THREE:
        path, shapes = materialise.materialise(model, ROOT / "build/zoo"), shapes_of(model)
        flags = [*([f"--shapes={shapes}"] if shapes else []), "--builderOptimizationLevel=5"]
        feeds, expected = None, None
        with hone.Model.load(path) as parsed:
            for after in options.after:
                progress = Stopped(after)
                plan = parsed.build(flags, progress=progress)
                waited = time.monotonic() - progress.asked if progress.asked else None
                context = plan.engine().context()
                if feeds is None:
                    feeds = {name: np.full(sizes_of(model).get(name, sizes), 0.25 if dtype.kind == "f" else 1, dtype) for name, (dtype, sizes) in context.engine.inputs.items()}
                answer = context.run(feeds)
                if expected is None:
                    expected = parsed.build([*flags[:-1], "--builderOptimizationLevel=0"]).engine().context().run(feeds)
                error = max(float(np.linalg.norm(answer[name] - expected[name]) / (np.linalg.norm(expected[name]) + 1e-30)) for name in expected)
                found[f"{model} after {after:g} s"] = {"seconds_to_return": waited, "progress_wrong": progress.wrong, "phases": progress.finished, "error": error}
                print(model, after, found[f"{model} after {after:g} s"], flush=True)
    return found


def imports(options):
    def seconds(program):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": PACKAGE}, check=True)
        return time.perf_counter() - start

    both = [(seconds("import numpy"), seconds("import numpy, hone")) for _ in range(max(options.rounds, 7))]
    found = {"numpy_ms": statistics.median(a for a, _ in both) * 1e3, "beyond_ms": statistics.median(b - a for a, b in both) * 1e3}
    print({key: round(value, 1) for key, value in found.items()})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["programs", "contexts", "cancel", "import"])
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--level", type=int, default=0, help="--builderOptimizationLevel of the plans")
    parser.add_argument("--after", type=float, nargs="+", default=[0.5, 3], help="cancel: seconds until a build is told to stop")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/closed_loop")
    parser.add_argument("--json", type=pathlib.Path, help="adds what was found to this file")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    found = {"programs": programs, "contexts": contexts, "cancel": cancel, "import": imports}[options.what](options)
    if options.json:
        report = json.loads(options.json.read_text()) if options.json.exists() else {}
        report["machine"] = machine.describe(ROOT)
        report[options.what] = {**report.get(options.what, {}), **found}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
