"""Limits on the traffic of an exercise: how much of something may, or must, be sent."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from grader.errors import DeclarationError
from grader.exercise.cases import Case, Draw, Kind, op_name
from grader.exercise.verdict import Bound
from grader.instruments.marks import read_memory_mark, read_time_mark
from headcount.core.events import Marked
from headcount.core.values import Opaque
from headcount.core.verdict import Diagnosis, Failure, duration
from headcount.trace.nccl_semantics import nccl_fault
from headcount.trace.trace import Measured, Operation, Trace

__all__ = [
    "A_TIME",
    "LONGER",
    "LUCK",
    "PROCESS",
    "Limit",
    "across",
    "after",
    "along_chain",
    "before",
    "blocking_only",
    "bounds",
    "bytes_of_all",
    "bytes_of_one",
    "calls",
    "carried",
    "combined",
    "draw_seconds",
    "given",
    "hangs_on_nccl",
    "held",
    "largest_call",
    "largest_message",
    "messages",
    "record_of",
    "mistimed",
    "name_timed",
    "moved",
    "neighbours_only",
    "overlaps",
    "grown",
    "point",
    "rounds",
    "sent",
    "sent_elements",
    "through",
    "total_bytes",
    "undecided",
    "virtual_seconds",
]


# A lower bound on the bytes that ranks must receive, given what they hold. ---------
#
# Inputs are random (:class:`grader.exercise.cases.Draw`), so a rank that holds other ranks'
# data either received it or guessed it.  (The first case of a world size is predictable:
# an answer that receives too little there is asked to send, and is not called tampering.)
# The chance of a guess is known: each element counts for as many bits as its likeliest
# value is improbable, rounded down.  A rank is granted :data:`LUCK` bits of guessing, so an
# answer that received less than the bound is right by chance at most once in 2³² times.
# The bound counts bytes that arrive, over all channels together: it holds for every
# algorithm, for whatever dtype the messages have, and however well they are packed.
#
# No bound is declared where a rank can compute the result from its own arguments (as in
# ``who_am_i``, ``route`` and ``train``), where there is no result (``barrier``), where it is a
# single number (``unblock_branch``), which a wrong answer can give by chance, where it may come
# through the store, whose entries are no messages (``sum_of_survivors``), where it is mostly
# known beforehand (``ShardedAdamW``: Adam's steps are nearly of one size), and where it is
# computed from what comes in and does not say how much that was (``run_pipeline``).

#: Bits that each rank may have guessed.
LUCK = 32

#: Bits to guess of a drawn number that has to agree bit by bit.  An integer is
#: one of 199.  A floating-point number is made of 32 bits; of the narrower dtypes, the
#: likeliest numbers lie below 2, where they are 2⁻²³ and 2⁻⁷ apart.
_DRAWN = {torch.int64: 7, torch.float64: 31, torch.float32: 24, torch.bfloat16: 8}

#: Bits to guess of a sum, a mean or a product of which all terms but one are known: it may be
#: off by some roundings of every term (:func:`grader.exercise.compare.tolerance`).
_COMBINED = {torch.int64: 7, torch.float64: 24, torch.float32: 8, torch.bfloat16: 1}

#: Bits to guess of a factor in a product of integers, which is ±1 or ±2.
_FACTOR = 2


def moved(case: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that all ranks together must receive if each has to hold ``expected``.

    This is for exercises that move data.  Numbers that a rank finds among its own
    arguments do not count.
    """
    return _bytes(_unknown_bits(case, expected, _DRAWN))


def combined(case: Case, expected: Sequence[Any]) -> int:
    """Return the same bound for exercises that reduce data, by ``case.op`` or by a sum.

    Minima and maxima do not count, since they may be a rank's own.
    """
    op = op_name(case.op) if "op" in case.columns else "SUM"
    if op in ("MIN", "MAX"):
        return 0
    worth = {**_COMBINED, torch.int64: _FACTOR} if op == "PRODUCT" else _COMBINED
    return _bytes(_unknown_bits(case, expected, worth))


