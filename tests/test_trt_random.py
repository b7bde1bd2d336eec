# SPDX-License-Identifier: Apache-2.0
"""Random sequences of calls over the module `tensorrt`, good arguments and bad ones: whatever a program does, it gets an answer or an exception
of Python's, never a crash and never an error inside of the module. Each walk runs in a process of its own; what failed says its seed.

    python tests/test_trt_random.py --seed 7 --walks 1            one walk again
    python tests/test_trt_random.py --seconds 1200                walks for so long, from a seed that it prints

`./dev random-calls` does the latter with the sanitizers for twenty minutes.
"""

import argparse
import faulthandler
import os
import pathlib
import random
import resource
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

WALKS, STEPS = 6, 220
MEMORY = 12 << 30  # a network may be asked for that no machine holds
# What a program may see raised; all else is an error of the module's own.
EXPECTED = (TypeError, ValueError, IndexError, RuntimeError, OverflowError, NotImplementedError)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--walks", type=int, default=10 ** 9)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    faulthandler.enable()
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # whose own memory has no bound
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import trt_walk

    seed = random.randrange(2 ** 31) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    end, done = time.monotonic() + options.seconds, 0
    while done < options.walks and time.monotonic() < end:
        walk = trt_walk.Walk(seed + done, EXPECTED)
        try:
            walk.go(options.steps)
        except Exception:
            traceback.print_exc()
            print(f"seed {seed + done} failed behind:\n" + "\n".join(walk.told[-12:]), flush=True)
            return 1
        done += 1
    print(f"{done} walks of {options.steps} calls: {walk.answered} answers and {walk.refused} exceptions in the last one", flush=True)
    return 0


def test_random_calls_get_an_answer_or_an_exception():
    import pytest
    from conftest import BIN, PACKAGE

    if not (PACKAGE / "hone").exists():
        pytest.skip("this build has no Python binding (sanitizers)")
    seed = int(os.environ.get("HONE_FUZZ_SEED", "7"))
    done = subprocess.run([sys.executable, __file__, "--seed", str(seed), "--walks", str(WALKS)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False,
                          env={**os.environ, "HONE_PACKAGE": str(PACKAGE), "HONE_BIN": str(BIN), "HONE_TENSORRT_DEVICE": "cpu"})
    assert done.returncode == 0, done.stdout[-6000:]


if __name__ == "__main__":
    sys.exit(main())
