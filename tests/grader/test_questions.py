"""Questions about a run: their answers are what real ranks do."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from grader.judge.questions import questions_on
from headcount import run


def chain(x, skipped=None, silent=None):
    """Pass rank 0's x on; ``skipped`` leaves out its send, and ``silent`` does nothing at all."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    if rank == silent:
        return
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < last and rank != skipped:
        dist.send(x, rank + 1)


def star(x, skipped=None, silent=None):
    """Rank 0 sends x to one rank after the other, to the last one first."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == silent:
        return
    if rank:
        dist.recv(x, 0)
        return
    for other in range(n - 1, 0, -1):
        if other != skipped:
            dist.send(x, other)


def whoever_comes(x):
    if dist.get_rank():
        dist.send(x, 0)
        dist.recv(x, 0)
    else:
        others = [dist.recv(x) for _ in range(dist.get_world_size() - 1)]
        for other in others:
            dist.send(x, other)


def around(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    dist.send(x, (rank + 1) % n)
    dist.recv(x, (rank - 1) % n)


def answers(function):
    ran = run(function, 4, torch.ones(3), may_fail=True)
    return {one.text: one.answer for one in questions_on(ran.trace, ran.failure)}


def hung(function, **changes):
    """The ranks that wait for ever, by a real run."""
    failure = run(lambda x: function(x, **changes), 4, torch.ones(3), may_fail=True).failure
    ranks = [] if failure is None else sorted(wait.rank for wait in failure.waits)
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}" if ranks else "none"


def test_who_sends_what_to_whom_and_what_has_come_by_then():
    found = answers(chain)
    assert found["To which rank does rank 1 send its 1st message?"] == "rank 2"
    assert found["From which rank does rank 3 receive its 1st message?"] == "rank 2"
    assert found["How many times does rank 3 send a message in all?"] == "0"
    begins = "When rank 2 begins its 1st send"
    assert found[f"{begins}, how many messages has it finished receiving?"] == "1"
    came = f"{begins}, which other ranks' data can have reached it, directly or not?"
    assert found[came] == "ranks 0, 1"
    assert answers(star)["To which rank does rank 0 send its 2nd message?"] == "rank 2"


@pytest.mark.parametrize("function", [chain, star])
def test_who_never_returns_is_who_hangs_when_it_is_tried(function):
    found = answers(function)
    text = "Suppose rank {} never calls the function. Which other ranks never return?"
    for rank in range(4):
        assert found[text.format(rank)] == hung(function, silent=rank), rank


def test_a_send_that_is_left_out_is_what_happens_when_it_is_tried():
    text = "Suppose rank {} leaves out its {} send and goes on with the rest."
    text += " Which ranks never return?"
    in_a_chain, in_a_star = answers(chain), answers(star)
    for rank in range(3):
        assert in_a_chain[text.format(rank, "1st")] == hung(chain, skipped=rank)
    for place, other in (("1st", 3), ("2nd", 2), ("3rd", 1)):
        assert in_a_star[text.format(0, place)] == hung(star, skipped=other)


def test_what_a_message_from_any_rank_may_decide_is_not_asked():
    found = answers(whoever_comes)
    assert found == {
        f"To which rank does rank {rank} send its 1st message?": "rank 0" for rank in (1, 2, 3)
    }


def test_a_run_that_hangs_is_asked_whom_a_rank_waits_for():
    found = answers(around)
    line = around.__code__.co_firstlineno + 2
    text = "For which rank does rank 3 wait when the run hangs, and where?"
    assert found[text] == f"rank 0, in line {line}"
    assert not any("never return" in text or "in all" in text for text in found)
