# SPDX-License-Identifier: Apache-2.0
"""python -m hone.farm: exits with 0, or with 1 and what is wrong on standard error."""

from __future__ import annotations

import argparse
import shlex
import sys

from . import FarmError, run


def arguments_of(words):
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        "python -m hone.farm", description="Times what models ask for on the nodes of a Ray cluster, into one timing cache for each kind of device.",
        epilog="What stands behind -- are flags of the build for all models: -- --fp16 --builderOptimizationLevel=4")
    parser.add_argument("models", nargs="+", metavar="MODEL", help="an ONNX file, or @LIST: a line each, a model and its own flags: a.onnx --optShapes=x:8x3x224x224")
    parser.add_argument("--kinds", default="here", help="resource[=device],...: what nodes declare with ray start --resources, and their device (default: this machine)")
    parser.add_argument("--store", required=True, metavar="URL", help="where results are kept: file://, s3://, gs://, memory://")
    parser.add_argument("--address", help="of the cluster (auto); without, this machine alone")
    parser.add_argument("--seconds", type=float, default=30, help="how much a worker is given at a time (30)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds after which a problem is rejected (300)")
    parser.add_argument("--probe-tolerance", type=float, default=0.1, help="how far a node may be off the others (0.1)")
    own = list(words)
    flags = []
    if "--" in own:
        at = own.index("--")
        own, flags = own[:at], own[at + 1:]
    return parser.parse_args(own), flags


def models_of(words):
    """Pairs of a path and flags of its own."""
    models = []
    for word in words:
        if not word.startswith("@"):
            models.append((word, ()))
            continue
        with open(word[1:], encoding="utf-8") as file:
            for line in map(shlex.split, file):
                if line:
                    models.append((line[0], tuple(line[1:])))
    return models


def main(words=None) -> int:
    """The command; its exit status."""
    arguments, flags = arguments_of(sys.argv[1:] if words is None else words)
    try:
        reports = run(models_of(arguments.models), arguments.kinds.split(","), arguments.store, flags, seconds=arguments.seconds,
                      tolerance=arguments.probe_tolerance, timeout=arguments.timeout, address=arguments.address)
    except (FarmError, OSError) as error:
        print(f"hone.farm: {error}", file=sys.stderr)
        return 1
    for report in reports:
        print(f"{report.cache}: {report.problems} problems, {report.known} known before, {report.timed} tactics timed, "
              f"{len(report.rejected)} rejected")
        for key, why in report.rejected:
            print(f"  rejected, {why}: {key}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
