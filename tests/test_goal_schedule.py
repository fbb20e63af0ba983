"""Records as GOAL schedules, and back: what is written can be followed, and takes as long."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from grader.api.simulate import simulate
from grader.core.errors import RequestError
from grader.trace.goal_schedule import follow, from_goal, to_goal
from tests.conftest import play


def ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    for _ in range(n - 1):
        request = dist.isend(x, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()


def tree(x):
    rank, n, reach = dist.get_rank(), dist.get_world_size(), 1
    while reach < n:
        if rank < reach and rank + reach < n:
            dist.send(x, rank + reach)
        elif reach <= rank < 2 * reach:
            dist.recv(x, rank - reach)
        reach *= 2


def everybody_to_everybody(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    requests = []
    for step in range(1, n):
        requests.append(dist.isend(x, (rank + step) % n, tag=step))
        requests.append(dist.irecv(torch.empty_like(x), (rank - step) % n, tag=step))
    for request in requests:
        request.wait()


def built_in(x):
    dist.all_reduce(x)


PROGRAMS = (ring, tree, everybody_to_everybody, built_in)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_schedule_that_is_followed_takes_as_long_as_the_run(program, n):
    run = simulate(program, n, torch.zeros(100))
    text = to_goal(run.trace)
    again = simulate(follow, n, from_goal(text))
    assert (again.seconds, again.messages, again.bytes) == (run.seconds, run.messages, run.bytes)


@pytest.mark.parametrize("program", PROGRAMS)
def test_reading_gives_what_was_written(program):
    text = to_goal(simulate(program, 4, torch.zeros(10)).trace)
    assert str(from_goal(text)) == text


def test_the_schedule_of_two_ranks():
    def there_and_back():
        x = torch.zeros(2)
        if dist.get_rank() == 0:
            request = dist.irecv(x, 1, tag=3)
            dist.send(x.clone(), 1)
            request.wait()
        else:
            dist.recv(x, 0)
            dist.send(x, 0, tag=3)

    expected = """\
num_ranks 2

rank 0 {
l1: recv 8b from 1 tag 3
l2: send 8b to 1 tag 0
l2 irequires l1
}

rank 1 {
l1: recv 8b from 0 tag 0
l2: send 8b to 0 tag 3
l2 requires l1
}
"""
    assert to_goal(simulate(there_and_back, 2).trace) == expected
    # a record of real ranks is of the same kind
    assert to_goal(play(there_and_back, 2).trace) == expected


def test_groups_have_tags_of_their_own():
    def in_two_groups():
        rank, x = dist.get_rank(), torch.zeros(1)
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        peer, mine = rank ^ 1, pairs[rank // 2]
        for group in (None, mine):
            request = dist.isend(x, peer, group=group)
            dist.recv(torch.empty(1), peer, group=group)
            request.wait()

    text = to_goal(simulate(in_two_groups, 4).trace)
    assert {line.split()[-1] for line in text.splitlines() if " tag " in line} == {"0", "1", "2"}


def test_what_others_write():
    schedule = from_goal("""
        // two ranks
        num_ranks 2
        /* the first
           computes */
        rank 0 {
            work : calc 5000 cpu 0
            a: send 10b to 1 tag 7 cpu 0 nic 0
            a requires work
        }
        rank 1 { \n\tb: recv 10 b from 0 tag 7\n}
    """)
    assert [len(tasks) for tasks in schedule.tasks] == [2, 1]
    run = simulate(follow, 2, schedule, alpha=1e-6, beta=0.0)
    assert run.seconds == 6e-6


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "ends in the middle"),
        ("num_ranks 1\nrank 0 {\n", "ends in the middle"),
        ("num_ranks 1\nrank 1 {\n}\n", "line 2 .* 'rank 1 {'"),
        ("num_ranks 2\nrank 0 {\nl1: send 1b from 1 tag 0\n}\n", "line 3"),
        ("num_ranks 2\nrank 0 {\nl1: send 1b to 2 tag 0\n}\n", "line 3"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\nl1: calc 2\n}\n", "line 4"),
        ("num_ranks 2\nrank 0 {\nl1: calc 1\nl1 requires l2\n}\n", "line 4"),
        ("/* a\nb */ num_ranks 1\nrank zero {\n}\n", "line 3 .*'rank zero {'"),
    ],
)
def test_what_is_no_schedule(text, complaint):
    with pytest.raises(RequestError, match=complaint):
        from_goal(text)


def test_tasks_that_wait_for_each_other():
    schedule = from_goal(
        "num_ranks 1\nrank 0 {\nl1: calc 1\nl2: calc 1\nl1 requires l2\nl2 requires l1\n}\n"
    )
    failure = simulate(follow, 1, schedule, may_fail=True).failure
    assert "l1, l2 wait for each other" in failure.message


def test_collectives_of_real_ranks_have_no_messages():
    outcome = play(lambda: dist.barrier(), 2, allowed=None)
    with pytest.raises(RequestError, match="no messages of barrier"):
        to_goal(outcome.trace)
