"""``python -m grader grade``: grade a class, show how far it is, and write the results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

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

from grader.classroom.arrivals import Arrivals, ReadFiles, StudentSubmission, collect
from grader.classroom.engines import Engine
from grader.classroom.layouts import LAYOUTS
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    Workers,
)
from grader.classroom.pages import write
from grader.classroom.results import alike, class_results
from grader.classroom.store import (
    Store,
    StoredSubmission,
    StoreError,
    course_mark,
    fingerprint,
)
from grader.core.errors import RequestError
from grader.core.verdict import ExerciseVerdict, Status
from grader.report.summary import visible

if TYPE_CHECKING:
    from grader.exercise.catalogue import Catalogue
    from grader.exercise.declaration import Exercise

__all__ = ["GradingProgress", "Options", "grade", "grade_class"]


# Grading a class: what arrived, judged by an engine, kept in a store. -------------

#: The fault of a submission that has not been judged, in case the grading is stopped before.
_WAITING = "not judged yet; grade again"


@dataclass(frozen=True)
class Options:
    """The options of grading a class.

    Attributes:
        limits: limits on the time and memory of one submission, and whether it is in a sandbox.
        seed: a number that all inputs are drawn from; without it they are drawn from a
            secret that the store keeps.
        force: whether to judge again what has not changed.
        layout: the name of the layout of the submissions, if the instructor has said it.
    """

    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    force: bool = False
    layout: str | None = None


@dataclass
class GradingProgress:
    """The progress of a grading, in numbers.

    Attributes:
        submissions: number of submissions.
        done: number of them that are judged, or need not be.
        kept: number of these that had been judged before.
        empty: number of these without a file to judge.
        exercises: number of verdicts found in this grading.
        lost: number of submissions that the grader failed at.
        workers: number of submissions that can be judged at a time, where that changes.
    """

    submissions: int = 0
    done: int = 0
    kept: int = 0
    empty: int = 0
    exercises: int = 0
    lost: int = 0
    workers: int | None = None

    @property
    def judged(self) -> int:
        """Number of submissions that were judged in this grading."""
        return self.done - self.kept - self.empty


def grade_class(
    source: Path,
    arrivals: Arrivals,
    store: Store,
    engine: Engine,
    catalogue: Catalogue[Exercise],
    options: Options,
    observe: Callable[[GradingProgress, ExerciseVerdict | None], None],
) -> GradingProgress:
    """Judge every submission that is new or has changed.

    Args:
        source: the path of the submissions.
        arrivals: what it holds.
        store: the store of the results.
        engine: the engine that has submissions judged.
        catalogue: the exercises of the course.
        options: limits, seed, and whether to judge everything again.
        observe: a function that is called after every step, with the verdict if one was found.

    Raises:
        StoreError: the results cannot be written.
    """
    return _Session(source, store, catalogue, options, observe).run(arrivals, engine)


def hidden_folders(source: Path, out: Path) -> tuple[Path, Path]:
    """Return the folders that no sandbox may show: those of the submissions and of the results."""
    return source.resolve(), out.resolve()


class _Session:
    """One grading of a class: what has arrived, and how far its judging is."""

    def __init__(
        self,
        source: Path,
        store: Store,
        catalogue: Catalogue[Exercise],
        options: Options,
        observe: Callable[[GradingProgress, ExerciseVerdict | None], None],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._options = options
        self._observe = observe
        self._source = str(source.resolve())
        self._seed = store.seed() if options.seed is None else options.seed
        self._course = course_mark(catalogue)
        self._hidden = tuple(map(str, hidden_folders(source, store.path.parent)))
        self._submissions: dict[str, tuple[int, StudentSubmission]] = {}
        self._read: dict[str, ReadFiles] = {}
        self._progress = GradingProgress()

    def run(self, arrivals: Arrivals, engine: Engine) -> GradingProgress:
        """Judge all submissions, and write every event to the store as it comes."""
        self._submissions = {one.key: (i, one) for i, one in enumerate(arrivals.submissions)}
        self._progress.submissions = len(self._submissions)
        self._store.course = tuple((e.name, e.chapter, e.points) for e in self._catalogue.values())
        self._store.keep_only(set(self._submissions))
        # every student has a row, even if the grading is stopped
        for key in self._submissions.keys() - {entry.key for entry in self._store.entries()}:
            self._note(key, (), (), {}, _WAITING)
        self._observe(self._progress, None)
        for event in engine.run(self._requests()):
            verdict = None
            if isinstance(event, SubmissionPlanned):
                self._note(event.key, event.exercises, event.notes, event.prints)
            elif isinstance(event, ExerciseJudged):
                safe = self._options.limits.sandbox
                self._store.save(event.key, event.fingerprint, event.verdict, safe)
                self._progress.exercises += 1
                verdict = event.verdict
            elif isinstance(event, SubmissionLost):
                self._lose(event)
            elif isinstance(event, Workers):
                self._progress.workers = event.count
            if isinstance(event, (SubmissionJudged, SubmissionLost)):
                self._progress.done += 1
            self._observe(self._progress, verdict)
        return self._progress

    def _requests(self) -> Iterator[GradingRequest]:
        """Yield a request for each submission that has to be judged; note the others."""
        entries = {entry.key: entry for entry in self._store.entries()}
        for key, (_, submission) in self._submissions.items():
            read = submission.read()
            self._read[key] = replace(read, contents=())  # the contents of a class are too much
            digest, seed = read.digest, self._seed
            if not submission.files:
                self._note(key, (), (), {})
                self._progress.empty += 1
                self._skip()
                continue
            known = {} if self._options.force else self._store.known(key)
            entry = entries.get(key)
            if entry is not None and self._is_done(entry, digest, seed, known):
                self._note(key, tuple(entry.exercises), tuple(entry.found), entry.prints)
                self._progress.kept += 1
                self._skip()
                continue
            yield GradingRequest(
                key,
                read.contents,
                digest,
                seed,
                self._options.limits,
                known,
                self._hidden,
            )

    def _is_done(
        self, entry: StoredSubmission, digest: str, seed: int, known: dict[str, str]
    ) -> bool:
        """Return whether judging a submission again would come to the same verdicts."""
        if entry.digest != digest or entry.fault or entry.course != self._course:
            return False
        limits = self._options.limits.key()
        return all(
            known.get(name) == fingerprint(self._catalogue[name], digest, seed, limits)
            for name in entry.exercises
        )

    def _skip(self) -> None:
        self._progress.done += 1
        self._observe(self._progress, None)

    def _note(
        self,
        key: str,
        exercises: tuple[str, ...],
        found: tuple[str, ...],
        prints: dict[str, list[int]],
        fault: str = "",
    ) -> None:
        position, submission = self._submissions[key]
        read = self._read.get(key)
        self._store.note(
            position,
            StoredSubmission(
                key=key,
                student=submission.student,
                digest="" if read is None else read.digest,
                exercises=list(exercises),
                problems=[*submission.problems, *(() if read is None else read.problems)],
                found=list(found),
                email=submission.email,
                number=submission.sid,
                fault=fault,
                prints=prints,
                course=self._course,
                source=self._source,
                layout=self._options.layout,
                files=[] if read is None else list(read.hashes),
                limits=self._options.limits.key(),
            ),
        )

    def _lose(self, event: SubmissionLost) -> None:
        """Note that the grader failed at a submission, and keep what it had found."""
        entry = next((one for one in self._store.entries() if one.key == event.key), None)
        exercises = tuple(entry.exercises) if entry is not None else ()
        found = tuple(entry.found) if entry is not None else ()
        prints = entry.prints if entry is not None else {}
        self._note(event.key, exercises, found, prints, event.reason)
        self._progress.lost += 1


# The command: signals, temporary files, and what the terminal shows. --------------

_UNSAFE = (
    "no sandbox: the submissions run as you, on this machine, and can read, change and send"
    " whatever you can"
)


def grade(
    source: Path,
    out: Path,
    make_engine: Callable[[int], Engine],
    catalogue: Callable[[], Catalogue[Exercise]],
    options: Options,
    as_json: bool = False,
) -> int:
    """Grade a class and write the results.

    Args:
        source: the path of the submissions.
        out: the folder of the results.
        make_engine: a function that makes the engine for a number of submissions.
        catalogue: a function that returns the exercises of the course.  It may import torch,
            so it is called when the engine has started.
        options: limits, seed, and whether to judge everything again.
        as_json: whether to print the summary as one JSON object.

    Returns:
        The exit status: 0, or 1 if the grader failed at something, or 128 + N if
        signal N has stopped it.

    Raises:
        RequestError: the source holds no submissions, or there can be no sandbox here.
        StoreError: the results cannot be written.
    """
    console = Console(stderr=True, highlight=False)
    try:
        with _Signals() as signals, _workplace(signals) as place:
            arrivals = place.enter_context(collect(source, layout=options.layout))
            if not arrivals.submissions:
                raise RequestError(f"{source} holds no submissions: no .py file and no notebook")
            if options.limits.sandbox:
                _try_sandbox()
            else:
                console.print(Text(f"warning: {_UNSAFE}", style="bold red"))
            # an exception within an import may be lost, as in the callback of a module's lock
            signals.hold()
            engine = place.enter_context(contextlib.closing(make_engine(len(arrivals.submissions))))
            exercises = catalogue()
            signals.let_go()
            with Store(out) as store:
                console.print(Text(_arrived(arrivals)))
                for problem in arrivals.problems:
                    console.print(Text(f"note: {_plain(problem)}", style="yellow"))
                bar = _Bar(console)
                try:
                    with bar:
                        step = grade_class(
                            source, arrivals, store, engine, exercises, options, bar.observe
                        )
                finally:
                    # if the grading was stopped, of what has been found so far
                    _report(store, out)
                summary = _Summary(store, step, arrivals)
    except _Stop as stop:
        console.print("grader: stopped; every verdict so far is stored: the same command goes on")
        return 128 + stop.number
    if as_json:
        print(json.dumps(summary.as_dict(), indent=1))
    else:
        summary.show(Console(highlight=False), out)
    return 1 if summary.errors else 0


class _Stop(KeyboardInterrupt):
    """A signal that asks for the end of the grading."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Signals:
    """Signal handlers that raise :class:`_Stop`, except while signals are held back.

    A process that is ended by a signal itself leaves its temporary files, and its workers
    are killed before they have removed theirs.
    """

    def __init__(self) -> None:
        self._held = False
        self._came: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # a signal that is ignored, as under nohup, stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._came = number
        if not self._held:
            raise _Stop(number)

    def hold(self) -> None:
        """From now on, remember a signal instead of raising it."""
        self._held = True

    def let_go(self) -> None:
        """Raise a signal that has come so far, and from now on each that comes.

        Raises:
            _Stop: a signal came while signals were held back, or its exception was lost.
        """
        self._held = False
        if self._came is not None:
            raise _Stop(self._came)


