# promise: memory has a limit, whatever it is taken for
# exercise: broadcast
# verdict: failed
# diagnosis: memory_limit
import time


def broadcast(x, src):
    # below what one rank may have, on every rank
    held = bytearray(1 << 30)
    time.sleep(2)
    return held
