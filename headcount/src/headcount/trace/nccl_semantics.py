"""Whether a run that ended well could hang, or fail, on NCCL.

The calls that the ranks recorded are played again under NCCL's rules, with no process and no clock:

1.  A call is one *kernel*: a collective, a message, or a ``batch_isend_irecv`` with all of its
    messages.  The messages of a batch progress independently of each other.
2.  Nothing is buffered: a message moves while the kernels of both its ends run, and a collective
    while those of all members do.
3.  A rank runs the kernels of one communicator in the order of issue, messages beside collectives.
4.  ``wait()`` lets later kernels of its rank wait, and not the host.  A barrier holds the host.
5.  Tags do not exist: the k-th send from one rank to another meets the k-th receive.
6.  Without a ``device_id``, the communicator of a group is set up by its first collective or batch,
    and a message outside of a batch has a communicator of its two ranks, set up by their first
    message.  The host waits there until all of its ranks have come.  With a ``device_id``, a group
    has one communicator for everything, which is there from the start.
7.  The first messages between two ranks connect them, for all messages of a batch at once, and
    that takes all the ranks at the same time.
8.  Kernels of two communicators may keep each other from running, so that all ranks have to issue
    them in the same order.

``docs/nccl.md`` has the source of each rule.  What hangs under fewer rules hangs under more: a
kernel that may run still may if others run earlier.  So a run is safe if it ends under the
strictest set of rules, whatever the timing, and one that does not end is tried under weaker sets,
to say on what the hang depends.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from headcount.core.verdict import Diagnosis, Failure, Site, Wait, counted, ranks_text
from headcount.trace.deadlock import cycle_of, told
from headcount.trace.trace import Operation, Trace

__all__ = ["nccl_fault", "undecided"]

#: How every message begins.
_UNDER = "under NCCL's rules"

#: Reductions that NCCL does not have.
_BITWISE = frozenset({"BAND", "BOR", "BXOR"})

#: Collectives that connect all ranks of a group pairwise, as messages do.
_PAIRWISE = frozenset({"all_to_all", "gather", "scatter"})

#: Ranks that a message names.
_NAMED = 4

#: A communicator: the name of its group, and its two ranks if it has no more.
_Communicator = tuple[object, ...]


def nccl_fault(trace: Trace) -> Failure | None:
    """Return why a run could hang or fail on NCCL, or ``None`` if it could not.

    The message begins with "under NCCL's rules", and names the condition if there is one.  Where a
    program's own message or call has no other end, the run shows a mistake that has nothing to do
    with NCCL, and nothing is said.  Of a script that has asked for NCCL, these are its rules for
    the groups that speak NCCL alone.

    Args:
        trace: the whole record of a run, from its first operation.
    """
    if any(not op.matched and not op.by_torch for ops in trace.operations for op in ops):
        return None
    return _fault(_without(trace, "gloo", "mixed"))


def undecided(trace: Trace) -> str:
    """Return what NCCL does not allow if all tensors are on GPUs, of groups that may speak it."""
    if "mixed" not in trace.backends.values() or nccl_fault(trace) is not None:
        return ""
    fault = _fault(_without(trace, "gloo"))
    if fault is None:
        return ""
    return (
        "not decided: a group speaks gloo or NCCL, by where a tensor is. If those of these calls"
        f" are on GPUs, {fault.message}"
    )


def _without(trace: Trace, *backends: str) -> Trace:
    """Return the trace without groups of these backends, if a script has asked for NCCL at all."""
    asked = {*trace.backends.values()} & {"nccl", "mixed"}
    left = {name for name, one in trace.backends.items() if asked and one in backends}
    operations = tuple([op for op in ops if op.group not in left] for ops in trace.operations)
    return replace(trace, operations=operations)


def _fault(trace: Trace) -> Failure | None:
    fault = _refused(trace)
    if fault is not None:
        return fault
    return _possible_hang(trace) or _mispaired(trace)


# What NCCL cannot do. -------------------------------------------------------------


def _refused(trace: Trace) -> Failure | None:
    """Return the first call that PyTorch refuses with NCCL."""
    for operations in trace.operations:
        for op in operations:
            if op.wildcard:
                what = "receives from any rank, which NCCL cannot: name the source"
            elif not op.is_message and op.detail in _BITWISE:
                what = f"reduces with {op.detail}, which NCCL does not have"
            else:
                continue
            message = f"{_UNDER}, rank {op.rank} fails at {op.site}: it {what}"
            return Failure(Diagnosis.EXCEPTION, message, op.rank, op.site)
    return None


def _mispaired(trace: Trace) -> Failure | None:
    """Return the first message that ends in another receive without tags, if that is seen."""
    for (_, source, target), (sends, receives) in _ends(trace).items():
        for send, receive in zip(sends, receives, strict=False):
            if send.partner is receive:
                continue
            meets = (
                f"{_UNDER} there are no tags, and rank {source}'s send at {send.site} (tag"
                f" {send.tag}) meets rank {target}'s receive at {receive.site} (tag {receive.tag})"
            )
            diagnosis = Diagnosis.WRONG_VALUE
            what = ", which wants another message: post both in the same order"
            if send.dtype != receive.dtype:
                diagnosis = Diagnosis.DTYPE_MISMATCH
                what = f": {send.dtype} into {receive.dtype}"
            elif send.count != receive.count:
                diagnosis = Diagnosis.SIZE_MISMATCH
                what = f": {counted(send.count, 'element')} into {receive.count:,}"
            return Failure(diagnosis, meets + what, source, send.site)
    return None


def _ends(
    trace: Trace,
) -> dict[tuple[str, int, int], tuple[list[Operation], list[Operation]]]:
    """Return by group, source and target the sends and the receives, in the order of issue."""
    found: dict[tuple[str, int, int], tuple[list[Operation], list[Operation]]] = {}
    for operations in trace.operations:
        for op in operations:
            if op.is_message and op.matched and op.partner is not None:
                pair = (op.rank, op.peer) if op.kind == "send" else (op.peer, op.rank)
                both = found.setdefault((op.group, *pair), ([], []))
                both[op.kind == "recv"].append(op)
    return found


# Kernels. -------------------------------------------------------------------------


class _KernelStage(IntEnum):
    """How far a kernel is."""

    #: The host has not reached its call, or waits there for the communicator.
    NOT_ISSUED = 0
    #: The host waits in its call until its ranks are connected.
    CONNECTING = 1
    #: It waits for earlier kernels.
    ISSUED = 2
    RUNNING = 3
    DONE = 4


@dataclass(eq=False)
class _Kernel:
    """One call of NCCL.

    Attributes:
        rank: its rank.
        index: its place in the order of issue on its rank.
        thread: the thread that issues it.
        parts: the messages of a batch, or the one message or collective that it is.
        communicator: what it runs on.
        ranks: the ranks of the communicator.
        first: whether it is its rank's first on the communicator.
        waited: how many waits of its rank have ended before it was issued.
        needs: for each part, the kernels that must run at the same time; ``None`` where another
            end never comes on this communicator.
        connects: the kernels of other ranks that it connects to.
    """

    rank: int
    index: int
    thread: int
    parts: list[Operation]
    communicator: _Communicator
    ranks: Sequence[int]
    first: bool = False
    waited: int = 0
    needs: list[list[_Kernel] | None] = field(default_factory=list)
    connects: list[_Kernel] = field(default_factory=list)
    stage: _KernelStage = _KernelStage.NOT_ISSUED

    @property
    def holds_host(self) -> bool:
        """Whether the host waits until it is done."""
        return self.parts[0].kind == "barrier"


class _Conditions(NamedTuple):
    """Which of the rules are in force that depend on the set-up, the sizes, or the device.

    Attributes:
        eager: whether the process group was given a ``device_id``.
        buffered: whether a sender need not wait for its receiver.
        reads: whether the host waits for a result after each ``wait()``, as ``.item()`` does.
        connects: whether the ranks of a batch are connected all at once.
        serial: whether a device runs one kernel at a time, in the order of issue, and sets up a
            communicator only when it is idle.
    """

    eager: bool = False
    buffered: bool = False
    reads: bool = False
    connects: bool = False
    serial: bool = False


#: The strictest rules: what ends under them ends under all.
_STRICTEST = _Conditions(connects=True, serial=True)

_READS = "if the host reads a result after its wait(), as .item() does"
_CONNECTS = "if NCCL connects the ranks of a batch all at once"

#: Further rules, from those that nobody can avoid, and the words for what a hang depends on.
_FURTHER: tuple[tuple[_Conditions, str], ...] = (
    (_Conditions(), ""),
    (_Conditions(reads=True), _READS),
    (_Conditions(connects=True), _CONNECTS),
    (_Conditions(reads=True, connects=True), f"{_READS}, and {_CONNECTS}"),
    (
        _Conditions(connects=True, serial=True),
        "if the kernels of two communicators do not run side by side",
    ),
)

_LARGE = "with messages too large for NCCL's buffers"
_LAZY = "without a device_id, so that communicators are set up on first use"
_EAGER = "with a device_id, so that a group has one communicator"


def _kernels(trace: Trace, eager: bool) -> list[list[_Kernel]]:
    """Return by rank the kernels in the order of issue.

    Operations whose other ends never came are left out: torch begins some that it drops.
    """
    kernels = [list(_issued(trace, rank, eager)) for rank in range(trace.world_size)]
    of: dict[tuple[int, int], _Kernel] = {
        (kernel.rank, op.number): kernel
        for mine in kernels
        for kernel in mine
        for op in kernel.parts
    }
    for mine in kernels:
        _count_waits(mine)
    meets = _meetings(kernels)
    for mine in kernels:
        connected: set[tuple[_Communicator, int, int]] = set()
        for kernel in mine:
            for op in kernel.parts:
                if not op.is_message:
                    others = [of[rank, call.number] for rank, call in sorted(op.callers.items())]
                    kernel.needs.append([one for one in others if one is not kernel])
                    if op.kind in _PAIRWISE:
                        pairs = [(kernel.rank, other) for other in kernel.ranks]
                        connected.update((kernel.communicator, *pair) for pair in pairs)
                        connected.update((kernel.communicator, *pair[::-1]) for pair in pairs)
                    continue
                meeting = meets.get((op.rank, op.number))
                kernel.needs.append(None if meeting is None else [meeting])
                pair = (op.rank, op.peer) if op.kind == "send" else (op.peer, op.rank)
                if (kernel.communicator, *pair) not in connected:
                    connected.add((kernel.communicator, *pair))
                    if meeting is not None:
                        kernel.connects.append(meeting)
    return kernels


def _issued(trace: Trace, rank: int, eager: bool) -> Iterator[_Kernel]:
    """Yield the kernels of a rank, with nothing but what the rank itself knows."""
    batches: dict[int, _Kernel] = {}
    used: set[_Communicator] = set()
    index = 0
    for op in trace.operations[rank]:
        if op.makes_group or not op.matched:
            continue
        if op.batch in batches:
            batches[op.batch].parts.append(op)
            continue
        communicator: _Communicator = (op.group,)
        ranks = trace.members(op.group)
        if op.is_message and not op.batch and not eager:
            ranks = sorted((rank, op.peer))
            communicator = (op.group, *ranks)
        kernel = _Kernel(rank, index, op.thread, [op], communicator, ranks)
        kernel.first = communicator not in used
        used.add(communicator)
        if op.batch:
            batches[op.batch] = kernel
        yield kernel
        index += 1


def _waits(kernels: Sequence[_Kernel]) -> list[tuple[int, _Kernel]]:
    """Return the ends of a rank's waits, in their order, each with the kernel that was awaited."""
    ends = [
        (op.done, kernel)
        for kernel in kernels
        for op in kernel.parts
        if op.blocked is not None and op.done is not None
    ]
    return sorted(ends, key=lambda end: end[0])


