"""check, run and hint, as a notebook or script calls them."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

import grader
from grader import api, check, hint, run
from grader.errors import GraderError, RequestError, RunFailed, UnknownExercise


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)


def test_everything_public_is_exported():
    assert sorted(grader.__all__) == [
        "__version__",
        "backends",
        "check",
        "hint",
        "mark",
        "points",
        "progress",
        "replay",
        "run",
        "simulate",
        "timeline",
    ]
    assert all(getattr(grader, name) for name in grader.__all__)
    with pytest.raises(AttributeError):
        grader.nothing  # noqa: B018


def test_check_prints_in_a_script_and_is_true_for_a_pass(capsys):
    checked = check(broadcast, world_sizes=[2])
    assert checked
    assert capsys.readouterr().out == f"{checked!r}\n"
    assert "passed: 10 cases on 2 ranks" in repr(checked)
    assert checked._repr_html_().startswith("<div")


def test_check_with_a_seed_repeats(capsys):
    def twice_wrong():
        def broadcast(x, src):
            pass

        return check(broadcast, seed=3, world_sizes=[2]).verdict.cases

    assert twice_wrong() == twice_wrong()


def test_fresh_seeds_differ():
    assert len({api.fresh_seed() for _ in range(5)}) > 1


@pytest.mark.parametrize("value", [3, None, "broadcast", [broadcast]])
def test_check_wants_a_function(value):
    with pytest.raises(RequestError, match="check takes the function itself"):
        check(value)


def test_check_wants_an_exercise():
    def brodcast(x, src): ...

    with pytest.raises(UnknownExercise, match="did you mean broadcast"):
        check(brodcast)


def test_run_returns_results_in_rank_order_and_prints_in_rank_order(capsys):
    def answer(x, y=2):
        print("rank", dist.get_rank())
        return x + y + dist.get_rank()

    found = run(answer, 3, 10)
    assert list(found) == [12, 13, 14]
    assert (found[0], found[-1], len(found), found[:2]) == (12, 14, 3, (12, 13))
    assert found.failure is None
    assert found.output == ("rank 0\n", "rank 1\n", "rank 2\n")
    assert capsys.readouterr().out == "".join(f"[rank {r}] rank {r}\n" for r in range(3))
    assert repr(found) == "rank 0: 12\nrank 1: 13\nrank 2: 14"


def test_run_allows_every_collective_and_gives_the_trace():
    def answer():
        x = torch.ones(2)
        dist.all_reduce(x)
        if dist.get_rank() == 0:
            dist.send(x, 1)
        elif dist.get_rank() == 1:
            dist.recv(x, 0)
        return x

    found = run(answer, 3)
    assert found.trace.traffic.messages == 1
    assert "rank 0 → rank 1: 2 × float32 (8 bytes)" in str(found.trace)
    assert "messages: 1, bytes: 8, most by one rank: 8, rounds: 1" in repr(found.trace)


def test_run_of_nothing():
    assert repr(run(lambda: None, 2)) == "2 ranks, nothing returned"


def test_run_raises_with_one_line_and_no_traceback_of_ours():
    def answer():
        raise ValueError("no")

    with pytest.raises(RunFailed, match=r"exception: rank 0, line \d+: ValueError: no") as error:
        run(answer, 2)
    assert error.value._render_traceback_() == [f"RunFailed: {error.value}"]
    assert isinstance(error.value, GraderError)
    assert error.value.failure.rank == 0


def test_a_run_that_may_fail_says_why_when_asked():
    def answer():
        dist.recv(torch.empty(1), 1 - dist.get_rank())

    failed = run(answer, 2, may_fail=True)
    assert repr(failed).startswith("✗ deadlock: rank 0 waits to receive from rank 1")
    with pytest.raises(RunFailed, match="deadlock"):
        failed[0]


@pytest.mark.parametrize("size", [0, -1, 65, True, 2.0, "2"])
def test_run_wants_a_number_of_ranks(size):
    with pytest.raises(RequestError, match="a world has 1 to 64 ranks"):
        run(lambda: None, size)


def test_a_function_of_another_module_travels_by_value(tmp_path, monkeypatch):
    (tmp_path / "students_module.py").write_text("FACTOR = 3\ndef f(x):\n    return FACTOR * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import students_module

    students_module.FACTOR = 5  # as it is now, and not as it is on disk
    assert list(run(students_module.f, 2, 2)) == [10, 10]


def test_hints_come_one_by_one(capsys):
    api._hints_given.clear()
    first = hint("broadcast")
    assert len(first.hints) == 1
    assert "(2 more: call hint('broadcast') again)" in repr(first)
    second = hint("broadcast")
    assert len(second.hints) == 2
    assert "(The next hint is the whole answer: call hint('broadcast') again)" in repr(second)
    assert len(hint(broadcast).hints) == len(hint("broadcast").hints) == 3
    assert "again)" not in repr(hint("broadcast"))
    with pytest.raises(UnknownExercise):
        hint("brodcast")
    assert capsys.readouterr().out
