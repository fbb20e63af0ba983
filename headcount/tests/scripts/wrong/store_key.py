# ranks: 2
# diagnosis: deadlock
# status: 3
"""A rank waits for an entry of the store that nobody puts there."""

import torch.distributed as dist

dist.init_process_group()
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    store.set("checkpoint/0", "done")
else:
    store.get("checkpoint/1")  # here
dist.barrier()
