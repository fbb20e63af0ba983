# ranks: 2
"""FSDP, the first and the second, with clipped gradients and a full state dict."""

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard


def layers():
    torch.manual_seed(1)
    return torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(3)])


def step(model, optimizer):
    model(torch.ones(2, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


dist.init_process_group("cpu:gloo,cuda:nccl")
model = layers()
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for _ in range(3):
    step(model, optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
older = FullyShardedDataParallel(layers())
optimizer = torch.optim.AdamW(older.parameters(), lr=0.1)
for _ in range(3):
    step(older, optimizer)
with FullyShardedDataParallel.summon_full_params(older):
    one = sum(float(p.double().sum()) for p in older.parameters())
if dist.get_rank() == 0:
    assert abs(sum(float(p.double().sum()) for p in state.values()) - one) < 1e-4
dist.destroy_process_group()