def _count_waits(kernels: Sequence[_Kernel]) -> None:
    """Set for each kernel of a rank how many waits have ended before it was issued."""
    ends = [time for time, _ in _waits(kernels)]
    count = 0
    for kernel in kernels:
        while count < len(ends) and ends[count] <= kernel.parts[0].posted:
            count += 1
        kernel.waited = count


#: The messages of one communicator from one rank to another, in the order of issue.
_Ends = dict[tuple[_Communicator, int, int], list[tuple[_Kernel, Operation]]]


def _meetings(kernels: Sequence[Sequence[_Kernel]]) -> dict[tuple[int, int], _Kernel]:
    """Return for each end of a message the kernel of its other end, if there is one."""
    sends: _Ends = defaultdict(list)
    receives: _Ends = defaultdict(list)
    for mine in kernels:
        for kernel in mine:
            for op in kernel.parts:
                if op.kind == "send":
                    sends[kernel.communicator, op.rank, op.peer].append((kernel, op))
                elif op.kind == "recv":
                    receives[kernel.communicator, op.peer, op.rank].append((kernel, op))
    meets: dict[tuple[int, int], _Kernel] = {}
    for channel, sent in sends.items():
        for (sender, send), (receiver, receive) in zip(
            sent, receives.get(channel, ()), strict=False
        ):
            meets[send.rank, send.number] = receiver
            meets[receive.rank, receive.number] = sender
    return meets


