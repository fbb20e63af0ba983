"""Known answers to the course's exercises: a folder of programs for each chapter.

:mod:`grader.exercise.answers` says what they look like.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.exercise.answers import KnownAnswer, read_answers

__all__ = ["FOLDER", "mistakes_in"]

#: The folder of all answers.
FOLDER = Path(__file__).resolve().parent


def mistakes_in(chapter: str, exercise: str) -> tuple[KnownAnswer, ...]:
    """Return the mistakes of an exercise in a chapter such as ``11_ring_all_reduce``.

    Raises:
        DeclarationError: a file of the chapter's does not have the format of an answer.
    """
    return tuple(one for one in _mistakes(chapter) if exercise in one.exercises)


@cache
def _mistakes(chapter: str) -> tuple[KnownAnswer, ...]:
    return tuple(one for one in read_answers(FOLDER / chapter) if one.speaks)
