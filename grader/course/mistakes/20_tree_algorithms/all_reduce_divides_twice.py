"""The average is divided by n twice: perhaps once before ranks hand the result on, and once more
by those that get it. Do one of the two."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value
# or: AGAIN = "told"
# or: AGAIN = "told"; ASIDE = "the first of each pair"
# or: AGAIN = "told"; ASIDE = "the second of each pair"

AGAIN = "all"
ASIDE = "the last"


def divide(op, mine, n):
    if op == dist.ReduceOp.AVG:
        mine /= n * n if AGAIN == "all" else n


def tell(x, op, aside):
    rank, n = dist.get_rank(), dist.get_world_size()
    for other, taker in aside.items():
        if rank == other:
            dist.recv(x, taker)
            if op == dist.ReduceOp.AVG and AGAIN != "all":
                x /= n
        elif rank == taker:
            dist.send(x, other)
