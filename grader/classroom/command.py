"""``python -m grader grade``: grade a class, show how far it is, and write the results."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs
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

from grader.classroom.arrivals import Arrivals, LatenessOf, ReadFiles, StudentSubmission, collect
from grader.classroom.assignment import (
    Assignment,
    Lateness,
    LimitsTable,
    RequestedExercise,
    StatedAssignment,
)
from grader.classroom.decisions import extended, find_student, names_of, nobody
from grader.classroom.engines import Engine
from grader.classroom.layouts import LAYOUTS, StudentFiles
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    Workers,
    in_words,
    require_long,
)
from grader.classroom.names import few, first_last, folded
from grader.classroom.names import key as key_of
from grader.classroom.pages import write
from grader.classroom.people import class_of, complete, widened
from grader.classroom.results import ClassResults, alike, class_results, doubts
from grader.classroom.store import (
    Store,
    StoredSubmission,
    StoreError,
    course_mark,
    fingerprint,
    seed_of_inputs,
)
from grader.exercise.verdict import ExerciseVerdict, Status
from headcount.core.errors import RequestError
from headcount.core.resource_limits import DEFAULTS
from headcount.report import visible

if TYPE_CHECKING:
    from grader.exercise.catalogue import Catalogue
    from grader.exercise.declaration import Exercise

#: What happens in a grading, for ``--log``.
_log = logging.getLogger(__name__)


# Grading a class: what arrived, judged by an engine, kept in a store. -------------


@dataclass(frozen=True)
class Options:
    """The options of grading a class.

    Attributes:
        limits: limits on the time and memory of one submission, and whether it is in a sandbox.
        seed: a number that all inputs are drawn from, together with the files of a hand-in;
            without it they are drawn from a secret that the store keeps.
        force: whether to judge again what has not changed.
        layout: the name of the layout of the submissions, if the instructor has said it.
        stated: what an assignment.toml says, if there is one.
        title: the title of the assignment, if it is said apart.
        exercises: what is due, if it is said apart.
        add: whether rows of students who are not among the submissions stay.
        only: the students to grade, by name, number, address or key; everybody, if empty.
        drop: the students whose rows are to be deleted, named in the same way.
        command_limits: limits of the command line, which count before the assignment's.
        viva: the number of questions to draw for each student, and what to draw them from.
    """

    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    force: bool = False
    layout: str | None = None
    stated: StatedAssignment | None = None
    title: str = ""
    exercises: tuple[RequestedExercise, ...] = ()
    add: bool = False
    only: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    command_limits: LimitsTable = field(default_factory=LimitsTable)
    viva: tuple[int, int] = (0, 0)

    def for_assignment(self, assignment: Assignment) -> Options:
        """Return the options with the limits and the seed that hold for an assignment.

        Raises:
            RequestError: the seed is too short for strangers' answers.
        """
        given, stated = self.command_limits, assignment.limits
        seconds = given.seconds or stated.seconds or DEFAULTS.call
        limits = Limits(
            call=seconds,
            exercise=DEFAULTS.exercise * max(1.0, seconds / DEFAULTS.call),
            submission=given.timeout or stated.timeout or DEFAULTS.submission,
            memory=(given.memory or stated.memory or DEFAULTS.submission_memory >> 20) << 20,
            sandbox=self.limits.sandbox,
        )
        seed = assignment.seed if self.seed is None else self.seed
        if seed is not None and limits.sandbox:
            require_long(seed)
        return replace(self, limits=limits, seed=seed)

    def assignment(self, out: Path, stored: Assignment) -> Assignment:
        """Return what is due: what was stated before stays until something else is stated.

        Args:
            out: the folder of results, for the message.
            stored: what was stated in the last grading into it.

        Raises:
            RequestError: the folder holds the results of another assignment.
        """
        now = stored if self.stated is None else self.stated.assignment
        if self.title:
            now = replace(now, title=self.title)
        elif stored.title and now.title != stored.title:
            raise RequestError(
                f"{out} holds the results of {stored.title!r}, and this is {now.title!r}; name"
                f" another folder, or, if it is the same assignment, add --title {now.title!r}"
            )
        return replace(now, exercises=self.exercises) if self.exercises else now


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
    submissions: Sequence[StudentSubmission],
    store: Store,
    engine: Engine,
    catalogue: Catalogue[Exercise],
    options: Options,
    observe: Callable[[GradingProgress, ExerciseVerdict | None], None],
) -> GradingProgress:
    """Judge every submission that is new or has changed.

    Args:
        source: the path of the submissions.
        submissions: those that are graded; the store may hold more rows, which stay.
        store: the store of the results, which knows the assignment.
        engine: the engine that has submissions judged.
        catalogue: the exercises of the course.
        options: limits, seed, and whether to judge everything again.
        observe: a function that is called after every step, with the verdict if one was found.

    Raises:
        StoreError: the results cannot be written.
    """
    return _Session(source, store, catalogue, options, observe).run(submissions, engine)


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
        self._secret = store.secret() if options.seed is None else options.seed
        self._due = tuple(asked.name for asked in store.assignment.exercises)
        self._course = course_mark(catalogue, self._due)
        self._hidden = tuple(map(str, hidden_folders(source, store.path.parent)))
        self._submissions: dict[str, StudentSubmission] = {}
        #: their files as they were read last, without the contents, which are too much to hold
        self._read: dict[str, ReadFiles] = {}
        #: the submissions in the store, as they are now
        self._entries: dict[str, StoredSubmission] = {}
        #: the same before they were planned, and the exercises that had an answer then
        self._before: dict[str, StoredSubmission] = {}
        self._answered: dict[str, set[str]] = {}
        #: what is known of each that has to be judged
        self._known: dict[str, dict[str, str]] = {}
        self._progress = GradingProgress()

    def run(self, submissions: Sequence[StudentSubmission], engine: Engine) -> GradingProgress:
        """Judge all submissions, and write every event to the store as it comes."""
        self._submissions = {one.key: one for one in submissions}
        self._progress.submissions = len(self._submissions)
        self._store.course = tuple((e.name, e.chapter, e.points) for e in self._catalogue.values())
        self._entries = {entry.key: entry for entry in self._store.entries()}
        self._look_through()
        rows = sorted(
            self._entries.values(), key=lambda e: (e.student.casefold(), e.student, e.key)
        )
        self._entries = {entry.key: entry for entry in rows}
        self._store.arrange(self._entries)
        self._observe(self._progress, None)
        for event in engine.run(self._requests()):
            _log.info("%s", in_words(event))
            verdict = None
            if isinstance(event, SubmissionPlanned):
                self._plan(event)
            elif isinstance(event, ExerciseJudged):
                self._save(event)
                self._progress.exercises += 1
                verdict = event.verdict
            elif isinstance(event, SubmissionJudged):
                self._write(structs.replace(self._entries[event.key], pending=False))
            elif isinstance(event, SubmissionLost):
                self._lose(event)
            elif isinstance(event, Workers):
                self._progress.workers = event.count
            if isinstance(event, (SubmissionJudged, SubmissionLost)):
                self._progress.done += 1
            self._observe(self._progress, verdict)
        return self._progress

    def _look_through(self) -> None:
        """Give every student a row, which says if it still has to be judged.

        So a grading that is stopped leaves nobody out, and no verdict that looks like one on
        files that came later.
        """
        for key, submission in self._submissions.items():
            self._read[key] = replace(submission.read(), contents=())
            entry = self._entries.get(key)
            known = {} if self._options.force else self._store.known(key)
            if not submission.files:
                self._note(key)
                self._progress.empty += 1
                self._progress.done += 1
            elif entry is not None and self._is_done(entry, self._read[key].digest, known):
                self._note(key, entry)
                self._progress.kept += 1
                self._progress.done += 1
            else:
                self._known[key] = known
                if entry is None:
                    self._note(key, pending=True)
                else:
                    self._write(structs.replace(entry, fault="", pending=True))

    def _requests(self) -> Iterator[GradingRequest]:
        """Yield a request for each submission that has to be judged."""
        for key, known in self._known.items():
            read = self._submissions[key].read()
            self._read[key] = replace(read, contents=())
            _log.info("%s is to be judged, and %d of its verdicts are known", key, len(known))
            yield GradingRequest(
                key,
                read.contents,
                read.digest,
                seed_of_inputs(self._secret, read.digest),
                self._options.limits,
                known,
                self._hidden,
                self._due,
            )

    def _is_done(self, entry: StoredSubmission, digest: str, known: dict[str, str]) -> bool:
        """Return whether judging a submission again would come to the same verdicts."""
        if entry.digest != digest or entry.fault or entry.course != self._course or entry.pending:
            return False
        limits, seed = self._options.limits.key(), seed_of_inputs(self._secret, digest)
        return all(
            known.get(name) == fingerprint(self._catalogue[name], digest, seed, limits)
            for name in entry.exercises
            if name not in entry.kept
        )

    def _plan(self, event: SubmissionPlanned) -> None:
        """Note what is judged of a submission, and of what was judged before what stays."""
        before = self._before[event.key] = self._entries[event.key]
        judged = self._store.verdicts(event.key)
        self._answered[event.key] = {n for n, one in judged.items() if not one.nothing_done}
        due = self._due or tuple(self._catalogue)
        left = [name for name in due if name in judged and name not in event.exercises]
        notes = list(event.notes)
        if left and self._options.add:
            notes.append(f"kept from what was handed in before: {', '.join(left)}")
        elif left:
            notes.append(f"judged before, and not in these files: {', '.join(left)}")
        kept = {n: before.kept.get(n, before.source) for n in left if self._options.add}
        self._note(
            event.key,
            exercises=[name for name in self._catalogue if name in {*event.exercises, *kept}],
            found=notes,
            prints={n: prints for n, prints in before.prints.items() if n in kept} | event.prints,
            sources=list(event.files),
            kept=kept,
            pending=True,
        )

    def _save(self, event: ExerciseJudged) -> None:
        """Keep a verdict; where work is added, an empty answer takes the place of none."""
        name, entry = event.verdict.name, self._entries[event.key]
        if self._options.add and event.verdict.nothing_done and name in self._answered[event.key]:
            before = self._before[event.key]
            kept = entry.kept | {name: before.kept.get(name, before.source)}
            found = [*entry.found, f"kept from what was handed in before: {name}"]
            self._note(event.key, entry, kept=kept, found=found, pending=True)
            return
        self._store.save(event.key, event.fingerprint, event.verdict, self._options.limits.sandbox)

    def _note(self, key: str, judged: StoredSubmission | None = None, **changes: Any) -> None:
        """Write how a submission has arrived, with what is known of its judging."""
        submission, read = self._submissions[key], self._read[key]
        entry = structs.replace(
            judged or StoredSubmission(key, "", "", []),
            student=submission.student,
            digest=read.digest,
            problems=[*submission.problems, *read.problems],
            email=submission.email,
            number=submission.number,
            course=self._course,
            platform=submission.platform,
            numbers=list(submission.numbers),
            upload=submission.upload,
            only_in_roster=submission.only_in_roster,
            source=self._source,
            layout=self._options.layout,
            files=list(read.hashes),
            limits=self._options.limits.key(),
            **{"fault": "", "pending": False, **changes},
        )
        times, late = [submission.time_of(entry.sources)], list(submission.late)
        if entry.kept:  # with what counts of it, also its time
            before = self._entries[key]
            late = list(dict.fromkeys((*before.late, *late)))
            times += [datetime.fromisoformat(before.handed_in)] if before.handed_in else []
        aware = self._store.assignment.aware
        at = max(filter(None, times), key=lambda at: aware(at).timestamp(), default=None)
        handed_in = at.isoformat() if at else ""
        self._write(structs.replace(entry, handed_in=handed_in, late=late))

    def _write(self, entry: StoredSubmission) -> None:
        """Write a row in its place; a new one goes to the end until the class is arranged."""
        self._entries[entry.key] = entry
        self._store.note(list(self._entries).index(entry.key), entry)

    def _lose(self, event: SubmissionLost) -> None:
        """Note that the grader failed at a submission, and keep what it had found."""
        entry = self._entries[event.key]
        self._note(event.key, entry, fault=event.reason)
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
        with Signals() as signals, temporary_folder(signals) as place:
            _refuse_out_inside(source, out)
            assignment = options.assignment(out, _stored_assignment(out))
            options = options.for_assignment(assignment)
            if options.stated is not None:
                stated = options.stated
                assignment = replace(assignment, roster=class_of(stated.people, stated.roster))
            assignment = widened(assignment)
            arrivals = place.enter_context(
                collect(
                    source, layout=options.layout, lateness_of=lateness_of_arrivals(assignment, out)
                )
            )
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
                before = class_results(store)
                rows, remarks = _submissions_to_grade(source, arrivals, assignment, store, options)
                store.assignment = assignment
                _log.info("%s into %s: %s", source, out, _arrived(arrivals))
                console.print(Text(_arrived(arrivals)))
                for remark in (
                    *arrivals.problems,
                    *remarks,
                    *(options.stated.remarks if options.stated else ()),
                    *_times_of_nobody(assignment, store, rows),
                ):
                    _log.info("note: %s", remark)
                    console.print(Text(f"note: {_plain(remark)}", style="yellow"))
                bar = _Bar(console)
                try:
                    with bar:
                        step = grade_class(
                            source, rows, store, engine, exercises, options, bar.observe
                        )
                finally:
                    # if the grading was stopped, of what has been found so far
                    report(store, out)
                if options.viva[0] or (out / "viva.html").is_file():
                    console.print(Text(_report_viva(store, out, exercises, *options.viva)))
                summary = _Summary(store, step, arrivals, before)
    except Stop as stop:
        console.print("grader: stopped; every verdict so far is stored: the same command goes on")
        return 128 + stop.number
    if as_json:
        print(json.dumps(summary.as_dict(), indent=1))
    else:
        summary.show(Console(highlight=False), out)
    return 1 if summary.errors else 0


class Stop(KeyboardInterrupt):
    """A signal that asks for the end of the grading."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Signals:
    """Signal handlers that raise :class:`Stop`, except while signals are held back.

    A process that is ended by a signal itself leaves its temporary files, and its workers
    are killed before they have removed theirs.
    """

    def __init__(self) -> None:
        self._held = False
        self._came: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
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
            raise Stop(number)

    def hold(self) -> None:
        """From now on, remember a signal instead of raising it."""
        self._held = True

    def let_go(self) -> None:
        """Raise a signal that has come so far, and from now on each that comes.

        Raises:
            Stop: a signal came while signals were held back, or its exception was lost.
        """
        self._held = False
        if self._came is not None:
            raise Stop(self._came)