# Playing them. --------------------------------------------------------------------


class _Play:
    """The kernels of all ranks, played under some rules until nothing can go on.

    Args:
        trace: the record.
        rules: which rules are in force.
    """

    def __init__(self, trace: Trace, rules: _Conditions) -> None:
        self.rules = rules
        self.kernels = _kernels(trace, rules.eager)
        ranks = range(len(self.kernels))
        self._waits = [[kernel for _, kernel in _waits(mine)] for mine in self.kernels]
        #: by rank, how many of its waits are over, and of its kernels from the first on are done
        self._over = [0 for _ in ranks]
        self._done = [0 for _ in ranks]
        #: by rank and thread, the kernels that its host has yet to issue
        self._hosts: list[dict[int, deque[_Kernel]]] = [defaultdict(deque) for _ in ranks]
        #: by rank and communicator, what has to be done in this order
        self._queues: list[dict[_Communicator, deque[_Kernel]]] = [
            defaultdict(deque) for _ in ranks
        ]
        for rank, mine in enumerate(self.kernels):
            for kernel in mine:
                self._hosts[rank][kernel.thread].append(kernel)
                self._queues[rank][kernel.communicator].append(kernel)
        #: by communicator, the ranks whose hosts have come to set it up
        self.came: dict[_Communicator, set[int]] = defaultdict(set)
        self._connecting: dict[_Kernel, None] = {}
        self._changed = dict.fromkeys(ranks)
        while self._changed:
            rank = next(iter(self._changed))
            del self._changed[rank]
            self._go_on(rank)

    @property
    def stuck(self) -> dict[int, _Kernel]:
        """By rank that does not end, its first kernel that is not done."""
        return {
            rank: mine[self._done[rank]]
            for rank, mine in enumerate(self.kernels)
            if self._done[rank] < len(mine)
        }

    def _go_on(self, rank: int) -> None:
        moved = True
        while moved:
            moved = False
            for queue in self._hosts[rank].values():
                while queue and self._issue(queue[0]):
                    if queue[0].holds_host and queue[0].stage is not _KernelStage.DONE:
                        break
                    queue.popleft()
                    moved = True
            for queue in self._queues[rank].values():
                while queue and self._run(queue[0]):
                    moved = True

    def _tell(self, kernel: _Kernel) -> None:
        """Let the other ranks of a kernel see that it has come further."""
        for others in kernel.needs:
            self._changed.update((one.rank, None) for one in others or ())

    # The host. -----------------------------------------------------------------------

    def _issue(self, kernel: _Kernel) -> bool:
        """Let the host issue a kernel if it can; return whether it is issued."""
        rank, rules = kernel.rank, self.rules
        if kernel.stage >= _KernelStage.ISSUED:
            return True
        if kernel.stage is _KernelStage.NOT_ISSUED:
            if rules.reads and self._over[rank] < kernel.waited:
                return False
            sets_up = (kernel.first and not rules.eager) or (rules.connects and kernel.connects)
            if rules.serial and sets_up and self._done[rank] < kernel.index:
                return False
            if not rules.eager and not self._set_up(kernel):
                return False
            if rules.connects and kernel.connects:
                kernel.stage = _KernelStage.CONNECTING
                self._connecting[kernel] = None
                self._connect()
                return kernel.stage >= _KernelStage.ISSUED
            self._start(kernel)
        return kernel.stage >= _KernelStage.ISSUED

    def _start(self, kernel: _Kernel) -> None:
        kernel.stage = _KernelStage.ISSUED
        self._changed[kernel.rank] = None

    def _set_up(self, kernel: _Kernel) -> bool:
        """Return whether the communicator is there, at which the host comes if it is the first."""
        came, ranks = self.came[kernel.communicator], kernel.ranks
        if kernel.first and kernel.rank not in came:
            came.add(kernel.rank)
            if len(came) == len(ranks):
                self._changed.update(dict.fromkeys(ranks))
        return len(came) == len(ranks)

    def _connect(self) -> None:
        """Issue the kernels that wait for connections, of which all other ranks are there."""
        unconnected = self.unconnected()
        for kernel in [one for one in self._connecting if one not in unconnected]:
            del self._connecting[kernel]
            self._start(kernel)

    def unconnected(self) -> dict[_Kernel, list[_Kernel]]:
        """Return the kernels that cannot be connected yet, each with those that it lacks.

        A rank is connected when all ranks that it connects to are there, and are connected too.
        """
        ready, found = dict(self._connecting), dict[_Kernel, list[_Kernel]]()
        while True:
            lost = {}
            for kernel in ready:
                lacks = [
                    one
                    for one in kernel.connects
                    if one not in ready and one.stage < _KernelStage.ISSUED
                ]
                if lacks:
                    lost[kernel] = lacks
            if not lost:
                return found
            found |= lost
            for kernel in lost:
                del ready[kernel]

    # The device. ---------------------------------------------------------------------

    def _run(self, kernel: _Kernel) -> bool:
        """Let the next kernel of a communicator run, and end, if it can; return whether it ends."""
        rank = kernel.rank
        if kernel.stage is _KernelStage.ISSUED:
            if self.rules.serial and self._done[rank] < kernel.index:
                return False
            if self._over[rank] < kernel.waited:
                return False
            kernel.stage = _KernelStage.RUNNING
            self._tell(kernel)
        if kernel.stage is not _KernelStage.RUNNING or self.lacking(kernel):
            return False
        self._end(kernel)
        return True

    def lacking(self, kernel: _Kernel) -> list[tuple[Operation, list[_Kernel] | None]]:
        """Return the parts of a running kernel that cannot end, each with what it lacks.

        ``None`` stands for another end that never comes.
        """
        found: list[tuple[Operation, list[_Kernel] | None]] = []
        for op, others in zip(kernel.parts, kernel.needs, strict=True):
            if self.rules.buffered:
                others = _needed(op, others)
            if others is None:
                found.append((op, None))
                continue
            lacks = [one for one in others if one.stage < _KernelStage.RUNNING]
            if lacks:
                found.append((op, lacks))
        return found

    def _end(self, kernel: _Kernel) -> None:
        kernel.stage = _KernelStage.DONE
        rank = kernel.rank
        self._queues[rank][kernel.communicator].popleft()
        mine, waits = self.kernels[rank], self._waits[rank]
        while self._done[rank] < len(mine) and mine[self._done[rank]].stage is _KernelStage.DONE:
            self._done[rank] += 1
        while self._over[rank] < len(waits) and waits[self._over[rank]].stage is _KernelStage.DONE:
            self._over[rank] += 1


