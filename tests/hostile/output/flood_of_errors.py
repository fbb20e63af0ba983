# promise: printing ends at the limit
# exercise: neighbours
# verdict: failed
# diagnosis: output_limit
import sys


def neighbours():
    while True:
        print("no new line" * 1000, end="", file=sys.stderr)
