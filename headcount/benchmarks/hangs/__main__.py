"""Judge every program of the benchmark, and print how often the verdict is right.

Exit status: 0 if every goal is met, 1 if one is missed, 2 if the request is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table

import headcount
from benchmarks.hangs.catalogue import pairs_named
from benchmarks.hangs.declare import Program, both
from benchmarks.hangs.measure import Score, Verdict, judge, loaded, processors, score
from benchmarks.hangs.plain import LEVELS, Heard, Outcome, hear

COLUMNS = ("programs", "recall", "precision", "word", "line", "every line", "median", "max")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hangs", description=__doc__)
    parser.add_argument("names", nargs="*", help="classes or programs; all without any")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="judge N times")
    parser.add_argument(
        "--under-load", action="store_true", help="keep every processor busy meanwhile"
    )
    parser.add_argument(
        "--plain", action="store_true", help="what gloo and torch's DETAIL say, beside it"
    )
    parser.add_argument(
        "--limit", type=float, default=2.0, metavar="S", help="gloo's time limit with --plain"
    )
    parser.add_argument("--json", action="store_true", help="one object instead of tables")
    options = parser.parse_args(arguments)
    try:
        pairs = pairs_named(options.names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    programs = both(pairs)
    load = loaded(processors()) if options.under_load else contextlib.nullcontext()
    headcount.run(_nothing, 2)  # the launcher has imported torch when the first is timed
    with load:
        rounds = [[judge(program) for program in programs] for _ in range(options.repeat)]
    heard = hear(pairs, options.limit) if options.plain else {}

    every = [verdict for verdicts in rounds for verdict in verdicts]
    total = score(every)
    changing = _changing(rounds)
    failed = total.missed_goals + [f"{len(changing)} verdicts differ"] * bool(changing)
    if options.json:
        print(json.dumps(_object(every, total, heard, failed), indent=1))
    else:
        _print(every, total, changing, heard, failed)
    return 1 if failed else 0


def _nothing() -> None:
    """Let a world start and end."""


def _changing(rounds: Sequence[Sequence[Verdict]]) -> list[tuple[Program, list[str]]]:
    """Programs of which the rounds say different things."""
    found = []
    for verdicts in zip(*rounds, strict=True):
        said = sorted({f"{v.word or 'passes'} at line {v.line}" for v in verdicts})
        if len(said) > 1:
            found.append((verdicts[0].program, said))
    return found


def _by_class(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    def error_class(verdict: Verdict) -> str:
        return verdict.program.error_class

    ordered = sorted(verdicts, key=error_class)
    found = {name: list(group) for name, group in groupby(ordered, error_class)}
    return {name: found[name] for name in dict.fromkeys(map(error_class, verdicts))}


def _print(
    every: Sequence[Verdict],
    total: Score,
    changing: Sequence[tuple[Program, list[str]]],
    heard: dict[str, Heard],
    failed: Sequence[str],
) -> None:
    console = Console(highlight=False, width=150)
    table = Table(title="Wrong programs and their right twins")
    table.add_column("class of error")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for name, verdicts in _by_class(every).items():
        table.add_row(name, *_cells(score(verdicts)))
    table.add_section()
    table.add_row("all", *_cells(total))
    console.print(table)
    for verdict in every:
        slow = [f"takes {verdict.seconds:.2f} s"] if verdict.slow else []
        for miss in verdict.misses + slow:
            where = f"{verdict.program.error_class}: {verdict.program.name}"
            console.print(f"✗ {where}: {miss}\n    {verdict.message}", markup=False)
    for program, said in changing:
        console.print(f"✗ {program.name} is not judged alike: {'; '.join(said)}", markup=False)
    if heard:
        _print_heard(console, every, heard)
    console.print(f"missed: {', '.join(failed)}" if failed else "every goal is met")


def _cells(found: Score) -> tuple[str, ...]:
    shares = (found.recall, found.precision, found.word, found.line, found.every_line)
    return (
        f"{found.wrong} + {found.wrong}",
        *(f"{share:.3f}" for share in shares),
        f"{found.median:.2f} s",
        f"{found.longest:.2f} s",
    )


def _print_heard(console: Console, every: Sequence[Verdict], heard: dict[str, Heard]) -> None:
    """Print what torch says of each wrong program beside headcount, and how often."""
    verdicts = {v.program.name: v for v in every}
    wrong = [v for v in verdicts.values() if v.program.word is not None]
    table = Table(title="What is said of the wrong programs")
    for column in ("class of error", "program", "headcount", *LEVELS.values()):
        table.add_column(column)
    for verdict in wrong:
        program, outcomes = verdict.program, heard[verdict.program.name].outcomes
        said = [str(outcomes[level]) for level in LEVELS]
        table.add_row(program.error_class, program.name, verdict.word or "nothing", *said)
    console.print(table)

    table = Table(title=f"How the {len(wrong)} wrong programs end")
    for column in ("", *LEVELS.values(), "headcount"):
        table.add_column(column, justify="right" if column else "left")
    for outcome in Outcome:
        counts = [sum(heard[v.program.name].outcomes[x] is outcome for v in wrong) for x in LEVELS]
        ours = {Outcome.NAMED: True, Outcome.SILENT: False}.get(outcome)
        own = "" if ours is None else str(sum(v.found is ours for v in wrong))
        table.add_row(str(outcome), *map(str, counts), own or "0")
    console.print(table)
    for verdict in verdicts.values():
        program = verdict.program
        outcomes = heard[program.name].outcomes
        if program.word is None:
            alarms = [x for x in LEVELS if outcomes[x] is not Outcome.SILENT]
            for level in alarms:
                text = heard[program.name].messages[level]
                console.print(
                    f"{LEVELS[level]}: {program.name} is right: {outcomes[level]}: {text}",
                    markup=False,
                )
        elif program.hangs != "sometimes":
            hung = outcomes["OFF"] is Outcome.HUNG
            if hung != (program.hangs == "always"):
                text = f"{program.name} hangs {program.hangs} as declared; it was {outcomes['OFF']}"
                console.print(f"✗ {text}: {heard[program.name].messages['OFF']}", markup=False)


def _object(
    every: Sequence[Verdict], total: Score, heard: dict[str, Heard], failed: Sequence[str]
) -> dict[str, Any]:
    return {
        "torch": __import__("torch").__version__,
        "total": asdict(total),
        "classes": {name: asdict(score(found)) for name, found in _by_class(every).items()},
        "missed_goals": list(failed),
        "programs": [
            {
                "class": verdict.program.error_class,
                "name": verdict.program.name,
                "ranks": verdict.program.ranks,
                "expected": verdict.program.word and str(verdict.program.word),
                "expected_lines": verdict.program.lines,
                "got": verdict.word or None,
                "line": verdict.line,
                "message": verdict.message,
                "seconds": round(verdict.seconds, 4),
                "misses": verdict.misses,
                "plain": _heard_object(heard.get(verdict.program.name)),
            }
            for verdict in every
        ],
    }


def _heard_object(heard: Heard | None) -> dict[str, Any] | None:
    if heard is None:
        return None
    return {
        level: {"outcome": str(heard.outcomes[level]), "message": heard.messages[level]}
        for level in LEVELS
    }


if __name__ == "__main__":
    sys.exit(main())
