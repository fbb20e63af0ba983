"""One submission: its files read, its exercises judged, in a sandbox of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from grader.classroom.cache_key import fingerprint
from grader.classroom.messages import Judged, Order, Planned, Told
from grader.classroom.plan import Plan, plan
from grader.classroom.resource_watchdog import Warden
from grader.core.errors import UnreadableFile, WorldError
from grader.core.verdict import Diagnosis, ExerciseVerdict, Status
from grader.course.chapters import Catalogue
from grader.course.exercise import Exercise
from grader.judge.judge import Judge, Settings
from grader.launch.fork_server_client import ForkServer
from grader.launch.launchers import new_sandbox
from grader.launch.parsing import parse
from grader.launch.sandbox_pool import Sandbox
from grader.submission.submission import Submission

__all__ = ["grade"]

#: Bytes of tensors that a rank may send back; no exercise of the course needs a tenth of one.
_ANSWER = 1 << 20


def grade(order: Order, catalogue: Catalogue, tell: Callable[[Told], None]) -> None:
    """Judge a submission, and tell of every verdict as it is found.

    Whatever the submission does, every exercise that is due gets a verdict.

    Raises:
        WorldError: there can be no sandbox, for this or any submission.
    """
    with _Box(order) as box:
        work = _read(box, order, catalogue)
        prints = {
            name: submission.prints[name]
            for name, submission in work.sources.items()
            if name in submission.prints
        }
        tell(Planned(order.key, tuple(work.sources), tuple(work.notes), prints))
        for name, submission in work.sources.items():
            exercise = catalogue[name]
            mark = fingerprint(exercise, order.digest, order.seed, order.limits.key())
            if order.known.get(name) == mark:
                continue
            tell(Judged(order.key, mark, _judge(box, order, exercise, submission)))


def _read(box: _Box, order: Order, catalogue: Catalogue) -> Plan:
    """The files of a submission, and what they are good for."""
    files: list[Submission] = []
    notes: list[str] = []
    for label, data in order.files:
        try:
            files.append(_parse(box, label, data, catalogue))
        except UnreadableFile as error:
            notes.append(str(error))
    for file in files:
        for fault in file.unparsed:
            place = "" if fault.label in file.label else f"{fault.label}, "
            notes.append(f"{file.label}: {place}line {fault.line}: {fault.message}")
    work = plan(files, catalogue)
    work.notes[:0] = notes
    if not work.sources:
        work.notes.append("no exercise of the course was handed in")
    return work


def _parse(box: _Box, label: str, data: bytes, catalogue: Catalogue) -> Submission:
    try:
        return parse(box.server(), data, label, catalogue)
    except WorldError:
        if box.reason is None:
            raise
        raise UnreadableFile(f"{label} cannot be read: {box.reason[1]}") from None


def _judge(box: _Box, order: Order, exercise: Exercise, submission: Submission) -> ExerciseVerdict:
    """The verdict on one exercise; a fault of the grader's is tried again, once."""
    settings = Settings(
        seed=order.seed,
        seconds=order.limits.call,
        memory=order.limits.memory,
        patience=order.limits.exercise,
        answer=_ANSWER,
    )
    verdict = _blank(exercise, settings.seed)
    for _ in range(2):
        if box.spent:
            break
        try:
            verdict = Judge(box.server(), settings).judge(exercise, submission)
        except Exception as error:
            # a bug of ours costs this verdict, and is shown; it must not cost the row
            message = f"the grader failed, not the answer: {type(error).__name__}: {error}"
            verdict = replace(verdict, status=Status.ERROR, message=message)
        if verdict.status is not Status.ERROR or box.reason is not None:
            break
        box.discard()
    if box.reason is not None:
        if not verdict.passed:
            # it may look like a crash of the ranks, or like a fault of the grader's
            diagnosis, message = box.reason
            verdict = replace(verdict, status=Status.FAILED, diagnosis=diagnosis, message=message)
        box.discard()
    return verdict


def _blank(exercise: Exercise, seed: int) -> ExerciseVerdict:
    """Before anything is known of it."""
    return ExerciseVerdict(
        exercise.name, exercise.chapter, Status.SKIPPED, 0.0, exercise.points, seed=seed
    )


class _Box:
    """A submission's sandbox, made again when it has been ended."""

    def __init__(self, order: Order) -> None:
        self._hidden = [Path(folder) for folder in order.hidden]
        self._limits = order.limits
        self._deadline = time.monotonic() + order.limits.submission
        self._server: Sandbox | ForkServer | None = None
        self._warden: Warden | None = None

    @property
    def reason(self) -> tuple[Diagnosis, str] | None:
        """Why the sandbox was ended, if it was."""
        return self._warden.reason if self._warden is not None else None

    @property
    def spent(self) -> bool:
        """Whether the submission has had all its time."""
        return self.reason is not None and self.reason[0] is Diagnosis.TIMEOUT

    def server(self) -> Sandbox | ForkServer:
        """The server in the sandbox, running."""
        if self._server is None:
            self._server = new_sandbox(self._hidden) if self._limits.sandbox else ForkServer()
            left = max(self._deadline - time.monotonic(), 0.0)
            self._warden = Warden(self._server.pid, self._limits.memory, left)
        return self._server

    def discard(self) -> None:
        """End the sandbox; the next question starts another one."""
        if self._server is not None and not self.spent:
            self._close()

    def _close(self) -> None:
        if self._warden is not None:
            self._warden.close()
        if self._server is not None:
            self._server.close()
        self._server = self._warden = None

    def __enter__(self) -> _Box:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
