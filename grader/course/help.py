"""The help of the course's exercises: a file for each chapter, in the folder ``help``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.exercise.help import Help, read_help

__all__ = ["FOLDER", "help_of"]

#: The folder of all help.
FOLDER = Path(__file__).resolve().parent / "help"


@cache
def help_of(chapter: str) -> dict[str, Help]:
    """Return the help of a chapter such as ``02_broadcast``, by exercise; none if it has no file.

    Raises:
        DeclarationError: its file is not as :mod:`grader.exercise.help` describes it.
    """
    path = FOLDER / f"{chapter}.md"
    return read_help(path) if path.exists() else {}
