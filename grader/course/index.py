"""The index of the course: what is said of an exercise without importing its declaration.

A declaration needs torch, whose import takes two seconds.  A list, a hint or the learner's
progress needs none of it, so ``tools/notebooks.py`` writes the entries of a chapter to a file
when it builds the student's edition, and a test compares them with the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from grader.core.errors import DeclarationError, UnknownExercise

__all__ = [
    "COSTS",
    "ENTRIES",
    "Catalogue",
    "Comparison",
    "IndexEntry",
    "IndexedExercise",
    "Way",
    "comparison",
    "course_index",
    "part_of",
]

#: A file for each chapter.
ENTRIES = Path(__file__).parent / "entries"

#: The file of what ways to solve an exercise cost; ``tools/ways.py`` writes it.
COSTS = Path(__file__).parent / "costs.json"


class IndexEntry(msgspec.Struct, frozen=True):
    """What the index says of an exercise.

    Attributes:
        name: the name that a student's definition must have.
        chapter: the name of its chapter.
        signature: the header that the student writes.
        summary: one line for lists.
        points: what it is worth.
        world_sizes: the numbers of ranks that it is judged on.
        cell: the id of the cell that a student begins with.
        stub: the text of that cell.
    """

    name: str
    chapter: str
    signature: str
    summary: str
    points: float
    world_sizes: tuple[int, ...]
    cell: str
    stub: str


class IndexedExercise(Protocol):
    """What an exercise and its entry in the index have in common."""

    @property
    def name(self) -> str:
        """The name that a student's definition must have."""

    @property
    def chapter(self) -> str:
        """The name of its chapter."""

    @property
    def summary(self) -> str:
        """One line for lists."""

    @property
    def points(self) -> float:
        """What it is worth."""

    @property
    def world_sizes(self) -> tuple[int, ...]:
        """The numbers of ranks that it is judged on."""


Indexed = TypeVar("Indexed", bound=IndexedExercise, covariant=True)


class Catalogue(Mapping[str, Indexed], Generic[Indexed]):
    """The exercises of a course, by name, in the order of the course.

    Raises:
        DeclarationError: two exercises have the same name.
        UnknownExercise: an exercise is looked up that does not exist.
    """

    def __init__(self, exercises: Sequence[Indexed]) -> None:
        self._by_name = {exercise.name: exercise for exercise in exercises}
        if len(self._by_name) < len(exercises):
            names = [exercise.name for exercise in exercises]
            twice = next(name for name in names if names.count(name) > 1)
            raise DeclarationError(f"two exercises are named {twice!r}; rename one")

    def __getitem__(self, name: str) -> Indexed:
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownExercise(name, self._by_name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def chapters(self) -> dict[str, list[Indexed]]:
        """Return the exercises of each chapter, by chapter."""
        found: dict[str, list[Indexed]] = {}
        for exercise in self._by_name.values():
            found.setdefault(exercise.chapter, []).append(exercise)
        return found


def part_of(chapter: str) -> str:
    """Return the part of the course that a chapter, such as ``02_broadcast``, stands in."""
    return "Part two" if chapter >= "20" else "Part one"


@lru_cache(maxsize=1)
def course_index() -> Catalogue[IndexEntry]:
    """Return the index of the course, in the order of the course."""
    found: list[IndexEntry] = []
    for path in sorted(ENTRIES.glob("*.json")):
        found += msgspec.json.decode(path.read_bytes(), type=list[IndexEntry])
    return Catalogue(found)


# What an answer costs, beside other ways. -----------------------------------------


class Way(msgspec.Struct, frozen=True):
    """What one way to solve an exercise costs; None where nothing is known.

    Attributes:
        name: the way in a few words.
        messages: the messages of all ranks.
        max_sent: bytes that the rank sends that sends most.
        rounds: the rounds, as in :mod:`grader.trace.trace`.
        seconds: virtual seconds, as there.
    """

    name: str
    messages: int | None = None
    max_sent: int | None = None
    rounds: int | None = None
    seconds: float | None = None


class Comparison(msgspec.Struct, frozen=True):
    """A case of an exercise, and what several ways cost there.

    Attributes:
        case: the name of the case.
        world_size: the number of ranks.
        ways: measured ones, from the plainest; the last one is a lower bound of each number by
            itself.
    """

    case: str
    world_size: int
    ways: tuple[Way, ...]


def comparison(name: str) -> Comparison | None:
    """Return what an answer to an exercise is compared with; None where there is nothing."""
    return _comparisons().get(name)


@lru_cache(maxsize=1)
def _comparisons() -> dict[str, Comparison]:
    return msgspec.json.decode(COSTS.read_bytes(), type=dict[str, Comparison])
