"""Seconds that a failing check spends on recognising its mistake, for every exercise.

    python -m benchmarks.recognising --repeat 3

The first wrong answer that is known of each exercise is judged; of the repetitions the fastest
counts.  Let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

from grader.api import catalogue
from grader.judge import judge
from tools import course

#: Seconds that are wanted at most.
GOAL = 0.15


def first_wrong() -> Iterator[course.Answer]:
    """Yield the first known wrong answer with a hint of its own, of every exercise that has one."""
    seen: set[str] = set()
    for answer in course.answers():
        if answer.known.speaks and answer.exercise not in seen:
            seen.add(answer.exercise)
            yield answer


def seconds(answer: course.Answer) -> float:
    """Return what recognising took; 0 if no program was compared."""
    taken = 0.0
    recognised = judge.recognised

    def timed(*arguments: Any, **options: Any) -> str:
        nonlocal taken
        started = time.perf_counter()
        hint = recognised(*arguments, **options)
        taken += time.perf_counter() - started
        return hint

    with mock.patch.object(judge, "recognised", timed):
        course.judge_answer(answer, catalogue(), seed=1)
    return taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the slowest, the median and the maximum."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--slowest", type=int, default=10, help="how many to list")
    request = parser.parse_args(arguments)
    found = {
        answer.name: min(seconds(answer) for _ in range(request.repeat)) for answer in first_wrong()
    }
    table = Table("answer", "seconds")
    for name in sorted(found, key=lambda name: -found[name])[: request.slowest]:
        table.add_row(name, f"{found[name]:.3f}")
    table.add_section()
    table.add_row(f"median of {len(found)}", f"{statistics.median(found.values()):.3f}")
    table.add_row("within the goal", f"{sum(one <= GOAL for one in found.values())}")
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
