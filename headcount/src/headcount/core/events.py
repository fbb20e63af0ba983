"""The events of a rank's communication, which it reports in one small message each.

The messages are msgspec structs: decoding checks every field's type and runs no code, so the judge
need not trust the rank.  Texts and lists have largest lengths, checked before memory is taken for
them.  Ranks are global ranks everywhere, whatever group an operation belongs to.  Times are
``time.monotonic_ns()``, which all processes of a machine share.

The frequent ones are not tracked by the garbage collector (``gc=False``): what they hold refers to
nothing but numbers and texts.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from headcount.core.source_locations import NAME, TEXT

__all__ = [
    "ANY",
    "WORLD",
    "Blocked",
    "Completed",
    "Entered",
    "Event",
    "Expired",
    "Failed",
    "Grouped",
    "Held",
    "Inspected",
    "Left",
    "Marked",
    "Matched",
    "Outside",
    "Paused",
    "Polled",
    "Posted",
    "Handling",
    "Remarked",
    "ReplicaStage",
    "ReplicaValue",
    "Replicas",
    "Same",
    "SameValue",
    "TookSet",
    "Seen",
    "Signature",
    "Violated",
    "mark",
]

#: The peer of a receive from any rank.
ANY = -1

#: The name of the default group.
WORLD = "world"

#: How ranks make the default group: the kind of the call, and the group of those who meet in it.
INIT = "init_process_group"

# Types of fields, with their bounds: what a rank sends is not read beyond them. ------

Name = Annotated[str, Meta(max_length=NAME)]
Text = Annotated[str, Meta(max_length=TEXT)]

#: A number of elements, bytes, milliseconds or threads.
Amount = Annotated[int, Meta(ge=0, le=2**62)]

#: A time in nanoseconds.
Time = Annotated[int, Meta(ge=0, le=2**62)]

#: The number of a line; 0 where there is none.
Line = Annotated[int, Meta(ge=0, le=2**31)]

#: The ranks of a group, and numbers of elements for each of them.
Ranks = Annotated[list[int], Meta(max_length=1 << 16)]
Amounts = Annotated[list[Amount], Meta(max_length=1 << 16)]

#: The shape of a tensor; torch has no tensor of more dimensions.
Shape = Annotated[list[Amount], Meta(max_length=64)]

#: Lengths of lists: tensors of a collective, threads and callbacks, and operations, of one rank.
_TENSORS, _THREADS, _OPERATIONS = 1 << 16, 1 << 17, 1 << 17


class Signature(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The numbers of elements that one rank gives to each member of its group, and takes from it.

    Attributes:
        dtype: the name of the element type.
        gives: elements for each member, by rank in the group; a single number stands for
            all members, and an empty list says that nothing is given.
        takes: elements from each member, in the same way.
    """

    dtype: Name
    gives: Amounts
    takes: Amounts

    def gives_to(self, place: int) -> int | None:
        """Return the elements for a member; None where nothing is given."""
        return _number_at(self.gives, place)

    def takes_from(self, place: int) -> int | None:
        """Return the elements from a member; None where nothing is taken."""
        return _number_at(self.takes, place)

    @property
    def even(self) -> int | None:
        """The number of elements if all are the same, else None."""
        numbers = {*self.gives, *self.takes}
        return numbers.pop() if len(numbers) == 1 else None


def _number_at(numbers: list[int], place: int) -> int | None:
    if len(numbers) < 2:
        return numbers[0] if numbers else None
    return numbers[place]


