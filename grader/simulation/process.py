"""The process that simulates ranks: it runs them, and reports the outcome."""

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
from grader.rank.calling import raised, run, warnings_to
from grader.rank.torch_startup import LEFT_OUT, uncompiled
from grader.simulation.builtin import BuiltinCall, Builtins, Disagreement, Work, is_channel
from grader.simulation.calls import RankGenerators, installed, rank_clock_and_generators
from grader.simulation.clusters import Cluster
from grader.simulation.recording import CallRecord, RankRecorder, stands_at
from grader.simulation.scheduler import SimulatedRequest
from grader.simulation.world import MessageCounter, SimulatedWorld, TraceRecorder, sort_of
from grader.trace.wildcard_schedules import WildcardPolicy

__all__ = ["prepare", "simulated"]


def prepare(request: Simulate) -> None:
    """Set this process's folder, path and limits, before its first simulation."""
    os.chdir(request.folder)
    sys.path[:] = request.path or sys.path
    torch.set_num_threads(1)
    process_limits.limit_memory(request.memory)
    if request.sealed:
        process_limits.seal(subgroups=False)


def simulated(request: Simulate, tell: Callable[[Answered], None]) -> Simulated:
    """Run a simulation, and return its outcome, whatever the submission does.

    Args:
        request: what to simulate, and with which limits.
        tell: called with the result of each rank in turn, if all ranks have returned.
    """
    arguments = [unpack(packed) for packed in request.arguments]
    size = len(arguments)
    ledger = MessageCounter(size) if request.counted else None
    load = loader(Program.from_bytes(request.program), [request.entry], is_students)
    runs = [_RankRun(request, load, own) for own in arguments]
    network = msgspec.msgpack.decode(request.cluster, type=Cluster).network(size)
    world = SimulatedWorld([one.run for one in runs], network, request.eager, ledger)
    recorder = TraceRecorder(world, request.recorded) if request.recorded else None
    allowed = None if request.allowed is None else frozenset(request.allowed)
    builtins = Builtins(request.algorithms, allowed)
    forced = {(rank, op): source for rank, op, source in request.forced}
    policy = WildcardPolicy(forced, request.lowest)
    record = CallRecord(world, request.recorded, allowed, policy) if request.recorded else None

    def remark(text: str, file: str, line: int) -> None:
        builtins.remark(world.current.number, text, file, line)

    told = remark if record is None else record.remark
    for number, one in enumerate(runs):
        one.recorder = recorder
        one.reporter = record.recorders[number] if record is not None else None
        one.remark = told
    with (
        installed(world, builtins, record),
        rank_clock_and_generators(world, request.seed) as generators,
        warnings_to(told),
    ):
        world.run()
        if record is not None:
            record.finish()
    return _outcome(
        request, runs, world, builtins, generators, arguments, recorder, record, ledger, tell
    )


def _outcome(
    request: Simulate,
    runs: Sequence[_RankRun],
    world: SimulatedWorld,
    builtins: Builtins,
    generators: RankGenerators,
    arguments: Sequence[Any],
    recorder: TraceRecorder | None,
    record: CallRecord | None,
    ledger: MessageCounter | None,
    tell: Callable[[Answered], None],
) -> Simulated:
    fine = all(rank.ended is not None and rank.error is None for rank in world.ranks)
    # a submission that catches the exception of a wrong call has still made it
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
            rank: raised("call", runs[rank].explained(error), runs[rank].unwritten)
            for rank, error in errors.items()
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
        reports=record.reports if record is not None and not record.full else [],
        drew=generators.used,
    )


