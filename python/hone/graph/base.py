# SPDX-License-Identifier: Apache-2.0
"""What the parts of hone.graph share: the failure that they raise, and lists that keep both ends of an edge in step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base import Error


class GraphError(Error):
    """What is wrong with a graph that a program has put together."""


OnnxGraphSurgeonException = GraphError


class Links(list):
    """The inputs or outputs of a node or a tensor. Whatever enters or leaves the list has its owner entered into, or taken out of, its own
    list of the other side. A copy is a plain list."""

    __slots__ = ("_owner", "_other")

    def __init__(self, owner: Any, other: str, items: Iterable = ()):
        list.__init__(self, items)
        self._owner, self._other = owner, other
        for item in self:
            self._attach(item)

    def _attach(self, item: Any) -> None:
        try:
            list.append(getattr(item, self._other), self._owner)
        except AttributeError:
            raise GraphError(f"{item!r} stands where a tensor or a node is expected\n  hint: did you forget to unpack a list with *?") from None

    def _detach(self, item: Any) -> None:
        others = getattr(item, self._other)
        for at, other in enumerate(others):
            if other is self._owner:
                list.__delitem__(others, at)
                return

    def append(self, item: Any) -> None:
        self._attach(item)
        list.append(self, item)

    def extend(self, items: Iterable) -> None:
        for item in list(items):
            self.append(item)

    def insert(self, at: int, item: Any) -> None:
        self._attach(item)
        list.insert(self, at, item)

    def __setitem__(self, at: Any, item: Any) -> None:
        if isinstance(at, slice):
            new = list(item)
            gone = list.__getitem__(self, at)
            list.__setitem__(self, at, new)
        else:
            new, gone = [item], [self[at]]
            list.__setitem__(self, at, item)
        for each in gone:
            self._detach(each)
        for each in new:
            self._attach(each)

    def __delitem__(self, at: Any) -> None:
        gone = list.__getitem__(self, at) if isinstance(at, slice) else [self[at]]
        list.__delitem__(self, at)
        for each in gone:
            self._detach(each)

    def pop(self, at: int = -1) -> Any:
        item = list.pop(self, at)
        self._detach(item)
        return item

    def remove(self, item: Any) -> None:
        for at, each in enumerate(self):
            if each is item:
                del self[at]
                return
        del self[self.index(item)]  # one that is equal: of the same name

    def clear(self) -> None:
        gone = list(self)
        list.clear(self)
        for each in gone:
            self._detach(each)

    def __iadd__(self, items: Iterable) -> Links:
        self.extend(items)
        return self

    def __imul__(self, times: Any) -> Links:
        self[:] = list(self) * times
        return self

    def __add__(self, items: Iterable) -> list:
        return [*self, *items]

    def __copy__(self) -> list:
        return list(self)

    def __deepcopy__(self, memo: Any) -> list:
        return list(self)

    def __reduce__(self) -> tuple:
        return list, (list(self),)


def assign(present: Links, items: Iterable) -> None:
    """What `x.inputs = items` means. x.inputs += items arrives here with the list itself."""
    if items is not present:
        items = list(items)  # it may be the other end's list, which clear() empties
        present.clear()
        present.extend(items)
