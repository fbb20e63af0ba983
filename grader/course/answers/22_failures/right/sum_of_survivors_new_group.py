# exercise: sum_of_survivors
# diagnosis: none
# All-reduces over fewer and fewer ranks, until all that took part say that theirs was complete.
from datetime import timedelta

import torch.distributed as dist


def sum_of_survivors(x, seconds):
    limit = timedelta(seconds=seconds)
    store = dist.distributed_c10d._get_default_store()
    members, group = list(range(dist.get_world_size())), None
    for attempt in range(3):
        total = x.clone()
        try:
            if attempt:
                # all of them have just voted; to connect may take a busy machine longer
                group = dist.new_group(members, timeout=3 * limit, use_local_synchronization=True)
            dist.all_reduce(total, group=group, async_op=True).wait(limit)
            vote = "yes"
        except RuntimeError:
            vote = "no"
        store.set(f"{attempt}/{dist.get_rank()}", vote)
        votes = {}
        for rank in members:
            try:
                # one that began `seconds` later votes as much later
                store.wait([f"{attempt}/{rank}"], 2 * limit)
                votes[rank] = store.get(f"{attempt}/{rank}")
            except RuntimeError:
                pass
        if len(votes) == len(members) and set(votes.values()) == {b"yes"}:
            return total, members
        members = sorted(votes)
    raise RuntimeError("more than one rank has died")
