# SPDX-License-Identifier: Apache-2.0
"""src/onnx/operand_types.def: which element types ONNX's operators take where, written from the schemas of the package onnx.

    python scripts/operand_types.py [--check]      # --check: exit 1 where the file is another
"""

import pathlib
import sys

import onnx
import onnx.defs

FILE = pathlib.Path(__file__).resolve().parent.parent / "src/onnx/operand_types.def"
HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Written by scripts/operand_types.py from ONNX's schemas: an operator of the default domain, the version from which on the row holds, a
// letter for each operand, and the types of each letter (bit i: ONNX's type i). Operands of one letter have one type; a dot may be
// anything; a plus says that the last letter goes on. Read by operand_types.cpp.
"""
WORDS = {"float": "FLOAT", "double": "DOUBLE", **{word.lower(): word for word in onnx.TensorProto.DataType.keys()}}


def mask_of(types):
    """0: other things than tensors are among them."""
    mask = 0
    for text in types:
        if not text.startswith("tensor("):
            return 0
        mask |= 1 << onnx.TensorProto.DataType.Value(WORDS[text[7:-1]])
    return mask


def row_of(schema):
    named = {each.type_param_str: each.allowed_type_strs for each in schema.type_constraints}
    letters, masks, text = {}, [], ""
    for operand in schema.inputs:
        mask = mask_of(named.get(operand.type_str, [operand.type_str]))
        variadic = operand.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
        if mask == 0 or (variadic and not operand.is_homogeneous):
            text += "."
        else:
            if operand.type_str not in letters:
                letters[operand.type_str] = chr(ord("A") + len(letters))
                masks.append(mask)
            text += letters[operand.type_str]
        text += "+" if variadic else ""
    return text.rstrip("."), masks


def written():
    schemas = [each for each in onnx.defs.get_all_schemas_with_history() if not each.domain and not each.deprecated]
    lines, last = [], None
    for schema in sorted(schemas, key=lambda each: (each.name, each.since_version)):
        letters, masks = row_of(schema)
        if (schema.name, letters, masks) != last:
            lines.append(f'{{"{schema.name}", {schema.since_version}, "{letters}", {{{", ".join(map(hex, masks))}}}}},')
        last = schema.name, letters, masks
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(FILE.read_text() != written())
    FILE.write_text(written())
