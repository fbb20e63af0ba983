"""A whole class: what arrived, judged by an engine, kept in a store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.arrivals import Arrivals, StudentSubmission, collect
from grader.classroom.cache_key import course_mark, fingerprint, seed_for
from grader.classroom.engines import Engine
from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    Limits,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    Workers,
)
from grader.classroom.store import Store, StoredSubmission
from grader.core.errors import RequestError, UnreadableFile
from grader.core.verdict import ExerciseVerdict
from grader.course.chapters import Catalogue

__all__ = ["Options", "GradingProgress", "grade_class"]

#: Of a submission whose turn has not come, for the case that it never does.
_WAITING = "not judged yet; grade again"


@dataclass(frozen=True)
class Options:
    """How to grade a class.

    Attributes:
        limits: on time and memory of one submission, and whether it is in a sandbox.
        seed: repeats the inputs of an earlier grading; else they are drawn
            from a secret that the results keep.
        force: judge again what has been judged.
    """

    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    force: bool = False


@dataclass
class GradingProgress:
    """How far it is.

    Attributes:
        submissions: how many there are.
        done: how many of them are judged, or need not be.
        kept: how many of these had been judged before.
        empty: how many of these hold nothing to judge.
        exercises: verdicts found in this session.
        lost: submissions that the grader failed at.
        workers: how many submissions can be judged at a time, where that changes.
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
        """How many were judged in this session."""
        return self.done - self.kept - self.empty


def grade_class(
    source: Path,
    store: Store,
    engine: Engine,
    catalogue: Catalogue,
    options: Options,
    observe: Callable[[GradingProgress, ExerciseVerdict | None], None],
) -> GradingProgress:
    """Judge every submission that is new or has changed.

    Args:
        source: where the submissions are.
        store: of the results.
        engine: does the work.
        catalogue: the exercises of the course.
        options: how.
        observe: told after every step, with the verdict just found, if one was.

    Raises:
        RequestError: the source holds no submissions.
        StoreError: the results cannot be written.
    """
    with collect(source) as arrivals:
        if not arrivals.submissions:
            raise RequestError(f"{source} holds no submissions: no .py file and no notebook")
        return _Session(source, store, catalogue, options, observe).run(arrivals, engine)


class _Session:
    def __init__(
        self,
        source: Path,
        store: Store,
        catalogue: Catalogue,
        options: Options,
        observe: Callable[[GradingProgress, ExerciseVerdict | None], None],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._options = options
        self._observe = observe
        self._secret = store.secret(options.seed)
        self._course = course_mark(catalogue)
        self._hidden = (str(source.resolve()), str(store.path.parent.resolve()))
        self._handed: dict[str, tuple[int, StudentSubmission]] = {}
        self._digests: dict[str, str] = {}
        self._progress = GradingProgress()

    def run(self, arrivals: Arrivals, engine: Engine) -> GradingProgress:
        self._handed = {one.key: (i, one) for i, one in enumerate(arrivals.submissions)}
        self._progress.submissions = len(self._handed)
        self._store.course = tuple((e.name, e.chapter, e.points) for e in self._catalogue.values())
        self._store.keep_only(set(self._handed))
        # whoever stops this, everybody has a row
        for key in self._handed.keys() - {entry.key for entry in self._store.entries()}:
            self._note(key, (), (), {}, _WAITING)
        self._observe(self._progress, None)
        for told in engine.run(self._orders()):
            verdict = None
            if isinstance(told, SubmissionPlanned):
                self._note(told.key, told.exercises, told.notes, told.prints)
            elif isinstance(told, ExerciseJudged):
                safe = self._options.limits.sandbox
                self._store.save(told.key, told.fingerprint, told.verdict, safe)
                self._progress.exercises += 1
                verdict = told.verdict
            elif isinstance(told, SubmissionLost):
                self._lose(told)
            elif isinstance(told, Workers):
                self._progress.workers = told.count
            if isinstance(told, (SubmissionJudged, SubmissionLost)):
                self._progress.done += 1
            self._observe(self._progress, verdict)
        return self._progress

    def _orders(self) -> Iterator[GradingRequest]:
        """What is to be done, one submission after the other."""
        entries = {entry.key: entry for entry in self._store.entries()}
        for key, (_, handed) in self._handed.items():
            self._digests[key] = digest = handed.digest()
            seed = seed_for(self._secret, key)
            if not handed.files:
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
                self._contents(handed),
                digest,
                seed,
                self._options.limits,
                known,
                self._hidden,
            )

    def _contents(self, handed: StudentSubmission) -> tuple[tuple[str, bytes], ...]:
        """The files that can be read; of the others the arrivals have said why."""
        contents = []
        for file in handed.files:
            # one that has vanished meanwhile is missing, as if it had not been there
            with contextlib.suppress(UnreadableFile):
                contents.append((file.label, file.read()))
        return tuple(contents)

    def _is_done(
        self, entry: StoredSubmission, digest: str, seed: int, known: dict[str, str]
    ) -> bool:
        """Whether judging it again would find nothing new."""
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
        position, handed = self._handed[key]
        self._store.note(
            position,
            StoredSubmission(
                key=key,
                student=handed.student,
                digest=self._digests.get(key, ""),
                exercises=list(exercises),
                problems=list(handed.problems),
                found=list(found),
                email=handed.email,
                number=handed.sid,
                fault=fault,
                prints=prints,
                course=self._course,
            ),
        )

    def _lose(self, told: SubmissionLost) -> None:
        """The grader failed at a submission; what it had found of it stays."""
        entry = next((one for one in self._store.entries() if one.key == told.key), None)
        exercises = tuple(entry.exercises) if entry is not None else ()
        found = tuple(entry.found) if entry is not None else ()
        prints = entry.prints if entry is not None else {}
        self._note(told.key, exercises, found, prints, told.reason)
        self._progress.lost += 1
