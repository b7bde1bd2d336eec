# SPDX-License-Identifier: Apache-2.0
"""How far a build is: what it calls, and a bar that shows it."""

from __future__ import annotations

import sys
from typing import Any, TextIO


class Progress:
    """Hears how far a build is, a tree of phases with so many steps each; to be derived from. What a method raises ends the build."""

    def begin(self, phase: str, parent: str | None, steps: int) -> None:
        """A phase begins; `parent` is None for the root. Phases of one parent follow each other."""

    def step(self, phase: str, done: int) -> bool | None:
        """So many steps are done, from 1; the last one is the number of steps. True ends the measuring, as stop() does."""

    def end(self, phase: str) -> None:
        """The phase is over."""

    def stop(self) -> bool | None:
        """Asked again and again, also within steps. True ends the measuring: what has no time yet is chosen by rule, and the build goes
        on to a plan that is right and runs."""


class ProgressBar(Progress):
    """Shows the phases that have several steps: by tqdm where it is installed, else the innermost one in a line that is rewritten, and
    where nobody sees it rewritten, a line for each at its end."""

    WIDTH = 30

    def __init__(self, file: TextIO | None = None):
        self.file = sys.stderr if file is None else file
        self.rewrites = bool(getattr(self.file, "isatty", lambda: False)())
        self.open: list[list[Any]] = []  # phase, steps, done, tqdm's bar
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = None
        self.tqdm = tqdm

    def begin(self, phase: str, parent: str | None, steps: int) -> None:
        """A phase with one step has nothing to show."""
        bar = None
        if self.tqdm is not None and steps > 1:
            bar = self.tqdm(total=steps, desc=phase, file=self.file, position=sum(entry[3] is not None for entry in self.open))
        self.open.append([phase, steps, 0, bar])
        self._show()

    def step(self, phase: str, done: int) -> bool | None:
        """Moves the bar."""
        entry = self.open[-1]
        if entry[3] is not None:
            entry[3].update(done - entry[2])
        entry[2] = done
        self._show()
        return None

    def end(self, phase: str) -> None:
        """The bar is full."""
        _, steps, _, bar = self.open.pop()
        if bar is not None:
            bar.close()
        elif self.tqdm is None and steps > 1:
            self.file.write("\n" if self.rewrites else f"{phase} {steps}/{steps}\n")
            self.file.flush()

    def _show(self):
        phase, steps, done, _ = self.open[-1]
        if self.tqdm is not None or not self.rewrites or steps < 2:
            return
        filled = self.WIDTH * done // steps
        self.file.write(f"\r\x1b[K{phase} [{'#' * filled}{'.' * (self.WIDTH - filled)}] {done}/{steps}")
        self.file.flush()
