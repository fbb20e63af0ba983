"""Ranks that wait for each other in a circle, or for a message that nobody sends."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def both_receive_first():
    rank, theirs = dist.get_rank(), torch.empty(1)
    dist.recv(theirs, 1 - rank)  # ← here
    dist.send(torch.tensor([float(rank)]), 1 - rank)
    return theirs.tolist()


@right(both_receive_first, gives=[[1.0], [0.0]])
def one_receives_first():
    rank, theirs = dist.get_rank(), torch.empty(1)
    if rank == 0:
        dist.recv(theirs, 1 - rank)
        dist.send(torch.tensor([float(rank)]), 1 - rank)
    else:
        dist.send(torch.tensor([float(rank)]), 1 - rank)
        dist.recv(theirs, 1 - rank)
    return theirs.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def both_count_on_buffered_sends():
    rank, theirs = dist.get_rank(), torch.empty(1)
    dist.send(torch.tensor([float(rank)]), 1 - rank)  # ← here
    dist.recv(theirs, 1 - rank)
    return theirs.tolist()


@right(both_count_on_buffered_sends, gives=[[1.0], [0.0]])
def both_start_their_sends():
    rank, theirs = dist.get_rank(), torch.empty(1)
    sent = dist.isend(torch.tensor([float(rank)]), 1 - rank)
    dist.recv(theirs, 1 - rank)
    sent.wait()
    return theirs.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def ring_of_three_sends_first():
    rank, n, y = dist.get_rank(), dist.get_world_size(), torch.empty(1)
    dist.send(torch.tensor([float(rank)]), (rank + 1) % n)  # ← here
    dist.recv(y, (rank - 1) % n)
    return y.tolist()


@right(ring_of_three_sends_first, gives=[[2.0], [0.0], [1.0]])
def ring_of_three_in_which_one_receives_first():
    rank, n, y = dist.get_rank(), dist.get_world_size(), torch.empty(1)
    if rank == 0:
        dist.recv(y, (rank - 1) % n)
        dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
    else:
        dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
    return y.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=5, hangs="always")
def ring_of_five_receives_first():
    rank, n, y = dist.get_rank(), dist.get_world_size(), torch.empty(1)
    dist.recv(y, (rank - 1) % n)  # ← here
    dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
    return y.tolist()


@right(ring_of_five_receives_first, gives=[[4.0], [0.0], [1.0], [2.0], [3.0]])
def ring_of_five_starts_its_receives_first():
    rank, n, y = dist.get_rank(), dist.get_world_size(), torch.empty(1)
    received = dist.irecv(y, (rank - 1) % n)
    dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
    received.wait()
    return y.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=8, hangs="always")
def ring_of_eight_sends_first():
    rank, n, y = dist.get_rank(), dist.get_world_size(), torch.empty(1)
    for _ in range(2):
        dist.send(torch.tensor([float(rank)]), (rank + 1) % n)  # ← here
        dist.recv(y, (rank - 1) % n)
    return y.tolist()


@right(ring_of_eight_sends_first, gives=[[float((r - 1) % 8)] for r in range(8)])
def ring_of_eight_by_parity():
    rank, n, y = dist.get_rank(), dist.get_world_size(), torch.empty(1)
    for _ in range(2):
        if rank % 2:
            dist.recv(y, (rank - 1) % n)
            dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
        else:
            dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
            dist.recv(y, (rank - 1) % n)
    return y.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def halo_exchange_on_a_periodic_line():
    rank, n, left = dist.get_rank(), dist.get_world_size(), torch.zeros(1)
    dist.send(torch.tensor([float(rank)]), (rank + 1) % n)  # ← here
    dist.recv(left, (rank - 1) % n)
    return left.tolist()


@right(halo_exchange_on_a_periodic_line, gives=[[0.0], [0.0], [1.0], [2.0]])
def halo_exchange_on_an_open_line():
    rank, n, left = dist.get_rank(), dist.get_world_size(), torch.zeros(1)
    if rank + 1 < n:
        dist.send(torch.tensor([float(rank)]), (rank + 1) % n)
    if rank > 0:
        dist.recv(left, (rank - 1) % n)
    return left.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def every_pair_exchanges_with_a_send_first():
    rank, total = dist.get_rank(), torch.zeros(1)
    for peer in range(4):
        if peer != rank:
            x = torch.empty(1)
            dist.send(torch.tensor([float(rank)]), peer)  # ← here
            dist.recv(x, peer)
            total += x
    return total.tolist()


@right(every_pair_exchanges_with_a_send_first, gives=[[6.0], [5.0], [4.0], [3.0]])
def every_pair_exchanges_lower_rank_first():
    rank, total = dist.get_rank(), torch.zeros(1)
    for peer in range(4):
        if peer != rank:
            x = torch.empty(1)
            if rank < peer:
                dist.send(torch.tensor([float(rank)]), peer)
                dist.recv(x, peer)
            else:
                dist.recv(x, peer)
                dist.send(torch.tensor([float(rank)]), peer)
            total += x
    return total.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def partner_that_is_not_mutual():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([float(rank)])
    step = 1
    while step < n:
        partner, y = (rank + step) % n, torch.empty(1)
        sent = dist.isend(x.clone(), partner)
        dist.recv(y, partner)  # ← here
        sent.wait()
        x += y
        step *= 2
    return x.tolist()


@right(partner_that_is_not_mutual, gives=4 * [[6.0]])
def partner_that_is_mutual():
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.tensor([float(rank)])
    step = 1
    while step < n:
        partner, y = rank ^ step, torch.empty(1)
        sent = dist.isend(x.clone(), partner)
        dist.recv(y, partner)
        sent.wait()
        x += y
        step *= 2
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def waits_before_anything_is_sent():
    rank, theirs = dist.get_rank(), torch.empty(1)
    received = dist.irecv(theirs, 1 - rank)
    received.wait()  # ← here
    sent = dist.isend(torch.tensor([float(rank)]), 1 - rank)
    sent.wait()
    return theirs.tolist()


@right(waits_before_anything_is_sent, gives=[[1.0], [0.0]])
def waits_when_all_is_started():
    rank, theirs = dist.get_rank(), torch.empty(1)
    received = dist.irecv(theirs, 1 - rank)
    sent = dist.isend(torch.tensor([float(rank)]), 1 - rank)
    received.wait()
    sent.wait()
    return theirs.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def one_receive_more_than_sends():
    rank, x, total = dist.get_rank(), torch.ones(1), 0.0
    if rank == 0:
        for _ in range(3):
            dist.recv(x)  # ← here
            total += x.item()
    else:
        dist.send(x, 0)
    return total


@right(one_receive_more_than_sends, gives=[2.0, 0.0, 0.0])
def as_many_receives_as_sends():
    rank, x, total = dist.get_rank(), torch.ones(1), 0.0
    if rank == 0:
        for _ in range(2):
            dist.recv(x)
            total += x.item()
    else:
        dist.send(x, 0)
    return total


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def one_send_more_than_receives():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        dist.recv(x, 1)
    elif rank == 1:
        dist.send(x, 0)
    else:
        dist.send(x, 0)  # ← here
    return x.tolist()


@right(one_send_more_than_receives, gives=[[2.0], [1.0], [2.0]])
def every_send_is_received():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        dist.recv(x, 1)
        dist.recv(x, 2)
    elif rank == 1:
        dist.send(x, 0)
    else:
        dist.send(x, 0)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def everybody_receives_from_anybody_first():
    rank, x = dist.get_rank(), torch.empty(1)
    dist.recv(x)  # ← here
    dist.send(torch.tensor([float(rank)]), (rank + 1) % 4)
    return x.tolist()


@right(everybody_receives_from_anybody_first, gives=[[3.0], [0.0], [1.0], [2.0]])
def everybody_but_one_receives_from_anybody_first():
    rank, x = dist.get_rank(), torch.empty(1)
    if rank == 0:
        dist.send(torch.tensor([float(rank)]), (rank + 1) % 4)
        dist.recv(x)
    else:
        dist.recv(x)
        dist.send(torch.tensor([float(rank)]), (rank + 1) % 4)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def master_collects_before_it_gives_work():
    rank, work = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        total = 0.0
        for _ in range(3):
            dist.recv(work)  # ← here
            total += work.item()
        for worker in range(1, 4):
            dist.send(torch.tensor([float(worker)]), worker)
        return total
    dist.recv(work, 0)  # ← here
    dist.send(work * work, 0)
    return None


@right(master_collects_before_it_gives_work, gives=[14.0, None, None, None])
def master_gives_work_before_it_collects():
    rank, work = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        total = 0.0
        for worker in range(1, 4):
            dist.send(torch.tensor([float(worker)]), worker)
        for _ in range(3):
            dist.recv(work)
            total += work.item()
        return total
    dist.recv(work, 0)
    dist.send(work * work, 0)
    return None


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def workers_wait_for_a_word_to_stop():
    rank, task = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        for worker in (1, 2):
            dist.send(torch.tensor([5.0]), worker)
        return 0.0
    done = 0.0
    while True:
        dist.recv(task, 0)  # ← here
        if task.item() < 0:
            return done
        done += task.item()


@right(workers_wait_for_a_word_to_stop, gives=[0.0, 5.0, 5.0])
def workers_get_a_word_to_stop():
    rank, task = dist.get_rank(), torch.zeros(1)
    if rank == 0:
        for word in (5.0, -1.0):
            for worker in (1, 2):
                dist.send(torch.tensor([word]), worker)
        return 0.0
    done = 0.0
    while True:
        dist.recv(task, 0)
        if task.item() < 0:
            return done
        done += task.item()


@wrong(Diagnosis.DEADLOCK, ranks=3, hangs="always")
def batch_with_a_receive_that_has_no_send():
    rank = dist.get_rank()
    right_rank, left_rank = (rank + 1) % 3, (rank - 1) % 3
    x, y = torch.tensor([float(rank)]), torch.empty(1)
    started = [dist.P2POp(dist.irecv, y, left_rank)]
    if rank != 1:
        started.append(dist.P2POp(dist.isend, x, right_rank))
    for request in dist.batch_isend_irecv(started):
        request.wait()  # ← here
    return y.tolist()


@right(batch_with_a_receive_that_has_no_send, gives=[[2.0], [0.0], [1.0]])
def batch_of_matching_messages():
    rank = dist.get_rank()
    right_rank, left_rank = (rank + 1) % 3, (rank - 1) % 3
    x, y = torch.tensor([float(rank)]), torch.empty(1)
    started = [dist.P2POp(dist.irecv, y, left_rank)]
    started.append(dist.P2POp(dist.isend, x, right_rank))
    for request in dist.batch_isend_irecv(started):
        request.wait()
    return y.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=4, hangs="always")
def pipeline_whose_backward_pass_starts_at_both_ends():
    rank, x = dist.get_rank(), torch.ones(1)
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < 3:
        dist.send(x + 1, rank + 1)
    if rank > 0:
        dist.recv(x, (rank + 1) % 4)  # ← here
        dist.send(x + 1, rank - 1)
    else:
        dist.recv(x, 1)  # ← here
    return x.tolist()


@right(pipeline_whose_backward_pass_starts_at_both_ends, gives=[[7.0], [6.0], [5.0], [4.0]])
def pipeline_whose_backward_pass_starts_at_the_end():
    rank, x = dist.get_rank(), torch.ones(1)
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < 3:
        dist.send(x + 1, rank + 1)
        dist.recv(x, rank + 1)
    if rank > 0:
        dist.send(x + 1, rank - 1)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=6, hangs="always")
def two_circles_at_once():
    rank, y = dist.get_rank(), torch.empty(1)
    start = 3 * (rank // 3)
    dist.recv(y, start + (rank + 1) % 3)  # ← here
    dist.send(torch.tensor([float(rank)]), start + (rank - 1) % 3)
    return y.tolist()


@right(two_circles_at_once, gives=[[1.0], [2.0], [0.0], [4.0], [5.0], [3.0]])
def two_circles_that_are_broken():
    rank, y = dist.get_rank(), torch.empty(1)
    start = 3 * (rank // 3)
    sent = dist.isend(torch.tensor([float(rank)]), start + (rank - 1) % 3)
    dist.recv(y, start + (rank + 1) % 3)
    sent.wait()
    return y.tolist()
