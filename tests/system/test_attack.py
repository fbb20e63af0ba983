"""``make attack``: variants are what they should be, and a success is counted as one."""

from __future__ import annotations

import ast
import atexit
import gc
import random
import signal
import threading
from dataclasses import replace

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from grader.course.chapters import discover
from grader.sandbox.sandboxes import missing
from headcount.core.values import short
from tools.attack import __main__ as command
from tools.attack import forgeries
from tools.attack.payloads import FAMILIES, Payload, draw_payload
from tools.attack.trial import BYSTANDER, CANARY, LIMITS, Told, Wait, successes
from tools.attack.variants import PLACES, Variant, variant
from tools.attacks import attacks

SEEDS = range(200)


@pytest.fixture(scope="module")
def variants():
    return [variant(seed) for seed in SEEDS]


def test_variants_can_be_handed_in(variants):
    for one in variants:
        compile(dict(one.files)["hidden.py"], one.title, "exec")


def test_no_function_of_an_attack_is_replaced_by_what_stands_around_it(variants):
    for one in variants:
        body = ast.parse(dict(one.files)["hidden.py"]).body
        names = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        assert len(names) == len(set(names)), (one.title, names)


def test_a_seed_repeats_its_variant_and_another_gives_another(variants):
    assert [variant(seed).files for seed in SEEDS] == [one.files for one in variants]
    # but for the title, which names the seed
    bare = {replace(one, seed=0).files for one in variants}
    assert len(bare) == len(variants)


def test_variants_go_everywhere(variants):
    assert {one.payload.family for one in variants} == set(FAMILIES)
    assert {one.place for one in variants} == set(PLACES)
    assert len({one.exercise for one in variants}) > len(discover()) / 2


def test_every_family_of_known_attacks_is_drawn_from():
    assert {attack.path.parent.name for attack in attacks()} <= set(FAMILIES)


def test_every_exercise_can_be_attacked_by_its_own_solution():
    payload = Payload("test/nothing", "def payload():\n    pass\n")
    for name in discover():
        one = Variant(0, payload, name, "in a decorator", "all ranks", "every call", True)
        answer = dict(one.files)["answer.py"]
        assert b"import hidden" in answer
        compile(answer, name, "exec")


@pytest.mark.parametrize("drawn", [forgeries.message, forgeries.answer, forgeries.flood])
def test_drawn_messages_are_python_and_most_are_read_as_messages(drawn):
    draw = random.Random(5)
    for _ in range(200):
        compile(drawn(draw), "drawn", "eval")


# Where the payload runs. ----------------------------------------------------------


@pytest.fixture
def alone(monkeypatch):
    """One rank without a group, that gets back what attacks replace."""
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist, "get_world_size", lambda: 1)
    for name in ("isend", "irecv", "send", "recv", "all_reduce", "all_gather", "broadcast"):
        for module in (dist, c10d):
            monkeypatch.setattr(module, name, lambda *_: None)
    for name in ("__add__", "detach"):
        monkeypatch.setattr(torch.Tensor, name, getattr(torch.Tensor, name))
    exits = []
    monkeypatch.setattr(atexit, "register", lambda function, *args: exits.append((function, args)))
    threshold, handler = gc.get_threshold(), signal.getsignal(signal.SIGALRM)
    yield exits
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler)
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("place", PLACES)
def test_the_payload_runs_in_every_place(place, alone):
    source = "import threading\nran = threading.Event()\n\ndef payload():\n    ran.set()\n"
    payload = Payload("test/marks", source)
    one = Variant(0, payload, "all_gather", place, "all ranks", "every call", False)
    space = {"__name__": "hidden"}
    exec(dict(one.files)["hidden.py"], space)

    def right():
        dist.isend()
        dist.irecv()
        dist.isend()
        return [1, 2]

    result = space["run"](right, (), {})
    # what the grader does with an answer, and what comes at the end of a rank
    list(result or [])
    short("a text")
    torch.ones(1) + torch.ones(1)
    gc.collect()
    for function, args in alone:
        function(*args)
    assert space["ran"].wait(10)


def test_ranks_and_calls_that_are_not_meant_are_spared(alone):
    payload = Payload("test/counts", "ran = []\n\ndef payload():\n    ran.append(calls)\n")
    first = Variant(0, payload, "shift", "before the answer", "all ranks", "the third call", False)
    others = replace(first, ranks="simulated ranks")
    for one, wanted in ((first, [3]), (others, [])):
        space = {"__name__": "hidden"}
        exec(dict(one.files)["hidden.py"], space)
        for _ in range(4):
            assert space["run"](lambda: 7, (), {}) == 7
        assert space["ran"] == wanted
    assert threading.active_count() < 50


def test_a_payload_for_another_exercise_gets_arguments(alone):
    source = "given = []\n\ndef payload(x, src):\n    given.append((x, src))\n"
    payload = Payload("test/takes", source, "broadcast", ("x", "src"))
    own = Variant(0, payload, "broadcast", "before the answer", "all ranks", "every call", False)
    for one, args in ((own, (5, 6)), (replace(own, exercise="gather"), (torch.ones(4), 0))):
        space = {"__name__": "hidden"}
        exec(dict(one.files)["hidden.py"], space)
        space["run"](lambda *_: None, (5, 6), {})
        (given,) = space["given"]
        assert all(map(torch.equal, map(torch.as_tensor, given), map(torch.as_tensor, args)))


