"""Assessment: the verdict on a case, from its outcome and the expected values if it was run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from grader.errors import DeclarationError
from grader.exercise.cases import Case
from grader.exercise.compare import Difference, compare, differing_bits, side_by_side
from grader.exercise.declaration import Exercise, JudgedCase
from grader.exercise.limits import Limit
from grader.exercise.verdict import Bound, CaseVerdict, RankRow, Status
from headcount.core.values import describe
from headcount.core.verdict import Diagnosis, Failure, SourceLine, Traffic
from headcount.launch.root_cause import not_understood
from headcount.launch.world import Outcome
from headcount.trace.trace import Trace

__all__ = [
    "Measured",
    "assess",
    "assess_again",
    "assess_limit",
    "held_by",
    "kept_trace",
    "measure",
    "not_run",
    "ranks",
    "rounding",
    "too_late",
]


def ranks(n: int, simulated: bool = False) -> str:
    """Return a number of ranks in words: ``1 rank``, ``2 ranks``, ``67 simulated ranks``."""
    if simulated:
        return f"{n} simulated ranks"
    return "1 rank" if n == 1 else f"{n} ranks"


def assess(
    exercise: Exercise, case: Case, outcome: Outcome, repeated: bool = False, shown: bool = True
) -> tuple[CaseVerdict, JudgedCase]:
    """Compare what the ranks hold with what they should hold.

    Args:
        exercise: the exercise.
        case: the input.
        outcome: the outcome of the run.
        repeated: whether the same processes have run the same case before.
        shown: whether anybody sees the verdict, which then has the rows of all ranks.

    Raises:
        DeclarationError: the exercise cannot say what it expects, whatever the ranks hold.
    """
    try:
        return _assess(exercise, case, outcome, repeated, shown)
    except MemoryError:
        raise
    except Exception as error:
        # what the ranks hold and report is theirs; a fault of the exercise's own shows without it
        failure = not_understood("a rank", error)
        nothing = Outcome(
            (), failure, Trace(((),) * case.n), outcome.output, outcome.seconds, outcome.moved
        )
        try:
            return _assess(exercise, case, nothing, repeated, shown)
        except Exception as own:
            raise DeclarationError(
                f"{exercise.name} cannot say what it expects: {type(own).__name__}: {own}"
            ) from own


def _assess(
    exercise: Exercise, case: Case, outcome: Outcome, repeated: bool, shown: bool
) -> tuple[CaseVerdict, JudgedCase]:
    actual = held_by(exercise, case, outcome)
    expected = _expected(exercise, case, actual)
    failure = outcome.failure
    difference = None
    if failure is not None:
        failure = _explain_wrong_signature(exercise, failure)
    else:
        difference = _difference(exercise, case, outcome, expected, actual)
        failure = _first_fault(exercise, case, outcome, difference)
        failure = failure or _disagreement(exercise, case, expected, actual)
        failure = failure or _too_little_traffic(exercise, case, outcome, expected, repeated)
    verdict = CaseVerdict(
        case.name,
        case.n,
        Status.FAILED if failure else Status.PASSED,
        traffic=_traffic(exercise, case, outcome.trace),
        output=outcome.output,
        simulated=case.network is not None,
    )
    if failure is None:
        return verdict, JudgedCase(case, None, actual, None, outcome.trace)
    arguments = [result.arguments for result in outcome.results]
    seen = JudgedCase(
        case, failure.diagnosis, actual, outcome.failure, outcome.trace, arguments=arguments
    )
    misses_point = bool(case.pauses) or (exercise.point is not None and exercise.point(seen))
    return replace(
        verdict,
        diagnosis=failure.diagnosis,
        message=_without_single_rank(exercise, failure.message),
        rank=failure.rank,
        site=failure.site,
        detail=failure.detail + outcome.trace.warnings,
        frames=failure.frames,
        waits=failure.waits,
        cycle=failure.cycle,
        ended=failure.ended,
        killed=failure.killed,
        by_rank=_rank_rows(exercise, case, expected, actual) if shown else (),
        shown_by_rank=(
            _without_single_rank(exercise, failure.message) if failure is difference else ""
        ),
        misses_point=misses_point,
        minor=seen.minor,
        call=_call(exercise, case) if shown else "",
    ), replace(seen, misses_point=misses_point)


#: Characters of the longest call that a message shows, which are two lines of a terminal.
_SHORT = 150


def _call(exercise: Exercise, case: Case) -> str:
    """Return the call of a function on one rank; nothing if a message has no room for it."""
    held = [case.columns[name] for name in exercise.parameters if name in case.columns]
    # what an adapter makes of None, or of a class or a text, is not known here
    known = exercise.name.islower() and not (exercise.adapter and any(x is None for x in held))
    if exercise.world_sizes != (1,) or len(held) < len(exercise.parameters) or not known:
        return ""
    lists = (x.tolist() if torch.is_tensor(x) and (x.dim() < 2 or len(x)) else x for x in held)
    call = f"{exercise.name}({', '.join(map(repr, lists))})"
    return call if len(call) <= _SHORT else ""


def _traffic(exercise: Exercise, case: Case, trace: Trace) -> Traffic:
    """Return the traffic of a case, with its virtual seconds where other ways' are known."""
    others = exercise.others
    compared = others is not None and (case.name, case.n) == (others.case, others.world_size)
    # how a collective sends is the transport's matter
    compared &= all(op.is_message or op.makes_group for ops in trace.operations for op in ops)
    return replace(trace.traffic, seconds=trace.seconds) if compared else trace.traffic


