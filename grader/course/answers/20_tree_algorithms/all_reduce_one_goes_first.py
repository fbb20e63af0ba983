"""In each exchange one rank of a pair sends first and the other answers: that takes two rounds.
Start both sends at the same time, with isend."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: too_many_rounds
# earns: 0.5


def exchange(out, into, other):
    if dist.get_rank() > other:
        dist.recv(into, other)
        dist.send(out, other)
    else:
        dist.send(out, other)
        dist.recv(into, other)
