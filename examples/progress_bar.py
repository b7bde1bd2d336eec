# SPDX-License-Identifier: Apache-2.0
"""A build that shows how far it is and may be cut short: progress_bar.py MODEL.onnx OUT.plan [SECONDS]

Ctrl-C, or SECONDS, end the measuring, not the build: what has no time yet is chosen by rule, and the plan is right and runs. The times
measured so far are kept beside the plan, so that the next build goes on where this one stopped.
"""

import pathlib
import signal
import sys
import time

import hone


class Bar(hone.ProgressBar):
    """hone.ProgressBar shows the phases; this one knows when it is enough."""

    def __init__(self, seconds):
        super().__init__()
        self.until, self.interrupted = time.monotonic() + seconds, False
        signal.signal(signal.SIGINT, self.interrupt)

    def interrupt(self, *_):
        self.interrupted = True

    def stop(self):
        return self.interrupted or time.monotonic() > self.until


def main(model, out, seconds="inf"):
    times = pathlib.Path(out).with_suffix(".times")
    cache = hone.TimingCache(times.read_bytes() if times.exists() else b"")
    known, bar = len(cache), Bar(float(seconds))
    plan = hone.build(model, timing_cache=cache, progress=bar)
    plan.save(out)
    times.write_bytes(cache.bytes())
    print(f"{out}: {len(plan.layers())} layers, {len(cache) - known} new times,", "cut short" if bar.stop() else "complete")


if __name__ == "__main__":
    main(*sys.argv[1:])