def held_by(exercise: Exercise, case: Case, outcome: Outcome) -> list[Any]:
    """Return what each rank holds: the returned value, or the argument for the result."""
    if exercise.values.facts is not None:
        return [_worded(exercise.values.facts(case, result.value)) for result in outcome.results]
    if exercise.values.result is None:
        return [result.value for result in outcome.results]
    place = _result_position(exercise, case)
    return [result.arguments[place] for result in outcome.results]


class _Fact(str):
    """A fact in words, which is shown without the quotes of a text."""

    __repr__ = str.__str__


def _worded(facts: Any) -> Any:
    """Return facts whose texts are words of the grader's, and not texts of the answer's."""
    if not isinstance(facts, dict):
        return facts
    return {name: _Fact(one) if isinstance(one, str) else one for name, one in facts.items()}


def _expected(exercise: Exercise, case: Case, actual: Sequence[Any]) -> list[Any]:
    """Return what each rank should hold: of several right results, that which is most alike."""
    right = [list(exercise.values.expected(case))]
    if exercise.values.facts is not None:
        right = [list(map(_worded, right[0]))]
    if exercise.values.also is None or not actual:
        return right[0]
    right += map(list, exercise.values.also(case))

    def agreeing(expected: list[Any]) -> tuple[int, int]:
        ranks = sum(found is None for _, found in _differences(exercise, case, expected, actual))
        every = zip(expected, actual, strict=True)
        both = [(one, other) for one, other in every if type(one) is type(other) is tuple]
        entries = [pair for held in both for pair in zip(*held, strict=False)]
        return ranks, sum(compare(*pair) is None for pair in entries)

    return max(right, key=agreeing)


def _result_position(exercise: Exercise, case: Case) -> int:
    """Return the position of the argument that holds the result."""
    return list(case.columns).index(exercise.values.result or "")


def _terms_and_scales(exercise: Exercise, case: Case) -> tuple[int, Sequence[Any]]:
    terms = exercise.values.reduced(case) if exercise.values.reduced else 0
    scales = exercise.values.magnitude(case) if exercise.values.magnitude else [None] * case.n
    return terms, scales


def rounding(exercise: Exercise, case: Case) -> bool:
    """Return whether a right result may still depend on the order in which values are reduced.

    It must not where the result is exact: of integers, of a minimum or maximum (nothing is
    rounded there, so that their magnitude is 0), on one rank, and without elements.
    """
    terms, scales = _terms_and_scales(exercise, case)
    if terms < 2:
        return False
    held = [
        scale for scale in scales if isinstance(scale, torch.Tensor)
    ] or exercise.values.expected(case)
    return any(tensor.is_floating_point() and bool(tensor.any()) for tensor in held)


