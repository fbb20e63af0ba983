"""Verdicts as text: coloured on a terminal, plain elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.exercise.verdict import (
    HINT_LABELS,
    CaseVerdict,
    ExerciseVerdict,
    Status,
    SubmissionVerdict,
)
from grader.report.looks import Look
from grader.report.summary import (
    COSTS,
    SHOULD_BE,
    WAS,
    CoursePlace,
    RowParts,
    dot,
    finding,
    grid,
    headline,
    in_words,
    key_traffic,
    ladder,
    look_of,
    orders_tried,
    output_lines,
    points,
    praise_of,
    rank_rows,
    untouched,
)
from headcount.core.verdict import amount, duration
from headcount.report import WIDTH, shown, visible
from headcount.simulation.clusters import Cluster, Flat

if TYPE_CHECKING:
    from grader.exercise.declaration import Exercise
    from grader.judge.simulated_checks import SimulatedOutcome
    from grader.report.changes import ChangedArgument

__all__ = [
    "exercise_report",
    "growth_report",
    "place_report",
    "hints_report",
    "run_report",
    "submission_report",
]

#: Indent of the rows of the ranks.
_ROWS = 4


def submission_report(verdict: SubmissionVerdict) -> RenderableType:
    """Report every exercise of a submission, by chapter, and the score."""
    parts: list[RenderableType] = []
    chapter = None
    for exercise in verdict.exercises:
        if exercise.chapter != chapter:
            chapter = exercise.chapter
            parts += [Text(""), Text(chapter, style="bold")]
        parts.append(Padding(exercise_report(exercise), (0, 0, 0, 2)))
    score = f"{points(verdict.score)} of {points(verdict.max_score)} points"
    how = f"seed {verdict.seed}" + f", on {verdict.backend}" * (verdict.backend != "gloo")
    parts += [Text(""), Text(f"{score}   ({how})", style="bold")]
    return Group(*parts)


def exercise_report(
    verdict: ExerciseVerdict, place: CoursePlace | None = None, more: str = ""
) -> RenderableType:
    """Report one exercise: its outcome, and on failure where it is and what to try.

    Args:
        verdict: the verdict.
        place: the learner's place in the course, where it is known.
        more: the call that gives the next hint, of which a failed one tells; empty if none is left.
    """
    lines = [*_exercise_lines(verdict)]
    if more and verdict.status is Status.FAILED:
        lines.append(Padding(Text(f"more hints: {more}", style="dim"), (0, 0, 0, 2)))
    if place is not None:
        lines.append(Padding(place_report(verdict, place), (0, 0, 0, 2)))
    return Group(*lines)


def place_report(verdict: ExerciseVerdict, place: CoursePlace) -> RenderableType:
    """Report the place in the course after a check, and what comes next."""
    line = Text(f"{place.in_words} {place.dots}", style="dim")
    if not verdict.passed:
        return line
    coming = Text(f" · next: {place.next_name}" if place.next_name else "")
    praise = praise_of(verdict, place)
    lines = [Text(praise, style="bold green")] if praise else []
    return Group(*lines, Text.assemble(line, coming))


def _exercise_lines(verdict: ExerciseVerdict) -> Iterator[RenderableType]:
    look = look_of(verdict)
    head = Table.grid(expand=True, padding=(0, 1))
    head.add_column(no_wrap=True)
    head.add_column(no_wrap=True)
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    score = f"{points(verdict.score)}/{points(verdict.max_score)}"
    head.add_row(
        Text(look.mark, style=look.terminal),
        Text(verdict.name, style="bold"),
        Text(headline(verdict)),
        Text(score, style=look.terminal),
    )
    yield head
    yield from (Padding(line, (0, 0, 0, 2)) for line in _body(verdict))


def _body(verdict: ExerciseVerdict) -> Iterator[RenderableType]:
    if verdict.status is Status.PASSED:
        lines = filter(None, (key_traffic(verdict), orders_tried(verdict)))
        yield from (Text(line, style="dim") for line in lines)
        yield from _ladder(verdict)
        if verdict.message:
            yield Text(f"remark: {visible(verdict.message)}")
    if verdict.status is not Status.FAILED or untouched(verdict):
        return
    found = finding(verdict)
    sentence = f"{found.where} {found.what}".strip()
    if sentence:
        yield Text(visible(sentence))
    case = verdict.gravest_failure
    if case is not None:
        yield from _rows(rank_rows(case))
    if found.more:
        yield Text(visible(found.more))
    if case is not None:
        yield from _evidence(case)
    if verdict.hint:
        label = f"{HINT_LABELS[verdict.hint_grade]}: "
        yield Text.assemble((label, "bold cyan"), visible(verdict.hint))
    if found.others:
        yield Text(visible(found.others))
    if len(verdict.cases) > 1:
        yield _grid(verdict)


#: Characters of the longest bar.
_BAR = 12


def _ladder(verdict: ExerciseVerdict) -> Iterator[RenderableType]:
    found = ladder(verdict)
    if found is None:
        return
    title, rows = found
    yield Text(title)
    table = Table.grid(padding=(0, 2))
    table.add_column()
    for _ in COSTS:
        table.add_column(justify="right")
    table.add_row("", *COSTS)
    for row in rows:
        bar = "█" * round(_BAR * row.share)
        style = Look.PASSED.terminal if row.own else ""
        table.add_row(*(Text(text, style) for text in (row.name, *row.numbers, bar)))
    yield Padding(table, (0, 0, 0, _ROWS))


def _rows(rows: Sequence[RowParts], beside: str = SHOULD_BE) -> Iterator[RenderableType]:
    """Yield what every rank holds, in one line each, or in two where that is too wide.

    Args:
        rows: of the ranks.
        beside: the words before the other value; of any other than what it should be, nothing
            is coloured as right or wrong.
    """
    judged = beside == SHOULD_BE
    widths = [max((len(text) for text in texts), default=0) for texts in _columns(rows, beside)]
    wide = _ROWS + sum(widths) + 3 * sum(width > 0 for width in widths[1:]) > WIDTH - 2
    label = max(widths[0], len(beside)) if wide else widths[0]
    for row in rows:
        actual = Text(row.actual.ljust(widths[1]))
        for start, stop in row.wrong:
            actual.stylize("bold red underline" if judged else "bold", start, stop)
        look = (Look.PASSED if row.right else Look.FAILED) if judged else Look.UNTOUCHED
        note = Text(row.note, look.terminal)
        rank = row.rank or "is" * wide
        parts = [Text(rank.ljust(label))] if label else []
        if wide:
            lines = [[*parts, actual, note]]
            if row.expected:
                lines.append([Text(beside.ljust(label)), Text(row.expected)])
        else:
            expected = f"{beside} {row.expected}" if row.expected else ""
            others = [Text(expected.ljust(widths[2]))] if widths[2] else []
            lines = [[*parts, actual, *others, note]]
        for line in lines:
            text = Text("   ").join(line)
            text.rstrip()
            yield Padding(text, (0, 0, 0, _ROWS))


def _columns(rows: Sequence[RowParts], beside: str) -> tuple[list[str], ...]:
    return (
        [row.rank for row in rows],
        [row.actual for row in rows],
        [f"{beside} {row.expected}" if row.expected else "" for row in rows],
        [row.note for row in rows],
    )


def _evidence(case: CaseVerdict) -> Iterator[RenderableType]:
    yield from (Text(visible(f"· {line}")) for line in case.detail)
    yield from (Padding(Text(visible(str(frame))), (0, 0, 0, 4)) for frame in shown(case.frames))
    yield from (Text(visible(f"[rank {rank}] {line}")) for rank, line in output_lines(case))


def _grid(verdict: ExerciseVerdict) -> RenderableType:
    """Return a mark for every case, in as many columns as fit."""
    groups: dict[bool, list[tuple[str, list[Look]]]] = {}
    for name, looks in grid(verdict):
        groups.setdefault("simulated" in name, []).append((name, looks))
    parts = []
    for entries in groups.values():
        label = max(len(name) for name, _ in entries)
        found = []
        for name, looks in entries:
            line = Text.assemble((f"{name:>{label}} ", "dim"))
            for look, same in groupby(looks):
                line.append(dot(look) * len([*same]), look.terminal)
            found.append(line)
        parts.append(Columns(found, padding=(0, 3)))
    return Group(*parts)


def run_report(head: str, changed: Sequence[ChangedArgument], traffic: str) -> RenderableType:
    """Report a run without results: what its arguments became, and what was sent.

    Args:
        head: says how many ranks returned nothing.
        changed: the arguments.
        traffic: what was sent, in words; empty if nothing was.
    """
    lines: list[RenderableType] = [Text(visible(head))]
    for argument in changed:
        lines.append(Text(visible(argument.head) + ":" * bool(argument.rows)))
        lines += _rows(argument.rows, WAS)
        if argument.more:
            lines.append(Padding(Text(f"… {argument.more}", style="dim"), (0, 0, 0, _ROWS)))
    if traffic:
        lines.append(Text(traffic, style="dim"))
    return Group(*lines)


def hints_report(hints: Sequence[str], more: str) -> RenderableType:
    """Report hints, numbered; ``more`` says how to see the next one, or is empty."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, justify="right")
    table.add_column()
    for number, hint in enumerate(hints, 1):
        table.add_row(f"{number}.", Text(visible(hint)))
    return Group(table, Text(more, style="dim")) if more else table