@contextlib.contextmanager
def workplace() -> Iterator[contextlib.ExitStack]:
    """Provide a folder for temporary files, and turn signals into exceptions.

    Raises:
        KeyboardInterrupt: a signal has asked for the end.
    """
    with Signals() as signals, temporary_folder(signals) as place:
        yield place


@contextlib.contextmanager
def temporary_folder(signals: Signals) -> Iterator[contextlib.ExitStack]:
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


def _refuse_out_inside(source: Path, out: Path) -> None:
    """Refuse a folder of results that would be graded as a student's the next time."""
    inside, around = out.resolve(), source.resolve()
    if source.is_dir() and (inside == around or around in inside.parents):
        raise RequestError(
            f"{out} is in {source}, where the results would be taken for a student; name a folder"
            " beside it"
        )


def _stored_assignment(out: Path) -> Assignment:
    """Return what was stated in the last grading into a folder, if there was one."""
    if not (out / "grades.sqlite").is_file():
        return Assignment()
    with Store(out, readonly=True) as store:
        return store.assignment


def lateness_of_arrivals(assignment: Assignment, out: Path) -> LatenessOf | None:
    """Return the function that tells how late attempts are, if that makes a difference.

    Args:
        assignment: what was stated.
        out: the folder of the results, in which extensions may have been decided by hand.
    """
    if (out / "grades.sqlite").is_file():
        with Store(out, readonly=True) as store:
            assignment = extended(assignment, store.decisions.all(), store.entries())
    if assignment.due is None or assignment.attempts == "newest":
        return None

    def lateness_of(student: StudentFiles, at: datetime) -> Lateness | None:
        of_decisions = key_of(student.identity, student.student)
        due = assignment.due_for(of_decisions, student.student, student.sid, student.email)
        return assignment.lateness(due, at, False)

    return lateness_of


