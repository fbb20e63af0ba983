"""The second phase sends the half that was given away, and what comes replaces the finished one.
On the way back a rank sends what it kept, and receives into what it gave away."""
# exercise: halving_doubling_all_reduce
# diagnosis: wrong_value
# or: FAR = True

FAR = False


def gather(op, other_at, done):
    for step, kept, given in reversed(done):
        exchange(given, kept, other_at(step))
