# SPDX-License-Identifier: Apache-2.0
"""Where results are kept: files that are written once and never changed, anywhere that fsspec reaches.

    parts/<kind>/<sha256 of what was asked>-<uuid>.jsonl    the times of one problem: lines of a timing cache
    probes/<kind>/<node>-<uuid>.json                        what the fixed problem took on a node
    cache-<kind>.jsonl                                      all parts of a kind merged, made anew by whoever merges

No lock, no append, no server. A task that is lost leaves nothing; two drivers at once both leave what they measured, and since merging
knows no order, whoever merges last has it all.
"""

from __future__ import annotations

import hashlib
import json
import uuid

from .program import FarmError, merge


def problem_of(line: str) -> str:
    """The problem of a line of a timing cache."""
    return json.loads(line)["key"].split(" | ")[0]


class Store:
    """A folder at a URL: file://, memory://, s3://, gs:// ..."""

    def __init__(self, url: str):
        try:
            import fsspec
        except ImportError:
            raise FarmError('fsspec is not installed; pip install "hone[ray]"') from None
        self.url = url
        self.files, self.root = fsspec.core.url_to_fs(url)

    def _path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def _write(self, name: str, text: str):
        """All of it, or nothing: readers see no half of a file."""
        path = self._path(name)
        self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
        file = self.files.open(path, "wb", autocommit=False)
        file.write(text.encode())
        file.close()
        file.commit()

    def _names(self, folder: str):
        self.files.invalidate_cache()
        try:
            return sorted(entry.rpartition("/")[2] for entry in self.files.ls(self._path(folder), detail=False))
        except FileNotFoundError:
            return []

    def _read(self, name: str) -> str:
        return self.files.cat_file(self._path(name)).decode()

    @staticmethod
    def digest(key: str, flags=()) -> str:
        """Of what was asked: a problem, and flags that change what is timed of it."""
        return hashlib.sha256("\n".join([key, *flags]).encode()).hexdigest()

    def done(self, kind: str):
        """The digests of what is there."""
        return {name.partition("-")[0] for name in self._names(f"parts/{kind}")}

    def put(self, kind: str, text: str, flags=()):
        """The lines of a cache as parts, a problem each."""
        header, *lines = text.splitlines()
        by_problem = {}
        for line in lines:
            by_problem.setdefault(problem_of(line), []).append(line)
        for problem, own in by_problem.items():
            self._write(f"parts/{kind}/{self.digest(problem, flags)}-{uuid.uuid4()}.jsonl", "\n".join([header, *own, ""]))

    def probes(self, kind: str):
        """The times of the fixed problem, of each node one."""
        found = {}
        for name in self._names(f"probes/{kind}"):
            probe = json.loads(self._read(f"probes/{kind}/{name}"))
            found[probe["node"]] = probe["ms"]
        return found

    def put_probe(self, kind: str, node: str, ms: float):
        """What the fixed problem took on a node."""
        self._write(f"probes/{kind}/{node}-{uuid.uuid4()}.json", json.dumps({"node": node, "ms": ms}))

    def cache_name(self, kind: str) -> str:
        """Of the merged cache."""
        return f"{self.url.rstrip('/')}/cache-{kind}.jsonl"

    def merge(self, kind: str) -> str:
        """Makes the cache of all parts of the kind; its text. What others add meanwhile is taken in, too."""
        names, text = None, ""
        while (present := self._names(f"parts/{kind}")) != names:
            names = present
            text = merge(self._read(f"parts/{kind}/{name}") for name in names)
            self._write(f"cache-{kind}.jsonl", text)
        return text
