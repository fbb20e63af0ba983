# promise: a bare except keeps nothing alive
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import time


def neighbours():
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            continue
