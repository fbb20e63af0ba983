"""What ranks print."""

from __future__ import annotations

import re

__all__ = ["Printed"]

#: What the C++ runtime prints when gloo aborts a rank over a message that does
#: not fit.  Whether it gets that far before the world is ended is chance, and
#: what it means is said better in the failure.
_LAST_WORDS = re.compile(r"terminate called after throwing .*\n(?:  what\(\): .*\n?)?")


class Printed:
    """Keeps what each rank prints, up to a limit.

    Args:
        size: how many ranks.
        limit: bytes of each.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.limit = limit
        self._bytes = [bytearray() for _ in range(size)]

    def add(self, rank: int, data: bytes) -> bool:
        """Take what a rank has printed; whether that goes beyond the limit for the first time."""
        printed = self._bytes[rank]
        if len(printed) > self.limit:
            return False
        printed += data
        return len(printed) > self.limit

    def by(self, rank: int) -> str:
        """All that was kept of a rank's."""
        return bytes(self._bytes[rank]).decode("utf-8", "replace")

    def texts(self) -> tuple[str, ...]:
        """What each rank printed, in rank order."""
        texts = (bytes(one[: self.limit]).decode("utf-8", "replace") for one in self._bytes)
        return tuple(_LAST_WORDS.sub("", text) for text in texts)