# What counts as a success. --------------------------------------------------------


def verdict(score=0.0, status="failed", message="", seconds=1.0, **more):
    common = {"status": status, "message": message, "seconds": seconds}
    return {"score": score, "max_score": 1.0, **common, **more}


HELD = Told(
    due=["gather", BYSTANDER],
    verdicts={"gather": verdict(), BYSTANDER: verdict(1.0, "passed")},
    waits=[Wait(5.9, 5.0)],
    computing=1.0,
)


def ways(told, works=False):
    return [way for way, _ in successes("gather", works, told)]


def test_an_attack_that_fails_is_no_success():
    assert ways(HELD) == []
    assert ways(replace(HELD, verdicts={**HELD.verdicts, "gather": verdict(1.0)}), True) == []


@pytest.mark.parametrize(
    ("way", "changes"),
    [
        ("forged", {"verdicts": {**HELD.verdicts, "gather": verdict(0.1)}}),
        ("blamed", {"verdicts": {**HELD.verdicts, "gather": verdict(status="error")}}),
        ("blamed", {"verdicts": {**HELD.verdicts, BYSTANDER: verdict()}}),
        ("blamed", {"verdicts": {BYSTANDER: verdict(1.0, "passed")}}),
        ("blamed", {"lost": "ValueError: what is this?"}),
        ("stalled", {"endless": True, "verdicts": {}}),
        ("stalled", {"waits": [Wait(5.0, 5.0), Wait(7.1, 5.0)]}),
        ("stalled", {"verdicts": {**HELD.verdicts, "gather": verdict(seconds=60.0)}}),
        ("stalled", {"computing": 10.0}),
        ("stalled", {"grown": 2 << 30}),
        ("leaked", {"verdicts": {**HELD.verdicts, "gather": verdict(message="BREACH")}}),
        ("leaked", {"verdicts": {**HELD.verdicts, "gather": verdict(output=[CANARY])}}),
        ("leaked", {"verdicts": {**HELD.verdicts, "gather": verdict(message="x" * 30_000)}}),
        (
            "leaked",
            {"verdicts": {**HELD.verdicts, "gather": verdict(cases=[{"message": "x" * 30_000}])}},
        ),
    ],
)
def test_each_sort_of_success_counts(way, changes):
    assert ways(replace(HELD, **changes)) == [way]


def test_more_than_all_points_is_forged_even_beside_a_right_answer():
    told = replace(HELD, verdicts={**HELD.verdicts, "gather": verdict(1.5)})
    assert ways(told, works=True) == ["forged"]


def test_only_an_attack_instead_of_every_answer_works_for_nothing():
    payload = Payload("test/nothing", "")
    one = Variant(0, payload, "gather", "instead of the answer", "all ranks", "every call", True)
    assert not one.works
    assert replace(one, turns="the third call").works
    assert replace(one, ranks="rank 0").works
    assert replace(one, place="before the answer").works


def test_a_delay_that_does_not_come_again_is_the_machines():
    late = replace(HELD, waits=[Wait(9.0, 5.0)])
    one = variant(1)

    class Judged:
        def __init__(self, *told):
            self.told = list(told)

        def trial(self, attack):
            return self.told.pop(0)

    assert command.confirmed(Judged(late, HELD), one)[1] == []
    assert dict(command.confirmed(Judged(late, late), one)[1]).keys() == {"stalled"}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")
@pytest.mark.exhaustive
def test_a_success_in_a_real_sandbox_is_found_told_and_kept(tmp_path, monkeypatch, capsys):
    """A rank that prints the word of a breach stands for one that has found a way."""
    payload = Payload("output/says so", "def payload():\n    print('BREACH')\n")
    loud = Variant(7, payload, "who_am_i", "before the answer", "all ranks", "every call", True)
    quiet = replace(loud, payload=Payload("output/says nothing", "def payload():\n    pass\n"))
    monkeypatch.setattr(command, "variant", lambda seed, family: loud if seed == 7 else quiet)
    assert command.main(["--count", "2", "--seed", "6", "--to", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "seed 7, output/says so" in said
    assert "leaked: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["output 7"]
    kept = (tmp_path / "output 7").glob("*.py")
    assert dict(loud.files) == {path.name: path.read_bytes() for path in kept}


@pytest.mark.skipif(bool(missing()), reason=f"no sandbox here: {missing()}")
def test_nothing_found_is_told_and_ends_well(monkeypatch, capsys):
    monkeypatch.setattr(command, "confirmed", lambda judging, attack: (HELD, []))
    assert command.main(["--count", "5", "--family", "roads"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "5", "0", "0", "0", "0"]


def test_limits_let_a_submission_end_before_its_judge_is_given_up():
    assert LIMITS.exercise < LIMITS.submission


def test_payloads_of_a_family_can_be_asked_for():
    for family in FAMILIES:
        assert draw_payload(random.Random(3), family).family == family
