#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the C interface with the last release's, by libabigail: additions pass, what was taken away or changed fails.

    abi.py            compares include/hone/*.h with tests/capi/hone.abi
    abi.py --write    writes that file: part of making a release

What is compared is a library of one empty function for each declaration of the headers, compiled with what debuggers read: the
functions, structs and enumerations of the headers to the byte, and nothing of what is behind them, in a second. That libhone.so shows
exactly these functions is another test's matter (tests/test_install.py); that it has them with these parameters, the compiler's.

A struct may have more members at its end (docs/c-api.md). abidiff has no words for that which do not let other changes pass too, so
they are taken off here before it looks. They must make the struct larger: by its size the library tells which members a program knows,
and one that lies in what used to be padding would be read from programs that never wrote it.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

from capi_calls import functions

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER, BASELINE = ROOT / "include/hone/hone.h", ROOT / "tests/capi/hone.abi"


def parts(header):
    """The header and those beside it."""
    return [header, *sorted(path for path in header.parent.glob("*.h") if path != header)]


def stub(header):
    """A source that defines what the headers declare."""
    lines = [f'#include "{part.name}"' for part in parts(header)]
    for result, name, parameters in functions("".join(part.read_text(encoding="utf-8") for part in parts(header))):
        listed = ", ".join(f"{kind} {called}" for kind, called, _ in parameters) or "void"
        lines.append(f"{result} {name}({listed}) {{ {'' if result == 'void' else 'return 0; '}}}")
    return "\n".join(lines) + "\n"


def dump(header, out):
    """Writes the interface as abidw describes it."""
    with tempfile.TemporaryDirectory() as name:
        source, library = pathlib.Path(name) / "stub.c", pathlib.Path(name) / "libhone.so"
        source.write_text(stub(header), encoding="utf-8")
        compiler = ["cc", "-g", "-O0", "-w", "-shared", "-fPIC", "-Wl,-soname,libhone.so.1", f"-I{header.parent}", f"-I{header.parent.parent}"]
        subprocess.run([*compiler, source, "-o", library], check=True)
        subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", library, "--out-file", out], check=True)


def structs(tree):
    return {struct.get("name"): struct for struct in tree.iter("class-decl") if struct.find("data-member") is not None}


def take_off_growth(before, after):
    """Members that structs of `after` have behind those of `before` go; what is wrong with them."""
    known = structs(before)
    for name, struct in structs(after).items():
        if name not in known:
            continue
        members, size = struct.findall("data-member"), known[name].get("size-in-bits")
        added = members[len(known[name].findall("data-member")):]
        if not added:
            continue
        if struct.get("size-in-bits") == size:
            yield f"{added[0].find('var-decl').get('name')} of {name} lies where {name} had padding: put what fills it, or larger members, first"
        for member in added:
            struct.remove(member)
        struct.set("size-in-bits", size)


def compare(header, baseline=BASELINE):
    """What is wrong with the header, in sentences; None where all is right."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "new.abi"
        dump(header, path)
        after = xml.parse(path)
        wrong = list(take_off_growth(xml.parse(baseline), after))
        after.write(path)
        done = subprocess.run(["abidiff", "--no-added-syms", baseline, path], capture_output=True, text=True, check=False)
    if done.returncode:
        wrong += [done.stdout + done.stderr]
    return "\n".join(wrong).rstrip() or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="the header is a release's: keep its interface")
    if parser.parse_args().write:
        dump(HEADER, BASELINE)
        return 0
    wrong = compare(HEADER)
    if wrong:
        print(f"{wrong}\nabi: programs that were built with the last release would not run; add beside what is there, or raise SOVERSION")
        return 1
    print("abi: programs that were built with the last release run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
