"""Mistakes that people make in the course's exercises: a folder of programs for each chapter.

:mod:`grader.exercise.mistakes` says what such a program looks like.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.exercise.mistakes import MistakeProgram, read_mistakes

__all__ = ["FOLDER", "mistakes_in"]

#: The folder of all mistakes.
FOLDER = Path(__file__).resolve().parent


def mistakes_in(chapter: str, exercise: str) -> tuple[MistakeProgram, ...]:
    """Return the mistakes of an exercise in a chapter such as ``11_ring_all_reduce``.

    Raises:
        DeclarationError: a file of the chapter's is no mistake.
    """
    return tuple(one for one in _read(chapter) if exercise in one.exercises)


@cache
def _read(chapter: str) -> tuple[MistakeProgram, ...]:
    return read_mistakes(FOLDER / chapter)
