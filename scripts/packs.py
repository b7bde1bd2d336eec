#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put the source files of one target into packs that compile as one file each (HONE_UNITY in cmake/hone.cmake).

A header that every file reads is then read once a pack. Two files share a pack where nothing that one keeps to itself (in
an unnamed namespace, static, a macro) has the name of anything that the other declares or includes. Names are found by the
layout that clang-format gives: what is declared outside of classes begins its line.

    packs.py FILE...      prints a line for each file: the number of its pack, and the file
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES = 3000
DECLARATION = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum class|enum|using) (\w+)"
                         r"|(?:[\w:<>,&*\s\[\]().\"]+?[\s&*])([a-zA-Z_]\w*)(?:\(|\{|\[| = |;)")
# Further constants of a declaration, on its first line and on those behind it.
FURTHER = re.compile(r"(?:, |^ +)(k[A-Z]\w*)(?= = |\[|\{|;)")
# Compiled once per instruction set, by including itself; written for a name that a macro gives; with names that an enumeration brings.
ALONE = re.compile(r"foreach_target\.h|^#undef |^using enum ", re.MULTILINE)
# Told apart by the type they take, wherever they stand; or given a name of their own in each file by cmake/hone.cmake.
APART = {"field_names", "reason_against"}
# What gives a file's reason_against a name of its own.
BEFORE = "#define reason_against reason_against_{}\n"
AFTER = "#undef reason_against\n"


@functools.cache
def declared(path):
    """(names that stay in the file, names that others see)"""
    own, seen, hidden = set(), set(), False
    unfinished = None  # where further constants of a declaration that goes on belong
    for line in path.read_text().splitlines():
        if line.startswith("namespace {"):
            hidden = True
        elif line.startswith("}  // namespace") and line.strip() == "}  // namespace":
            hidden = False
        elif line.startswith("#define "):
            own.add(re.match(r"#define (\w+)", line)[1])
        elif line[:1].isalpha() and (match := DECLARATION.match(line)):
            name = match[1] or match[2]
            names = own if hidden or line.startswith("static ") else seen
            if name not in APART:
                names.add(name)
            names.update(FURTHER.findall(line))
            unfinished = names if line.startswith("constexpr ") and ";" not in line else None
        elif unfinished is not None:
            unfinished.update(FURTHER.findall(line))
            if ";" in line:
                unfinished = None
    return own, seen


@functools.cache
def included(path):
    """What the file itself includes of ours."""
    found = []
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
        for folder in (path.parent, ROOT / "src", ROOT / "include"):
            if (folder / name).is_file() and not name.endswith((".def", ".cpp")):
                found.append(folder / name)
                break
    return found


@functools.cache
def includes(path):
    """The file and all that it sees; headers of the C interface include each other."""
    found, left = set(), [path]
    while left:
        if (header := left.pop()) not in found:
            found.add(header)
            left += included(header)
    return found


class Source:
    def __init__(self, path):
        text = path.read_text()
        self.path, self.lines = path, text.count("\n")
        self.alone = ALONE.search(text) is not None
        self.own = declared(path)[0]
        self.seen = set().union(*(names for header in includes(path) for names in declared(header))) - self.own

    def clashes(self, other):
        return bool(self.alone or other.alone or self.own & (other.own | other.seen) or self.seen & other.own)


def pack(paths):
    sources = [Source(pathlib.Path(path)) for path in paths]
    sources.sort(key=lambda source: -sum(source.clashes(other) for other in sources))
    packs = []
    for source in sources:  # the most quarrelsome first: the others find a place beside them
        fitting = (pack for pack in packs if not any(map(source.clashes, pack))
                   and sum(s.lines for s in pack) + source.lines <= MOST_LINES)
        found = next(fitting, None)
        if found is None:
            packs.append(found := [])
        found.append(source)
    return [[source.path for source in pack] for pack in packs]


def main(paths):
    for number, paths in enumerate(pack(paths)):
        for path in paths:
            print(number, path)


if __name__ == "__main__":
    main(sys.argv[1:])
