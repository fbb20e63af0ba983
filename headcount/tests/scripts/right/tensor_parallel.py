# ranks: 2
"""DTensor and parallelize_module, on a mesh that makes the process group itself."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

mesh = init_device_mesh("cuda", (2,), mesh_dim_names=("tp",))
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).cuda()
whole = net(torch.ones(2, 4))
parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
assert torch.allclose(net(torch.ones(2, 4)), whole, atol=1e-6)
net(torch.ones(2, 4)).sum().backward()
cut = distribute_tensor(torch.arange(8.0).view(2, 4), mesh, [Shard(0)])
assert float(cut.redistribute(mesh, [Replicate()]).to_local().sum()) == 28
dist.destroy_process_group()