def _bytes(bits: Iterator[int]) -> int:
    # each rank is granted its own guess: where all must hold the same, one would do for all
    return sum(max(0, unknown - LUCK) for unknown in bits) // 8


def _unknown_bits(
    case: Case, expected: Sequence[Any], worth: Mapping[torch.dtype, int]
) -> Iterator[int]:
    """Yield for every rank the bits that it should hold and cannot find among its arguments."""
    for rank in case.ranks:
        own = {dtype: set(numbers) for dtype, numbers in _numbers(case.arguments(rank)).items()}
        held = _numbers(expected[rank])
        yield sum(
            worth.get(dtype, 0)
            # an infinity or NaN is easily guessed, and without it the difference is 0
            * sum(number - number == 0 and number not in own.get(dtype, ()) for number in numbers)
            for dtype, numbers in held.items()
        )


def _numbers(value: Any) -> dict[torch.dtype, list[Any]]:
    """Return the elements of all tensors in a value, by dtype."""
    found: dict[torch.dtype, list[Any]] = {}
    for tensor in _tensors(value):
        found.setdefault(tensor.dtype, []).extend(tensor.flatten().tolist())
    return found


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


# Limits. --------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """A limit on the traffic of an exercise.

    Attributes:
        quantity: what is counted, as it reads in a report.
        measure: counts it in a trace, or in the counters of simulated ranks.
        relation: ``=``, ``≤`` or ``≥``.
        asked: the bound for a case.
        diagnosis: what is wrong if there is too much; its opposite if there is too little.
        found: returns what a trace shows beyond the number, in words that are added to the
            message; nothing is added where it is ``None``.
        point: whether it is the point of the exercise, see :func:`point`.
        part: the part of a case's trace that is measured, see :func:`across`, :func:`before` and
            :func:`after`; all of it if not given.
        applies: whether it is judged on a case; on every one, if not given.
        unit: the size of one, in a case, of what is counted, where ``measure`` is finer; one that
            is begun counts.
    """

    quantity: str
    measure: Callable[[Measured], float]
    relation: str
    asked: Callable[[Case], float]
    diagnosis: Diagnosis
    found: Callable[[Measured], str] | None = None
    point: bool = False
    part: Callable[[Case, Trace], Trace] | None = None
    applies: Callable[[Case], bool] = lambda case: True
    unit: Callable[[Case], int] | None = None

    def judge(self, case: Case, trace: Measured) -> Bound:
        """Return the measured number beside the bound for this case."""
        if self.part is not None:
            trace = self.part(case, record_of(trace))
        measured = self.measure(trace)
        if self.unit is not None:
            measured = -(-measured // self.unit(case))
        return Bound(self.quantity, measured, self.relation, self.asked(case))

    def diagnose(self, bound: Bound) -> Diagnosis:
        """Return the diagnosis for a bound that does not hold."""
        return self.diagnosis if bound.measured > bound.asked else self.diagnosis.opposite


def point(limit: Limit) -> Limit:
    """Return the same limit as the point of its exercise.

    An answer that misses it at any world size earns at most half of the points, however
    right its values are.
    """
    return replace(limit, point=True)


def across(limit: Limit, where: str, apart: Callable[[Case, Sequence[int]], bool]) -> Limit:
    """Return the same limit on the part of the traffic that crosses a border between ranks.

    Args:
        limit: the limit.
        where: the border, as it reads after the limit's quantity: ``between nodes``.
        apart: says of a case and of the ranks that a message or a call connects (two, or all of
            its group) whether it crosses the border.
    """
    return replace(
        limit,
        quantity=f"{limit.quantity} {where}",
        part=lambda case, trace: trace.part_where(partial(apart, case)),
    )


def before(limit: Limit, mark: str, where: str) -> Limit:
    """Return the same limit on what each rank posts until it passes a mark.

    Args:
        limit: the limit.
        mark: the text of the mark, which an adapter sets.
        where: that part of the run, as it reads after the limit's quantity: ``in forward``.
    """
    return replace(
        limit, quantity=f"{limit.quantity} {where}", part=lambda _, trace: trace.split_at(mark)[0]
    )


def after(limit: Limit, mark: str, where: str) -> Limit:
    """Return the same limit on what each rank posts after a mark; see :func:`before`."""
    return replace(
        limit, quantity=f"{limit.quantity} {where}", part=lambda _, trace: trace.split_at(mark)[1]
    )


def messages(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit point-to-point messages, summed over ranks."""
    return Limit(
        "messages",
        lambda trace: trace.traffic.messages,
        relation,
        asked,
        Diagnosis.TOO_MANY_MESSAGES,
    )


