#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every block of a page of docs, in order, in one empty folder, with the Python that runs this: what a page shows is what works.

    frameworks.py docs/from-scikit-learn.md docs/from-jax.md --package build/release/python --bin build/release/bin

Blocks of ```python are programs, each by itself; those of ```sh are bash. The first that fails ends the page, and the exit status is 1.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page, environment):
    """Whether all of a page's blocks run."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (kind, text) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
            command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-e", "-o", "pipefail", "-c", text]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            print(f"{page.name}, block {number} ({kind}): {'runs' if done.returncode == 0 else 'FAILS'}", flush=True)
            print("".join(f"    {line}\n" for line in done.stdout.splitlines()[-20:]), end="", flush=True)
            if done.returncode != 0:
                print("".join(f"    {line}\n" for line in done.stderr.splitlines()[-20:]), end="", flush=True)
                return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--package", type=pathlib.Path, help="a build's folder python, where the wheel is not installed")
    parser.add_argument("--bin", type=pathlib.Path, help="a build's folder bin")
    options = parser.parse_args()
    before = [str(pathlib.Path(sys.executable).parent)] + ([str(options.bin.resolve())] if options.bin else [])
    environment = {**os.environ, "PATH": os.pathsep.join([*before, os.environ["PATH"]]), "TF_CPP_MIN_LOG_LEVEL": "3"}
    if options.package:
        environment["PYTHONPATH"] = str(options.package.resolve())
    sys.exit(0 if all([run_page(page, environment) for page in options.pages]) else 1)


if __name__ == "__main__":
    main()
