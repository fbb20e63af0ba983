# promise: a call ends when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
import re


def neighbours():
    re.match(r"(a+)+$", "a" * 60 + "b")
