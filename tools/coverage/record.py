"""The record of which functions each test has run, and of how long it took."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RECORD", "RecordedTest", "read", "write"]

ROOT = Path(__file__).resolve().parent.parent.parent

#: The file of the record.
RECORD = ROOT / "build" / "coverage.sqlite"

_TABLE = "create table if not exists tests (id text primary key, seconds real, functions blob)"


@dataclass(frozen=True)
class RecordedTest:
    """What a test has run.

    Attributes:
        id: the test's node id, as pytest takes it.
        seconds: how long it took, with its setup.
        functions: numbers of functions, see :func:`tools.coverage.marks.number`.
    """

    id: str
    seconds: float
    functions: frozenset[int]


def write(path: Path, test: str, seconds: float, functions: Set[int], *, anew: bool = True) -> None:
    """Write what a test has run, in the place of what it ran before if it is written anew."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=60)) as record, record:
        # it can be recorded anew: nobody needs to wait for the disk
        record.execute("pragma synchronous = off")
        record.execute(_TABLE)
        blob = array("I", sorted(functions)).tobytes()
        insert = f"insert or {'replace' if anew else 'ignore'} into tests values (?, ?, ?)"
        record.execute(insert, (test, seconds, blob))


def read(path: Path) -> Iterator[RecordedTest]:
    """Yield the tests of a record; none if there is no such file."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=60)) as record:
        for test, seconds, blob in record.execute("select id, seconds, functions from tests"):
            yield RecordedTest(test, seconds, frozenset(array("I", blob)))
