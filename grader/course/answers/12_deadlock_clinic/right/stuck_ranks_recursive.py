# exercise: stuck_ranks
# diagnosis: none
def stuck_ranks(waits_for):
    def is_stuck(rank, path):
        if rank in path:
            return True
        if waits_for.get(rank) is None:
            return False
        return is_stuck(waits_for[rank], path | {rank})

    return sorted(filter(lambda rank: is_stuck(rank, frozenset()), waits_for))