def _needed(op: Operation, others: list[_Kernel] | None) -> list[_Kernel] | None:
    """Return of the kernels that meet in a message or collective those it needs with buffers."""
    gives = op.kind == "send"
    if op.kind in ("broadcast", "scatter"):
        gives = op.rank == op.peer
        others = [one for one in others or () if one.rank == op.peer]
    elif op.kind in ("reduce", "gather"):
        gives = op.rank != op.peer
    return [] if gives else others


# The finding. ---------------------------------------------------------------------


def _possible_hang(trace: Trace) -> Failure | None:
    """Return the hang that NCCL's rules allow, with what it depends on, or ``None``."""
    if not _Play(trace, _STRICTEST).stuck:
        return None
    for further, words in _FURTHER:
        plays = {
            eager: play
            for eager in (False, True)
            if (play := _smallest(trace, further._replace(eager=eager))) is not None
        }
        if plays:
            first = plays.get(False) or plays[True]
            conditions = [one for one in (_on_set_up_and_size(plays), words) if one]
            return _failure(first, ", ".join(conditions))
    raise AssertionError("the last of the further rules are the strictest")


def _on_set_up_and_size(plays: Mapping[bool, _Play]) -> str:
    """Return in words which set-up and which sizes a hang needs.

    Args:
        plays: what hangs, by whether there is a ``device_id``.
    """
    if len(plays) == 1:
        ((eager, play),) = plays.items()
        size = "" if play.rules.buffered else f" and {_LARGE}"
        return (_EAGER if eager else _LAZY) + size
    lazy, eager_too = plays[False].rules, plays[True].rules
    if lazy.buffered and eager_too.buffered:
        return ""
    if lazy.buffered:
        return f"{_LAZY} or {_LARGE}"
    return _LARGE


