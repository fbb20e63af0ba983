"""A learner's progress: which checks count, where they are kept, and what they add up to.

A check never fails for it, and waits for it for two seconds at most: an error with the file is
kept until the user asks for the progress itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import msgspec

from grader.errors import ProgressFileError
from grader.exercise.catalogue import Catalogue, IndexedExercise
from grader.exercise.verdict import ExerciseVerdict, Status
from grader.files import locked, replace_file
from headcount.launch.backends import entry_of

__all__ = [
    "CourseProgress",
    "ExerciseProgress",
    "ExerciseRecord",
    "ProgressFile",
    "location",
    "note",
    "origin_of",
    "overview",
    "working_folder",
]


# The progress file. ---------------------------------------------------------------
#
# The file may be deleted at any time; then the course begins anew.  It is replaced as a whole, so
# that a reader never sees half of it, and under a lock, so that two kernels do not lose each
# other's checks.  The lock is :func:`grader.files.locked`; the package ``filelock``
# raises an error on a file system without it, or leaves a file behind that locks for ever.

#: The version of the format, which grows whenever an older grader would misread the file.
VERSION = 1

#: Largest size of the file in bytes; no course has so many exercises that it is larger.
LARGEST = 1 << 20

#: Errors of a file system without locks.  There, two kernels that end a check within the same
#: millisecond may lose one of the two, which is better than losing all.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})

_Amount = Annotated[float, msgspec.Meta(ge=0)]


class ExerciseRecord(msgspec.Struct, frozen=True):
    """The record of one exercise.

    Attributes:
        passed: whether any check has passed; a later failure does not change that.
        best: the best score so far.
        max_score: the exercise's points.
        checks: the number of checks.
        when: the time of the last check, in UTC.
        seconds: how long the last check took.
        last_passed: whether the last check passed.
        only_misses_point: whether the best score is half of the points, for right values that miss
            the point of the exercise.
    """

    passed: bool
    best: _Amount
    max_score: _Amount
    checks: Annotated[int, msgspec.Meta(ge=1)]
    when: Annotated[datetime, msgspec.Meta(tz=True)]
    seconds: _Amount
    last_passed: bool
    only_misses_point: bool = False


class _Header(msgspec.Struct):
    version: int


class _Contents(_Header):
    exercises: dict[str, ExerciseRecord]


class ProgressFile:
    """The file of a learner's progress.

    Args:
        path: the path of the file; it is made with its folder at the first entry.
    """

    def __init__(self, path: Path) -> None:
        # the target of a link: replacing the link itself would separate the two
        self.path = Path(os.path.realpath(path))

    def read(self) -> dict[str, ExerciseRecord]:
        """Return the records by exercise; none if there is no file.

        Raises:
            ProgressFileError: the file cannot be read or understood.
        """
        if not os.path.exists(self.path):
            return {}
        if not os.path.isfile(self.path):
            # it is never replaced, since it may be a folder, or /dev/null
            raise ProgressFileError(
                f"{self.path} is no file; set GRADER_PROGRESS to the path of a file, or to"
                " nothing to keep no progress"
            )
        try:
            with self.path.open("rb") as file:
                data = file.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise ValueError(f"it is larger than {LARGEST >> 20} MB")
            version = msgspec.json.decode(data, type=_Header).version
            if version <= VERSION:
                return msgspec.json.decode(data, type=_Contents).exercises
        except OSError as error:
            raise ProgressFileError(
                f"{self.path} cannot be read: {error.strerror}; allow reading it, or delete it"
                " to begin a new one"
            ) from None
        except ValueError as error:  # msgspec's errors are ValueErrors too
            raise ProgressFileError(
                f"{self.path} is damaged ({error}); delete it to begin a new one"
            ) from None
        raise ProgressFileError(
            f"{self.path} was written by a newer grader (format {version}, this one"
            f" knows {VERSION}) and is left as it is; update the course, or delete the"
            " file to begin a new one"
        )

    def add(self, verdicts: Iterable[ExerciseVerdict], when: datetime) -> dict[str, ExerciseRecord]:
        """Enter the verdicts of a check that ended at ``when``; return all records.

        Raises:
            ProgressFileError: the file cannot be read, understood or written.
        """
        self.read()  # a place that is no file, such as /dev/null, gets no lock beside it
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.path):
                records = self.read()
                for verdict in verdicts:
                    records[verdict.name] = _updated(records.get(verdict.name), verdict, when)
                data = msgspec.json.encode(_Contents(VERSION, records))
                replace_file(self.path, msgspec.json.format(data, indent=1) + b"\n")
        return records

    def rehearse(self) -> None:
        """Check whether the file could be written now, without a trace.

        Raises:
            ProgressFileError: it could not.
        """
        folder = next(folder for folder in self.path.parents if os.path.lexists(folder))
        with self._writing(), tempfile.TemporaryFile(dir=folder) as file:
            file.write(b" " * 4096)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ProgressFileError(
                f"{self.path} cannot be written: {error.strerror}; make room or allow writing"
                " there, or set GRADER_PROGRESS to a file elsewhere"
            ) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    # a file of its own, since the progress file is replaced
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(path.with_name(f"{path.name}.lock")))
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield


def _updated(
    record: ExerciseRecord | None, verdict: ExerciseVerdict, when: datetime
) -> ExerciseRecord:
    best: ExerciseRecord | ExerciseVerdict = verdict
    if record is not None and record.best > verdict.score:
        best = record
    return ExerciseRecord(
        passed=verdict.passed or (record is not None and record.passed),
        best=max(verdict.score, record.best if record else 0.0),
        max_score=verdict.max_score,
        checks=(record.checks if record else 0) + 1,
        when=when,
        seconds=verdict.seconds,
        last_passed=verdict.passed,
        only_misses_point=best.only_misses_point,
    )


# What it adds up to. --------------------------------------------------------------


@dataclass(frozen=True)
class ExerciseProgress:
    """A learner's progress with one exercise; ``entry`` is None before the first check."""

    exercise: IndexedExercise
    entry: ExerciseRecord | None

    @property
    def passed(self) -> bool:
        """Whether any check has passed."""
        return self.entry is not None and self.entry.passed

    @property
    def state(self) -> str:
        """How far the learner is: ``passed``, ``tried`` or ``untouched``."""
        return "untouched" if self.entry is None else "passed" if self.passed else "tried"


