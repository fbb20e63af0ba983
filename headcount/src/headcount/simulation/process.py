"""The process that simulates ranks: it runs them, and reports the outcome."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import msgspec
import torch

from headcount.core.codec import pack, pack_answer, unpack
from headcount.core.events import (
    WORLD,
    Blocked,
    Completed,
    Event,
    Grouped,
    Matched,
    Posted,
    Signature,
)
from headcount.core.program import LoadedProgram, Program, loader
from headcount.core.source_locations import is_students
from headcount.core.values import dtype_name
from headcount.core.wire import Answered, Simulate, Simulated
from headcount.rank import process_limits
from headcount.rank.calling import raised, run, warnings_to
from headcount.rank.torch_startup import LEFT_OUT, uncompiled
from headcount.simulation.builtin import BuiltinCall, Builtins, Disagreement, is_channel
from headcount.simulation.calls import RankGenerators, clock_and_generators, installed
from headcount.simulation.clusters import Cluster
from headcount.simulation.recording import CallRecord, RankRecorder, stands_at
from headcount.simulation.scheduler import Rank, SimulatedRequest
from headcount.simulation.world import MessageCounter, SimulatedWorld, TraceRecorder, tag_and_group
from headcount.trace.wildcard_schedules import WildcardPolicy

__all__ = ["prepare", "simulated"]


def prepare(request: Simulate) -> None:
    """Set this process's folder, path and limits, before its first simulation."""
    os.chdir(request.folder)
    sys.path[:] = request.path or sys.path
    torch.set_num_threads(1)
    process_limits.limit_memory(request.memory)
    if request.sealed:
        process_limits.seal(subgroups=False)


def simulated(request: Simulate, tell: Callable[[Answered], object]) -> Simulated:
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
        builtins.remark(world.running().number, text, file, line)

    report = remark if record is None else record.remark
    for number, one in enumerate(runs):
        one.recorder = recorder
        one.reporter = record.recorders[number] if record is not None else None
        one.remark = report
    with (
        installed(world, builtins, record),
        clock_and_generators(world, request.seeds) as generators,
        warnings_to(report),
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
    tell: Callable[[Answered], object],
) -> Simulated:
    fine = all(rank.ended is not None and rank.error is None for rank in world.ranks)
    # a submission that catches the exception of a wrong call has still made it
    fine = fine and not world.misfits and not builtins.refused and not builtins.disagreements
    errors, excess = _errors(world, builtins), 0
    if fine and request.answered:
        excess = _tell_answers(request, world, arguments, tell, errors)
        fine = not errors
    recorded = recorder is not None and not recorder.full
    same = builtins.same
    whole = record is not None and not record.full and bool(record.reports)
    whole = whole and record is not None and len(record.reports) + len(same) <= request.recorded
    reports = record.reports if whole and record else _Remains(world, builtins, fine).events
    return Simulated(
        ended=[str(rank.ended) for rank in world.ranks if rank.ended is not None] if fine else [],
        messages=world.messages,
        nbytes=world.bytes,
        raised={
            rank: raised("call", runs[rank].explained(error), runs[rank].unwritten)
            for rank, error in errors.items()
        },
        returned=[rank.number for rank in world.ranks if rank.ended is not None],
        reports=[*reports, *same],
        whole=whole,
        events=recorder.events if recorder is not None and recorded else [],
        overflow=recorder is not None and recorder.full,
        tally=ledger.tally() if ledger is not None else None,
        excess=excess,
        drew=generators.used,
    )


