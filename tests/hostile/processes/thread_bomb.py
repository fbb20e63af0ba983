# promise: threads are limited
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: thread
import threading


def who_am_i():
    waiting = threading.Event()
    while True:
        threading.Thread(target=waiting.wait, daemon=True).start()
