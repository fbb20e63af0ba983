"""The grading of one submission: its files are read and its exercises judged, in its sandbox."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

import msgspec
import psutil

from grader.classroom.messages import (
    ExerciseJudged,
    GradingEvent,
    GradingRequest,
    SubmissionJudged,
    SubmissionLost,
    SubmissionPlanned,
    WorkerReady,
    bounded,
)
from grader.classroom.names import few, module_file_name
from grader.classroom.store import fingerprint
from grader.course.chapters import discover
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import ExerciseVerdict, Status, listed
from grader.judge.judge import Judge, Settings
from grader.sandbox.sandboxes import Sandbox, new_sandbox
from grader.submission.definitions import Broken
from grader.submission.parsing import MEMORY, TASK, FileDefinitions, FileRequest
from grader.submission.submission import Submission
from headcount.core.errors import UnreadableFile, WorldError
from headcount.core.files import LARGEST_FILE
from headcount.core.program import Program
from headcount.core.resource_limits import DEFAULTS
from headcount.core.verdict import Diagnosis
from headcount.core.wire import BrokenFrame, Perform, Performed
from headcount.launch.frame_channel import FrameChannel, messages
from headcount.launch.launchers import ForkServer, Launcher, ProcessGroupHandle
from headcount.rank.process_limits import die_with_parent

# On which exercises a submission is judged, and from which of its files. ----------
#
# Students hand in some chapters, in one file or in many, and twice.  A file that
# is named after a chapter, as the course's notebooks are, hands that chapter in:
# all its exercises are due, and one that the file lacks is missing.  A file of
# any other name hands in what it defines.
#
# If the assignment states what is due, nothing else is judged, and what was handed in beyond
# it is listed.


@dataclass
class GradingPlan:
    """The exercises of a submission that are to be judged.

    Attributes:
        sources: the file that each is taken from, by exercise, in the order of the course.
        notes: remarks on that choice, for the report.
    """

    sources: dict[str, Submission] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def chapter_of(label: str, catalogue: Catalogue[Exercise]) -> str | None:
    """Return the chapter that a file is named after, or None.

    ``02_broadcast.ipynb`` is named after one, and so is that name with the marks
    of a second download or with a learning platform's prefix.
    """
    words = re.split(r"[^a-z0-9]+", PurePath(label).stem.lower())
    for chapter in catalogue.chapters():
        wanted = chapter.split("_")
        if any(words[i : i + len(wanted)] == wanted for i in range(len(words))):
            return chapter
    return None


def plan(
    files: Sequence[Submission], catalogue: Catalogue[Exercise], stated: Sequence[str] = ()
) -> GradingPlan:
    """Decide which exercises of one student are judged, and from which files.

    Args:
        files: the files that could be read, oldest first.
        catalogue: the exercises of the course.
        stated: names of the exercises that the assignment states; none if it states nothing.
    """
    due: dict[str, list[Submission]] = {}
    chapters = [chapter_of(file.label, catalogue) for file in files]
    for file, chapter in zip(files, chapters, strict=True):
        for name in catalogue:
            given = name in file.names or name in file.broken or catalogue[name].chapter == chapter
            # what stands where nothing runs is handed in, too, if badly
            if given or (name in stated and name in file.elsewhere and chapter is None):
                due.setdefault(name, []).append(file)
    found = GradingPlan()
    if stated:
        defined = {name for file in files for name in (*file.names, *file.broken)}
        beyond = [name for name in due if name not in stated and name in defined]
        due = {name: files for name, files in due.items() if name in stated}
        if beyond:
            names = ", ".join(name for name in catalogue if name in beyond)
            found.notes.append(f"not part of this assignment, and not judged: {names}")
    several: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in catalogue:
        if name in due:
            chosen, others = _choose(name, due[name], catalogue)
            found.sources[name] = chosen
            if others:
                several.setdefault((chosen.label, others), []).append(name)
    found.notes += [_which_file(names, *files) for files, names in several.items()]
    return found


def _which_file(names: Sequence[str], chosen: str, others: Sequence[str]) -> str:
    """Return the sentence on exercises that several files define."""
    verb = "is" if len(names) == 1 else "are"
    newest = "the newest " if chosen in others else ""
    elsewhere = [label for label in dict.fromkeys(others) if label != chosen]
    also = f"; also in {few(elsewhere)}" if elsewhere else ""
    return f"{listed(names)} {verb} taken from {newest}{chosen}{also}"


def _choose(
    name: str, files: Sequence[Submission], catalogue: Catalogue[Exercise]
) -> tuple[Submission, tuple[str, ...]]:
    """Return an exercise's file, and the names of the others that define it.

    It is one that defines the exercise, of its own chapter if there is one; of these the newest.
    """

    def rank(item: tuple[int, Submission]) -> tuple[bool, bool, int]:
        position, file = item
        chapter = chapter_of(file.label, catalogue)
        defines = name in file.names or name in file.broken
        # an earlier exercise that a later chapter's notebook repeats is no second answer
        return defines, chapter in (None, catalogue[name].chapter), position

    defining = [file for file in files if name in file.names or name in file.broken]
    _, chosen = max(enumerate(files), key=rank)
    return chosen, tuple(file.label for file in defining if file is not chosen)


# Parsing of a file in a process of its own, where a sandbox runs if there is one. ---
#
# Python's own parser has crashed on hostile source before, and a notebook is JSON of any depth.
# So the file's bytes go to a process like a rank's, and data come back: names, faults, texts, and
# the compiled definitions as bytes that only a rank will load.

#: Bytes that may come back: a multiple of the file's (its text, code and names), and a constant.
_GROWTH, _FLOOR = 8, 1 << 20

#: Bytes of the files beside one that it may import; they are sent along with each.
_BESIDE = 4 << 20

#: What stands for a file beyond that.
_TOO_LARGE = (
    f"raise ImportError('it is not read: the Python files beside an answer may take"
    f" {_BESIDE >> 20} MB in all')"
).encode()


def parse(
    launcher: Launcher,
    data: bytes,
    label: str,
    wanted: Iterable[str],
    seconds: float = DEFAULTS.parsing,
    beside: Mapping[str, bytes] = MappingProxyType({}),
) -> Submission:
    """Return a file's definitions, read in a process of the launcher's.

    Args:
        launcher: starts the process.
        data: the contents of the file.
        label: its path, whose suffix says whether it is a notebook.
        wanted: names to keep, see :func:`grader.submission.definitions.select`.
        seconds: the time limit; the longest solved notebook takes 0.1 s.
        beside: the files that it may import, see :func:`importable`.

    Raises:
        UnreadableFile: it is no Python and no notebook, or cannot be read
            within the limits.
        WorldError: the process cannot be started.
    """
    if len(data) > LARGEST_FILE:
        raise UnreadableFile(f"{label} is larger than {LARGEST_FILE >> 20} MB")
    handle = launcher.launch(1)
    try:
        request = FileRequest(data, label, list(wanted), dict(beside))
        parsed = _ask(handle, request, launcher.environment.sealed, seconds)
    except (BrokenFrame, OSError) as error:
        raise UnreadableFile(f"{label} cannot be read: {error}") from None
    finally:
        handle.close()
        launcher.settle()
    if parsed is None:
        raise UnreadableFile(f"{label} cannot be read: Python's parser gives up on it")
    if parsed.error:
        raise UnreadableFile(parsed.error)
    return Submission(
        label,
        Program(packed=parsed.program),
        frozenset(parsed.names),
        {name: Broken(*fault) for name, fault in parsed.broken.items()},
        tuple(Broken(*fault) for fault in parsed.unparsed),
        dict(parsed.sources),
        dict(parsed.prints),
        dict(parsed.outlines),
        dict(parsed.elsewhere),
    )


def importable(label: str, files: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the Python files that one of a submission may import, by the path from its folder.

    Where a learning platform has put a counter or a date into a name, as in ``helpers-1.py``, it
    counts as ``helpers.py``, and the newest one as it.

    Args:
        label: the path of the file within the submission; what is in its folder, or in folders
            in there, it may import.
        files: label and contents of each file of the submission, oldest first.
    """
    folder = label.rpartition("/")[0]
    found: dict[str, bytes] = {}
    for other, data in files:
        if folder and not other.startswith(f"{folder}/"):
            continue
        *folders, name = other.removeprefix(f"{folder}/" if folder else "").split("/")
        if name.lower().endswith(".py"):
            found["/".join([*folders, module_file_name(name)])] = data
    left = _BESIDE
    for path, data in found.items():
        if len(data) <= left:
            left -= len(data)
        else:
            found[path] = _TOO_LARGE
    return found


