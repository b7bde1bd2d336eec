#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantised models on a CUDA GPU beside the same network in fp16: layers that run on the host, errors, times.

Models are quantised as scripts/quantized.py does it, side by side, while those that are ready are built and timed one after the
other. A figure is the median of the GPU's own clock with CUDA graphs and without transfers. A quantised model is right where
its distance from ONNX Runtime's result is at most 2e-2 of that one's norm, or two thirds of what quantising itself costs, and
its error against the model in floats at most 1.2 times ONNX Runtime's.

    gpu_quantised.py --models resnet50.ts hf_bert_base.ts --kinds qdq dynamic --level 2 --json out.json
    gpu_quantised.py --files llama_160m_int4.ort:llama_160m_f32.ort      a model of the zoo, and the one in floats
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests"), str(ROOT / "bench")]

import onnxruntime  # noqa: E402

import gpu  # noqa: E402
import inference  # noqa: E402
import materialise  # noqa: E402
import quantized  # noqa: E402
import zoo  # noqa: E402

QUANTIZED = pathlib.Path(gpu.__file__).parent / "gpu_quantised.py"


def made(name, kind, folder):
    """The model of that kind; `float` is the zoo's own. In a process of its own: the quantiser takes its time."""
    if kind == "float":
        return materialise.materialise(name, folder)
    subprocess.run([sys.executable, str(QUANTIZED), "--make", name, kind, str(folder)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / f"{name}.{kind}.onnx"


class Network:
    """A model of the zoo on one set of values, and what ONNX Runtime makes of it."""

    def __init__(self, name):
        self.name, self.shapes = name, zoo.shape_text(name, 1)
        self.feeds = {value.name: value.values(1, 0) for value in zoo.inputs(name)}
        self.profile = [f"--{which}Shapes={self.shapes}" for which in ("min", "opt", "max")] if self.shapes else []

    def expected(self, path):
        try:
            session = inference.reference_session(path)
        except (RuntimeError, onnxruntime.capi.onnxruntime_pybind11_state.Fail):  # some versions fail while they rewrite models of their own quantiser
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return gpu.answers(session, [self.feeds])[0]


def distance(found, wanted):
    return max(float(inference.relative_error(found[name], values)) for name, values in wanted.items())


def measured(trtexec, network, path, options, key):
    """Times, layers on the host and results of one file."""
    start = time.time()
    log = trtexec(f"--onnx={path}", "--saveEngine=m.plan", "--skipInference", "--profilingVerbosity=detailed", f"--builderOptimizationLevel={options.level}", "--fp16", *network.profile,
                  f"--timingCacheFile={trtexec.folder / 'cache'}", "--verbose")
    if options.logs:
        (options.logs / f"{key}.build.log").write_text(log[-options.log_bytes:])
    result = {"build_s": round(time.time() - start, 1), "host": gpu.left_to_host(log)}
    log = trtexec("--loadEngine=m.plan", *([f"--shapes={network.shapes}"] if network.shapes else []), "--useCudaGraph", "--noDataTransfers", "--warmUp=100", f"--duration={options.duration}", "--iterations=20",
                  "--dumpProfile", "--separateProfileRun", "--exportProfile=profile.json", "--exportLayerInfo=layers.json")
    result |= {"ms": gpu.median_ms(log), "slowest": gpu.slowest_layers(trtexec.folder, options.slowest), "sources": gpu.sources_of(trtexec.folder)}
    outputs = list(network.expected_names)
    found = [inference.run_plan(trtexec, "m.plan", network.feeds, outputs, network.shapes, runs=runs) for runs in (1, 20)]
    result["later_differs"] = distance(found[1], found[0])
    return result, found[0]


def compare(name, kinds, files, options):
    """A row for the model in floats, then one for each kind; prints each."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        trtexec = gpu.Trtexec(options.bin.resolve() / "trtexec", options.device, folder)
        network = Network(name)
        exact = network.expected(files["float"].result())
        network.expected_names = list(exact)
        floats = None
        for kind in ["float", *kinds]:
            row = {"model": name, "kind": kind}
            try:
                path = files[kind].result()
                other = exact if kind == "float" else network.expected(path)
                result, found = measured(trtexec, network, path, options, f"{name}.{kind}")
                row |= result | {"from_peer": distance(found, other), "error": distance(found, exact), "peer_error": distance(other, exact)}
                floats = row["ms"] if kind == "float" else floats
                row["times_float"] = row["ms"] / floats if floats else None
                allowed = gpu.TOLERANCES["fp16"] if kind == "float" else max(2e-2, row["peer_error"] * 2 / 3)
                row["right"] = row["from_peer"] <= allowed and row["error"] <= max(1.2 * row["peer_error"], allowed)
            except (RuntimeError, subprocess.SubprocessError, onnxruntime.capi.onnxruntime_pybind11_state.Fail, TypeError, KeyError, ValueError, AssertionError, OSError) as error:
                row["failure"] = str(error)[-1500:]
            rows.append(row)
            print({key: value for key, value in row.items() if key not in ("slowest", "host")}, f"host: {len(row.get('host', {}))} {list(row.get('host', {}).items())[:4]}", flush=True)
    return rows


def main():
    if sys.argv[1:2] == ["--make"]:
        quantized.quantized(sys.argv[2], sys.argv[3], sys.argv[4])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--kinds", nargs="+", default=["qdq", "dynamic"], choices=quantized.KINDS)
    parser.add_argument("--files", nargs="+", default=[], help="models of the zoo that are quantised: NAME:NAME_IN_FLOATS")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/zoo", help="where models are, or are made")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--duration", type=float, default=1)
    parser.add_argument("--jobs", type=int, default=8, help="models that are quantised at a time")
    parser.add_argument("--slowest", type=int, default=12)
    parser.add_argument("--logs", type=pathlib.Path, help="folder for the logs of the builds")
    parser.add_argument("--log-bytes", type=int, default=2_000_000)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    for folder in (options.folder, options.logs):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        kinds = ["float", *options.kinds]
        work = [(name, options.kinds, {kind: pool.submit(made, name, kind, options.folder) for kind in kinds}) for name in options.models]
        for pair in options.files:
            name, floats = pair.split(":")
            work.append((floats, [name], {"float": pool.submit(made, floats, "float", options.folder), name: pool.submit(made, name, "float", options.folder)}))
        for name, own, files in work:
            rows += compare(name, own, files, options)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1) + "\n")
    wrong = [row for row in rows if not row.get("right") or row["host"]]
    print(f"{len(rows) - len(wrong)} of {len(rows)} right and wholly on the GPU" + "".join(f"; {row['model']} {row['kind']}" for row in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
