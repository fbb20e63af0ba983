"""Exercises, judged: points, words, hints, seeds."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from grader.api import catalogue
from grader.course.chapters import Catalogue, discover
from grader.errors import DeclarationError, UnknownExercise
from grader.exercise.cases import Draw, Kind, PerRank
from grader.exercise.declaration import JudgedCase, Mistake
from grader.exercise.hints import choose_hint
from grader.exercise.limits import messages
from grader.exercise.verdict import Bound, CaseVerdict, Status, gravest
from grader.judge import judge as judges
from grader.judge.judge import Judge, Settings
from grader.judge.world_factories import ProcessWorldFactory
from grader.submission.submission import Submission
from headcount.core.resource_limits import DEFAULTS
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import RankEnvironment, default_launcher
from headcount.trace.message_matcher import MessageMatcher
from headcount.trace.trace import CallSpan
from tests import declarations
from tools.course import lacking_inputs

TOY = discover("tests.toy.exercises")
KIND = Kind(torch.float32, (3,))

ROOT = Path(__file__).resolve().parents[2]


def judge(answer, exercise, seed=1, **settings):
    submission = Submission.from_function(answer, exercise.name)
    return Judge(default_launcher(), Settings(seed, **settings)).judge(exercise, submission)


def declare(**changes):
    fields = {
        "signature": "f(x: Tensor) -> Tensor",
        "summary": "x doubled",
        "inputs": lambda draw: [draw.case("a", x=draw.per_rank(KIND))],
        "expected": lambda c: [2 * x for x in c.x],
        "world_sizes": (1, 2),
        "hints": ("first", "second"),
    }
    return declarations.declare(**{**fields, **changes})


# Declarations. --------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"signature": "f(x"}, "no function header"),
        ({"signature": "3 + 4"}, "no function header"),
        ({"result": "y"}, "result 'y' is none of its parameters"),
    ],
)
def test_a_wrong_declaration_is_named(changes, text):
    with pytest.raises(DeclarationError, match=text):
        declare(**changes)


def test_arguments_must_fit_the_signature():
    exercise = declare(inputs=lambda draw: [draw.case("a", y=1)])
    with pytest.raises(DeclarationError, match="signature says"):
        exercise.cases(1, 2)


def test_two_exercises_of_one_name():
    with pytest.raises(DeclarationError, match="two exercises are named 'f'"):
        Catalogue([declare(), declare()])


def test_discovery_finds_every_chapter_in_order():
    assert list(TOY) == ["twice", "pass_on"]
    assert TOY["twice"].chapter == "00_toy"
    sources = (Path(__file__).parents[2] / "solutions").glob("[0-9][0-9]_*.py")
    assert list(catalogue().chapters()) == sorted(path.stem for path in sources)


def test_an_unknown_exercise_suggests_a_near_one():
    with pytest.raises(UnknownExercise, match="did you mean broadcast"):
        catalogue()["brodcast"]
    assert "brodcast" not in catalogue()


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    exercise = catalogue()["broadcast"]  # its first case is the same for every seed
    same = [exercise.cases(7, 3)[1].x[1] for _ in range(2)]
    assert torch.equal(*same)
    assert not torch.equal(same[0], exercise.cases(8, 3)[1].x[1])
    assert not torch.equal(same[0], exercise.cases(7, 4)[1].x[1])
    assert not torch.equal(Draw(7, "a", 3).tensor(KIND), Draw(7, "b", 3).tensor(KIND))


@pytest.mark.parametrize("name", catalogue())
def test_the_inputs_of_an_exercise_cover_what_the_contract_asks_for(name):
    assert [*lacking_inputs(catalogue()[name])] == []


KINDS = (Kind(torch.float64, (3, 5)), Kind(torch.int64, (2,)), Kind(torch.float32, (0,)))


def of_kinds(*kinds, root=1):
    return lambda draw: [
        draw.case(f"{kind}", x=draw.per_rank(kind), src=min(root, draw.n - 1)) for kind in kinds
    ]


@pytest.mark.parametrize(
    "inputs, lacks",
    [
        (of_kinds(*KINDS), []),
        (of_kinds(*KINDS[:2]), ["no torch.float32", "no tensor without elements"]),
        (of_kinds(*KINDS[1:]), ["no torch.float64", "no tensor of 2 dimensions"]),
        (
            of_kinds(KINDS[0], Kind(torch.int64, (7,)), KINDS[2]),
            ["no tensor of one to three elements"],
        ),
        (of_kinds(*KINDS, root=0), ["on 2 ranks the root is always rank 0"]),
        (of_kinds(*KINDS, KINDS[0]), ["2 cases on 2 ranks are named '3×5 float64 numbers'"]),
        (
            lambda draw: [draw.case("short", x=PerRank([1]), src=1)],
            ["'short' on 2 ranks does not have a value for each rank"],
        ),
    ],
)
def test_what_inputs_lack_is_said(inputs, lacks):
    exercise = declare(
        signature="f(x, src: int) -> Tensor", inputs=inputs, world_sizes=(2,),
        expected=lambda c: [None] * c.n,
    )  # fmt: skip
    assert [*lacking_inputs(exercise)] == lacks


# Verdicts. ------------------------------------------------------------------------


def test_full_marks():
    verdict = judge(lambda x: 2 * x, TOY["twice"])
    assert verdict.status is Status.PASSED
    assert (verdict.score, verdict.max_score) == (1.0, 1.0)
    assert bool(verdict)
    assert verdict.gravest_failure is None
    assert [(case.world_size, case.name) for case in verdict.cases] == [
        (1, "three numbers"),
        (1, "messages"),
        (2, "three numbers"),
        (2, "messages"),
    ]


def test_points_are_the_share_of_cases_that_passed():
    def right_on_one_rank(x):
        return 2 * x if dist.get_world_size() == 1 else x

    verdict = judge(right_on_one_rank, TOY["twice"])
    assert verdict.score == 0.5
    assert verdict.gravest_failure.world_size == 2
    assert verdict.diagnosis is Diagnosis.ALIASED or Diagnosis.WRONG_VALUE


def test_right_values_with_wrong_traffic_earn_part_of_the_points():
    def chatty(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        if n == 2:
            (dist.send if rank == 0 else dist.recv)(torch.ones(1), 1 - rank)
        return 2 * x

    verdict = judge(chatty, TOY["twice"])
    assert verdict.score == 0.75
    assert verdict.diagnosis is Diagnosis.TOO_MANY_MESSAGES
    assert verdict.gravest_failure.bounds == (Bound("messages", 1, "=", 0),)
    assert "messages: 1 (should be exactly 0)" in verdict.message


def test_wrong_values_earn_nothing_for_their_traffic():
    assert judge(lambda x: x + 100, TOY["twice"]).score == 0.0


def test_a_forbidden_call_costs_everything():
    def sneaky(x):
        if dist.get_world_size() == 2:
            dist.barrier()
        return 2 * x

    verdict = judge(sneaky, TOY["twice"])
    assert verdict.score == 0.0
    assert verdict.diagnosis is Diagnosis.FORBIDDEN_CALL


def test_points_other_than_one():
    def half(x):
        if dist.get_world_size() == 3:
            raise ValueError
        if dist.get_rank() == 0:
            for dst in range(1, dist.get_world_size()):
                dist.send(x, dst)
        else:
            dist.recv(x, 0)

    verdict = judge(half, TOY["pass_on"])
    # one rank has nothing to do
    assert (verdict.score, verdict.max_score) == (1.0, 2.0)


def test_a_hanging_answer_costs_its_time_limit_once():
    def forever(x):
        while True:
            pass

    verdict = judge(forever, TOY["twice"], seconds=0.5)
    assert verdict.diagnosis is Diagnosis.TIMEOUT
    assert verdict.score == 0.0
    assert verdict.seconds < 5
    assert "not run" in verdict.cases[2].message
    assert len(verdict.cases) == 4


def test_after_three_deadlocks_the_like_of_them_are_given_up_and_others_are_not():
    def inputs(draw):
        return [
            draw.case(name, x=draw.per_rank(KIND), stuck=name in "bcdef") for name in "abcdefgh"
        ]

    def answer(x, stuck):
        if stuck and dist.get_world_size() > 2:
            dist.recv(x, (dist.get_rank() + 1) % dist.get_world_size())
        return 2 * x

    exercise = declarations.changed(
        TOY["twice"], signature="f(x, stuck)", inputs=inputs, world_sizes=(2, 3, 4), limits=()
    )
    verdict = judge(answer, exercise)
    outcomes = {
        n: [case.diagnosis for case in verdict.cases if case.world_size == n] for n in (2, 3, 4)
    }
    stuck = [None, *5 * ["deadlock"], None, None]
    assert outcomes == {2: [None] * 8, 3: stuck, 4: stuck}
    assert [case.name for case in verdict.cases] == [*"abcdefgh"] * 3
    given_up = [(c.name, c.message) for c in verdict.cases if c.message.startswith("not run")]
    assert given_up == [
        (name, f"not run: f on {n} ranks ended with deadlock") for n in (3, 4) for name in "de"
    ]
    assert verdict.score == 0.25 * verdict.max_score  # of a share of 14 / 24


def test_deadlocks_that_are_not_in_a_row_are_all_run():
    def inputs(draw):
        return [draw.case(name, x=draw.per_rank(KIND), stuck=name in "aceg") for name in "abcdefgh"]

    def answer(x, stuck):
        if stuck:
            dist.recv(x, (dist.get_rank() + 1) % dist.get_world_size())
        return 2 * x

    exercise = declarations.changed(
        TOY["twice"], signature="f(x, stuck)", inputs=inputs, world_sizes=(2,), limits=()
    )
    verdict = judge(answer, exercise)
    assert [case.diagnosis for case in verdict.cases] == ["deadlock", None] * 4
    assert not [case for case in verdict.cases if case.message.startswith("not run")]


# The gravest fault. ----------------------------------------------------------------


def _with_advice(diagnosis):
    return declarations.changed(
        TOY["twice"],
        mistakes=(Mistake(f"it is {diagnosis}", when=lambda e: e.diagnosis is diagnosis),),
        world_sizes=(2, 3, 4, 5, 6),
        limits=(),
    )


def test_a_hang_leads_the_verdict_and_its_hint_whatever_failed_before():
    exercise = declarations.changed(_with_advice(Diagnosis.DEADLOCK), world_sizes=(2, 3, 4, 5))

    def answer(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        if n == 5:
            dist.recv(torch.zeros(1), (rank + 1) % n)
        return 3 * x

    verdict = judge(answer, exercise)
    assert verdict.diagnosis is Diagnosis.DEADLOCK
    assert verdict.hint == "it is deadlock"
    lead = verdict.gravest_failure
    assert (lead.world_size, lead.diagnosis, bool(lead.waits)) == (5, Diagnosis.DEADLOCK, True)
    first, other = verdict.message.split("\n")[:2]
    assert first.startswith(f"5 ranks, {lead.name}: rank 0 waits to receive from rank 1")
    assert other.startswith("It also fails on 2 ranks, ")


def test_a_hint_is_known_when_two_sizes_have_failed():
    def answer(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        if n > 2:
            dist.recv(torch.zeros(1), (rank + 1) % n)
        return 2 * x

    verdict = judge(answer, _with_advice(Diagnosis.DEADLOCK), until_hint=True)
    assert {case.world_size for case in verdict.cases} == {2, 3, 4}


def test_equally_grave_faults_are_led_by_the_smallest_world_and_told_once():
    exercise = declarations.changed(TOY["twice"], world_sizes=(2, 3), limits=())

    def answer(x):
        return 3 * x if dist.get_world_size() == 2 else x[:1]

    verdict = judge(answer, exercise)
    assert verdict.diagnosis is Diagnosis.WRONG_VALUE
    assert "It also fails" not in verdict.message


def test_a_lesser_fault_at_a_size_that_also_fails_gravely_is_a_consequence():
    def inputs(draw):
        return [draw.case(name, x=draw.per_rank(KIND), stuck=name == "b") for name in "ab"]

    def answer(x, stuck):
        if stuck:
            dist.recv(torch.zeros(1), 1 - dist.get_rank())
        return 3 * x

    exercise = declarations.changed(
        TOY["twice"], signature="f(x, stuck)", inputs=inputs, world_sizes=(2,), limits=()
    )
    verdict = judge(answer, exercise)
    assert verdict.diagnosis is Diagnosis.DEADLOCK
    assert "It also fails" not in verdict.message


def test_a_call_that_costs_all_points_leads_before_a_hang():
    def answer(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        if n == 3:
            dist.all_reduce(x)
        dist.recv(torch.zeros(1), (rank + 1) % n)
        return 2 * x

    verdict = judge(answer, declarations.changed(TOY["twice"], world_sizes=(2, 3), limits=()))
    assert (verdict.diagnosis, verdict.score) == (Diagnosis.FORBIDDEN_CALL, 0)
    assert "\nIt also fails on 2 ranks, " in verdict.message


def test_a_size_that_was_not_run_leads_only_where_nothing_else_does():
    late = CaseVerdict("late", 2, Status.FAILED, Diagnosis.TIMEOUT, judged=False)
    slow = CaseVerdict("rounds", 3, Status.FAILED, Diagnosis.TOO_MANY_ROUNDS)
    right = CaseVerdict("right", 2, Status.PASSED)
    assert gravest([right, late, slow]) is slow
    assert gravest([right, late]) is late
    assert gravest([right]) is None


def test_a_missed_point_leads_where_only_other_reductions_or_the_last_bits_are_wrong():
    missed = CaseVerdict(
        "bytes", 3, Status.FAILED, Diagnosis.TOO_MANY_BYTES, is_limit=True, misses_point=True
    )
    average = CaseVerdict("AVG", 2, Status.FAILED, Diagnosis.WRONG_VALUE, minor=True)
    total = CaseVerdict("SUM", 3, Status.FAILED, Diagnosis.WRONG_VALUE)
    stuck = CaseVerdict("SUM", 3, Status.FAILED, Diagnosis.DEADLOCK)
    assert gravest([average, missed]) is missed
    assert gravest([average]) is average
    assert gravest([average, missed, total]) is average  # the first of those that are as grave
    assert gravest([average, missed, stuck]) is stuck


# The limit on time. ----------------------------------------------------------------


def _computes(x):
    started = time.process_time()
    while time.process_time() - started < 0.5:
        pass
    return 2 * x


def test_a_rank_may_compute_as_long_as_the_limit_says():
    exercise = declarations.changed(
        TOY["twice"],
        inputs=lambda draw: [draw.case("a", x=draw.per_rank(KIND))],
        world_sizes=(2,),
        limits=(),
    )
    assert judge(_computes, exercise, seconds=2).passed
    verdict = judge(_computes, exercise, seconds=0.2)
    assert verdict.diagnosis is Diagnosis.TIMEOUT
    limit = verdict.gravest_failure.detail[-1]
    assert "may compute for 0.2 s" in limit
    assert "--seconds 1 allows" in limit
    assert "check(twice, seconds=1)" in limit


def test_by_the_clock_ranks_may_compute_in_turn():
    assert DEFAULTS.by_the_clock(1, 1) == DEFAULTS.by_the_clock(1, 2) == 5
    assert DEFAULTS.by_the_clock(3, 8) == 48


def test_world_sizes_can_be_chosen():
    verdict = judge(lambda x: 2 * x, TOY["twice"], world_sizes=(2,))
    assert {case.world_size for case in verdict.cases} == {2}


_RING = """
import torch, torch.distributed as dist

