"""The outputs as files in the folder of results."""

from __future__ import annotations

import os
import stat
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from grader.classroom.names import is_key
from grader.classroom.outputs import gradescope as gs
from grader.classroom.outputs.class_page import MARKS, WORDS, changes, class_page, outcome
from grader.classroom.outputs.pages import page
from grader.classroom.outputs.results import ClassResults, SubmissionRow, gradebook
from grader.classroom.similarity import Pair
from grader.core.verdict import CaseVerdict, Diagnosis, Status
from grader.report.json import to_json

__all__ = ["feedback", "similar_page", "write", "write_gradescope"]


# ``similar.html``: pairs of submissions that an instructor may want to compare. ----


def similar_page(results: ClassResults, pairs: Sequence[Pair]) -> str:
    """The page; its links lead to ``feedback/``."""
    rows = {row.key: row for row in results.rows}
    known = [pair for pair in pairs if pair.first in rows and pair.second in rows]
    return page("similar.html.j2", results=results, pairs=known, rows=rows)


# ``feedback/<key>.html``: what a student gets to see, and nothing of anybody else's. ----
#
# Seeds are not on it.  The inputs that a submission is judged with are drawn from
# the class's secret and the submission's key, so a resubmission meets the same
# ones again: whoever knew the seed could have ``check --seed`` show all of them
# before the deadline and hand in a table of answers.  What the page does show is
# the first case that failed, since that is what a student learns from.


def feedback(results: ClassResults, row: SubmissionRow) -> str:
    """One student's page, which needs nothing beside it."""
    before = {change.now.name: change.before for change in changes(row)}
    counts = Counter(outcome(verdict) for verdict in row.exercises)
    missing = [asked for asked in results.asked if asked.name not in row.by_name]
    counts["empty"] += len(missing)
    # nothing is asked of whom the grader failed altogether
    asked_of = () if row.fault and not row.exercises else results.asked
    return page(
        "feedback.html.j2",
        results=results,
        row=row,
        outcomes=[(kind, counts[kind]) for kind in MARKS if counts[kind]],
        chapters=[
            (
                chapter,
                [(a, row.by_name.get(a.name), before.get(a.name)) for a in group],
            )
            for chapter, group in groupby(asked_of, key=lambda asked: asked.chapter)
        ],
        case_kind=_kind,
        marks=MARKS,
        words=WORDS,
    )


def _kind(case: CaseVerdict) -> str:
    if case.status is Status.FAILED and case.diagnosis in (Diagnosis.DEADLOCK, Diagnosis.TIMEOUT):
        return "hung"
    return str(case.status)


# The folder. ----------------------------------------------------------------------

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


def write_gradescope(
    results: ClassResults, folder: Path, visibility: str = "visible"
) -> list[SubmissionRow]:
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
