# promise: a rank that never stops talking is ended when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout or too_many_messages
# parts: control

import torch
import torch.distributed as dist


def neighbours():
    from headcount.core.events import Polled

    dist.irecv(torch.zeros(1), None)
    sock, events = control(), framed(*[Polled(0, 0)] * 1000)
    while True:
        sock.sendall(events)
