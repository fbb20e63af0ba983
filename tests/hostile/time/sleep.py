# promise: a call ends when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import time


def neighbours():
    time.sleep(1000)
