"""How much ranks must have been told, and what is said of those that were told less."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader.api import catalogue
from grader.exercise.cases import OPS, Case, Draw, Kind, PerRank
from grader.exercise.compare import compare
from grader.exercise.declaration import Exercise, TrafficRules, Values
from grader.exercise.help import Help
from grader.exercise.limits import LUCK, combined, moved
from grader.judge.assessment import assess, assess_again, is_predictable
from headcount.core.verdict import Diagnosis
from headcount.launch.world import Outcome, RankResult
from headcount.trace.trace import Trace

FLOAT, LONG, DOUBLE, BRAIN = torch.float32, torch.int64, torch.float64, torch.bfloat16

#: Exercises whose values say nothing of what was sent.
SILENT = {name for name, exercise in catalogue().items() if exercise.traffic.least is None}


def gathered(kind, n=2):
    draw = Draw(5, "gathered", n)
    case = draw.case("a", x=draw.per_rank(kind))
    return case, [list(case.x)] * n


def reduction(name, kind, n=2, at=(0, 1)):
    draw = Draw(5, "reduction", n)
    x = draw.per_rank(kind, name)
    case = draw.case("a", x=x, op=OPS[name])
    total = torch.stack(list(x)).double()
    total = total.prod(0) if name == "PRODUCT" else total.sum(0)
    return case, [total.to(kind.dtype) if rank in at else x[rank] for rank in range(n)]


@pytest.mark.parametrize("name", sorted(SILENT))
def test_a_table_of_answers_is_no_answer(name):
    """What a seed leaves as it is could be known beforehand; then messages are asked for."""
    exercise = catalogue()[name]
    n = max(exercise.world_sizes)
    if (
        n == 1
        or exercise.traffic.proof
        or {one.relation for one in exercise.traffic.limits} & {*"=≥"}
    ):
        return
    found = [
        [list(exercise.values.expected(c)) for c in exercise.cases(seed, n)] for seed in (1, 2)
    ]
    assert not all(compare(one, other) is None for one, other in zip(*found, strict=True))


# The bound. -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype, bits", [(LONG, 7), (DOUBLE, 31), (FLOAT, 24), (BRAIN, 8)], ids=str)
def test_no_number_is_likelier_than_it_counts_for(dtype, bits):
    """By how often two are alike: the likeliest number bounds that from above."""
    many = 1 << 18
    drawn = Draw(5, "likely", 2).tensor(Kind(dtype, (many,)))
    counts = drawn.unique(return_counts=True)[1].double()
    pairs = float((counts * (counts - 1) / 2).sum())
    expected = many * (many - 1) / 2 / 2**bits
    assert pairs < expected + 3 * expected**0.5


@pytest.mark.parametrize("dtype, bits", [(LONG, 7), (DOUBLE, 31), (FLOAT, 24), (BRAIN, 8)])
def test_what_is_moved_counts_by_dtype_less_what_may_be_guessed(dtype, bits):
    case = Case("a", 2, {"x": PerRank([torch.zeros(100).to(dtype), torch.ones(100).to(dtype)])})
    others = torch.arange(2, 102).to(dtype)
    assert moved(case, [others, case.x[1]]) == (100 * bits - LUCK) // 8
    assert moved(case, [others, others]) == 2 * (100 * bits - LUCK) // 8


def test_a_rank_is_not_told_what_it_has():
    case = Case("a", 2, {"x": PerRank([torch.arange(100), torch.arange(100, 200)]), "src": 0})
    assert moved(case, [case.x[0], case.x[1]]) == 0
    assert moved(case, [case.x[0].flip(0), [case.x[1][:50], None, {"a": case.x[1][50:]}]]) == 0
    half = torch.cat([case.x[0][:50], case.x[1][:50]])
    assert moved(case, [half, case.x[1]]) == (50 * 7 - LUCK) // 8


@pytest.mark.parametrize("count", [0, 1])
def test_few_numbers_can_be_guessed(count):
    assert moved(*gathered(Kind(FLOAT, (count,)))) == 0


@pytest.mark.parametrize(
    "name, dtype, bits",
    [("SUM", LONG, 7), ("SUM", FLOAT, 8), ("AVG", DOUBLE, 24), ("SUM", BRAIN, 1),
     ("PRODUCT", DOUBLE, 24), ("MIN", LONG, 0), ("MAX", FLOAT, 0)],
)  # fmt: skip
def test_what_is_reduced_counts_by_operation(name, dtype, bits):
    case, expected = reduction(name, Kind(dtype, (1000,)))
    most = 2 * (1000 * bits - LUCK) // 8
    # many sums of integers, and of bfloat16, are numbers that a rank has anyway
    assert max(0, 0.2 * most) <= combined(case, expected) <= max(0, most)


def test_a_product_of_integers_counts_for_less():
    case = Case("a", 1, {"x": PerRank([torch.zeros(100, dtype=LONG)]), "op": OPS["PRODUCT"]})
    assert combined(case, [torch.full((100,), 4)]) == (200 - LUCK) // 8


def test_only_the_root_of_a_reduction_is_told():
    case, expected = reduction("SUM", Kind(DOUBLE, (1000,)), n=3, at=(1,))
    assert combined(case, expected) == (1000 * 24 - LUCK) // 8


# Of the course. -------------------------------------------------------------------


def outcome(exercise, case, moved):
    """All ranks hold what they should, and this many bytes were counted."""
    results = []
    for rank, wanted in enumerate(exercise.values.expected(case)):
        arguments = list(case.arguments(rank))
        if exercise.values.result is not None:
            arguments[list(case.columns).index(exercise.values.result)] = wanted
        value = None if exercise.values.result is not None else wanted
        results.append(RankResult(value, tuple(arguments)))
    return Outcome(tuple(results), None, Trace(((),) * case.n), (), 0.0, moved)


def told_a_byte_too_few(case_name):
    """The verdicts on right values of such a case, when asked first and when asked again."""

    def inputs(draw):
        yield draw.case("readable", x=draw.per_rank(Kind(torch.float32, (64,))))
        yield draw.case("drawn", x=draw.per_rank(Kind(torch.float32, (64,))))

    exercise = Exercise(
        signature="from_left(x: Tensor) -> Tensor",
        summary="the left neighbour's x",
        inputs=inputs,
        values=Values(lambda c: [c.x[rank - 1] for rank in c.ranks]),
        traffic=TrafficRules(least=moved),
        world_sizes=(2,),
        help=Help(hints=("first",)),
    )
    (case,) = [one for one in exercise.cases(7, 2) if one.name == case_name]
    few = outcome(exercise, case, exercise.traffic.least(case, exercise.values.expected(case)) - 1)
    right = outcome(exercise, case, 10**6)
    return assess(exercise, case, few)[0], assess_again(exercise, case, right, few)[0]


def test_who_remembers_an_earlier_call_does_not_tamper():
    first, again = told_a_byte_too_few("drawn")
    assert first.diagnosis is Diagnosis.TAMPERING
    assert again.diagnosis is Diagnosis.TOO_FEW_BYTES
    assert "repeats an earlier one" in again.message


def test_who_knows_the_values_beforehand_does_not_tamper():
    first, again = told_a_byte_too_few("readable")
    assert first.diagnosis is again.diagnosis is Diagnosis.TOO_FEW_BYTES
    assert "can be guessed" in first.message


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(catalogue()) - SILENT))
def test_right_values_with_too_little_traffic_are_tampering(name):
    exercise = catalogue()[name]
    found = 0
    for n in set(exercise.world_sizes) - {8}:
        for case in exercise.cases(2**100, n):
            least = exercise.traffic.least(case, exercise.values.expected(case))
            assert n > 1 or least == 0, "one rank is told nothing"
            assert assess(exercise, case, outcome(exercise, case, least))[0].passed
            assert assess(exercise, case, outcome(exercise, case, None))[0].passed
            if least:
                found += 1
                verdict, _ = assess(exercise, case, outcome(exercise, case, least - 1))
                word = (
                    Diagnosis.TOO_FEW_BYTES
                    if is_predictable(exercise, case)
                    else Diagnosis.TAMPERING
                )
                assert verdict.diagnosis is word
                assert f"carried {least - 1} bytes" in verdict.message
                assert f"fewer than {least}" in verdict.message
    assert found >= 4


@pytest.mark.parametrize("name", sorted(set(catalogue()) - SILENT))
def test_the_bound_is_below_what_even_narrow_numbers_take(name):
    """Every rank's result less its own arguments, in 4 bytes or fewer a number."""
    exercise = catalogue()[name]
    for n in set(exercise.world_sizes) - {8}:
        for case in exercise.cases(2**100, n):
            expected = exercise.values.expected(case)
            assert exercise.traffic.least(case, expected) <= sum(
                min(4, t.element_size()) * t.numel() for held in expected for t in flat(held)
            )


def flat(value):
    if isinstance(value, (torch.Tensor, bool)):
        yield torch.as_tensor(value)
    elif isinstance(value, dict):
        yield from flat(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from flat(item)


def test_wrong_values_are_wrong_values_however_little_was_sent():
    exercise = catalogue()["shift"]
    case = exercise.cases(1, 2)[0]
    wrong = replace(
        outcome(exercise, case, 0),
        results=tuple(RankResult(x.clone(), (x, case.k)) for x in case.x),
    )
    verdict, _ = assess(exercise, case, wrong)
    assert verdict.diagnosis is Diagnosis.WRONG_VALUE
