"""What a rank keeps for itself is counted differently on its two sides. The counts are in the
order of the experts, len(experts) for each rank, so counts.view(n, -1).sum(1) adds up those of
each rank."""
# exercise: expert_parallel
# diagnosis: exception


def by_rank(counts):
    return counts.view(-1, dist.get_world_size()).sum(0).tolist()
