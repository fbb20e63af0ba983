"""Inside the process that simulates ranks: run them, and say what became of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cloudpickle
import msgspec
import torch

from grader.core.codec import pack, pack_answer, unpack
from grader.core.events import WORLD
from grader.core.program import LoadedProgram, Program, loader
from grader.core.source_locations import is_students
from grader.core.values import dtype_name
from grader.core.wire import Answered, Simulate, Simulated, UnmatchedEnd
from grader.rank import process_limits
from grader.rank.calling import raised, run
from grader.simulation.algorithms import is_channel
from grader.simulation.builtin import BuiltinCall, Builtins, Disagreement, Work
from grader.simulation.calls import installed, surroundings
from grader.simulation.clusters import Cluster
from grader.simulation.scheduler import Rank, SimulatedRequest
from grader.simulation.trace_recorder import TraceRecorder
from grader.simulation.world import MessageCounter, SimulatedWorld, sort_of

__all__ = ["simulated"]


def simulated(request: Simulate, tell: Callable[[Answered], None]) -> Simulated:
    """Run what a request asks for; whatever the answer does, it is told.

    Args:
        request: what to simulate.
        tell: takes what the ranks hold, one after the other, if they have all returned.
    """
    os.chdir(request.folder)
    sys.path[:] = request.path or sys.path
    torch.set_num_threads(1)
    process_limits.limit_memory(request.memory)
    if request.sealed:
        from grader.rank.seccomp import seal

        seal(subgroups=False)
    arguments = [unpack(packed) for packed in request.arguments]
    size = len(arguments)
    ledger = MessageCounter(size) if request.counted else None
    load = loader(Program.from_bytes(request.program), is_students)
    lives = [_RankRun(request, load, one) for one in arguments]
    network = msgspec.msgpack.decode(request.cluster, type=Cluster).network(size)
    world = SimulatedWorld([life.live for life in lives], network, request.eager, ledger)
    recorder = TraceRecorder(world, request.recorded) if request.recorded else None
    for life in lives:
        life.recorder = recorder
    allowed = None if request.allowed is None else frozenset(request.allowed)
    builtins = Builtins(request.algorithms, allowed)
    with installed(world, builtins), surroundings(world):
        world.run()
    return _told(request, lives, world, builtins, arguments, recorder, ledger, tell)


def _told(
    request: Simulate,
    lives: Sequence[_RankRun],
    world: SimulatedWorld,
    builtins: Builtins,
    arguments: Sequence[Any],
    recorder: TraceRecorder | None,
    ledger: MessageCounter | None,
    tell: Callable[[Answered], None],
) -> Simulated:
    fine = all(rank.ended is not None and rank.error is None for rank in world.ranks)
    # an answer that catches what it was told with has still done it
    fine = fine and not world.misfits and not builtins.refused and not builtins.disagreements
    errors, excess = _errors(world, builtins), 0
    if fine and request.answered:
        excess = _tell_answers(request, world, arguments, tell, errors)
        fine = not errors
    recorded = recorder is not None and not recorder.full
    return Simulated(
        ended=[str(rank.ended) for rank in world.ranks if rank.ended is not None] if fine else [],
        messages=world.messages,
        nbytes=world.bytes,
        raised={
            rank: raised("call", error, lives[rank].unwritten) for rank, error in errors.items()
        },
        returned=[rank.number for rank in world.ranks if rank.ended is not None],
        pending=[
            *_misfits(world),
            *(_mismatch(builtins) if builtins.disagreements else ()),
            *(_left(world) if fine else _pending(world, builtins)),
        ],
        groups={} if fine else builtins.members,
        events=recorder.events if recorder is not None and recorded else [],
        overflow=recorder is not None and recorder.full,
        tally=ledger.tally() if ledger is not None else None,
        outside=list(builtins.warned),
        excess=excess,
    )


def _tell_answers(
    request: Simulate,
    world: SimulatedWorld,
    arguments: Sequence[Any],
    tell: Callable[[Answered], None],
    errors: dict[int, BaseException],
) -> int:
    """Tell what each rank holds; the bytes so far once they are too many, or 0.

    One at a time: nothing has to hold all of them twice.  What cannot be told is an error of
    its rank's.
    """
    total = 0
    for rank, own in zip(world.ranks, arguments, strict=True):
        try:
            value, omitted = pack_answer(rank.value, request.answer_limit)
            answer = Answered(value, pack(own, request.answer_limit), omitted)
        except Exception as error:
            errors[rank.number] = error
            break
        rank.value = None
        total += len(answer.value) + len(answer.arguments)
        if total > request.answers:
            return total
        tell(answer)
    return 0


def _errors(world: SimulatedWorld, builtins: Builtins) -> dict[int, BaseException]:
    """What ranks have raised, but for what is told by the calls of two."""
    errors: dict[int, BaseException] = {
        rank.number: rank.error
        for rank in world.ranks
        if rank.error is not None and not isinstance(rank.error, Disagreement)
    }
    return errors | builtins.refused


class _RankRun:
    """What one rank does: load the program for itself, and call it."""

    def __init__(
        self, request: Simulate, load: Callable[[], LoadedProgram], arguments: Any
    ) -> None:
        self._request = request
        self._load = load
        self._arguments = arguments
        self.recorder: TraceRecorder | None = None
        self.unwritten = False

    def live(self) -> Any:
        request, recorder = self._request, self.recorder
        loaded = self._load()
        adapter = cloudpickle.loads(request.adapter) if request.adapter else None
        if recorder is not None:
            recorder.entered()
        try:
            value = run(loaded, request.entry, adapter, self._arguments)
        except BaseException as error:
            self.unwritten = isinstance(error, NotImplementedError) and loaded.unwritten(
                request.entry
            )
            if recorder is not None:
                recorder.left(raised=True)
            raise
        if recorder is not None:
            recorder.left(raised=False)
        return value


def _pending(world: SimulatedWorld, builtins: Builtins) -> Iterator[UnmatchedEnd]:
    """What nobody had answered; first what nobody waits for, as it came first."""
    calls = [(call, _awaited(world, builtins, call)) for call in builtins.open()]
    yield from (_call(call, None) for call, waits in calls if waits is None)
    yield from _messages(world)
    yield from (_call(call, waits) for call, waits in calls if waits is not None)


def _awaited(
    world: SimulatedWorld, builtins: Builtins, call: BuiltinCall
) -> SimulatedRequest | Work | None:
    rank = world.ranks[call.rank]
    return rank.waits if builtins.awaited(rank) is call else None


def _mismatch(builtins: Builtins) -> Iterator[UnmatchedEnd]:
    """The two calls that are not of one collective, if there are such."""
    for rank in sorted(builtins.disagreements)[:1]:
        yield from (_call(call, None) for call in builtins.disagreements[rank].calls)


def _call(call: BuiltinCall, waits: SimulatedRequest | Work | None) -> UnmatchedEnd:
    return UnmatchedEnd(
        call.rank,
        call.kind,
        call.peer,
        0,
        call.group,
        0,
        0,
        "",
        waits is not None,
        call.site.file,
        call.site.line,
        call.detail,
        ("", 0) if waits is None else _line(waits.rank),
        signatures=list(call.signatures),
    )


def _messages(world: SimulatedWorld) -> Iterator[UnmatchedEnd]:
    """Messages without another end, as they were posted."""
    for request, tag, group in sorted(_ends(world), key=lambda one: one[0].order):
        yield _end(request, tag, group)


def _ends(world: SimulatedWorld) -> list[tuple[SimulatedRequest, int, str]]:
    """Ends of messages that have no other end, with tag and group."""
    found: list[tuple[SimulatedRequest, int, str]] = []
    for rank in range(world.size):
        for queues in (world.sends[rank], world.receives[rank]):
            for channel, queue in queues.items():
                tag, group = sort_of(channel)
                # a collective's are told as such
                if not is_channel(group):
                    found += [(request, tag, group) for request in queue]
        found += [(request, *sort) for sort, request in world.anybody[rank]]
    return found


def _left(world: SimulatedWorld) -> Iterator[UnmatchedEnd]:
    """What is left when all ranks have returned: nobody's messages, and requests not waited for."""
    single = {request: (tag, group) for request, tag, group in _ends(world)}
    for request in {**world.open, **dict.fromkeys(single)}:
        yield _end(request, *single.get(request, (0, WORLD)), matched=request not in single)