@dataclass(frozen=True)
class CourseProgress:
    """A learner's progress with the course.

    Attributes:
        file: the path of the file; None if progress is switched off.
        exercises: the progress with each exercise, in the order of the course; empty if the
            file cannot be read.
        unknown: exercises in the file that this course does not have.
        trouble: why the file cannot be read, or checks are not entered, each with the mend.
        notebooks: the folder of the learner's notebooks; None if it is not found.
    """

    file: Path | None
    exercises: tuple[ExerciseProgress, ...]
    unknown: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()
    notebooks: Path | None = None

    @property
    def next(self) -> IndexedExercise | None:
        """The first exercise that is not passed, from the one checked last on; None if all are.

        What was left out before that comes at the end: a learner may begin with any chapter.
        """
        checked = {one.entry.when: i for i, one in enumerate(self.exercises) if one.entry}
        here = checked[max(checked)] if checked else 0
        coming = (*self.exercises[here:], *self.exercises[:here])
        return next((one.exercise for one in coming if not one.passed), None)

    def notebook(self, chapter: str) -> Path | None:
        """Return a chapter's notebook, as a path from the working folder; None if it is away."""
        here = working_folder()
        if here is None or self.notebooks is None:
            return None
        path = self.notebooks / f"{chapter}.ipynb"
        return Path(os.path.relpath(path, here)) if path.is_file() else None

    @property
    def passed(self) -> int:
        """The number of exercises that are passed."""
        return sum(one.passed for one in self.exercises)

    def parts(self) -> dict[str, dict[str, list[ExerciseProgress]]]:
        """Return the progress with the exercises of each chapter, by part of the course."""
        found: dict[str, dict[str, list[ExerciseProgress]]] = {}
        for one in self.exercises:
            part, chapter = one.exercise.part, one.exercise.chapter
            found.setdefault(part, {}).setdefault(chapter, []).append(one)
        return found


def overview(catalogue: Catalogue[IndexedExercise]) -> CourseProgress:
    """Return the learner's progress; an error with the file is in it, and never raised."""
    path = location(catalogue)
    if path is None:
        return CourseProgress(None, ())
    file = ProgressFile(path)
    try:
        records = file.read()
    except ProgressFileError as error:
        return CourseProgress(file.path, (), trouble=(str(error),))
    trouble = tuple(_missed)
    try:
        file.rehearse()
    except ProgressFileError as error:
        trouble = (str(error),)
    root = _own_course(catalogue)
    return CourseProgress(
        file.path,
        _of_exercises(catalogue, records),
        tuple(name for name in records if name not in catalogue),
        trouble,
        None if root is None else root / "notebooks",
    )


def _of_exercises(
    catalogue: Catalogue[IndexedExercise], records: Mapping[str, ExerciseRecord]
) -> tuple[ExerciseProgress, ...]:
    return tuple(ExerciseProgress(one, records.get(name)) for name, one in catalogue.items())


# The location of the file. --------------------------------------------------------


def location(catalogue: Catalogue[IndexedExercise]) -> Path | None:
    """Return the path of the learner's progress file; None if progress is switched off.

    ``GRADER_PROGRESS`` names it, or nothing.  Otherwise the file is in the course that the learner
    works in: the one around the working folder, or else the one that this package is a part of.
    Without either, it is in the user's state folder.
    """
    chosen = os.environ.get("GRADER_PROGRESS")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    root = _own_course(catalogue)
    if root is not None:
        return root / ".grader" / "progress.json"
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "gather-round" / "progress.json"


