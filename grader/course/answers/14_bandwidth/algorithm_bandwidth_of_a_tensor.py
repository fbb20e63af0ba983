"""nbytes is a number already, and so is seconds: neither is a tensor."""
# exercise: algorithm_bandwidth
# diagnosis: exception
# says: AttributeError
# or: ASKED_FOR = "nbytes"
# or: ASKED_FOR = "element_size"
# or: ASKED_FOR = "itemsize"
# or: ASKED_FOR = "item"
# or: ASKED_FOR = "shape"
# or: NUMBER = "seconds"; ASKED_FOR = "item"

NUMBER = "nbytes"
ASKED_FOR = "numel"


def algorithm_bandwidth(nbytes, seconds):
    asked = getattr(nbytes if NUMBER == "nbytes" else seconds, ASKED_FOR)
    return asked / seconds
