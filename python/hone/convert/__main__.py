# SPDX-License-Identifier: Apache-2.0
"""python -m hone.convert: exits with 0 (done), 1 (the model was refused), 2 (wrong arguments), 3 (no such file) or 4 (a package is
missing), one line on standard error saying why and one what to do, as the `hone` command does."""

from __future__ import annotations

import argparse
import contextlib
import sys

from . import ENDINGS, ConvertError, Missing, Unknown, to_onnx


def shape(text: str):
    """name:[1,?,3] as (name, sizes); what is no number stays open."""
    name, separator, sizes = text.rpartition(":")
    if not separator or not sizes.startswith("[") or not sizes.endswith("]"):
        raise argparse.ArgumentTypeError(f"{text} is not name:[size,size,...]")
    return name, [int(each) if each.strip().isdigit() else None for each in sizes[1:-1].split(",") if each.strip()]


def arguments_of(words):
    """The parsed command line."""
    parser = argparse.ArgumentParser("python -m hone.convert", description="A framework's file as an ONNX model.",
                                     epilog=f"Files: a SavedModel's folder, {', '.join(ENDINGS)}. A pickle runs what it holds.")
    parser.add_argument("model")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.onnx")
    parser.add_argument("--opset", type=int, help="of the model; by default the converter's")
    parser.add_argument("--input-shapes", "--inputs", nargs="+", type=shape, default=[], metavar="NAME:[SIZES]", help="where the file leaves sizes open")
    parser.add_argument("--outputs", nargs="+", default=[], metavar="NAME", help="of a frozen graph (.pb)")
    parser.add_argument("--signature", help="of a SavedModel; by default serving_default")
    parser.add_argument("--example", metavar="ROWS", help=".csv or .pkl of rows for a pipeline: its columns have these types")
    return parser.parse_args(words)


def main(words=None) -> int:
    """The command; its exit status."""
    arguments = arguments_of(words)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what converters print
            to_onnx(arguments.model, arguments.output, opset=arguments.opset, shapes=dict(arguments.input_shapes),
                    outputs=arguments.outputs, signature=arguments.signature, example=arguments.example)
    except FileNotFoundError as error:
        print(f"hone convert: {error.filename or arguments.model}: there is no such file", file=sys.stderr)
        return 3
    except ConvertError as error:
        print(f"hone convert: {error}", file=sys.stderr)
        return 4 if isinstance(error, Missing) else 2 if isinstance(error, Unknown) else 1
    except OSError as error:
        print(f"hone convert: {error}", file=sys.stderr)
        return 3
    print(f"{arguments.output} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
