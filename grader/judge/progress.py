"""Where a learner stands: which checks count, where they are kept, what they add up to.

A check is never slower or weaker for it: whatever goes wrong with the file is
kept for the moment when somebody asks for the progress itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.core.errors import LogbookError
from grader.core.verdict import Diagnosis, ExerciseVerdict, Status
from grader.judge.progress_store import Entry, Logbook

if TYPE_CHECKING:  # reports need this module, and not torch, which exercises import
    from grader.course.chapters import Catalogue
    from grader.course.exercise import Exercise

__all__ = ["Overview", "Standing", "State", "location", "note", "origin_of", "overview"]

#: Where progress is kept, if not with the course; empty for nowhere.
VARIABLE = "GRADER_PROGRESS"

#: nbgrader says here what it runs a notebook for.
_NBGRADER = "NBGRADER_EXECUTION"

#: Seconds that a check waits for its entry; a sound file takes a thousandth of it.
PATIENCE = 2.0

#: Folders of the course that hold answers which are not the learner's.
_NOT_THEIRS = frozenset({"solutions", "tests"})

_NOTHING_DONE = frozenset({Diagnosis.NOT_ATTEMPTED, Diagnosis.MISSING})


class State(str, Enum):
    """How far a learner is with an exercise."""

    PASSED = "passed"
    TRIED = "tried"
    UNTOUCHED = "untouched"


@dataclass(frozen=True)
class Standing:
    """How far a learner is with one exercise; ``entry`` is ``None`` before the first check."""

    exercise: Exercise
    entry: Entry | None

    @property
    def state(self) -> State:
        """Passed, tried or untouched."""
        if self.entry is None:
            return State.UNTOUCHED
        return State.PASSED if self.entry.passed else State.TRIED


@dataclass(frozen=True)
class Overview:
    """How far a learner is with the course.

    Attributes:
        file: where it is kept; ``None`` if progress is switched off.
        standings: one for each exercise, in the order of the course; none if
            the file cannot be read, since nobody knows then.
        unknown: exercises in the file that this course does not have.
        trouble: why the file cannot be read, or checks are not entered; each
            with the mend.
    """

    file: Path | None
    standings: tuple[Standing, ...]
    unknown: tuple[str, ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        """How many exercises are passed."""
        return sum(standing.state is State.PASSED for standing in self.standings)

    def chapters(self) -> dict[str, list[Standing]]:
        """The standings of each chapter."""
        found: dict[str, list[Standing]] = {}
        for standing in self.standings:
            found.setdefault(standing.exercise.chapter, []).append(standing)
        return found


def overview(catalogue: Catalogue) -> Overview:
    """How far the learner is; never raises for what is wrong with the file."""
    path = location(catalogue)
    if path is None:
        return Overview(None, ())
    logbook = Logbook(path)
    try:
        entries = logbook.read()
    except LogbookError as error:
        return Overview(logbook.path, (), trouble=(str(error),))
    trouble = []
    try:
        logbook.rehearse()
    except LogbookError as error:
        trouble.append(str(error))
    if _missed and not trouble:
        trouble.append(_missed[-1])
    return Overview(
        logbook.path,
        tuple(Standing(exercise, entries.get(name)) for name, exercise in catalogue.items()),
        tuple(name for name in entries if name not in catalogue),
        tuple(trouble),
    )


# Where it is kept. ----------------------------------------------------------------


def location(catalogue: Catalogue) -> Path | None:
    """The file of the learner's progress; ``None`` if it is switched off.

    It lies in the course that one works in: the one around the working
    folder, or else the one that this package is a part of.  Where there is
    neither, it lies with the user's other small files.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    root = _own_course(catalogue)
    if root is not None:
        return root / ".grader" / "progress.json"
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "gather-round" / "progress.json"


def _own_course(catalogue: Catalogue) -> Path | None:
    """The course that the learner works in, if there is one; see :func:`location`."""
    for start in (_here(), Path(os.path.abspath(__file__)).parent):
        root = None if start is None else _course_around(start, catalogue)
        if root is not None:
            return root
    return None


