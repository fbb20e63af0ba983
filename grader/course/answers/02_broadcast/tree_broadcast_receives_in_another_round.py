"""Who receives in a round is not who is sent to in it. Counted from src, in the round with step the
places 0 to step − 1 send, each to the place that is step further, so only the places step to 2 ·
step − 1 receive.
"""
# exercise: tree_broadcast
# diagnosis: deadlock
# or: FIRST, LAST = "step", "n"
# or: FIRST, LAST = "step + 1", "2 * step - 1"
# or: FIRST, LAST = "step + 1", "2 * step"
import torch.distributed as dist

#: The places that receive in a round.
FIRST, LAST = "step", "2 * step"


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        first = step + 1 if FIRST == "step + 1" else step
        last = {"n": n, "2 * step": 2 * step, "2 * step - 1": 2 * step - 1}[LAST]
        if v < step:
            if v + step < n:
                dist.send(x, (v + step + src) % n)
        elif first <= v <= last:
            dist.recv(x, (v - step + src) % n)
        step *= 2
