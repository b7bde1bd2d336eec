#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that every #include in src/, include/ and python/src/ goes down the layers.

The table below is the architecture: a folder may include itself and what its row names, nothing else. A row or an
entry may be a single file; the longest row that a file's path begins with is the one that counts. Tests may in addition
include what TESTS names.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Tools know an engine by hone.h alone; what else stands here holds values and texts. Those about models also open a model's graph,
# and those that show how a build works look into the builder (docs/adr/0017-tools-over-hone-h.md).
ENGINE_TOOLS = ["include", "base", "tensor", "measured", "report", "explore", "options", "tools/common", "tools/companion", "tools/commands",
                "tools/documents", "tools/trtexec", "tools/model/prepare.h", "tools/compare", "tools/taps/taps.h", "tools/files", "tools/trex", "tools/watch"]
MODEL_TOOLS = [*ENGINE_TOOLS, "ir", "ops", "onnx", "quantize", "tools/model", "tools/quantize"]
BUILD_TOOLS = [*MODEL_TOOLS, "device", "backends/all.h", "tuner", "builder", "plan", "precision", "describe/precision.h",
               "tools/accuracy"]

LAYERS = {
    "base": [],
    "tensor": ["base"],
    "ir": ["base", "tensor"],
    "ops": ["base", "tensor", "ir"],
    "onnx": ["base", "tensor", "ir", "ops"],
    "edit": ["base", "tensor", "ir", "ops", "onnx"],
    "passes": ["base", "tensor", "ir", "ops"],
    "quantize": ["base", "tensor", "ir", "ops", "onnx"],
    "plan": ["base", "tensor"],
    "device/device.h": ["base", "tensor"],
    "device/group.h": ["base", "tensor"],
    "device/work_spans.h": ["base", "tensor", "device/device.h"],
    "device": ["base", "tensor", "ir"],
    "backends/reference": ["base", "tensor", "ir", "ops", "device"],
    "regions": ["base", "tensor", "ir", "ops", "device"],
    "backends/cpu": ["base", "tensor", "ir", "ops", "device", "regions"],
    "backends/cpu/jit": ["base", "tensor", "regions/epilogue.h"],
    "backends/cuda": ["base", "tensor", "ir", "ops", "device", "regions"],
    "backends/all.h": ["base", "device"],
    "backends/all.cpp": ["base", "device", "backends"],
    "tuner": ["base", "tensor", "ir", "device"],
    "builder/options.h": ["base", "tensor"],
    "builder": ["base", "tensor", "ir", "ops", "passes", "quantize", "device", "tuner", "plan"],
    "runtime": ["base", "tensor", "plan", "device/device.h", "device/group.h", "device/work_spans.h"],
    "gloo": [],
    "group": ["base", "tensor", "device/group.h", "gloo/gloo_table.h"],
    "perf/options.h": ["base", "tensor"],
    "measured": ["base", "tensor"],
    "perf": ["base", "tensor", "measured", "runtime"],
    "precision": ["base", "tensor", "ir", "quantize", "device", "tuner", "builder", "plan", "runtime", "perf"],
    "report/options.h": ["base", "tensor"],
    "report": ["base", "tensor", "measured", "perf/options.h"],
    "describe": ["base", "tensor", "plan", "report/text.h"],
    "explore": ["base"],
    "options": ["base", "builder/options.h", "perf/options.h", "report/options.h"],
    "capi": ["include", "base", "tensor", "ir", "ops", "onnx", "edit", "passes", "quantize", "plan", "device", "backends/all.h",
             "tuner", "builder", "precision", "runtime", "group", "perf", "describe", "options"],
    "triton": ["include"],
    "tools": ENGINE_TOOLS,
    "tools/common": ENGINE_TOOLS,
    "tools/companion": ENGINE_TOOLS,
    "tools/files": ENGINE_TOOLS,
    "tools/commands": ENGINE_TOOLS,
    "tools/documents": ENGINE_TOOLS,
    "tools/trtexec": ENGINE_TOOLS,
    "tools/model": [*MODEL_TOOLS, "builder/prepare/io_formats.h", "builder/prepare/quantize.h"],
    "tools/model/read.cpp": [*MODEL_TOOLS, "capi/operators/operators.h"],
    "tools/model/handles.h": [*MODEL_TOOLS, "capi/build_handles.h", "capi/handles.h"],
    "tools/quantize": MODEL_TOOLS,
    "tools/surgeon": [*MODEL_TOOLS, "edit"],
    "tools/view": [*MODEL_TOOLS, "edit", "tools/surgeon/model_line.h"],
    "tools/data": ENGINE_TOOLS,
    "tools/trex": ENGINE_TOOLS,
    "tools/watch": ENGINE_TOOLS,
    "tools/debug": [*MODEL_TOOLS, "edit", "tools/surgeon"],
    "tools/debug/golden.cpp": [*MODEL_TOOLS, "capi/operators/operators.h", "tools/debug"],
    "tools/commands/convert.cpp": [*MODEL_TOOLS, "tools/surgeon/network_view.h"],
    "tools/commands/quantize.cpp": MODEL_TOOLS,
    "tools/commands/inspect_operators.cpp": MODEL_TOOLS,
    "tools/accuracy": BUILD_TOOLS,
    "tools/compare": [*MODEL_TOOLS],
    "tools/compare/save_face.cpp": [*MODEL_TOOLS, "edit"],
    "tools/taps": [*BUILD_TOOLS, "capi/operators/operators.h"],
    "tools/commands/accuracy.cpp": BUILD_TOOLS,
    "tools/commands/bench_kernels.cpp": BUILD_TOOLS,
    "tools/commands/problems.cpp": [*BUILD_TOOLS, "tools/tune"],
    "tools/commands/tune.cpp": [*BUILD_TOOLS, "tools/tune"],
    "tools/tune": BUILD_TOOLS,
    "tools/commands/inspect_capability.cpp": [*BUILD_TOOLS, "tools/surgeon/partitions.h"],
    "tools/commands/inspect_quantisation.cpp": BUILD_TOOLS,
    "include": [],
    "python/src": ["include"],
}

