"""Chapter 09: no rank leaves a barrier before every rank has entered it."""

from collections.abc import Callable, Sequence
from typing import Any

from grader.course.chapters import evidence
from grader.course.costs import tree_levels
from grader.exercise.cases import Case, demo
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import messages, point, rounds
from headcount.core.verdict import Diagnosis, Failure
from headcount.trace.trace import Operation, Trace, heard_from


def _calls_in_rank(barrier: Callable[[], Any], calls: int) -> Any:
    """Call the answer ``calls`` times in a row, and return the first value other than ``None``."""
    returned = [barrier() for _ in range(calls)]
    return next((value for value in returned if value is not None), None)


def _part(operations: Sequence[Operation], i: int, calls: int) -> Sequence[Operation]:
    """Return what a rank did in its call ``i``, which takes as many operations as every other."""
    length = len(operations)
    return operations[length * i // calls : length * (i + 1) // calls]


def _leaves_early(c: Case, trace: Trace) -> Failure | None:
    for i in range(c.calls):
        part = Trace(tuple(_part(operations, i, c.calls) for operations in trace.operations))
        for rank, heard in enumerate(heard_from(part)):
            missing = sorted(set(c.ranks) - heard)
            if missing:
                where = "" if c.calls == 1 else " in one of the two barriers"
                return Failure(
                    Diagnosis.NOT_SYNCHRONIZED,
                    f"rank {rank} can leave before rank {missing[0]} has entered: no chain of"
                    f" messages leads from rank {missing[0]} to rank {rank}{where}",
                    rank,
                )
    return None


# What a trace tells of the mistake. ---------------------------------------------


def _early(e: Evidence) -> bool:
    return e.diagnosis is Diagnosis.NOT_SYNCHRONIZED


def _ever_early(e: Evidence) -> bool:
    """Return whether a rank could leave early in any failed case, whichever leads the verdict."""
    return any(one.diagnosis is Diagnosis.NOT_SYNCHRONIZED for one in e.failed)


def _distances(e: Evidence) -> set[int]:
    """Return the distances to the right that messages go."""
    return {(op.peer - op.rank) % e.case.n for op in e.trace.sends()}


def _sends_of_each(e: Evidence) -> set[int]:
    """Return the numbers of messages that ranks send per call, one if all send equally many."""
    return {
        sum(op.kind == "send" for op in operations) // e.case.calls
        for operations in e.trace.operations
    }


def _sends_at_once(e: Evidence) -> bool:
    """Return whether each rank sends before it has heard of any other."""
    return all(
        any(op.kind == "send" and op.posted <= heard for op in operations)
        for operations in e.trace.operations
        for heard in (min(op.done or op.posted for op in operations if op.kind == "recv"),)
    )


def _uses_one_centre(e: Evidence) -> bool:
    """Return whether a rank of more than two is an end of all messages, two for each other rank."""
    largest = max(e.failed, key=lambda one: one.case.n)
    n, messages = largest.case.n, largest.trace.traffic.messages
    if n < 3 or messages != largest.case.calls * 2 * (n - 1):
        return False
    ends = [{op.rank, op.peer} for op in largest.trace.sends()]
    return bool(ends) and bool(set.intersection(*ends))


barrier = Exercise(
    signature="barrier() -> None",
    summary="dissemination: no rank leaves before the last has entered",
    inputs=lambda draw: (
        draw.case("one barrier", calls=1),
        draw.case("two barriers in a row", calls=2),
    ),
    adapter=_calls_in_rank,
    values=Values(lambda c: [None] * c.n),
    traffic=TrafficRules(
        limits=(
            point(rounds("=", lambda c: c.calls * tree_levels(c.n))),
            messages("=", lambda c: c.calls * c.n * tree_levels(c.n)),
        ),
        proof=_leaves_early,
    ),
    demo=lambda n: demo(n, calls=1),
    mistakes=(
        Mistake(
            "Nothing was sent. A rank cannot know by sleeping or by looking at a clock that the"
            " others have come: it has to be told.",
            when=lambda e: _early(e) and e.trace.traffic.messages == 0,
        ),
        Mistake(
            "A receive from any rank may take a message of a later round in place of this one's."
            " Then you go on before you have heard what you should pass on. Name the source.",
            when=lambda e: _ever_early(e) and e.wildcards,
        ),
        Mistake(
            "One barrier works, and a second one right after it does not: does the function"
            " remember something from the call before?",
            when=lambda e: (
                _early(e)
                and e.case.calls > 1
                and e.trace.traffic.messages == e.case.n * tree_levels(e.case.n)
            ),
        ),
        Mistake(
            "Not every rank hears from the others: a rank that only sends does not know whether the"
            " last one has come. It needs an answer.",
            when=lambda e: _early(e) and e.case.n == 2 and e.trace.traffic.messages < 2,
        ),
        Mistake(
            "Flipping a bit of the rank (rank ^ step) pairs all ranks only if n is a power of two."
            " A partner at (rank + step) % n exists for every n.",
            when=lambda e: _early(e) and evidence.is_butterfly(e),
        ),
        Mistake(
            "The partner is always the same. After each round every rank knows of twice as many"
            " ranks, so the step has to double, too: 1, 2, 4, …",
            when=lambda e: _early(e) and len(_distances(e)) == 1 and min(_sends_of_each(e)) > 1,
        ),
        Mistake(
            "A round is missing: the steps are all the powers of two below n. Their number is log₂"
            " n, rounded up.",
            when=lambda e: (
                _early(e)
                and len(_sends_of_each(e)) == 1
                and _sends_at_once(e)
                and e.trace.traffic.messages < e.case.calls * e.case.n * tree_levels(e.case.n)
            ),
        ),
        Mistake(
            "A message is sent before that of the round before has come. It tells only what its"
            " sender knew when it sent it: receive this round's message before the next one.",
            when=lambda e: (
                _early(e) and _distances(e) == {1 << k for k in range(tree_levels(e.case.n))}
            ),
        ),
        Mistake(
            "First one rank hears of all the others, and then they hear from it: two halves, one"
            " after the other. Here every rank sends and receives in every round, and none is in"
            " the middle.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.TOO_MANY_ROUNDS, Diagnosis.NOT_SYNCHRONIZED)
                and not e.failure
                and _uses_one_centre(e)
            ),
        ),
        *evidence.BUFFER_RACES,
    ),
)
