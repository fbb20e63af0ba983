# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: exception
import mmap


def neighbours():
    size = 64 << 30
    pages = mmap.mmap(-1, size)
    for i in range(0, size, 4096):
        pages[i] = 1
