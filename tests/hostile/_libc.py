"""A part of attacks: calls that Python itself does not offer."""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    """A function of the C library; it raises when the kernel refuses."""
    result = getattr(libc, name)(*args)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result
