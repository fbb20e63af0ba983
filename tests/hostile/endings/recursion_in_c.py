# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: crashed or exception
import sys


def neighbours():
    sys.setrecursionlimit(2**31 - 1)
    answer = 0
    for _ in range(300_000):
        answer = (answer,)
    return hash(answer)