def _tell_answers(
    request: Simulate,
    world: SimulatedWorld,
    arguments: Sequence[Any],
    tell: Callable[[Answered], object],
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
                self.reporter.report_remarks()
        if recorder is not None:
            recorder.left(raised=False)
        return value

    def _remark_uncompiled(self) -> None:
        if self.remark is not None and (place := uncompiled()) is not None:
            self.remark(LEFT_OUT, *place)


#: The tag of messages that have both their ends, which nothing unmatched may have.
_MATCHED = -1


class _Remains:
    """What is left of a run without a record, as the events in which real ranks report it.

    Args:
        world: the simulated ranks, which have ended or will never go on.
        builtins: their collectives.
        complete: whether all ranks have returned, and made no wrong call.

    Attributes:
        events: the events, each with its rank.
    """

    def __init__(self, world: SimulatedWorld, builtins: Builtins, complete: bool) -> None:
        self._world = world
        self._builtins = builtins
        self._numbers = [0] * world.size
        self._waits: list[tuple[int, Blocked]] = []
        self._groups = {WORLD}
        self.events: list[tuple[int, Event | Matched]] = [*builtins.warned, *builtins.raced]
        for misfit in world.misfits:
            self._add_end(misfit.send)
            self._add_end(misfit.receive)
        for rank in sorted(builtins.disagreements)[:1]:
            for call in builtins.disagreements[rank].calls:
                self._add_call(call)
        if complete:
            self._add_left_over()
        else:
            self._add_incomplete()
        # a rank that posts an operation no longer waits, so the waits come last
        self.events += self._waits

    def _add_left_over(self) -> None:
        """Add what is left when all ranks have returned: unmatched or unwaited requests."""
        unmatched = {request: (tag, group) for request, tag, group in _unmatched(self._world)}
        for request in {**self._world.open, **dict.fromkeys(unmatched)}:
            if request in unmatched:
                self._add_end(request, *unmatched[request])
            else:
                self._add_matched(request)

    def _add_incomplete(self) -> None:
        """Add what is not complete; first the calls that no rank waits for, as they came first."""
        ranks, builtins = self._world.ranks, self._builtins
        waiting = []
        for call in builtins.open():
            rank = ranks[call.rank]
            if rank.waits is not None and builtins.awaited(rank) is call:
                waiting.append((call, rank.waits.rank))
            else:
                self._add_call(call)
        for request, tag, group in sorted(_unmatched(self._world), key=lambda end: end[0].order):
            self._add_end(request, tag, group)
        for call, strand in waiting:
            self._add_call(call, strand)

    def _add_call(self, call: BuiltinCall, waiting: Rank | None = None) -> None:
        signatures = list(call.signatures)
        self._post(
            call.rank, call.kind, call.peer, 0, call.group, None, call.detail,
            (call.site.file, call.site.line), waiting, signatures,
        )  # fmt: skip

    def _add_end(self, request: SimulatedRequest, tag: int = 0, group: str = WORLD) -> None:
        rank = request.rank
        place = _posted(request) or stands_at(rank)
        if not place[0]:  # posted by a collective, beside what its rank does
            place = stands_at(self._world.ranks[rank.number])
        waiting = rank if rank.waits is request else None
        self._post(
            rank.number, request.kind, request.peer, tag, group, request.tensor, "", place, waiting
        )

    def _add_matched(self, request: SimulatedRequest) -> None:
        """Add a request that nobody has waited for, and its other end, which is complete."""
        self._add_end(request, _MATCHED, request.group)
        kind = "recv" if request.kind == "send" else "send"
        number = self._post(
            request.peer, kind, request.rank.number, _MATCHED, request.group, request.tensor
        )
        self.events.append((request.peer, Completed(number, 0)))

    def _post(
        self,
        rank: int,
        kind: str,
        peer: int,
        tag: int,
        group: str,
        tensor: torch.Tensor | None,
        detail: str = "",
        place: tuple[str, int] = ("", 0),
        waiting: Rank | None = None,
        signatures: Sequence[Signature] = (),
    ) -> int:
        """Add an operation, and that ``waiting`` is blocked in it; return its number."""
        if group not in self._groups:
            self._groups.add(group)
            self.events.append((rank, Grouped(group, self._builtins.members[group])))
        number, self._numbers[rank] = self._numbers[rank], self._numbers[rank] + 1
        count, nbytes, dtype = 0, 0, ""
        if tensor is not None:
            count, nbytes, dtype = tensor.numel(), tensor.nbytes, dtype_name(tensor.dtype)
        posted = Posted(
            number, kind, peer, tag, group, count, nbytes, dtype, detail,
            blocking=False, deferred=False, file=place[0], line=place[1], time=0,
            signatures=list(signatures),
        )  # fmt: skip
        self.events.append((rank, posted))
        if waiting is not None:
            self._waits.append((rank, Blocked(number, *stands_at(waiting), 0)))
        return number


def _unmatched(world: SimulatedWorld) -> list[tuple[SimulatedRequest, int, str]]:
    """Return the ends of messages that have no other end, with tag and group."""
    found: list[tuple[SimulatedRequest, int, str]] = []
    for rank in range(world.size):
        for queues in (world.sends[rank], world.receives[rank]):
            for channel, queue in queues.items():
                tag, group = tag_and_group(channel)
                # those of a collective are reported as the collective
                if not is_channel(group):
                    found += [(request, tag, group) for request in queue]
        found += [(request, *key) for key, request in world.wildcards[rank]]
    return found


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
