# promise: a rank that ends without an answer has failed
# exercise: neighbours
# verdict: failed
# diagnosis: crashed
import ctypes


def neighbours():
    ctypes.string_at(0)
