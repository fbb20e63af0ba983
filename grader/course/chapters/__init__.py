"""The exercises of the course: one module for each chapter, found by its name.

A module ``ch02_broadcast`` declares the exercises of chapter
``02_broadcast``: every :class:`~grader.course.exercise.Exercise` among its globals,
in the order they are written.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator, Mapping

from grader.core.errors import DeclarationError, UnknownExercise
from grader.course.exercise import Exercise

__all__ = ["Catalogue", "discover"]

#: The prefix of a chapter's module; the rest of the name is the chapter's.
_PREFIX = "ch"


class Catalogue(Mapping[str, Exercise]):
    """The exercises of a course, by name, in the order of the course.

    Raises:
        DeclarationError: two exercises have the same name.
        UnknownExercise: an exercise is looked up that does not exist.
    """

    def __init__(self, exercises: list[Exercise]) -> None:
        self._by_name = {exercise.name: exercise for exercise in exercises}
        if len(self._by_name) < len(exercises):
            names = [exercise.name for exercise in exercises]
            twice = next(name for name in names if names.count(name) > 1)
            raise DeclarationError(f"two exercises are named {twice!r}; rename one")

    def __getitem__(self, name: str) -> Exercise:
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

    def chapters(self) -> dict[str, list[Exercise]]:
        """Return the exercises of each chapter, by chapter."""
        found: dict[str, list[Exercise]] = {}
        for exercise in self._by_name.values():
            found.setdefault(exercise.chapter, []).append(exercise)
        return found


def discover(package: str = __name__) -> Catalogue:
    """Import the chapters of a package, and return the exercises that they declare.

    Raises:
        DeclarationError: two exercises have the same name.
    """
    module = importlib.import_module(package)
    exercises: list[Exercise] = []
    for info in sorted(pkgutil.iter_modules(module.__path__), key=lambda info: info.name):
        if not info.name.startswith(_PREFIX):
            continue
        chapter = importlib.import_module(f"{package}.{info.name}")
        for value in vars(chapter).values():
            if isinstance(value, Exercise):
                name = info.name.removeprefix(_PREFIX)
                exercises.append(dataclasses.replace(value, chapter=name))
    return Catalogue(exercises)
