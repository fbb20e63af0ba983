"""Split sizes are lists of Python numbers: counts.view(n, -1).sum(1).tolist()."""
# exercise: expert_parallel
# diagnosis: exception


def by_rank(counts):
    return counts.view(dist.get_world_size(), -1).sum(1)