def total_bytes(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the bytes sent, summed over ranks."""
    return Limit(
        "bytes in all", lambda trace: trace.traffic.bytes, relation, asked, Diagnosis.TOO_MANY_BYTES
    )


def _bytes_of_ranks(trace: Measured) -> list[int]:
    record = record_of(trace)
    return [sum(record.sent(op) * _itemsize(op) for op in ops) for ops in record.operations]


def bytes_of_all(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the bytes that all ranks together send, in calls of built-in collectives as well.

    These count as :meth:`headcount.trace.trace.Trace.sent` says.
    """
    return Limit(
        "bytes sent by all ranks",
        lambda trace: sum(_bytes_of_ranks(trace)),
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def bytes_of_one(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the bytes that any one rank sends, in calls of built-in collectives as well.

    These count as :meth:`headcount.trace.trace.Trace.sent` says.
    """
    return Limit(
        "bytes sent by one rank",
        lambda trace: max(_bytes_of_ranks(trace)),
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def sent(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the bytes that any one rank sends."""
    return Limit(
        "bytes sent by one rank",
        lambda trace: trace.traffic.max_sent,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def sent_elements(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the elements that any one rank sends.

    Built-in collectives count as :meth:`headcount.trace.trace.Trace.sent` says.
    """
    return Limit(
        "elements sent by one rank",
        lambda trace: trace.max_sent_elements,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def carried(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the elements of one rank's that the largest message or call carries.

    What a call carries is said by :meth:`headcount.trace.trace.Trace.given`.
    """
    return Limit(
        "elements of one rank in a call or message",
        lambda trace: record_of(trace).max_given_elements,
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def rounds(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the rounds, where every message takes one and each rank has one port each way."""
    return Limit(
        "rounds",
        lambda trace: record_of(trace).traffic.rounds,
        relation,
        asked,
        Diagnosis.TOO_MANY_ROUNDS,
    )


def hangs_on_nccl(case: Case, trace: Trace) -> Failure | None:
    """Return why a run could hang or fail on NCCL, see :mod:`headcount.trace.nccl_semantics`.

    It is a ``proof`` of :class:`grader.exercise.declaration.TrafficRules`.  A case with a network
    is not judged, whose record holds the messages that collectives consist of.
    """
    return None if case.network is not None else nccl_fault(trace)


def blocking_only() -> Limit:
    """Require that every message is sent and received by calls that wait for it at once."""

    def started(trace: Measured) -> int:
        every = (op for operations in record_of(trace).operations for op in operations)
        return sum(op.is_message and op.blocked != op.posted for op in every)

    return Limit(
        "calls of isend and irecv", started, "=", lambda case: 0, Diagnosis.TOO_MANY_MESSAGES
    )


def neighbours_only() -> Limit:
    """Require that each rank sends only to its left and right neighbours on the ring."""
    return Limit(
        "messages to ranks that are not neighbours",
        lambda trace: trace.stranger_count,
        "=",
        lambda case: 0,
        Diagnosis.NOT_NEIGHBOUR,
    )


def through(root: int) -> Limit:
    """Require that every message comes from one rank or goes to it."""
    return Limit(
        f"messages that do not go through rank {root}",
        lambda trace: sum(root not in (op.rank, op.peer) for op in record_of(trace).sends()),
        "=",
        lambda case: 0,
        Diagnosis.WRONG_PEER,
    )


def one_each(*pairs: tuple[int, int]) -> Limit:
    """Require that there is no message but one from the first to the second rank of each pair."""
    asked = " and ".join(f"{sender}→{receiver}" for sender, receiver in pairs)

    def others(trace: Measured) -> list[tuple[int, int]]:
        sent = [(op.rank, op.peer) for op in record_of(trace).sends()]
        for pair in pairs:
            if pair in sent:
                sent.remove(pair)
        return sent

    def named(trace: Measured) -> str:
        return "".join(f"; one goes from rank {a} to rank {b}" for a, b in others(trace)[:1])

    return Limit(
        f"messages other than {asked}",
        lambda trace: len(others(trace)),
        "=",
        lambda case: 0,
        Diagnosis.WRONG_PEER,
        found=named,
    )


def along_chain() -> Limit:
    """Require that each rank sends only to the next one, and the last to rank 0."""
    return Limit(
        "messages off the chain",
        lambda trace: sum(
            (op.peer - op.rank) % len(record_of(trace).operations) != 1
            for op in record_of(trace).sends()
        ),
        "=",
        lambda case: 0,
        Diagnosis.NOT_NEIGHBOUR,
    )


def largest_message(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the elements of the largest message."""
    return Limit(
        "elements in the largest message",
        lambda trace: max((op.count for op in record_of(trace).sends()), default=0),
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def largest_call(kind: str, relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the bytes of the largest call of a collective."""
    return Limit(
        f"bytes of the largest {kind}",
        lambda trace: max((op.nbytes for op in _calls(trace, {kind})), default=0),
        relation,
        asked,
        Diagnosis.TOO_MANY_BYTES,
    )


def overlaps(kind: str, mark: str, step: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the steps with a mark between the call of a collective and the wait for it.

    A mark shows that something has been computed, so in such a step a rank computes while the
    collective is in flight.

    Args:
        kind: the collective.
        mark: the text of the mark.
        step: the text of the mark with which a step begins.
        asked: how many steps there should be, those of all ranks together.
    """

    def count(trace: Measured) -> int:
        record = record_of(trace)
        return sum(map(overlapping, record.operations, record.marks))

    def overlapping(operations: Sequence[Operation], marks: Sequence[Marked]) -> int:
        """Return the steps of one rank; the record may be long, and is gone through once."""
        seen = sorted((one.time, one.text) for one in marks if one.text in (mark, step))
        times = [time for time, _ in seen]
        begins: Counter[int] = Counter()
        for op in operations:
            first = bisect_right(times, op.posted)
            end = len(times) if op.blocked is None else bisect_left(times, op.blocked)
            if op.kind == kind and first < end:
                begins[first] += 1
                begins[end] -= 1
        number, in_flight, found = 0, 0, set()
        for place, (_, text) in enumerate(seen):
            in_flight += begins[place]
            number += text == step
            if text == mark and in_flight > 0:
                found.add(number)
        return len(found)

    return Limit(
        f"steps of all ranks that compute while an {kind} is in flight",
        count,
        "≥",
        asked,
        Diagnosis.NO_OVERLAP,
    )


def record_of(trace: Measured) -> Trace:
    """Return the record that a limit needs.

    Raises:
        DeclarationError: simulated ranks have left counters only.
    """
    if not isinstance(trace, Trace):
        raise DeclarationError("this limit is judged on the record of real ranks; drop the growth")
    return trace


def _itemsize(op: Operation) -> int:
    """Return the bytes of an element of a message or a call, whose tensors have one dtype."""
    if op.is_message:
        return op.nbytes // max(op.count, 1)
    return int(getattr(torch, op.signatures[0].dtype).itemsize) if op.signatures else 0


def _calls(trace: Measured, kinds: Set[str]) -> Iterator[Operation]:
    for operations in record_of(trace).operations:
        yield from (op for op in operations if op.kind in kinds)


def given(kind: str, relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the elements that one rank passes to any other in calls of a collective."""

    def most(trace: Measured) -> int:
        by_rank = [0] * len(record_of(trace).operations)
        for op in _calls(trace, {kind}):
            by_rank[op.rank] += sum(max(one.gives, default=0) for one in op.signatures)
        return max(by_rank, default=0)

    return Limit(
        f"elements that one rank gives to {kind}", most, relation, asked, Diagnosis.TOO_MANY_BYTES
    )


def calls(kinds: Set[str], relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the calls of some collectives, summed over ranks; ``send`` counts messages."""
    return Limit(
        f"calls of {' or '.join(sorted(kinds))}",
        lambda trace: sum(1 for _ in _calls(trace, kinds)),
        relation,
        asked,
        Diagnosis.TOO_MANY_MESSAGES,
    )


# Virtual time: seconds of a run on simulated ranks. -----------------------------------------------


def virtual_seconds(relation: str, asked: Callable[[Case], float]) -> Limit:
    """Limit the virtual time until the last rank returns, to a nanosecond.

    It is judged on the cases that have a network (:class:`grader.exercise.cases.Case`), and
    ``asked`` returns seconds.  The message names the rank that waits longest.
    """

    def longest_wait(trace: Measured) -> str:
        waits: dict[int, Counter[str]] = {}
        for operations in record_of(trace).operations:
            for op in operations:
                if op.blocked is not None and op.done is not None:
                    where = f"{op.kind}, {op.blocked_site or op.site}"
                    waits.setdefault(op.rank, Counter())[where] += op.done - op.blocked
        if not waits:
            return ""
        rank, found = max(waits.items(), key=lambda one: one[1].total())
        where, most = found.most_common(1)[0]
        whole = f"{duration(found.total() / 1e9)}, of which " if most < found.total() else ""
        return f"; rank {rank} waits longest, {whole}{duration(most / 1e9)} in {where}"

    def taken(trace: Measured) -> float:
        seconds = record_of(trace).virtual_seconds
        assert seconds is not None, "a case with a network is run on simulated ranks"
        return round(float(seconds), 9)

    return Limit(
        "virtual time",
        taken,
        relation,
        lambda case: round(float(asked(case)), 9),
        Diagnosis.TOO_MANY_SECONDS,
        found=longest_wait,
        applies=lambda case: case.network is not None,
    )


# Bytes that a rank holds; an adapter tells them in marks, which are part of the trace. ------------


def held(quantity: str, relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the bytes of tensors that any one rank holds, at the moments that an adapter marks.

    Args:
        quantity: what is counted, such as ``bytes held by one rank between calls``.
        relation, asked: as in all limits.
    """

    def largest_first(trace: Measured) -> list[tuple[int, int, str]]:
        """Return bytes, rank and words of every such mark, the most bytes first."""
        found = []
        for rank, marks in enumerate(record_of(trace).marks):
            for nbytes, words in filter(None, (read_memory_mark(one.text) for one in marks)):
                found.append((nbytes, rank, words))
        return sorted(found, key=lambda one: -one[0])

    return Limit(
        quantity,
        lambda trace: max((nbytes for nbytes, _, _ in largest_first(trace)), default=0),
        relation,
        asked,
        Diagnosis.MEMORY_LIMIT,
        found=lambda trace: "".join(
            f", rank {rank} {what}" for _, rank, what in largest_first(trace)[:1]
        ),
    )


#: Bytes that a process may grow by for all that has no size to speak of.
PROCESS = 5 << 20


def grown(relation: str, asked: Callable[[Case], int]) -> Limit:
    """Limit the memory by which any one rank's process has grown when the judge weighs it.

    The kernel counts it, from outside of the process.  It is judged on the cases in which the
    judge weighs the ranks (:class:`grader.exercise.cases.Pause`); where the kernel does not say,
    as on macOS, the memory that the ranks themselves have counted is all there is.
    """

    def weights(trace: Measured) -> list[tuple[int, int]]:
        """Return bytes and rank of every pause in which the rank was weighed, the most first."""
        found = [
            (span.grown, rank)
            for rank, spans in enumerate(record_of(trace).pauses)
            for span in spans
            if span.grown is not None
        ]
        return sorted(found, key=lambda one: -one[0])

    return Limit(
        "bytes by which one rank's process has grown",
        lambda trace: max((nbytes for nbytes, _ in weights(trace)), default=0),
        relation,
        asked,
        Diagnosis.MEMORY_LIMIT,
        found=lambda trace: "".join(
            f", rank {rank}, as the kernel counts its memory" for _, rank in weights(trace)[:1]
        ),
        applies=lambda case: any(pause.weighs for pause in case.pauses),
    )


# Time that only the judge knows: a function that an answer times waits for the judge. -------------
#
# An adapter's times stand in its variables, and a clock that it sets is in the rank's own memory,
# so an answer could read them.  Here the timed function pauses for as long as the judge likes (see
# :class:`grader.exercise.cases.Pause`), and nothing but a clock tells how long that was.  The judge
# compares the result with the times at which it heard of each pause and ended it.  What an honest
# answer measures lies between two bounds on any machine, however busy: from the moment at which
# the judge heard of the pause to its end, and from the end of the pause before to the beginning
# of the next.

#: By how much the times are longer where a machine was too busy for short ones.
LONGER = 8.0

#: The least and the largest of these times in seconds.
_LEAST, _LARGEST = 0.006, 0.06

#: By how much a result may exceed the time that the judge itself has measured: a part of it, and
#: seconds.  A rank learns of the end later than the judge.
_LATER, _LATE = 0.1, 0.003

#: By how much it may fall short: clocks that are adjusted run slower by less than this part.
_SHORT = 0.002


#: What a rank says of a result that the judge weighs by its own clock.
A_TIME = Opaque("a time above 0")


def name_timed(warmup: int, iterations: int) -> str:
    """Return the name of a case in which some calls warm up, and others are timed."""
    return f"{warmup} {'call' if warmup == 1 else 'calls'} to warm up, {iterations} timed"


def draw_seconds(draw: Draw, count: int) -> list[float]:
    """Draw how long each of some calls takes, in seconds; short ones are likelier."""
    share = (draw.tensor(Kind(torch.int64, (count,))) + 99) / 198
    return [_LEAST * (_LARGEST / _LEAST) ** one for one in share.tolist()]


def bounds(trace: Trace, rank: int, first: int, count: int) -> list[tuple[float, float]]:
    """Return bounds on the seconds that each of a rank's calls took, from ``first`` on.

    There has to be a call before these, which one to warm up is.  There are fewer bounds than
    ``count`` if the rank has paused less often than it should have.
    """
    spans = trace.pauses[rank]
    ends = [*(span.began for span in spans), trace.closed or 0]
    return [
        ((spans[i].ended - spans[i].began) / 1e9, (ends[i + 1] - spans[i - 1].ended) / 1e9)
        for i in range(first, min(first + count, len(spans)))
    ]


def _results(trace: Trace) -> list[tuple[int, float]]:
    """Return rank and seconds of each time that was returned; forged words are none."""
    return [
        (rank, seconds)
        for rank, marks in enumerate(trace.marks)
        for mark in marks
        if (seconds := read_time_mark(mark.text)) is not None
    ]


def mistimed(trace: Trace, least: float, most: float) -> Failure | None:
    """Return a failure if a rank has returned a time that was not the judge's.

    Args:
        trace: of the run, with what the ranks have returned.
        least, most: bounds on what an honest answer measures, in seconds.
    """
    highest = min(most, least * (1 + _LATER) + _LATE)
    found = _results(trace)
    for rank in set(range(trace.world_size)) - {rank for rank, _ in found}:
        return Failure(Diagnosis.WRONG_VALUE, f"rank {rank}: no time was returned", rank)
    for rank, seconds in found:
        if not least * (1 - _SHORT) <= seconds <= highest:
            message = (
                f"rank {rank}: the result is {duration(seconds)}; measured from outside, it is"
                f" {duration(least)}, and can be {duration(highest)} at most"
            )
            return Failure(Diagnosis.WRONG_VALUE, message, rank)
    return None


def undecided(trace: Trace, least: float, most: float) -> bool:
    """Return whether results are only as wrong as a busy machine makes them."""
    found = _results(trace)
    return bool(found) and all(least * (1 - _SHORT) <= one <= most for _, one in found)