class Posted(msgspec.Struct, array_like=True, tag="post", frozen=True, gc=False):
    """An operation is about to be handed to the transport.

    Attributes:
        op: the number of the operation on its rank, from 0 on in program order.
        kind: ``send``, ``recv``, or the name of a collective.
        peer: the other rank of a ``send`` or ``recv`` (:data:`ANY` for a
            wildcard), the root of a rooted collective, else :data:`ANY`.
        tag: the tag of a message; for a collective 0.
        group: the name of the process group.
        count: the number of elements.
        nbytes: the number of bytes.
        dtype: the name of the element type, such as ``float32``.
        detail: whatever else all ranks must agree on, such as the reduction.
        blocking: whether the rank waits for it at once, as in ``dist.send``.
        deferred: whether the rank waits for the judge: for the source of the receive before
            it posts it (wildcards, and receives queued behind one), or for all ranks' calls
            before it leaves a collective.
        file, line: the place in the student's source.
        time: when it is posted, in nanoseconds.
        buffer: the number of the memory that a message is in, the same for all views
            of one tensor; 0 for a collective.
        offset: where in it the message begins, in elements.
        signatures: what the rank gives and takes in a collective.
        thread: the number of the calling thread: 0 is the one that runs the function.
        limit: milliseconds after which a blocking call gives up; 0 means never.
        by_torch: whether torch itself has begun it, so that the program has no request to wait for.
        shapes: of a collective in which all ranks' tensors are alike, those of the rank's own.
        batch: the number of the ``batch_isend_irecv`` that a message is part of, from 1 on; 0
            where it is part of none.
        thread_name: what the program calls the calling thread; empty of the one that runs the
            function.
    """

    op: int
    kind: Name
    peer: int
    tag: int
    group: Name
    count: Amount
    nbytes: Amount
    dtype: Name
    detail: Name
    blocking: bool
    deferred: bool
    file: Name
    line: Line
    time: Time
    buffer: int = 0
    offset: int = 0
    signatures: Annotated[list[Signature], Meta(max_length=_TENSORS)] = []
    thread: Amount = 0
    limit: Amount = 0
    by_torch: bool = False
    shapes: Annotated[list[Shape], Meta(max_length=_TENSORS)] = []
    batch: Amount = 0
    thread_name: Name = ""


class Blocked(msgspec.Struct, array_like=True, tag="block", frozen=True, gc=False):
    """A thread of the rank waits until operation ``op`` is complete.

    ``thread`` and ``limit`` are those of :class:`Posted`.
    """

    op: int
    file: Name
    line: Line
    time: Time
    thread: Amount = 0
    limit: Amount = 0


class Expired(msgspec.Struct, array_like=True, tag="expire", frozen=True, gc=False):
    """A thread has given up waiting for ``op`` at its time limit; ``op`` is still in flight."""

    op: int
    thread: Amount
    time: Time


class Inspected(msgspec.Struct, array_like=True, tag="inspect", frozen=True):
    """The state of the rank's threads that wait for no operation, at one moment.

    The rank reports it when it is asked.  It holds until the rank reports anything else.

    Attributes:
        acting: whether one of them may still act by itself: it runs, sleeps, waits with a
            time limit, or waits for something unknown.
        idle: the others, which wait for threads of their own process without a time limit:
            thread, file and line.
        callbacks: for each callback of a future that has yet to run, the operations that
            must be complete before it runs.
        store: those that wait for entries of the store without a time limit: thread, keys, file
            and line.
    """

    acting: bool
    idle: Annotated[list[tuple[Amount, Name, Line]], Meta(max_length=_THREADS)]
    callbacks: Annotated[
        list[Annotated[list[int], Meta(max_length=_OPERATIONS)]], Meta(max_length=_THREADS)
    ]
    store: Annotated[
        list[tuple[Amount, Annotated[list[Name], Meta(max_length=_THREADS)], Name, Line]],
        Meta(max_length=_THREADS),
    ] = []


class Polled(msgspec.Struct, array_like=True, tag="poll", frozen=True, gc=False):
    """The rank asks whether ``op`` is complete, and may ask again."""

    op: int
    time: Time


class Completed(msgspec.Struct, array_like=True, tag="done", frozen=True, gc=False):
    """The rank has found operation ``op`` complete."""

    op: int
    time: Time


