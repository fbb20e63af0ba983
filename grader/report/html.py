"""Verdicts as HTML for a notebook's output: compact, and right in either theme.

Colours come from JupyterLab's own variables, with fallbacks for other
front ends; every colour has a word or a mark beside it.
"""

from __future__ import annotations

import html
import itertools
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from grader.exercise.help import Help
from grader.report.graph import graph_image
from grader.report.looks import Look
from grader.report.summary import (
    COSTS,
    SHOULD_BE,
    WAS,
    CoursePlace,
    RowParts,
    case_look,
    dot,
    earned,
    finding,
    grid,
    grid_words,
    headline,
    in_words,
    key_traffic,
    ladder,
    look_of,
    orders_tried,
    outcomes,
    output_lines,
    praise_of,
    rank_rows,
    untouched,
    world,
)
from headcount.core.verdict import (
    CaseVerdict,
    Diagnosis,
    ExerciseVerdict,
    Failure,
    SourceLine,
    Status,
)
from headcount.report import shown, visible

if TYPE_CHECKING:
    from grader.report.changes import ChangedArgument

__all__ = [
    "exercise_html",
    "failure_html",
    "hints_html",
    "points_html",
    "prediction_html",
    "run_html",
]

_STYLE = (
    "font-family: var(--jp-ui-font-family, system-ui, sans-serif); line-height: 1.5;"
    " border-left: 4px solid {colour}; padding: 2px 0 2px 12px; margin: 2px 0;"
    " max-width: 64em; overflow-wrap: break-word;"
)
_MONO = "font-family: var(--jp-code-font-family, monospace); font-size: 0.92em;"
_PLAIN_CELL = "padding: 2px 14px 2px 0; text-align: left; vertical-align: top;"
_LINK = "color: var(--jp-content-link-color, #0b57d0); text-decoration: underline"
_CELL = "padding: 1px 14px 1px 0; text-align: left; vertical-align: top; " + _MONO
_QUIET = f"color: {Look.UNTOUCHED.colour};"
_LIST = "list-style: none; margin: 4px 0; padding: 0;"
# a part of a row stays whole where there is room, and is wrapped between numbers where not
_PART = "display: inline-block; max-width: 100%; white-space: pre-wrap; margin: 0 1.6em 0 0;"


def escape(text: str) -> str:
    """Return any text as HTML."""
    return html.escape(visible(text))


def _coloured(text: str, look: Look, style: str = "") -> str:
    return f'<span style="color: {look.colour}; {style}">{escape(text)}</span>'


def _head(look: Look, name: str, rest: str) -> str:
    mark = _coloured(look.mark, look, "font-weight: bold;")
    return f"<div>{mark} <strong>{escape(name)}</strong> {escape(rest)}</div>"


def failure_html(failure: Failure) -> str:
    """Return why a run of ranks failed, as a small card."""
    words = in_words(failure.diagnosis)
    label = escape(f"failed: {words}")
    parts = [
        f'<div style="{_STYLE.format(colour=Look.FAILED.colour)}" role="group"'
        f' aria-label="{label}">',
        _head(Look.FAILED, words, ""),
        f"<div>{escape(failure.message)}</div>",
        *_frames(failure.frames),
        *_graph(failure),
        *_list(failure.detail),
        "</div>",
    ]
    return "\n".join(parts)


def run_html(head: str, changed: Sequence[ChangedArgument], traffic: str) -> str:
    """Return a run without results as a small card, see ``run_report``."""
    colour = "var(--jp-border-color1, #9e9e9e)"
    parts = [
        f'<div style="{_STYLE.format(colour=colour)}" role="group" aria-label="{escape(head)}">',
        f"<div>{escape(head)}</div>",
    ]
    for argument in changed:
        parts.append(f"<div>{escape(argument.head)}{':' * bool(argument.rows)}</div>")
        parts += _rows(argument.rows, WAS)
        if argument.more:
            parts.append(f'<div style="{_QUIET}">… {escape(argument.more)}</div>')
    if traffic:
        parts.append(f'<div style="{_QUIET}">{escape(traffic)}</div>')
    return "\n".join([*parts, "</div>"])