def _submissions_to_grade(
    source: Path, arrivals: Arrivals, assignment: Assignment, store: Store, options: Options
) -> tuple[list[StudentSubmission], list[str]]:
    """Return the submissions to grade, and delete the rows that the instructor has named.

    Raises:
        RequestError: a student who is named does not exist, or a row would be lost that nobody
            has named.
    """
    entries = {entry.key: entry for entry in store.entries()}
    dropped = {
        _named(name, list(entries.values()), f"results of {store.path.parent}").key
        for name in options.drop
    }
    stays = {key: entry for key, entry in entries.items() if key not in dropped}
    rows = list(arrivals.submissions)
    remarks: list[str] = []
    if assignment.roster:
        rows, remarks = complete(assignment.roster, rows, list(stays.values()))
    if options.only:
        rows = [_named(name, rows, str(source)) for name in options.only]
        remarks = []
    # where a student's files are gone, the work that was graded would be lost with them
    rows = [row for row in rows if row.files or not (row.key in stays and stays[row.key].exercises)]
    keys = {row.key for row in rows}
    lost = [entry.student for key, entry in stays.items() if key not in keys]
    if lost and not (options.add or options.only):
        raise RequestError(
            f"{store.path.parent} has results of students of whom nothing is in {source}:"
            f" {few(lost)}. To keep them and add what is there: --add. To delete the row of a"
            " student who has left: --drop NAME, for each. For another assignment, name another"
            " folder"
        )
    store.keep_only(keys | stays.keys())
    return rows, remarks


