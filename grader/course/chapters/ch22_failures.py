"""Chapter 22: records that differ, and a sum that outlives a rank."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader.course.chapters.evidence import nearly
from grader.exercise.cases import OPS, Case, Draw, Kind, magnitude, reduced
from grader.exercise.compare import compare
from grader.exercise.declaration import (
    Evidence,
    Exercise,
    JudgedCase,
    Mistake,
    TrafficRules,
    Values,
)
from grader.exercise.limits import Limit, point, record_of
from headcount.core.verdict import Diagnosis
from headcount.core.wire import AT_RETURN
from headcount.launch.world import Delay, Kill
from headcount.trace.trace import Measured

# The first call that differs. -----------------------------------------------------

#: The calls of one rank, in order: the operation, and its number of elements.
_Record = list[tuple[str, int]]

#: Records in short: each letter stands for a call, the same one on all ranks.  A capital letter is
#: the operation of the small one, on another number of elements; of b and d the number is the same.
_RECORDS: dict[str, Sequence[str]] = {
    "one rank": ("abca",),
    "no calls": ("", "", ""),
    "all agree": ("abcab",) * 4,
    "one rank makes another call": ("abca", "abca", "abda", "abca"),
    "one rank brings another size": ("abca", "abca", "abca", "abCa"),
    "one list is shorter": ("abca", "abc", "abca", "abca"),
    "rank 0 makes another call": ("adbb", "acbb", "acbb", "acbb"),
    "rank 0 has ended": ("ab", "abc", "abc"),
    "most have ended": ("ab", "ab", "abc", "ab", "ab"),
    "most have ended, and the others differ": ("ab", "abd", "ab", "ab", "abc", "abd"),
    "two ranks, two calls": ("abc", "abd"),
    "a tie": ("abb", "adb", "add", "abd"),
    "a tie that rank 0 is no part of": ("aab", "abb", "adb", "abb", "adb", "acb"),
    "a tie after rank 0 has ended": ("a", "ab", "ad", "ad", "ab"),
    # the lowest rank's counts, and not what a set or a Counter happens to yield first
    "two ranks, two calls again": ("abd", "abc"),
    "each its own call": ("ab", "ac", "ad"),
    "each its own call, again": ("ad", "ab", "ac"),
    "each its own, at once": ("a", "b", "c", "d"),
    "each its own, at once, again": ("d", "c", "b", "a"),
    "three kinds of call": ("aabb", "abbb", "acbb", "abbb", "adbb", "abbb"),
    "the first calls differ": ("bc", "ac", "ac"),
    "most differ again later, and the others do not": ("ab", "ac", "ad", "cb", "cb"),
    "they differ at first, and again": ("abcd", "acbd", "abca", "abcd", "abdd"),
    "one rank has no calls": ("ab", "", "ab"),
    "one rank leaves a call out": ("abcdab", "abcdab", "abdab", "abcdab"),
    "a long way": ("abcd" * 30, "abcd" * 30, "abcd" * 29 + "abca", "abcd" * 30),
}


def _records(draw: Draw) -> Iterator[Case]:
    for name, records in _RECORDS.items():
        first, second, size, other = (int(i) for i in draw.tensor(Kind(torch.int64, (4,))).abs())
        kinds = ["all_reduce", "all_gather", "broadcast", "reduce_scatter"]
        kinds = kinds[first % 4 :] + kinds[: first % 4]
        calls = {
            "a": (kinds[0], second + 1),
            "b": (kinds[1], size + 101),
            "c": (kinds[2], second + 202),
            "C": (kinds[2], other + 303),
            "d": (kinds[3], size + 101),
        }
        yield draw.case(name, records=[[calls[letter] for letter in rank] for rank in records])


def _divergence(records: Sequence[_Record]) -> tuple[int, list[int]] | None:
    """Return the first position at which a rank differs from the norm, and the ranks that do."""
    for position in range(max(map(len, records), default=0)):
        calls = [one[position] if position < len(one) else None for one in records]
        made = [call for call in calls if call is not None]
        norm = max(made, key=made.count)
        differ = [rank for rank, call in enumerate(calls) if call != norm]
        if differ:
            return position, differ
    return None


def _ties_alone(e: Evidence) -> bool:
    """Return whether just cases fail in which several calls are the most frequent, by their ranks.

    The position is right in them, and other cases with a divergence pass.
    """

    def tie(c: Case) -> bool:
        position, _ = _divergence(c.records) or (0, [])
        counts = Counter(one[position] for one in c.records if position < len(one))
        return sum(count == max(counts.values()) for count in counts.values()) > 1

    right = [one for one in e.passed if _divergence(one.case.records) and not tie(one.case)]
    return bool(right) and all(
        tie(one.case) and one.actual[0][0] == _divergence(one.case.records)[0]  # type: ignore[index]
        for one in e.failed
    )


first_divergence = Exercise(
    signature=(
        "first_divergence(records: list[list[tuple[str, int]]]) -> tuple[int, list[int]] | None"
    ),
    summary="the first position at which the records of ranks differ, and the ranks that do",
    inputs=_records,
    world_sizes=(1,),
    values=Values(lambda c: [_divergence(c.records)] * c.n),
    mistakes=(
        Mistake(
            "The lists are not equally long: at some position one of them has ended, and there is"
            " nothing to look up.",
            when=lambda e: e.raised("IndexError") and len(set(map(len, e.case.records))) > 1,
        ),
        Mistake(
            "You return a position even where all ranks agree; return None there.",
            when=lambda e: (
                _divergence(e.case.records) is None and isinstance(e.actual[0], (tuple, list))
            ),
        ),
        Mistake(
            "It is wrong only where several calls are equally frequent. The norm is then that of"
            " the lowest rank. (max over a set finds any of them.)",
            when=_ties_alone,
        ),
    ),
)


# The sum of the ranks that survive. -------------------------------------------------

#: How late a living rank may be. On a busy machine it may be later: a wrong case gets more time.
_SECONDS = 0.5

#: The same where a rank is late on purpose, by twice as much; every survivor waits for that one.
_SHORT = 0.2

#: By world size, the ranks that are late, those that are killed as they enter, if any are, and how
#: late, in multiples of `seconds`: so late that they need not count, and that they must.  Whatever
#: rank others may depend on, 0 or the last, is late somewhere.
_IN_TIME, _TOO_LATE = 0.8, 2
_LATE: dict[int, Sequence[tuple[int, int | None, float]]] = {
    3: ((1, None, _TOO_LATE), (2, None, _IN_TIME)),
    4: ((0, None, _TOO_LATE), (3, 2, _TOO_LATE), (1, 3, _IN_TIME)),
    5: ((4, None, _TOO_LATE), (0, None, _IN_TIME)),
    8: ((3, None, _TOO_LATE), (7, 5, _IN_TIME)),
}

#: Of three ranks, the one that takes the last, which is so late, for lost and stops before it says
#: so; the one that sees the last, since it began later itself; and how late the last is.
_DIVIDED = ((0, 2, 1.5), (2, 0, 1.5), (0, 2, 1.9))

#: How many times as long a rank may take in all.
_MANY = 5

#: By world size, the ranks that are killed, and the steps; None draws both from the seed. Rank 0
#: dies at every size, since it must not be one on which all others depend.
_KILLS: dict[int, Sequence[tuple[int, int] | None]] = {
    3: ((2, 0), (0, 0), (1, 1)),
    4: ((1, 0), (3, 2), (0, AT_RETURN)),
    5: ((0, 3), (4, 1), None),
    8: ((5, 0), (0, 1), None),
}

_KINDS = (
    Kind(torch.float64, (3, 5)),
    Kind(torch.float32, (1,)),
    Kind(torch.int64, (2, 4)),
)


def _survival(draw: Draw) -> Iterator[Case]:
    x = draw.per_rank(Kind(torch.int64, (4,)), "SUM")
    yield draw.case("no rank is killed", x=x, seconds=_SECONDS)
    nothing = draw.per_rank(Kind(torch.float64, (0,)))
    yield draw.case("no rank is killed, and x is empty", x=nothing, seconds=_SECONDS)
    for kill, kind in zip(_KILLS.get(draw.n, (None,)), _KINDS, strict=False):
        rank, step = draw.tensor(Kind(torch.int64, (2,))).tolist()
        killed = Kill(*(kill or (rank % draw.n, step % 10)))
        # the first can be read, digit by digit
        given = x if kind is _KINDS[0] else draw.per_rank(kind, "SUM")
        # a drawn one may be the same as another
        name = str(killed) if kill else f"{killed}, as drawn"
        # the one that dies goes first wherever all are ready
        slower = (Delay(r, 0.2 * _SECONDS) for r in draw.ranks if killed.step and r != killed.rank)
        case = draw.case(name, x=given, seconds=_SECONDS)
        yield replace(case, killed=killed, held=tuple(slower))
    for late, dead, times in _LATE.get(draw.n, ()):
        dying, seconds = None if dead is None else Kill(dead, 0), _SHORT if times > 1 else _SECONDS
        name = f"rank {late} is late by {times} · `seconds`"
        name = name if dying is None else f"{dying}, and {name}"
        # numbers that are rounded, so that ranks which add in different orders differ in bits
        case = draw.case(name, x=draw.per_rank(Kind(torch.float32, (6,))), seconds=seconds)
        yield replace(case, killed=dying, late=(Delay(late, times * seconds),))
    for stops, late, later in _DIVIDED if draw.n == 3 else ():
        name = f"rank {late} is late by {_IN_TIME} · `seconds`, rank 1 by {later}; {stops} pauses"
        # with more time than the others, since a busy machine must not unite them
        case = draw.case(name, x=x, seconds=2 * _SECONDS)
        late_ones = Delay(late, _IN_TIME * case.seconds), Delay(1, later * case.seconds)
        yield replace(case, late=late_ones, held=(Delay(stops, 0.95 * case.seconds),))


def _living(c: Case) -> list[int]:
    return [rank for rank in c.ranks if c.killed is None or rank != c.killed.rank]


def _too_late(c: Case) -> set[int]:
    """Return the ranks that may be left out although they live."""
    return {one.rank for one in c.late if one.seconds > c.seconds}


def _must_count(c: Case) -> set[int]:
    """Return the ranks that live and are not too late, which no list may leave out."""
    return set(_living(c)) - _too_late(c)


def _lost(c: Case) -> set[int]:
    """Return the rank that is killed, and the one that is late."""
    return set(c.ranks) - _must_count(c)


def _total(c: Case, ranks: Sequence[int]) -> torch.Tensor:
    return reduced(OPS["SUM"], [c.x[rank] for rank in ranks])


def _survivors_hold(c: Case, value: Any) -> list[Any]:
    """Return one value on every rank that lives, and nothing on one that was killed."""
    living = _living(c)
    return [value if rank in living else None for rank in c.ranks]


def _of(c: Case, ranks: Sequence[int]) -> list[Any]:
    return _survivors_hold(c, (_total(c, ranks), list(ranks)))


def _may_count(c: Case) -> list[list[Any]]:
    """Return what survivors may also agree on, who count a rank that died or was late.

    One that died may have told its x before, and one that is late may be left out.
    """
    sets = {tuple(_living(c)), tuple(c.ranks)}
    sets |= {tuple(rank for rank in one if rank not in _too_late(c)) for one in sets}
    return [_of(c, one) for one in sorted(sets - {tuple(_living(c))})]


def _lists(e: Evidence) -> list[list[int]]:
    """Return the ranks that each survivor lists.

    Raises:
        TypeError: one of them returns no pair.
    """
    return [list(e.actual[rank][1]) for rank in _living(e.case)]


def _returned(e: Evidence, summed: Sequence[int], listed: list[int]) -> bool:
    """Return whether all survivors return the sum over some ranks, and a list of some."""
    if e.diagnosis not in (Diagnosis.WRONG_VALUE, Diagnosis.WRONG_SHAPE):
        return False
    total = _total(e.case, summed)
    return _lists(e) == [listed] * len(_living(e.case)) and all(
        compare(total, e.actual[rank][0], e.case.n, total.abs() + 1) is None
        for rank in _living(e.case)
    )


def _sums(one: JudgedCase) -> list[torch.Tensor]:
    """Return the different sums that survivors return, where rounding makes no difference.

    Raises:
        TypeError: one of them returns no pair.
    """
    found: list[torch.Tensor] = []
    for rank in _living(one.case):
        total = one.actual[rank][0]
        if not isinstance(total, torch.Tensor):
            continue
        if not any(compare(other, total, one.case.n, other.abs() + 1) is None for other in found):
            found.append(total)
    return found


def _lost_digits(one: JudgedCase) -> bool:
    """Return whether survivors hold nearly the sum over the ranks that they list."""
    # a fixed number of decimals costs small numbers more
    size = magnitude(OPS["SUM"], one.case.x).abs().clamp(min=10)
    held = [one.actual[rank] for rank in _living(one.case)]
    near = (nearly(_total(one.case, ranks), total, size) for total, ranks in held)
    return one.diagnosis is Diagnosis.WRONG_VALUE and all(near)


def _waits_without_end(e: Evidence, *calls: str) -> bool:
    """Return whether a survivor waits forever in one of these, after a rank was killed."""
    waits = e.failure.waits if e.failure is not None else ()
    return e.case.killed is not None and any(wait.call in calls for wait in waits)


def _alone_at_fault(e: Evidence, rank: int) -> bool:
    """Return whether it does harm only if one rank dies or is late, and none if another does so."""

    def deaths(judged: Sequence[Any]) -> list[Kill]:
        return [one.case.killed for one in judged if one.limit is None and one.case.killed]

    wrong, right = deaths(e.failed), deaths(e.passed)
    return any(kill.step == other.step for kill in wrong for other in right) and all(
        rank in _lost(one.case) for one in e.failed
    )


def _uncaught(e: Evidence) -> bool:
    """Return whether operations fail uncaught, and just where a rank is dead or late."""
    lost = {bool(_lost(one.case)) for one in e.failed}
    spared = any(one.limit is None and not _lost(one.case) for one in e.passed)
    return (
        e.diagnosis is Diagnosis.EXCEPTION
        and e.raised("RuntimeError", "DistBackendError", "DistNetworkError", "DistStoreError")
        and lost == {True}
        and spared
    )


def _nanoseconds(trace: Measured) -> int:
    """Return how long after the last rank has entered the last one has returned."""
    spans = record_of(trace).call_spans
    entered = max((one.entered or 0 for one in spans), default=0)
    left = [one.left or 0 for one in spans if one.how == "returned"]
    return max(left, default=entered) - entered


def _ranks_in(returned: Any) -> Sequence[int] | None:
    """Return the ranks that an answer lists, or ``None`` if it lists none."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        return None
    ranks = returned[1]
    listed = isinstance(ranks, (tuple, list)) and all(type(rank) is int for rank in ranks)
    return ranks if listed else None


