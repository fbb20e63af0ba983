"""check, run and hint, as a notebook or script calls them."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist

import grader
from grader import check, hint, run
from grader.api import Prediction, fresh_seed, points
from grader.errors import UnknownExercise
from headcount.core.errors import HeadcountError, RequestError, RunFailed
from headcount.core.verdict import Diagnosis
from support.worlds import line_in


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
        "assert_no_hang",
        "backends",
        "check",
        "hint",
        "mark",
        "points",
        "predict",
        "progress",
        "replay",
        "reset",
        "run",
        "simulate",
        "timeline",
        "torchrun",
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
    assert len({fresh_seed() for _ in range(5)}) > 1


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
    assert repr(found).splitlines() == [
        *(f"rank {rank}: [3.0, 3.0]" for rank in range(3)),
        "1 message, 8 bytes, 1 round, 1 collective: all_reduce",
    ]


def test_run_of_nothing():
    assert repr(run(lambda: None, 2)) == "2 ranks, nothing returned, no messages sent"
    assert run(lambda: None, 2)._repr_html_() is None
    done = run(lambda x, f: dist.barrier(), 1, [torch.ones(1)], torch.relu)
    assert repr(done) == "1 rank, nothing returned, no argument changed\n1 collective: barrier"


def pass_on(x, to):
    """Rank 0 adds one and sends it to another, in place."""
    if dist.get_rank() == 0:
        x += 1
        dist.send(x, to)
    elif dist.get_rank() == to:
        dist.recv(x, 0)


def test_a_run_in_place_shows_what_its_arguments_became_and_what_was_sent():
    done = run(pass_on, 3, torch.arange(3.0), 1)
    assert repr(done).splitlines() == [
        "3 ranks, nothing returned",
        "x changed on ranks 0 and 1:",
        "    before   [0 1 2]",
        "    rank 0   [1 2 3]",
        "    rank 1   [1 2 3]",
        "    rank 2   [0 1 2]   unchanged",
        "1 message, 12 bytes, 1 round",
    ]
    shown = html.unescape(re.sub(r"<[^>]+>", " ", re.sub("</?b>", "", done._repr_html_())))
    for line in repr(done).splitlines():
        assert " ".join(line.split()) in " ".join(shown.split())


def test_ranks_that_had_the_same_before_are_told_apart_from_ranks_that_did_nothing():
    done = run(lambda x: dist.broadcast(x, 0), 2, torch.ones(1))
    assert repr(done).splitlines() == [
        "2 ranks, nothing returned, no argument changed (each rank was given the same)",
        "1 collective: broadcast",
    ]


def test_of_a_large_tensor_the_part_is_shown_that_changed():
    def late(x):
        x.view(-1)[500 + 100 * dist.get_rank()] = 0.125

    assert repr(run(late, 2, torch.zeros(30, 40))).splitlines()[1:] == [
        "x changed on every rank:",
        "    before   […     0     0     0     0     0 …]",
        "    rank 0   […     0 0.125     0     0     0 …]   at [12, 20]",
        "    rank 1   […     0 0.125     0     0     0 …]   at [15, 0]",
    ]


def in_place(kind):
    """A function that works in place, its argument, and the lines on rank 1 of 2 ranks."""

    def add(x):
        for one in [x] if kind == "numbers" else x if kind == "list" else x.parameters():
            if kind == "numbers":
                one.append(dist.get_rank())
            else:
                one.detach().add_(dist.get_rank())

    module = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.ones_(module.bias)
    given, before, after = {
        "numbers": ([7], "[7]", "[7, 1]"),
        "list": ([torch.zeros(2), torch.ones(1)], "[[0 0], [1]]", "[[1 1], [2]]"),
        "module": (
            module,
            "{'weight': [0 0], 'bias': [1]}",
            "{'weight': [1 1], 'bias': [2]}",
        ),
    }[kind]
    return add, given, before, after


@pytest.mark.parametrize("kind", ["numbers", "list", "module"])
def test_what_was_changed_inside_an_argument_is_shown(kind):
    add, given, before, after = in_place(kind)
    lines = repr(run(add, 2, given)).splitlines()
    assert f"    before   {before}" in lines
    assert f"    rank 1   {after}" in lines
    assert ("    rank 0   [7, 0]" in lines) == (kind == "numbers")


class Counter:
    """Its repr does not tell how far it has counted."""

    def __init__(self):
        self.n = 1

    def zero_(self):
        self.n = 0


@pytest.mark.parametrize("given", [Counter(), torch.ones(1 << 23)], ids=["object", "large"])
def test_of_an_argument_that_cannot_be_followed_nothing_is_claimed(given):
    def work(state):
        state.zero_()

    done = run(work, 2, given)
    said = "2 ranks, nothing returned, no messages sent; what became of state cannot be shown"
    assert repr(done).split() == said.split()


def test_of_many_ranks_and_arguments_some_are_shown():
    def add(a, b, c, d, e, f, g):
        for x in (a, b, c, d, e, f, g):
            x += dist.get_rank()

    lines = repr(run(add, 20, *torch.zeros(7, 1))).splitlines()
    assert lines[1:4] == ["a changed on 19 of 20 ranks:", "    before    [0]", "    rank 1    [1]"]
    assert lines.count("    … 4 more ranks") == 6
    assert lines[-1] == "g changed, too"


def test_run_raises_with_one_line_and_no_traceback_of_ours():
    def answer():
        raise ValueError("no")

    with pytest.raises(RunFailed, match=r"exception: rank 0, line \d+: ValueError: no") as error:
        run(answer, 2)
    assert error.value._render_traceback_() == [f"RunFailed: {error.value}"]
    assert isinstance(error.value, HeadcountError)
    assert error.value.failure.rank == 0


def test_a_run_that_raises_shows_the_way_to_the_line_and_quotes_it():
    def helper(x):
        try:
            return {}[x]
        except KeyError:
            raise ValueError("no") from None

    def again(n):
        return again(n - 1) if n else helper(n)

    def answer():
        return again(50)

    failed = run(answer, 2, may_fail=True)
    first, back, last = line_in(answer, "return"), line_in(again, "return"), line_in(helper, "no")
    assert repr(failed).splitlines() == [
        f"✗ exception: rank 0, line {last}: ValueError: no",
        f"    line {first}, in answer:  return again(50)",
        # once, and not fifty times
        f"    line {back}, in again:  return again(n - 1) if n else helper(n)",
        f'    line {last}, in helper:  raise ValueError("no") from None',
    ]
    with pytest.raises(RunFailed) as error:
        run(answer, 2)
    assert str(error.value) == repr(failed).removeprefix("✗ ")


@pytest.mark.parametrize("explicit", [True, False])
def test_the_exception_before_is_told_in_a_line(explicit):
    def answer():
        try:
            [].pop()
        except IndexError as error:
            if explicit:
                raise ValueError("no") from error
            raise ValueError("no")  # noqa: B904

    line = line_in(answer, "pop")
    how = "caused by" if explicit else "raised while handling"
    assert run(answer, 1, may_fail=True).failure.detail == (
        f"{how} IndexError: pop from empty list (line {line})",
    )


def test_an_error_inside_a_library_ends_at_the_call_that_led_to_it():
    def answer():
        return torch.cat([torch.ones(1), "text"])

    frames = run(answer, 1, may_fail=True).failure.frames
    assert [frame.text for frame in frames] == ['return torch.cat([torch.ones(1), "text"])']


@pytest.mark.exhaustive
def test_a_script_ends_with_the_line_that_ran_it_first_and_the_verdict_last(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "from grader import run\n"
        "def f():\n"
        "    dist.recv(torch.ones(1), 1 - dist.get_rank())\n"
        "run(f, 2)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    # frames of ours stand between the two: to hide them would take a hook of the whole process
    assert next(line for line in lines if line.startswith("  File")) == (
        f'  File "{script}", line 5, in <module>'
    )
    assert lines[-2].startswith(
        "headcount.core.errors.RunFailed: deadlock: rank 0 waits to receive"
    )
    assert lines[-1] == "    line 4:  dist.recv(torch.ones(1), 1 - dist.get_rank())"


@pytest.mark.exhaustive
def test_pytest_shows_no_frame_of_ours(tmp_path):
    test = tmp_path / "test_mine.py"
    test.write_text(
        "import torch, torch.distributed as dist\n"
        "from grader import run\n"
        "def test_it():\n"
        "    run(lambda: dist.recv(torch.ones(1), 1 - dist.get_rank()), 2)\n"
    )
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(pytest_, capture_output=True, text=True, timeout=90, cwd=tmp_path)
    assert done.returncode == 1
    assert "E       headcount.core.errors.RunFailed: deadlock: rank 0 waits" in done.stdout
    assert re.findall(r"^\S+\.py:\d+: .*", done.stdout, re.M) == ["test_mine.py:4: RunFailed"]


def test_a_run_that_may_fail_says_why_when_asked():
    def answer():
        dist.recv(torch.empty(1), 1 - dist.get_rank())

    failed = run(answer, 2, may_fail=True)
    assert repr(failed).startswith("✗ deadlock: rank 0 waits to receive from rank 1")
    with pytest.raises(RunFailed, match="deadlock"):
        failed[0]


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
@pytest.mark.parametrize(
    "answer, what",
    [
        (lambda: torch.ones(1).expand(1 << 27), "a float32 tensor of shape (134217728,) (537 MB)"),
        (lambda: {"log": "x" * 200_000}, "a str of 200000 characters"),
    ],
    ids=["tensor", "text"],
)
def test_a_result_that_is_too_much_fails_and_is_not_cut_in_silence(start, answer, what):
    run = start(answer, 2, may_fail=True)
    assert run.failure.diagnosis is Diagnosis.OUTPUT_LIMIT
    assert run.failure.message.startswith(f"rank 0 returns {what}")
    assert "268 MB" in run.failure.message


@pytest.mark.parametrize("start", [grader.run, grader.simulate])
def test_whatever_torch_has_as_a_name_can_be_returned(start):
    answer = [torch.complex128, torch.float8_e4m3fn, dist.ReduceOp.BAND, dist.ReduceOp.PREMUL_SUM]
    assert list(start(lambda: answer, 1)) == [answer]


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


def test_hints_come_one_by_one(capsys, monkeypatch):
    monkeypatch.setattr("grader.api.guidance.hints_given", {})
    first = hint("broadcast")
    assert len(first.hints) == 1
    assert repr(first).endswith('2 more: for the next hint, call hint("broadcast") again.')
    second = hint("broadcast")
    assert len(second.hints) == 2
    asks = 'To see it, call hint("broadcast") again.'
    assert repr(second).endswith(f"The next hint is the whole answer. {asks}")
    shown = second._repr_html_()
    assert "The next hint is the whole answer." in shown
    assert "<pre" not in shown
    assert len(hint(broadcast).hints) == len(hint("broadcast").hints) == 3
    last = hint("broadcast")
    for shown in (repr(last), last._repr_html_()):
        assert "again." not in shown
        assert "There are no more hints: that was the last one." in shown
    # monospace is for code alone, and it keeps its shape
    (code,) = re.findall(r"<pre[^>]*>(.*?)</pre>", last._repr_html_(), re.DOTALL)
    assert code.startswith("if dist.get_rank() == src:\n    for dst in")
    for shown in (repr(first), repr(second), repr(last)):
        assert max(map(len, shown.splitlines())) <= 80
    with pytest.raises(UnknownExercise):
        hint("brodcast")
    assert capsys.readouterr().out


def not_written(x, src):
    raise NotImplementedError


not_written.__name__ = "broadcast"


def test_a_verdict_on_a_terminal_names_the_call_for_more_hints_until_the_last(capsys, monkeypatch):
    monkeypatch.setattr("grader.api.guidance.hints_given", {})
    assert 'more hints: hint("broadcast")' in repr(check(not_written))
    for _ in range(3):
        hint("broadcast")
    assert "more hints" not in repr(check(not_written))


def right_rank():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])


def wrong_rank():
    return torch.tensor([FIRST_RANK + dist.get_rank(), dist.get_world_size()])


right_rank.__name__ = wrong_rank.__name__ = "who_am_i"
FIRST_RANK = 1


def test_points_of_what_has_been_checked_are_shown_and_not_judged_again(capsys, monkeypatch):
    monkeypatch.setattr("grader.api.checks.last_judged", {})
    checked = check(wrong_rank)
    assert checked.verdict.message.startswith("1 rank, rank 0: element [0]")
    given = points(wrong_rank)
    assert given.verdict is checked.verdict
    assert given._repr_html_().count("<div") == 2  # its name and its points, in a line
    # another function, or the same one with other data, is another answer
    assert float(points(right_rank)) == 1
    monkeypatch.setitem(globals(), "FIRST_RANK", 0)
    assert float(points(wrong_rank)) == 1
    # what has been checked on some worlds alone is not judged
    check(right_rank, world_sizes=[2])
    assert {case.world_size for case in points(right_rank).verdict.cases} == {1, 2, 3, 4, 5, 8}


def test_points_show_a_failed_verdict_whole_that_has_not_been_seen(monkeypatch, capsys):
    monkeypatch.setattr("grader.api.checks.last_judged", {})
    assert "not written yet" in points(not_written)._repr_html_()


def test_a_prediction_is_shown_with_what_follows_even_if_that_fails(capsys):
    grader.predict("it hangs")
    with pytest.raises(RunFailed):
        run(lambda: dist.recv(torch.empty(1), 1 - dist.get_rank()), 2)
    assert capsys.readouterr().out.splitlines() == [
        "Your prediction is kept. Now run the next cell and compare.",
        "You predicted: it hangs",
    ]


@pytest.mark.parametrize("following", [grader.simulate, grader.replay])
def test_every_kind_of_run_shows_a_prediction(following, capsys):
    grader.predict("<b>nothing</b>")
    following(lambda: dist.barrier(), 2)
    assert "You predicted: <b>nothing</b>" in capsys.readouterr().out
    shown = Prediction("<b>nothing</b>", seen=True)._repr_html_()
    assert "&lt;b&gt;nothing" in shown


def test_a_prediction_is_a_text():
    with pytest.raises(RequestError, match=r'predict\("everyone has 7"\), not an int'):
        grader.predict(7)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "5", True])
def test_a_limit_on_time_that_is_none_is_refused(seconds):
    def neighbours():
        return 0, 0

    with pytest.raises(RequestError, match="seconds is a number above 0, not"):
        check(neighbours, seconds=seconds)


def test_a_check_may_give_a_call_more_seconds():
    def neighbours():
        time.sleep(2)
        rank, n = dist.get_rank(), dist.get_world_size()
        return (rank - 1) % n, (rank + 1) % n

    assert check(neighbours, world_sizes=(2,), seconds=30)
