#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy on every source file of src/, in packs (packs.py): what it does to a header it then does once a pack.

    tidy.py FOLDER JOBS       FOLDER was configured by CMake (its compile_commands.json says how files are compiled)
"""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys

import packs

ROOT = packs.ROOT
# Packed together: folders whose names are apart from each other's.
GROUPS = ["backends/cpu", "backends/cuda", "ops", "passes", "onnx", "tools", "triton", ""]
# One instruction set of Highway's is enough to read.
MORE = ["-std=c++20", "-DHWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX2|HWY_AVX3|HWY_AVX3_DL)"]


def flags_of(commands):
    """Definitions and folders of headers of all of them: no file is told something else than another."""
    found = {}
    for command in commands:
        words = shlex.split(command["command"])
        for word, following in zip(words, words[1:]):
            if word.startswith(("-D", "-I", "-march", "-fopenmp")):
                found[word] = None
            elif word == "-isystem":
                found[word + following] = None
    return list(found)


def main(folder, jobs):
    folder = pathlib.Path(folder).resolve()
    commands = json.loads((folder / "compile_commands.json").read_text())
    compiled = {pathlib.Path(command["file"]) for command in commands}
    sources = sorted(path for path in compiled if path.is_relative_to(ROOT / "src"))
    flags = flags_of(command for command in commands if pathlib.Path(command["file"]) in sources) + MORE
    groups = {name: [] for name in GROUPS}
    for path in sources:
        groups[next(name for name in GROUPS if path.is_relative_to(ROOT / "src" / name))].append(path)
    tasks = []
    for name, members in groups.items():
        for number, pack in enumerate(packs.pack(members)):
            file = folder / f"{name.replace('/', '_') or 'rest'}_{number}.cpp"
            file.write_text("".join(f'{packs.BEFORE.format(i)}#include "{path}"\n{packs.AFTER}' for i, path in enumerate(pack)))
            tasks.append((sum(path.stat().st_size for path in pack), file))

    def run(task):
        return subprocess.run(["clang-tidy", "--quiet", "--config-file", ROOT / ".clang-tidy",
                               "--checks=-bugprone-suspicious-include",
                               f"--header-filter=^{ROOT}/(src|include)/", task[1], "--", *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    bad = False
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        for result in pool.map(run, sorted(tasks, reverse=True)):  # the longest first
            bad |= result.returncode != 0
            sys.stdout.write(result.stdout)
            sys.stdout.flush()
    print(f"clang-tidy: {len(sources)} files in {len(tasks)} packs")
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
