"""The outputs as files in the folder of results."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.classroom.names import is_key
from grader.classroom.outputs import gradescope as gs
from grader.classroom.outputs.class_page import class_page
from grader.classroom.outputs.feedback import feedback
from grader.classroom.outputs.gradebook import gradebook
from grader.classroom.outputs.results import ClassResults, Row
from grader.classroom.outputs.similar import similar_page
from grader.classroom.similarity import Pair
from grader.report.json import to_json

__all__ = ["write", "write_gradescope"]

#: A file that is being written is named so, to be known if nobody comes to finish it.
_PART = (".grader-", ".part")


def write(results: ClassResults, folder: Path, pairs: Sequence[Pair] = ()) -> None:
    """Write ``results/``, ``feedback/``, ``gradebook.csv``, ``class.html``, ``similar.html``.

    Every file is replaced as a whole: whoever reads meanwhile, or whatever
    happens, finds the old one or the new one.  The two files of a submission
    that was withdrawn since are removed, and so is what a killed grader was
    about to write; nothing else in the folder is touched.
    """
    for row in results.rows:
        _replace(folder / "results" / f"{row.key}.json", to_json(row.verdict()).encode())
        _replace(folder / "feedback" / f"{row.key}.html", feedback(results, row).encode())
    _replace(folder / "gradebook.csv", gradebook(results))
    _replace(folder / "class.html", class_page(results).encode())
    _replace(folder / "similar.html", similar_page(results, pairs).encode())
    keys = {row.key for row in results.rows}
    _tidy(folder / "results", ".json", keys)
    _tidy(folder / "feedback", ".html", keys)
    _tidy(folder, "", keys)


def write_gradescope(results: ClassResults, folder: Path, visibility: str = "visible") -> list[Row]:
    """Write ``<key>/results.json`` for every submission with a final score.

    Args:
        results: the class.
        folder: made if it is not there.
        visibility: when students see the tests, see :mod:`grader.classroom.outputs.gradescope`.

    Returns:
        the others: they have no file, for that would have to say how many
        points they earned.
    """
    for row in results.rows:
        if not results.ungraded(row):
            text = gs.to_json(gs.gradescope(results, row, visibility))
            _replace(folder / row.key / "results.json", text.encode())
    return [row for row in results.rows if results.ungraded(row)]


def _tidy(folder: Path, ending: str, keys: set[str]) -> None:
    """Remove what we once wrote for a submission that is gone, and unfinished files."""
    for path in folder.iterdir():
        key = path.name.removesuffix(ending)
        gone = key != path.name and is_key(key) and key not in keys
        unfinished = path.name.startswith(_PART[0]) and path.name.endswith(_PART[1])
        # a folder or a link of such a name is not ours
        if (gone or unfinished) and stat.S_ISREG(path.lstat().st_mode):
            path.unlink()


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PART[0], suffix=_PART[1])
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
