# SPDX-License-Identifier: Apache-2.0
"""What tests/README.md says of hostile inputs is there."""

import collections
import re

from conftest import ROOT


def test_every_test_of_the_table_exists():
    sources = collections.defaultdict(str)  # files of one name together
    for path in (path for top in ("src", "tests", "fuzz") for path in (ROOT / top).rglob("*.*") if path.suffix in (".cpp", ".py")):
        sources[path.name] += path.read_text("utf-8")
    rows = [line for line in (ROOT / "tests/README.md").read_text("utf-8").splitlines() if line.startswith("| ") and "`" in line.split("|")[2]]
    assert len(rows) >= 20
    for row in rows:
        for group in row.split("|")[2].split(";"):
            (file, *_), names = re.findall(r"`(\w+\.\w+)`", group), re.sub(r"`[^`]*`,?", "", group).replace(",", " ").split()
            for name in names:
                assert re.search(rf"\b{name}\b", sources[file]), f"{file} has no {name}"
            assert file in sources


def test_required_operands_are_those_of_the_schemas():
    """The table that the importer asks, against onnx's own; Resize is left out there."""
    from onnx import defs

    rows = re.findall(r'\{"([^"]*)", "(\w+)", (\d+), (0x[0-9a-f]+)\}', (ROOT / "src/onnx/required_operands.cpp").read_text("utf-8"))
    assert rows == sorted(rows, key=lambda row: (row[0], row[1], int(row[2])))
    for schema in defs.get_all_schemas_with_history():
        single = [value.option == defs.OpSchema.FormalParameterOption.Single for value in schema.inputs]
        required = (single + [False]).index(False)
        found = [int(mask, 16) for domain, name, since, mask in rows
                 if (domain, name) == (schema.domain, schema.name) and int(since) <= schema.since_version]
        assert schema.name == "Resize" or (found[-1] if found else 0) == (1 << required) - 1, schema.name


def test_no_family_keeps_a_map_of_strings_in_a_plan():
    """What compile() writes and load() reads are structs whose fields are listed (src/device/fields.h)."""
    rooms = [path for top in ("cpu", "cuda") for path in (ROOT / "src/backends" / top).rglob("*.cpp") if not path.name.endswith("_test.cpp")]
    families = [ROOT / f"src/backends/{top}" / file for top in ("cpu", "cuda")
                for file in re.findall(r"^FAMILY\(\w+, ([\w/]+\.cpp)\)", (ROOT / f"src/backends/{top}/families.def").read_text("utf-8"), re.MULTILINE)]
    assert len(families) > 40 and set(families) <= set(rooms)
    for path in families:
        text = path.read_text("utf-8")
        assert re.search(r"= describe<\w+>\(\);", text), f"{path} is not described by a struct"
        assert not re.search(r"\b(encode_code|decode_code)\(", text), f"{path} writes or reads a kernel's code by itself"
    for path in rooms:
        assert not re.search(r"\battrs\.set\(|const Attrs& \w+, const KernelShapes&", path.read_text("utf-8")), f"{path} hands a map of strings from compile() to load()"