def _ask(
    handle: ProcessGroupHandle, request: FileRequest, sealed: bool, seconds: float
) -> FileDefinitions | None:
    """Return the answer to a request, or None if the process died over it."""
    given = len(request.data) + sum(map(len, request.beside.values()))
    channel = FrameChannel(handle.controls[0], _GROWTH * given + _FLOOR)
    until = time.monotonic() + seconds
    channel.send(Perform(TASK, msgspec.msgpack.encode(request), MEMORY, sealed))
    try:
        for message in messages(channel, until):
            if isinstance(message, Performed):
                return msgspec.msgpack.decode(message.data, type=FileDefinitions)
            raise BrokenFrame("what came back is no answer")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BrokenFrame(f"what came back is no answer: {str(error)[:200]}") from None
    except TimeoutError:
        raise BrokenFrame(f"it takes over {seconds:.0f} s") from None
    return None


# The limits on the memory and time of a whole sandbox. ----------------------------
#
# Every rank has a limit of its own; together they could still take a machine
# down.  The watchdog looks from outside, where nothing in the sandbox can touch it.

#: Seconds between two looks, in which a rank can write a few hundred megabytes.
_PERIOD = 0.1

#: Once the kernel has been asked what is shared, it is asked again at every look of so many.
_REFRESH = 10