# An answer on simulated ranks. -----------------------------------------------------


def growth_report(
    grown: SimulatedOutcome, exercise: Exercise, cluster: Cluster, name: str, seed: int
) -> RenderableType:
    """Report an answer on simulated ranks: whether it is right, and its virtual costs.

    Args:
        grown: the outcome.
        exercise: the exercise that it answers.
        cluster: says what messages cost.
        name: of the cluster; empty if it has none.
        seed: of the inputs.
    """
    n = grown.case.n
    ranks = "1 simulated rank" if n == 1 else f"{n:,} simulated ranks"
    parts: list[RenderableType] = [
        Text.assemble((exercise.name, "bold"), f" on {ranks}, {_cluster_words(cluster, name)}")
    ]
    parts += [Padding(_case_line(verdict), (0, 0, 0, 2)) for verdict in grown.verdicts]
    if grown.simulation.failure is None:
        parts.append(Padding(_grown_costs(grown), (0, 0, 0, 2)))
    parts.append(Text(f"(seed {seed})", style="dim"))
    return Group(*parts)


def _cluster_words(cluster: Cluster, name: str) -> str:
    if name:
        return f"cluster {visible(name)}"
    if isinstance(cluster, Flat):
        return f"α = {cluster.alpha:g} s, β = {cluster.beta:g} s/byte"
    return f"nodes of {cluster.ranks_per_node} ranks"


def _case_line(verdict: CaseVerdict) -> Text:
    look = Look.PASSED if verdict.passed else Look.FAILED
    mark = f"{look.mark} ", look.terminal
    if not verdict.passed:
        said = f"{verdict.name}: {in_words(verdict.diagnosis)}: {verdict.message}"
        return Text.assemble(mark, visible(said))
    limits = ", ".join(map(str, verdict.bounds))
    return Text.assemble(mark, limits or f"{verdict.name}: right")


def _grown_costs(grown: SimulatedOutcome) -> Table:
    simulation = grown.simulation
    table = Table.grid(padding=(0, 2))
    table.add_row("virtual time", duration(simulation.seconds))
    table.add_row("messages", f"{simulation.messages:,}")
    sent = amount(simulation.bytes)
    if simulation.tally is not None:
        sent += f", by one rank at most {amount(simulation.tally.traffic.max_sent)}"
    table.add_row("sent", sent)
    return table
