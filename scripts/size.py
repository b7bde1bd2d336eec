#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the limits that keep files readable: lines per file, per folder README and per folder CMakeLists.txt, and of the
functions that are to read as a table of contents; and files per folder.

    size.py              the limits, exit 1 when one is broken
    size.py --functions  also lists the longest functions (advice, never an error)
    size.py --totals     also prints the lines of each folder
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".hpp", ".cpp", ".c", ".cuh", ".py"}
FILE_LIMIT, README_LIMIT, CMAKE_LIMIT = 600, 20, 15
FOLDER_LIMIT, LARGE_FOLDERS = 40, ("src/ops",)  # files; one for each group of operators
FUNCTION_ADVICE = 60
CONTENTS = {"src/builder/build.cpp": ("Plan build(", 60)}  # what the definition begins with, its lines at most


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def statements(path):
    """Lines of a CMakeLists.txt that are neither empty, comment nor the name of a source."""
    return [line for line in lines(path) if not re.fullmatch(r"\s*(#.*|[\w./-]+\.(cpp|cuh)\)?|\w+/\w+\)?)?", line)]


def code_files():
    for top in ("src", "include", "tests", "bench", "fuzz", "scripts", "python"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path


def code_folders():
    """The folders of src/ that hold sources of their own."""
    return sorted({path.parent for path in (ROOT / "src").rglob("*") if path.suffix in (".h", ".cpp")})


def length_of(path, head):
    """Lines of the definition that begins with `head`, its signature included; 0 where there is none."""
    text = lines(path)
    start = next((number for number, line in enumerate(text) if line.startswith(head)), None)
    return 0 if start is None else text.index("}", start) - start + 1


def python_folders():
    """The folders of python/ that hold modules."""
    return sorted({path.parent for path in (ROOT / "python").rglob("*.py") if "__pycache__" not in path.parts})


def too_many(folder):
    """How many files a folder holds where those are more than it may; else 0."""
    count = sum(path.is_file() for path in folder.iterdir())
    return count if count > FOLDER_LIMIT and folder.relative_to(ROOT).as_posix() not in LARGE_FOLDERS else 0


def violations():
    for path in code_files():
        if len(lines(path)) > FILE_LIMIT:
            yield path, f"{len(lines(path))} lines, at most {FILE_LIMIT}"
    for folder in code_folders():
        readme, cmake = folder / "README.md", folder / "CMakeLists.txt"
        if not readme.exists():
            yield folder, "has no README.md"
        elif len(lines(readme)) > README_LIMIT:
            yield readme, f"{len(lines(readme))} lines, at most {README_LIMIT}"
        if cmake.exists() and len(statements(cmake)) > CMAKE_LIMIT:
            yield cmake, f"{len(statements(cmake))} lines, at most {CMAKE_LIMIT}"
    for folder in [*code_folders(), *python_folders()]:
        if too_many(folder):
            yield folder, f"{too_many(folder)} files, at most {FOLDER_LIMIT}"
    for name, (head, limit) in CONTENTS.items():
        if not 0 < length_of(ROOT / name, head) <= limit:
            yield ROOT / name, f"{length_of(ROOT / name, head)} lines of {head}…), at most {limit} and at least one"


def functions(path):
    """(lines, first line's number, its text) of each brace-delimited definition that starts in column 0 or 2."""
    start = None
    for number, line in enumerate(lines(path), 1):
        if re.match(r"( {0,2})[A-Za-z_~].*\)[^;]*\{$", line) and "namespace" not in line:
            start = (number, line)
        elif start and re.match(r" {0,2}\}$", line):
            yield number - start[0] + 1, start[0], start[1].strip()
            start = None


def advise():
    found = [(count, path, number, text) for path in code_files() if path.suffix != ".py"
             for count, number, text in functions(path) if count > FUNCTION_ADVICE]
    for count, path, number, text in sorted(found, reverse=True):
        print(f"{path.relative_to(ROOT)}:{number}: {count} lines: {text}")


def totals():
    count = collections.Counter()
    for path in code_files():
        count[path.parent.relative_to(ROOT).as_posix()] += len(lines(path))
    for folder, total in sorted(count.items()):
        print(f"{total:7} {folder}")
    print(f"{sum(count.values()):7} in all")


def main(arguments):
    if "--functions" in arguments:
        advise()
    if "--totals" in arguments:
        totals()
    found = [f"{path.relative_to(ROOT)}: {what}" for path, what in violations()]
    print("\n".join(found) if found else "size: within limits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
