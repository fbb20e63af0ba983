# exercise: training_state_bytes
# diagnosis: timeout
# hint: a loop over billions
def training_state_bytes(params):
    total = 0
    for _ in range(params):
        total += 2 + 2 + 4 + 4 + 4
    return total
