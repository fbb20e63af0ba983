"""Verdicts as HTML for a notebook's output: compact, and right in either theme.

Colours come from JupyterLab's own variables, with fallbacks for other
front ends; every colour has a word or a mark beside it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from grader.core.verdict import CaseVerdict, Diagnosis, ExerciseVerdict, Failure, SourceLine, Status
from grader.judge.progress import CourseProgress, ExerciseProgress, ProgressState
from grader.report.graph import graph_image
from grader.report.looks import Look
from grader.report.summary import (
    headline,
    key_traffic,
    orders_tried,
    output_lines,
    points,
    progress_cells,
    shown,
    sum_of,
    visible,
)

__all__ = ["exercise_html", "failure_html", "progress_html"]

_STATES = {
    ProgressState.PASSED: Look.PASSED,
    ProgressState.TRIED: Look.FAILED,
    ProgressState.UNTOUCHED: Look.UNTOUCHED,
}

_STYLE = (
    "font-family: var(--jp-ui-font-family, system-ui, sans-serif); line-height: 1.45;"
    " border-left: 4px solid {colour}; padding: 2px 0 2px 12px; margin: 2px 0;"
    " max-width: 60em; overflow-wrap: anywhere;"
)
_MONO = "font-family: var(--jp-code-font-family, monospace); font-size: 0.92em;"
_CELL = "padding: 1px 14px 1px 0; text-align: left; vertical-align: top; " + _MONO


def escape(text: str) -> str:
    """Return any text as HTML."""
    return html.escape(visible(text))


def failure_html(failure: Failure) -> str:
    """Return why a run of ranks failed, as a small card."""
    mark, colour = Look.FAILED.mark, Look.FAILED.colour
    word = escape(failure.diagnosis)
    parts = [
        f'<div style="{_STYLE.format(colour=colour)}" role="group" aria-label="failed: {word}">',
        f'<div><strong style="color: {colour}">{mark} {word}</strong></div>',
        f"<div>{escape(failure.message)}</div>",
        *_list(failure.detail),
        *_frames(failure.frames),
        *_graph(failure),
        "</div>",
    ]
    return "\n".join(parts)


def exercise_html(verdict: ExerciseVerdict) -> str:
    """Return one exercise as a small card."""
    mark, colour = Look.of(verdict.status).mark, Look.of(verdict.status).colour
    parts = [
        f'<div style="{_STYLE.format(colour=colour)}" role="group"'
        f' aria-label="{escape(verdict.name)}: {escape(headline(verdict))}">',
        f'<div><strong style="color: {colour}">{mark} {escape(verdict.name)}</strong> '
        f"{escape(headline(verdict))}"
        f" <span>({points(verdict.score)} of {points(verdict.max_score)})</span></div>",
        *_body(verdict),
        "</div>",
    ]
    return "\n".join(parts)


def _body(verdict: ExerciseVerdict) -> Iterator[str]:
    if verdict.status is Status.PASSED:
        lines = filter(None, (key_traffic(verdict), orders_tried(verdict)))
        yield from (f"<div>{escape(line)}</div>" for line in lines)
        if verdict.message:
            yield f"<div><strong>Remark:</strong> {escape(verdict.message)}</div>"
    if verdict.status is not Status.FAILED:
        return
    yield f"<div>{escape(verdict.message)}</div>"
    if verdict.first_failure is not None and verdict.diagnosis is not Diagnosis.NOT_ATTEMPTED:
        yield from _details(verdict.first_failure)
    if verdict.hint:
        yield f"<div><strong>Hint:</strong> {escape(verdict.hint)}</div>"


def _details(case: CaseVerdict) -> Iterator[str]:
    if case.by_rank:
        yield '<table style="margin: 4px 0; border-collapse: collapse">'
        heads = "".join(
            f'<th scope="col" style="{_CELL}">{title}</th>'
            for title in ("rank", "right?", "expected", "actual")
        )
        yield f"<thead><tr>{heads}</tr></thead><tbody>"
        for row in case.by_rank:
            right = f"{Look.PASSED.mark} yes" if row.right else f"{Look.FAILED.mark} no"
            cells = "".join(
                f'<td style="{_CELL}">{escape(text)}</td>'
                for text in (str(row.rank), right, row.expected, row.actual)
            )
            yield f"<tr>{cells}</tr>"
        yield "</tbody></table>"
    yield from _list(case.detail)
    yield from _frames(case.frames)
    yield from _graph(case)
    printed = output_lines(case)
    if printed:
        text = "\n".join(f"[rank {rank}] {escape(line)}" for rank, line in printed)
        yield f'<pre style="margin: 4px 0; white-space: pre-wrap; {_MONO}">{text}</pre>'


def _graph(of: Failure | CaseVerdict) -> Iterator[str]:
    if of.diagnosis is Diagnosis.DEADLOCK:
        image = graph_image(of.waits, of.cycle, of.ended)
        if image:
            yield f'<div style="margin: 4px 0">{image}</div>'


def _frames(frames: Sequence[SourceLine]) -> Iterator[str]:
    if shown(frames):
        text = "\n".join(escape(str(frame)) for frame in frames)
        yield f'<pre style="margin: 4px 0; white-space: pre-wrap; {_MONO}">{text}</pre>'


def _list(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        items = "".join(f"<li>{escape(line)}</li>" for line in lines)
        yield f'<ul style="margin: 2px 0 2px 1.2em; padding: 0">{items}</ul>'


def progress_html(overview: CourseProgress) -> str:
    """Return a learner's progress: a table with a part for each chapter, and the sum."""
    done = bool(overview.exercises) and overview.passed == len(overview.exercises)
    colour = Look.PASSED.colour if done else "var(--jp-border-color1, #9e9e9e)"
    parts = [f'<div style="{_STYLE.format(colour=colour)}" role="group" aria-label="progress">']
    if overview.exercises:
        parts.append('<table style="margin: 0; border-collapse: collapse">')
        heads = "".join(
            f'<th scope="col" style="{_CELL}">{title}</th>'
            for title in ("exercise", "state", "last check", "took")
        )
        parts.append(f"<thead><tr>{heads}</tr></thead>")
        for chapter, exercises in overview.chapters().items():
            parts += ["<tbody>", *_chapter_rows(chapter, exercises), "</tbody>"]
        parts.append("</table>")
    if overview.unknown:
        names = escape(", ".join(overview.unknown))
        parts.append(f"<div>in the file, but not in this course: {names}</div>")
    mark, colour = Look.ERROR.mark, Look.ERROR.colour
    parts += [
        f'<div><strong style="color: {colour}">{mark}</strong> {escape(text)}</div>'
        for text in overview.trouble
    ]
    parts += [f"<div><strong>{escape(sum_of(overview))}</strong></div>", "</div>"]
    return "\n".join(parts)


def _chapter_rows(chapter: str, exercises: Sequence[ExerciseProgress]) -> Iterator[str]:
    passed = sum(progress.state is ProgressState.PASSED for progress in exercises)
    yield (
        f'<tr><th colspan="4" scope="rowgroup" style="{_CELL} padding-top: 6px">'
        f"{escape(chapter)} ({passed} of {len(exercises)})</th></tr>"
    )
    for progress in exercises:
        mark, colour = _STATES[progress.state].mark, _STATES[progress.state].colour
        state, when, took = map(escape, progress_cells(progress))
        yield (
            f'<tr><td style="{_CELL}"><strong style="color: {colour}">{mark}</strong>'
            f" {escape(progress.exercise.name)}</td>"
            f'<td style="{_CELL}">{state}</td>'
            f'<td style="{_CELL}">{when}</td><td style="{_CELL}">{took}</td></tr>'
        )
