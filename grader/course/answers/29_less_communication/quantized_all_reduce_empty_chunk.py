"""A chunk may be empty here, and nothing has no largest element: give it any scale, or send no
message for it, on both sides."""
# exercise: quantized_all_reduce
# diagnosis: exception
# or: WITH = "amax"

WITH = "max"


def scale_of(chunk):
    return (chunk.abs().max() if WITH == "max" else chunk.abs().amax()) / 127
