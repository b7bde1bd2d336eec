#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang-tidy on every source file of src/, in packs (packs.py): what it does to a header it then does once a pack.

    tidy.py FOLDER JOBS       FOLDER was configured by CMake (its compile_commands.json says how files are compiled)

A pack that passed is read again only when something that it reads has changed: ~/.cache/hone/lint holds a file for each such
pack, named by the hash of all that it was made of.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
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
VERSION = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, text=True).stdout
PASSED = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hone" / "lint"


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


@functools.cache
def content(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def made_of(pack, flags):
    """The hash of what clang-tidy's word on a pack depends on, wherever the tree lies; None where its headers cannot be found."""
    rule = subprocess.run(["c++", "-M", *flags, pack], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if rule.returncode != 0:
        return None
    read = rule.stdout.replace("\\\n", " ").split()[2:]  # behind the target and the pack itself
    told = [content(ROOT / ".clang-tidy"), content(__file__), VERSION, *flags, pack.read_text(), *read, *map(content, read)]
    return hashlib.sha256("\n".join(told).replace(str(ROOT), "").encode()).hexdigest()


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
        """What clang-tidy finds in a pack; None where the same has passed before."""
        mark = made_of(task[1], flags)
        if mark and (PASSED / mark).exists():
            return None
        result = subprocess.run(["clang-tidy", "--quiet", "--config-file", ROOT / ".clang-tidy",
                                 "--checks=-bugprone-suspicious-include",
                                 f"--header-filter=^{ROOT}/(src|include)/", task[1], "--", *flags],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if mark and result.returncode == 0:
            (PASSED / mark).touch()
        return result

    bad, unchanged = False, 0
    PASSED.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        for result in pool.map(run, sorted(tasks, reverse=True)):  # the longest first
            if result is None:
                unchanged += 1
                continue
            bad |= result.returncode != 0
            sys.stdout.write(result.stdout)
            sys.stdout.flush()
    print(f"clang-tidy: {len(sources)} files in {len(tasks)} packs, {unchanged} of them unchanged since they passed")
    return bad


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