# Headers for their own row alone.
PRIVATE = ["regions/match_region.h"]

# A test may reach for what makes its inputs; what is tested may not.
TESTS = {
    "group": ["ir", "ops"],
    "runtime": ["ir", "ops", "device", "backends/all.h", "builder", "tuner"],
    "perf": ["plan", "device", "backends/all.h", "ir", "ops", "builder", "tuner"],
    "describe": ["ir", "ops", "device", "backends/all.h", "builder", "tuner"],
    "builder": ["runtime", "backends/all.h", "backends/cpu/run/device.h", "onnx"],
    "precision": ["backends/all.h", "ops"],
    "tuner": ["backends/all.h", "ops"],
    "device": ["ops"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def inside(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def row_of(path):
    """The row of LAYERS that rules the file at `path` (relative to src/, or to the root in include/ and python/src/)."""
    return max((row for row in LAYERS if inside(path, row)), key=len, default=None)


def allowed(path, target):
    row = row_of(path)
    if target in PRIVATE:
        return row_of(target) == row
    names = [row, *LAYERS[row]]
    if path.endswith(("_test.cpp", "_testing.h")):
        names += TESTS.get(path.split("/")[0], [])
    return any(inside(target, name) for name in names)


def resolve(path, included):
    """What an include names: a path from src/, from include/ (as `include/…`) or from the file's own folder."""
    if (ROOT / "src" / included).exists():
        return included
    if (ROOT / "include" / included).exists():
        return f"include/{included}"
    return str(pathlib.PurePosixPath(path).parent / included)


def sources():
    for top, prefix in (("src", ""), ("include", "include/"), ("python/src", "python/src/")):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".h", ".hpp", ".cpp", ".c", ".cuh", ".inc", ".def"):
                yield file, prefix + file.relative_to(ROOT / top).as_posix()


def violations():
    for file, path in sources():
        if row_of(path) is None:
            yield f"{path}: its folder is not in the table of scripts/layers.py"
            continue
        for included in INCLUDE.findall(file.read_text(encoding="utf-8")):
            target = resolve(path, included)
            if not allowed(path, target):
                rights = ", ".join(LAYERS[row_of(path)]) or "nothing"
                reason = f"for src/{row_of(target)} alone" if target in PRIVATE else f"{row_of(path)} may include: {rights}"
                yield f'{path}: may not include "{included}" ({reason})'


def main():
    found = list(violations())
    print("\n".join(found) if found else "layers: every include goes down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