def _differences(
    exercise: Exercise, case: Case, expected: Sequence[Any], actual: Sequence[Any]
) -> Iterator[tuple[int, Difference | None]]:
    """Yield every rank with the first place where its result is wrong, if there is one."""
    # worked out for all ranks at once: a magnitude may take as long as the oracle itself
    terms, scales = _terms_and_scales(exercise, case)
    name = exercise.values.result or ""
    for rank, values in enumerate(zip(expected, actual, scales, strict=True)):
        want, got, scale = values
        yield rank, compare(want, got, terms, scale, name, exercise.values.relative)


def _difference(
    exercise: Exercise, case: Case, outcome: Outcome, expected: Sequence[Any], actual: Sequence[Any]
) -> Failure | None:
    """Return the first rank whose result is wrong, with the line of its last receive."""
    every = _differences(exercise, case, expected, actual)
    wrong = [(rank, found) for rank, found in every if found]
    if not wrong:
        return None
    first, found = wrong[0]
    held = expected[first].values() if isinstance(expected[first], dict) else [expected[first]]
    # a plain number, such as a time, is not what came in
    plain = all(isinstance(one, (int, float, str)) for one in held)
    frames = () if plain else _last_receive(outcome.trace, [rank for rank, _ in wrong])
    return Failure(found.diagnosis, f"rank {first}: {found.message}", first, frames=frames)


def _last_receive(trace: Trace, ranks: Iterable[int]) -> tuple[SourceLine, ...]:
    """Return the line of the last receive on the first of some ranks that received at all."""
    for rank in ranks:
        received = [op for op in trace.operations[rank] if op.kind == "recv" and op.site.line]
        if received:
            return (SourceLine(received[-1].site, role=f"the last receive of rank {rank}"),)
    return ()


def _first_fault(
    exercise: Exercise, case: Case, outcome: Outcome, difference: Failure | None
) -> Failure | None:
    for rank, result in enumerate(outcome.results):
        if exercise.values.result is not None and result.value is not None:
            message = (
                f"rank {rank} returns {describe(result.value)}; the result belongs into"
                f" {exercise.values.result}, and nothing is returned"
            )
            return Failure(Diagnosis.WRONG_TYPE, message, rank)
    if difference is not None:
        return difference
    for rank, result in enumerate(outcome.results):
        if (
            exercise.values.result is not None
            and _result_position(exercise, case) in result.replaced
        ):
            return Failure(
                Diagnosis.WRONG_VALUE,
                f"rank {rank}: the right values are in new tensors, and those that were in"
                f" {exercise.values.result} have not changed: write into these",
                rank,
            )
        changed = _changed_argument(exercise, case, rank, result.arguments)
        if changed:
            message = f"rank {rank}: {changed} must stay as it was, but has changed"
            return Failure(Diagnosis.INPUT_CHANGED, message, rank)
        held = exercise.values.result
        shared = [list(case.columns)[place] for place in result.aliases]
        if shared and (result.value is not None if held is None else held in shared):
            name = next(one for one in shared if one != held)
            what, do = (held, "copy the numbers") if held else ("the result", "return a copy")
            message = f"rank {rank}: {what} shares memory with {name}; {do}"
            return Failure(Diagnosis.ALIASED, message, rank)
    if exercise.traffic.proof and (failure := exercise.traffic.proof(case, outcome.trace)):
        return failure
    return _wrong_message(exercise, case, outcome.trace)


def _wrong_message(exercise: Exercise, case: Case, trace: Trace) -> Failure | None:
    """Return a failure if a message whose contents were recorded carries others than it should."""
    wanted = exercise.traffic.carried(case) if exercise.traffic.carried else {}
    for op in trace.sends():
        held, expected = trace.contents(op), wanted.get((op.rank, op.peer))
        if held is None or expected is None:
            continue
        numbers = torch.tensor(held, dtype=torch.float64)
        found = compare(expected.flatten().double(), numbers, name="the message")
        if found:
            message = f"rank {op.rank}: {found.message}; it goes to rank {op.peer}"
            frames = (SourceLine(op.site, role=f"the send of rank {op.rank}"),)
            return Failure(found.diagnosis, message, op.rank, frames=frames)
    return None


