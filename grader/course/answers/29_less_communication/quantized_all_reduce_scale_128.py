"""128 does not fit into int8, whose largest number is 127: it comes out as −128, with the wrong
sign. Let the scale be max│x│ / 127."""
# exercise: quantized_all_reduce
# diagnosis: wrong_value
# or: OWN = "as sent"

OWN = "exact"


def scale_of(chunk):
    return (chunk.abs().max() if len(chunk) else torch.tensor(0.0)) / 128
