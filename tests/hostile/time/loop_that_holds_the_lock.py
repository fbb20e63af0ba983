# promise: a call ends when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import ctypes


def neighbours():
    ctypes.PyDLL(None).pause()
