#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write calls of every function of hone.h that are wrong in one argument: the text that src/capi/calls_test.cpp includes.

    capi_calls.py include/hone/hone.h [ANOTHER.h ...] calls.inc

For each pointer of each function there is a block that calls the function once for every wrong pointer that the test knows for the
type, all other arguments being right; for each whole number one with numbers out of range. What a right argument is, the test says by
type and name. A function that is added to the header is thereby called without anybody's doing.
"""

import re
import sys

FUNCTION = re.compile(r"HONE_API\s+(?P<result>[\w\s*]+?)\s*(?P<name>hone_\w+)\((?P<parameters>[^;]*)\);")
CALLBACK = re.compile(r"typedef\s+\w[\w\s*]*\(\*(\w+)\)\(")
NUMBERS = {"int", "size_t", "int64_t", "double"}


def functions(header):
    """(result, name, [(type, name, nullable)]) of each function."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    for match in FUNCTION.finditer(text):
        parameters = []
        for parameter in match["parameters"].split(","):
            parameter = " ".join(parameter.split())
            if parameter == "void":
                continue
            kind, name = re.fullmatch(r"(.*[\s*])(\w+)", parameter).groups()
            nullable = "HONE_NULLABLE" in kind
            kind = re.sub(r"\s*\*\s*", "*", kind.replace("HONE_NULLABLE", "")).strip()
            parameters.append((kind, name, nullable))
        yield match["result"].strip(), match["name"], parameters


def is_pointer(kind, callbacks):
    return kind.endswith("*") or kind in callbacks


def block(result, name, parameters, wrong, callbacks):
    kind, parameter, nullable = parameters[wrong]
    arguments = []
    for at, (each, called, _) in enumerate(parameters):
        if at == wrong:
            arguments.append(f"bad.as<{each}>()")
        else:
            arguments.append(f'objects.right<{each}>("{name}", "{called}")')
    if is_pointer(kind, callbacks):
        source = f"foreign_pointers<{kind}>()" if name.endswith("_destroy") else f"wrong_pointers<{kind}>()"
    else:
        source = f'wrong_numbers<{kind}>("{name}", "{parameter}")'
    call = f"{name}({', '.join(arguments)})"
    judge = f'judge("{name}", "{parameter}", bad, {str(nullable).lower()}'
    judged = f"{judge}, {call});" if result == "hone_status" else f"{call};\n    {judge});"
    return (f"TEST_F(Calls, {name}_{parameter}) {{\n  for (const Wrong& bad : {source}) {{\n    Objects objects;\n"
            f"    {judged}\n  }}\n}}\n")


def main():
    header = ""
    for path in sys.argv[1:-1]:
        with open(path, encoding="utf-8") as file:
            header += file.read()
    callbacks = set(CALLBACK.findall(header))
    blocks = []
    for result, name, parameters in functions(header):
        for at, (kind, _, _) in enumerate(parameters):
            if is_pointer(kind, callbacks) or kind in NUMBERS or kind.startswith("hone_"):
                blocks.append(block(result, name, parameters, at, callbacks))
    with open(sys.argv[-1], "w", encoding="utf-8") as file:
        file.write("\n".join(blocks))


if __name__ == "__main__":
    main()
