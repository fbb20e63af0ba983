"""Simulated ranks: their clock, their order, and that nothing of one reaches another."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headcount.core.errors import RequestError
from headcount.simulation.clusters import Flat
from headcount.simulation.network import PER_SECOND, seconds_of, ticks_of
from headcount.simulation.world import SimulatedWorld, channel_of

ALPHA, BETA = 1e-6, 1e-10
A, B = 10**15, 10**11


def simulate(function, size, alpha=ALPHA, beta=BETA):
    """Run ``function(world, rank)`` on every rank; the world afterwards."""
    world = None
    world = SimulatedWorld(
        [lambda rank=rank: function(world, rank) for rank in range(size)],
        Flat(alpha, beta).network(size),
    )
    world.run()
    world.end()
    for rank in world.ranks:
        if rank.error is not None:
            raise rank.error
    return world


def ring_all_reduce(world, rank, x):
    n = world.size
    chunks = x.tensor_split(n)
    for step in range(2 * (n - 1)):
        mine, theirs = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        arriving = torch.empty_like(theirs)
        request = world.post_send(mine, (rank + 1) % n, rank)
        world.post_receive(arriving, (rank - 1) % n, (rank - 1) % n).wait()
        request.wait()
        if step < n - 1:
            theirs += arriving
        else:
            theirs.copy_(arriving)


def test_what_was_written_is_what_is_counted():
    assert ticks_of(1e-6) == A
    assert ticks_of(0.1) == PER_SECOND // 10
    assert seconds_of(ticks_of(2.5e-6)) == 2.5e-6


@pytest.mark.parametrize(("alpha", "beta"), [(-1e-9, 0), (0, float("nan")), (float("inf"), 0)])
def test_a_cluster_has_times_that_can_be(alpha, beta):
    with pytest.raises(RequestError, match="at least 0"):
        Flat(alpha, beta)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
def test_a_ring_takes_what_the_formula_says_exactly(n):
    per = 5
    tensors = [torch.arange(n * per, dtype=torch.float64) + rank for rank in range(n)]
    expected = torch.stack(tensors).sum(0)
    world = simulate(lambda world, rank: ring_all_reduce(world, rank, tensors[rank]), n)
    assert all(torch.equal(tensor, expected) for tensor in tensors)
    assert world.now == 2 * (n - 1) * (A + per * 8 * B)
    assert world.messages == 2 * n * (n - 1)
    assert world.bytes == world.messages * per * 8


def test_a_port_serves_one_message_at_a_time():
    def gather(world, rank):
        if rank:
            world.wait(world.post_send(torch.zeros(10), 0, rank))
        else:
            for source in range(1, world.size):
                world.post_receive(torch.zeros(10), source, source).wait()

    assert simulate(gather, 5).now == 4 * (A + 40 * B)


def test_different_pairs_do_not_wait_for_each_other():
    def pairs(world, rank):
        if rank % 2:
            world.post_receive(torch.zeros(10), rank - 1, rank - 1).wait()
        else:
            world.wait(world.post_send(torch.zeros(10), rank + 1, rank))

    assert simulate(pairs, 8).now == A + 40 * B


def test_messages_of_a_channel_do_not_overtake():
    def stream(world, rank):
        if rank == 0:
            requests = [world.post_send(torch.full((1,), float(i)), 1, 0) for i in range(5)]
            for request in requests:
                request.wait()
            return None
        found = []
        for _ in range(5):
            got = torch.zeros(1)
            world.post_receive(got, 0, 0).wait()
            found.append(got.item())
        return found

    assert simulate(stream, 2).ranks[1].value == [0, 1, 2, 3, 4]


def test_a_receive_from_anybody_takes_what_was_sent_first():
    def collect(world, rank):
        if rank:
            world.sleep((4 - rank) * A)
            world.wait(world.post_send(torch.full((1,), float(rank)), 0, rank))
            return None
        found = []
        for _ in range(1, world.size):
            got = torch.zeros(1)
            request = world.post_wildcard_receive(got, (0, "world"))
            request.wait()
            assert request.source_rank() == got.item()
            found.append(request.source_rank())
        return found

    assert simulate(collect, 4).ranks[0].value == [3, 2, 1]


def test_the_receive_that_was_posted_first_gets_the_message():
    def collect(world, rank):
        if rank == 1:
            world.sleep(A)
            requests = [world.post_send(torch.full((1,), float(i)), 0, 1) for i in range(3)]
            for request in requests:
                request.wait()
            return None
        tensors = [torch.zeros(1) for _ in range(3)]
        requests = [
            world.post_receive(tensors[0], 1, 1),
            world.post_wildcard_receive(tensors[1], (0, "world")),
            world.post_receive(tensors[2], 1, 1),
        ]
        for request in requests:
            request.wait()
        return [tensor.item() for tensor in tensors]

    assert simulate(collect, 2).ranks[0].value == [0, 1, 2]


def test_tags_and_groups_are_channels_of_their_own():
    def swap(world, rank):
        if rank == 0:
            one = world.post_send(torch.ones(1), 1, channel_of(0, tag=1))
            two = world.post_send(2 * torch.ones(1), 1, channel_of(0, tag=2))
            one.wait()
            two.wait()
            return None
        first, second = torch.zeros(1), torch.zeros(1)
        world.wait(world.post_receive(second, 0, channel_of(0, tag=2)))
        world.wait(world.post_receive(first, 0, channel_of(0, tag=1)))
        return first.item(), second.item()

    assert simulate(swap, 2).ranks[1].value == (1, 2)


def test_who_asks_in_a_loop_lets_the_others_run():
    def ask(world, rank):
        if rank == 0:
            world.sleep(5 * A)
            world.wait(world.post_send(torch.ones(1), 1, 0))
            return 0
        request, asked = world.post_receive(torch.zeros(1), 0, 0), 0
        while not request.is_completed():
            asked += 1
        return world.now

    assert simulate(ask, 2).ranks[1].value == 6 * A + 4 * B


def test_all_may_ask_in_loops():
    def ask(world, rank):
        if rank:
            request = world.post_receive(torch.zeros(1), 0, 0)
        else:
            request = world.post_send(torch.ones(1), 1, 0)
        while not request.is_completed():
            pass
        return world.now

    world = simulate(ask, 2)
    assert [rank.value for rank in world.ranks] == [A + 4 * B] * 2


def test_who_asks_is_heard_after_the_others_have_ended():
    def ask(world, rank):
        if rank == 0:
            world.sleep(A)
            world.post_send(torch.ones(1), 1, 0)
            return 0
        request = world.post_receive(torch.zeros(1), 0, 0)
        while not request.is_completed():
            pass
        return world.now

    assert simulate(ask, 2).ranks[1].value == 2 * A + 4 * B


def test_who_asks_for_ever_waits_for_ever():
    def ask(world, rank):
        request = world.post_receive(torch.zeros(1), 1 - rank, 1 - rank)
        while not request.is_completed():
            pass

    world = simulate(ask, 2)
    assert [rank.waits.kind for rank in world.ranks] == ["recv", "recv"]


@pytest.mark.parametrize("n", [2, 300])
def test_who_waits_for_ever_is_left_waiting(n):
    def head_to_head(world, rank):
        world.post_receive(torch.zeros(1), (rank + 1) % n, (rank + 1) % n).wait()

    world = simulate(head_to_head, n)
    assert [rank.ended for rank in world.ranks] == [None] * n
    assert all(rank.waits.kind == "recv" for rank in world.ranks)
    assert world.now == 0


@pytest.mark.parametrize(
    "theirs", [torch.ones(1), torch.ones(3), torch.full((2,), 1 << 30, dtype=torch.int32)]
)
def test_ends_that_do_not_fit(theirs):
    def misfit(world, rank):
        if rank:
            world.post_receive(theirs, 0, 0).wait()
        else:
            world.wait(world.post_send(torch.full((2,), 2.0), 1, 0))

    world = simulate(misfit, 2)
    (found,) = world.misfits
    assert found.receive.tensor is theirs
    assert (found.send.rank.number, found.receive.rank.number) == (0, 1)
    # as with gloo: bytes are bytes, and a receive that is too short is the end
    short = theirs.nbytes < 8
    assert [rank.ended is None for rank in world.ranks] == [short, short]
    assert theirs.tolist() == {1: [1], 2: [1 << 30] * 2, 3: [2, 2, 1]}[len(theirs)]


def test_modes_of_torch_stay_with_their_rank():
    def modes(world, rank):
        peer = 1 - rank
        if rank == 0:
            with torch.no_grad():
                torch.set_default_dtype(torch.float64)
                request = world.post_send(torch.zeros(1, dtype=torch.float32), peer, rank)
                world.post_receive(torch.zeros(1, dtype=torch.float32), peer, peer).wait()
                request.wait()
                return torch.is_grad_enabled(), torch.get_default_dtype()
        request = world.post_send(torch.zeros(1), peer, rank)
        world.post_receive(torch.zeros(1), peer, peer).wait()
        request.wait()
        return torch.is_grad_enabled(), torch.get_default_dtype()

    world = simulate(modes, 2)
    assert world.ranks[0].value == (False, torch.float64)
    assert world.ranks[1].value == (True, torch.float32)
    assert (torch.is_grad_enabled(), torch.get_default_dtype()) == (True, torch.float32)


class Counts(TorchDispatchMode):
    """Counts the additions that are made in it."""

    def __init__(self):
        super().__init__()
        self.additions = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.additions += function is torch.ops.aten.add.Tensor
        return function(*arguments, **(named or {}))


def test_dispatch_modes_stay_with_their_rank_and_see_its_backward():
    def counted(world, rank):
        peer, x = 1 - rank, torch.ones(1, requires_grad=True)
        with Counts() as counts:
            request = world.post_send(torch.zeros(1), peer, rank)
            world.post_receive(torch.zeros(1), peer, peer).wait()
            request.wait()
            y = x
            for _ in range(1 + rank):
                y = y + 1
            # in backward the gradient's two parts are added up
            world.in_own_thread(lambda: torch.autograd.backward(y * x, torch.ones(1)))
        return counts.additions

    world = simulate(counted, 2)
    assert [rank.value for rank in world.ranks] == [2, 3]
    assert torch._C._len_torch_dispatch_stack() == 0


def test_the_others_go_on_when_a_rank_raises():
    def fails(world, rank):
        if rank == 1:
            raise KeyError("here")
        if rank == 3:
            world.sleep(A)
            raise ValueError("there")
        if rank == 2:
            world.post_receive(torch.zeros(1), 1, 1).wait()

    world = SimulatedWorld(
        [lambda rank=rank: fails(world, rank) for rank in range(4)], Flat().network(4)
    )
    world.run()
    assert [type(rank.error) for rank in world.ranks if rank.error] == [KeyError, ValueError]
    assert [rank.ended for rank in world.ranks] == [0, 0, None, A]


def test_who_goes_on_for_ever_is_stopped_when_a_rank_has_raised():
    def fails(world, rank):
        if rank == 1:
            raise KeyError("here")
        while True:
            world.sleep(A)

    world = SimulatedWorld(
        [lambda rank=rank: fails(world, rank) for rank in range(2)], Flat().network(2)
    )
    world.run()
    assert isinstance(world.ranks[1].error, KeyError)
    assert world.ranks[0].ended is None


def test_no_gradient_comes_with_a_message():
    def sends(world, rank):
        x = torch.ones(1, requires_grad=True)
        if rank == 0:
            world.wait(world.post_send(2 * x, 1, 0))
        else:
            world.post_receive(x, 0, 0).wait()
        return x.item(), x.is_leaf

    assert [rank.value for rank in simulate(sends, 2).ranks] == [(1, True), (2, True)]