def _misfits(world: SimulatedWorld) -> Iterator[UnmatchedEnd]:
    """The two ends of each message that do not fit each other."""
    for misfit in world.misfits:
        for request in (misfit.send, misfit.receive):
            end = _end(request)
            if not end.file:  # a collective's: it was posted beside what its rank does
                file, line = _line(world.ranks[end.rank])
                end = msgspec.structs.replace(end, file=file, line=line)
            yield end


def _end(
    request: SimulatedRequest, tag: int = 0, group: str = WORLD, matched: bool = False
) -> UnmatchedEnd:
    tensor = request.tensor
    awaited = request.rank.waits is request
    stands = _line(request.rank) if awaited else ("", 0)
    file, line = _posted(request) or stands
    return UnmatchedEnd(
        request.rank.number,
        request.kind,
        request.peer,
        tag,
        group,
        tensor.numel(),
        tensor.nbytes,
        dtype_name(tensor.dtype),
        awaited,
        file,
        line,
        "",
        stands,
        matched,
    )


def _posted(request: SimulatedRequest) -> tuple[str, int] | None:
    """The student's line that posted a request, if that is not where its rank stands."""
    if request.place is None:
        return None
    code, at = request.place
    if isinstance(code, str):
        return code, at
    if not is_students(code.co_filename):
        return None
    lines = (line for begin, end, line in code.co_lines() if begin <= at < end)
    return code.co_filename, next(lines, None) or code.co_firstlineno


def _line(rank: Rank) -> tuple[str, int]:
    """Where the student's function of a rank stands."""
    frame = rank.green.gr_frame
    while frame is not None:
        if is_students(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0