def _smallest(trace: Trace, rules: _Conditions) -> _Play | None:
    """Return the run that hangs with messages of any size, else one with large ones, if any."""
    for buffered in (True, False):
        play = _Play(trace, rules._replace(buffered=buffered))
        if play.stuck:
            return play
    return None


def _failure(play: _Play, conditions: str) -> Failure | None:
    """Return the hang as a failure; ``None`` if no line of the program's has a part in it.

    Code of ours may exchange messages, to see what groups an answer has made.
    """
    waits = {wait.rank: wait for wait in _edges(play)}
    cycle = cycle_of(waits)
    named = cycle or list(waits)
    if not any(wait.site and wait.site.line for wait in map(waits.__getitem__, named)):
        return None
    stuck, others = told(waits, named)
    depends = f" ({conditions})" if conditions else ""
    first = waits[named[0]]
    return Failure(
        Diagnosis.DEADLOCK,
        f"{_UNDER} this can hang{depends}: {stuck}",
        first.rank,
        first.site,
        (*_explained(play, named), *others),
        waits=tuple(waits.values()),
        cycle=tuple(cycle),
    )


def _edges(play: _Play) -> Iterator[Wait]:
    """Yield what each rank that does not end waits for."""
    unconnected = play.unconnected()
    for rank, kernel in play.stuck.items():
        op, site = kernel.parts[0], kernel.parts[0].site
        peers: Iterable[int]
        if kernel in unconnected:
            lacks = [one.rank for one in unconnected[kernel]]
            peers = dict.fromkeys(lacks)
            others = sorted({one.rank for one in kernel.connects})
            text = f"waits in its {_name(kernel)} at {site} to be connected to {ranks_text(others)}"
        elif kernel.stage is _KernelStage.NOT_ISSUED:
            came = play.came[kernel.communicator]
            peers = [one for one in kernel.ranks if one not in came]
            text = (
                f"waits in its {_name(kernel)} at {site} to set up the communicator of"
                f" {ranks_text(kernel.ranks)}"
            )
        else:
            lacking = play.lacking(kernel)
            op = lacking[0][0]
            found = [one.rank for _, others in lacking for one in others or ()]
            peers = dict.fromkeys(found or [op.peer])
            text = _running(op, sorted(peers))
        yield Wait(rank, tuple(peers), text, site, op.kind)