def exercise_html(
    verdict: ExerciseVerdict,
    place: CoursePlace | None = None,
    cases: bool = True,
    help: Help | None = None,
    strip: str = "",
) -> str:
    """Return one exercise as a small card.

    Args:
        verdict: the verdict.
        place: the learner's place in the course, where it is known.
        cases: whether a failed one lists all cases.
        help: the help of the exercise, whose hints a failed one folds away below it.
        strip: a picture of where it goes wrong, see
            :func:`grader.report.strip.verdict_strip`; empty if there is none.
    """
    look = look_of(verdict)
    parts = [
        f'<div style="{_STYLE.format(colour=look.colour)}" role="group"'
        f' aria-label="{escape(verdict.name)}: {escape(headline(verdict))}">',
        _head(look, verdict.name, headline(verdict)),
        *_body(verdict, strip),
        *_folded(verdict, cases, help),
        *_foot(verdict, place),
        "</div>",
    ]
    return "\n".join(parts)


def points_html(verdict: ExerciseVerdict) -> str:
    """Return what an exercise has earned in one line, where its verdict has been shown before."""
    look = look_of(verdict)
    label = f"{escape(verdict.name)}: {earned(verdict)}"
    return (
        f'<div style="{_STYLE.format(colour=look.colour)}" role="group" aria-label="{label}">'
        f"{_head(look, verdict.name, earned(verdict))}</div>"
    )


def _foot(verdict: ExerciseVerdict, place: CoursePlace | None) -> Iterator[str]:
    """Yield what it has earned, and the place in the course with the way on."""
    texts = [earned(verdict)]
    if place is not None:
        texts.append(f'{place.in_words} <span aria-hidden="true">{place.dots}</span>')
    yield f'<div style="{_QUIET}">{" · ".join(texts)}</div>'
    if place is None:
        return
    if not verdict.passed:
        return
    praise = praise_of(verdict, place)
    if praise:
        yield f"<div>{_RING}<strong>{escape(praise)}</strong></div>"
    if place.next_link:
        style = "color: var(--jp-content-link-color, LinkText)"
        link = f'<a href="{escape(place.next_link)}" style="{style}">{escape(place.next_name)}</a>'
        yield f"<div>Next: {link}</div>"
    elif place.next_name:
        yield f"<div>Next: {escape(place.next_name)}</div>"


#: Eight ranks that have closed their ring: it stands still, and is an ornament.
_RING = (
    '<svg aria-hidden="true" viewBox="-12 -12 24 24" width="22" height="22"'
    ' style="vertical-align: -5px; margin-right: 6px">'
    f'<circle r="8" fill="none" style="stroke: {Look.PASSED.colour}" />'
    + "".join(
        f'<circle cx="{8 * math.cos(turn):.1f}" cy="{8 * math.sin(turn):.1f}" r="2.4"'
        f' style="fill: {Look.PASSED.colour}" />'
        for turn in (rank * math.pi / 4 for rank in range(8))
    )
    + "</svg>"
)


def _body(verdict: ExerciseVerdict, strip: str) -> Iterator[str]:
    if verdict.status is Status.PASSED:
        lines = filter(None, (key_traffic(verdict), orders_tried(verdict)))
        yield from (f"<div>{escape(line)}</div>" for line in lines)
        yield from _ladder(verdict)
        if verdict.message:
            yield f"<div><strong>Remark:</strong> {escape(verdict.message)}</div>"
    if verdict.status is not Status.FAILED or untouched(verdict):
        return
    found = finding(verdict)
    case = verdict.gravest_failure
    # beside each other where there is room, else one below the other
    yield '<div style="display: flex; flex-wrap: wrap; gap: 4px 32px; align-items: start">'
    yield '<div style="flex: 1 1 26em; min-width: 0">'
    sentence = f"{found.where} {found.what}".strip()
    if sentence:
        yield f"<div>{_lines(sentence)}</div>"
    if case is not None:
        yield from _rows(rank_rows(case))
    if found.more:
        yield f"<div>{_lines(found.more)}</div>"
    if case is not None:
        yield from _details(case)
    if strip:
        words = "Where it goes wrong, with data that has names"
        yield f'<details open><summary style="{_SUMMARY}">{words}</summary>'
        yield f'<div style="margin: 4px 0; overflow-x: auto">{strip}</div></details>'
    if verdict.hint:
        hint = "<br>".join(_inline(line) for line in verdict.hint.splitlines())
        yield f"<div><strong>Hint:</strong> {hint}</div>"
    if found.others:
        yield f"<div>{_lines(found.others)}</div>"
    yield "</div>"
    if len(verdict.cases) > 1:
        yield from _grid(verdict)
    yield "</div>"


