"""The outputs as files in the folder of results."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.classroom.outputs import gradescope as gs
from grader.classroom.outputs.class_page import class_page
from grader.classroom.outputs.feedback import feedback
from grader.classroom.outputs.gradebook import gradebook
from grader.classroom.outputs.results import ClassResults, Row
from grader.classroom.outputs.similar import similar_page
from grader.classroom.similarity import Pair
from grader.reports.json import to_json

__all__ = ["write", "write_gradescope"]


def write(results: ClassResults, folder: Path, pairs: Sequence[Pair] = ()) -> None:
    """Write ``results/``, ``feedback/``, ``gradebook.csv``, ``class.html``, ``similar.html``.

    Every file is replaced as a whole: whoever reads meanwhile, or whatever
    happens, finds the old one or the new one.
    """
    for row in results.rows:
        _replace(folder / "results" / f"{row.key}.json", to_json(row.verdict()).encode())
        _replace(folder / "feedback" / f"{row.key}.html", feedback(results, row).encode())
    _replace(folder / "gradebook.csv", gradebook(results))
    _replace(folder / "class.html", class_page(results).encode())
    _replace(folder / "similar.html", similar_page(results, pairs).encode())


def write_gradescope(results: ClassResults, folder: Path, visibility: str = "visible") -> list[Row]:
    """Write ``<key>/results.json`` for every submission that the grader could judge.

    Args:
        results: the class.
        folder: made if it is not there.
        visibility: when students see the tests, see :mod:`grader.classroom.outputs.gradescope`.

    Returns:
        those that it failed on as a whole: they have no file, for that would
        have to say how many points they earned.
    """
    for row in results.rows:
        if not row.fault:
            text = gs.to_json(gs.gradescope(results, row, visibility))
            _replace(folder / row.key / "results.json", text.encode())
    return [row for row in results.rows if row.fault]


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
