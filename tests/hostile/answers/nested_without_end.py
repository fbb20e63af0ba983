# promise: what is returned is data: nothing of it runs in the judge
# exercise: neighbours
# verdict: failed
# diagnosis: wrong_shape
def neighbours():
    answer = []
    for _ in range(100_000):
        answer = [answer]
    return answer