@contextlib.contextmanager
def _workplace(signals: _Signals) -> Iterator[contextlib.ExitStack]:
    """Provide one folder for all temporary files, those of workers included.

    A worker that had to be killed has removed no files.  So the folder is made before
    anything else, and removed when all that was entered on the stack has ended.
    """
    with contextlib.ExitStack() as stack:
        signals.hold()
        stack.enter_context(_temporary_folder())
        try:
            signals.let_go()
            yield stack
        except Exception:
            # Ctrl-C also ends a process that has just been forked for the pool of sandboxes
            signals.let_go()
            raise
        finally:
            signals.hold()
    signals.let_go()


@contextlib.contextmanager
def _temporary_folder() -> Iterator[None]:
    """Let this process and those that it starts keep their temporary files in one folder."""
    variable, before = os.environ.get("TMPDIR"), tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="grader-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before
            if variable is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = variable


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


def _arrived(arrivals: Arrivals) -> str:
    """Return how many students were found, and by which layouts."""
    count = len(arrivals.submissions)
    students = f"{count} student{'s' * (count != 1)}"
    if len(arrivals.layouts) == 1:
        (name,) = arrivals.layouts
        return f"{students}, laid out as {name} ({LAYOUTS[name].title})"
    found = [f"{n} by {name} ({LAYOUTS[name].title})" for name, n in arrivals.layouts.items()]
    return f"{students}: {', '.join(found)}"