_Row = TypeVar("_Row", StoredSubmission, StudentSubmission)


def _named(reference: str, students: Sequence[_Row], where: str) -> _Row:
    """Return the one student whom a key, number, address or name means."""
    found = find_student(reference, students)
    if found is None:
        raise RequestError(nobody(reference, students, where))
    return found


def _times_of_nobody(
    assignment: Assignment, store: Store, rows: Sequence[StudentSubmission]
) -> list[str]:
    """Return a sentence for each time in the assignment that is of no student here."""
    known = [*map(names_of, rows), *map(names_of, store.entries())]
    forms = {form(one) for of in known for one in of if one for form in (folded, first_last)}
    return [
        f"[{table}] has a time for {who!r}, and there is no such student here"
        for table, times in (
            ("extensions", assignment.extensions),
            ("handed_in", assignment.handed_in),
        )
        for who in times
        if not {folded(who), first_last(who)} & forms
    ]


def report(store: Store, out: Path) -> None:
    """Write every page and table."""
    entries = store.entries()
    if not entries:
        return
    pairs = alike({entry.key: entry.prints for entry in entries})
    with _writing(out):
        write(class_results(store), out, pairs)


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Raise what keeps a page from being written as :class:`StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the reports cannot be written to {error.filename or out}: {error.strerror};"
            " every verdict is stored: mend that and grade again"
        ) from None


def _report_viva(
    store: Store, out: Path, exercises: Catalogue[Exercise], count: int, seed: int
) -> str:
    """Draw everybody's questions, write the pages, and return where they are."""
    from grader.classroom.viva import write_viva  # it runs solutions, which needs torch

    if not count:
        return f"note: {out}/viva.html is of an earlier grading; --viva N draws questions anew"
    with _writing(out):
        write_viva(class_results(store), out, exercises, count, seed)
    return f"questions with answers, for you: {out}/viva.html; for each student: {out}/viva/"


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
    from grader.sandbox.sandboxes import SandboxPool

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


def fallen(before: ClassResults, now: ClassResults) -> Iterator[str]:
    """Yield a sentence for each student with fewer points or verdicts than before."""
    rows = {row.key: row for row in before.rows}
    for row in now.rows:
        was = rows.get(row.key, row)
        gone = [name for name in was.by_name if name not in {*row.by_name, *row.waiting}]
        parts = [f"{was.score:g} → {row.score:g} points"]
        parts *= row.score < was.score and not now.ungraded(row)
        parts += [f"no verdict any more on {', '.join(gone)}"] * bool(gone)
        if parts:
            yield f"{row.student}: {'; '.join(parts)}"


class _Summary:
    """The result of a grading in numbers, with the grader's own failures."""

    def __init__(
        self, store: Store, step: GradingProgress, arrivals: Arrivals, before: ClassResults
    ) -> None:
        self.step = step
        self.layouts = arrivals.layouts
        self.notes = arrivals.problems
        self.words: Counter[str] = Counter()
        self.errors: list[str] = []
        self.nothing: list[str] = []
        results = class_results(store)
        self.results = results
        self.guesses = doubts(results)
        self.fallen = list(fallen(before, results))
        self.late = {row.student: row.lateness.words for row in results.rows if row.lateness}
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
            "title": self.results.title,
            "max_score": self.results.points,
            "guessed_to_be_due": self.guesses,
            "late": self.late,
            "fallen": self.fallen,
            "nothing_handed_in": self.nothing,
            "errors": self.errors,
            "layouts": self.layouts,
            "notes": list(self.notes),
        }

    def _about_assignment(self) -> str:
        """Return the title, the number of exercises, their points, and the deadline."""
        results = self.results
        count = len(results.asked)
        text = (
            f"{results.title}: {count} exercise{'s' * (count != 1)},"
            f" {results.points:g} point{'s' * (results.points != 1)}"
        )
        if results.assignment.due is not None:
            zone = results.assignment.time_zone or f"{results.assignment.due:%Z}"
            text += f", due {results.assignment.due:%Y-%m-%d %H:%M} {zone}"
        return text

    def show(self, console: Console, out: Path) -> None:
        """Print it for people."""
        step = self.step
        console.print(
            f"{step.submissions} submission{'s' * (step.submissions != 1)}: {step.judged} judged,"
            f" {step.kept} unchanged since they were judged"
            + f", {step.empty} without a file to grade"
            * bool(step.empty)
        )
        table = Table.grid(padding=(0, 2))
        for word, count in self.words.most_common():
            table.add_row(Text(str(count), justify="right"), Text(word))
        console.print(table)
        console.print(Text(_plain(self._about_assignment())))
        for guess in self.guesses:
            console.print(Text(f"guessed to be due: {_plain(guess)}", style="yellow"))
        for student, words in self.late.items():
            console.print(Text(f"{_plain(student)}: {words}"))
        for line in self.fallen:
            console.print(Text(f"less than before: {_plain(line)}", style="yellow"))
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
