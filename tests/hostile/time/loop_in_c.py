# promise: a call ends when its time is up
# exercise: neighbours
# verdict: failed
# diagnosis: timeout
def neighbours():
    return len(str(7**7**9))
