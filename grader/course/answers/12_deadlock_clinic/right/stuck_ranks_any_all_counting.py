# exercise: stuck_ranks_any_all
# diagnosis: none
from collections import deque


def stuck_ranks_any_all(waits_for, gone):
    """Each rank counts what it still needs; a rank that is freed tells those that wait for it."""
    needs, followers = {}, {}
    for rank, wait in waits_for.items():
        if wait is None or rank in gone:
            continue
        how, peers = wait
        peers = set(peers)
        needs[rank] = 1 if how == "any" else len(peers)
        for peer in peers:
            followers.setdefault(peer, []).append(rank)
    ready = deque(p for p in followers if p not in needs and p not in gone)
    ready.extend(r for r, count in needs.items() if count == 0)
    free = set(ready)
    while ready:
        for follower in followers.get(ready.popleft(), []):
            needs[follower] -= 1
            if needs[follower] <= 0 and follower not in free:
                free.add(follower)
                ready.append(follower)
    return sorted(set(needs) - free)