def _ladder(verdict: ExerciseVerdict) -> Iterator[str]:
    """Yield what a passed exercise costs beside other ways, as a table with bars of the time."""
    found = ladder(verdict)
    if found is None:
        return
    title, rows = found
    cell = "padding: 0 0.6em; text-align: right"
    yield '<div style="overflow-x: auto">'
    yield '<table style="border-collapse: collapse; margin: 4px 0">'
    yield f'<caption style="text-align: left; padding: 0">{escape(title)}</caption>'
    heads = "".join(f'<th scope="col" style="{cell}">{name}</th>' for name in COSTS)
    yield f'<tr><td></td>{heads}<td style="width: 8em"></td></tr>'
    for row in rows:
        look = Look.PASSED if row.own else Look.UNTOUCHED
        width = f"width: {100 * row.share:.1f}%"
        bar = f'<div style="{width}; height: 0.7em; background: {look.colour}"></div>'
        weight = "bold" if row.own else "normal"
        # a number stays beside its unit
        kept = f"{cell}; white-space: nowrap"
        numbers = "".join(f'<td style="{kept}">{number}</td>' for number in row.numbers)
        yield (
            f'<tr style="font-weight: {weight}"><th scope="row" style="{cell}; text-align: left;'
            f' font-weight: {weight}">{escape(row.name)}</th>{numbers}<td>{bar}</td></tr>'
        )
    yield "</table></div>"


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _rows(rows: Sequence[RowParts], beside: str = SHOULD_BE) -> Iterator[str]:
    """Yield what every rank holds, and should hold or was; columns are aligned by equal widths.

    What a rank was is neither right nor wrong, so that nothing is coloured there.
    """
    if not rows:
        return
    width = max(len(row.actual) for row in rows)
    should = max(len(row.expected) for row in rows)
    yield f'<ul style="{_LIST} {_MONO}">'
    for row in rows:
        judged = beside == SHOULD_BE
        parts = [row.rank and escape(row.rank), _marked(row, width, judged)]
        if row.expected:
            parts.append(f"{beside} {escape(row.expected.ljust(should))}")
        look = (Look.PASSED if row.right else Look.FAILED) if judged else Look.UNTOUCHED
        parts.append(row.note and _coloured(row.note, look))
        spans = "".join(f'<span style="{_PART}">{part}</span>' for part in parts if part)
        yield f"<li>{spans}</li>"
    yield "</ul>"


def _marked(row: RowParts, width: int, judged: bool) -> str:
    """Return what a rank holds, with what differs there bold; underlined where that is wrong."""
    found, done = "", 0
    style = f' style="color: {Look.FAILED.colour}; text-decoration: underline"' if judged else ""
    for start, stop in row.wrong:
        found += escape(row.actual[done:start])
        found += f"<b{style}>{escape(row.actual[start:stop])}</b>"
        done = stop
    return found + escape(row.actual[done:]) + " " * (width - len(row.actual))


def _details(case: CaseVerdict) -> Iterator[str]:
    yield from _frames(case.frames)
    yield from _graph(case)
    yield from _list(case.detail)
    printed = output_lines(case)
    if printed:
        text = "\n".join(f"[rank {rank}] {escape(line)}" for rank, line in printed)
        yield f'<pre style="margin: 4px 0; white-space: pre-wrap; {_MONO}">{text}</pre>'


def _grid(verdict: ExerciseVerdict) -> Iterator[str]:
    """Yield a mark for every case, by world size; in words for those who do not see it."""
    yield f'<div role="img" aria-label="{escape(grid_words(verdict))}" style="flex: 0 1 auto">'
    used = {look for _, looks in grid(verdict) for look in looks}
    legend = "   ".join(f"{dot(look)} {word}" for look, word in _LEGEND.items() if look in used)
    yield f'<div aria-hidden="true" style="white-space: pre; {_QUIET}">Cases:   {legend}</div>'
    yield '<table aria-hidden="true" style="border-collapse: collapse; margin: 0">'
    for name, cases in groupby(verdict.cases, world):
        runs = ""
        for look, same in groupby(cases, case_look):
            marks = "".join(f'<span title="{_outcome(one)}">{dot(look)}</span>' for one in same)
            runs += f'<span style="color: {look.colour}">{marks}</span>'
        yield (
            f'<tr style="background: none"><td style="{_GRID} {_QUIET}">{escape(name)}</td>'
            f'<td style="{_GRID} {_MONO} letter-spacing: 0.15em">{runs}</td></tr>'
        )
    yield "</table></div>"


