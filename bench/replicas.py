#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What two cards give together: the same plan on one and on both, in turns, queries per second. Skips where there are not two GPUs.

    bench/replicas.py MODEL.onnx... [--rounds 3] [--devices cuda:0,cuda:1] [-- FLAGS OF THE BUILD]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin/hone"


def run(*words):
    """The finished process."""
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, encoding="utf-8", check=False)


def rate(plan, devices):
    """Queries per second."""
    done = run("bench", plan, f"--device={devices}", "-t", "3", "--json", "--noDataTransfers")
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["queriesPerSecond"]


def main():
    """A line for each model; exit status 1 where two devices give less than 1.9 times one."""
    words, flags = sys.argv[1:], []
    if "--" in words:
        words, flags = words[:words.index("--")], words[words.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", default="cuda:0,cuda:1")
    arguments = parser.parse_args(words)
    first = arguments.devices.split(",")[0]
    for device in arguments.devices.split(","):
        if run("problems", "--describe", f"--device={device}").returncode != 0:
            print(f"skipped: there is no device {device}")
            return 0
    least = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            built = run("build", model, "-o", f"{folder}/plan", f"--device={first}", *flags)
            if built.returncode != 0:
                sys.exit(built.stderr)
            pairs = [(rate(f"{folder}/plan", first), rate(f"{folder}/plan", arguments.devices)) for _ in range(arguments.rounds)]
            one, all_ = (statistics.median(each) for each in zip(*pairs))
            least = min(least, all_ / one)
            print(f"{pathlib.Path(model).name}: {one:.1f} queries per second on {first}, {all_:.1f} on {arguments.devices}: {all_ / one:.2f} times")
    return 0 if least >= 1.9 else 1


if __name__ == "__main__":
    sys.exit(main())