def _disagreement(
    exercise: Exercise, case: Case, expected: Sequence[Any], actual: Sequence[Any]
) -> Failure | None:
    """Return a failure if ranks hold different bits where they have to agree, in right results."""
    if not exercise.values.agree:
        return None
    first, *others = (rank for rank in case.ranks if expected[rank] is not None)
    for rank in others:
        found = differing_bits(actual[first], actual[rank])
        if found:
            message = f"rank {first} and rank {rank} hold different bits, {found}"
            return Failure(Diagnosis.NONDETERMINISTIC, message, rank)
    return None


def _too_little_traffic(
    exercise: Exercise, case: Case, outcome: Outcome, expected: Sequence[Any], repeated: bool
) -> Failure | None:
    """Return a failure if the values are right, but the network carried too little for them.

    A program may remember values from an earlier call, or compute values that do not depend on
    the seed.  It has no other honest way to get numbers that were drawn.
    """
    if outcome.moved is None or exercise.traffic.least is None:
        return None
    least = exercise.traffic.least(case, expected)
    if outcome.moved >= least:
        return None
    carried = (
        f"the values are right, but the network carried {max(0, outcome.moved)} bytes, and no"
        f" algorithm needs fewer than {least}"
    )
    if repeated:
        what = f"{carried}: this call repeats an earlier one; communicate in every call"
        return Failure(Diagnosis.TOO_FEW_BYTES, what)
    if is_predictable(exercise, case):
        what = f"{carried}: the ranks have to tell each other, also what can be guessed"
        return Failure(Diagnosis.TOO_FEW_BYTES, what)
    return Failure(Diagnosis.TAMPERING, carried)


def is_predictable(exercise: Exercise, case: Case) -> bool:
    """Return whether the expected values are the same for every seed."""
    held = []
    for seed in (1, 2):
        drawn = (one for one in exercise.cases(seed, case.n) if one.name == case.name)
        held.append([list(exercise.values.expected(one)) for one in drawn])
    return bool(held[0]) and compare(held[0], held[1]) is None


def assess_again(
    exercise: Exercise, case: Case, outcome: Outcome, again: Outcome
) -> tuple[CaseVerdict, JudgedCase]:
    """Assess another run of a case whose outcome was right, in another order of arrival.

    Where the exercise asks for the same bits, they are compared between ranks
    and between the runs.
    """
    verdict, seen = assess(exercise, case, again, repeated=True)
    if not verdict.passed or not exercise.values.same_bits:
        return verdict, seen
    first, second = (held_by(exercise, case, run) for run in (outcome, again))
    message = ""
    for rank in case.ranks:
        found = differing_bits(first[0], first[rank])
        if found:
            message = f"rank 0 and rank {rank} hold different bits, {found}"
            break
        found = differing_bits(first[rank], second[rank])
        if found:
            message = f"rank {rank} does not hold the same bits when it is run again, {found}"
            break
    if not message:
        return verdict, seen
    seen = JudgedCase(case, Diagnosis.NONDETERMINISTIC, first, None, outcome.trace)
    return replace(
        verdict,
        status=Status.FAILED,
        diagnosis=Diagnosis.NONDETERMINISTIC,
        message=message,
        rank=rank,
        minor=seen.minor,
    ), seen


def _changed_argument(
    exercise: Exercise, case: Case, rank: int, after: Sequence[Any]
) -> str | None:
    for name, before, now in zip(case.columns, case.arguments(rank), after, strict=True):
        if name != exercise.values.result and compare(before, now) is not None:
            return name
    return None


def _explain_wrong_signature(exercise: Exercise, failure: Failure) -> Failure:
    """Return the failure, with the meaning of a TypeError that has no line of the student's."""
    if failure.site is not None or failure.raised.kind != "TypeError" or exercise.adapter:
        return failure
    header = exercise.signature.partition(" ->")[0]
    return replace(failure, message=f"cannot be called as {header}: {failure.raised.message}")


def _rank_rows(
    exercise: Exercise, case: Case, expected: Sequence[Any], actual: Sequence[Any]
) -> tuple[RankRow, ...]:
    """Return what each rank should hold and holds; nothing if all are right."""
    if not actual:
        return ()
    terms, scales = _terms_and_scales(exercise, case)
    relative, report = exercise.values.relative, exercise.adapter is not None
    held = zip(case.ranks, expected, actual, scales, strict=True)
    rows = tuple(
        side_by_side(rank, want, got, terms, scale, relative, report=report)
        for rank, want, got, scale in held
    )
    return () if all(row.right for row in rows) else rows


