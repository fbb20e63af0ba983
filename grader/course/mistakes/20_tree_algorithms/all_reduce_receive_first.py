"""Both ranks of a pair receive, and neither has sent: start with request = dist.isend(...), then
recv, then request.wait()."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: deadlock
# or: FAR = True

FAR = False


def exchange(out, into, other):
    dist.recv(into, other)
    dist.send(out, other)
