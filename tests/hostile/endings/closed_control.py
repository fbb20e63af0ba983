# promise: a rank that closes its end of the conversation has not answered
# exercise: neighbours
# verdict: failed
# diagnosis: exited or timeout
# parts: control
import os
import time


def neighbours():
    sock = control()
    mine = os.fstat(sock.fileno()).st_ino
    sock.close()
    for fd in range(3, 256):
        try:
            if os.fstat(fd).st_ino == mine:
                os.close(fd)
        except OSError:
            continue
    time.sleep(1000)
