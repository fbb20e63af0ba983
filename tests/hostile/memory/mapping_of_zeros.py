# promise: memory has a limit, whatever it is taken for
# exercise: neighbours
# verdict: failed
# diagnosis: exception
import mmap
import os


def neighbours():
    size = 8 << 30
    pages = mmap.mmap(os.open("/dev/zero", os.O_RDWR), size)
    for i in range(0, size, 4096):
        pages[i] = 1
