"""Both ranks of a pair wait until their message is received, and neither receives. Start with
request = dist.isend(...), then recv, and only then request.wait()."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: deadlock
# or: FAR = True
# or: STARTS = True

FAR = False
STARTS = False


def exchange(out, into, other):
    if STARTS:
        dist.isend(out, other).wait()
    else:
        dist.send(out, other)
    dist.recv(into, other)
