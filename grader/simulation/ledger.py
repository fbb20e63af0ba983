"""What simulated ranks have sent, in numbers: as little as a bound can be judged by."""

from __future__ import annotations

import torch

from grader.core.wire import Tally

__all__ = ["Ledger"]


class Ledger:
    """Counts messages while they are delivered.

    Args:
        size: how many ranks.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._messages = 0
        self._elements = [0] * size
        self._bytes = [0] * size
        self._strangers = 0

    def note(self, source: int, destination: int, tensor: torch.Tensor) -> None:
        """A message has been received."""
        self._messages += 1
        self._elements[source] += tensor.numel()
        self._bytes[source] += tensor.nbytes
        if (destination - source) % self._size not in (1, self._size - 1):
            self._strangers += 1

    def tally(self) -> Tally:
        """What was counted."""
        return Tally(self._messages, self._bytes, self._elements, self._strangers)
