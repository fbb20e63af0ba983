"""The store through which the ranks of a world connect, kept by the judge.

gloo needs a store in which every rank puts its address and finds those of the others.  A file
would do, but ranks could use it to exchange data without messages, and it needs a folder that
they may write to.  This store lives in the judge, which sends every new entry to all ranks over
their own sockets.  A rank that looks something up asks first for what it may not have received yet:
what another has put there before it sent a message is there when the message has come, as it is in
torch's own stores.  The store outlives every rank, as that of ``torchrun``'s agent does.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Container, Sequence
from datetime import timedelta
from typing import Any

from torch.distributed import DistStoreError
from torch.distributed import distributed_c10d as c10d

from headcount.core.verdict import Diagnosis
from headcount.core.wire import (
    LONGEST_KEY,
    LONGEST_VALUE,
    BrokenFrame,
    Put,
    Refused,
    StoreEntry,
    StoreLookup,
    StoreSeen,
)

__all__ = ["RankStoreServer", "RankStore"]

#: The most entries that a rank puts, updates included: addresses and counters of subgroups.
MANY = 4096

#: The most lookups of a rank in one call, each of which the judge answers.
LOOKUPS = 1 << 16

#: The most bytes of all entries of a world.
ROOM = 256 << 20


class RankStoreServer:
    """The judge's side of the store.

    Args:
        tell: sends an entry to every rank.
        answer: sends one rank what it has asked for.
        allowance: returns the bytes that a rank may have put there in this call; None for any.
            What is put there is no message, and nobody counts it as one.
        limited: whether there are limits on how much a rank puts there, and how often it looks.
    """

    def __init__(
        self,
        tell: Callable[[StoreEntry], None],
        answer: Callable[[int, StoreSeen], None],
        allowance: Callable[[int], int] | None = None,
        limited: bool = True,
    ) -> None:
        self._tell = tell
        self._answer = answer
        self._allowance = allowance
        self._entries: dict[str, bytes] = {}
        self._puts: dict[int, int] = {}
        self._looks: dict[int, int] = {}
        #: by rank, the bytes that it has put there since ranks have joined, in this call
        self._used: dict[int, int] = {}
        self._calling = False
        #: by the prefix that a group has for its keys, the rank that has put each place's address
        self._addresses: dict[str, dict[int, int]] = {}
        #: the groups that earlier calls have made
        self._before: frozenset[tuple[int, ...]] = frozenset()
        self._room: float = ROOM if limited else math.inf
        self._limited = limited
        self.open = True

    def take(self, rank: int, put: Put) -> None:
        """Take an entry that a rank puts into the store.

        Raises:
            BrokenFrame: no :class:`RankStore` would send this entry.
            Refused: the world's entries are too large, or the entry to add to is no number.
        """
        if not self.open:
            raise BrokenFrame("an entry for the store, which is closed")
        self._puts[rank] = self._puts.get(rank, 0) + 1
        if self._limited and self._puts[rank] > MANY:
            raise BrokenFrame(f"more than {MANY} entries for the store")
        size = len(put.key) + len(put.value) + len(put.expected or b"")
        self._room -= size
        if self._room < 0:
            what = f"puts more into the store than the {ROOM >> 20} MB that a world has there"
            raise Refused(what, Diagnosis.MEMORY_LIMIT)
        self._used[rank] = self._used.get(rank, 0) + size
        if self._calling and self._allowance and self._used[rank] > self._allowance(rank):
            what = (
                "puts more into the store than the addresses of its groups: send messages instead"
            )
            raise Refused(what, Diagnosis.FORBIDDEN_CALL)
        value = put.value
        if put.expected is not None:
            # as torch's own stores do it
            there = self._entries.get(put.key, b"")
            if there != put.expected:
                self._tell(StoreEntry(put.key, there or put.expected, rank, put.number, False))
                return
        elif put.amount is not None:
            try:
                value = str(int(self._entries.get(put.key, b"0")) + put.amount).encode()
            except ValueError:
                what = f"adds to entry {put.key!r} of the store, which holds no number"
                raise Refused(what, Diagnosis.EXCEPTION) from None
        self._entries[put.key] = value
        prefix, _, place = put.key.rpartition("/")
        if place.isdecimal() and len(place) < 8:
            self._addresses.setdefault(prefix, {})[int(place)] = rank
        self._tell(StoreEntry(put.key, value, rank, put.number))

    def look(self, rank: int, look: StoreLookup) -> None:
        """Answer a rank that is about to look something up.

        Raises:
            BrokenFrame: no :class:`RankStore` would ask so often.
        """
        self._looks[rank] = self._looks.get(rank, 0) + 1
        if not self.open or (self._limited and self._looks[rank] > LOOKUPS):
            raise BrokenFrame(f"more than {LOOKUPS} lookups in the store, or one that is closed")
        self._answer(rank, StoreSeen(look.number))

    @property
    def groups(self) -> frozenset[tuple[int, ...]]:
        """The groups whose members have put their addresses there, by their global ranks.

        gloo puts each under the group's prefix and the rank in the group.  Groups outlive a call.
        """
        found = (
            tuple(places.get(i, -1) for i in range(len(places)))
            for places in self._addresses.values()
        )
        return frozenset(ranks for ranks in found if -1 not in ranks)

    @property
    def connections(self) -> int:
        """The connections of the groups that have been made in this call, one for each pair."""
        sizes = map(len, self.groups - self._before)
        return sum(size * (size - 1) // 2 for size in sizes)

    @property
    def keys(self) -> Container[str]:
        """The keys that have values now."""
        return self._entries

    def forget(self) -> None:
        """Forget all entries, since those of one call would mislead the next."""
        self._entries.clear()
        self._used.clear()
        self._looks.clear()
        self._before = self.groups
        self._calling = True


class RankStore(c10d.Store):
    """The rank's side of the store.

    Args:
        rank: the rank of this process.
        send: sends a frame to the judge.
        limited: as of :class:`RankStoreServer`.
    """

    def __init__(
        self, rank: int, send: Callable[[Put | StoreLookup], None], limited: bool = True
    ) -> None:
        super().__init__()
        self._limited = limited
        self._rank = rank
        self._send = send
        self._entries: dict[str, bytes] = {}
        self._answers: dict[int, bytes] = {}
        self._asked = 0
        self._looked = self._first_look = 0
        #: the number of the last lookup that the judge has answered
        self._seen = 0
        self._open = True
        self._news = threading.Condition()
        #: by thread, the keys that it waits for without a time limit
        self.waits: dict[int, list[str]] = {}
        self._hold, self._held = 0.0, False
        #: the keys that had no value when it looked
        self._missed: set[str] = set()

    def receive(self, entry: StoreEntry) -> None:
        """Store an entry that the judge sends; called by the listening thread."""
        with self._news:
            if entry.changed:
                self._entries[entry.key] = entry.value
            if entry.rank == self._rank:
                self._answers[entry.number] = entry.value
            self._news.notify_all()

    def receive_seen(self, entry: StoreSeen) -> None:
        """Note that all entries have come that were there at a lookup; by the listening thread."""
        with self._news:
            self._seen = entry.number
            self._news.notify_all()

    def forget(self, hold: float = 0.0) -> None:
        """Forget all entries, as the judge has done; called by the listening thread.

        Args:
            hold: seconds for which this rank stops between two calls, as any process may: before it
                first puts something there after a look, and before it sets a key that it has found
                without a value, which another rank may set meanwhile.
        """
        with self._news:
            self._hold, self._held = hold, False
            self._missed.clear()
            self._entries.clear()
            self._first_look = self._looked

    def close(self) -> None:
        """Refuse further entries, which would be a way around messages."""
        self._open = False

    def _put(
        self, key: str, value: bytes, amount: int | None = None, expected: bytes | None = None
    ) -> bytes:
        if not self._open:
            raise RuntimeError("this exercise leaves the store closed; send messages instead")
        if len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
            raise ValueError(
                f"the store takes keys of up to {LONGEST_KEY} characters and values of up to"
                f" {LONGEST_VALUE:,} bytes, not {len(key)} and {len(value):,}; send messages"
                " instead"
            )
        if self._hold and self._looked > self._first_look:
            sets_missed = key in self._missed and amount is None and expected is None
            if sets_missed or not self._held:
                self._held = True
                time.sleep(self._hold)
        with self._news:
            if self._limited and self._asked == MANY:
                raise RuntimeError(
                    f"a rank can put {MANY} entries into the store, and this is more"
                )
            self._asked += 1
            number = self._asked
        self._send(Put(key, value, amount, number, expected))
        with self._news:
            # when the call returns, the entry is in the store
            self._wait_for(lambda: number in self._answers, None)
            return self._answers.pop(number)

    def _look(self) -> None:
        """Wait for all entries that are in the store by now; return at once if it is closed."""
        with self._news:
            if not self._open:
                return
            if self._limited and self._looked - self._first_look == LOOKUPS:
                raise RuntimeError(
                    f"a rank can look into the store {LOOKUPS} times in one call, and this is"
                    " more: wait for the entry, with store.wait or store.get"
                )
            self._looked += 1
            number = self._looked
        self._send(StoreLookup(number))
        with self._news:
            self._wait_for(lambda: self._seen >= number, None)

    # What torch calls. -------------------------------------------------------

    def set(self, key: str, value: Any) -> None:
        """Set the value of a key."""
        self._put(key, _bytes(value))

    def add(self, key: str, amount: int) -> int:
        """Add to the number of a key, and return the sum."""
        return int(self._put(key, b"", amount))

    def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
        """Set a key that has the expected value, and return the value that it has now.

        A key without a value has the expected value if that is empty.
        """
        return self._put(key, _bytes(desired), expected=_bytes(expected))

    def get(self, key: str) -> bytes:
        """Block until a key has a value, and return it."""
        self._look()
        self._wait_until_set([key], None)
        return self._entries[key]

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys have values."""
        self._look()
        return self._has(keys)

    def _has(self, keys: Sequence[str]) -> bool:
        with self._news:
            missed = [key for key in keys if key not in self._entries]
            self._missed.update(missed)
            return not missed

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Block until all keys have values.  Ranks that never join are found from the trace.

        Raises:
            DistStoreError: they have none after ``timeout``.
        """
        if timeout is not None:
            self._look()
        self._wait_until_set(keys, timeout)

    def _wait_until_set(self, keys: Sequence[str], timeout: timedelta | None) -> None:
        ident = threading.get_ident()
        with self._news:
            if timeout is None:
                self.waits[ident] = list(keys)
            try:
                found = self._wait_for(lambda: self._has(keys), timeout)
            finally:
                self.waits.pop(ident, None)
        if not found:
            assert timeout is not None
            # in the words of torch's own stores
            raise DistStoreError(
                f"wait timeout after {timeout.total_seconds() * 1000:.0f}ms,"
                # as the program calls them, without the name of the group
                f" keys: {', '.join(key.partition('//')[2] or key for key in keys)}"
            )

    def _wait_for(self, there: Callable[[], bool], limit: timedelta | None) -> bool:
        """Wait until something is there, or the time is over; return whether it is there."""
        # with a time limit in any case, by which a thread that waits for no other of its process
        # is known from one that does
        seconds = threading.TIMEOUT_MAX if limit is None else limit.total_seconds()
        return self._news.wait_for(there, min(seconds, threading.TIMEOUT_MAX))

    def set_timeout(self, timeout: timedelta) -> None:
        """Ignore the time limit, as torch's stores do behind a prefix; ``wait`` takes its own."""


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
