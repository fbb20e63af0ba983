"""A worker of rank 1's loader waits for a lock that its parent held as it was forked."""

# culprits: 1
# verdict: never entered
import threading

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

lock = threading.Lock()


class Data(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        with lock:  # worker
            return torch.ones(2, 4)


dist.init_process_group("gloo")
dist.all_reduce(torch.ones(4))
if dist.get_rank() == 1:
    lock.acquire()
for batch in DataLoader(Data(), num_workers=2, multiprocessing_context="fork"):  # culprit
    dist.all_reduce(batch)
