"""``python -m grader reproduce``: judge one answer again, as it was judged, and compare.

The file is looked for where it was found, by its path and its SHA-256; it must be the same, or
the command says what has changed.  Seed, limits and sandbox are those of the stored verdict.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from grader.classroom.arrivals import ReadFiles, collect
from grader.classroom.command import lateness_of_arrivals, workplace
from grader.classroom.decisions import find_student, nobody
from grader.classroom.engines import Engine
from grader.classroom.messages import ExerciseJudged, GradingRequest, Limits, SubmissionLost
from grader.classroom.results import ClassResults, class_results
from grader.classroom.store import Store, StoredSubmission, fingerprint
from grader.errors import UnknownExercise
from grader.exercise.verdict import ExerciseVerdict, SubmissionVerdict
from grader.report.text import submission_report
from headcount.core.errors import HeadcountError, RequestError
from headcount.core.resource_limits import DEFAULTS
from headcount.report import visible

if TYPE_CHECKING:
    from grader.exercise.catalogue import Catalogue
    from grader.exercise.declaration import Exercise


@dataclass(frozen=True)
class StoredVerdict:
    """A verdict, and all that is known of how it was found.

    Attributes:
        folder: the folder of the results.
        results: the class.
        entry: the student's submission.
        verdict: the verdict.
        fingerprint: the text that stands for all that it depends on.
        source: the path of the submissions.
    """

    folder: Path
    results: ClassResults
    entry: StoredSubmission
    verdict: ExerciseVerdict
    fingerprint: str
    source: Path

    @property
    def limits(self) -> Limits:
        """The limits that it was judged with."""
        return Limits(*self.entry.limits)  # type: ignore[arg-type]  # its key has all of them


def look_up(folder: Path, student: str, exercise: str, submissions: Path | None) -> StoredVerdict:
    """Return a stored verdict, before anything that takes long is done.

    Args:
        folder: the folder of the results.
        student: a key, number, address or name.
        exercise: the exercise.
        submissions: where the submissions are now, if they have been moved.

    Raises:
        RequestError: there is no such student or verdict, or the submissions are gone.
    """
    with Store(folder, readonly=True) as store:
        entries = store.entries()
        found = find_student(student, entries)
        if found is None:
            raise RequestError(nobody(student, entries, "these results"))
        entry = next(one for one in entries if one.key == found.key)
        verdicts, known = store.verdicts(entry.key), store.known(entry.key)
        results = class_results(store)
    if exercise not in verdicts:
        if not verdicts:
            raise RequestError(f"nothing of {entry.student} has been judged")
        near = str(UnknownExercise(exercise, verdicts))
        mend = near.rpartition("; ")[2] if "did you mean" in near else ", ".join(verdicts)
        raise RequestError(f"{entry.student} has no verdict on {exercise!r}; {mend}")
    if exercise in entry.kept:
        raise RequestError(
            f"{exercise} of {entry.student} is kept from an earlier hand-in, in"
            f" {entry.kept[exercise]}; grade that into another folder to repeat it"
        )
    if not entry.limits:
        raise RequestError(
            f"{folder} does not say how it was judged: an older grader has written it; grade again"
        )
    source = submissions or Path(entry.source)
    if not source.exists():
        raise RequestError(
            f"the submissions are gone from {source}; if they have been moved, say where to:"
            " --submissions PATH"
        )
    return StoredVerdict(
        folder, results, entry, verdicts[exercise], known.get(exercise, ""), source
    )


def reproduce(
    stored: StoredVerdict,
    make_engine: Callable[[], Engine],
    catalogue: Callable[[], Catalogue[Exercise]],
) -> int:
    """Judge an answer again and print both verdicts if they differ.

    Args:
        stored: the verdict.
        make_engine: a function that makes an engine for one submission.
        catalogue: a function that returns the exercises; it may import torch, so it is called
            when the engine has started.

    Returns:
        The exit status: 0 if the verdict is the same, 1 if not.

    Raises:
        RequestError: the files are not those that were judged.
        HeadcountError: the grader itself failed.
    """
    console = Console(highlight=False)
    name = stored.verdict.name
    with workplace() as place:
        lateness_of = lateness_of_arrivals(stored.results.assignment, stored.folder)
        arrivals = place.enter_context(
            collect(stored.source, layout=stored.entry.layout, lateness_of=lateness_of)
        )
        key = stored.entry.key
        submission = next((one for one in arrivals.submissions if one.key == key), None)
        if submission is None:
            raise RequestError(f"{stored.source} holds nothing of {stored.entry.student} any more")
        read = submission.read()
        _require_same(stored, read)
        engine = place.enter_context(contextlib.closing(make_engine()))
        exercises = catalogue()
        seed, limits = stored.verdict.seed, stored.limits
        marks = {
            one: fingerprint(exercises[one], read.digest, seed, limits.key())
            for one in stored.entry.exercises
            if one in exercises
        }
        request = GradingRequest(
            key,
            read.contents,
            read.digest,
            seed,
            limits,
            {one: mark for one, mark in marks.items() if one != name},
            (str(stored.source.resolve()), str(stored.folder.resolve())),
            tuple(asked.name for asked in stored.results.assignment.exercises),
        )
        again = None
        for event in engine.run(iter([request])):
            if isinstance(event, SubmissionLost):
                raise HeadcountError(f"the grader failed: {event.reason}")
            if isinstance(event, ExerciseJudged) and event.verdict.name == name:
                again = event.verdict
    if again is None:
        raise HeadcountError(f"the grader found no verdict on {name}")
    label = f"{stored.entry.student}, judged again"
    console.print(submission_report(SubmissionVerdict(label, seed, (again,))))
    same = _comparable(again) == _comparable(stored.verdict)
    if same:
        console.print(Text(f"The verdict is the same as in {stored.folder}."))
    else:
        console.print(Text(f"The verdict is another one than in {stored.folder}, which is:"))
        before = SubmissionVerdict(f"{stored.entry.student}, as stored", seed, (stored.verdict,))
        console.print(submission_report(before))
        if marks.get(name) != stored.fingerprint:
            console.print(
                "The grader, the exercise, Python or torch has changed in between; grade again."
            )
    print(visible(_for_the_student(stored)))  # a long line that can be copied
    return 0 if same else 1


def _require_same(stored: StoredVerdict, read: ReadFiles) -> None:
    """Check that the files are those that were judged.

    Raises:
        RequestError: they are not; the message names the first that differs.
    """
    before, now = dict(stored.entry.files), dict(read.hashes)
    for label, digest in before.items():
        if label not in now:
            raise RequestError(
                f"{label} of {stored.entry.student} is gone from {stored.source}, so the verdict"
                " cannot be repeated"
            )
        if now[label] != digest:
            raise RequestError(
                f"{label} of {stored.entry.student} has changed since it was judged (SHA-256"
                f" {digest[:12]}… then, {now[label][:12]}… now); grade again for a verdict on what"
                " is there"
            )
    if new := [label for label in now if label not in before]:
        raise RequestError(
            f"{', '.join(new)} of {stored.entry.student} was not there when it was judged; grade"
            " again for a verdict on what is there"
        )


def _comparable(verdict: ExerciseVerdict) -> tuple[object, ...]:
    """Return what two verdicts on the same answer must share; messages may name times."""
    cases = [(case.name, case.world_size, case.status, case.diagnosis) for case in verdict.cases]
    return verdict.status, round(verdict.score, 6), verdict.diagnosis, tuple(cases)


def _for_the_student(stored: StoredVerdict) -> str:
    """Return the command that shows the student the same."""
    files = [label for label, _ in stored.entry.files]
    file = shlex.quote(files[0]) if len(files) == 1 else "FILE"
    command = f"python -m grader check {file} {stored.verdict.name} --seed {stored.verdict.seed}"
    if stored.limits.call != DEFAULTS.call:
        command += f" --seconds {stored.limits.call:g}"
    return f"The student sees the same with: {command}"
