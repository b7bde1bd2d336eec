# SPDX-License-Identifier: Apache-2.0
"""What a session with enable_profiling writes: a file of Chrome's trace format, with ONNX Runtime's names for what is the same."""

from __future__ import annotations

import json
import os
import threading
import time

from ..running import Context


class Profile:
    """Events of a session, in microseconds since it began."""

    def __init__(self, prefix: str, begin: float):
        self.begin, self.start_ns = begin, time.time_ns()
        now = time.time()
        self.path = f"{prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S', time.localtime(now))}_{int(now * 1000) % 1000:03}.json"
        self._events: list[dict] = []
        self._lock = threading.Lock()

    def add(self, name: str, begin: float, end: float, category: str = "Session", **arguments: str) -> None:
        """An event between two stamps of perf_counter()."""
        event = {"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": round((end - begin) * 1e6),
                 "ts": round((begin - self.begin) * 1e6), "ph": "X", "name": name, "args": arguments}
        with self._lock:
            self._events.append(event)

    def run(self, context: Context, provider: str) -> None:
        """An inference whose layers are timed."""
        begin = time.perf_counter()
        layers = context.profile()
        end = time.perf_counter()
        start = end - sum(ms for _, ms in layers) / 1e3
        for name, ms in layers:
            self.add(f"{name}_kernel_time", start, start + ms / 1e3, "Node", op_name=name, provider=provider)
            start += ms / 1e3
        self.add("model_run", begin, end)

    def write(self) -> str:
        """The file's name."""
        with self._lock, open(self.path, "w", encoding="utf-8") as file:
            json.dump(self._events, file)
        return self.path
