"""The store through which the ranks of a world connect, kept by the judge.

gloo needs a store in which every rank puts its address and finds those of the others.  A file
would do, but ranks could use it to exchange data without messages, and it needs a folder that
they may write to.  This store lives in the judge, which sends every new entry to all ranks over
their own sockets, so that a lookup needs no request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from torch.distributed import distributed_c10d as c10d

from grader.core.verdict import Diagnosis
from grader.core.wire import BrokenFrame, Put, Refused, StoreEntry

__all__ = ["RankStoreServer", "RankStore"]

#: Limits on an entry, in bytes; a rank's address takes a few dozen for each of its peers.
LONGEST_KEY, LONGEST_VALUE = 512, 1 << 16

#: The most entries that a rank puts, updates included: addresses and counters of subgroups.
MANY = 4096

#: The most bytes of all entries of a world.
ROOM = 256 << 20


class RankStoreServer:
    """The judge's side of the store.

    Args:
        tell: sends an entry to every rank.
    """

    def __init__(self, tell: Callable[[StoreEntry], None]) -> None:
        self._tell = tell
        self._entries: dict[str, bytes] = {}
        self._puts: dict[int, int] = {}
        self._room = ROOM
        self.open = True

    def take(self, rank: int, put: Put) -> None:
        """Take an entry that a rank puts into the store.

        Raises:
            BrokenFrame: no :class:`RankStore` would send this entry.
            Refused: the world's entries are too large, or the entry to add to is no number.
        """
        if not self.open:
            raise BrokenFrame("an entry for the store, which is closed")
        if len(put.key) > LONGEST_KEY or len(put.value) > LONGEST_VALUE:
            raise BrokenFrame(f"an entry of {len(put.value)} bytes for the store")
        self._puts[rank] = self._puts.get(rank, 0) + 1
        if self._puts[rank] > MANY:
            raise BrokenFrame(f"more than {MANY} entries for the store")
        self._room -= len(put.key) + len(put.value)
        if self._room < 0:
            what = f"puts more into the store than the {ROOM >> 20} MB that a world has there"
            raise Refused(what, Diagnosis.MEMORY_LIMIT)
        value = put.value
        if put.amount is not None:
            try:
                value = str(int(self._entries.get(put.key, b"0")) + put.amount).encode()
            except ValueError:
                what = f"adds to entry {put.key!r} of the store, which holds no number"
                raise Refused(what, Diagnosis.EXCEPTION) from None
        self._entries[put.key] = value
        self._tell(StoreEntry(put.key, value, rank, put.number))


class RankStore(c10d.Store):
    """The rank's side of the store.

    Args:
        rank: the rank of this process.
        send: sends a frame to the judge.
    """

    def __init__(self, rank: int, send: Callable[[Put], None]) -> None:
        super().__init__()
        self._rank = rank
        self._send = send
        self._entries: dict[str, bytes] = {}
        self._answers: dict[int, bytes] = {}
        self._asked = 0
        self._open = True
        self._news = threading.Condition()

    def hear(self, told: StoreEntry) -> None:
        """Store an entry that the judge sends; called by the listening thread."""
        with self._news:
            self._entries[told.key] = told.value
            if told.rank == self._rank:
                self._answers[told.number] = told.value
            self._news.notify_all()

    def close(self) -> None:
        """Refuse further entries, which would be a way around messages."""
        self._open = False

    def _put(self, key: str, value: bytes, amount: int | None) -> bytes:
        if not self._open:
            raise RuntimeError("this exercise leaves the store closed; send messages instead")
        if len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
            raise ValueError(
                f"the store takes keys of up to {LONGEST_KEY} characters and values of up to"
                f" {LONGEST_VALUE:,} bytes, not {len(key)} and {len(value):,}; send messages"
                " instead"
            )
        with self._news:
            if self._asked == MANY:
                raise RuntimeError(
                    f"a rank can put {MANY} entries into the store, and this is more"
                )
            self._asked += 1
            number = self._asked
        self._send(Put(key, value, amount, number))
        with self._news:
            # when the call returns, the entry is in the store
            self._news.wait_for(lambda: number in self._answers)
            return self._answers.pop(number)

    # What torch calls. -------------------------------------------------------

    def set(self, key: str, value: Any) -> None:
        """Set the value of a key."""
        self._put(key, value.encode() if isinstance(value, str) else bytes(value), None)

    def add(self, key: str, amount: int) -> int:
        """Add to the number of a key, and return the sum."""
        return int(self._put(key, b"", amount))

    def get(self, key: str) -> bytes:
        """Block until a key has a value, and return it."""
        with self._news:
            self._news.wait_for(lambda: key in self._entries)
            return self._entries[key]

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys have values."""
        with self._news:
            return all(key in self._entries for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Block until all keys have values.  Ranks that never join are found from the trace."""
        with self._news:
            self._news.wait_for(lambda: all(key in self._entries for key in keys))

    def set_timeout(self, timeout: timedelta) -> None:
        """Ignore the time limit: the judge finds waits that cannot end."""
