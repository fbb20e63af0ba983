# exercise: pick_backend
# diagnosis: wrong_value
# hint: Only the whole words
def pick_backend(device_type):
    table = {"c": {"u": "nccl", "p": "gloo"}}
    try:
        return table[device_type[0]][device_type[1]]
    except (KeyError, IndexError):
        raise ValueError(device_type) from None
