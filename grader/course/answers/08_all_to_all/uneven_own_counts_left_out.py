"""counts says how many rows you send to each rank, not how many each rank sends to you. Only the
sender knows that number, so wait for as many rows as it has told you, and for none if those are none."""
# exercise: all_to_all_uneven
# diagnosis: deadlock
# or: TELLS = False

TELLS = True


def all_to_all_uneven(rows, counts):
    rank, mine = dist.get_rank(), rows.split(counts)
    parts = [room(rows, k) for k in counts]
    parts[rank] = mine[rank]
    for dst, src in others():
        if TELLS:
            swap(torch.tensor([counts[dst]]), dst, torch.empty(1, dtype=torch.int64), src)
        requests = [dist.isend(mine[dst], dst)] if counts[dst] else []
        if counts[src]:
            dist.recv(parts[src], src)
        for request in requests:
            request.wait()
    return torch.cat(parts)
