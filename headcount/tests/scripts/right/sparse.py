# ranks: 2
"""Sparse tensors are added up, by hand and as the gradients of an embedding."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
rows = torch.tensor([[rank, 3]])
mine = torch.sparse_coo_tensor(rows, torch.ones(2, 2), (5, 2), check_invariants=True)
dist.all_reduce(mine)
assert mine.to_dense()[:, 0].tolist() == [1, 1, 0, 2, 0]
dist.all_reduce(mine, async_op=True).wait()
assert mine.to_dense().sum() == 16
model = DistributedDataParallel(torch.nn.Embedding(5, 2, sparse=True))
model(torch.tensor([rank, 3])).sum().backward()
gradient = model.module.weight.grad
assert gradient.coalesce().indices().tolist() == [[0, 1, 3]]
dist.destroy_process_group()
