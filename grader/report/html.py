"""Verdicts as HTML for a notebook's output: compact, and right in either theme.

Colours come from JupyterLab's own variables, with fallbacks for other
front ends; every colour has a word or a mark beside it.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from grader.exercise.help import Help
from grader.exercise.verdict import HINT_LABELS, CaseVerdict, ExerciseVerdict, Status
from grader.report.elements import Markup, block, element, escape, join
from grader.report.graph import graph_of
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
from headcount.core.verdict import Diagnosis, Failure
from headcount.report import shown

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
_BORDER = "var(--jp-border-color1, #9e9e9e)"
_MONO = "font-family: var(--jp-code-font-family, monospace); font-size: 0.92em;"
_QUIET = f"color: {Look.UNTOUCHED.colour};"
_LIST = "list-style: none; margin: 4px 0; padding: 0;"
# a part of a row stays whole where there is room, and is wrapped between numbers where not
_PART = "display: inline-block; max-width: 100%; white-space: pre-wrap; margin: 0 1.6em 0 0;"


def _card(colour: str, label: str, *lines: object) -> Markup:
    style = _STYLE.format(colour=colour)
    return block("div", *lines, style=style, role="group", aria_label=label)


def _coloured(text: str, look: Look, style: str = "") -> Markup:
    return element("span", text, style=f"color: {look.colour}; {style}")


def _card_head(look: Look, name: str, rest: str) -> Markup:
    mark = _coloured(look.mark, look, "font-weight: bold;")
    return element("div", mark, " ", element("strong", name), " ", rest)


def _preformatted(lines: Iterable[object]) -> Markup:
    style = f"margin: 4px 0; white-space: pre-wrap; {_MONO}"
    return element("pre", join(lines, "\n"), style=style)


def failure_html(failure: Failure) -> Markup:
    """Return why a run of ranks failed, as a small card."""
    words = in_words(failure.diagnosis)
    return _card(
        Look.FAILED.colour,
        f"failed: {words}",
        _card_head(Look.FAILED, words, ""),
        element("div", failure.message),
        *_evidence(failure),
    )


def run_html(head: str, changed: Sequence[ChangedArgument], traffic: str) -> Markup:
    """Return a run without results as a small card, see ``run_report``."""
    parts = [element("div", head)]
    for argument in changed:
        parts.append(element("div", argument.head, ":" * bool(argument.rows)))
        parts += _rows(argument.rows, WAS)
        if argument.more:
            parts.append(element("div", f"… {argument.more}", style=_QUIET))
    if traffic:
        parts.append(element("div", traffic, style=_QUIET))
    return _card(_BORDER, head, *parts)


def exercise_html(
    verdict: ExerciseVerdict,
    place: CoursePlace | None = None,
    cases: bool = True,
    help: Help | None = None,
    strip: str = "",
) -> Markup:
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
    return _card(
        look.colour,
        f"{verdict.name}: {headline(verdict)}",
        _card_head(look, verdict.name, headline(verdict)),
        *_body(verdict, strip),
        *_folded(verdict, cases, help),
        *_card_foot(verdict, place),
    )


def points_html(verdict: ExerciseVerdict) -> Markup:
    """Return what an exercise has earned in one line, where its verdict has been shown before."""
    look = look_of(verdict)
    return element(
        "div",
        _card_head(look, verdict.name, earned(verdict)),
        style=_STYLE.format(colour=look.colour),
        role="group",
        aria_label=f"{verdict.name}: {earned(verdict)}",
    )


def _card_foot(verdict: ExerciseVerdict, place: CoursePlace | None) -> Iterator[Markup]:
    """Yield what it has earned, and the place in the course with the way on."""
    if place is None:
        yield element("div", earned(verdict), style=_QUIET)
        return
    dots = element("span", place.dots, aria_hidden="true")
    yield element("div", f"{earned(verdict)} · {place.in_words} ", dots, style=_QUIET)
    if not verdict.passed:
        return
    praise = praise_of(verdict, place)
    if praise:
        yield element("div", _RING, element("strong", praise))
    if place.next_name:
        colour = "color: var(--jp-content-link-color, LinkText)"
        link = element("a", place.next_name, href=place.next_link, style=colour)
        yield element("div", "Next: ", link if place.next_link else place.next_name)


#: Eight ranks that have closed their ring: it stands still, and is an ornament.
_RING = Markup(
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


def _body(verdict: ExerciseVerdict, strip: str) -> Iterator[Markup]:
    if verdict.status is Status.PASSED:
        for line in filter(None, (key_traffic(verdict), orders_tried(verdict))):
            yield element("div", line)
        yield from _ladder(verdict)
        if verdict.message:
            yield element("div", element("strong", "Remark:"), f" {verdict.message}")
    if verdict.status is not Status.FAILED or untouched(verdict):
        return
    said = block("div", *_failure(verdict, strip), style="flex: 1 1 26em; min-width: 0")
    cases = _grid(verdict) if len(verdict.cases) > 1 else ()
    # beside each other where there is room, else one below the other
    style = "display: flex; flex-wrap: wrap; gap: 4px 32px; align-items: start"
    yield block("div", said, *cases, style=style)


def _failure(verdict: ExerciseVerdict, strip: str) -> Iterator[Markup]:
    """Yield what is wrong first, where, and a hint."""
    found = finding(verdict)
    case = verdict.gravest_failure
    sentence = f"{found.where} {found.what}".strip()
    if sentence:
        yield element("div", _lines(sentence))
    if case is not None:
        yield from _rows(rank_rows(case))
    if found.more:
        yield element("div", _lines(found.more))
    if case is not None:
        yield from _evidence(case)
        if printed := output_lines(case):
            yield _preformatted(f"[rank {rank}] {line}" for rank, line in printed)
    if strip:
        picture = element("div", Markup(strip), style="margin: 4px 0; overflow-x: auto")
        words = _summary("Where it goes wrong, with data that has names")
        yield element("details", words, "\n", picture, open=True)
    if verdict.hint:
        hint = join(map(_inline, verdict.hint.splitlines()), "<br>")
        label = f"{HINT_LABELS[verdict.hint_grade].capitalize()}:"
        yield element("div", element("strong", label), " ", hint)
    if found.others:
        yield element("div", _lines(found.others))


def _ladder(verdict: ExerciseVerdict) -> Iterator[Markup]:
    """Yield what a passed exercise costs beside other ways, as a table with bars of the time."""
    found = ladder(verdict)
    if found is None:
        return
    title, rows = found
    cell = "padding: 0 0.6em; text-align: right"
    heads = join(element("th", name, scope="col", style=cell) for name in COSTS)
    lines = [
        element("caption", title, style="text-align: left; padding: 0"),
        element("tr", element("td"), heads, element("td", style="width: 8em")),
    ]
    for row in rows:
        look = Look.PASSED if row.own else Look.UNTOUCHED
        width = f"width: {100 * row.share:.1f}%"
        bar = element("div", style=f"{width}; height: 0.7em; background: {look.colour}")
        weight = f"font-weight: {'bold' if row.own else 'normal'}"
        name = element("th", row.name, scope="row", style=f"{cell}; text-align: left; {weight}")
        # a number stays beside its unit
        kept = f"{cell}; white-space: nowrap"
        numbers = join(element("td", number, style=kept) for number in row.numbers)
        lines.append(element("tr", name, numbers, element("td", bar), style=weight))
    table = block("table", *lines, style="border-collapse: collapse; margin: 4px 0")
    yield element("div", "\n", table, style="overflow-x: auto")


def _lines(text: str) -> Markup:
    return Markup(escape(text).replace("\n", "<br>"))


def _rows(rows: Sequence[RowParts], beside: str = SHOULD_BE) -> Iterator[Markup]:
    """Yield what every rank holds, and should hold or was; columns are aligned by equal widths.

    What a rank was is neither right nor wrong, so that nothing is coloured there.
    """
    if not rows:
        return
    judged = beside == SHOULD_BE
    width = max(len(row.actual) for row in rows)
    should = max(len(row.expected) for row in rows)
    lines = []
    for row in rows:
        parts: list[str] = [row.rank, _marked(row, width, judged)]
        if row.expected:
            parts.append(f"{beside} {row.expected.ljust(should)}")
        look = (Look.PASSED if row.right else Look.FAILED) if judged else Look.UNTOUCHED
        parts.append(row.note and _coloured(row.note, look))
        lines.append(element("li", *(element("span", p, style=_PART) for p in parts if p)))
    yield block("ul", *lines, style=f"{_LIST} {_MONO}")


def _marked(row: RowParts, width: int, judged: bool) -> Markup:
    """Return what a rank holds, with what differs there bold; underlined where that is wrong."""
    style = f"color: {Look.FAILED.colour}; text-decoration: underline" if judged else None
    found: list[str] = []
    done = 0
    for start, stop in row.wrong:
        found += [row.actual[done:start], element("b", row.actual[start:stop], style=style)]
        done = stop
    return join([*found, row.actual[done:], " " * (width - len(row.actual))])


def _grid(verdict: ExerciseVerdict) -> Iterator[Markup]:
    """Yield a mark for every case, by world size; in words for those who do not see it."""
    used = {look for _, looks in grid(verdict) for look in looks}
    legend = "   ".join(f"{dot(look)} {word}" for look, word in _LEGEND.items() if look in used)
    rows = []
    for name, cases in groupby(verdict.cases, world):
        runs = []
        for look, same in groupby(cases, case_look):
            marks = (element("span", dot(look), title=_outcome(case)) for case in same)
            runs.append(element("span", join(marks), style=f"color: {look.colour}"))
        marked = element("td", *runs, style=f"{_GRID} {_MONO} letter-spacing: 0.15em")
        label = element("td", name, style=f"{_GRID} {_QUIET}")
        rows.append(element("tr", label, marked, style="background: none"))
    quiet = f"white-space: pre; {_QUIET}"
    table = block("table", *rows, aria_hidden="true", style="border-collapse: collapse; margin: 0")
    yield element(
        "div",
        "\n",
        element("div", f"Cases:   {legend}", aria_hidden="true", style=quiet),
        "\n",
        table,
        role="img",
        aria_label=grid_words(verdict),
        style="flex: 0 1 auto",
    )


#: What the marks of the grid mean.
_LEGEND = {Look.PASSED: "right", Look.FAILED: "failed", Look.UNTOUCHED: "not run"}


def _outcome(case: CaseVerdict) -> str:
    """Return which case a mark of the grid is, and how it came out, in a few words."""
    words = "not run"
    if case.judged:
        words = "right" if case.passed else in_words(case.diagnosis)
    return f"{case.name}: {words}"


_GRID = "border: 0; padding: 0 8px 0 0; text-align: left; white-space: nowrap;"


#: A row of what is folded away: what is unfolded takes a line of its own.
_ROW = "display: flex; flex-wrap: wrap; gap: 2px 24px; align-items: start; margin: 4px 0"


def _summary(text: str) -> Markup:
    return element("summary", text, style="cursor: pointer")


def _folded(verdict: ExerciseVerdict, cases: bool, help: Help | None) -> Iterator[Markup]:
    """Yield what a failed exercise has to unfold, in a row, without a kernel and without script."""
    if verdict.status is not Status.FAILED:
        return
    parts = [*_hint_ladder(verdict, help)] if help is not None else []
    if cases and len(verdict.cases) > 1 and not untouched(verdict):
        parts.append(_all_cases(verdict))
    if parts:
        yield block("div", *parts, style=_ROW)


def _hint_ladder(verdict: ExerciseVerdict, help: Help) -> Iterator[Markup]:
    """Yield the hints, each with the next one inside it; one that the verdict gives is left out."""
    given = "" if untouched(verdict) else verdict.hint
    gentle = len(help.hints) - help.tells_all
    ladder = Markup()
    for number, text in reversed([*enumerate(help.hints, 1)]):
        if text == given:
            continue
        name = "Show the answer" if number > gentle else f"Hint {number} of {gentle}"
        hint = element("div", *_prose(text), style="margin: 2px 0 4px 1.2em")
        parts = _summary(name), "\n", hint, "\n", ladder
        ladder = element("details", *parts, style="max-width: 100%")
    if ladder:
        yield ladder


def _all_cases(verdict: ExerciseVerdict) -> Markup:
    """Return every case of a failed exercise with its reason, to be unfolded."""
    lines = []
    for outcome in outcomes(verdict):
        mark = _coloured(dot(outcome.look), outcome.look)
        where = join(element("div", line) for line in outcome.where)
        places = element("div", where, style=f"margin-left: 1.2em; {_QUIET}")
        lines.append(element("li", mark, f" {outcome.words}", places, style="margin: 2px 0"))
    name = _summary(f"All {len(verdict.cases)} cases")
    listed = block("ul", *lines, style=f"{_LIST} margin-left: 1em")
    return element("details", name, "\n", listed, style="max-width: 100%")


def _evidence(found: Failure | CaseVerdict) -> Iterator[Markup]:
    """Yield the lines where it failed, who waits for whom, and further details."""
    if shown(found.frames):
        yield _preformatted(found.frames)
    if found.diagnosis is Diagnosis.DEADLOCK:
        graph = graph_of(found.waits, found.cycle, found.ended, found.killed)
        if graph is not None:
            yield element("div", graph.image, style="margin: 4px 0")
    if found.detail:
        items = (element("li", line) for line in found.detail)
        yield element("ul", *items, style="margin: 2px 0 2px 1.2em; padding: 0")


def hints_html(name: str, hints: Sequence[str], more: str) -> Markup:
    """Return hints on an exercise, the gentlest first.

    Args:
        name: the exercise.
        hints: those to show; lines that begin with four blanks are code.
        more: how to see the next one; empty if there is none.
    """
    label = f"{name}: hint{'s' if len(hints) > 1 else ''}"
    items = (element("li", *_prose(hint), style="margin: 2px 0") for hint in hints)
    return _card(
        "var(--jp-brand-color1, #1565c0)",
        label,
        element("div", element("strong", label)),
        element("ol", *items, style="margin: 2px 0 2px 1.6em; padding: 0"),
        *([element("div", _inline(more))] if more else []),
    )


def prediction_html(head: str, text: str) -> Markup:
    """Return what a learner expects, under a heading such as ``You predicted``."""
    style = f"{_STYLE.format(colour=_BORDER)} white-space: pre-wrap"
    said = element("strong", head), " ", _inline(text)
    return element("div", *said, style=style, role="group", aria_label=head)


def _prose(text: str) -> Iterator[Markup]:
    """Yield a text's paragraphs and entries of lists, each a line, and indented lines as code."""
    for is_code, lines in groupby(text.splitlines(), lambda line: line.startswith("    ")):
        if is_code:
            yield _preformatted([textwrap.dedent("\n".join(lines))])
        else:
            yield from (element("div", _inline(line)) for line in lines if line)


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


def _inline(text: str) -> Markup:
    """Return a sentence as HTML, with what is code in it, or stands between backticks, as code."""
    parts: list[str] = []
    done = 0
    for found in _CODE.finditer(text):
        code = found["ticked"] or found[0]
        parts += [text[done : found.start()], element("code", code)]
        done = found.end()
    return join([*parts, text[done:]])
