"""A simulation from outside: ask for it, and read what became of the ranks.

It runs in one process, forked like a rank's (:mod:`grader.worlds.simulated`):
whatever the student's code does to torch or Python ends with it.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from grader.errors import WorldError
from grader.program import Program
from grader.simulation.algorithms.catalogue import choose
from grader.simulation.clock import seconds_of
from grader.simulation.network import Flat
from grader.traffic.board import Board
from grader.traffic.events import Blocked, Grouped, Posted
from grader.traffic.waits import deadlock
from grader.verdict import Diagnosis, Failure
from grader.worlds.base import Job, RankResult
from grader.worlds.causes import Causes
from grader.worlds.codec import pack, unpack
from grader.worlds.crew import Crew, Launcher
from grader.worlds.framing import FrameReader, FrameWriter
from grader.worlds.wire import Simulate, Simulated

__all__ = ["MEMORY", "Simulation", "simulate"]

#: Bytes that a simulation may allocate: thousands of ranks, and the tensors of all.
MEMORY = 8 << 30

#: What ranks print is read in pieces of this size, and kept up to a limit.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Simulation:
    """What became of simulated ranks.

    Attributes:
        results: by rank, if all have returned.
        failure: why they have not, or ``None``.
        seconds: of virtual time, when the last rank had returned.
        messages, bytes: that were received.
        output: what all ranks printed, in the order of virtual time.
    """

    results: tuple[RankResult, ...]
    failure: Failure | None
    seconds: float
    messages: int
    bytes: int
    output: str = ""


def simulate(
    launcher: Launcher,
    program: Program,
    job: Job,
    cluster: Flat,
    memory: int = MEMORY,
    algorithms: Mapping[str, str] = MappingProxyType({}),
) -> Simulation:
    """Run a job on simulated ranks, as many as it has arguments for.

    Args:
        launcher: starts the process.
        program: the answer's.
        job: what to call; ``seconds`` are those of the wall clock.
        cluster: says what messages cost.
        memory: bytes that all ranks together may allocate.
        algorithms: names, by collective, of :mod:`grader.simulation.algorithms.catalogue`;
            what is missing has the default.

    Raises:
        RequestError: there is no such collective, or no such algorithm of it.
        WorldError: the process cannot be started.
    """
    choose(algorithms)
    setting = launcher.setting
    request = Simulate(
        program=program.to_bytes(),
        entry=job.entry,
        adapter=job.adapter,
        arguments=[pack(arguments) for arguments in job.arguments],
        alpha=cluster.alpha,
        beta=cluster.beta,
        memory=memory,
        path=setting.path,
        folder=setting.folder,
        answer_limit=job.answer_limit,
        allowed=None if job.allowed is None else sorted(job.allowed),
        algorithms=dict(algorithms),
    )
    crew = launcher.launch(1)
    try:
        listener = _Listener(crew, job)
        listener.ask(request)
        return _read(listener, len(job.arguments))
    finally:
        crew.close()
        launcher.settle()


class _Listener:
    """Hears the one process: its answer, what is printed, and its end."""

    def __init__(self, crew: Crew, job: Job) -> None:
        self._crew = crew
        self._until = time.monotonic() + job.seconds
        self._seconds = job.seconds
        self._limit = job.output_limit
        self._printed = bytearray()
        self.failure: Failure | None = None
        self.answer: Simulated | None = None

    @property
    def output(self) -> str:
        """What was printed."""
        return self._printed.decode("utf-8", "replace")

    def ask(self, request: Simulate) -> None:
        """Send the request and wait for the answer, or for the reason why there is none."""
        control, printed = self._crew.controls[0], self._crew.outputs[0]
        reader = FrameReader()
        try:
            FrameWriter(control).write(request)
        except OSError as error:
            raise WorldError(f"the process of a simulation does not hear: {error}") from error
        open_ends: list[int] = [control.fileno(), printed]
        while self.answer is None and self.failure is None:
            left = self._until - time.monotonic()
            ready, _, _ = select.select(open_ends, [], [], max(left, 0))
            if not ready:
                self.failure = Failure(Diagnosis.TIMEOUT, f"no end after {self._seconds:g} s")
            if printed in ready and not self._take_output(printed):
                open_ends.remove(printed)
            if control.fileno() in ready:
                data = control.recv(1 << 20)
                if not data:
                    self.failure = self._gone()
                for message in reader.feed(data):
                    if isinstance(message, Simulated):
                        self.answer = message

    def _take_output(self, fd: int) -> bool:
        data = os.read(fd, _PIECE)
        self._printed += data
        if len(self._printed) > self._limit:
            del self._printed[self._limit :]
            message = f"the ranks print more than {self._limit // 1024} kB"
            self.failure = Failure(Diagnosis.OUTPUT_LIMIT, message)
        return bool(data)

    def _gone(self) -> Failure:
        causes = Causes(Board(1))
        causes.ended(0, self._crew.status(0), None, self.output)
        found = causes.first()
        assert found is not None
        return Failure(found.diagnosis, f"the process of all ranks: {found.message}")


def _read(listener: _Listener, size: int) -> Simulation:
    answer = listener.answer
    if answer is None:
        return Simulation((), listener.failure, 0.0, 0, 0, listener.output)
    results: Sequence[RankResult] = ()
    failure = None if answer.values else _failure(answer, size)
    if failure is None:
        results = [
            RankResult(unpack(value), tuple(unpack(arguments)))
            for value, arguments in zip(answer.values, answer.arguments, strict=True)
        ]
    seconds = seconds_of(max(map(int, answer.ended), default=0))
    return Simulation(
        tuple(results), failure, seconds, answer.messages, answer.nbytes, listener.output
    )


def _failure(answer: Simulated, size: int) -> Failure:
    """What went wrong: a rank raised, or they wait for each other."""
    board = Board(size)
    causes = Causes(board)
    for rank, raised in answer.raised.items():
        causes.raised(rank, raised)
    for name, members in answer.groups.items():
        for member in members:
            board.take(member, Grouped(name, members))
    numbers = [0] * size
    for end in answer.pending:
        number, numbers[end.rank] = numbers[end.rank], numbers[end.rank] + 1
        posted = Posted(
            number, end.kind, end.peer, end.tag, end.group, end.count, end.nbytes, end.dtype,
            end.detail, False, False, end.file, end.line, 0,
        )  # fmt: skip
        board.take(end.rank, posted)
        if end.awaited:
            board.take(end.rank, Blocked(number, end.file, end.line, 0))
    for rank in answer.returned:
        board.end(rank)
    found = causes.first() or deadlock(board)
    if found is None:
        raise WorldError("a simulation has ended without a result and without a reason")
    return found
