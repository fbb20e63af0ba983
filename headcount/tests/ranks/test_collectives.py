"""What plain gloo is silent about: collectives that disagree, and writes to buffers in flight."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from headcount import run
from headcount.core.verdict import Diagnosis
from support.worlds import line_in, play

#: How each collective is called with ``n`` elements of a dtype by a rank of two.
CALLS = {
    "broadcast": lambda n, d: dist.broadcast(torch.zeros(n, dtype=d), 1),
    "reduce": lambda n, d: dist.reduce(torch.zeros(n, dtype=d), 1),
    "all_reduce": lambda n, d: dist.all_reduce(torch.zeros(n, dtype=d)),
    "all_reduce async": lambda n, d: dist.all_reduce(torch.zeros(n, dtype=d), async_op=True).wait(),
    "all_reduce coalesced": lambda n, d: dist.all_reduce_coalesced(
        [torch.zeros(n, dtype=d), torch.zeros(5, dtype=d)]
    ),
    "all_gather": lambda n, d: dist.all_gather(
        [torch.empty(n, dtype=d) for _ in range(2)], torch.zeros(n, dtype=d)
    ),
    "all_gather tensor": lambda n, d: dist.all_gather_into_tensor(
        torch.empty(2 * n, dtype=d), torch.zeros(n, dtype=d)
    ),
    "all_gather coalesced": lambda n, d: dist.all_gather_coalesced(
        [[torch.empty(n, dtype=d)] for _ in range(2)], [torch.zeros(n, dtype=d)]
    ),
    "gather": lambda n, d: dist.gather(
        torch.zeros(n, dtype=d),
        [torch.empty(n, dtype=d) for _ in range(2)] if dist.get_rank() == 1 else None,
        1,
    ),
    "scatter": lambda n, d: dist.scatter(
        torch.empty(n, dtype=d),
        [torch.zeros(n, dtype=d) for _ in range(2)] if dist.get_rank() == 1 else None,
        1,
    ),
    "reduce_scatter": lambda n, d: dist.reduce_scatter(
        torch.empty(n, dtype=d), [torch.zeros(n, dtype=d) for _ in range(2)]
    ),
    "reduce_scatter tensor": lambda n, d: dist.reduce_scatter_tensor(
        torch.empty(n, dtype=d), torch.zeros(2 * n, dtype=d)
    ),
    "all_to_all": lambda n, d: dist.all_to_all(
        [torch.empty(n, dtype=d) for _ in range(2)], [torch.zeros(n, dtype=d) for _ in range(2)]
    ),
    "all_to_all single": lambda n, d: dist.all_to_all_single(
        torch.empty(2 * n, dtype=d), torch.zeros(2 * n, dtype=d)
    ),
    "all_to_all splits": lambda n, d: dist.all_to_all_single(
        torch.empty(2 * n, dtype=d), torch.zeros(2 * n, dtype=d), [n, n], [n, n]
    ),
}


@pytest.mark.parametrize("odd", ["size", "dtype"])
@pytest.mark.parametrize("name", CALLS)
def test_what_differs_is_said_with_both_ranks(name, odd):
    call = CALLS[name]

    def answer():
        other = dist.get_rank() == 1
        call(3 if other and odd == "size" else 2, torch.int32 if other and odd == "dtype" else None)

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis == f"{odd}_mismatch"
    second = "3 float32" if odd == "size" else "2 int32"
    kind = name.split()[0]
    per = "" if kind in ("broadcast", "reduce", "all_reduce") else " per rank"
    assert f"{kind} of 2 float32 elements{per} on rank 0 (line " in failure.message
    assert f", of {second} elements{per} on rank 1 (line " in failure.message


def test_both_lines_are_said():
    def answer():
        if dist.get_rank() == 0:
            dist.all_gather([torch.empty(2) for _ in range(2)], torch.ones(2))
        else:
            dist.all_gather([torch.empty(3) for _ in range(2)], torch.ones(3))

    failure = play(answer, 2, allowed=None).failure
    first, second = line_in(answer, "torch.ones(2))"), line_in(answer, "torch.ones(3))")
    assert f"on rank 0 (line {first})" in failure.message
    assert f"on rank 1 (line {second})" in failure.message


def test_split_sizes_are_compared_pair_by_pair():
    def answer():
        sent, received = ([1, 3], [1, 2]) if dist.get_rank() == 0 else ([2, 2], [2, 2])
        dist.all_to_all_single(torch.empty(sum(received)), torch.ones(4), received, sent)

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert "rank 0 gives 3 float32 elements to rank 1 (line " in failure.message
    assert "and rank 1 takes 2 float32 elements from rank 0 (line " in failure.message


def test_blocks_of_many_sizes_are_legal_where_both_ends_know_them():
    def answer():
        me = dist.get_rank()
        sent, received = ([0, 3], [0, 2]) if me == 0 else ([2, 0], [3, 0])
        out = torch.empty(sum(received))
        dist.all_to_all_single(out, torch.full((sum(sent),), me + 1.0), received, sent)
        part = torch.empty(1 + me)
        dist.reduce_scatter(part, [torch.ones(1), torch.ones(2)])
        return out.tolist(), part.tolist()

    outcome = play(answer, 2, allowed=None)
    assert [r.value for r in outcome.results] == [
        ([2.0, 2.0], [2.0]),
        ([1.0, 1.0, 1.0], [2.0, 2.0]),
    ]


def test_object_collectives_pad_by_themselves():
    def answer():
        me = dist.get_rank()
        mine = {"rank": me, "text": "a" * (1 + 70 * me)}
        everything, at_root, from_root = [None] * 3, [None] * 3, [None]
        dist.all_gather_object(everything, mine)
        dist.gather_object(mine, at_root if me == 2 else None, 2)
        dist.scatter_object_list(from_root, ["x", "yy" * 40, None] if me == 1 else None, 1)
        spread = ["long" * 50, 7] if me == 0 else [None, None]
        dist.broadcast_object_list(spread, 0)
        texts = [len(one["text"]) for one in everything]
        return texts, at_root[0] is not None, from_root[0], spread[1]

    outcome = play(answer, 3, allowed=None)
    texts = [1, 71, 141]
    assert [r.value for r in outcome.results] == [
        (texts, False, "x", 7),
        (texts, False, "yy" * 40, 7),
        (texts, True, None, 7),
    ]


def test_object_lists_of_two_lengths_are_said():
    def answer():
        dist.broadcast_object_list([None] * (2 + dist.get_rank()), 0)

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert "broadcast of 2 int64 elements on rank 0" in failure.message


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: dist.all_gather_into_tensor(torch.empty(7), torch.ones(4)),
            "the output of all_gather has 7 elements, which is no multiple of the 2 ranks",
        ),
        (
            lambda: dist.reduce_scatter_tensor(torch.empty(4), torch.ones(10)),
            "in reduce_scatter, rank 0 gives itself 5 elements and takes 4 from itself",
        ),
        (
            lambda: dist.all_to_all_single(torch.empty(3), torch.ones(3)),
            "the input of all_to_all has 3 rows, which is no multiple of the 2 ranks",
        ),
        (
            lambda: dist.all_to_all_single(torch.empty(4), torch.ones(4), [3, 1], [1, 3]),
            "in all_to_all, rank 0 gives itself 1 element and takes 3 from itself",
        ),
        (
            lambda: dist.all_to_all_single(
                torch.empty(4), torch.ones(4), torch.tensor([2, 2]), torch.tensor([2, 2])
            ),
            "the split sizes of the input of all_to_all are a tensor; they have to be a list",
        ),
        (
            lambda: dist.all_gather([torch.empty(2), torch.empty(3)], torch.ones(2)),
            "rank 0's own has 2 elements, and number 1 of its output list has 3",
        ),
    ],
)
def test_a_call_that_does_not_fit_itself_is_said_where_it_is_made(call, text):
    def answer():
        call()

    failure = play(answer, 2, allowed=None).failure
    assert failure.diagnosis is Diagnosis.EXCEPTION
    assert (failure.rank, text in failure.message) == (0, True)


def test_futures_wait_until_everybody_has_called():
    def answer():
        me = dist.get_rank()
        x = torch.ones(2) * (me + 1)
        future = dist.all_reduce(x, async_op=True).get_future()
        if me == 0:
            dist.send(torch.zeros(1), 1)
        else:
            dist.recv(torch.zeros(1), 0)
        future.wait()
        return x.tolist()

    outcome = play(answer, 2, allowed=None)
    assert outcome.failure is None
    assert [r.value for r in outcome.results] == [[3.0, 3.0]] * 2


def _adds(t):
    t += 1


def _zeroes(t):
    t.zero_()  # it holds zeros already, and what is received would be lost all the same


def _fills_its_end(t):
    t[2:].fill_(1)


def _writes_through_numpy(t):
    t.numpy()[:] = 1


STARTS = {
    "irecv": lambda t: dist.irecv(t, 0),
    "irecv of a part": lambda t: dist.irecv(t[1:], 0),
    "irecv from any": lambda t: dist.irecv(t),
    "isend": lambda t: dist.isend(t, 0),
}


def _race(start, write):
    def answer():
        t = torch.zeros(4)
        if dist.get_rank() == 1:
            request = start(t)
            write(t)
            request.wait()
        elif start is STARTS["isend"]:
            dist.recv(t, 1)
        else:
            dist.send(torch.ones(3) if start is STARTS["irecv of a part"] else t, 1)

    return answer


@pytest.mark.parametrize("write", [_adds, _fills_its_end, _writes_through_numpy])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_write_to_a_buffer_in_flight_is_a_race(start, write):
    failure = play(_race(start, write), 2).failure
    assert failure.diagnosis is Diagnosis.BUFFER_RACE
    assert failure.rank == 1
    kind = "send" if start is STARTS["isend"] else "recv"
    assert f"a buffer was changed while its {kind} was in flight" in failure.message


def test_a_write_that_changes_nothing_is_lost_where_a_message_arrives():
    failure = play(_race(STARTS["irecv"], _zeroes), 2).failure
    assert failure.diagnosis is Diagnosis.BUFFER_RACE


def test_the_lines_between_which_a_buffer_was_written_are_said():
    def answer():
        t, other = torch.zeros(4), torch.zeros(1)
        if dist.get_rank() == 0:
            dist.send(torch.ones(4), 1)
            dist.send(other, 1)
            dist.send(other, 1)
        else:
            request = dist.irecv(t, 0, tag=0)
            first = dist.irecv(other, 0)
            t += 1
            second = dist.irecv(torch.zeros(1), 0)
            for one in (request, first, second):
                one.wait()

    failure = play(answer, 2).failure
    assert failure.diagnosis is Diagnosis.BUFFER_RACE
    last, first = line_in(answer, "first = dist"), line_in(answer, "second = dist")
    said = f"after the call on line {last} and before the one on line {first}"
    assert said in failure.message


def test_the_rest_of_a_tensor_may_be_used_while_a_part_is_received():
    def answer():
        t = torch.zeros(4)
        if dist.get_rank() == 0:
            dist.send(torch.full((2,), 5.0), 1)
        else:
            request = dist.irecv(t[:2], 0)
            t[2:] += 1
            request.wait()
        return t.tolist()

    assert play(answer, 2).results[1].value == [5.0, 5.0, 1.0, 1.0]


def test_requests_may_be_waited_for_in_any_order_and_again():
    def answer():
        me = dist.get_rank()
        first, second = torch.full((2,), float(me)), torch.full((2,), me + 10.0)
        start = dist.isend if me == 0 else dist.irecv
        requests = [start(first, 1 - me), start(second, 1 - me)]
        for request in (*reversed(requests), *requests):
            request.wait()
        return first.tolist(), second.tolist()

    outcome = play(answer, 2)
    assert outcome.failure is None
    assert [r.value for r in outcome.results] == [([0.0, 0.0], [10.0, 10.0])] * 2


def _given_twice():
    x, y = torch.ones(4), torch.ones(4)
    groups = [dist.new_group() for _ in range(2)]
    both = (x, x) if dist.get_rank() == 0 else (x, y)
    work = [dist.broadcast(t, 0, g, async_op=True) for t, g in zip(both, groups, strict=True)]
    if dist.get_rank() == 0:
        work.append(dist.isend(x, 1))
    else:
        work.append(dist.irecv(torch.empty(4), 0))
    for one in work:
        one.wait()
    return x.tolist()


def test_what_the_source_of_a_broadcast_gives_others_may_read_meanwhile():
    assert list(run(_given_twice, 2)) == [[1.0] * 4] * 2
