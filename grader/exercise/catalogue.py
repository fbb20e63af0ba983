"""Exercises by name, as a course has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from grader.errors import DeclarationError, UnknownExercise

__all__ = ["Catalogue", "IndexedExercise"]


class IndexedExercise(Protocol):
    """What an exercise and its entry in the index have in common."""

    @property
    def name(self) -> str:
        """The name that a student's definition must have."""

    @property
    def chapter(self) -> str:
        """The name of its chapter."""

    @property
    def chapter_title(self) -> str:
        """The title of its chapter."""

    @property
    def summary(self) -> str:
        """One line for lists."""

    @property
    def points(self) -> float:
        """What it is worth."""

    @property
    def part(self) -> str:
        """The part of the course that its chapter stands in."""

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
