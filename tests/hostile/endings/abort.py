# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: crashed
import os


def neighbours():
    os.abort()
