"""What simulated ranks have sent, in numbers: as little as a bound can be judged by."""

from __future__ import annotations

import msgspec
import torch

from grader.core.verdict import Volume

__all__ = ["Ledger", "Tally"]


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


class Tally(msgspec.Struct, array_like=True, frozen=True):
    """What was sent, in all and by rank; a bound is judged on it as on a trace.

    Attributes:
        messages: received, in all.
        sent: bytes, by rank.
        elements: by rank.
        strangers: messages to ranks that are no neighbours on the ring.
    """

    messages: int
    sent: list[int]
    elements: list[int]
    strangers: int

    @property
    def traffic(self) -> Volume:
        """The numbers that exercises put limits on, but for rounds: those need a trace."""
        return Volume(self.messages, sum(self.sent), max(self.sent, default=0))

    @property
    def stranger_count(self) -> int:
        """Messages to ranks that are no neighbours on the ring."""
        return self.strangers

    @property
    def max_sent_elements(self) -> int:
        """The most elements that any one rank sent."""
        return max(self.elements, default=0)