def _without_single_rank(exercise: Exercise, message: str) -> str:
    """Return a message without the number of the rank, where there is only one rank."""
    if exercise.world_sizes != (1,):
        return message
    return message.removeprefix("rank 0: ").removeprefix("rank 0, ")


#: Bytes of reports whose record is kept until a verdict; the judge would need many times that
#: for the records of all cases, if each were as long as one may be.
_LONG = 2 << 20


def kept_trace(outcome: Outcome) -> Trace:
    """Return the record of a run for hints on it; of a long one the figures alone."""
    return outcome.trace if outcome.reported <= _LONG else outcome.trace.figures()


@dataclass(frozen=True)
class Measured:
    """What a limit says of a run whose values were right; ``found`` continues the message."""

    case: Case
    bound: Bound
    found: str
    trace: Trace


def measure(limit: Limit, case: Case, outcome: Outcome) -> Measured | None:
    """Return what a limit says of a run, or None if it does not apply to the case."""
    if not limit.applies(case):
        return None
    bound = limit.judge(case, outcome.trace)
    found = "" if bound.holds or limit.found is None else limit.found(outcome.trace)
    return Measured(case, bound, found, kept_trace(outcome))


def assess_limit(
    limit: Limit, n: int, right: Iterable[Measured | None], verdicts: Iterable[CaseVerdict]
) -> tuple[CaseVerdict, JudgedCase | None]:
    """Return the verdict on a limit, from what it says of the runs whose values were right."""
    found = [one for one in right if one is not None]
    if not found:
        wrong = next(v for v in verdicts if v.world_size == n and not v.passed)
        message = "not judged: no run of this world size gave the right result"
        unjudged = CaseVerdict(limit.quantity, n, Status.FAILED, wrong.diagnosis, message)
        return replace(unjudged, is_limit=True, judged=False), None
    broken = [one for one in found if not one.bound.holds]
    # an input of which the limit asks something says more than one of which it asks nothing
    telling = [one for one in found if one.bound.asked]
    first = (broken or telling or found)[0]
    case, bound = first.case, first.bound
    verdict = CaseVerdict(
        limit.quantity,
        n,
        Status.FAILED if broken else Status.PASSED,
        traffic=first.trace.traffic,
        bounds=(bound,),
        simulated=case.network is not None,
        is_limit=True,
        misses_point=bool(broken) and limit.point,
    )
    if not broken:
        return verdict, JudgedCase(case, None, (), None, first.trace, bound)
    diagnosis = limit.diagnose(bound)
    message = f"{case.name}: {bound}{first.found}"
    seen = JudgedCase(case, diagnosis, (), None, first.trace, bound, limit.point)
    return replace(verdict, diagnosis=diagnosis, message=message), seen


# Cases that are not run. ----------------------------------------------------------

#: The prefix of the message on such a case.
_GIVEN_UP = "not run: "


def too_late(case: Case, seconds: float) -> CaseVerdict:
    """Return the verdict on a case after the ``seconds`` that an exercise may take."""
    message = (
        f"{_GIVEN_UP}the exercise has taken more than {seconds:g} s in all;"
        " grade --seconds raises that limit, too"
    )
    return _unjudged(case, Diagnosis.TIMEOUT, message)


def not_run(case: Case, because: CaseVerdict) -> CaseVerdict:
    """Return the verdict on a case that was given up because of another one's verdict."""
    message = because.message
    if because.judged:
        where = f"{because.name} on {ranks(because.world_size, because.simulated)}"
        words = because.diagnosis.words if because.diagnosis else because.status
        message = f"{_GIVEN_UP}{where} ended with {words}"
    return _unjudged(case, because.diagnosis, message)


def _unjudged(case: Case, diagnosis: Diagnosis | None, message: str) -> CaseVerdict:
    simulated = case.network is not None
    return CaseVerdict(
        case.name, case.n, Status.FAILED, diagnosis, message, simulated=simulated, judged=False
    )
