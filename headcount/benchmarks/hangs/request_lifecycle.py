"""Requests that are lost, never waited for, or whose message nobody takes."""

from __future__ import annotations

import torch
import torch.distributed as dist

from benchmarks.hangs.declare import right, wrong
from headcount.core.verdict import Diagnosis


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def never_waits_for_a_receive():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.send(x, 1)
    else:
        dist.irecv(x, 0)  # ← here
    return x.tolist()


@right(never_waits_for_a_receive, gives=2 * [[0.0, 0.0]])
def waits_for_a_receive():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.send(x, 1)
    else:
        dist.irecv(x, 0).wait()
    return x.tolist()


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def never_waits_for_a_send():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.isend(x, 1)  # ← here
    else:
        dist.recv(x, 0)
    return x.tolist()


@right(never_waits_for_a_send, gives=2 * [[0.0, 0.0]])
def waits_for_a_send():
    x = torch.full((2,), float(dist.get_rank()))
    if dist.get_rank() == 0:
        dist.isend(x, 1).wait()
    else:
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=3, hangs="never")
def loses_all_requests_but_the_last():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        for peer in (1, 2):
            request = dist.isend(x, peer)  # ← here
        request.wait()
    else:
        dist.recv(x, 0)
    return x.tolist()


@right(loses_all_requests_but_the_last, gives=3 * [[0.0]])
def keeps_all_requests():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        requests = []
        for peer in (1, 2):
            requests.append(dist.isend(x, peer))
        for request in requests:
            request.wait()
    else:
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=4, hangs="never")
def never_waits_for_an_all_reduce():
    x = torch.ones(3)
    dist.all_reduce(x, async_op=True)  # ← here
    return None


@right(never_waits_for_an_all_reduce, gives=4 * [None])
def waits_for_an_all_reduce():
    x = torch.ones(3)
    dist.all_reduce(x, async_op=True).wait()
    return None


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def waits_on_one_rank_only():
    x = torch.ones(3)
    request = dist.all_reduce(x, async_op=True)  # ← here
    if dist.get_rank() == 0:
        request.wait()
    return None


@right(waits_on_one_rank_only, gives=2 * [None])
def waits_on_both_ranks():
    x = torch.ones(3)
    request = dist.all_reduce(x, async_op=True)
    if dist.get_rank() in (0, 1):
        request.wait()
    return None


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def waits_for_the_first_of_a_batch():
    rank = dist.get_rank()
    x, y = torch.tensor([float(rank)]), torch.empty(1)
    send, receive = dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)
    requests = dist.batch_isend_irecv([send, receive])  # ← here
    requests[0].wait()
    return None


@right(waits_for_the_first_of_a_batch, gives=2 * [None])
def waits_for_the_whole_batch():
    rank = dist.get_rank()
    x, y = torch.tensor([float(rank)]), torch.empty(1)
    send, receive = dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)
    requests = dist.batch_isend_irecv([send, receive])
    requests[0].wait()
    requests[1].wait()
    return None


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=3, hangs="always")
def waits_twice_for_one_and_never_for_the_other():
    x, y = torch.tensor([float(dist.get_rank())]), torch.zeros(1)
    if dist.get_rank() == 0:
        first, second = dist.irecv(x, 1), dist.irecv(y, 2)  # ← here
        first.wait()
        first.wait()
        return x.item()
    dist.send(x, 0)
    return x.item()


@right(waits_twice_for_one_and_never_for_the_other, gives=[1.0, 1.0, 2.0])
def waits_once_for_each():
    x, y = torch.tensor([float(dist.get_rank())]), torch.zeros(1)
    if dist.get_rank() == 0:
        first, second = dist.irecv(x, 1), dist.irecv(y, 2)
        first.wait()
        second.wait()
        return x.item()
    dist.send(x, 0)
    return x.item()


@wrong(Diagnosis.UNMATCHED_MESSAGE, ranks=2, hangs="never")
def sends_what_nobody_receives():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        requests = [dist.isend(x, 1), dist.isend(x, 1)]  # ← here
        requests[0].wait()
    else:
        dist.recv(x, 0)
    return x.tolist()


@right(sends_what_nobody_receives, gives=2 * [[0.0]])
def receives_all_that_is_sent():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        requests = [dist.isend(x, 1), dist.isend(x, 1)]
        requests[0].wait()
        requests[1].wait()
    else:
        dist.recv(x, 0)
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
def waits_for_a_send_that_nobody_receives():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        requests = [dist.isend(x, 1), dist.isend(x, 1)]
        for request in requests:
            request.wait()  # ← here
    else:
        dist.recv(x, 0)
    return x.tolist()


@right(waits_for_a_send_that_nobody_receives, gives=2 * [[0.0]])
def waits_for_sends_that_are_received():
    x = torch.tensor([float(dist.get_rank())])
    if dist.get_rank() == 0:
        requests = [dist.isend(x, 1), dist.isend(x, 1)]
        for request in reversed(requests):
            request.wait()
    else:
        dist.recv(x, 0)
        dist.recv(x, 0)
    return x.tolist()


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def asks_once_whether_it_is_complete():
    x, ready = torch.zeros(1), torch.zeros(1)
    if dist.get_rank() == 0:
        received = dist.irecv(x, 1)  # ← here
        complete = received.is_completed()
        dist.send(ready, 1)
        return complete
    dist.recv(ready, 0)
    sent = dist.isend(x, 0)
    sent.wait()
    return True


@right(asks_once_whether_it_is_complete, gives=[False, True])
def asks_once_and_then_waits():
    x, ready = torch.zeros(1), torch.zeros(1)
    if dist.get_rank() == 0:
        received = dist.irecv(x, 1)
        complete = received.is_completed()
        dist.send(ready, 1)
        received.wait()
        return complete
    dist.recv(ready, 0)
    sent = dist.isend(x, 0)
    sent.wait()
    return True


@wrong(Diagnosis.UNWAITED_REQUEST, ranks=2, hangs="never")
def forgets_the_request_of_the_last_bucket():
    buckets = [torch.ones(2) for _ in range(3)]
    previous = None
    for bucket in buckets:
        request = dist.all_reduce(bucket, async_op=True)  # ← here
        if previous is not None:
            previous.wait()
        previous = request
    return [bucket[0].item() for bucket in buckets[:2]]


@right(forgets_the_request_of_the_last_bucket, gives=2 * [[2.0, 2.0]])
def waits_for_the_last_bucket_after_the_loop():
    buckets = [torch.ones(2) for _ in range(3)]
    previous = None
    for bucket in buckets:
        request = dist.all_reduce(bucket, async_op=True)
        if previous is not None:
            previous.wait()
        previous = request
    previous.wait()
    return [bucket[0].item() for bucket in buckets[:2]]
