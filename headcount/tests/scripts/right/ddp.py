# ranks: 2
"""DistributedDataParallel in tutorial style: a sampler, workers, batch norm, no_sync, a scaler."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(48, 6), torch.randn(48, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=6, sampler=sampler, num_workers=1, pin_memory=False)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    model = DDP(net.to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for number, (x, y) in enumerate(loader):
            x, y = x.cuda(rank, non_blocking=True), y.to(rank)
            if number % 2 == 0:
                with model.no_sync():
                    scaler.scale(((model(x) - y) ** 2).mean()).backward()
                continue
            scaler.scale(((model(x) - y) ** 2).mean()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    torch.cuda.synchronize()
    total = sum(p.double().sum() for p in model.parameters())
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, round(float(total.detach()), 9))
    assert len(set(every)) == 1, every
    if rank == 0:
        torch.save(model.module.state_dict(), sys.argv[1])
    dist.barrier()
    model.module.load_state_dict(torch.load(sys.argv[1], map_location=f"cuda:{rank}"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
