"""On which exercises a submission is judged, and from which of its files.

Students hand in some chapters, in one file or in many, and twice.  A file that
is named after a chapter, as the course's notebooks are, hands that chapter in:
all its exercises are due, and one that the file lacks is missing.  A file of
any other name hands in what it defines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from grader.course.chapters import Catalogue
from grader.submission.submission import Submission

__all__ = ["Plan", "chapter_of", "plan"]


@dataclass
class Plan:
    """What is to be judged.

    Attributes:
        sources: by exercise, in the order of the course, where it is taken from.
        notes: what the report has to say about that.
    """

    sources: dict[str, Submission] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def chapter_of(label: str, catalogue: Catalogue) -> str | None:
    """The chapter that a file is named after.

    ``02_broadcast.ipynb`` is, and so is what is left of that name when it has
    been downloaded twice or prefixed by a learning platform.
    """
    words = re.split(r"[^a-z0-9]+", PurePath(label).stem.lower())
    for chapter in catalogue.chapters():
        wanted = chapter.split("_")
        if any(words[i : i + len(wanted)] == wanted for i in range(len(words))):
            return chapter
    return None


def plan(files: Sequence[Submission], catalogue: Catalogue) -> Plan:
    """Decide for one student.

    Args:
        files: what could be read, the oldest first.
        catalogue: the exercises of the course.
    """
    due: dict[str, list[Submission]] = {}
    chapters = [chapter_of(file.label, catalogue) for file in files]
    for file, chapter in zip(files, chapters, strict=True):
        for name in catalogue:
            if name in file.names or name in file.broken or catalogue[name].chapter == chapter:
                due.setdefault(name, []).append(file)
    found = Plan()
    for name in catalogue:
        if name in due:
            found.sources[name] = _choose(name, due[name], catalogue, found.notes)
    return found


def _choose(
    name: str, files: Sequence[Submission], catalogue: Catalogue, notes: list[str]
) -> Submission:
    """The file that an exercise is taken from: of its own chapter, defining it, the newest."""

    def rank(item: tuple[int, Submission]) -> tuple[bool, bool, int]:
        position, file = item
        chapter = chapter_of(file.label, catalogue)
        defines = name in file.names or name in file.broken
        # an earlier exercise that a later chapter's notebook repeats is no second answer
        return defines, chapter in (None, catalogue[name].chapter), position

    defining = [file for file in files if name in file.names or name in file.broken]
    _, chosen = max(enumerate(files), key=rank)
    others = [file.label for file in defining if file is not chosen]
    if others:
        notes.append(f"{name} is taken from {chosen.label}; also in {', '.join(others)}")
    return chosen
