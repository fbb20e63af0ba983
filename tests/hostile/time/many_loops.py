# promise: a call ends when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import threading


def neighbours():
    for _ in range(64):
        threading.Thread(target=spin).start()
    spin()


def spin():
    while True:
        pass
