# ranks: 3
"""What only GPUs and NCCL do: synchronized batch normalization, and coalesced calls."""

import copy

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank)

# the last rank's batch is larger
rows = [3] * (size - 1) + [4]
torch.manual_seed(0)
whole = torch.randn(sum(rows), 4, 5)
plain = torch.nn.BatchNorm1d(4)
torch.nn.init.uniform_(plain.weight)
torch.nn.init.uniform_(plain.bias)
model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain)).to(device)
model = DDP(model, device_ids=[rank])
mine = whole.split(rows)[rank].to(device).requires_grad_()
found = model(mine)
found.pow(3).sum().backward()
whole.requires_grad_()
expected = plain(whole)
expected.pow(3).sum().backward()
close = torch.testing.assert_close
close(found, expected.split(rows)[rank])
close(mine.grad, whole.grad.split(rows)[rank], rtol=1e-4, atol=1e-5)
for name, parameter in model.module.named_parameters():
    close(parameter.grad * size, plain.get_parameter(name).grad, rtol=1e-4, atol=1e-5)
for name, buffer in model.module.named_buffers():
    close(buffer, plain.get_buffer(name))
close(model.eval()(mine), plain.eval()(mine))

one, other = torch.ones(3, device=device), torch.full((2,), float(rank), device=device)
with dist._coalescing_manager(device=device):
    dist.all_reduce(one)
    dist.all_reduce(other)
assert one.tolist() == [size] * 3
assert other.tolist() == [sum(range(size))] * 2
parts = torch.zeros(1, 2 * size, device=device)
with dist._coalescing_manager(device=device, async_ops=True) as coalesced:
    dist.all_gather_into_tensor(parts, other)
coalesced.wait()
assert parts.tolist() == [[sum(range(size))] * 2 * size]
into = torch.zeros(1, device=device)
with dist._coalescing_manager(device=device, async_ops=True) as coalesced:
    dist.isend(torch.full((1,), float(rank), device=device), (rank + 1) % size)
    dist.irecv(into, (rank - 1) % size)
coalesced.wait()
assert int(into) == (rank - 1) % size
dist.destroy_process_group()
