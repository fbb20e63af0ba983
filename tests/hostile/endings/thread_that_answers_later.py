# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: exception
import threading


def neighbours():
    box = []
    threading.Thread(target=lambda: box.append((0, 0)), daemon=False).start()
    threading.Thread(target=forever, daemon=False).start()
    raise ValueError("ask me later")


def forever():
    while True:
        pass
