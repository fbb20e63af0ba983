"""``class.html``: one page that shows an instructor the whole class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from grader.classroom.outputs.figures import (
    Exercise,
    Figures,
    Found,
    changes,
    figures,
    hung,
    outcome,
)
from grader.classroom.outputs.pages import page
from grader.classroom.outputs.results import ClassResults, Row, Standing
from grader.core.verdict import ExerciseVerdict
from grader.report.summary import points

__all__ = ["MARKS", "WORDS", "class_page"]

#: A sign for every outcome, so that nothing is told by colour alone.
MARKS = {
    "passed": "✓",
    "partly": "½",
    "failed": "✗",
    "hung": "∞",
    "empty": "○",
    "skipped": "–",
    "error": "!",
}

WORDS = {
    "passed": "passed",
    "partly": "some points",
    "failed": "failed",
    "hung": "hung",
    "empty": "not attempted",
    "skipped": "not judged here",
    "error": "the grader failed",
}

#: What the table of students can be narrowed to.
_TAGS = {
    "error": "where the grader failed",
    "unsafe": "graded without a sandbox",
    "hung": "who hung",
    "changed": "changed since the earlier grading",
    "full": "with all points",
    "nothing": "with nothing handed in",
    "notes": "with remarks on files",
}


@dataclass(frozen=True)
class _Cell:
    """An exercise of a student, as the table shows it."""

    kind: str
    mark: str
    word: str
    order: float


@dataclass(frozen=True)
class _Line:
    """A student, as the table shows it."""

    row: Row
    about: str
    tags: str
    badges: list[tuple[str, str]]
    cells: list[_Cell]
    order: float


def class_page(results: ClassResults) -> str:
    """The page, which needs nothing beside it; its links lead to ``feedback/``."""
    seen = figures(results)
    noted = [row for row in results.rows if row.notes]
    lines = [_line(results, row) for row in results.rows]
    used = {tag for line in lines for tag in line.tags.split()}
    attention = bool(seen.faults or seen.errors or seen.unsafe or seen.skipped or noted)
    return page(
        "class.html.j2",
        script="tables.js",
        results=results,
        figures=seen,
        attention=attention,
        noted=noted,
        skipped_by_reason=_by_reason(seen.skipped),
        highest=max((bin_.count for bin_ in seen.bins), default=0) or 1,
        sections=_sections(seen, attention),
        chapters=_chapters(results),
        lines=lines,
        tags=[(tag, name) for tag, name in _TAGS.items() if tag in used],
        outcomes=_outcomes,
        outcome=outcome,
        marks=MARKS,
        words=WORDS,
    )


def _sections(seen: Figures, attention: bool) -> list[tuple[str, str]]:
    return [
        *([("attention", "Look at these first")] if attention else []),
        ("scores", "Scores"),
        ("exercises", "Exercises"),
        *([("hung", "Who hung")] if seen.hung else []),
        *([("changes", "Changes")] if seen.changes else []),
        *([("slow", "Slowest")] if seen.longest else []),
        ("students", "Students"),
    ]


def _by_reason(skipped: Iterable[Found]) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = {}
    for item in skipped:
        found.setdefault(item.verdict.message, []).append(item)
    return found


def _chapters(results: ClassResults) -> list[tuple[str, int]]:
    return [
        (chapter, len(list(group)))
        for chapter, group in groupby(results.asked, key=lambda asked: asked.chapter)
    ]


def _outcomes(exercise: Exercise) -> list[tuple[str, int]]:
    return [
        ("passed", exercise.passed),
        ("partly", exercise.partly),
        ("failed", exercise.failed),
        ("hung", exercise.hung),
        ("empty", exercise.empty),
    ]


def _line(results: ClassResults, row: Row) -> _Line:
    waited = sum(map(hung, row.exercises))
    changed = changes(row)
    unscored = bool(row.fault) and not row.exercises
    full = row.standing == Standing.GRADED and row.score >= results.points_of(row)
    present = {
        "error": row.standing == Standing.ERROR,
        "unsafe": row.unsafe,
        "hung": waited > 0,
        "changed": bool(changed),
        "full": full,
        "nothing": row.standing == Standing.NOTHING,
        "notes": bool(row.notes),
    }
    badges = []
    if row.unsafe:
        badges.append(("failed", "⚠ no sandbox"))
    if waited:
        badges.append(("hung", f"{MARKS['hung']} hung {waited} ×"))
    if changed:
        badges.append(("skipped", f"changed {len(changed)} ×"))
    return _Line(
        row,
        " · ".join(filter(None, (row.number, row.email))),
        " ".join(tag for tag, holds in present.items() if holds),
        badges,
        [_cell(row.by_name.get(asked.name)) for asked in results.asked],
        -1.0 if unscored else row.score,
    )


def _cell(verdict: ExerciseVerdict | None) -> _Cell:
    if verdict is None:
        return _Cell("", "", "", -1.0)
    kind = outcome(verdict)
    mark = points(verdict.score) if kind == "partly" else MARKS[kind]
    return _Cell(kind, mark, str(verdict.diagnosis or WORDS[kind]), verdict.score)
