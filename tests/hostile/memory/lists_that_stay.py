# promise: memory has a limit, whatever it is taken for
# exercise: should_stop
# verdict: failed
# diagnosis: wrong_type
def should_stop(loss, best):
    return [1000.5 + i for i in range(99_000)]
