# SPDX-License-Identifier: Apache-2.0
"""IProgressMonitor: how far a build is, and the program's word that it shall end."""

import hone

from .._base.reports import called


class IProgressMonitor:
    """Hears how far a build is; to be derived from: phase_start(phase_name, parent_phase, num_steps), step_complete(phase_name, step) ->
    False to cancel, phase_finish(phase_name)."""

    def __init__(self):
        pass


class Told(hone.Progress):
    """Hone's progress in the monitor's words: steps from 0, names that are told apart. `cancelled` says whether the program ended it."""

    def __init__(self, monitor):
        self._monitor, self._open, self._seen = monitor, [], {}
        self.cancelled = False

    def begin(self, phase, parent, steps):
        """A phase of a name that is open already gets a number behind it."""
        names = [name for name, *_ in self._open]
        name = phase if phase not in names else f"{phase} {len(names)}"
        self._open.append([name, max(1, steps), 0])
        called(self._monitor.phase_start, name, names[-1] if names else None, max(1, steps))

    def step(self, phase, done):
        """All steps that were not told yet."""
        entry = self._open[-1]
        while entry[2] < done and not self.cancelled:
            self._complete(entry)
        return self.cancelled

    def _complete(self, entry):
        number = entry[2]
        entry[2] += 1
        if called(self._monitor.step_complete, entry[0], number, failed=False) is False:
            self.cancelled = True

    def end(self, phase):
        """The rest of the steps, then the end."""
        entry = self._open[-1]
        while entry[2] < entry[1] and not self.cancelled:
            self._complete(entry)
        self._open.pop()
        called(self._monitor.phase_finish, entry[0])

    def stop(self):
        """Asked between launches of a measurement."""
        return self.cancelled
