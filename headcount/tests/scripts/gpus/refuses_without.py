# ranks: 2
"""A script that counts GPUs, asks for an accelerator, and refuses to run without."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, size):
    torch.accelerator.set_device_index(rank)
    device = torch.device(f"{torch.accelerator.current_accelerator()}:{rank}")
    dist.init_process_group("nccl", rank=rank, world_size=size)
    total = torch.ones(4, device=device).to(device)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    with torch.cuda.stream(torch.cuda.Stream()):
        dist.all_reduce(total)
    end.record()
    torch.cuda.synchronize()
    assert float(total.cpu().sum()) == 4 * size
    assert start.elapsed_time(end) >= 0
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) == 1 and not torch.accelerator.is_available():
        sys.exit("no GPU")
    count = torch.cuda.device_count()
    mp.spawn(work, args=(count,), nprocs=count)
