# promise: threads and handlers of one's own cost nothing
# exercise: neighbours
# verdict: passed
import atexit
import threading

import torch.distributed as dist


def neighbours():
    atexit.register(print, "never")
    answer = []
    rank, n = dist.get_rank(), dist.get_world_size()
    worker = threading.Thread(target=lambda: answer.extend(((rank - 1) % n, (rank + 1) % n)))
    worker.start()
    worker.join()
    return tuple(answer)
