"""Both ranks of a pair send, and neither receives: a blocking send waits for its receive. Start
with request = dist.isend(...), then recv, then request.wait()."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: deadlock
# or: FAR = True

FAR = False


def exchange(out, into, other):
    dist.send(out, other)
    dist.recv(into, other)
