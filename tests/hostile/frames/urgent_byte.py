# promise: the judge does not wait for a byte that has come
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
# parts: control
import socket


def neighbours():
    """Urgent data makes the judge's socket readable, and a read that blocks skips it."""
    import time

    control().send(b"!", socket.MSG_OOB)
    time.sleep(1000)