def _own_course(catalogue: Catalogue[IndexedExercise]) -> Path | None:
    """Return the folder of the course that the learner works in, see :func:`location`."""
    here = working_folder()
    around = None if here is None else _course_around(here, catalogue)
    return around or _course_around(Path(os.path.abspath(__file__)).parent, catalogue)


def working_folder() -> Path | None:
    """Return the working folder, which for a kernel is its notebook's; None if it is gone."""
    try:
        return Path.cwd()
    except OSError:  # it has been deleted
        return None


def _course_around(place: Path, catalogue: Catalogue[IndexedExercise]) -> Path | None:
    """Return the innermost folder around a place whose ``notebooks`` are this course's."""
    chapters = [f"{chapter}.ipynb" for chapter in catalogue.chapters()]
    for folder in (place, *place.parents):
        notebooks = folder / "notebooks"
        if any(os.path.isfile(notebooks / name) for name in chapters):
            return folder
    return None


# Which checks count. ------------------------------------------------------------------

#: Seconds that a check waits for its entry, which normally takes 2 ms.
PATIENCE = 2.0

#: Folders of the course with answers that are not the learner's.
_NOT_THEIRS = frozenset({"solutions", "tests", "grader", "headcount"})

#: Why the last check of this process could not be entered; empty if it was entered.
_missed: list[str] = []


def origin_of(answer: Callable[..., Any] | str) -> Path | None:
    """Return where a live answer was written: its module's file, or its notebook's folder."""
    module = sys.modules.get(getattr(answer, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file) if file else working_folder()


def note(
    verdicts: Iterable[ExerciseVerdict],
    catalogue: Catalogue[IndexedExercise],
    origin: Path | None,
    sizes: Sequence[int] | None = None,
    backend: str = "gloo",
    file: bool = False,
) -> CourseProgress | None:
    """Enter a check of the learner's, if it counts and can be entered; return the progress then.

    Args:
        verdicts: the verdicts of the check.
        catalogue: the exercises of the course.
        origin: the file, or folder, that the answers come from.
        sizes: the numbers of ranks that were asked for, if any were.
        backend: what carried the messages.
        file: whether ``origin`` is a file that was named to be judged, which may be another
            person's work; a live answer is the learner's own, unless the course has brought it.
    """
    if not entry_of(backend).keeps_progress:
        return None
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        return None  # nbgrader judges a class's answers on the instructor's machine
    ended = datetime.now(timezone.utc)
    entered: list[CourseProgress] = []

    def enter() -> None:
        try:
            path = location(catalogue)
            counted = [v for v in verdicts if _is_whole_work(v, catalogue[v.name], sizes)]
            if path is None or not counted or not _is_learners(origin, catalogue, file):
                return
            records = ProgressFile(path).add(counted, ended)
            entered.append(CourseProgress(path, _of_exercises(catalogue, records)))
            _missed.clear()
        except Exception as error:  # no error here may cost a verdict
            _missed[:] = [str(error)]

    # Any call on a network's file system may hang instead of failing, and only a thread can be
    # left behind then.  It does not keep the program alive, and the file stays whole wherever it
    # ends.
    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        _missed[:] = [
            f"the last check was not entered within {PATIENCE:g} s: another process holds the"
            " lock, or the file system hangs; check again"
        ]
        return None
    return entered[0] if entered else None


def _is_whole_work(
    verdict: ExerciseVerdict, exercise: IndexedExercise, sizes: Sequence[int] | None
) -> bool:
    """Return whether a verdict is on the learner's work, and on the whole exercise."""
    if verdict.status not in (Status.PASSED, Status.FAILED):
        return False
    whole = sizes is None or set(exercise.world_sizes) <= set(sizes)
    return whole and not verdict.nothing_done


def _is_learners(origin: Path | None, catalogue: Catalogue[IndexedExercise], file: bool) -> bool:
    """Return whether an answer is the learner's own work.

    A file that was named has to be in the ``notebooks`` of the course: elsewhere it may be a
    friend's notebook or a student's submission.  A live answer counts unless the course has brought
    it, as it has its solutions and known answers.
    """
    if origin is None:
        return not file
    place = Path(os.path.realpath(origin))
    if file:
        # where neither the working folder nor the package is in a course, the file's is taken
        root = _own_course(catalogue) or _course_around(place.parent, catalogue)
        return root is not None and place.is_relative_to(os.path.realpath(root / "notebooks"))
    root = _course_around(place, catalogue)
    return root is None or _NOT_THEIRS.isdisjoint(place.relative_to(root).parts[:1])