def _here() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # somebody has deleted it
        return None


def _course_around(place: Path, catalogue: Catalogue) -> Path | None:
    """The innermost folder around a place whose ``notebooks`` are this course's."""
    chapters = [f"{chapter}.ipynb" for chapter in catalogue.chapters()]
    for folder in (place, *place.parents):
        notebooks = folder / "notebooks"
        if any(os.path.isfile(notebooks / name) for name in chapters):
            return folder
    return None


# What counts. ---------------------------------------------------------------------

#: Why the last check of this process could not be entered; empty if it was.
_missed: list[str] = []


def origin_of(answer: Callable[..., Any] | str) -> Path | None:
    """Where a live answer was written: its module's file, or the folder of its notebook."""
    module = sys.modules.get(getattr(answer, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file) if file else _here()


def note(
    verdicts: Iterable[ExerciseVerdict],
    catalogue: Catalogue,
    origin: Path | None,
    sizes: Sequence[int] | None = None,
    backend: str = "gloo",
    file: bool = False,
) -> None:
    """Enter a check of the learner's; what does not count, or cannot be entered, is not.

    Args:
        verdicts: of the check.
        catalogue: the exercises of the course.
        origin: the file, or folder, that the answers come from.
        sizes: the numbers of ranks that were asked for, if any were.
        backend: what carried the messages.
        file: whether ``origin`` was named to be judged, and may be somebody else's work;
            a live answer is the learner's own, unless the course has brought it.
    """
    if backend == "nccl":
        return  # the GPUs say at how many ranks it was judged, and not the exercise
    if os.environ.get(_NBGRADER) == "autograde":
        return  # a class's answers, on the instructor's machine
    ended = datetime.now(timezone.utc)

    def enter() -> None:
        try:
            path = location(catalogue)
            counted = [v for v in verdicts if _counts(v, catalogue[v.name], sizes)]
            if path is None or not counted:
                return
            if not _in_notebooks(origin, catalogue) if file else _not_theirs(origin, catalogue):
                return
            Logbook(path).add(counted, ended)
            _missed.clear()
        except Exception as error:  # no fault here is worth a verdict
            _missed[:] = [str(error)]

    # A network's file system may hang where it should fail.  The thread does
    # not keep the program alive, and leaves the file whole wherever it ends.
    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        _missed[:] = [
            f"the last check was not entered within {PATIENCE:g} s: another process holds the"
            " lock, or the file system hangs; check again"
        ]


def _counts(verdict: ExerciseVerdict, exercise: Exercise, sizes: Sequence[int] | None) -> bool:
    """Whether a verdict says something of the learner's work on the whole exercise."""
    if verdict.status not in (Status.PASSED, Status.FAILED):
        return False
    whole = sizes is None or set(exercise.world_sizes) <= set(sizes)
    return whole and verdict.diagnosis not in _NOTHING_DONE


def _in_notebooks(origin: Path | None, catalogue: Catalogue) -> bool:
    """Whether a file lies in the ``notebooks`` of the learner's course.

    A file from elsewhere, such as a friend's notebook or a student's submission, is
    somebody else's work until it is known to be the learner's.
    """
    if origin is None:
        return False
    place = Path(os.path.realpath(origin))
    # nobody says which course is the learner's, where neither folder nor package is in one
    root = _own_course(catalogue) or _course_around(place.parent, catalogue)
    return root is not None and place.is_relative_to(os.path.realpath(root / "notebooks"))


def _not_theirs(origin: Path | None, catalogue: Catalogue) -> bool:
    """Whether answers come with the course: its solutions, and the answers of its tests."""
    if origin is None:
        return False
    place = Path(os.path.realpath(origin))
    root = _course_around(place, catalogue)
    if root is None or place == root:
        return False
    return place.relative_to(root).parts[0] in _NOT_THEIRS
