# promise: what a rank reports in a call has an end, and the judge keeps little of it
# exercise: broadcast
# verdict: failed
# diagnosis: too_many_messages or tampering
# score: some or 0
import os
import socket
import stat
import struct

import msgspec
import torch.distributed as dist


def flood():
    """Report 40,000 marks of 4 kB, as the recorder would; what it says itself may come between."""
    body = msgspec.msgpack.encode(["mark", "\N{GRINNING FACE}" * 1024, 1])
    for fd in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                control = socket.socket(fileno=os.dup(fd))
                if control.family == socket.AF_UNIX:
                    for _ in range(625):
                        control.sendall((struct.pack("<I", len(body)) + body) * 64)
                    return
        except OSError:
            continue


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        flood()
    for other in set(range(n)) - {src}:
        if rank == src:
            dist.send(x, other)
        elif rank == other:
            dist.recv(x, src)