def _name(kernel: _Kernel) -> str:
    op = kernel.parts[0]
    if op.batch:
        return "batch"
    return {"recv": "receive"}.get(op.kind, op.kind)


def _running(op: Operation, lacks: Sequence[int]) -> str:
    """Return what a kernel that runs waits for."""
    inside = " in a batch" if op.batch else ""
    if op.kind == "send":
        return f"waits to send to rank {op.peer}{inside} at {op.site}"
    if op.kind == "recv":
        return f"waits to receive from rank {op.peer}{inside} at {op.site}"
    return f"waits in {op.kind} at {op.site} for {ranks_text(lacks)}"


def _explained(play: _Play, named: Sequence[int]) -> Iterator[str]:
    """Yield why the ranks do not meet, and what to do."""
    stuck, unconnected = play.stuck, play.unconnected()
    kernels = [stuck[rank] for rank in named]
    alone = [
        (kernel, op)
        for kernel in kernels
        for op, others in zip(kernel.parts, kernel.needs, strict=True)
        if others is None
    ]
    for kernel, op in alone[:1]:
        yield (
            f"the other end of rank {op.rank}'s {_name(kernel)} at {op.site} is on another"
            " communicator: a batch runs on its group's, a message outside of one on that of its"
            " two ranks. Put both ends into a batch, or neither"
        )
        return
    for kernel in kernels[:_NAMED]:
        if kernel.stage is not _KernelStage.RUNNING:
            continue
        for op, others in play.lacking(kernel)[:1]:
            for other in (others or [])[:1]:
                does = {"send": "receives it", "recv": "sends it"}.get(op.kind, "calls it")
                ahead = stuck[other.rank]
                if other is ahead:
                    continue
                yield (
                    f"rank {other.rank} {does} at {_site(other, op)}, behind its"
                    f" {_name(ahead)} at {ahead.parts[0].site}"
                )
    if any(kernel in unconnected for kernel in kernels):
        yield (
            "the first messages between ranks connect them, and those of a batch all at once:"
            " exchange one with each peer before the work begins, or use a batch for each peer"
        )
        return
    if any(kernel.stage is _KernelStage.NOT_ISSUED for kernel in kernels):
        yield (
            "setting up a communicator takes all of its ranks: call a collective on the group"
            " first, or give init_process_group a device_id"
        )
    messages = [kernel.parts[0].is_message for kernel in kernels]
    batches = [bool(kernel.parts[0].batch) for kernel in kernels]
    if all(batches):
        yield (
            "batches run one after another: put what ranks exchange into one batch, or into"
            " batches that all of these ranks begin in the same order"
        )
    elif all(messages) and not any(batches):
        yield (
            "isend and irecv run in the order of issue, and one waits for the other's end: put the"
            " messages that ranks exchange into one dist.batch_isend_irecv, or let one side"
            " receive first"
        )
    else:
        yield "let all ranks issue their calls in the same order, those of different groups as well"


def _site(kernel: _Kernel, op: Operation) -> Site:
    """Return where a kernel's part is that meets an operation of another rank's."""
    for mine in kernel.parts:
        if not mine.is_message or (mine.kind != op.kind and mine.peer == op.rank):
            return mine.site
    return kernel.parts[0].site
