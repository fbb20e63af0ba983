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
from grader.core.wire import Answered, Pending, Simulate, Simulated
from grader.rank import process_limits
from grader.rank.calling import raised, run
from grader.simulation.builtin import Builtins, Call, Disagreement, Work
from grader.simulation.calls import installed, surroundings
from grader.simulation.clusters import Cluster
from grader.simulation.communicator import is_channel
from grader.simulation.mailboxes import Hub, Ledger
from grader.simulation.requests import Rank, Request
from grader.simulation.trace_recorder import Tap

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
    ledger = Ledger(size) if request.counted else None
    load = loader(Program.from_bytes(request.program), is_students)
    lives = [_Life(request, load, one) for one in arguments]
    network = msgspec.msgpack.decode(request.cluster, type=Cluster).network(size)
    hub = Hub([life.live for life in lives], network, request.eager, ledger)
    tap = Tap(hub, request.recorded) if request.recorded else None
    for life in lives:
        life.tap = tap
    allowed = None if request.allowed is None else frozenset(request.allowed)
    builtins = Builtins(request.algorithms, allowed)
    with installed(hub, builtins), surroundings(hub):
        hub.run()
    return _told(request, lives, hub, builtins, arguments, tap, ledger, tell)


def _told(
    request: Simulate,
    lives: Sequence[_Life],
    hub: Hub,
    builtins: Builtins,
    arguments: Sequence[Any],
    tap: Tap | None,
    ledger: Ledger | None,
    tell: Callable[[Answered], None],
) -> Simulated:
    fine = all(rank.ended is not None and rank.error is None for rank in hub.ranks)
    # an answer that catches what it was told with has still done it
    fine = fine and not hub.misfits and not builtins.refused and not builtins.disagreements
    errors, excess = _errors(hub, builtins), 0
    if fine and request.answered:
        excess = _tell_answers(request, hub, arguments, tell, errors)
        fine = not errors
    recorded = tap is not None and not tap.full
    return Simulated(
        ended=[str(rank.ended) for rank in hub.ranks if rank.ended is not None] if fine else [],
        messages=hub.messages,
        nbytes=hub.bytes,
        raised={
            rank: raised("call", error, lives[rank].unwritten) for rank, error in errors.items()
        },
        returned=[rank.number for rank in hub.ranks if rank.ended is not None],
        pending=[
            *_misfits(hub),
            *(_mismatch(builtins) if builtins.disagreements else ()),
            *(_left(hub) if fine else _pending(hub, builtins)),
        ],
        groups={} if fine else builtins.members,
        events=tap.events if tap is not None and recorded else [],
        overflow=tap is not None and tap.full,
        tally=ledger.tally() if ledger is not None else None,
        outside=list(builtins.warned),
        excess=excess,
    )


def _tell_answers(
    request: Simulate,
    hub: Hub,
    arguments: Sequence[Any],
    tell: Callable[[Answered], None],
    errors: dict[int, BaseException],
) -> int:
    """Tell what each rank holds; the bytes so far once they are too many, or 0.

    One at a time: nothing has to hold all of them twice.  What cannot be told is an error of
    its rank's.
    """
    total = 0
    for rank, own in zip(hub.ranks, arguments, strict=True):
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


def _errors(hub: Hub, builtins: Builtins) -> dict[int, BaseException]:
    """What ranks have raised, but for what is told by the calls of two."""
    errors: dict[int, BaseException] = {
        rank.number: rank.error
        for rank in hub.ranks
        if rank.error is not None and not isinstance(rank.error, Disagreement)
    }
    return errors | builtins.refused


class _Life:
    """What one rank does: load the program for itself, and call it."""

    def __init__(
        self, request: Simulate, load: Callable[[], LoadedProgram], arguments: Any
    ) -> None:
        self._request = request
        self._load = load
        self._arguments = arguments
        self.tap: Tap | None = None
        self.unwritten = False

    def live(self) -> Any:
        request, tap = self._request, self.tap
        loaded = self._load()
        adapter = cloudpickle.loads(request.adapter) if request.adapter else None
        if tap is not None:
            tap.entered()
        try:
            value = run(loaded, request.entry, adapter, self._arguments)
        except BaseException as error:
            self.unwritten = isinstance(error, NotImplementedError) and loaded.unwritten(
                request.entry
            )
            if tap is not None:
                tap.left(raised=True)
            raise
        if tap is not None:
            tap.left(raised=False)
        return value


def _pending(hub: Hub, builtins: Builtins) -> Iterator[Pending]:
    """What nobody had answered; first what nobody waits for, as it came first."""
    calls = [(call, _awaited(hub, builtins, call)) for call in builtins.open()]
    yield from (_call(call, None) for call, waits in calls if waits is None)
    yield from _messages(hub)
    yield from (_call(call, waits) for call, waits in calls if waits is not None)


def _awaited(hub: Hub, builtins: Builtins, call: Call) -> Request | Work | None:
    rank = hub.ranks[call.rank]
    return rank.waits if builtins.awaited(rank) is call else None


def _mismatch(builtins: Builtins) -> Iterator[Pending]:
    """The two calls that are not of one collective, if there are such."""
    for rank in sorted(builtins.disagreements)[:1]:
        yield from (_call(call, None) for call in builtins.disagreements[rank].calls)


def _call(call: Call, waits: Request | Work | None) -> Pending:
    return Pending(
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


def _messages(hub: Hub) -> Iterator[Pending]:
    """Messages without another end, as they were posted."""
    for request, tag, group in sorted(_ends(hub), key=lambda one: one[0].order):
        yield _end(request, tag, group)


def _ends(hub: Hub) -> list[tuple[Request, int, str]]:
    """Ends of messages that have no other end, with tag and group."""
    found: list[tuple[Request, int, str]] = []
    for rank in range(hub.size):
        for queues in (hub.sends[rank], hub.receives[rank]):
            for channel, queue in queues.items():
                tag, group = _sort(channel)
                # a collective's are told as such
                if not is_channel(group):
                    found += [(request, tag, group) for request in queue]
        found += [(request, *sort) for sort, request in hub.anybody[rank]]
    return found


def _sort(channel: Any) -> tuple[int, str]:
    return channel[1:] if isinstance(channel, tuple) else (0, WORLD)


def _left(hub: Hub) -> Iterator[Pending]:
    """What is left when all ranks have returned: nobody's messages, and requests not waited for."""
    single = {request: (tag, group) for request, tag, group in _ends(hub)}
    for request in {**hub.open, **dict.fromkeys(single)}:
        yield _end(request, *single.get(request, (0, WORLD)), matched=request not in single)


def _misfits(hub: Hub) -> Iterator[Pending]:
    """The two ends of each message that do not fit each other."""
    for misfit in hub.misfits:
        for request in (misfit.send, misfit.receive):
            end = _end(request)
            if not end.file:  # a collective's: it was posted beside what its rank does
                file, line = _line(hub.ranks[end.rank])
                end = msgspec.structs.replace(end, file=file, line=line)
            yield end


def _end(request: Request, tag: int = 0, group: str = WORLD, matched: bool = False) -> Pending:
    tensor = request.tensor
    awaited = request.rank.waits is request
    stands = _line(request.rank) if awaited else ("", 0)
    file, line = _posted(request) or stands
    return Pending(
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


def _posted(request: Request) -> tuple[str, int] | None:
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