def _leaves_out(must_count: set[int], returned: Any) -> bool:
    """Return whether an answer lists ranks, but not all of those that have to count."""
    ranks = _ranks_in(returned)
    return ranks is not None and not must_count <= set(ranks)


def _with_more_time(one: JudgedCase) -> Case | None:
    """Return the case with more time, if it may have gone wrong because a rank was too late.

    Then a rank that lives counts as dead, which makes a sum wrong or an answer give up on an
    operation, or the whole takes too long.  Survivors that disagree on the dead rank do not need
    more time.
    """
    c, living = one.case, _living(one.case)
    must = _must_count(c)
    if one.diagnosis is None:
        late = _nanoseconds(one.trace) > _MANY * c.seconds * 1e9
    elif one.diagnosis in (Diagnosis.WRONG_VALUE, Diagnosis.WRONG_SHAPE):
        late = any(_leaves_out(must, one.actual[rank]) for rank in living)
    else:
        late = one.diagnosis in (Diagnosis.EXCEPTION, Diagnosis.UNWAITED_REQUEST)
    if not late:
        return None
    times = 2 * max(1.0, _SECONDS / c.seconds)
    late, held = ([Delay(d.rank, times * d.seconds) for d in of] for of in (c.late, c.held))
    columns = {**c.columns, "seconds": times * c.seconds}
    return replace(c, columns=columns, late=tuple(late), held=tuple(held))


