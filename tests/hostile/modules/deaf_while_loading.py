# promise: a rank that does not listen holds nobody up
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control
import ctypes

import torch.distributed as dist


class Talk:
    """Rank 0 tells the store without end what rank 1 never hears."""

    from headcount.core.wire import _encode
    from headcount.core.wire import Put

    if dist.get_rank() == 1:
        ctypes.PyDLL(None).pause()
    if dist.get_world_size() > 1:
        body = _encode(Put("key", b"x" * 60_000, None, 1))
        sock = control()
        while True:
            sock.sendall(len(body).to_bytes(4, "little") + body)


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n
