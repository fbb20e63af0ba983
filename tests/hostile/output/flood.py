# promise: printing ends at the limit
# exercise: neighbours
# verdict: failed
# diagnosis: output_limit
import os


def neighbours():
    line = b"x" * (1 << 16)
    while True:
        os.write(1, line)
