# SPDX-License-Identifier: Apache-2.0
"""docs/operators.md: what the library says of its operators, joined with what ONNX's node cases show of them.

    python tests/conformance/operators.py     # runs the cases and writes docs/operators.md

tests/test_conformance.py makes the same text from its own run and compares.
"""

import collections
import json
import pathlib
import subprocess
import sys

import onnx

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from conformance import suite  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/operators.md"

HEAD = """# Operators

Written by `python tests/conformance/operators.py`; `tests/test_conformance.py` keeps it true.

Every operator has a reference implementation, so every one runs. The columns:

- *opsets*: versions of the operator set in which the operator is read. `1+`: from the first version that has it to the newest.
- *types*: element types of operands in ONNX's node cases that pass. Others may work; these are shown.
- *sources*: who else has kernels for it in at least one of these cases, as they are or with all operands but the first as
  constants, on an x86-64 processor with AVX2: Hone's own, `cpu` and `host` (of which the contents of operands decide how large
  results are, or whether they are refused), or `onednn`. Without an entry the reference runs it, or
  nothing is left to run (shape arithmetic is evaluated while building). Kernels for NVIDIA GPUs are not in the table:
  `hone inspect capability MODEL.onnx --device=cuda:0` asks them.
- *cases*: ONNX's node cases with the operator that pass, of those that there are. What does not pass stands in
  [expected_failures.txt](../tests/conformance/expected_failures.txt). Operators without node cases are held against ONNX
  Runtime (`tests/test_microsoft.py`, `tests/test_maps.py`) or central differences (`tests/test_gradient.py`), or have unit
  tests."""


def short(kind):
    """"f32" for TensorProto.FLOAT, as the program itself prints types."""
    name = onnx.TensorProto.DataType.Name(kind).lower()
    names = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16"}
    for long, letter in (("uint", "u"), ("int", "i"), ("float8", "f8"), ("float4", "f4")):
        if name.startswith(long) and name not in names:
            return letter + name[len(long):]
    return names.get(name, name)


def library(program):
    """[{domain, operator, opsets}] as the program lists them."""
    return json.loads(subprocess.run([program, "inspect", "operators", "--json"], capture_output=True, check=True).stdout)


def shown(failed, seen):
    """{(domain, operator): [cases passed, cases, types, sources]} of a run of the node cases."""
    table = collections.defaultdict(lambda: [0, 0, set(), set()])
    for name, case in suite.cases("node").items():
        used = {(node.domain or "ai.onnx", node.op_type) for node in suite.case_model(case).graph.node}
        for key in used:
            table[key][0] += name not in failed
            table[key][1] += 1
        for domain, operator, types, sources in seen.get(name, []):
            row = table[domain or "ai.onnx", operator]
            row[2].update(types)
            row[3].update(sources)
    return table


def markdown(failed, seen, program=ROOT / "build/release/bin/hone"):
    table, lines, domain = shown(failed, seen), [HEAD], None
    for row in library(program):
        if row["domain"] != domain:
            domain = row["domain"]
            lines += [f"\n## {domain}\n", "| operator | opsets | types | sources | cases |", "|---|---|---|---|---:|"]
        passed, count, types, sources = table.get((domain, row["operator"]), (0, 0, (), ()))
        cells = [row["operator"], row["opsets"], " ".join(short(kind) for kind in sorted(types)), " ".join(sorted(sources)),
                 f"{passed}/{count}" if count else "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    seen = {}
    failed, count = suite.failures("node", "tuned", seen=seen)
    DOCUMENT.write_text(markdown(failed, seen))
    print("\n".join(f"{name}: {message}" for name, message in sorted(failed.items())))
    print(f"{count - len(failed)} of {count} cases pass; wrote {DOCUMENT}")
