# exercise: stuck_ranks
# diagnosis: none
# Whoever has not come to a running rank after as many steps as there are ranks never will.
def stuck_ranks(waits_for: dict[int, int | None]) -> list[int]:
    where = {rank: rank for rank in waits_for}
    for _ in waits_for:
        where = {rank: waits_for.get(at) for rank, at in where.items()}
    return sorted(rank for rank, at in where.items() if at in waits_for)
