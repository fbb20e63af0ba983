"""bincount takes no negative numbers, and −1 marks a token that was dropped: leave those tokens
out first."""
# exercise: expert_parallel
# diagnosis: exception


def expert_parallel(x, expert, experts):
    counts = expert.bincount(minlength=dist.get_world_size() * len(experts))
    arriving = exchanged(counts)
    sends, receives, order = by_rank(counts), by_rank(arriving), sorted_tokens(expert)
    arrived = AllToAll.apply(x[order], sends, receives)
    worked = worked_on(arrived, experts_of(arriving, len(experts)), experts)
    return put_back(x, order, AllToAll.apply(worked, receives, sends))