#: What the marks of the grid mean.
_LEGEND = {Look.PASSED: "right", Look.FAILED: "failed", Look.UNTOUCHED: "not run"}


def _outcome(case: CaseVerdict) -> str:
    """Return which case a mark of the grid is, and how it came out, in a few words."""
    words = "not run"
    if case.judged:
        words = "right" if case.passed else in_words(case.diagnosis)
    return escape(f"{case.name}: {words}")


_GRID = "border: 0; padding: 0 8px 0 0; text-align: left; white-space: nowrap;"


#: A row of what is folded away: what is unfolded takes a line of its own.
_ROW = "display: flex; flex-wrap: wrap; gap: 2px 24px; align-items: start; margin: 4px 0"
_SUMMARY = "cursor: pointer"


def _folded(verdict: ExerciseVerdict, cases: bool, help: Help | None) -> Iterator[str]:
    """Yield what a failed exercise has to unfold, in a row, without a kernel and without script."""
    if verdict.status is not Status.FAILED:
        return
    parts = [*_hint_ladder(verdict, help)] if help is not None else []
    if cases and len(verdict.cases) > 1 and not untouched(verdict):
        parts += _all_cases(verdict)
    if parts:
        yield f'<div style="{_ROW}">'
        yield from parts
        yield "</div>"


def _hint_ladder(verdict: ExerciseVerdict, help: Help) -> Iterator[str]:
    """Yield the hints, each with the next one inside it; one that the verdict gives is left out."""
    given = "" if untouched(verdict) else verdict.hint
    gentle = len(help.hints) - help.tells_all
    texts = [
        ("Show the answer" if number > gentle else f"Hint {number} of {gentle}", text)
        for number, text in enumerate(help.hints, 1)
        if text != given
    ]
    for name, text in texts:
        yield f'<details style="max-width: 100%"><summary style="{_SUMMARY}">{name}</summary>'
        yield f'<div style="margin: 2px 0 4px 1.2em">{"".join(_prose(text))}</div>'
    yield "</details>" * len(texts)


def _all_cases(verdict: ExerciseVerdict) -> Iterator[str]:
    """Yield every case of a failed exercise with its reason, to be unfolded."""
    name = f"All {len(verdict.cases)} cases"
    yield f'<details style="max-width: 100%"><summary style="{_SUMMARY}">{name}</summary>'
    yield f'<ul style="{_LIST} margin-left: 1em">'
    for outcome in outcomes(verdict):
        mark = _coloured(dot(outcome.look), outcome.look)
        where = "".join(f"<div>{escape(line)}</div>" for line in outcome.where)
        yield (
            f'<li style="margin: 2px 0">{mark} {escape(outcome.words)}'
            f'<div style="margin-left: 1.2em; {_QUIET}">{where}</div></li>'
        )
    yield "</ul></details>"


def _graph(of: Failure | CaseVerdict) -> Iterator[str]:
    if of.diagnosis is Diagnosis.DEADLOCK:
        image = graph_image(of.waits, of.cycle, of.ended, of.killed)
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
    """Yield a text's paragraphs and entries of lists, each a line, and indented lines as code."""
    for is_code, lines in itertools.groupby(
        text.splitlines(), lambda line: line.startswith("    ")
    ):
        if is_code:
            code = escape(textwrap.dedent("\n".join(lines)))
            yield f'<pre style="margin: 4px 0; white-space: pre-wrap; {_MONO}">{code}</pre>'
        else:
            yield from (f"<div>{_inline(line)}</div>" for line in lines if line)


#: Code in a sentence: what stands between backticks, a call such as ``dist.send(x, (r + 1) % n)``,
#: a name of torch such as ``dist.send``, and a name with an underscore.
_CODE = re.compile(
    r"`(?P<ticked>[^`]+)`"
    r"|(?<![\w./])(?:"
    r"(?:\w+\.)*[A-Za-z_]\w+\((?:[^()\n]|\([^()\n]*\))*\)(?: -> [\w.\[\], |]*[\w\]])?"
    r"|(?:dist|torch|nn|F)(?:\.\w+)+"
    r"|\w*[A-Za-z0-9]_\w*"
    r")"
)


def _inline(text: str) -> str:
    """Return a sentence as HTML, with what is code in it, or stands between backticks, as code."""
    parts, done = [], 0
    for found in _CODE.finditer(text):
        code = found["ticked"] or found[0]
        parts += [escape(text[done : found.start()]), f"<code>{escape(code)}</code>"]
        done = found.end()
    return "".join([*parts, escape(text[done:])])
