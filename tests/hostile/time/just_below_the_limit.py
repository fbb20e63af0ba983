# promise: an exercise has a limit on all its calls together
# exercise: broadcast
# verdict: failed
# diagnosis: timeout
import time


def broadcast(x, src):
    time.sleep(2.5)
