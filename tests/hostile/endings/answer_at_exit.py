# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: exited
import atexit
import os
import sys


def neighbours():
    atexit.register(lambda: os.write(1, b"BREACH: handlers run"))
    sys.exit(0)
