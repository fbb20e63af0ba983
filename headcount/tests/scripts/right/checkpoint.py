# ranks: 2
"""A distributed checkpoint is written and read again."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard

dist.init_process_group("cpu:gloo,cuda:nccl")
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
fully_shard(model)
before = model.weight.full_tensor().clone()
dcp.save({"model": model.state_dict()}, checkpoint_id=sys.argv[1])
with torch.no_grad():
    model.weight.to_local().zero_()
state = {"model": model.state_dict()}
dcp.load(state, checkpoint_id=sys.argv[1])
model.load_state_dict(state["model"])
assert torch.equal(model.weight.full_tensor(), before)
dist.destroy_process_group()
