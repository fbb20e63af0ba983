"""``python -m grader grade``: what it prints, and where its results go."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from grader.classroom.engines import Engine
from grader.classroom.outputs.files import write
from grader.classroom.report import class_results
from grader.classroom.session import Options, grade_class
from grader.classroom.session import Progress as Step
from grader.classroom.similarity import alike
from grader.classroom.store import Store, StoreError
from grader.errors import RequestError
from grader.exercises import Catalogue
from grader.reports.summary import visible
from grader.verdict import ExerciseVerdict, Status

__all__ = ["grade"]

_UNSAFE = (
    "no sandbox: the submissions run as you, on this machine, and can read, change and send"
    " whatever you can"
)


def grade(
    source: Path,
    out: Path,
    engine: Engine,
    catalogue: Catalogue,
    options: Options,
    as_json: bool = False,
) -> int:
    """Grade a class and write the results.

    Returns:
        The exit status: 0, or 1 if the grader failed at something.
    """
    console = Console(stderr=True, highlight=False)
    with contextlib.closing(engine):
        if not source.exists():
            raise RequestError(f"{source} does not exist")
        if options.limits.sandbox:
            _try_sandbox()
        else:
            console.print(Text(f"warning: {_UNSAFE}", style="bold red"))
        with Store(out) as store:
            bar = _Bar(console)
            try:
                with bar:
                    step = grade_class(source, store, engine, catalogue, options, bar.observe)
            finally:
                # also of what was found before it was stopped
                _report(store, out)
            summary = _Summary(store, step)
    if as_json:
        print(json.dumps(summary.as_dict(), indent=1))
    else:
        summary.show(Console(highlight=False), out)
    return 1 if summary.errors else 0


def _report(store: Store, out: Path) -> None:
    """Write every page and table."""
    entries = store.entries()
    if not entries:
        return
    pairs = alike({entry.key: entry.prints for entry in entries})
    try:
        write(class_results(store), out, pairs)
    except OSError as error:
        raise StoreError(
            f"the reports cannot be written to {error.filename or out}: {error.strerror};"
            " every verdict is stored: mend that and grade again"
        ) from None


def _try_sandbox() -> None:
    """Make one, so that a machine that cannot is not found out student by student."""
    from grader.worlds.nursery import Nursery

    try:
        Nursery.rehearse()
    except RequestError as error:
        raise RequestError(
            f"{error}; see `python -m grader doctor`, or grade without: --sandbox none"
        ) from None


class _Bar:
    """The bar on the terminal: how far, how fast, how long still."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> _Bar:
        self._progress.start()
        self._task = self._progress.add_task("submissions", total=None, rate="")
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def observe(self, step: Step, verdict: ExerciseVerdict | None) -> None:
        """Show a step."""
        assert self._task is not None
        (task,) = self._progress.tasks
        judged, seconds = step.judged, task.elapsed or 0.0
        rate = f"{60 * judged / seconds:.0f}/min" if judged and seconds > 1 else ""
        self._progress.update(self._task, total=step.submissions, completed=step.done, rate=rate)


class _Summary:
    """What came of it, in numbers."""

    def __init__(self, store: Store, step: Step) -> None:
        self.step = step
        self.words: Counter[str] = Counter()
        self.errors: list[str] = []
        self.nothing: list[str] = []
        for entry in store.entries():
            found = store.verdicts(entry.key)
            if entry.fault:
                self.errors.append(f"{entry.student}: {entry.fault}")
            elif not entry.exercises:
                self.nothing.append(entry.student)
            for verdict in found.values():
                if verdict.status is Status.ERROR:
                    self.errors.append(f"{entry.student}, {verdict.name}: {verdict.message}")
                word = verdict.diagnosis.value if verdict.diagnosis else verdict.status.value
                self.words[word] += 1

    def as_dict(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "submissions": self.step.submissions,
            "judged": self.step.judged,
            "kept": self.step.kept,
            "verdicts": dict(self.words.most_common()),
            "nothing_handed_in": self.nothing,
            "errors": self.errors,
        }

    def show(self, console: Console, out: Path) -> None:
        """For people."""
        step = self.step
        console.print(
            f"{step.submissions} submissions: {step.judged} judged,"
            f" {step.kept} unchanged since they were judged"
        )
        table = Table.grid(padding=(0, 2))
        for word, count in self.words.most_common():
            table.add_row(Text(str(count), justify="right"), Text(word))
        console.print(table)
        for student in self.nothing:
            console.print(Text(f"handed in no exercise: {_plain(student)}"))
        for error in self.errors:
            console.print(Text(f"the grader failed: {_plain(error)}", style="bold red"))
        if self.errors:
            console.print("grade again: what failed is tried once more")
        console.print(Text(f"results are in {out}"))


def _plain(text: str) -> str:
    """A stranger's text in one line, with nothing that a terminal would obey."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
