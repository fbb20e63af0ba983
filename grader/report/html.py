"""Verdicts as HTML for a notebook's output: compact, and right in either theme.

Colours come from JupyterLab's own variables, with fallbacks for other
front ends; every colour has a word or a mark beside it.
"""

from __future__ import annotations

import html
import itertools
import re
import textwrap
from collections.abc import Iterator, Sequence
from urllib.parse import quote

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
    title_of,
    visible,
)

__all__ = ["exercise_html", "failure_html", "hints_html", "prediction_html", "progress_html"]

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
_PLAIN_CELL = "padding: 2px 14px 2px 0; text-align: left; vertical-align: top;"
_LINK = "color: var(--jp-content-link-color, #0b57d0); text-decoration: underline"
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
    """Return a learner's progress: the sum, what comes next, and a row for each chapter."""
    done = bool(overview.exercises) and overview.next is None
    colour = Look.PASSED.colour if done else "var(--jp-border-color1, #9e9e9e)"
    parts = [f'<div style="{_STYLE.format(colour=colour)}" role="group" aria-label="progress">']
    parts.append(f"<div><strong>{escape(sum_of(overview))}</strong></div>")
    if overview.exercises:
        parts.append(_bar(overview.passed, len(overview.exercises), "100%"))
        parts += _next(overview)
        parts.append(
            '<table style="margin: 6px 0 0; border-collapse: collapse; width: 100%;'
            " table-layout: auto; overflow-wrap: normal;"
            ' font-size: inherit">'
        )
        heads = "".join(
            f'<th scope="col" style="{_PLAIN_CELL}">{title}</th>'
            for title in ("chapter", "passed", "exercises")
        )
        parts.append(f"<thead><tr>{heads}</tr></thead><tbody>")
        for chapter, exercises in overview.chapters().items():
            parts.append(_chapter_row(overview, chapter, exercises))
        parts.append("</tbody></table>")
    if overview.unknown:
        names = escape(", ".join(overview.unknown))
        parts.append(f"<div>in the file, but not in this course: {names}</div>")
    mark, colour = Look.ERROR.mark, Look.ERROR.colour
    parts += [
        f'<div><strong style="color: {colour}">{mark}</strong> {escape(text)}</div>'
        for text in overview.trouble
    ]
    return "\n".join([*parts, "</div>"])


def _next(overview: CourseProgress) -> Iterator[str]:
    following = overview.next
    if following is None:
        yield f"<div>{Look.PASSED.mark} You have passed every exercise of the course.</div>"
        return
    yield (
        f"<div>Next: <code>{escape(following.name)}</code>, in chapter"
        f" {_chapter_link(overview, following.chapter)}</div>"
    )


def _chapter_link(overview: CourseProgress, chapter: str) -> str:
    """Return a chapter's title; where its notebook is found, as a link that opens it."""
    path, title = overview.notebook(chapter), escape(title_of(chapter))
    if path is None:
        return title
    return f'<a href="{escape(quote(path.as_posix()))}" style="{_LINK}">{title}</a>'


def _bar(part: int, whole: int, width: str) -> str:
    """Return how much is done as a bar, which says no more than the numbers beside it."""
    return (
        f'<div aria-hidden="true" style="width: {width}; height: 8px; margin: 4px 0;'
        " box-sizing: border-box; border: 1px solid var(--jp-ui-font-color2, #616161);"
        ' border-radius: 4px; overflow: hidden">'
        f'<div style="width: {100 * part / whole:.0f}%; height: 100%;'
        f' background: {Look.PASSED.colour}"></div></div>'
    )


def _chapter_row(
    overview: CourseProgress, chapter: str, exercises: Sequence[ExerciseProgress]
) -> str:
    passed = sum(progress.state is ProgressState.PASSED for progress in exercises)
    names = []
    for progress in exercises:
        look = _STATES[progress.state]
        state, when = progress_cells(progress)
        # what a mark means is said where it is not plain
        said = f" ({escape(state)})" if progress.entry and state != look.word else ""
        title = escape(f"{state}; last check {when}" if when else state)
        names.append(
            f'<span style="display: inline-block; margin-right: 14px" title="{title}">'
            f'<strong style="color: {look.colour}">{look.mark}</strong>'
            f' <code style="white-space: nowrap">{escape(progress.exercise.name)}</code>{said}'
            "</span>"
        )
    return (
        f'<tr><th scope="row" style="{_PLAIN_CELL} font-weight: normal">'
        f"{_chapter_link(overview, chapter)}</th>"
        f'<td style="{_PLAIN_CELL} white-space: nowrap">{passed} of {len(exercises)}'
        f"{_bar(passed, len(exercises), '56px')}</td>"
        f'<td style="{_PLAIN_CELL}">{"".join(names)}</td></tr>'
    )


def hints_html(name: str, hints: Sequence[str], more: str) -> str:
    """Return hints on an exercise, the gentlest first.

    Args:
        name: the exercise.
        hints: those to show; lines that begin with four blanks are code.
        more: how to see the next one; empty if there is none.
    """
    colour = "var(--jp-brand-color1, #1565c0)"
    label = f"{escape(name)}: hint{'s' if len(hints) > 1 else ''}"
    items = "".join(f'<li style="margin: 2px 0">{"".join(_prose(hint))}</li>' for hint in hints)
    parts = [
        f'<div style="{_STYLE.format(colour=colour)}" role="group" aria-label="{label}">',
        f"<div><strong>{label}</strong></div>",
        f'<ol style="margin: 2px 0 2px 1.6em; padding: 0">{items}</ol>',
    ]
    if more:
        parts.append(f"<div>{_inline(more)}</div>")
    return "\n".join([*parts, "</div>"])


def prediction_html(head: str, text: str) -> str:
    """Return what a learner expects, under a heading such as ``You predicted``."""
    colour = "var(--jp-border-color1, #9e9e9e)"
    said = f"<strong>{escape(head)}</strong> {_inline(text)}"
    return (
        f'<div style="{_STYLE.format(colour=colour)} white-space: pre-wrap" role="group"'
        f' aria-label="{escape(head)}">{said}</div>'
    )


def _prose(text: str) -> Iterator[str]:
    """Yield a text's paragraphs, and its indented lines as code."""
    for is_code, lines in itertools.groupby(
        text.splitlines(), lambda line: line.startswith("    ")
    ):
        if is_code:
            code = escape(textwrap.dedent("\n".join(lines)))
            yield f'<pre style="margin: 4px 0; white-space: pre-wrap; {_MONO}">{code}</pre>'
        else:
            yield f"<div>{_inline(' '.join(lines))}</div>"


def _inline(text: str) -> str:
    """Return a sentence as HTML, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
