# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: memory_limit or timeout
import torch


def neighbours():
    rows = []
    while True:
        rows.append(torch.ones(1 << 22))