def own_memory(process: psutil.Process) -> int:
    """Return the bytes that a process has resident and does not share.

    A page that several processes share counts in parts: ``Pss_Anon`` in ``proc_pid_smaps(5)``.
    Where it cannot be read, all resident memory counts but that of files.

    Raises:
        psutil.NoSuchProcess: it has ended.
    """
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) << 10
    memory = process.memory_info()
    return int(memory.rss - memory.shared)


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return the processes that a process has started, and those that they have.

    Linux lists the children of every thread (``proc_tid_children(5)``), if it is built to.  psutil
    looks for them among all processes of the machine, where many submissions may be graded at
    once, and each has a watchdog.

    Raises:
        psutil.NoSuchProcess: the process has ended.
    """
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return list(process.children(recursive=True))
    found: list[psutil.Process] = []
    ahead = [process.pid]
    while ahead:
        tasks = f"/proc/{ahead.pop()}/task"
        threads: list[str] = []
        # a process, or one of its threads, may end meanwhile
        with contextlib.suppress(OSError):
            threads = os.listdir(tasks)
        for thread in threads:
            with (
                contextlib.suppress(OSError, psutil.NoSuchProcess),
                open(f"{tasks}/{thread}/children", encoding="ascii") as children,
            ):
                for pid in map(int, children.read().split()):
                    ahead.append(pid)
                    found.append(psutil.Process(pid))
    if not process.is_running():
        raise psutil.NoSuchProcess(process.pid)
    return found


class ResourceWatchdog:
    """A thread that kills a process and all its descendants when they exceed their limits.

    Args:
        pid: the sandbox's process.
        memory: bytes that its descendants may have resident together.
        seconds: time that a submission has, which a message names.
        spent: how much of that is over.
    """

    def __init__(self, pid: int, memory: int, seconds: float, spent: float = 0.0) -> None:
        self._top = psutil.Process(pid)
        self._memory = memory
        self._until = time.monotonic() + seconds - spent
        self._seconds = seconds
        self._done = threading.Event()
        #: by process, the resident bytes that it shared when the kernel was last asked
        self._shared: dict[int, int] = {}
        self._looks = 0
        #: the diagnosis and its message, once it has killed
        self.reason: tuple[Diagnosis, str] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True, name="resource-watchdog")
        self._thread.start()

    def _watch(self) -> None:
        # the sandbox may end first; any other exception is a fault, and must not be hidden
        with contextlib.suppress(psutil.NoSuchProcess):
            while not self._done.wait(_PERIOD):
                if time.monotonic() > self._until:
                    self._end(Diagnosis.TIMEOUT, over_time(self._seconds))
                    return
                used = self.resident()
                if used > self._memory:
                    message = (
                        f"the ranks together used {used >> 20} MB;"
                        f" {self._memory >> 20} MB is the limit"
                    )
                    self._end(Diagnosis.MEMORY_LIMIT, message)
                    return

    def resident(self) -> int:
        """Return the bytes that the descendants have resident, with shared memory counted once.

        What a forked process shares with its parent is resident in both: hundreds of megabytes,
        with torch in it.  The kernel needs milliseconds a process to say how much that is, so it
        is asked only when the limit seems exceeded, and from then on once a second, since a
        process that writes to shared memory gets a copy of its own.
        """
        resident: dict[int, int] = {}
        processes = descendants(self._top)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                resident[process.pid] = memory.rss - memory.shared
        self._looks += 1
        used = sum(n - self._shared.get(pid, 0) for pid, n in resident.items())
        if used > self._memory or (self._shared and self._looks % _REFRESH == 0):
            used, self._shared = 0, {}
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    own = own_memory(process)
                    used += own
                    self._shared[process.pid] = max(resident.get(process.pid, 0) - own, 0)
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


def grade(
    request: GradingRequest, catalogue: Catalogue[Exercise], report: Callable[[GradingEvent], None]
) -> None:
    """Judge a submission, and report every verdict as it is found.

    Every exercise that is due gets a verdict, whatever the submission does.

    Args:
        request: the submission and the limits.
        catalogue: the exercises of the course.
        report: a function that takes :class:`SubmissionPlanned`, then :class:`ExerciseJudged`
            for each exercise whose verdict is not in the store.

    Raises:
        WorldError: no sandbox can be made, for this or any submission.
    """
    if request.overdue is not None:
        _give_up(request, request.overdue, catalogue, report)
        return
    with _SubmissionSandbox(request) as box:
        due = _read(box, request, catalogue)
        prints = {
            name: submission.prints[name]
            for name, submission in due.sources.items()
            if name in submission.prints
        }
        names, notes = tuple(due.sources), tuple(due.notes)
        report(SubmissionPlanned(request.key, names, notes, prints, _files_of(request, due)))
        for name, submission in due.sources.items():
            exercise = catalogue[name]
            mark = fingerprint(exercise, request.digest, request.seed, request.limits.key())
            if request.known.get(name) == mark:
                continue
            report(
                ExerciseJudged(
                    request.key, mark, _judge_exercise(box, request, exercise, submission)
                )
            )


def _files_of(request: GradingRequest, due: GradingPlan) -> tuple[str, ...]:
    """Return the files that answers are taken from, and those of them that these import."""
    chosen = {source.label: source for source in due.sources.values()}
    found = set(chosen)
    for source in chosen.values():
        beside = importable(source.label, request.files)
        imported = [beside[path] for path in source.sources if path in beside]
        found |= {label for label, data in request.files if any(data is one for one in imported)}
    return tuple(label for label, _ in request.files if label in found)


def _give_up(
    request: GradingRequest,
    names: Sequence[str],
    catalogue: Catalogue[Exercise],
    report: Callable[[GradingEvent], None],
) -> None:
    """Report a submission that was over its time, without a look at what its files hold."""
    message = over_time(request.limits.submission)
    if not names:  # it was not even read
        chapters = {chapter_of(label, catalogue) for label, _ in request.files}
        names = request.due or [one for one in catalogue if catalogue[one].chapter in chapters]
        report(SubmissionPlanned(request.key, tuple(names), (message,)))
    for exercise in map(catalogue.__getitem__, names):
        mark = fingerprint(exercise, request.digest, request.seed, request.limits.key())
        if request.known.get(exercise.name) != mark:
            verdict = replace(
                _skipped_verdict(exercise, request.seed),
                status=Status.FAILED,
                diagnosis=Diagnosis.TIMEOUT,
                message=message,
            )
            report(ExerciseJudged(request.key, mark, verdict))


def over_time(seconds: float) -> str:
    """Return the message on a submission that has taken all its seconds."""
    return f"the submission took over {seconds:g} s in all; grade --timeout raises that limit"


def _read(
    box: _SubmissionSandbox, request: GradingRequest, catalogue: Catalogue[Exercise]
) -> GradingPlan:
    """Parse the files of a submission, and plan its exercises."""
    files: list[Submission] = []
    notes: list[str] = []
    for label, data in request.files:
        beside = importable(label, request.files)
        try:
            files.append(_parse_in(box, label, data, catalogue, beside))
        except UnreadableFile as error:
            notes.append(str(error))
    # a label may have thousands of characters, and a file thousands of faults
    faults = (
        f"{file.label}: {'' if fault.label in file.label else f'{fault.label}, '}"
        f"line {fault.line}: {fault.message}"
        for file in files
        for fault in file.unparsed
    )
    due = plan(files, catalogue, request.due)
    chapters = {catalogue[name].chapter for name in due.sources}
    seen = (  # names that stand elsewhere than at module level
        f"{file.label}: {name}: {found}"
        for file in files
        for name, found in sorted(file.elsewhere.items())
        if due.sources.get(name, file) is file
        and (not chapters or catalogue[name].chapter in chapters)
    )
    if not due.sources:
        what = "the assignment" if request.due else "the course"
        due.notes.append(f"no exercise of {what} was handed in")
    due.notes += islice(seen, 3)
    due.notes = list(bounded(chain(notes, faults, due.notes)))
    return due


def _parse_in(
    box: _SubmissionSandbox,
    label: str,
    data: bytes,
    catalogue: Catalogue[Exercise],
    beside: Mapping[str, bytes],
) -> Submission:
    try:
        return parse(box.launcher(), data, label, catalogue, beside=beside)
    except WorldError:
        if box.reason is None:
            raise
        raise UnreadableFile(f"{label} cannot be read: {box.reason[1]}") from None


def _judge_exercise(
    box: _SubmissionSandbox, request: GradingRequest, exercise: Exercise, submission: Submission
) -> ExerciseVerdict:
    """Return the verdict on one exercise, tried a second time if the grader itself fails."""
    settings = Settings(
        seed=request.seed,
        seconds=request.limits.call,
        memory=request.limits.memory,
        # the watchdog comes first, and says which limit it was
        patience=min(request.limits.exercise, box.left + 1),
        until=box.deadline,
        answer=_ANSWER,
        questions=True,
    )
    verdict = _skipped_verdict(exercise, settings.seed)
    for _ in range(2):
        if box.spent:
            break
        try:
            verdict = Judge(box.launcher(), settings).judge(exercise, submission)
        except Exception as error:
            # a bug of the grader costs this verdict, and is shown; the other verdicts stay
            message = f"the grader failed, not the answer: {type(error).__name__}: {error}"
            verdict = replace(verdict, status=Status.ERROR, message=message)
        if verdict.status is not Status.ERROR or box.reason is not None:
            break
        box.discard()
    if box.reason is not None:
        if not verdict.passed:
            # killing the sandbox looks like a crash of the ranks, or like a fault of the grader
            diagnosis, message = box.reason
            verdict = replace(verdict, status=Status.FAILED, diagnosis=diagnosis, message=message)
        box.discard()
    return verdict


def _skipped_verdict(exercise: Exercise, seed: int) -> ExerciseVerdict:
    """Return the verdict of an exercise that was not judged: skipped, without points."""
    return ExerciseVerdict(
        exercise.name, exercise.chapter, Status.SKIPPED, 0.0, exercise.points, seed=seed
    )


class _SubmissionSandbox:
    """A submission's sandbox, which is made again after it has been ended."""

    def __init__(self, request: GradingRequest) -> None:
        self._hidden = [Path(folder) for folder in request.hidden]
        self._limits = request.limits
        #: when the submission has had all its time
        self.deadline = time.monotonic() + request.limits.submission
        self._launcher: Sandbox | ForkServer | None = None
        self._watchdog: ResourceWatchdog | None = None

    @property
    def reason(self) -> tuple[Diagnosis, str] | None:
        """The diagnosis and its message, if the watchdog has ended the sandbox."""
        return self._watchdog.reason if self._watchdog is not None else None

    @property
    def left(self) -> float:
        """The seconds that the submission may still take."""
        return max(self.deadline - time.monotonic(), 0.0)

    @property
    def spent(self) -> bool:
        """Whether the submission has had all its time."""
        return self.reason is not None and self.reason[0] is Diagnosis.TIMEOUT

    def launcher(self) -> Sandbox | ForkServer:
        """Return the server in the sandbox, and start it if it is not running."""
        if self._launcher is None:
            self._launcher = new_sandbox(self._hidden) if self._limits.sandbox else ForkServer()
            memory, seconds = self._limits.memory, self._limits.submission
            pid, spent = self._launcher.pid, seconds - self.left
            self._watchdog = ResourceWatchdog(pid, memory, seconds, spent)
        return self._launcher

    def discard(self) -> None:
        """End the sandbox; :meth:`launcher` starts another one."""
        if self._launcher is not None and not self.spent:
            self._close()

    def _close(self) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
        if self._launcher is not None:
            self._launcher.close()
        self._launcher = self._watchdog = None

    def __enter__(self) -> _SubmissionSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


# As a process, which engines start. -----------------------------------------------
#
# Requests and events are pickled.  Both are the grader's own, and no submission's code runs in
# this process.


def serve_request(request: GradingRequest, report: Callable[[GradingEvent], None]) -> None:
    """Judge a submission, and report its end; an exception is reported and not raised."""
    try:
        grade(request, discover(), report)
    except Exception as error:
        report(SubmissionLost(request.key, f"{type(error).__name__}: {error}"))
    else:
        report(SubmissionJudged(request.key))


def serve(pipe: Connection[Any, Any]) -> None:
    """Judge the requests that come through a pipe, until it is closed."""
    # if the parent is killed, the verdicts found here would be lost anyway
    die_with_parent()
    # Ctrl-C, and the end of the terminal, are the parent's to handle
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # on SIGTERM it ends the processes it has started, and removes the files it has written
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # these objects stay for good, so the collector need not scan them again and again
    gc.freeze()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pipe.send(WorkerReady())
        while True:
            serve_request(pipe.recv(), pipe.send)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