def _tell_answers(
    request: Simulate,
    world: SimulatedWorld,
    arguments: Sequence[Any],
    tell: Callable[[Answered], None],
    errors: dict[int, BaseException],
) -> int:
    """Send the result of each rank; return their bytes if these exceed the limit, or 0.

    Results are packed one at a time, so that they are never all in memory twice.  A result that
    cannot be packed counts as an error of its rank.
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
    """Return what ranks have raised, without disagreements, which are reported as two calls."""
    errors: dict[int, BaseException] = {
        rank.number: rank.error
        for rank in world.ranks
        if rank.error is not None and not isinstance(rank.error, Disagreement)
    }
    return errors | builtins.refused


class _RankRun:
    """The run of one rank, which loads its own copy of the program and calls it."""

    def __init__(
        self, request: Simulate, load: Callable[[], LoadedProgram], arguments: Any
    ) -> None:
        self._request = request
        self._load = load
        self._arguments = arguments
        self.recorder: TraceRecorder | None = None
        self.reporter: RankRecorder | None = None
        self.remark: Callable[[str, str, int], None] | None = None
        self.unwritten = False
        self._loaded: LoadedProgram | None = None

    def explained(self, error: BaseException) -> BaseException:
        """Return what an exception of this rank is reported as."""
        return error if self._loaded is None else self._loaded.explained(error)

    def run(self) -> Any:
        request, recorder = self._request, self.recorder
        loaded = self._loaded = self._load()
        adapter = cloudpickle.loads(request.adapter) if request.adapter else None
        if recorder is not None:
            recorder.entered()
        self._remark_uncompiled()
        try:
            value = run(loaded, request.entry, adapter, self._arguments)
        except BaseException as error:
            self.unwritten = isinstance(error, NotImplementedError) and loaded.unwritten(
                request.entry
            )
            if recorder is not None:
                recorder.left(raised=True)
            raise
        finally:
            self._remark_uncompiled()
            if self.reporter is not None:
                self.reporter.say()
        if recorder is not None:
            recorder.left(raised=False)
        return value

    def _remark_uncompiled(self) -> None:
        if self.remark is not None and (place := uncompiled()) is not None:
            self.remark(LEFT_OUT, *place)


def _pending(world: SimulatedWorld, builtins: Builtins) -> Iterator[UnmatchedEnd]:
    """Yield what was left unmatched; first the calls that no rank waits for, as they came first."""
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
    """Yield the first two calls that do not match, if there are any."""
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
        ("", 0) if waits is None else stands_at(waits.rank),
        signatures=list(call.signatures),
    )


def _messages(world: SimulatedWorld) -> Iterator[UnmatchedEnd]:
    """Yield the messages without another end, in the order of their posts."""
    for request, tag, group in sorted(_ends(world), key=lambda one: one[0].order):
        yield _end(request, tag, group)


def _ends(world: SimulatedWorld) -> list[tuple[SimulatedRequest, int, str]]:
    """Return the ends of messages that have no other end, with tag and group."""
    found: list[tuple[SimulatedRequest, int, str]] = []
    for rank in range(world.size):
        for queues in (world.sends[rank], world.receives[rank]):
            for channel, queue in queues.items():
                tag, group = sort_of(channel)
                # those of a collective are reported as the collective
                if not is_channel(group):
                    found += [(request, tag, group) for request in queue]
        found += [(request, *sort) for sort, request in world.wildcards[rank]]
    return found


def _left(world: SimulatedWorld) -> Iterator[UnmatchedEnd]:
    """Yield what is left when all ranks have returned: unmatched or unwaited requests."""
    single = {request: (tag, group) for request, tag, group in _ends(world)}
    for request in {**world.open, **dict.fromkeys(single)}:
        yield _end(request, *single.get(request, (0, WORLD)), matched=request not in single)


def _misfits(world: SimulatedWorld) -> Iterator[UnmatchedEnd]:
    """Yield the two ends of each message whose ends do not match."""
    for misfit in world.misfits:
        for request in (misfit.send, misfit.receive):
            end = _end(request)
            if not end.file:  # posted by a collective, beside what its rank does
                file, line = stands_at(world.ranks[end.rank])
                end = msgspec.structs.replace(end, file=file, line=line)
            yield end


def _end(
    request: SimulatedRequest, tag: int = 0, group: str = WORLD, matched: bool = False
) -> UnmatchedEnd:
    tensor = request.tensor
    awaited = request.rank.waits is request
    stands = stands_at(request.rank) if awaited else ("", 0)
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
    """Return the file and line of the student's code that posted a request, if known."""
    if request.place is None:
        return None
    code, at = request.place
    if isinstance(code, str):
        return code, at
    if not is_students(code.co_filename):
        return None
    lines = (line for begin, end, line in code.co_lines() if begin <= at < end)
    return code.co_filename, next(lines, None) or code.co_firstlineno
