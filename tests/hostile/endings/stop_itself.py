# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import os
import signal


def neighbours():
    os.kill(os.getpid(), signal.SIGSTOP)
