"""The index of the course: what is said of an exercise without importing its declaration.

A declaration needs torch, whose import takes two seconds.  A list, a hint or the learner's
progress needs none of it, so ``tools/notebooks.py`` writes the entries of a chapter to a file
when it builds the student's edition, and the chapter's title to another; tests compare them with
the declarations and the notebooks.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from grader.exercise.catalogue import Catalogue
from grader.exercise.verdict import Comparison

__all__ = [
    "COSTS",
    "ENTRIES",
    "IndexEntry",
    "comparisons",
    "course_index",
    "TITLES",
    "part_of",
    "title_of",
]

#: A file for each chapter.
ENTRIES = Path(__file__).parent / "entries"

#: The file of what ways to solve an exercise cost; ``tools/ways.py`` writes it.
COSTS = Path(__file__).parent / "costs.json"

#: The file of the chapters' titles, which are the first headings of the notebooks.
TITLES = Path(__file__).parent / "titles.json"


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

    @property
    def chapter_title(self) -> str:
        """The title of its chapter."""
        return title_of(self.chapter)

    @property
    def part(self) -> str:
        """The part of the course that its chapter stands in."""
        return part_of(self.chapter)


def part_of(chapter: str) -> str:
    """Return the part of the course that a chapter, such as ``02_broadcast``, stands in."""
    return "Part two" if chapter >= "20" else "Part one"


@lru_cache(maxsize=1)
def _titles() -> dict[str, str]:
    return msgspec.json.decode(TITLES.read_bytes(), type=dict[str, str])


def title_of(chapter: str) -> str:
    """Return a chapter's title, such as ``02 · Broadcast``; its name before it has been built."""
    return _titles().get(chapter, chapter)


@lru_cache(maxsize=1)
def course_index() -> Catalogue[IndexEntry]:
    """Return the index of the course, in the order of the course."""
    found: list[IndexEntry] = []
    for path in sorted(ENTRIES.glob("*.json")):
        found += msgspec.json.decode(path.read_bytes(), type=list[IndexEntry])
    return Catalogue(found)


@lru_cache(maxsize=1)
def comparisons() -> dict[str, Comparison]:
    """Return what answers are compared with, by exercise, where there is anything."""
    return msgspec.json.decode(COSTS.read_bytes(), type=dict[str, Comparison])