class Matched(msgspec.Struct, array_like=True, tag="match", frozen=True):
    """Receive ``op``, from any rank, has got the message of ``source``.

    Only simulated ranks report it; for real ranks the judge decides it.
    """

    op: int
    source: int


class Failed(msgspec.Struct, array_like=True, tag="fail", frozen=True, gc=False):
    """The transport gave up on operation ``op``, and its rank runs again."""

    op: int
    time: Time


class Grouped(msgspec.Struct, array_like=True, tag="group", frozen=True):
    """The rank is a member of a process group with these global ranks.

    ``backend`` is what a script asks of it: ``gloo``, ``nccl``, or ``mixed`` where that depends on
    a tensor's device; ``description`` is what it calls the group, as a device mesh does.
    """

    name: Name
    members: Ranks
    backend: Name = ""
    description: Name = ""


class Violated(msgspec.Struct, array_like=True, tag="fault", frozen=True):
    """The rank itself found a rule broken: a forbidden call, or a race on a buffer.

    ``diagnosis`` is a word of :class:`headcount.core.verdict.Diagnosis`; ``kinds`` are those of the
    operations that race for a buffer: of the one that uses it, and of the one in flight.
    """

    diagnosis: Name
    message: Text
    file: Name
    line: Line
    time: Time
    kinds: Annotated[list[Name], Meta(max_length=2)] = []


class Outside(msgspec.Struct, array_like=True, tag="outside", frozen=True):
    """The rank calls a function on a group that it is not in, where torch does nothing."""

    function: Name
    file: Name
    line: Line


class Remarked(msgspec.Struct, array_like=True, tag="remark", frozen=True):
    """The rank does what breaks no rule, and what its author probably meant otherwise.

    ``text`` continues "rank 0, line 5: "; what several ranks say in the same words is shown once.
    """

    text: Text
    file: Name
    line: Line


class TookSet(msgspec.Struct, array_like=True, tag="set", frozen=True):
    """The rank takes a set in an order that differs from rank to rank; line 0 stands for a hash."""

    file: Name
    line: Line


class ReplicaStage(str, Enum):
    """What of an optimizer's tensors is compared between ranks, in the order of a step."""

    BEGIN = "begin"
    GRADIENT = "gradient"
    PARAMETER = "parameter"
    STATE = "state"
    BUFFER = "buffer"


class ReplicaValue(msgspec.Struct, array_like=True, frozen=True):
    """What a rank holds of a tensor of which other ranks hold replicas.

    Attributes:
        group: the number of the group of those ranks, among the groups of the report.
        key: the same on all of them, and on no other tensor of the group.
        name: the tensor's name for people.
        digest: a hash of its bits.
        norm: its Euclidean norm; −1 for a gradient that is missing.
    """

    group: Amount
    key: Name
    name: Name
    digest: int
    norm: float


class Replicas(msgspec.Struct, array_like=True, tag="replicas", frozen=True):
    """What a rank holds of its replicas at a step of an optimizer.

    Attributes:
        optimizer: the name of its class.
        number: how many other optimizers have made a step before its first.
        step: how many steps it has made.
        stage: what was looked at.
        groups: the groups of ranks that hold replicas of one another.
        calls: of each group, how often it has called ``all_reduce`` since the step before.
        values: what the rank holds.
        file, line: the script's line that makes the step.
    """

    optimizer: Name
    number: Amount
    step: Amount
    stage: ReplicaStage
    groups: Annotated[list[Ranks], Meta(max_length=_TENSORS)]
    calls: Annotated[list[Amount], Meta(max_length=_TENSORS)]
    values: Annotated[list[ReplicaValue], Meta(max_length=_TENSORS)]
    file: Name
    line: Line


