"""The exercises of the course: one module for each chapter, found by its name.

A module ``ch02_broadcast`` declares the exercises of chapter
``02_broadcast``: every :class:`~grader.exercise.declaration.Exercise` among its globals,
in the order they are written.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from functools import partial

from grader.course.answers import mistakes_in
from grader.course.help import help_of
from grader.course.index import comparisons, part_of, title_of
from grader.errors import DeclarationError
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise

__all__ = ["discover"]

#: The prefix of a chapter's module; the rest of the name is the chapter's.
_PREFIX = "ch"


def discover(package: str = __name__) -> Catalogue[Exercise]:
    """Import the chapters of a package, and return the exercises that they declare.

    Raises:
        DeclarationError: two exercises have the same name, or one has no hint.
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
                told = value.help if value.help.hints else help_of(name).get(value.name)
                if told is None or not told.hints:
                    raise DeclarationError(
                        f"{value.name} has no hint: write `# {value.name}` and `## Hint 1` into"
                        f" grader/course/help/{name}.md"
                    )
                exercises.append(
                    dataclasses.replace(
                        value,
                        chapter=name,
                        chapter_title=title_of(name),
                        part=part_of(name),
                        help=told,
                        programs=partial(mistakes_in, name, value.name),
                        others=comparisons().get(value.name),
                    )
                )
    return Catalogue(exercises)
