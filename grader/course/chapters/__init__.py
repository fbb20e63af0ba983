"""The exercises of the course: one module for each chapter, found by its name.

A module ``ch02_broadcast`` declares the exercises of chapter
``02_broadcast``: every :class:`~grader.course.exercise.Exercise` among its globals,
in the order they are written.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

from grader.course.exercise import Exercise
from grader.course.index import Catalogue

__all__ = ["discover"]

#: The prefix of a chapter's module; the rest of the name is the chapter's.
_PREFIX = "ch"


def discover(package: str = __name__) -> Catalogue[Exercise]:
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
