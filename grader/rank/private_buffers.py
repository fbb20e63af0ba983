"""Buffers of a collective in flight, which nobody should touch: the transport gets copies.

So a mistake shows every time: who reads too early reads what was there before,
and who writes too early is found, since the memory is not as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.rank.recorder import checksum

__all__ = ["PrivateBuffers", "tensors_of"]


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in lists of lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)


class PrivateBuffers:
    """Copies of what a collective is called with.

    Args:
        args: of the method: what it writes, what it reads, and more.
    """

    def __init__(self, args: tuple[Any, ...]) -> None:
        self._mine: dict[int, torch.Tensor] = {}
        self._given = list(tensors_of(list(args[:2])))
        self._written = list(tensors_of(list(args[:1])))
        self._before = [_sum(tensor) for tensor in self._given]
        #: the arguments with the copies in their place
        self.args = (*map(self._copied, args[:2]), *args[2:])

    @staticmethod
    def possible(args: tuple[Any, ...]) -> bool:
        """Whether there are tensors, and all of them can be copied as they lie in memory."""
        found = list(tensors_of(list(args[:2])))
        return bool(found) and all(t.layout is torch.strided for t in found)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._mine:
                self._mine[id(value)] = value.detach().clone()
            return self._mine[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(self._copied(item) for item in value)
        return value

    def changed(self) -> bool:
        """Whether somebody has written to the originals."""
        return [_sum(tensor) for tensor in self._given] != self._before

    def remember(self) -> None:
        """Take the originals, as they are now, for what nobody should touch."""
        self._before = [_sum(tensor) for tensor in self._given]

    def originals(self, value: Any) -> Any:
        """A value of the transport's, with the originals in the place of their copies."""
        mine = {copy.data_ptr(): copy for copy in self._mine.values() if copy.nbytes}
        by_copy = {self._mine[id(tensor)].data_ptr(): tensor for tensor in self._given}

        def original(one: Any) -> Any:
            if isinstance(one, torch.Tensor):
                copy = mine.get(one.data_ptr())
                same = copy is not None and (copy.shape, copy.dtype) == (one.shape, one.dtype)
                return by_copy[one.data_ptr()] if same else one
            if isinstance(one, (list, tuple)):
                return type(one)(original(item) for item in one)
            return one

        return original(value)

    def deliver(self) -> None:
        """Copy what was written to where it belongs."""
        for tensor in self._written:
            # the transport itself would write behind autograd's back as well
            tensor.data.copy_(self._mine[id(tensor)])


def _sum(tensor: torch.Tensor) -> int:
    return checksum(tensor.detach().contiguous())
