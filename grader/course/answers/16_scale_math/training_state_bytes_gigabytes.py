"""These are gigabytes. Bytes are asked for."""
# exercise: training_state_bytes
# diagnosis: wrong_type
# or: GIGABYTE = 2**30

GIGABYTE = 1e9


def training_state_bytes(params):
    return 16 * params / GIGABYTE