def _misses_the_point(one: JudgedCase) -> bool:
    """Return whether a dead rank takes others with it, one in time is left out, or lists differ."""
    lasting = (Diagnosis.EXCEPTION, Diagnosis.DEADLOCK, Diagnosis.TIMEOUT)
    if one.diagnosis in (Diagnosis.NONDETERMINISTIC, *(lasting if one.case.killed else ())):
        return True
    if one.diagnosis not in (Diagnosis.WRONG_VALUE, Diagnosis.WRONG_SHAPE):
        return False
    lists = [_ranks_in(one.actual[rank]) for rank in _living(one.case)]
    if None in lists:
        return False
    if any(_leaves_out(_must_count(one.case), one.actual[rank]) for rank in _living(one.case)):
        return True
    return len({tuple(sorted(ranks or ())) for ranks in lists}) > 1 or len(_sums(one)) > 1


sum_of_survivors = Exercise(
    signature="sum_of_survivors(x: Tensor, seconds: float) -> tuple[Tensor, list[int]]",
    summary="the sum over the ranks that survive, and their ranks, though one may be killed",
    inputs=_survival,
    world_sizes=(3, 4, 5, 8),
    values=Values(
        lambda c: _of(c, _living(c)),
        also=_may_count,
        reduced=lambda c: c.n,
        magnitude=lambda c: [[magnitude(OPS["SUM"], c.x), None]] * c.n,
        agree=True,
    ),
    point=_misses_the_point,
    traffic=TrafficRules(
        limits=(
            point(
                Limit(
                    "multiples of `seconds` until the last survivor returns",
                    _nanoseconds,
                    "≤",
                    lambda c: _MANY,
                    Diagnosis.TIMEOUT,
                    unit=lambda c: round(c.seconds * 1e9),
                )
            ),
        ),
        allowed=frozenset({"all_reduce", "new_group"}),
        store=True,
    ),
    patient=_with_more_time,
    mistakes=(
        Mistake(
            "The survivors do not agree: they list different ranks. One of them may have heard from"
            " a rank before it died, or just before it counted as dead, and another not. Let them"
            " settle on one list,"
            ' for example with store.compare_set("survivors", "", mine), which returns the list'
            " that came first.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.WRONG_VALUE, Diagnosis.WRONG_SHAPE)
                and len({tuple(sorted(one)) for one in _lists(e)}) > 1
            ),
        ),
        Mistake(
            "The survivors return the same list, and different sums. Once the list is settled, sum"
            " over the ranks of that list, and not over those that a rank has found itself.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_VALUE
                and len({tuple(one) for one in _lists(e)}) == 1
                and len(_sums(e.here)) > 1
            ),
        ),
        Mistake(
            "It works when another rank dies, but not when rank 0 does. No rank may be"
            " indispensable: let whichever rank proposes first decide, with store.compare_set.",
            when=lambda e: _alone_at_fault(e, 0),
        ),
        Mistake(
            "An all_reduce without a time limit waits for the rank that is dead, and waits"
            " forever. Start it with async_op=True, and give the wait a limit:"
            " work.wait(timedelta(seconds=seconds)).",
            when=lambda e: _waits_without_end(e, "all_reduce"),
        ),
        Mistake(
            "new_group waits until all members have joined, and one of them is dead. Give it"
            " timeout=timedelta(seconds=seconds), and only ranks that live.",
            when=lambda e: _waits_without_end(e, "new_group"),
        ),
        Mistake(
            "store.get, and store.wait without a time limit, wait forever for a key that a dead"
            " rank should set. Wait for each key with a limit first:"
            " store.wait([key], timedelta(seconds=seconds)).",
            when=lambda e: _waits_without_end(e, "store"),
        ),
        Mistake(
            "A call that needs a dead rank raises a RuntimeError when its time limit runs out, or"
            " when the connection to that rank breaks: catch it around the call, and go on without"
            " that rank.",
            when=_uncaught,
        ),
        Mistake(
            "A rank that lives is left out. It may be up to `seconds` late: wait that long for"
            " each of them before you take it for dead.",
            when=lambda e: any(not _must_count(e.case) <= set(one) for one in _lists(e)),
        ),
        Mistake(
            "The ranks are right, but in another order: return them from the lowest to the"
            " highest.",
            when=lambda e: (
                all(_must_count(e.case) <= set(one) for one in _lists(e))
                and any(one != sorted(one) for one in _lists(e))
            ),
        ),
        Mistake(
            "Only the last digits of the sums are wrong: a format such as :.6f, or another dtype,"
            " has rounded x on its way. json.dumps(x.tolist()) keeps every digit.",
            when=lambda e: all(map(_lost_digits, e.failed)),
        ),
        Mistake(
            "You list every rank, even the dead one, whose x is not in the sum. List the ranks"
            " that were summed.",
            when=lambda e: _returned(e, _living(e.case), list(e.case.ranks)),
        ),
        Mistake(
            "The dead rank is in the sum but not in your list. It has to count in both, or in"
            " neither.",
            when=lambda e: _returned(e, e.case.ranks, _living(e.case)),
        ),
        Mistake(
            "You return how many survived. Return their ranks, as a list.",
            when=lambda e: all(type(e.actual[rank][1]) is int for rank in _living(e.case)),
        ),
        Mistake(
            "That is the sum alone. Return a pair: the sum, and the list of the ranks in it.",
            when=lambda e: all(
                isinstance(e.actual[rank], torch.Tensor) for rank in _living(e.case)
            ),
        ),
        Mistake(
            "Each wait has a time limit, but there are too many of them, one after another. Wait"
            " only once for a dead rank: by the time that wait is over, the living ranks have"
            " arrived, and none of them has to be waited for again.",
            when=lambda e: e.diagnosis is Diagnosis.TIMEOUT and e.failure is None,
        ),
    ),
)
