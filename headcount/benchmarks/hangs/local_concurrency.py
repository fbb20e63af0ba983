"""Buffers that are used while an operation that was started still needs them."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def writes_to_what_is_being_sent():
    x = torch.full((3,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        sent = dist.isend(x, 1)
        x += 5  # ← here
        sent.wait()  # ← here
    else:
        dist.recv(x, 0)
    return x.tolist()


@right(writes_to_what_is_being_sent, gives=[[5.0, 5.0, 5.0], [0.0, 0.0, 0.0]])
def writes_to_what_was_sent():
    x = torch.full((3,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        sent = dist.isend(x, 1)
        sent.wait()
        x += 5
    else:
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def writes_to_what_is_being_received():
    x = torch.full((3,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        received = dist.irecv(x, 1)
        x += 1  # ← here
        received.wait()  # ← here
    else:
        dist.send(x, 0)
    return x.tolist()


@right(writes_to_what_is_being_received, gives=[[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]])
def writes_to_what_was_received():
    x = torch.full((3,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        received = dist.irecv(x, 1)
        received.wait()
        x += 1
    else:
        dist.send(x, 0)
    return x.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def sends_what_is_being_received():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 1:
        received = dist.irecv(x, 0)
        dist.send(x, 2)  # ← here
        received.wait()
    elif rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 1)
    return x.tolist()


@right(sends_what_is_being_received, gives=3 * [[0.0]])
def sends_what_was_received():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 1:
        received = dist.irecv(x, 0)
        received.wait()
        dist.send(x, 2)
    elif rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 1)
    return x.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=4, hangs="never")
def ring_with_one_buffer():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    sent = dist.isend(x, (rank + 1) % 4)
    dist.recv(x, (rank - 1) % 4)  # ← here
    sent.wait()
    return x.tolist()


@right(ring_with_one_buffer, gives=[[3.0], [0.0], [1.0], [2.0]])
def ring_with_two_buffers():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    y = torch.empty(1)
    sent = dist.isend(x, (rank + 1) % 4)
    dist.recv(y, (rank - 1) % 4)
    sent.wait()
    return y.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def two_receives_into_one_buffer():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        requests = [
            dist.irecv(x, 1),
            dist.irecv(x, 2),  # ← here
        ]
        for request in requests:
            request.wait()
    else:
        dist.send(x, 0)
    return None


@right(two_receives_into_one_buffer, gives=3 * [None])
def two_sends_from_one_buffer():
    rank, x = dist.get_rank(), torch.tensor([float(dist.get_rank())])
    if rank == 0:
        requests = [
            dist.isend(x, 1),
            dist.isend(x, 2),
        ]
        for request in requests:
            request.wait()
    else:
        dist.recv(x, 0)
    return None


@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def slices_that_overlap():
    rank, whole = dist.get_rank(), torch.zeros(5)
    if rank == 0:
        first = dist.irecv(whole[0:3], 1)
        second = dist.irecv(whole[2:5], 2)  # ← here
        first.wait()
        second.wait()
        return whole.sum().item()
    dist.send(torch.ones(3), 0)
    return 0.0


@right(slices_that_overlap, gives=[5.0, 0.0, 0.0])
def slices_that_touch():
    rank, whole = dist.get_rank(), torch.zeros(5)
    if rank == 0:
        first = dist.irecv(whole[0:3], 1)
        second = dist.irecv(whole[3:5], 2)
        first.wait()
        second.wait()
        return whole.sum().item()
    dist.send(torch.ones(4 - rank), 0)
    return 0.0


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def fills_one_buffer_for_every_send():
    received = []
    if dist.get_rank() == 0:
        buffer, requests = torch.empty(2), []
        for value in range(3):
            buffer.fill_(value)  # ← here
            requests.append(dist.isend(buffer, 1))
        for request in requests:
            request.wait()  # ← here
    else:
        for _ in range(3):
            x = torch.empty(2)
            dist.recv(x, 0)
            received.append(x[0].item())
    return received


@right(fills_one_buffer_for_every_send, gives=[[], [0.0, 1.0, 2.0]])
def a_buffer_for_every_send():
    received = []
    if dist.get_rank() == 0:
        requests = []
        for value in range(3):
            buffer = torch.full((2,), float(value))
            requests.append(dist.isend(buffer, 1))
        for request in requests:
            request.wait()
    else:
        for _ in range(3):
            x = torch.empty(2)
            dist.recv(x, 0)
            received.append(x[0].item())
    return received


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def writes_through_a_view():
    x = torch.zeros(2, 3)
    row = x[1]
    if dist.get_rank() == 0:
        sent = dist.isend(x, 1)
        row.fill_(7)  # ← here
        sent.wait()  # ← here
    else:
        dist.recv(x, 0)
    return x.sum().item()


@right(writes_through_a_view, gives=[0.0, 0.0])
def writes_to_a_copy_of_a_view():
    x = torch.zeros(2, 3)
    row = x[1].clone()
    if dist.get_rank() == 0:
        sent = dist.isend(x, 1)
        row.fill_(7)
        sent.wait()
    else:
        dist.recv(x, 0)
    return x.sum().item()


@wrong(Diagnosis.BUFFER_RACE, ranks=4, hangs="never")
def scales_a_gradient_while_it_is_reduced():
    gradient = torch.ones(2)
    request = dist.all_reduce(gradient, async_op=True)
    gradient /= 4  # ← here
    request.wait()  # ← here
    return gradient.tolist()


@right(scales_a_gradient_while_it_is_reduced, gives=4 * [[1.0, 1.0]])
def scales_a_gradient_when_it_is_reduced():
    gradient = torch.ones(2)
    request = dist.all_reduce(gradient, async_op=True)
    request.wait()
    gradient /= 4
    return gradient.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def root_updates_weights_while_it_broadcasts_them():
    weights = torch.full((2,), float(dist.get_rank()))
    request = dist.broadcast(weights, 0, async_op=True)
    if dist.get_rank() == 0:
        weights += 1  # ← here
    request.wait()  # ← here
    return weights.tolist()


@right(root_updates_weights_while_it_broadcasts_them, gives=[[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
def root_updates_weights_after_it_broadcast_them():
    weights = torch.full((2,), float(dist.get_rank()))
    request = dist.broadcast(weights, 0, async_op=True)
    request.wait()
    if dist.get_rank() == 0:
        weights += 1
    return weights.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def reuses_the_input_of_an_all_gather():
    x = torch.tensor([float(dist.get_rank())])
    parts = [torch.empty(1), torch.empty(1)]
    request = dist.all_gather(parts, x, async_op=True)
    x.zero_()  # ← here
    request.wait()  # ← here
    return torch.cat(parts).tolist()


@right(reuses_the_input_of_an_all_gather, gives=2 * [[0.0, 1.0]])
def leaves_the_input_of_an_all_gather_alone():
    x = torch.tensor([float(dist.get_rank())])
    parts = [torch.empty(1), torch.empty(1)]
    request = dist.all_gather(parts, x, async_op=True)
    x = torch.zeros(1)
    request.wait()
    return torch.cat(parts).tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def two_reductions_of_one_buffer_at_once():
    x = torch.ones(2)
    first = dist.all_reduce(x, async_op=True)
    second = dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True)  # ← here
    first.wait()
    second.wait()
    return x.tolist()


@right(two_reductions_of_one_buffer_at_once, gives=2 * [[2.0, 2.0]])
def two_reductions_of_one_buffer_in_turn():
    x = torch.ones(2)
    first = dist.all_reduce(x, async_op=True)
    first.wait()
    second = dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True)
    second.wait()
    return x.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def sends_a_buffer_that_is_being_reduced():
    rank, x, y = dist.get_rank(), torch.ones(2), torch.empty(2)
    request = dist.all_reduce(x, async_op=True)
    if rank == 0:
        dist.send(x, 1)  # ← here
    else:
        dist.recv(y, 0)
    request.wait()
    return x.tolist()


@right(sends_a_buffer_that_is_being_reduced, gives=2 * [[2.0, 2.0]])
def sends_another_buffer_while_one_is_reduced():
    rank, x, y = dist.get_rank(), torch.ones(2), torch.empty(2)
    request = dist.all_reduce(x, async_op=True)
    if rank == 0:
        dist.send(torch.ones(2), 1)
    else:
        dist.recv(y, 0)
    request.wait()
    return x.tolist()


@wrong(Diagnosis.BUFFER_RACE, ranks=3, hangs="never")
def gathers_into_one_tensor_n_times():
    rank, n = dist.get_rank(), dist.get_world_size()
    out = [torch.zeros(1)] * n
    dist.all_gather(out, torch.tensor([float(rank)]))  # ← here
    return [x.item() for x in out]


@right(gathers_into_one_tensor_n_times, gives=3 * [[0.0, 1.0, 2.0]])
def gathers_into_n_tensors():
    rank, n = dist.get_rank(), dist.get_world_size()
    out = [torch.zeros(1) for _ in range(n)]
    dist.all_gather(out, torch.tensor([float(rank)]))
    return [x.item() for x in out]


@wrong(Diagnosis.BUFFER_RACE, ranks=2, hangs="never")
def outputs_overlap_in_one_row():
    rank, row = dist.get_rank(), torch.zeros(5)
    mine = [torch.full((3,), float(rank)) for _ in range(2)]
    dist.all_to_all([row[:3], row[2:]], mine)  # ← here
    return row.tolist()


@right(outputs_overlap_in_one_row, gives=2 * [[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]])
def outputs_lie_between_each_other():
    rank, rows = dist.get_rank(), torch.zeros(3, 2)
    dist.all_gather([rows[:, 0], rows[:, 1]], torch.full((3,), float(rank)))
    return rows.flatten().tolist()
