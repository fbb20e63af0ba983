# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: memory_limit
import mmap


def neighbours():
    size = 64 << 30
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE)
    for i in range(0, size, 4096):
        pages[i] = 1