class SameValue(msgspec.Struct, array_like=True, frozen=True):
    """A part of a value that should be the same on all ranks.

    Attributes:
        key: which part, as ``['lr']`` or ``[0]``; empty for the whole.
        digest: a hash of its type and its bits.
        text: it, or what is known of it, for people.
    """

    key: Name
    digest: int
    text: Name


class Same(msgspec.Struct, array_like=True, tag="same", frozen=True):
    """What a rank holds of a value that should be the same, see :func:`headcount.same`.

    Attributes:
        members: the ranks that should hold the same.
        name: what the script calls it, or empty.
        values: its parts.
        file, line: where the script asks.
    """

    members: Ranks
    name: Name
    values: Annotated[list[SameValue], Meta(max_length=_TENSORS)]
    file: Name
    line: Line


class Handling(msgspec.Struct, array_like=True, tag="handle", frozen=True):
    """The rank has begun its last operation while it handles an exception, as in ``finally``.

    Attributes:
        op: the operation.
        error: the exception's class and message.
        file, line: the student's line that has raised it.
    """

    op: int
    error: Text
    file: Name
    line: Line


class Entered(msgspec.Struct, array_like=True, tag="enter", frozen=True):
    """The student's function is about to be called."""

    time: Time


class Left(msgspec.Struct, array_like=True, tag="leave", frozen=True):
    """The student's function has returned, or raised.

    Attributes:
        groups: how often it has called ``new_group`` as all ranks have to.
    """

    raised: bool
    time: Time
    groups: Amount = 0


class Marked(msgspec.Struct, array_like=True, tag="mark", frozen=True):
    """The rank is at a named place, see :func:`headcount.core.events.mark`."""

    text: Name
    time: Time


class Paused(msgspec.Struct, array_like=True, tag="pause", frozen=True):
    """The rank waits until the judge lets it go on; only where a case says what the judge does."""

    time: Time


class Held(msgspec.Struct, array_like=True, tag="hold", frozen=True):
    """A tensor among the call's arguments or in its result, in a run that records contents.

    Attributes:
        role: ``argument`` or ``result``.
        buffer: the number of the memory that it is a view of, see :class:`Posted`.
        offset, count: the elements of that memory.
        place: the number of the argument; 0 for a result.
    """

    role: Name
    buffer: int
    offset: Amount
    count: Amount
    place: Amount = 0


class Seen(msgspec.Struct, array_like=True, tag="see", frozen=True):
    """The contents of a memory, reported when they differ from the last time."""

    buffer: int
    values: Annotated[list[float], Meta(max_length=1 << 20)]
    time: Time


Event = (
    Posted
    | Completed
    | Blocked
    | Polled
    | Expired
    | Failed
    | Grouped
    | Inspected
    | Violated
    | Outside
    | Remarked
    | TookSet
    | Replicas
    | Same
    | Handling
    | Entered
    | Left
    | Marked
    | Paused
    | Held
    | Seen
)


# Names for places in a program. ---------------------------------------------------

#: Limit on the characters of a name.
_LONGEST = 60


def mark(text: str) -> None:
    """Name this moment in the record of the calling rank.

    ``run`` and ``simulate`` keep the name in ``trace.marks``, and ``timeline`` shows it.  In a
    program that is not recorded the call does nothing.

    Args:
        text: up to 60 characters, such as "backward ends".

    Raises:
        TypeError: ``text`` is not a string.
        ValueError: ``text`` is longer.
    """
    if not isinstance(text, str):
        raise TypeError(f"mark takes a text, not {_kind(text)}")
    if len(text) > _LONGEST:
        raise ValueError(f"mark takes up to {_LONGEST} characters, not {len(text)}")
    import torch.distributed as dist  # here, so that reading events does not need torch

    if not dist.is_initialized():
        return
    note = getattr(dist.group.WORLD, "mark", None)
    if note is not None:
        note(text)


def _kind(value: object) -> str:
    from headcount.core.values import (
        with_article,  # here, so that reading events does not need torch
    )

    return with_article(type(value).__name__)