def twice(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    if size == {stuck}:
        dist.recv(torch.zeros(1), (rank + 1) % size)
    return {factor} * x
"""


@pytest.mark.parametrize(
    "stuck, factor, until_hint, worlds",
    [
        (0, 2, False, [[1, 2], [3, 4, 5, 8]]),
        (0, 3, False, [[1, 2], [3, 4, 5, 8]]),  # wrong values break no world
        (0, 3, True, [[1, 2], [3]]),
        (2, 2, False, [[1, 2], *([[2]] * 2), [3], [4], [5], [8]]),
        (4, 2, False, [[1, 2], [3, 4, 5, 8], *([[4]] * 2), [5], [8]]),
    ],
)
def test_sizes_share_worlds_until_one_fails(stuck, factor, until_hint, worlds):
    opened = []

    class Counted(ProcessWorldFactory):
        def open(self, launcher, spec):
            assert not spec.collectives  # the exercise allows none
            opened.append([*spec.smaller, spec.size])
            return super().open(launcher, spec)

    source = _RING.format(stuck=stuck, factor=factor).encode()
    exercise = declarations.changed(
        TOY["twice"],
        inputs=lambda draw: [draw.case(name, x=draw.per_rank(KIND)) for name in "abcd"],
        world_sizes=(1, 2, 3, 4, 5, 8),
        limits=(),
    )
    submission = Submission.from_bytes(source, "answer.py")
    settings = Settings(1, until_hint=until_hint)
    verdict = Judge(default_launcher(), settings, Counted()).judge(exercise, submission)
    wrong = {case.world_size for case in verdict.cases if not case.passed}
    sizes = {n for shared in worlds for n in shared}
    assert wrong == ({stuck} - {0} if factor == 2 else sizes)
    assert opened == worlds


def test_oracles_compute_with_one_thread_and_the_process_has_its_own_again():
    seen = []

    def expected(case):
        seen.append(torch.get_num_threads())
        return [torch.zeros(2)] * case.n

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        judge(lambda x: torch.zeros(2), declare(expected=expected))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_an_exercise_for_several_ranks_is_skipped_on_one():
    exercise = declarations.changed(TOY["twice"], world_sizes=(2, 3))
    verdict = judge(lambda x: 2 * x, exercise, world_sizes=(1,))
    assert verdict.status is Status.SKIPPED
    assert "needs at least 2 ranks" in verdict.message


def test_missing_and_broken_answers():
    run = Judge(default_launcher(), Settings(1)).judge
    missing = Submission.from_bytes(b"x = 1", "a.py")
    assert run(TOY["twice"], missing).diagnosis is Diagnosis.MISSING
    broken = Submission.from_bytes(b"def twice(:\n    pass", "a.py")
    verdict = run(TOY["twice"], broken)
    assert verdict.diagnosis is Diagnosis.SYNTAX_ERROR
    assert "line 1" in verdict.message


@pytest.mark.parametrize(
    "first, status, text",
    [
        ("return 2 * x", Status.PASSED, "the last definition that parses is judged; "),
        ("return 3 * x", Status.FAILED, "; the last definition that parses is judged; "),
        ("raise NotImplementedError", Status.FAILED, ""),
    ],
)
def test_the_last_definition_that_parses_counts(first, status, text):
    cells = f"# %%\ndef twice(x):\n    {first}\n# %%\ndef twice(x):\n    return (2 * x\n"
    submission = Submission.from_bytes(cells.encode(), "a.py", ["twice"])
    verdict = Judge(default_launcher(), Settings(1)).judge(TOY["twice"], submission)
    assert verdict.status is status
    assert (verdict.diagnosis is Diagnosis.SYNTAX_ERROR) is (not text)
    assert verdict.message.endswith(f"{text}line 6: '(' was never closed")


@pytest.mark.parametrize(
    "answer, word, text",
    [
        (lambda: 1, "exception", "cannot be called as twice(x: Tensor)"),
        (lambda x, y: x, "exception", "cannot be called as twice(x: Tensor)"),
        (lambda x: "text", "wrong_type", "but is the str 'text'"),
        (lambda x: (yield x), "wrong_type", "but is a generator"),
        (lambda x: torch.ones(1).expand(10**12), "wrong_shape", "1000000000000"),
        (lambda x: x.mul_(2).clone(), "input_changed", "rank 0: x must stay as it was"),
        (lambda x: x.double() * 2, "wrong_dtype", "should be float32, but is float64"),
        (lambda x: None, "wrong_type", "but is None"),
    ],
)
def test_odd_answers_are_named(answer, word, text):
    verdict = judge(answer, TOY["twice"])
    assert verdict.diagnosis == word
    assert text in verdict.message
    assert verdict.score == 0.0


def test_an_answer_that_is_no_function():
    submission = Submission.from_bytes(b"twice = 3", "a.py", {"twice"})
    verdict = Judge(default_launcher(), Settings(1)).judge(TOY["twice"], submission)
    assert verdict.diagnosis is Diagnosis.EXCEPTION
    assert "'int' object is not callable" in verdict.message


def test_a_definition_that_could_not_be_made():
    source = b"import nowhere_to_be_found\ndef helper(): ...\ntwice = nowhere_to_be_found.twice"
    submission = Submission.from_bytes(source, "a.py", {"twice"})
    verdict = Judge(default_launcher(), Settings(1)).judge(TOY["twice"], submission)
    assert verdict.diagnosis is Diagnosis.EXCEPTION
    assert "nowhere_to_be_found" in verdict.message


def test_a_fault_of_the_grader_is_no_fault_of_the_student():
    class Broken:
        environment = RankEnvironment.here()

        def launch(self, size):
            from headcount.core.errors import WorldError

            raise WorldError("no room")

        def settle(self):
            pass

    submission = Submission.from_function(lambda x: 2 * x, "twice")
    verdict = Judge(Broken(), Settings(1)).judge(TOY["twice"], submission)
    assert verdict.status is Status.ERROR
    assert verdict.diagnosis is None
    assert "no room" in verdict.message


def test_what_a_rank_reports_is_never_the_graders_fault(monkeypatch):
    """What sends it runs the submission, which may have sent anything."""

    def take(*_):
        raise KeyError("no such operation")

    monkeypatch.setattr(MessageMatcher, "take", take)
    verdict = judge(lambda x: 2 * x, TOY["twice"])
    assert verdict.diagnosis is Diagnosis.MALFORMED_REPORT
    assert verdict.score == 0
    assert "rank 0 reports makes no sense to the judge (KeyError: 'no such op" in verdict.message


def test_what_a_rank_returns_is_never_the_graders_fault():
    """What the exercise makes of values is judged without them, if it raises over them."""

    def point(seen):
        return any(value == 7 / 0 for value in seen.actual)

    verdict = judge(lambda x: x, declare(point=point))
    assert verdict.diagnosis is Diagnosis.MALFORMED_REPORT
    assert "(ZeroDivisionError: division by zero in test_judge.py, line" in verdict.message


def test_an_oracle_that_raises_is_the_graders_fault():
    def expected(case):
        raise ZeroDivisionError

    with pytest.raises(DeclarationError, match="cannot say what it expects: ZeroDivisionError"):
        judge(lambda x: x, declare(expected=expected))


@pytest.mark.parametrize("part", ["patient", "proof", "remark", "when"])
def test_whatever_the_judge_makes_of_a_report_is_the_answers(part):
    """An exception of a limit, a hint or a look at the clock is no traceback, and no empty cell."""

    def stumbles(*_):
        return bool(torch.ones(2))

    fields = {part: stumbles}
    if part == "when":
        fields = {"mistakes": (Mistake("a hint", when=stumbles),)}
    answer = (lambda x: 2 * x) if part in ("proof", "remark") else (lambda x: x)
    verdict = judge(answer, declare(**fields))
    assert verdict.status is Status.FAILED
    if part != "when":  # a hint that cannot be told is passed over
        assert verdict.diagnosis is Diagnosis.MALFORMED_REPORT
        assert "(RuntimeError: Boolean value of Tensor with more than one" in verdict.message


# Hints. ---------------------------------------------------------------------------


def test_a_known_mistake_has_its_own_hint():
    assert judge(lambda x: x * x, TOY["twice"]).hint == "That is x squared."


def test_the_first_hint_for_an_empty_exercise():
    def empty(x):
        raise NotImplementedError

    assert judge(empty, TOY["twice"]).hint == "What is x + x?"


def test_advice_comes_before_what_helps_in_general():
    exercise = declare(advice={Diagnosis.TIMEOUT: "special"})
    assert choose_hint(exercise, Diagnosis.TIMEOUT, None).text == "special"
    assert "loop there ever end" in choose_hint(declare(), Diagnosis.TIMEOUT, None).text


@pytest.mark.parametrize("most, kept", [(1 << 20, 3), (300, 1), (0, 0)])
def test_what_ranks_hold_is_kept_for_hints_up_to_a_limit(monkeypatch, most, kept):
    monkeypatch.setattr(judges, "MOST_KEPT", most)
    seen = []
    verdict = judge(
        lambda x: x,
        declare(
            inputs=lambda draw: [draw.case(name, x=draw.per_rank(KIND)) for name in "abc"],
            mistakes=(Mistake("", when=lambda e: seen.extend(e.judged)),),
            world_sizes=(3,),
        ),
    )
    assert (verdict.diagnosis, len(seen)) == (Diagnosis.WRONG_VALUE, 3)
    assert [len(one.actual) for one in seen] == [3] * kept + [0] * (3 - kept)


def test_a_mistake_that_cannot_tell_is_passed_over():
    exercise = declare(
        mistakes=(
            Mistake("breaks", when=lambda e: e.actual[99]),
            Mistake("fits", when=lambda e: True),
        )
    )
    assert judge(lambda x: x, exercise).hint == "fits"


def test_every_diagnosis_means_something_and_advises_unless_the_exercise_does():
    told_otherwise = {
        Diagnosis.NOT_ATTEMPTED, Diagnosis.TAMPERING, Diagnosis.NO_OVERLAP,
        Diagnosis.WRONG_VALUE,  # depends on the sizes that are wrong
    }  # fmt: skip
    assert {one for one in Diagnosis if not one.advice} == told_otherwise
    assert all(one.meaning for one in Diagnosis)


def test_the_docs_table_of_diagnoses_is_the_registry():
    page = (ROOT / "docs" / "teaching.md").read_text()
    table = page.partition("| word | the answer … |\n|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == [f"| `{one}` | {one.meaning} |" for one in Diagnosis]


def test_limits_measure_what_they_say():
    limit = messages("≤", lambda c: c.n)
    case = TOY["twice"].cases(1, 2)[0]

    class Trace:
        class traffic:
            messages = 3

    bound = limit.judge(case, Trace)
    assert str(bound) == "messages: 3 (should be at most 2)"
    assert not bound.holds
    assert limit.diagnose(bound) is Diagnosis.TOO_MANY_MESSAGES


def test_the_lines_of_a_failure_are_quoted_from_the_file(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(
        "def helper(x):\n    raise ValueError(x)\n\ndef broadcast(x, src):\n    helper(src)\n"
    )
    submission = Submission.from_file(path)
    judge = Judge(default_launcher(), Settings(1, (2,), first_failure=True))
    case = judge.judge(catalogue()["broadcast"], submission).gravest_failure
    assert [str(frame) for frame in case.frames] == [
        "line 5, in broadcast:  helper(src)",
        "line 2, in helper:  raise ValueError(x)",
    ]


# The count. -----------------------------------------------------------------------


def _fails(x, src):
    raise ValueError("no")


def _hangs(x, src):
    dist.recv(x, (dist.get_rank() + 1) % dist.get_world_size())


def _untouched(x, src):
    raise NotImplementedError


@pytest.mark.parametrize("answer", [_fails, _hangs, _untouched])
def test_the_count_grows_to_the_number_of_cases(answer):
    exercise = catalogue()["broadcast"]
    seen = []
    judge = Judge(default_launcher(), Settings(1, (2, 3)))
    submission = Submission.from_function(answer, "broadcast")
    verdict = judge.judge(exercise, submission, lambda done, of: seen.append((done, of)))
    of = len(verdict.cases)
    assert seen[0] == (0, of)
    assert seen[-1] == (of, of)
    assert seen == sorted(seen)


def test_the_count_includes_simulated_ranks():
    exercise = catalogue()["ring_all_gather"]
    seen = []

    def ring_all_gather(x):
        raise NotImplementedError

    submission = Submission.from_function(ring_all_gather, "ring_all_gather")
    judge = Judge(default_launcher(), Settings(1))
    verdict = judge.judge(exercise, submission, lambda done, of: seen.append((done, of)))
    assert any(case.simulated for case in verdict.cases)
    assert seen[-1] == (len(verdict.cases),) * 2


# More time. -----------------------------------------------------------------------


def with_more_time(judged):
    """Declare an exercise on seconds, of which a wrong run gets twice as many, and note them."""

    def patient(one):
        judged.append(one.case.seconds)
        more = {**one.case.columns, "seconds": 2 * one.case.seconds}
        return None if one.passed else dataclasses.replace(one.case, columns=more)

    return declare(
        signature="f(seconds: float) -> str",
        inputs=lambda draw: [draw.case(name, seconds=1.0) for name in "ab"],
        expected=lambda c: ["done"] * c.n,
        world_sizes=(1,),
        patient=patient,
    )


@pytest.mark.parametrize("enough, given", [(2.0, [1.0, 2.0]), (4.0, [1.0, 2.0, 4.0])])
def test_what_is_right_with_more_time_is_right(enough, given):
    judged = []

    def answer(seconds):
        return "done" if seconds >= enough else "gave up"

    verdict = judge(answer, with_more_time(judged))
    assert verdict.passed
    assert judged == given * 2


def test_what_is_wrong_with_more_time_gets_no_more():
    judged = []
    assert judge(lambda seconds: "gave up", with_more_time(judged)).score == 0
    assert judged == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "diagnosis, returned, seconds, more",
    [
        (None, (6, [0, 1, 2]), 2.4, False),
        (None, (6, [0, 1, 2]), 2.6, True),
        (Diagnosis.WRONG_VALUE, (3, [0, 1]), 0.1, True),  # rank 2 lives
        (Diagnosis.WRONG_VALUE, (5, [0, 1, 2]), 0.1, False),
        (Diagnosis.WRONG_VALUE, 6, 0.1, False),
        (Diagnosis.WRONG_SHAPE, (6, [[0], 1, 2]), 0.1, False),
        (Diagnosis.EXCEPTION, None, 0.1, True),
        (Diagnosis.DEADLOCK, None, 0.1, False),
    ],
)
def test_only_a_rank_that_may_be_late_gives_survivors_more_time(diagnosis, returned, seconds, more):
    survivors = catalogue()["sum_of_survivors"]
    case = survivors.cases(1, 3)[0]
    matcher = MessageMatcher(3)
    matcher.call_spans = [CallSpan(0, round(seconds * 1e9), "returned")] * 3
    seen = JudgedCase(case, diagnosis, [returned] * 3, None, matcher.trace())
    again = survivors.patient(seen)
    assert (again is not None) == more
    if more:
        assert again.seconds == 2 * case.seconds


def test_with_more_time_a_late_rank_is_later():
    survivors = catalogue()["sum_of_survivors"]
    case = next(one for one in survivors.cases(1, 3) if one.late)
    trace = MessageMatcher(3).trace()
    seen = JudgedCase(case, Diagnosis.WRONG_VALUE, [(3, [case.late[0].rank])] * 3, None, trace)
    again = survivors.patient(seen)
    assert again.seconds > 2 * case.seconds
    assert again.late[0].seconds == 2 * again.seconds


@pytest.mark.parametrize("agree", [True, False])
def test_ranks_that_have_to_agree_hold_the_same_bits(agree):
    def f(x):
        y = 2 * x
        return torch.nextafter(y, y + 1) if dist.get_rank() else y

    exercise = declare(
        inputs=lambda draw: [draw.case("a", x=draw.tensor(KIND))],
        expected=lambda c: [2 * c.x] * c.n,
        world_sizes=(2,),
        reduced=lambda c: 2,
        agree=agree,
    )
    assert judge(f, exercise).diagnosis is (Diagnosis.NONDETERMINISTIC if agree else None)


def test_time_counts_from_when_the_last_rank_enters():
    survivors = catalogue()["sum_of_survivors"]
    case = survivors.cases(1, 3)[0]
    matcher = MessageMatcher(3)
    entered = [0, 0, round(3e9)]
    matcher.call_spans = [CallSpan(one, round(3.1e9), "returned") for one in entered]
    (limit,) = survivors.traffic.limits
    assert limit.judge(case, matcher.trace()).measured == 1


def test_a_message_has_the_call_where_it_is_short():
    exercises = catalogue()
    verdict = judge(lambda waits_for: [0], exercises["stuck_ranks"])
    assert "no ranks, stuck_ranks({}): " in verdict.message
    verdict = judge(lambda n, alpha, beta: -1.0, exercises["crossover_bytes"])
    assert ", crossover_bytes(10, " in verdict.message
    verdict = judge(lambda sizes, seconds: (1.0, 1.0), exercises["fit_alpha_beta"])
    assert "fit_alpha_beta(" not in verdict.message
