# promise: what is changed in a rank is not changed in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import time


def neighbours():
    time.monotonic = time.time = time.monotonic_ns = lambda: 0
    while True:
        pass