def _try_sandbox() -> None:
    """Make one sandbox, so that a machine without one fails before the first student."""
    from grader.launch.sandbox import SandboxPool

    try:
        SandboxPool.rehearse()
    except RequestError as error:
        raise RequestError(
            f"{error}; see `python -m grader doctor`, or grade without: --sandbox none"
        ) from None


class _Bar:
    """The progress bar on the terminal, with the rate and the time that is left."""

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

    def observe(self, step: GradingProgress, verdict: ExerciseVerdict | None) -> None:
        """Show the progress after a step."""
        assert self._task is not None
        (task,) = self._progress.tasks
        judged, seconds = step.judged, task.elapsed or 0.0
        rate = f"{60 * judged / seconds:.0f}/min" if judged and seconds > 1 else ""
        what = "waiting for a worker" if step.workers == 0 else "submissions"
        self._progress.update(
            self._task, description=what, total=step.submissions, completed=step.done, rate=rate
        )


class _Summary:
    """The result of a grading in numbers, with the grader's own failures."""

    def __init__(self, store: Store, step: GradingProgress, arrivals: Arrivals) -> None:
        self.step = step
        self.layouts = arrivals.layouts
        self.notes = arrivals.problems
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
        """Return the object that ``--json`` prints."""
        return {
            "submissions": self.step.submissions,
            "judged": self.step.judged,
            "kept": self.step.kept,
            "verdicts": dict(self.words.most_common()),
            "nothing_handed_in": self.nothing,
            "errors": self.errors,
            "layouts": self.layouts,
            "notes": list(self.notes),
        }

    def show(self, console: Console, out: Path) -> None:
        """Print it for people."""
        step = self.step
        console.print(
            f"{step.submissions} submission{'s' * (step.submissions != 1)}: {step.judged} judged,"
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
    """Return a text in one line, without characters that a terminal would interpret."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
