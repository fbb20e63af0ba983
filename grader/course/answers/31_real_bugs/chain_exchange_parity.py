"""Odd ranks receive while even ones send, and nothing hangs; but with calls that block, a rank
talks to one neighbour at a time, and in one direction. Start the messages of both directions and to
both neighbours together, and wait afterwards."""
# exercise: chain_exchange
# diagnosis: too_many_rounds
# earns: 0.5
import torch
import torch.distributed as dist


def chain_exchange(forward, backward):
    rank, n = dist.get_rank(), dist.get_world_size()
    before = torch.empty_like(forward) if rank > 0 else None
    after = torch.empty_like(backward) if rank < n - 1 else None

    def with_the_next():
        if rank < n - 1:
            dist.send(forward, rank + 1)
            dist.recv(after, rank + 1)

    def with_the_last():
        if rank > 0:
            dist.recv(before, rank - 1)
            dist.send(backward, rank - 1)

    turns = [with_the_next, with_the_last]
    for turn in turns if rank % 2 == 0 else turns[::-1]:
        turn()
    return before, after
