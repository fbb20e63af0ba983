"""One submission: its files read, its exercises judged, in a sandbox of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

import psutil

from grader.classroom.messages import (
    ExerciseJudged,
    GradingRequest,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    Told,
)
from grader.classroom.store import fingerprint
from grader.core.errors import UnreadableFile, WorldError
from grader.core.verdict import Diagnosis, ExerciseVerdict, Status
from grader.course.chapters import Catalogue, discover
from grader.course.exercise import Exercise
from grader.judge.judge import Judge, Settings
from grader.launch.fork_server_client import ForkServer
from grader.launch.launchers import new_sandbox
from grader.launch.parsing import parse
from grader.launch.sandbox_pool import Sandbox
from grader.submission.submission import Submission

__all__ = ["GradingPlan", "ResourceWatchdog", "chapter_of", "grade", "plan", "work"]


# On which exercises a submission is judged, and from which of its files. ----------
#
# Students hand in some chapters, in one file or in many, and twice.  A file that
# is named after a chapter, as the course's notebooks are, hands that chapter in:
# all its exercises are due, and one that the file lacks is missing.  A file of
# any other name hands in what it defines.


@dataclass
class GradingPlan:
    """What is to be judged.

    Attributes:
        sources: by exercise, in the order of the course, where it is taken from.
        notes: what the report has to say about that.
    """

    sources: dict[str, Submission] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def chapter_of(label: str, catalogue: Catalogue) -> str | None:
    """The chapter that a file is named after.

    ``02_broadcast.ipynb`` is, and so is what is left of that name when it has
    been downloaded twice or prefixed by a learning platform.
    """
    words = re.split(r"[^a-z0-9]+", PurePath(label).stem.lower())
    for chapter in catalogue.chapters():
        wanted = chapter.split("_")
        if any(words[i : i + len(wanted)] == wanted for i in range(len(words))):
            return chapter
    return None


def plan(files: Sequence[Submission], catalogue: Catalogue) -> GradingPlan:
    """Decide for one student.

    Args:
        files: what could be read, the oldest first.
        catalogue: the exercises of the course.
    """
    due: dict[str, list[Submission]] = {}
    chapters = [chapter_of(file.label, catalogue) for file in files]
    for file, chapter in zip(files, chapters, strict=True):
        for name in catalogue:
            if name in file.names or name in file.broken or catalogue[name].chapter == chapter:
                due.setdefault(name, []).append(file)
    found = GradingPlan()
    for name in catalogue:
        if name in due:
            found.sources[name] = _choose(name, due[name], catalogue, found.notes)
    return found


def _choose(
    name: str, files: Sequence[Submission], catalogue: Catalogue, notes: list[str]
) -> Submission:
    """The file that an exercise is taken from: of its own chapter, defining it, the newest."""

    def rank(item: tuple[int, Submission]) -> tuple[bool, bool, int]:
        position, file = item
        chapter = chapter_of(file.label, catalogue)
        defines = name in file.names or name in file.broken
        # an earlier exercise that a later chapter's notebook repeats is no second answer
        return defines, chapter in (None, catalogue[name].chapter), position

    defining = [file for file in files if name in file.names or name in file.broken]
    _, chosen = max(enumerate(files), key=rank)
    others = [file.label for file in defining if file is not chosen]
    if others:
        notes.append(f"{name} is taken from {chosen.label}; also in {', '.join(others)}")
    return chosen


# Holds a whole sandbox to its memory and its time. --------------------------------
#
# Every rank has a limit of its own; together they could still take a machine
# down.  The watchdog looks from outside, where nothing in the sandbox can touch it.

#: Seconds between two looks: a rank writes a few hundred megabytes in that.
_PERIOD = 0.1


class ResourceWatchdog:
    """Kills a process and all that it started when they exceed their limits.

    Args:
        pid: of the sandbox.
        memory: bytes that all its processes may have resident together.
        seconds: that it may live.
    """

    def __init__(self, pid: int, memory: int, seconds: float) -> None:
        self._top = psutil.Process(pid)
        self._memory = memory
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self._done = threading.Event()
        #: why it has killed, once it has
        self.reason: tuple[Diagnosis, str] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True, name="warden")
        self._thread.start()

    def _watch(self) -> None:
        # it is over when the sandbox is; anything else is a fault, and must be heard of
        with contextlib.suppress(psutil.NoSuchProcess):
            while not self._done.wait(_PERIOD):
                if time.monotonic() > self._until:
                    self._end(
                        Diagnosis.TIMEOUT, f"the submission took over {self._seconds:g} s in all"
                    )
                    return
                used = self._resident()
                if used > self._memory:
                    message = (
                        f"the ranks together used {used >> 20} MB;"
                        f" {self._memory >> 20} MB is the limit"
                    )
                    self._end(Diagnosis.MEMORY_LIMIT, message)
                    return

    def _resident(self) -> int:
        """What the processes have to themselves; torch, which they share, counts once each."""
        used = 0
        for process in self._top.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                used += memory.rss - memory.shared
        return used

    def _end(self, diagnosis: Diagnosis, message: str) -> None:
        self.reason = (diagnosis, message)
        # the first process of a PID namespace takes all others with it
        for process in self._top.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._top.kill()

    def close(self) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()


# Judging. -------------------------------------------------------------------------

#: Bytes of tensors that a rank may send back; no exercise of the course needs a tenth of one.
_ANSWER = 1 << 20


def grade(order: GradingRequest, catalogue: Catalogue, tell: Callable[[Told], None]) -> None:
    """Judge a submission, and tell of every verdict as it is found.

    Whatever the submission does, every exercise that is due gets a verdict.

    Raises:
        WorldError: there can be no sandbox, for this or any submission.
    """
    with _SubmissionSandbox(order) as box:
        work = _read(box, order, catalogue)
        prints = {
            name: submission.prints[name]
            for name, submission in work.sources.items()
            if name in submission.prints
        }
        tell(SubmissionPlanned(order.key, tuple(work.sources), tuple(work.notes), prints))
        for name, submission in work.sources.items():
            exercise = catalogue[name]
            mark = fingerprint(exercise, order.digest, order.seed, order.limits.key())
            if order.known.get(name) == mark:
                continue
            tell(ExerciseJudged(order.key, mark, _judge(box, order, exercise, submission)))


def _read(box: _SubmissionSandbox, order: GradingRequest, catalogue: Catalogue) -> GradingPlan:
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


def _parse(box: _SubmissionSandbox, label: str, data: bytes, catalogue: Catalogue) -> Submission:
    try:
        return parse(box.server(), data, label, catalogue)
    except WorldError:
        if box.reason is None:
            raise
        raise UnreadableFile(f"{label} cannot be read: {box.reason[1]}") from None


def _judge(
    box: _SubmissionSandbox, order: GradingRequest, exercise: Exercise, submission: Submission
) -> ExerciseVerdict:
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


class _SubmissionSandbox:
    """A submission's sandbox, made again when it has been ended."""

    def __init__(self, order: GradingRequest) -> None:
        self._hidden = [Path(folder) for folder in order.hidden]
        self._limits = order.limits
        self._deadline = time.monotonic() + order.limits.submission
        self._server: Sandbox | ForkServer | None = None
        self._watchdog: ResourceWatchdog | None = None

    @property
    def reason(self) -> tuple[Diagnosis, str] | None:
        """Why the sandbox was ended, if it was."""
        return self._watchdog.reason if self._watchdog is not None else None

    @property
    def spent(self) -> bool:
        """Whether the submission has had all its time."""
        return self.reason is not None and self.reason[0] is Diagnosis.TIMEOUT

    def server(self) -> Sandbox | ForkServer:
        """The server in the sandbox, running."""
        if self._server is None:
            self._server = new_sandbox(self._hidden) if self._limits.sandbox else ForkServer()
            left = max(self._deadline - time.monotonic(), 0.0)
            self._watchdog = ResourceWatchdog(self._server.pid, self._limits.memory, left)
        return self._server

    def discard(self) -> None:
        """End the sandbox; the next question starts another one."""
        if self._server is not None and not self.spent:
            self._close()

    def _close(self) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
        if self._server is not None:
            self._server.close()
        self._server = self._watchdog = None

    def __enter__(self) -> _SubmissionSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


# As a program, which engines start. -----------------------------------------------
#
# It reads a pickled request and writes the pickled results.  Both are the grader's own, and
# no submission's code runs in this process.


def work(
    order: GradingRequest, tell: Callable[[Told | SubmissionJudged | SubmissionLost], None]
) -> None:
    """Judge a submission; whatever goes wrong is told and not raised."""
    try:
        grade(order, discover(), tell)
    except Exception as error:
        tell(SubmissionLost(order.key, f"{type(error).__name__}: {error}"))
    else:
        tell(SubmissionJudged(order.key))


def main() -> None:
    """Serve the one order on standard input."""
    from grader.rank.process_limits import die_with_parent

    die_with_parent()
    # whatever prints, prints elsewhere
    answer = os.dup(1)
    os.dup2(2, 1)
    told: list[Told | SubmissionJudged | SubmissionLost] = []
    work(pickle.load(sys.stdin.buffer), told.append)
    with os.fdopen(answer, "wb") as out:
        pickle.dump(told, out)


if __name__ == "__main__":
    main()
