"""Unchanged ``torch.distributed`` programs on simulated ranks."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from headcount.simulation.calls import installed
from headcount.simulation.clusters import Flat
from headcount.simulation.world import SimulatedWorld


def simulate(function, size):
    """What ``function()`` returns on every rank."""
    world = SimulatedWorld([function] * size, Flat().network(size))
    with installed(world):
        world.run()
        world.end()
    for rank in world.ranks:
        if rank.error is not None:
            raise rank.error
    assert all(rank.ended is not None for rank in world.ranks)
    return [rank.value for rank in world.ranks]


def test_every_rank_sees_itself():
    def who():
        return dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.is_initialized()

    assert simulate(who, 3) == [(rank, 3, "gloo", True) for rank in range(3)]
    assert not dist.is_initialized()


def shift():
    rank, n = dist.get_rank(), dist.get_world_size()
    mine, got = torch.full((3,), float(rank)), torch.empty(3)
    return rank, n, mine, got


def test_messages_in_every_way_to_write_them():
    def blocking():
        rank, n, mine, got = shift()
        if rank % 2:
            source = dist.recv(got, (rank - 1) % n)
            dist.send(mine, (rank + 1) % n)
        else:
            dist.send(mine, dst=(rank + 1) % n)
            source = dist.recv(got, src=(rank - 1) % n)
        assert source == (rank - 1) % n
        return got.tolist()

    def requests():
        rank, n, mine, got = shift()
        for request in (dist.irecv(got, (rank - 1) % n), dist.isend(mine, (rank + 1) % n)):
            request.wait()
        return got.tolist()

    def batch():
        rank, n, mine, got = shift()
        operations = [
            dist.P2POp(dist.isend, mine, (rank + 1) % n),
            dist.P2POp(dist.irecv, got, (rank - 1) % n),
        ]
        for request in dist.batch_isend_irecv(operations):
            request.wait()
        return got.tolist()

    def tagged():
        rank, n, mine, got = shift()
        request = dist.isend(mine, (rank + 1) % n, tag=7)
        dist.recv(got, group_src=(rank - 1) % n, tag=7)
        request.wait()
        return got.tolist()

    def from_anybody():
        rank, n, mine, got = shift()
        request = dist.isend(mine, (rank + 1) % n)
        assert dist.recv(got) == (rank - 1) % n
        request.wait()
        return got.tolist()

    expected = [[float((rank - 1) % 4)] * 3 for rank in range(4)]
    for program in (blocking, requests, batch, tagged, from_anybody):
        assert simulate(program, 4) == expected, program.__name__


def test_subgroups():
    def program():
        rank = dist.get_rank()
        odd = dist.new_group([1, 3])
        if rank % 2 == 0:
            assert odd == dist.GroupMember.NON_GROUP_MEMBER
            assert dist.get_rank(odd) == -1
            return None
        got = torch.empty(1)
        place = dist.get_rank(odd)
        assert dist.get_global_rank(odd, place) == rank
        request = dist.isend(torch.full((1,), float(rank)), group_dst=1 - place, group=odd)
        dist.recv(got, 4 - rank, group=odd)
        request.wait()
        return dist.get_world_size(odd), got.item()

    assert simulate(program, 4) == [None, (2, 3.0), None, (2, 1.0)]


@pytest.mark.parametrize("peer", [0, 5, -1])
def test_there_must_be_such_a_peer(peer):
    def program():
        dist.send(torch.zeros(1), peer)

    with pytest.raises(ValueError, match=r"no rank|cannot talk to itself"):
        simulate(program, 1)


@pytest.mark.parametrize("first", ["send", "receive"])
def test_a_message_is_received_as_bytes(first):
    """The shapes of both ends may differ, and autograd learns that the buffer has changed."""

    def run():
        buffer, factor = torch.zeros(2, 3), torch.ones((), requires_grad=True)
        if dist.get_rank() == (first == "send"):
            product = buffer * factor
            dist.recv(buffer, int(first != "send"))
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                product.sum().backward()
            return buffer.tolist()
        dist.send(torch.arange(6.0), int(first == "send"))
        return None

    assert [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] in simulate(run, 2)


def test_a_tensor_must_be_contiguous():
    def program():
        dist.send(torch.zeros(4, 4).t()[1:], 1)

    with pytest.raises(ValueError, match="contiguous"):
        simulate(program, 2)
